//===- LossChunkAttribute.h - Ops that work on chunks of a loss -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_LOSSCHUNKATTRIBUTE_H
#define DTC_DIALECTS_DTC_LOSSCHUNKATTRIBUTE_H

#include "llvm/ADT/StringRef.h"

namespace dtc {

/// On an op that computes a loss from a chunk of the tokens, or from such a loss (a unit): it may
/// run as late as its first user needs it. dtc-chunk-loss sets it, dtc-delay-loss-chunks removes
/// it.
inline constexpr llvm::StringLiteral kLossChunkAttrName = "dtc.loss_chunk";

} // namespace dtc

#endif // DTC_DIALECTS_DTC_LOSSCHUNKATTRIBUTE_H
