//===- ValidateDataflow.cpp - Every value is read as it was written -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The walk follows the schedule, instruction by instruction, with the values that the bytes of the
// arena hold. Bytes and not buffers, because one buffer may be a view of another. In particular the
// slots of a buffer are enough if every execution finds the values of its own microbatch.
//
// A task that runs again and again, as in a plan without a pipeline, is not followed each time: if
// it has no transfer and no buffer with slots, what it does depends on the values in the arena
// alone, and on whether its microbatch is the first (see readsOwnOutput). So once an execution
// leaves the same values as it found, the repetitions that follow at once do so too.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/ArenaValues.h"
#include "runtime/plan/InPlaceRules.h"
#include "runtime/plan/PlanChecks.h"
#include "runtime/plan/PlanTypes.h"
#include "runtime/plan/SlotLives.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace dtc::runtime {

namespace {

/// Follows the schedule of one program.
class DataflowWalk {
public:
  DataflowWalk(const PlanContext &context, int64_t &work)
      : context(context), work(work), lives(context) {}

  Expected<ProgramFacts> run();

private:
  /// One tensor of a transfer that has started and not finished.
  struct InFlight {
    ByteRange range;
    uint32_t buffer;
    uint32_t transfer;
    uint32_t microbatch;
    int64_t since;
  };
  /// Where a transfer was started.
  struct Start {
    int entry, instruction;
    bool finished;
  };

  MaybeError runSchedule();
  MaybeError runTask(const plan::Task &task);
  MaybeError runInstruction(const plan::Instruction &instruction);
  MaybeError runKernel(const plan::KernelCall &call);
  MaybeError startTransfer(uint32_t number);
  MaybeError finishTransfer(uint32_t number);
  MaybeError checkEnd();
  bool dependsOnMicrobatch(const plan::Task &task) const;

  MaybeError read(const std::string &what, uint32_t buffer);
  MaybeError write(uint32_t buffer);
  MaybeError checkWrite(uint32_t buffer);
  void put(uint32_t buffer, int64_t since);
  MaybeError checkValue(const std::string &what, uint32_t buffer, const ArenaValue &value) const;
  Error overwritten(const std::string &what, uint32_t buffer) const;
  Error conflict(const char *does, uint32_t buffer, const InFlight &other) const;
  MaybeError spend(int64_t steps);

  bool hasSlots(uint32_t buffer) const { return context.copies[buffer].slots > 0; }
  std::string describe(uint32_t buffer, uint32_t ofMicrobatch) const;
  std::string describeWriter(const ArenaValue &value) const;
  std::string describeTransfer(uint32_t number, uint32_t ofMicrobatch) const;
  const plan::Transfer &transfer(uint32_t number) const {
    return context.program.transfers(static_cast<int>(number));
  }

