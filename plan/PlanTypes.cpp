//===- PlanTypes.cpp - From Protobuf to the runtime's types ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"

#include "support/Collective.h"

#include <fmt/format.h>
#include <set>

namespace dtc {

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
  spec.kind = static_cast<CollectiveKind>(collective.kind());
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

bool isStepState(plan::State::Kind kind) { return kind >= plan::State::APPLIED_STEPS; }

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

const char *name(plan::Collective::Kind kind) {
  switch (kind) {
  case plan::Collective::ALL_REDUCE:
    return "all_reduce";
  case plan::Collective::ALL_GATHER:
    return "all_gather";
  case plan::Collective::REDUCE_SCATTER:
    return "reduce_scatter";
  case plan::Collective::ALL_TO_ALL:
    return "all_to_all";
  case plan::Collective::PERMUTE:
    return "permute";
  default:
    return "collective";
  }
}

std::string describeKind(const plan::Instruction &instruction) {
  if (instruction.has_kernel())
    return "kernel " + instruction.kernel().kernel();
  if (instruction.has_collective())
    return name(instruction.collective().kind());
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
