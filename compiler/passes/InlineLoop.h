//===- InlineLoop.h - A loop over one microbatch as its body --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_INLINELOOP_H
#define DTC_COMPILER_PASSES_INLINELOOP_H

#include "dialects/dist/Dist.h"

namespace dtc {

/// Puts the body of a loop over one microbatch in the place of the loop.
void inlineLoop(dist::MicrobatchLoopOp loop);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_INLINELOOP_H
