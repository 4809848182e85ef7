//===- DeviceInstructions.cpp - Instructions of one device ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceInstructions.h"

#include "plan/PlanTypes.h"

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// Enqueues `work` on the queue, and if wanted takes the time from before it to after it.
template <typename Work>
MaybeError DeviceInstructions::measure(bool wanted, Queue &queue, StepMarks::What what,
                                       size_t index, const Work &work,
                                       const TransferResult *result) {
  if (!wanted)
    return work();
  Expected<StepMarks::Mark> begin = stepMarks->mark(queue);
  if (!begin)
    return begin.error();
  if (MaybeError error = work())
    return error;
  Expected<StepMarks::Mark> end = stepMarks->mark(queue);
  if (!end)
    return end.error();
  stepMarks->add(what, static_cast<uint32_t>(currentEntry), index, *begin, *end, result);
  return std::nullopt;
}

void DeviceInstructions::placeKernel(const PreparedKernel &call) {
  inputs.clear();
  outputs.clear();
  for (const ArenaRange &range : call.inputs)
    inputs.push_back(arena + range.offsetFor(microbatch));
  for (const ArenaRange &range : call.outputs)
    outputs.push_back(arena + range.offsetFor(microbatch));
}

MaybeError DeviceInstructions::runKernel(size_t index, const PreparedKernel &call) {
  if (!call.kernel) // another one of its group does it, or there is nothing to do
    return injections.empty() ? std::nullopt : injectAfter(index);
  placeKernel(call);
  if (MaybeError error = measure(stepTimes.measures(), *compute, StepMarks::What::Kernel, index,
                                 [&] { return compute->enqueue(*call.kernel, arguments()); }))
    return error;
  return injections.empty() ? std::nullopt : injectAfter(index);
}

MaybeError DeviceInstructions::injectAfter(size_t index) {
  for (size_t i = 0; i < injections.size(); ++i) {
    const PreparedInjection &each = injections[i];
    if (each.instruction == index && each.step == stepNumber && each.microbatch == microbatch)
      if (MaybeError error =
              compute->copy(arena + each.range.offsetFor(microbatch) + each.byteOffset,
                            injected->data() + i * each.bytes.size(), each.width))
        return error;
  }
  return std::nullopt;
}

/// Gives a collective its operands, where they differ between microbatches.
void DeviceInstructions::placeOperands(const PreparedCollective &collective) {
  for (size_t i = 0; i < collective.specs.size(); ++i) {
    size_t operand = collective.firstOperand + i;
    const PreparedProgram::Operands &ranges = program.operands[operand];
    operands[operand] = {arena + ranges.input.offsetFor(microbatch),
                         arena + ranges.output.offsetFor(microbatch)};
  }
}

Communicator::Group DeviceInstructions::groupOf(size_t index) const {
  size_t group = std::get<PreparedCollective>(program.instructions[index]).group;
  return (graphs && graphs->holds(index) ? groupsInGraphs : groups)[group];
}