  const PlanContext &context;
  int64_t &work;
  ArenaValues values;
  SlotLives lives;
  std::vector<bool> isWritten; // by some instruction or before the step; others are views
  std::vector<InFlight> inFlight;
  std::map<std::pair<uint32_t, uint32_t>, Start> starts; // by transfer and microbatch
  std::vector<ArenaValue *> found;
  ProgramFacts facts;
  // What is being run.
  int entry = -1, instructionIndex = 0;
  uint32_t microbatch = 0;
  int64_t now = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

Expected<ProgramFacts> DataflowWalk::run() {
  const plan::Program &program = context.program;
  isWritten.assign(context.types.size(), false);
  for (const plan::Task &task : program.tasks())
    for (const plan::Instruction &instruction : task.instructions()) {
      for (uint32_t output : instruction.kernel().outputs())
        isWritten[context.roots[output]] = true;
      for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
        isWritten[context.roots[tensor.output()]] = true;
    }
  for (const plan::Transfer &transfer : program.transfers())
    if (transfer.kind() == plan::Transfer::RECEIVE)
      for (uint32_t buffer : transfer.buffers())
        isWritten[context.roots[buffer]] = true;
  auto putBeforeStep = [&](uint32_t buffer) {
    isWritten[context.roots[buffer]] = true;
    put(buffer, now);
  };
  for (const plan::State &state : program.states())
    putBeforeStep(state.buffer());
  for (const plan::Input &input : program.inputs())
    putBeforeStep(input.buffer());
  if (MaybeError error = runSchedule())
    return *error;
  if (MaybeError error = checkEnd())
    return *error;
  facts.entries = program.schedule_size();
  facts.arenaBytes = program.arena_bytes();
  facts.arenaLowerBound = program.arena_lower_bound();
  facts.slots = lives.liveliest();
  return facts;
}

/// Whether the task does more than its operands say for a microbatch but the first.
bool DataflowWalk::dependsOnMicrobatch(const plan::Task &task) const {
  auto isSlotted = [&](uint32_t buffer) { return hasSlots(buffer); };
  for (const plan::Instruction &instruction : task.instructions()) {
    if (instruction.has_start_transfer() || instruction.has_finish_transfer())
      return true;
    const plan::KernelCall &call = instruction.kernel();
    if (std::any_of(call.inputs().begin(), call.inputs().end(), isSlotted) ||
        std::any_of(call.outputs().begin(), call.outputs().end(), isSlotted))
      return true;
    for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
      if (hasSlots(tensor.input()) || hasSlots(tensor.output()))
        return true;
  }
  return false;
}

MaybeError DataflowWalk::runSchedule() {
  const plan::Program &program = context.program;
  std::vector<bool> depends;
  for (const plan::Task &task : program.tasks())
    depends.push_back(dependsOnMicrobatch(task));
  bool settled = false; // the execution before this one left all values as they were
  for (entry = 0; entry < program.schedule_size(); ++entry) {
    const plan::ScheduleEntry &execution = program.schedule(entry);
    const plan::Task &task = program.tasks(static_cast<int>(execution.task()));
    microbatch = execution.microbatch();
    facts.instructions += task.instructions_size();
    if (MaybeError error = spend(1))
      return error;
    bool repeats = entry > 0 && !depends[execution.task()] &&
                   program.schedule(entry - 1).task() == execution.task() &&
                   (program.schedule(entry - 1).microbatch() > 0) == (microbatch > 0);
    if (repeats && settled)
      continue;
    settled = false;
    if (!repeats) {
      if (MaybeError error = runTask(task))
        return error;
      continue;
    }
    ArenaValues before = values;
    if (MaybeError error = spend(static_cast<int64_t>(values.size())))
      return error;
    if (MaybeError error = runTask(task))
      return error;
    settled = values.holdsLike(before);
  }
  return std::nullopt;
}

MaybeError DataflowWalk::runTask(const plan::Task &task) {
  if (MaybeError error = spend(task.instructions_size()))
    return error;
  for (instructionIndex = 0; instructionIndex < task.instructions_size(); ++instructionIndex) {
    ++now;
    if (MaybeError error = runInstruction(task.instructions(instructionIndex)))
      return error->inContext(describeExecution(context, entry, instructionIndex));
  }
  return std::nullopt;
}

MaybeError DataflowWalk::runInstruction(const plan::Instruction &instruction) {
  if (instruction.has_kernel())
    return runKernel(instruction.kernel());
  if (instruction.has_start_transfer())
    return startTransfer(instruction.start_transfer().transfer());
  if (instruction.has_finish_transfer())
    return finishTransfer(instruction.finish_transfer().transfer());
  // Of an async collective, checkAsync() has shown that nothing touches the outputs until the wait;
  // whether they have their values now or then makes no difference.
  for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
    if (MaybeError error = read("the input", tensor.input()))
      return error;
  for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
    if (MaybeError error = write(tensor.output()))
      return error;
  return std::nullopt;
}

MaybeError DataflowWalk::runKernel(const plan::KernelCall &call) {
  static const std::vector<std::string> names = {"input 0", "input 1", "input 2", "input 3"};
  for (int i = 0; i < call.inputs_size(); ++i)
    if (MaybeError error = read(i < 4 ? names[static_cast<size_t>(i)] : fmt::format("input {}", i),
                                call.inputs(i)))
      return error;
  if (microbatch > 0 && readsOwnOutput(call.kernel()))
    for (uint32_t output : call.outputs())
      if (MaybeError error = read("the output that it adds to", output))
        return error;
  for (uint32_t output : call.outputs())
    if (MaybeError error = write(output))
      return error;
  return std::nullopt;
}

MaybeError DataflowWalk::startTransfer(uint32_t number) {
  auto [it, isNew] =
      starts.try_emplace({number, microbatch}, Start{entry, instructionIndex, false});
  if (!isNew)
    return Error{fmt::format("starts {} a second time; it was started in {}",
                             describeTransfer(number, microbatch),
                             describeExecution(context, it->second.entry, it->second.instruction))};
  bool sends = transfer(number).kind() == plan::Transfer::SEND;
  ++(sends ? facts.sends : facts.receives);
  for (uint32_t buffer : transfer(number).buffers()) {
    if (MaybeError error = sends ? read("what is sent", buffer) : checkWrite(buffer))
      return error;
  }
  for (uint32_t buffer : transfer(number).buffers())
    inFlight.push_back(
        {context.copies[buffer].forMicrobatch(microbatch), buffer, number, microbatch, now});
  return std::nullopt;
}

MaybeError DataflowWalk::finishTransfer(uint32_t number) {
  auto it = starts.find({number, microbatch});
  if (it == starts.end())
    return Error{fmt::format("finishes {}, which has not been started",
                             describeTransfer(number, microbatch))};
  if (it->second.finished)
    return Error{fmt::format("finishes {} a second time", describeTransfer(number, microbatch))};
  it->second.finished = true;
  int64_t since = now;
  std::erase_if(inFlight, [&](const InFlight &tensor) {
    bool isThis = tensor.transfer == number && tensor.microbatch == microbatch;
    if (isThis)
      since = tensor.since;
    return isThis;
  });
  if (MaybeError error = spend(static_cast<int64_t>(inFlight.size())))
    return error;
  for (uint32_t buffer : transfer(number).buffers()) {
    if (transfer(number).kind() == plan::Transfer::RECEIVE)
      put(buffer, since);
    else if (MaybeError error = read("what is sent", buffer)) // it was needed until now
      return error;
  }
  return std::nullopt;
}

MaybeError DataflowWalk::checkEnd() {
  for (const auto &[key, start] : starts)
    if (!start.finished)
      return Error{fmt::format("starts {}, which is never finished",
                               describeTransfer(key.first, key.second))}
          .inContext(describeExecution(context, start.entry, start.instruction));
  ++now;
  microbatch = 0;
  for (const plan::State &state : context.program.states())
    if (MaybeError error = read("its tensor", state.buffer()))
      return error->inContext(fmt::format("state \"{}\", after the step", state.name()));
  for (const plan::Output &output : context.program.outputs()) {
    ByteRange range = context.ranges[output.buffer()];
    if (!range.empty() && values.find(range, found) == ArenaValues::Holds::Nothing)
      return Error{fmt::format("output \"{}\" (buffer {}) is never written", output.name(),
                               output.buffer())};
    if (MaybeError error = read("its tensor", output.buffer()))
      return error->inContext(fmt::format("output \"{}\", after the step", output.name()));
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Reads and writes
//===----------------------------------------------------------------------===//

MaybeError DataflowWalk::spend(int64_t steps) {
  work += steps;
  if (work <= maxDataflowSteps)
    return std::nullopt;
  return Error{fmt::format("the schedule runs more than {} operands, more than are followed to "
                           "prove that a plan can be run; expected fewer or longer tasks",
                           maxDataflowSteps)};
}

MaybeError DataflowWalk::read(const std::string &what, uint32_t buffer) {
  ByteRange range = context.copies[buffer].forMicrobatch(microbatch);
  if (MaybeError error = spend(static_cast<int64_t>(1 + inFlight.size() / 8)))
    return error;
  if (range.empty())
    return std::nullopt;
  for (const InFlight &other : inFlight)
    if (transfer(other.transfer).kind() == plan::Transfer::RECEIVE && other.range.overlaps(range))
      return conflict("reads", buffer, other);
  ArenaValues::Holds holds = values.find(range, found);
  if (MaybeError error = spend(static_cast<int64_t>(found.size())))
    return error;
  if (holds == ArenaValues::Holds::Nothing)
    return Error{
        fmt::format("{} ({}) is read before it is written", what, describe(buffer, microbatch))};
  for (ArenaValue *value : found)
    if (MaybeError error = checkValue(what, buffer, *value))
      return error;
  if (holds == ArenaValues::Holds::Broken)
    return overwritten(what, buffer);
  for (ArenaValue *value : found) {
    value->lastRead = now;
    lives.read(value->life, now);
  }
  return std::nullopt;
}

/// Whether that value, which lies in the copy of the buffer that is read, is what should lie there.
MaybeError DataflowWalk::checkValue(const std::string &what, uint32_t buffer,
                                    const ArenaValue &value) const {
  auto isSame = [&](uint32_t other) { return context.roots[other] == context.roots[buffer]; };
  bool isKnown = isSame(value.buffer) || !isWritten[context.roots[buffer]];
  bool bothHaveSlots = hasSlots(buffer) && hasSlots(value.buffer);
  if (isKnown && bothHaveSlots && value.microbatch != microbatch)
    return Error{fmt::format(
        "{} ({}) should hold the value of microbatch {}, but holds that of microbatch {}, written "
        "by {}; a buffer of {} slots holds {} microbatches at once, which is too few for this "
        "schedule",
        what, describe(buffer, microbatch), microbatch, value.microbatch, describeWriter(value),
        context.copies[buffer].slots, context.copies[buffer].slots)};
  if (isKnown && hasSlots(buffer) == hasSlots(value.buffer))
    return std::nullopt;
  return overwritten(what, buffer);
}

/// The copy that is read now lies in bytes that something else was written to. `found` has what
/// they hold.
Error DataflowWalk::overwritten(const std::string &what, uint32_t buffer) const {
  const ArenaValue *last = nullptr; // the latest writer but the buffer itself
  for (const ArenaValue *value : found)
    if (value->buffer != buffer && (!last || value->time > last->time))
      last = value;
  if (!last)
    last = found.front();
  return Error{fmt::format("{} ({}) does not hold its value any more: {}, which shares bytes of "
                           "the arena with it, was written since by {}",
                           what, describe(buffer, microbatch),
                           describe(last->buffer, last->microbatch), describeWriter(*last))};
}

MaybeError DataflowWalk::checkWrite(uint32_t buffer) {
  if (MaybeError error = spend(static_cast<int64_t>(1 + inFlight.size() / 8)))
    return error;
  ByteRange range = context.copies[buffer].forMicrobatch(microbatch);
  for (const InFlight &other : inFlight)
    if (other.range.overlaps(range))
      return conflict("writes", buffer, other);
  return std::nullopt;
}

Error DataflowWalk::conflict(const char *does, uint32_t buffer, const InFlight &other) const {
  return Error{fmt::format("{} {}, which shares bytes of the arena with {}; {} has not finished",
                           does, describe(buffer, microbatch),
                           describe(other.buffer, other.microbatch),
                           describeTransfer(other.transfer, other.microbatch))};
}

MaybeError DataflowWalk::write(uint32_t buffer) {
  if (MaybeError error = checkWrite(buffer))
    return error;
  put(buffer, now);
  return std::nullopt;
}

void DataflowWalk::put(uint32_t buffer, int64_t since) {
  ArenaValue value;
  value.range = context.copies[buffer].forMicrobatch(microbatch);
  value.buffer = buffer;
  value.microbatch = microbatch;
  value.entry = entry;
  value.instruction = instructionIndex;
  value.time = now;
  if (hasSlots(buffer))
    value.life = lives.begin(buffer, since);
  values.write(value);
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

std::string DataflowWalk::describe(uint32_t buffer, uint32_t ofMicrobatch) const {
  const BufferCopies &copies = context.copies[buffer];
  std::string text = fmt::format("buffer {}, {}", buffer, context.types[buffer].str());
  if (copies.slots > 0)
    text += fmt::format(", copy {} of {} for microbatch {}", copies.indexFor(ofMicrobatch),
                        copies.slots, ofMicrobatch);
  return text;
}

std::string DataflowWalk::describeWriter(const ArenaValue &value) const {
  return value.entry < 0 ? "the step's states and inputs"
                         : describeExecution(context, value.entry, value.instruction);
}

std::string DataflowWalk::describeTransfer(uint32_t number, uint32_t ofMicrobatch) const {
  const plan::Transfer &transfer = this->transfer(number);
  bool sends = transfer.kind() == plan::Transfer::SEND;
  std::string text = fmt::format("transfer {} ({} program {}, channel {})", number,
                                 sends ? "to" : "from", transfer.peer(), transfer.channel());
  if (microbatchesOf(context.mesh) > 1)
    text += fmt::format(" for microbatch {}", ofMicrobatch);
  return text;
}

Expected<ProgramFacts> checkDataflow(const PlanContext &context, int64_t &work) {
  return DataflowWalk(context, work).run();
}

} // namespace dtc::runtime
