//===- Replicas.cpp - Replicas whose states differ ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/Replicas.h"

#include "plan/PlanTypes.h"
#include "support/OuterEntries.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <vector>

namespace dtc {

namespace {

/// Which values of an entry point may differ along an axis. A buffer is one value with one writer,
/// so that the order of instructions does not matter.
class DifferingValues {
public:
  /// `states` are the names of those that differ before the entry point runs.
  DifferingValues(const plan::Plan &plan, const std::string &axis,
                  const std::set<std::string> &states)
      : plan(plan), axis(axis) {
    for (const plan::Program &program : plan.programs()) {
      std::vector<bool> &own = differs.emplace_back(program.buffers_size(), false);
      for (const plan::State &state : program.states())
        own[state.buffer()] = states.count(state.name()) > 0 || names(state.sharding());
      for (const plan::Input &input : program.inputs())
        own[input.buffer()] = names(input.sharding());
    }
    while (pass())
      continue;
  }

  bool of(int program, uint32_t buffer) const { return differs[size_t(program)][buffer]; }

  bool names(const plan::Sharding &sharding) const {
    return std::ranges::any_of(sharding.dims(), [&](const plan::DimSharding &dim) {
      return std::ranges::find(dim.axes(), axis) != dim.axes().end();
    });
  }

private:
  /// Whether something new was found to differ.
  bool pass();
  bool spread(int program);
  bool spread(const plan::Instruction &instruction, std::vector<bool> &own);
  bool dependsOnAxis(const plan::KernelCall &call) const;
  bool mark(std::vector<bool> &own, uint32_t buffer) {
    bool isNew = !own[buffer];
    own[buffer] = true;
    return isNew;
  }

