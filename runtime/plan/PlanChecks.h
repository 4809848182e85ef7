//===- PlanChecks.h - The parts of the plan validator ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each function checks one part of a plan and expects that the parts before it have passed, in the
// order in which they stand here.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_PLAN_PLANCHECKS_H
#define DTC_RUNTIME_PLAN_PLANCHECKS_H

#include "runtime/plan/plan.pb.h"
#include "runtime/support/Error.h"
#include "runtime/support/Mesh.h"
#include "runtime/support/Tensor.h"

#include <string>
#include <vector>

namespace dtc::runtime {

/// A buffer's range of bytes of the arena.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool empty() const { return begin == end; }
  bool operator==(const ByteRange &) const = default;
  bool overlaps(const ByteRange &other) const {
    return !empty() && !other.empty() && begin < other.end && other.begin < end;
  }
};

/// A plan with what the first checks found out about it.
struct PlanContext {
  const plan::Plan &plan;
  const plan::Program &program;
  Mesh mesh;
  std::vector<TensorType> types; // of each buffer
  std::vector<ByteRange> ranges; // of each buffer
};

/// The element type is known, the shape's sizes are not negative, their product and the bytes do
/// not overflow, the rank is at most maxTensorRank.
MaybeError checkTensor(plan::DType dtype, const google::protobuf::RepeatedField<int64_t> &shape);

/// An error that names the buffer if there is no such buffer.
MaybeError checkBufferIndex(const PlanContext &context, uint32_t buffer);

/// Operands, collectives, attributes and sources of all instructions; the schedule.
MaybeError checkInstructions(const PlanContext &context);

/// What async collectives and waits add: every one is waited for once, and until then nothing
/// writes its inputs and nothing touches its outputs.
MaybeError checkAsync(const PlanContext &context);

/// States, inputs and outputs with their shardings and buffers.
MaybeError checkBindings(const PlanContext &context);

/// Every byte that is read is in a state or an input, or was written earlier in the schedule.
MaybeError checkDataflow(const PlanContext &context);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_PLAN_PLANCHECKS_H