MaybeError DeviceInstructions::enqueueCollective(Queue &queue, size_t index) {
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
MaybeError DeviceInstructions::runCollective(size_t index, const PreparedCollective &collective) {
  return measure(stepTimes.measuresWaits(), *compute, StepMarks::What::CollectiveWait, index,
                 [&]() -> MaybeError {
                   if (lastOnLane)
                     if (MaybeError error = compute->wait(*lastOnLane))
                       return error;
                   return enqueueCollective(*compute, index);
                 });
}

MaybeError DeviceInstructions::startCollective(size_t index, const PreparedCollective &collective) {
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
MaybeError DeviceInstructions::beginOnLane(Queue &queue, const std::vector<size_t> &after) {
  if (MaybeError error = compute->record(*computeDone))
    return error;
  if (MaybeError error = queue.wait(*computeDone))
    return error;
  for (size_t before : after)
    if (MaybeError error = queue.wait(*asyncDone[before]))
      return error;
  return std::nullopt;
}

MaybeError DeviceInstructions::startHostCall(size_t index, const PreparedHostCall &call) {
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

MaybeError DeviceInstructions::finishTransfer(size_t index, size_t transfer) {
  TransferResult &result = stepMarks->newResult();
  MaybeError error = measure(
      stepTimes.measuresWaits() || inPipeline, *compute, StepMarks::What::TransferWait, index,
      [&] { return transfers->finish(*compute, transfer, microbatch, result); }, &result);
  return error;
}

bool DeviceInstructions::runsNow(size_t index) const {
  return program.runsFor(index, microbatch, temporal ? temporal->repetition : 0, batches);
}

MaybeError DeviceInstructions::runInstruction(size_t index) {
  if (const auto *kernel = std::get_if<PreparedKernel>(&program.instructions[index]))
    return runKernel(index, *kernel);
  if (const auto *call = std::get_if<PreparedHostCall>(&program.instructions[index]))
    return startHostCall(index, *call);
  flight.begin(stepNumber, currentEntry, index);
  if (MaybeError error = communicate(index))
    return error;
  flight.end();
  return std::nullopt;
}

MaybeError DeviceInstructions::communicate(size_t index) {
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

MaybeError DeviceInstructions::runInstructions(size_t begin, size_t end) {
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

MaybeError DeviceInstructions::runStretch(const Stretch &stretch) {
  // The work of the lane was waited for, and is again at the end.
  lastOnLane = nullptr;
  const StepGraphs::Run &run =
      graphs->find(stretch, microbatch, temporal ? temporal->repetition : 0);
  progress.at(currentEntry, stretch.begin);
  if (MaybeError error = repeatCollectives(stretch))
    return error;
  return compute->enqueue(*run.graph);
}

MaybeError DeviceInstructions::repeatCollectives(const Stretch &stretch) {
  for (size_t index : stretch.collectives) {
    if (!runsNow(index))
      continue;
    const auto &collective = std::get<PreparedCollective>(program.instructions[index]);
    flight.begin(stepNumber, currentEntry, index);
    if (MaybeError error = communicator->repeat(groupOf(index), collective.specs))
      return error;
    flight.end();
  }
  return std::nullopt;
}

MaybeError DeviceInstructions::runTask(size_t begin, size_t end) {
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
// Entries of the schedule
//===----------------------------------------------------------------------===//

MaybeError DeviceInstructions::runEntry(size_t index) {
  currentEntry = index;
  const PreparedProgram::ScheduleEntry &entry = program.schedule[index];
  microbatch = entry.microbatch;
  if (temporal)
    temporal->coordinate = entry.microbatch;
  inPipeline = passOf(program.program->tasks(static_cast<int>(entry.task))).has_value();
  MaybeError error = measure(
      inPipeline || stepTimes.measures(), *compute, StepMarks::What::Task, 0, [&]() -> MaybeError {
        return runTask(program.taskBegin[entry.task], program.taskBegin[entry.task + 1]);
      });
  return error || !marks ? error : marks->clear(*compute);
}

void DeviceInstructions::begin(uint64_t step, StepMarks &marksOfStep) {
  stepNumber = step;
  stepMarks = &marksOfStep;
  lastOnLane = nullptr;
}

CommunicatorBytes DeviceInstructions::sent() const {
  CommunicatorBytes bytes = communicator->sent();
  bytes.transfers += transfers->getNetwork().sentBytes();
  return bytes;
}

void DeviceInstructions::drain() {
  // Their errors are those of the failed schedule. Work that was being captured is not run.
  (void)compute->finish();
  if (resources.lane())
    (void)resources.lane()->finish();
  if (hostLanes)
    hostLanes->drain();
  transfers->getNetwork().drain();
}

/// Finds which communication the device has reached in an entry: from its marks; or, for a device
/// that computes on the host's thread, from the instruction that the thread is at.
ReachedCommunication DeviceInstructions::reachedIn(size_t entry, std::optional<size_t> instruction,
                                                   bool repeats) const {
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
    if (!program.runsFor(i, microbatchOfEntry, repeats ? 0 : batches - 1, batches))
      continue;
    if (isCollective(program.instructions[i]))
      found.collective = i;
    if (isTransfer(program.instructions[i]))
      found.transfer = i;
  }
  return found;
}

} // namespace dtc::runtime
