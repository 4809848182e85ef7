//===- StoredMasks.h - Reference masks of dropout -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_STOREDMASKS_H
#define DTC_BENCHMARKS_STOREDMASKS_H

#include "plan/plan.pb.h"

#include <string>

namespace dtc::benchmarks {

/// The bytes that a device with this program of a pipeline would keep at one time, at most, if it
/// stored the masks of dropout from the forward to the backward pass, one byte an element, like
/// frameworks that do not draw them again. Masks of recomputed ops are not kept, nor those within a
/// kernel of attention. Where `layers` is not empty, masks count only in layers whose names begin
/// with it and a number. The program is one of `plan`.
double storedMaskBytes(const plan::Plan &plan, const plan::Program &program,
                       const std::string &layers);

/// Gives each call of dropout in the tasks of passes a mask as one operand more, of one byte an
/// element, which frameworks that store it (PyTorch's native_dropout and its gradient) write where
/// it is drawn and read in the gradient: the traffic is the same. The result is for simulating
/// only.
void addMaskTraffic(plan::Plan &plan);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_STOREDMASKS_H
