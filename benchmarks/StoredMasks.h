//===- StoredMasks.h - Reference masks of dropout -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_STOREDMASKS_H
#define DTC_BENCHMARKS_STOREDMASKS_H

#include "plan/plan.pb.h"

namespace dtc::benchmarks {

/// The bytes that a device with this program of a pipeline would keep at one time, at most, if it
/// stored the masks of dropout from the forward to the backward pass, one byte an element, like
/// frameworks that do not draw them again. Masks of recomputed ops are not kept, nor those within a
/// kernel of attention.
double storedMaskBytes(const plan::Program &program);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_STOREDMASKS_H