  const plan::Plan &plan;
  const std::string &axis;
  std::vector<std::vector<bool>> differs;        // by program and buffer
  std::map<uint32_t, std::vector<bool>> carried; // by channel and place in the message
};

} // namespace

/// Whether the kernel reads the device's coordinate on the axis, as slices and masks do.
bool DifferingValues::dependsOnAxis(const plan::KernelCall &call) const {
  auto isNamed = [&](const std::string &list) {
    // Shardings of random masks are lists with commas.
    return ("," + list + ",").find("," + axis + ",") != std::string::npos;
  };
  return std::ranges::any_of(call.attributes(), [&](const auto &entry) {
    const plan::Attribute &attribute = entry.second;
    return attribute.has_strings() && std::ranges::any_of(attribute.strings().values(), isNamed);
  });
}

bool DifferingValues::spread(const plan::Instruction &instruction, std::vector<bool> &own) {
  bool isNew = false;
  if (instruction.has_kernel()) {
    const plan::KernelCall &call = instruction.kernel();
    if (dependsOnAxis(call) ||
        std::ranges::any_of(call.inputs(), [&](uint32_t input) { return own[input]; }))
      for (uint32_t output : call.outputs())
        isNew |= mark(own, output);
  } else if (instruction.has_collective()) {
    const plan::Collective &collective = instruction.collective();
    bool isOver = std::ranges::find(collective.axes(), axis) != collective.axes().end();
    bool joins = collective.kind() == plan::Collective::ALL_REDUCE ||
                 collective.kind() == plan::Collective::ALL_GATHER;
    for (const plan::CollectiveTensor &tensor : collective.tensors())
      if (isOver ? !joins : own[tensor.input()])
        isNew |= mark(own, tensor.output());
  }
  return isNew;
}

bool DifferingValues::spread(int number) {
  const plan::Program &program = plan.programs(number);
  std::vector<bool> &own = differs[size_t(number)];
  bool isNew = false;
  for (const plan::Task &task : program.tasks())
    for (const plan::Instruction &instruction : task.instructions())
      isNew |= spread(instruction, own);
  // A view has the bytes of its buffer.
  for (int index = 0; index < program.buffers_size(); ++index)
    if (const plan::Buffer &buffer = program.buffers(index); buffer.has_view_of())
      if (own[size_t(index)] != own[buffer.view_of()]) {
        own[size_t(index)] = own[buffer.view_of()] = true;
        isNew = true;
      }
  for (const plan::Transfer &transfer : program.transfers()) {
    std::vector<bool> &message = carried[transfer.channel()];
    message.resize(std::max(message.size(), size_t(transfer.buffers_size())));
    for (int index = 0; index < transfer.buffers_size(); ++index) {
      uint32_t buffer = transfer.buffers(index);
      if (transfer.kind() == plan::Transfer::SEND && own[buffer] && !message[size_t(index)])
        message[size_t(index)] = isNew = true;
      if (transfer.kind() == plan::Transfer::RECEIVE && message[size_t(index)])
        isNew |= mark(own, buffer);
    }
  }
  return isNew;
}

bool DifferingValues::pass() {
  bool isNew = false;
  for (int program = 0; program < plan.programs_size(); ++program)
    isNew |= spread(program);
  return isNew;
}

/// The axis over which the outer step reduces; empty if there is none.
static std::string outerAxisOf(const plan::Plan &outer) {
  for (const plan::Program &program : outer.programs())
    for (const plan::Task &task : program.tasks())
      for (const plan::Instruction &instruction : task.instructions())
        if (const plan::Collective &collective = instruction.collective();
            collective.kind() == plan::Collective::ALL_REDUCE && collective.axes_size() == 1)
          return collective.axes(0);
  return "";
}

std::optional<Replicas> replicasOf(const plan::Plan &plan) {
  const plan::Plan *outer = findEntryPoint(plan, kOuterStepEntry);
  if (!outer)
    return std::nullopt;
  Replicas replicas{.axis = outerAxisOf(*outer)};
  for (const plan::Axis &axis : plan.axes())
    if (axis.name() == replicas.axis)
      replicas.count = axis.size();
  // States that differ after one step may make others differ in the next one.
  for (size_t known = 1; known != replicas.states.size();) {
    known = replicas.states.size();
    for (const plan::Plan *entry : {&plan, outer}) {
      DifferingValues values(*entry, replicas.axis, replicas.states);
      for (int program = 0; program < entry->programs_size(); ++program)
        for (const plan::State &state : entry->programs(program).states())
          if (state.has_update() && values.of(program, state.update()))
            replicas.states.insert(state.name());
    }
  }
  return replicas;
}

/// Checks the outputs of an entry point.
static MaybeError checkOutputs(const plan::Plan &entry, const Replicas &replicas) {
  DifferingValues values(entry, replicas.axis, replicas.states);
  for (int program = 0; program < entry.programs_size(); ++program)
    for (const plan::Output &output : entry.programs(program).outputs())
      if (values.of(program, output.buffer()) && !values.names(output.sharding()))
        return Error{fmt::format(
            "{}output \"{}\" differs between the replicas along \"{}\"; expected one value for "
            "all, reduced over the axis",
            entry.entry().empty() ? "" : fmt::format("entry point \"{}\": ", entry.entry()),
            output.name(), replicas.axis)};
  return std::nullopt;
}

/// Checks that all replicas have the same parameters after the outer step, and states of its own.
static MaybeError checkOuterStep(const plan::Plan &outer, const Replicas &replicas) {
  DifferingValues values(outer, replicas.axis, replicas.states);
  for (int program = 0; program < outer.programs_size(); ++program)
    for (const plan::State &state : outer.programs(program).states()) {
      bool isWeights =
          state.kind() == plan::State::PARAMETER || state.kind() == plan::State::MASTER_WEIGHTS;
      if (!isWeights && !state.has_update())
        continue;
      uint32_t end = state.has_update() ? state.update() : state.buffer();
      if (values.of(program, end))
        return Error{fmt::format(
            "state \"{}\" differs between the replicas along \"{}\" after the outer step; "
            "expected one value for all, reduced over the axis",
            state.name(), replicas.axis)};
    }
  return std::nullopt;
}

MaybeError checkReplicas(const plan::Plan &plan) {
  std::optional<Replicas> replicas = replicasOf(plan);
  if (!replicas)
    return std::nullopt;
  const plan::Plan &outer = *findEntryPoint(plan, kOuterStepEntry);
  if (replicas->axis.empty() || replicas->count < 2)
    return Error{"entry point \"outer\" reduces nothing over an axis of at least 2 devices; "
                 "expected the mean of parameters over the outer axis"};
  if (MaybeError error = checkOutputs(plan, *replicas))
    return error;
  for (const plan::Plan &entry : plan.entry_points())
    if (MaybeError error = checkOutputs(entry, *replicas))
      return error;
  for (const plan::Plan *entry : {&plan, &outer})
    for (const plan::Program &program : entry->programs())
      for (const plan::State &state : program.states())
        if (isStepState(state.kind()) && replicas->differ(state))
          return Error{fmt::format("the step state \"{}\" differs between the replicas along "
                                   "\"{}\"; expected one value for all",
                                   state.name(), replicas->axis)};
  if (MaybeError error = checkOuterStep(outer, *replicas))
    return error->inContext(fmt::format("entry point \"{}\"", kOuterStepEntry));
  return std::nullopt;
}

} // namespace dtc
