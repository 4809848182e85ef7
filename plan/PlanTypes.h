//===- PlanTypes.h - From Protobuf to the runtime's types -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_PLANTYPES_H
#define DTC_PLAN_PLANTYPES_H

#include "plan/plan.pb.h"
#include "support/Kinds.h"
#include "support/Mesh.h"
#include "support/Tensor.h"

#include <optional>
#include <string>
#include <vector>

namespace dtc {

template <typename T> std::vector<T> toVector(const google::protobuf::RepeatedField<T> &field) {
  return {field.begin(), field.end()};
}
inline std::vector<std::string>
toVector(const google::protobuf::RepeatedPtrField<std::string> &field) {
  return {field.begin(), field.end()};
}

// The enums of support/ and those of plan.proto have the same numbers.
inline DType toDType(plan::DType dtype) { return static_cast<DType>(dtype); }
inline plan::DType toPlan(DType dtype) { return static_cast<plan::DType>(dtype); }
inline CollectiveKind kindOf(const plan::Collective &collective) {
  return static_cast<CollectiveKind>(collective.kind());
}
inline ReductionKind reductionOf(const plan::Collective &collective) {
  return static_cast<ReductionKind>(collective.reduction());
}
inline BufferKind kindOf(const plan::Buffer &buffer) {
  return static_cast<BufferKind>(buffer.kind());
}
inline TransferKind kindOf(const plan::Transfer &transfer) {
  return static_cast<TransferKind>(transfer.kind());
}
/// None of a task that is outside the pipeline.
inline bool isOnHost(const plan::Buffer &buffer) { return buffer.memory() == plan::Buffer::HOST; }

/// For people: "the host".
const char *describe(Lane lane);
/// The lane of an instruction with valid operands: that of a kernel by the memory of its buffers.
Lane laneOf(const plan::Program &program, const plan::Instruction &instruction);
inline bool isAsync(const plan::Instruction &instruction) {
  return instruction.has_kernel() ? instruction.kernel().async() : instruction.collective().async();
}
/// Whether some buffer of the program lies in the memory of the host.
bool usesHost(const plan::Program &program);

inline std::optional<StagePass> passOf(const plan::Task &task) {
  return task.kind() == plan::Task::OTHER ? std::nullopt
                                          : std::optional(static_cast<StagePass>(task.kind()));
}
inline plan::Collective::Kind toPlan(CollectiveKind kind) {
  return static_cast<plan::Collective::Kind>(kind);
}
inline plan::Collective::Reduction toPlan(ReductionKind kind) {
  return static_cast<plan::Collective::Reduction>(kind);
}
inline plan::Buffer::Kind toPlan(BufferKind kind) { return static_cast<plan::Buffer::Kind>(kind); }
inline plan::Transfer::Kind toPlan(TransferKind kind) {
  return static_cast<plan::Transfer::Kind>(kind);
}
inline plan::Task::Kind toPlan(StagePass pass) { return static_cast<plan::Task::Kind>(pass); }

// The functions below expect a plan that findPlanError() accepts.

/// The local type of a buffer.
TensorType typeOf(const plan::Buffer &buffer);
/// The global type of a state as the program sees it, and as a weights file holds it.
TensorType typeOf(const plan::State &state);
TensorType fileTypeOf(const plan::State &state);
/// The global types of an input and of an output.
TensorType typeOf(const plan::Input &input);
TensorType typeOf(const plan::Output &output);

/// The buffer that first used the bytes of a buffer: itself, or the one that it, or the value that
/// it views, reuses.
uint32_t storageOf(const plan::Program &program, uint32_t buffer);

/// The mesh of a plan.
Mesh meshOf(const plan::Plan &plan);

// A state or an input may be in several programs; its parts there have one name and one type. The
// lists have each name once, as the first program that has it states it, in the programs' order.
std::vector<const plan::State *> distinctStates(const plan::Plan &plan);
std::vector<const plan::Input *> distinctInputs(const plan::Plan &plan);
std::vector<const plan::Output *> distinctOutputs(const plan::Plan &plan);

/// The plan's entry point of that name, the plan itself for the empty one; null if it has none.
const plan::Plan *findEntryPoint(const plan::Plan &plan, const std::string &name);

/// The bytes that one device of a group of `members` sends for one tensor of a collective; see
/// CollectiveSpec::ringBytes(). In a permute every device counts as sending its whole shard, also
/// one that keeps it. The plan is one that findPlanError() accepts.
uint64_t sentBytes(const plan::Program &program, const plan::Collective &collective,
                   const plan::CollectiveTensor &tensor, int64_t members);

/// Whether the plan was compiled to generate tokens.
bool generates(const plan::Plan &plan);
/// Whether its step updates parameters.
bool trains(const plan::Plan &plan);
/// Whether a step may take several batches. The loop over microbatches runs for each of them.
bool mayRepeatLoop(const plan::Plan &plan);

/// Whether a state is a part of the step state.
bool isStepState(plan::State::Kind kind);
/// The first state of that kind; null if there is none. Programs have one at most.
const plan::State *findState(const plan::Plan &plan, plan::State::Kind kind);

/// The parameter whose master weights the state holds; null for any other state.
const plan::State *masteredParameter(const plan::Program &program, const plan::State &state);

/// The axes that split each dimension.
std::vector<std::vector<std::string>> axesByDim(const plan::Sharding &sharding);

/// Names an instruction in messages: "kernel einsum", "all_reduce", "wait", "start_transfer 2",
/// "empty".
std::string describeKind(const plan::Instruction &instruction);

/// `task "forward", instruction 12 (kernel einsum, from h.3.attn (model.mlir:12:8))`.
std::string describeInstruction(const plan::Plan &plan, const plan::Task &task, int index);

} // namespace dtc

#endif // DTC_PLAN_PLANTYPES_H
