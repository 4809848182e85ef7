//===- Replicas.cpp - Replicas whose states differ ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/Replicas.h"

#include "plan/OuterFragments.h"
#include "plan/PlanTypes.h"
#include "support/OuterEntries.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>
#include <vector>

namespace dtc {

namespace {

/// Which values of an entry point may differ along an axis. A buffer is one value with one writer,
/// so that the order of instructions does not matter: what differs spreads from value to value.
class DifferingValues {
public:
  /// Marks the values that differ although all states are alike.
  DifferingValues(const plan::Plan &plan, const std::string &axis);

  /// Marks the values that differ when this state does before the entry point runs.
  void addState(const std::string &name) {
    if (alike.count(name))
      return;
    auto [begin, end] = statesByName.equal_range(name);
    for (auto it = begin; it != end; ++it)
      mark(it->second);
  }
  /// These states are alike before the entry point runs, whatever others make of them.
  void keepAlike(std::set<std::string> names) { alike = std::move(names); }
  bool of(int program, uint32_t buffer) const { return differs[firstOf[size_t(program)] + buffer]; }
  bool names(const plan::Sharding &sharding) const {
    return std::ranges::any_of(sharding.dims(), [&](const plan::DimSharding &dim) {
      return std::ranges::find(dim.axes(), axis) != dim.axes().end();
    });
  }
  /// The names of states whose copies differ after the entry point, each at least once since the
  /// last call.
  std::vector<std::string> takeUpdated() { return std::exchange(updated, {}); }

private:
  void addStates(const plan::Program &program, size_t first);
  void addInstruction(const plan::Instruction &instruction, size_t first);
  void addTransfer(const plan::Transfer &transfer, size_t first);
  bool dependsOnAxis(const plan::KernelCall &call) const;
  void connect(size_t from, size_t to) { readers[from].push_back(to); }
  void mark(size_t value);

