//===- OperandOverlap.h - Operands that share bytes -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A file may give one instruction any number of operands, so pairs of them are not compared one by
// one: all functions sort, and take time in n log n.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_OPERANDOVERLAP_H
#define DTC_PLAN_OPERANDOVERLAP_H

#include "plan/PlanChecks.h"

namespace dtc {

/// The outputs of a kernel lie apart from each other, and from inputs unless the kernel runs in
/// place on the pair.
MaybeError checkKernelOverlap(const PlanContext &context, const plan::KernelCall &call);

/// The tensors of a bucket move at the same time: an output of one does not affect another. Expects
/// that a tensor's own input and output have been checked against each other.
MaybeError checkBucketOverlap(const PlanContext &context, const plan::Collective &collective);

/// The tensors of a receive are written at the same time.
MaybeError checkReceivedApart(const PlanContext &context, const plan::Transfer &transfer);

} // namespace dtc

#endif // DTC_PLAN_OPERANDOVERLAP_H
