//===- DeviceExecutor.cpp - One device's part of a step -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceExecutor.h"

#include "plan/PlanTypes.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <set>
#include <thread>
#include <utility>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

DeviceExecutor::DeviceExecutor(std::shared_ptr<const PreparedPlan> plan, int64_t index,
                               const DeviceResources &resources, const DeviceOptions &options)
    : plan(std::move(plan)), program(this->plan->programOf(index)), deviceIndex(index),
      resources(resources), compute(&resources.compute()), lane(resources.lane()),
      arena(resources.arena().data()), batches(options.batches), delay(options.delay),
      copyTimeout(options.copyTimeout), onHang(options.onHang), injections(options.injections),
      layout(program, resources.getDevice(), options.batches),
      stepTimes(program, options.profile, options.traceSteps, options.batches,
                options.measureWaits) {
  const Mesh &mesh = this->plan->mesh;
  std::vector<int64_t> coordinates = mesh.coordinates(index);
  for (size_t i = 0; i < mesh.axes().size(); ++i) {
    const MeshAxis &axis = mesh.axes()[i];
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

Expected<std::unique_ptr<DeviceExecutor>>
DeviceExecutor::create(std::shared_ptr<const PreparedPlan> plan, int64_t index,
                       const DeviceResources &resources, Fabric &fabric,
                       const DeviceOptions &options) {
  std::unique_ptr<DeviceExecutor> device(
      new DeviceExecutor(std::move(plan), index, resources, options));
  if (MaybeError error = device->openNetwork(fabric, options))
    return *error;
  if (MaybeError error = device->createSteps(options.stepsInFlight))
    return *error;
  if (MaybeError error = device->createEvents())
    return *error;
  if (MaybeError error = device->stageInjections())
    return *error;
  if (MaybeError error = device->clearZero())
    return *error;
  if (MaybeError error = device->createMarks(options.marks))
    return *error;
  return device;
}

MaybeError DeviceExecutor::openNetwork(Fabric &fabric, const DeviceOptions &options) {
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
  transfers = std::make_unique<DeviceTransfers>(*plan, deviceIndex, arena, std::move(*network));
  return transfers->prepare();
}

/// Collectives are in no graph where waits are measured: they are seen only between stretches.
bool DeviceExecutor::canCapture(size_t group) const {
  if (!communicator->canBeCaptured() || stepTimes.measuresWaits())
    return false;
  const Mesh &mesh = plan->mesh;
  std::vector<int64_t> members = mesh.group(deviceIndex, plan->groups[group]);
  return std::all_of(members.begin(), members.end(), [&](int64_t member) {
    return mesh.programOf(member) == mesh.programOf(deviceIndex);
  });
}

MaybeError DeviceExecutor::openGroups() {
  for (const std::vector<std::string> &axes : plan->groups)
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

MaybeError DeviceExecutor::createSteps(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    auto step = DeviceStep::create(layout, resources.getDevice());
    if (!step)
      return step.error();
    steps.push_back(std::move(*step));
  }
  return std::nullopt;
}

MaybeError DeviceExecutor::createEvents() {
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
  return hostLanes->prepare(plan->threads);
}

/// Puts what is injected where the device can read it while the host goes on.
MaybeError DeviceExecutor::stageInjections() {
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

MaybeError DeviceExecutor::clearZero() {
  auto memory = resources.getDevice().allocate(1);
  if (!memory)
    return memory.error();
  zero = std::move(*memory);
  if (zero->isZeroed())
    return std::nullopt;
  if (MaybeError error = compute->clear(zero->data(), 1))
    return error;
  return compute->finish();
}

static bool isCollective(const PreparedInstruction &instruction) {
  return std::holds_alternative<PreparedCollective>(instruction);
}

static bool isTransfer(const PreparedInstruction &instruction) {
  return std::holds_alternative<PreparedStartTransfer>(instruction) ||
         std::holds_alternative<PreparedFinishTransfer>(instruction);
}

MaybeError DeviceExecutor::createMarks(bool wanted) {
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

MaybeError DeviceExecutor::prepareKernels() {
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

MaybeError DeviceExecutor::rehearseCollectives(size_t group) {
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

MaybeError DeviceExecutor::captureGraphs() {
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

MaybeError DeviceExecutor::capture(StepGraphs::Run &run) {
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

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::byte *DeviceExecutor::buffer(uint32_t index) const {
  const plan::Buffer &buffer = program.program->buffers(static_cast<int>(index));
  return (isOnHost(buffer) ? resources.hostArena().data() : arena) + buffer.offset();
}

bool DeviceExecutor::isInHostMemory(uint32_t index) const {
  return resources.getDevice().isHostMemory() ||
         isOnHost(program.program->buffers(static_cast<int>(index)));
}

std::byte *DeviceExecutor::inputPlace(size_t input, int64_t batch) const {
  std::byte *staging = newest().inputPlace(input, batch);
  return staging ? staging : buffer(program.program->inputs(static_cast<int>(input)).buffer());
}

MaybeError DeviceExecutor::enqueueInput(size_t input, int64_t batch) {
  const std::byte *staging = newest().inputPlace(input, batch);
  if (!staging)
    return std::nullopt;
  uint32_t index = program.program->inputs(static_cast<int>(input)).buffer();
  return compute->copy(buffer(index), staging,
                       typeOf(program.program->buffers(static_cast<int>(index))).numBytes());
}

CommunicatorBytes DeviceExecutor::sent() const {
  CommunicatorBytes bytes = communicator->sent();
  bytes.transfers += transfers->getNetwork().sentBytes();
  return bytes;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// Enqueues `work` on the queue, and if wanted takes the time from before it to after it.
template <typename Work>
MaybeError DeviceExecutor::measure(bool wanted, Queue &queue, StepMarks::What what, size_t index,
                                   const Work &work, const TransferResult *result) {
  if (!wanted)
    return work();
  Expected<StepMarks::Mark> begin = newest().marks.mark(queue);
  if (!begin)
    return begin.error();
  if (MaybeError error = work())
    return error;
  Expected<StepMarks::Mark> end = newest().marks.mark(queue);
  if (!end)
    return end.error();
  newest().marks.add(what, static_cast<uint32_t>(currentEntry), index, *begin, *end, result);
  return std::nullopt;
}

void DeviceExecutor::placeKernel(const PreparedKernel &call) {
  inputs.clear();
  outputs.clear();
  for (const ArenaRange &range : call.inputs)
    inputs.push_back(arena + range.offsetFor(microbatch));
  for (const ArenaRange &range : call.outputs)
    outputs.push_back(arena + range.offsetFor(microbatch));
}

MaybeError DeviceExecutor::runKernel(size_t index, const PreparedKernel &call) {
  if (!call.kernel) // another one of its group does it, or there is nothing to do
    return injections.empty() ? std::nullopt : injectAfter(index);
  placeKernel(call);
  if (MaybeError error = measure(stepTimes.measures(), *compute, StepMarks::What::Kernel, index,
                                 [&] { return compute->enqueue(*call.kernel, arguments()); }))
    return error;
  return injections.empty() ? std::nullopt : injectAfter(index);
}

MaybeError DeviceExecutor::injectAfter(size_t index) {
  for (size_t i = 0; i < injections.size(); ++i) {
    const PreparedInjection &each = injections[i];
    if (each.instruction == index && each.step == begun && each.microbatch == microbatch)
      if (MaybeError error =
              compute->copy(arena + each.range.offsetFor(microbatch) + each.byteOffset,
                            injected->data() + i * each.bytes.size(), each.width))
        return error;
  }
  return std::nullopt;
}

/// Gives a collective its operands, where they differ between microbatches.
void DeviceExecutor::placeOperands(const PreparedCollective &collective) {
  for (size_t i = 0; i < collective.specs.size(); ++i) {
    size_t operand = collective.firstOperand + i;
    const PreparedProgram::Operands &ranges = program.operands[operand];
    operands[operand] = {arena + ranges.input.offsetFor(microbatch),
                         arena + ranges.output.offsetFor(microbatch)};
  }
}

Communicator::Group DeviceExecutor::groupOf(size_t index) const {
  size_t group = std::get<PreparedCollective>(program.instructions[index]).group;
  return (graphs && graphs->holds(index) ? groupsInGraphs : groups)[group];
}

MaybeError DeviceExecutor::enqueueCollective(Queue &queue, size_t index) {
  const auto &collective = std::get<PreparedCollective>(program.instructions[index]);
  if (marks)
    if (MaybeError error = marks->comesToCollective(queue, index))
      return error;
  return measure(stepTimes.measures(), queue, StepMarks::What::Collective, index, [&] {
    return communicator->enqueue(
        queue, groupOf(index), collective.specs,
        std::span(operands).subspan(collective.firstOperand, collective.specs.size()));
  });
}

/// On the compute queue, after all collectives that the lane holds: those of a device keep their
/// order.
MaybeError DeviceExecutor::runCollective(size_t index, const PreparedCollective &collective) {
  return measure(stepTimes.measuresWaits(), *compute, StepMarks::What::CollectiveWait, index,
                 [&]() -> MaybeError {
                   if (lastOnLane)
                     if (MaybeError error = compute->wait(*lastOnLane))
                       return error;
                   return enqueueCollective(*compute, index);
                 });
}

MaybeError DeviceExecutor::startCollective(size_t index, const PreparedCollective &collective) {
  if (collective.hasSlots)
    placeOperands(collective);
  if (!collective.asyncIndex)
    return runCollective(index, collective);
  Event &done = *asyncDone[*collective.asyncIndex];
  if (MaybeError error = beginOnLane(*lane, collective.after))
    return error;
  if (MaybeError error = enqueueCollective(*lane, index))
    return error;
  lastOnLane = &done;
  return lane->record(done);
}

/// The next work of a lane begins after all work that the compute queue has got, and after those
/// async instructions of the task.
MaybeError DeviceExecutor::beginOnLane(Queue &queue, const std::vector<size_t> &after) {
  if (MaybeError error = compute->record(*computeDone))
    return error;
  if (MaybeError error = queue.wait(*computeDone))
    return error;
  for (size_t before : after)
    if (MaybeError error = queue.wait(*asyncDone[before]))
      return error;
  return std::nullopt;
}

MaybeError DeviceExecutor::startHostCall(size_t index, const PreparedHostCall &call) {
  Queue &queue = hostLanes->queue(call.lane);
  if (MaybeError error = beginOnLane(queue, call.after))
    return error;
  if (MaybeError error = measure(stepTimes.measures(), queue, StepMarks::What::HostCall, index,
                                 [&] { return hostLanes->enqueue(index, call, microbatch); }))
    return error;
  Event &done = call.asyncIndex ? *asyncDone[*call.asyncIndex] : *hostDone;
  MaybeError error = queue.record(done);
  return error || call.asyncIndex ? error : compute->wait(done);
}

MaybeError DeviceExecutor::finishTransfer(size_t index, size_t transfer) {
  TransferResult &result = newest().marks.newResult();
  MaybeError error = measure(
      stepTimes.measuresWaits() || inPipeline, *compute, StepMarks::What::TransferWait, index,
      [&] { return transfers->finish(*compute, transfer, microbatch, result); }, &result);
  return error;
}

bool DeviceExecutor::runsNow(size_t index) const {
  return program.runsFor(index, microbatch, temporal ? temporal->repetition : 0, batches);
}

MaybeError DeviceExecutor::runInstruction(size_t index) {
  if (const auto *kernel = std::get_if<PreparedKernel>(&program.instructions[index]))
    return runKernel(index, *kernel);
  if (const auto *call = std::get_if<PreparedHostCall>(&program.instructions[index]))
    return startHostCall(index, *call);
  flight.begin(begun, currentEntry, index);
  if (MaybeError error = communicate(index))
    return error;
  flight.end();
  return std::nullopt;
}

MaybeError DeviceExecutor::communicate(size_t index) {
  const PreparedInstruction &instruction = program.instructions[index];
  if (const auto *collective = std::get_if<PreparedCollective>(&instruction))
    return startCollective(index, *collective);
  if (marks && isTransfer(instruction))
    if (MaybeError error = marks->comesToTransfer(*compute, index))
      return error;
  if (const auto *start = std::get_if<PreparedStartTransfer>(&instruction))
    return transfers->start(*compute, start->transfer, microbatch);
  if (const auto *finish = std::get_if<PreparedFinishTransfer>(&instruction))
    return finishTransfer(index, finish->transfer);
  const auto &wait = std::get<PreparedWait>(instruction);
  return measure(stepTimes.measuresWaits(), *compute, StepMarks::What::CollectiveWait, wait.started,
                 [&] { return compute->wait(*asyncDone[wait.asyncIndex]); });
}

MaybeError DeviceExecutor::runInstructions(size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    if (!runsNow(i))
      continue;
    progress.at(currentEntry, i);
    if (MaybeError error = runInstruction(i))
      return error;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

MaybeError DeviceExecutor::runStretch(const Stretch &stretch) {
  // The work of the lane was waited for, and is again at the end.
  lastOnLane = nullptr;
  const StepGraphs::Run &run =
      graphs->find(stretch, microbatch, temporal ? temporal->repetition : 0);
  progress.at(currentEntry, stretch.begin);
  if (MaybeError error = repeatCollectives(stretch))
    return error;
  return compute->enqueue(*run.graph);
}

MaybeError DeviceExecutor::repeatCollectives(const Stretch &stretch) {
  for (size_t index : stretch.collectives) {
    if (!runsNow(index))
      continue;
    const auto &collective = std::get<PreparedCollective>(program.instructions[index]);
    flight.begin(begun, currentEntry, index);
    if (MaybeError error = communicator->repeat(groupOf(index), collective.specs))
      return error;
    flight.end();
  }
  return std::nullopt;
}

MaybeError DeviceExecutor::runTask(size_t begin, size_t end) {
  for (size_t i = begin; i < end;) {
    const Stretch *stretch = graphs ? graphs->at(i) : nullptr;
    size_t next = stretch ? stretch->end : i + 1;
    if (MaybeError error = stretch ? runStretch(*stretch) : runInstructions(i, next))
      return error;
    i = next;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

MaybeError DeviceExecutor::runEntry(const PreparedProgram::ScheduleEntry &entry) {
  microbatch = entry.microbatch;
  if (temporal)
    temporal->coordinate = entry.microbatch;
  inPipeline = passOf(program.program->tasks(static_cast<int>(entry.task))).has_value();
  MaybeError error = measure(
      inPipeline || stepTimes.measures(), *compute, StepMarks::What::Task, 0, [&]() -> MaybeError {
        return runTask(program.taskBegin[entry.task], program.taskBegin[entry.task + 1]);
      });
  if (!error && marks)
    error = marks->clear(*compute);
  return error ? error : newest().recordEntry(*compute);
}

MaybeError DeviceExecutor::runEntries(size_t begin, size_t end) {
  for (currentEntry = begin; currentEntry < end; ++currentEntry)
    if (MaybeError error = runEntry(program.schedule[currentEntry]))
      return error;
  return std::nullopt;
}

MaybeError DeviceExecutor::enqueueSchedule(const std::function<MaybeError(int64_t)> &loadInputs) {
  size_t begin = 0, end = program.program->loop_end();
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (temporal)
      temporal->repetition = batch;
    if (MaybeError error = loadInputs(batch))
      return error;
    if (MaybeError error = runEntries(begin, end))
      return error;
    begin = program.program->loop_begin();
  }
  if (MaybeError error = runEntries(end, program.schedule.size()))
    return error;
  if (MaybeError error = newest().recordEnd(*compute, arena, program, zero->data()))
    return error;
  return transfers->checkAllFinished();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void DeviceExecutor::beginStep() {
  assert(stepsInFlight() < steps.size() && "a step has to end before");
  ++begun;
  newest().begin();
  progress.begin();
}

MaybeError DeviceExecutor::enqueueStep(const std::function<MaybeError(int64_t)> &loadInputs) {
  lastOnLane = nullptr;
  if (delay > 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(delay));
  transfers->begin();
  if (MaybeError error = enqueueSchedule(loadInputs))
    return transfers->locate(*error);
  progress.finish();
  return resources.getDevice().isHostMemory() ? await(newest()) : std::nullopt;
}

MaybeError DeviceExecutor::await(DeviceStep &step) {
  if (step.isOver)
    return std::nullopt;
  if (MaybeError error = step.wait())
    return transfers->locate(*error);
  if (MaybeError error = stepTimes.collect(step.marks))
    return error;
  step.isOver = true;
  return std::nullopt;
}

void DeviceExecutor::endStep() {
  const DeviceStep &step = oldest();
  if (step.hasEnded()) {
    resultsOfLast.assign(step.results(), step.results() + layout.resultBytes);
    // A device that has failed since may not know it any more.
    Expected<Event::TimePoint> end = step.endTime();
    endOfLast = end ? *end : std::chrono::steady_clock::now();
  }
  ++ended;
}

const std::byte *DeviceExecutor::lastResult(uint32_t buffer) const {
  const StepLayout::Result *result = layout.findResult(buffer);
  return result && !resultsOfLast.empty() ? resultsOfLast.data() + result->offset : nullptr;
}

void DeviceExecutor::drain() {
  // Their errors are those of the failed schedule. Work that was being captured is not run.
  (void)compute->finish();
  if (resources.lane())
    (void)resources.lane()->finish();
  if (hostLanes)
    hostLanes->drain();
  transfers->getNetwork().drain();
}

//===----------------------------------------------------------------------===//
// Progress
//===----------------------------------------------------------------------===//

uint64_t DeviceExecutor::advances() const {
  uint64_t count = progress.advances();
  for (uint64_t number = ended + 1; number <= begun; ++number)
    count += step(number).entriesDone();
  return count;
}

/// Finds which communication the device has reached in an entry: from its marks; or, for a device
/// that computes on the host's thread, from the instruction that the thread is at.
ReachedCommunication DeviceExecutor::reachedIn(size_t entry,
                                               std::optional<size_t> instruction) const {
  const uint32_t task = program.schedule[entry].task;
  const size_t begin = program.taskBegin[task], end = program.taskBegin[task + 1];
  ReachedCommunication found;
  if (marks) {
    // A task without communication leaves what was written before it.
    auto ofTask = [&](std::optional<size_t> index) {
      return index && *index >= begin && *index < end ? index : std::nullopt;
    };
    found = marks->reached();
    return {ofTask(found.collective), ofTask(found.transfer)};
  }
  if (!resources.getDevice().isHostMemory() || !instruction)
    return found;
  const uint32_t microbatchOfEntry = program.schedule[entry].microbatch;
  for (size_t i = begin; i <= *instruction; ++i) {
    if (!program.runsFor(i, microbatchOfEntry, batches - 1, batches))
      continue;
    if (isCollective(program.instructions[i]))
      found.collective = i;
    if (isTransfer(program.instructions[i]))
      found.transfer = i;
  }
  return found;
}

std::optional<DeviceExecutor::Position> DeviceExecutor::position() const {
  for (uint64_t number = ended + 1; number <= begun; ++number)
    if (size_t done = step(number).entriesDone(); done < step(number).entriesEnqueued()) {
      size_t entry = layout.entries[done];
      return Position{number, entry, std::nullopt, done, reachedIn(entry, std::nullopt)};
    }
  if (std::optional<DeviceProgress::Position> host = progress.position()) {
    size_t before = begun > 0 ? newest().entriesEnqueued() : 0;
    return Position{begun, host->entry, host->instruction, before,
                    reachedIn(host->entry, host->instruction)};
  }
  return std::nullopt;
}

std::unique_ptr<Deadline> DeviceExecutor::limitCopy(uint32_t buffer) const {
  if (copyTimeout <= 0 || !onHang || isInHostMemory(buffer))
    return nullptr;
  std::string name = "an output";
  for (const plan::State &state : program.program->states())
    if (state.buffer() == buffer)
      name = fmt::format("state \"{}\"", state.name());
  // Waits beyond the age of the universe are as good as none.
  const std::chrono::duration<double> time(std::min(copyTimeout, 1e9));
  return std::make_unique<Deadline>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time), [this, name] {
        onHang(Error{fmt::format(
            "device {}: a copy of {} between {} and the host has not ended for {} s; the GPU or "
            "its driver stands still, or a kernel before the copy does (--stall-timeout sets the "
            "limit)",
            deviceIndex, name, resources.getDevice().describe(), copyTimeout)});
      });
}

} // namespace dtc::runtime
