//===- PlanTypes.cpp - From Protobuf to the runtime's types ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"

#include "plan/StepStates.h"
#include "support/Collective.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <initializer_list>
#include <set>
#include <utility>

namespace dtc {

/// Whether the values of an enum of support/ have the numbers of those of plan.proto.
template <typename Enum, typename PlanEnum>
static constexpr bool haveNumbersOf(std::initializer_list<std::pair<Enum, PlanEnum>> values) {
  for (auto [value, inPlan] : values)
    if (static_cast<int>(value) != static_cast<int>(inPlan))
      return false;
  return true;
}
static_assert(haveNumbersOf<DType, plan::DType>({{DType::F32, plan::F32},
                                                 {DType::F64, plan::F64},
                                                 {DType::I32, plan::I32},
                                                 {DType::Bool, plan::BOOL},
                                                 {DType::BF16, plan::BF16},
                                                 {DType::F16, plan::F16},
                                                 {DType::F8E4M3, plan::F8E4M3},
                                                 {DType::F8E5M2, plan::F8E5M2}}));
static_assert(haveNumbersOf<CollectiveKind, plan::Collective::Kind>(
    {{CollectiveKind::AllReduce, plan::Collective::ALL_REDUCE},
     {CollectiveKind::AllGather, plan::Collective::ALL_GATHER},
     {CollectiveKind::ReduceScatter, plan::Collective::REDUCE_SCATTER},
     {CollectiveKind::AllToAll, plan::Collective::ALL_TO_ALL},
     {CollectiveKind::Permute, plan::Collective::PERMUTE}}));
static_assert(haveNumbersOf<ReductionKind, plan::Collective::Reduction>(
    {{ReductionKind::Sum, plan::Collective::SUM},
     {ReductionKind::Max, plan::Collective::MAX},
     {ReductionKind::Min, plan::Collective::MIN}}));
static_assert(haveNumbersOf<BufferKind, plan::Buffer::Kind>(
    {{BufferKind::Parameter, plan::Buffer::PARAMETER},
     {BufferKind::Gradient, plan::Buffer::GRADIENT},
     {BufferKind::OptimizerState, plan::Buffer::OPTIMIZER_STATE},
     {BufferKind::Activation, plan::Buffer::ACTIVATION},
     {BufferKind::Input, plan::Buffer::INPUT},
     {BufferKind::Constant, plan::Buffer::CONSTANT},
     {BufferKind::Output, plan::Buffer::OUTPUT},
     {BufferKind::MasterWeight, plan::Buffer::MASTER_WEIGHT},
     {BufferKind::Cache, plan::Buffer::CACHE}}));
static_assert(haveNumbersOf<TransferKind, plan::Transfer::Kind>(
    {{TransferKind::Send, plan::Transfer::SEND},
     {TransferKind::Receive, plan::Transfer::RECEIVE}}));
static_assert(
    haveNumbersOf<StagePass, plan::Task::Kind>({{StagePass::Forward, plan::Task::FORWARD},
                                                {StagePass::Backward, plan::Task::BACKWARD},
                                                {StagePass::Weight, plan::Task::WEIGHT}}));

TensorType typeOf(const plan::Buffer &buffer) {
  return {toDType(buffer.dtype()), toVector(buffer.shape())};
}

TensorType typeOf(const plan::State &state) {
  return {toDType(state.dtype()), toVector(state.shape())};
}

TensorType fileTypeOf(const plan::State &state) {
  return {toDType(state.dtype()), toVector(state.file_shape())};
}

TensorType typeOf(const plan::Input &input) {
  return {toDType(input.dtype()), toVector(input.shape())};
}

TensorType typeOf(const plan::Output &output) {
  return {toDType(output.dtype()), toVector(output.shape())};
}

uint32_t storageOf(const plan::Program &program, uint32_t buffer) {
  const plan::Buffer &at = program.buffers(static_cast<int>(buffer));
  const plan::Buffer &value =
      at.has_view_of() ? program.buffers(static_cast<int>(at.view_of())) : at;
  return value.has_reuses() ? value.reuses() : at.has_view_of() ? at.view_of() : buffer;
}

Mesh meshOf(const plan::Plan &plan) {
  std::vector<MeshAxis> axes;
  for (const plan::Axis &axis : plan.axes())
    axes.push_back({axis.name(), axis.size(), axis.temporal(), axis.pipeline()});
  return Mesh(std::move(axes));
}

/// `fieldOf` gives the bindings of a program.
template <typename T, typename FieldOf>
static std::vector<const T *> distinctBindings(const plan::Plan &plan, const FieldOf &fieldOf) {
  std::vector<const T *> result;
  std::set<std::string> names;
  for (const plan::Program &program : plan.programs())
    for (const T &binding : fieldOf(program))
      if (names.insert(binding.name()).second)
        result.push_back(&binding);
  return result;
}

std::vector<const plan::State *> distinctStates(const plan::Plan &plan) {
  return distinctBindings<plan::State>(
      plan, [](const plan::Program &program) -> auto & { return program.states(); });
}

std::vector<const plan::Input *> distinctInputs(const plan::Plan &plan) {
  return distinctBindings<plan::Input>(
      plan, [](const plan::Program &program) -> auto & { return program.inputs(); });
}

std::vector<const plan::Output *> distinctOutputs(const plan::Plan &plan) {
  return distinctBindings<plan::Output>(
      plan, [](const plan::Program &program) -> auto & { return program.outputs(); });
}

const plan::Plan *findEntryPoint(const plan::Plan &plan, const std::string &name) {
  if (name.empty())
    return &plan;
  for (const plan::Plan &entryPoint : plan.entry_points())
    if (entryPoint.entry() == name)
      return &entryPoint;
  return nullptr;
}

uint64_t sentBytes(const plan::Program &program, const plan::Collective &collective,
                   const plan::CollectiveTensor &tensor, int64_t members) {
  CollectiveSpec spec;
  spec.input = typeOf(program.buffers(static_cast<int>(tensor.input())));
  spec.kind = kindOf(collective);
  spec.members = members;
  return spec.ringBytes();
}

bool generates(const plan::Plan &plan) { return findEntryPoint(plan, "decode") != nullptr; }

bool trains(const plan::Plan &plan) {
  return std::any_of(
      plan.programs().begin(), plan.programs().end(), [](const plan::Program &program) {
        return std::any_of(program.inputs().begin(), program.inputs().end(), [](const auto &input) {
          return input.role() == plan::Input::LEARNING_RATES;
        });
      });
}

bool mayRepeatLoop(const plan::Plan &plan) {
  return trains(plan) && plan.one_batch().empty() &&
         std::none_of(plan.programs().begin(), plan.programs().end(),
                      [](const plan::Program &program) {
                        return program.loop_begin() == program.loop_end();
                      });
}

bool isStepState(plan::State::Kind kind) { return stepStateKindOf(kind) != nullptr; }

const plan::State *findState(const plan::Plan &plan, plan::State::Kind kind) {
  for (const plan::Program &program : plan.programs())
    for (const plan::State &state : program.states())
      if (state.kind() == kind)
        return &state;
  return nullptr;
}

const plan::State *masteredParameter(const plan::Program &program, const plan::State &state) {
  if (state.kind() != plan::State::MASTER_WEIGHTS)
    return nullptr;
  for (const plan::State &other : program.states())
    if (other.name() == state.parameter())
      return &other;
  return nullptr;
}

std::vector<std::vector<std::string>> axesByDim(const plan::Sharding &sharding) {
  std::vector<std::vector<std::string>> result;
  for (const plan::DimSharding &dim : sharding.dims())
    result.push_back(toVector(dim.axes()));
  return result;
}

const char *describe(Lane lane) {
  static constexpr std::array kNames = {"the compute queue", "the communication lane",
                                        "copies to the host", "the host", "copies to the device"};
  return kNames[static_cast<size_t>(lane)];
}

Lane laneOf(const plan::Program &program, const plan::Instruction &instruction) {
  if (!instruction.has_kernel())
    return instruction.collective().async() ? Lane::Communication : Lane::Compute;
  const plan::KernelCall &call = instruction.kernel();
  auto isHost = [&](uint32_t buffer) {
    return isOnHost(program.buffers(static_cast<int>(buffer)));
  };
  bool writesHost = call.outputs_size() > 0 && isHost(call.outputs(0));
  bool readsHost = call.inputs_size() > 0 ? isHost(call.inputs(0)) : writesHost;
  return laneOfKernel(readsHost, writesHost);
}

bool usesHost(const plan::Program &program) {
  return std::any_of(program.buffers().begin(), program.buffers().end(), isOnHost);
}

std::string describeKind(const plan::Instruction &instruction) {
  if (instruction.has_kernel())
    return "kernel " + instruction.kernel().kernel();
  if (instruction.has_collective()) {
    CollectiveKind kind = kindOf(instruction.collective());
    return isNamed(kind) ? name(kind) : "collective";
  }
  if (instruction.has_wait())
    return "wait";
  if (instruction.has_start_transfer())
    return fmt::format("start_transfer {}", instruction.start_transfer().transfer());
  if (instruction.has_finish_transfer())
    return fmt::format("finish_transfer {}", instruction.finish_transfer().transfer());
  return "empty";
}

std::string describeInstruction(const plan::Plan &plan, const plan::Task &task, int index) {
  const plan::Instruction &instruction = task.instructions(index);
  std::string text =
      fmt::format("task \"{}\", instruction {} ({}", task.name(), index, describeKind(instruction));
  auto location = static_cast<int64_t>(instruction.location());
  if (location > 0 && location < plan.locations_size())
    text += ", from " + plan.locations(static_cast<int>(location));
  return text + ")";
}

} // namespace dtc