  const std::string &axis;
  std::vector<size_t> firstOf; ///< the value of buffer 0, by program
  std::vector<std::vector<size_t>> readers;
  std::vector<bool> differs, startsDiffering;
  std::map<std::pair<uint32_t, int>, size_t> messages; ///< by channel and place in the message
  std::multimap<std::string, size_t> statesByName;
  std::multimap<size_t, std::string> updatesByValue;
  std::vector<std::string> updated;
  std::set<std::string> alike;
};

} // namespace

DifferingValues::DifferingValues(const plan::Plan &plan, const std::string &axis) : axis(axis) {
  size_t count = 0;
  for (const plan::Program &program : plan.programs()) {
    firstOf.push_back(count);
    count += size_t(program.buffers_size());
  }
  readers.resize(count);
  startsDiffering.resize(count);
  for (int number = 0; number < plan.programs_size(); ++number) {
    const plan::Program &program = plan.programs(number);
    size_t first = firstOf[size_t(number)];
    addStates(program, first);
    for (const plan::Task &task : program.tasks())
      for (const plan::Instruction &instruction : task.instructions())
        addInstruction(instruction, first);
    // A view has the bytes of its buffer.
    for (int index = 0; index < program.buffers_size(); ++index)
      if (const plan::Buffer &buffer = program.buffers(index); buffer.has_view_of()) {
        connect(first + size_t(index), first + buffer.view_of());
        connect(first + buffer.view_of(), first + size_t(index));
      }
    for (const plan::Transfer &transfer : program.transfers())
      addTransfer(transfer, first);
  }
  differs.resize(readers.size());
  startsDiffering.resize(readers.size());
  for (size_t value = 0; value < readers.size(); ++value)
    if (startsDiffering[value])
      mark(value);
}

void DifferingValues::addStates(const plan::Program &program, size_t first) {
  for (const plan::State &state : program.states()) {
    statesByName.emplace(state.name(), first + state.buffer());
    if (names(state.sharding())) // devices have parts of it, and no copies that could differ
      startsDiffering[first + state.buffer()] = true;
    else if (state.has_update())
      updatesByValue.emplace(first + state.update(), state.name());
  }
  for (const plan::Input &input : program.inputs())
    if (names(input.sharding()))
      startsDiffering[first + input.buffer()] = true;
}

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

void DifferingValues::addInstruction(const plan::Instruction &instruction, size_t first) {
  if (instruction.has_kernel()) {
    const plan::KernelCall &call = instruction.kernel();
    bool depends = dependsOnAxis(call);
    for (uint32_t output : call.outputs()) {
      if (depends)
        startsDiffering[first + output] = true;
      for (uint32_t input : call.inputs())
        connect(first + input, first + output);
    }
  } else if (instruction.has_collective()) {
    const plan::Collective &collective = instruction.collective();
    bool isOver = std::ranges::find(collective.axes(), axis) != collective.axes().end();
    bool joins = collective.kind() == plan::Collective::ALL_REDUCE ||
                 collective.kind() == plan::Collective::ALL_GATHER;
    for (const plan::CollectiveTensor &tensor : collective.tensors()) {
      if (!isOver)
        connect(first + tensor.input(), first + tensor.output());
      else if (!joins)
        startsDiffering[first + tensor.output()] = true;
    }
  }
}

void DifferingValues::addTransfer(const plan::Transfer &transfer, size_t first) {
  for (int index = 0; index < transfer.buffers_size(); ++index) {
    auto [it, isNew] = messages.try_emplace({transfer.channel(), index}, readers.size());
    if (isNew)
      readers.emplace_back();
    size_t buffer = first + transfer.buffers(index);
    if (transfer.kind() == plan::Transfer::SEND)
      connect(buffer, it->second);
    else if (transfer.kind() == plan::Transfer::RECEIVE)
      connect(it->second, buffer);
  }
}

void DifferingValues::mark(size_t value) {
  if (differs[value])
    return;
  differs[value] = true;
  for (std::vector<size_t> next = {value}; !next.empty();) {
    size_t from = next.back();
    next.pop_back();
    auto [begin, end] = updatesByValue.equal_range(from);
    for (auto it = begin; it != end; ++it)
      updated.push_back(it->second);
    for (size_t to : readers[from])
      if (!differs[to]) {
        differs[to] = true;
        next.push_back(to);
      }
  }
}

/// The axes over which the outer step reduces alone, in full or, by an all-to-all of what each
/// device adds up, in a compressed form.
static std::set<std::string> outerAxesOf(const std::vector<const plan::Plan *> &reductions) {
  std::set<std::string> axes;
  for (const plan::Plan *outer : reductions)
    for (const plan::Program &program : outer->programs())
      for (const plan::Task &task : program.tasks())
        for (const plan::Instruction &instruction : task.instructions())
          if (const plan::Collective &collective = instruction.collective();
              (collective.kind() == plan::Collective::ALL_REDUCE ||
               collective.kind() == plan::Collective::ALL_TO_ALL) &&
              collective.axes_size() == 1)
            axes.insert(collective.axes(0));
  return axes;
}

/// The states that an entry point gives values that are alike in all replicas.
static std::set<std::string> statesMadeAlike(const plan::Plan &entry, const std::string &axis) {
  DifferingValues values(entry, axis);
  std::set<std::string> alike;
  for (const plan::Program &program : entry.programs())
    for (const plan::State &state : program.states()) {
      values.addState(state.name());
      if (state.has_update() && !values.names(state.sharding()))
        alike.insert(state.name());
    }
  for (const std::string &name : values.takeUpdated())
    alike.erase(name);
  return alike;
}

/// What may differ in an entry point of the plan. What applies a fragment comes after what sends
/// it.
static DifferingValues valuesOf(const plan::Plan &plan, const plan::Plan &entry,
                                const std::string &axis) {
  DifferingValues values(entry, axis);
  if (auto fragments = outerFragmentsOf(plan))
    for (const OuterFragments::Entries &each : fragments->entries)
      if (each.apply == &entry)
        values.keepAlike(statesMadeAlike(*each.send, axis));
  return values;
}

/// What may differ in an entry point between these replicas.
static DifferingValues valuesOf(const plan::Plan &plan, const plan::Plan &entry,
                                const Replicas &replicas) {
  DifferingValues values = valuesOf(plan, entry, replicas.axis);
  if (entry.entry() != kOuterBeginEntry)
    for (const std::string &name : replicas.states)
      values.addState(name);
  return values;
}

/// The names of the entry point's outputs that differ and that the axis does not split.
static std::set<std::string> differingOutputs(const plan::Plan &plan, const plan::Plan &entry,
                                              const Replicas &replicas) {
  DifferingValues values = valuesOf(plan, entry, replicas);
  std::set<std::string> names;
  for (int program = 0; program < entry.programs_size(); ++program)
    for (const plan::Output &output : entry.programs(program).outputs())
      if (values.of(program, output.buffer()) && !values.names(output.sharding()))
        names.insert(output.name());
  return names;
}

std::optional<Replicas> replicasOf(const plan::Plan &plan) {
  std::vector<const plan::Plan *> reductions = outerReductionsOf(plan);
  if (reductions.empty())
    return std::nullopt;
  Replicas replicas;
  if (std::set<std::string> axes = outerAxesOf(reductions); axes.size() == 1)
    replicas.axis = *axes.begin();
  for (const plan::Axis &axis : plan.axes())
    if (axis.name() == replicas.axis)
      replicas.count = axis.size();
  // States that differ after one step may make others differ in the next one.
  std::vector<DifferingValues> flows = {{plan, replicas.axis}};
  std::vector<std::string> found;
  for (const plan::Plan &entry : plan.entry_points()) {
    DifferingValues flow = valuesOf(plan, entry, replicas.axis);
    if (entry.entry() != kOuterBeginEntry)
      flows.push_back(std::move(flow));
    else // it runs where replicas are alike
      found = flow.takeUpdated();
  }
  for (DifferingValues &flow : flows)
    for (std::string &name : flow.takeUpdated())
      found.push_back(std::move(name));
  while (!found.empty()) {
    std::string name = std::move(found.back());
    found.pop_back();
    if (!replicas.states.insert(name).second)
      continue;
    for (DifferingValues &flow : flows) {
      flow.addState(name);
      for (std::string &next : flow.takeUpdated())
        found.push_back(std::move(next));
    }
  }
  replicas.outputs = differingOutputs(plan, plan, replicas);
  return replicas;
}

/// "" for the step, otherwise which entry point it is, for messages.
static std::string describe(const plan::Plan &entry) {
  return entry.entry().empty() ? "" : fmt::format("entry point \"{}\": ", entry.entry());
}

/// Checks the outputs of an entry point.
static MaybeError checkOutputs(const plan::Plan &plan, const plan::Plan &entry,
                               const Replicas &replicas) {
  std::set<std::string> names = differingOutputs(plan, entry, replicas);
  if (names.empty())
    return std::nullopt;
  return Error{fmt::format("{}output \"{}\" differs between the replicas along \"{}\"; expected "
                           "one value for all, reduced over the axis",
                           describe(entry), *names.begin(), replicas.axis)};
}

/// Checks that replicas send each other nothing in an entry point.
static MaybeError checkSendsNothing(const plan::Plan &entry, const Replicas &replicas) {
  for (const plan::Program &program : entry.programs())
    for (const plan::Task &task : program.tasks())
      for (const plan::Instruction &instruction : task.instructions()) {
        const plan::Collective &collective = instruction.collective();
        if (std::ranges::find(collective.axes(), replicas.axis) != collective.axes().end())
          return Error{fmt::format(
              "{}task \"{}\" has a collective over \"{}\" ({}), along which replicas train on "
              "their own; expected those of outer steps alone",
              describe(entry), task.name(), replicas.axis,
              plan::Collective::Kind_Name(collective.kind()))};
      }
  return std::nullopt;
}

/// Checks that all replicas have the same step state after each of these entry points.
static MaybeError checkStepState(const std::vector<const plan::Plan *> &entries,
                                 const Replicas &replicas) {
  for (const plan::Plan *entry : entries)
    for (const plan::Program &program : entry->programs())
      for (const plan::State &state : program.states())
        if (isStepState(state.kind()) && replicas.differ(state))
          return Error{fmt::format("the step state \"{}\" differs between the replicas along "
                                   "\"{}\"; expected one value for all",
                                   state.name(), replicas.axis)};
  return std::nullopt;
}

/// Checks that all replicas have the same parameters after the outer step, and states of its own.
/// Those of fragments leave parameters that differ: of other fragments, and blended ones.
static MaybeError checkOuterStep(const plan::Plan &plan, const plan::Plan &outer,
                                 const Replicas &replicas) {
  const bool hasAll = outer.entry() == kOuterStepEntry;
  DifferingValues values = valuesOf(plan, outer, replicas);
  for (int program = 0; program < outer.programs_size(); ++program)
    for (const plan::State &state : outer.programs(program).states()) {
      bool isWeights =
          state.kind() == plan::State::PARAMETER || state.kind() == plan::State::MASTER_WEIGHTS;
      // A state with a part for each replica, such as the losses of compression, is one of all.
      if ((isWeights ? !hasAll : !state.has_update()) || values.names(state.sharding()))
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
  Expected<OuterFragments> fragments = outerFragmentsOf(plan);
  if (!fragments)
    return fragments.error();
  std::optional<Replicas> replicas = replicasOf(plan);
  if (!replicas)
    return std::nullopt;
  if (MaybeError error = checkSentBeside(plan, *fragments))
    return error;
  std::vector<const plan::Plan *> steps = outerReductionsOf(plan);
  const std::string &first = steps.front()->entry();
  if (std::set<std::string> axes = outerAxesOf(steps); axes.size() > 1)
    return Error{fmt::format("entry point \"{}\" reduces over several axes, {}; expected the "
                             "outer axis alone",
                             first, fmt::join(axes, " and "))};
  if (replicas->axis.empty() || replicas->count < 2)
    return Error{fmt::format("entry point \"{}\" reduces nothing over an axis of at least 2 "
                             "devices; expected the mean of parameters over the outer axis",
                             first)};
  const bool areClients = findEntryPoint(plan, kOuterCheckEntry);
  if (MaybeError error =
          areClients ? checkOutputs(plan, plan, *replicas) : checkSendsNothing(plan, *replicas))
    return error;
  for (const OuterFragments::Entries &each : fragments->entries)
    for (const plan::Plan *entry : {each.take, each.apply})
      if (MaybeError error = checkSendsNothing(*entry, *replicas))
        return error;
  for (const plan::Plan &entry : plan.entry_points())
    if (MaybeError error = checkOutputs(plan, entry, *replicas))
      return error;
  for (const OuterFragments::Entries &each : fragments->entries)
    steps.push_back(each.apply);
  std::vector<const plan::Plan *> all = steps;
  all.push_back(&plan);
  if (MaybeError error = areClients ? checkStepState(all, *replicas) : std::nullopt)
    return error;
  for (const plan::Plan *outer : steps)
    if (MaybeError error = checkOuterStep(plan, *outer, *replicas))
      return error->inContext(fmt::format("entry point \"{}\"", outer->entry()));
  return std::nullopt;
}

} // namespace dtc
