//===- PrepareInstructions.cpp - What comes before the first step ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceInstructions.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

DeviceInstructions::DeviceInstructions(const PreparedPlan &plan, int64_t index,
                                       const DeviceResources &resources,
                                       const DeviceOptions &options, const StepTimes &stepTimes)
    : plan(plan), program(plan.programOf(index)), deviceIndex(index), resources(resources),
      stepTimes(stepTimes), compute(&resources.compute()), lane(resources.lane()),
      arena(resources.arena().data()), batches(options.batches), injections(options.injections) {
  std::vector<int64_t> coordinates = plan.mesh.coordinates(index);
  for (size_t i = 0; i < plan.mesh.axes().size(); ++i) {
    const MeshAxis &axis = plan.mesh.axes()[i];
    axes.push_back({axis.name, axis.size, coordinates[i], axis.temporal});
  }
  for (AxisCoordinate &axis : axes)
    if (axis.temporal)
      temporal = &axis;
  for (const PreparedProgram::Operands &tensor : program.operands)
    operands.push_back({arena + tensor.input.offset, arena + tensor.output.offset});
  if (program.usesHost)
    hostLanes = std::make_unique<HostLanes>(program, resources, axes);
}

MaybeError DeviceInstructions::open(Fabric &fabric, const DeviceOptions &options) {
  if (MaybeError error = openNetwork(fabric, options))
    return error;
  if (MaybeError error = createEvents())
    return error;
  if (MaybeError error = stageInjections())
    return error;
  return createMarks(options.marks);
}

MaybeError DeviceInstructions::openNetwork(Fabric &fabric, const DeviceOptions &options) {
  auto opened = fabric.openCommunicator(deviceIndex, options.lane, resources.getDevice());
  if (!opened)
    return opened.error();
  communicator = std::move(*opened);
  branchesGraphs = !fabric.sharesGpus();
  if (options.graphs)
    graphs = std::make_unique<StepGraphs>(
        program, [this](size_t group) { return canCapture(group); }, batches);
  if (MaybeError error = openGroups())
    return error;
  auto network = fabric.openTransfers(deviceIndex, resources.getDevice());
  if (!network)
    return network.error();
  transfers = std::make_unique<DeviceTransfers>(plan, deviceIndex, arena, std::move(*network));
  return transfers->prepare();
}

/// Collectives are in no graph where waits are measured: they are seen only between stretches.
bool DeviceInstructions::canCapture(size_t group) const {
  if (!communicator->canBeCaptured() || stepTimes.measuresWaits())
    return false;
  const Mesh &mesh = plan.mesh;
  std::vector<int64_t> members = mesh.group(deviceIndex, plan.groups[group]);
  return std::all_of(members.begin(), members.end(), [&](int64_t member) {
    return mesh.programOf(member) == mesh.programOf(deviceIndex);
  });
}

MaybeError DeviceInstructions::openGroups() {
  for (const std::vector<std::string> &axes : plan.groups)
    for (bool isInGraphs : {false, true}) {
      Expected<Communicator::Group> group =
          isInGraphs ? communicator->openGroupInGraphs(axes) : communicator->openGroup(axes);
      if (!group)
        return group.error();
      (isInGraphs ? groupsInGraphs : groups).push_back(*group);
    }
  for (size_t i = 0; i < program.instructions.size(); ++i)
    if (const auto *collective = std::get_if<PreparedCollective>(&program.instructions[i]))
      if (MaybeError error = communicator->prepare(*compute, groupOf(i), collective->specs))
        return error;
  return std::nullopt;
}

MaybeError DeviceInstructions::createEvents() {
  for (size_t i = 0; i <= program.maxAsync; ++i) {
    Expected<std::unique_ptr<Event>> event = resources.getDevice().createEvent(/*timed=*/false);
    if (!event)
      return event.error();
    if (i < program.maxAsync)
      asyncDone.push_back(std::move(*event));
    else
      computeDone = std::move(*event);
  }
  if (!hostLanes)
    return std::nullopt;
  Expected<std::unique_ptr<Event>> event = resources.getDevice().createEvent(/*timed=*/false);
  if (!event)
    return event.error();
  hostDone = std::move(*event);
  return hostLanes->prepare(plan.threads);
}

/// Puts what is injected where the device can read it while the host goes on.
MaybeError DeviceInstructions::stageInjections() {
  if (injections.empty())
    return std::nullopt;
  auto staging =
      resources.getDevice().allocateStaging(injections.size() * sizeof(PreparedInjection::bytes));
  if (!staging)
    return staging.error();
  injected = std::move(*staging);
  for (size_t i = 0; i < injections.size(); ++i)
    std::memcpy(injected->data() + i * injections[i].bytes.size(), injections[i].bytes.data(),
                injections[i].bytes.size());
  return std::nullopt;
}

MaybeError DeviceInstructions::createMarks(bool wanted) {
  if (!wanted || resources.getDevice().isHostMemory() ||
      std::ranges::none_of(program.instructions, [](const PreparedInstruction &each) {
        return isCollective(each) || isTransfer(each);
      }))
    return std::nullopt;
  auto created =
      CommunicationMarks::create(program.instructions.size(), resources.getDevice(), *compute);
  if (!created)
    return created.error();
  marks = std::move(*created);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Preparation
//===----------------------------------------------------------------------===//

MaybeError DeviceInstructions::prepareKernels() {
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const auto *call = std::get_if<PreparedKernel>(&program.instructions[i]);
    if (!call || !call->kernel)
      continue;
    progress.at(/*entry=*/0, i);
    placeKernel(*call);
    // The work of a kernel may differ for the first microbatch: a sum begins.
    for (bool isLast : {false, true}) {
      if (isLast && (!temporal || call->microbatchUse == MicrobatchUse::None))
        break;
      if (temporal) {
        temporal->coordinate = isLast ? temporal->size - 1 : 0;
        temporal->repetition = isLast ? batches - 1 : 0;
      }
      if (MaybeError error = compute->prepare(*call->kernel, arguments()))
        return error;
    }
  }
  MaybeError error = compute->finish();
  progress.finish();
  return error;
}

MaybeError DeviceInstructions::rehearseCollectives(size_t group) {
  if (!communicator->canBeCaptured())
    return std::nullopt;
  std::set<uint64_t> known;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const auto *collective = std::get_if<PreparedCollective>(&program.instructions[i]);
    if (!collective || collective->group != group || collective->specs.empty() ||
        (graphs && graphs->holds(i)) || !known.insert(fingerprintOf(collective->specs)).second)
      continue;
    Queue &queue = collective->asyncIndex ? *lane : *compute;
    progress.at(/*entry=*/0, i);
    flight.begin(/*step=*/0, /*entry=*/0, i);
    if (MaybeError error = enqueueCollective(queue, i))
      return error;
    if (MaybeError error = queue.finish())
      return error;
    flight.end();
  }
  communicator->forgetSent();
  progress.finish();
  if (!marks)
    return std::nullopt;
  MaybeError error = marks->clear(*compute);
  return error ? error : compute->finish();
}

MaybeError DeviceInstructions::captureGraphs() {
  if (!graphs)
    return std::nullopt;
  for (StepGraphs::Run &run : graphs->allRuns()) {
    microbatch = run.microbatch;
    if (temporal) {
      temporal->coordinate = run.microbatch;
      temporal->repetition = run.repetition;
    }
    progress.at(run.entry, run.stretch->begin);
    if (MaybeError error = capture(run))
      return error;
  }
  communicator->forgetSent();
  progress.finish();
  return compute->finish();
}

MaybeError DeviceInstructions::capture(StepGraphs::Run &run) {
  lastOnLane = nullptr;
  if (MaybeError error = compute->beginCapture())
    return error;
  Queue *const ownLane = std::exchange(lane, branchesGraphs ? lane : compute);
  MaybeError error;
  for (size_t i = run.stretch->begin; i < run.stretch->end && !error; ++i) {
    if (!runsNow(i))
      continue;
    const auto *kernel = std::get_if<PreparedKernel>(&program.instructions[i]);
    error = kernel ? runKernel(i, *kernel) : communicate(i);
  }
  Expected<std::unique_ptr<Graph>> graph = compute->endCapture();
  lane = ownLane;
  lastOnLane = nullptr;
  if (error || !graph)
    return error ? *error : graph.error();
  run.graph = std::move(*graph);
  return std::nullopt;
}

} // namespace dtc::runtime
