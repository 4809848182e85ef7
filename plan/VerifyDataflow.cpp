//===- VerifyDataflow.cpp - Dataflow verification -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A buffer of a plan is one value with one writer (VerifyWriters.cpp), so that an operand says
// which value is meant, independent of the places of values. The walk follows the schedule,
// instruction by instruction, with the values in the bytes of the arena: the buffer that was
// written there, the microbatch, and the repetition of the loop over microbatches. An operand whose
// bytes hold anything else is refused. In particular a kernel in place or a reuse of bytes is right
// if nothing reads the earlier value any more, and slots are enough if every execution finds the
// values of its own microbatch.
//
// A task that runs again and again, as in a plan without a pipeline, is not followed each time: if
// it has no transfer and no buffer with slots, its effect depends on the values in the arena alone,
// and on whether its microbatch is the first (see readsOwnOutput). So once an execution leaves the
// same values as it found, the repetitions for the next microbatches do so too. The last one is
// followed where it does more than the others (ClosingInstructions.h).
//
//===----------------------------------------------------------------------===//

#include "plan/ClosingInstructions.h"
#include "plan/DataflowTracker.h"
#include "plan/KernelTable.h"
#include "plan/PlanChecks.h"
#include "plan/WorkLimit.h"
#include "support/OuterEntries.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace dtc {

namespace {

/// Follows the schedule of one program.
class DataflowWalk {
public:
  DataflowWalk(const PlanContext &context, bool repeatsLoop, std::set<uint32_t> &channelsOfData,
               WorkLimit &budget)
      : context(context), repeatsLoop(repeatsLoop), budget(budget), closing(context.program),
        state(context, closing, channelsOfData, budget), randomKeys(context.types.size(), false) {
    for (const plan::State &bound : context.program.states())
      if (bound.kind() == plan::State::RANDOM_KEY)
        randomKeys[context.roots[bound.buffer()]] = true;
  }

  Expected<ProgramVerifierResult> run();

private:
  MaybeError putInputs();
  MaybeError runSchedule();
  MaybeError runEntries(int begin, int end);
  MaybeError endSkip();
  /// The facts from a kernel's entry in the table that following a call needs.
  struct KernelFacts {
    bool drawsMask = false, readsOwnOutput = false;
  };

  /// Whether the task has closing instructions that run in this entry, as it is followed now.
  bool closesIn(const plan::ScheduleEntry &entry) const;
  MaybeError runTask(uint32_t number);
  MaybeError runInstruction(const plan::Instruction &instruction, const KernelFacts &facts);
  MaybeError runKernel(const plan::KernelCall &call, const KernelFacts &facts);
  MaybeError checkEnd();
  bool dependsOnMicrobatch(const plan::Task &task) const;
  bool isRandomKey(uint32_t buffer) const { return randomKeys[context.roots[buffer]]; }

  const PlanContext &context;
  bool repeatsLoop;
  WorkLimit &budget;
  ClosingInstructions closing;
  DataflowTracker state;
  std::vector<bool> randomKeys;                      // by value
  std::vector<bool> depends;                         // of each task, see dependsOnMicrobatch()
  std::vector<std::vector<KernelFacts>> kernelFacts; // of each task's instructions
  int followed = 0;                                  // the last entry that was
  std::optional<uint32_t> pendingSkip;               // the last microbatch that was not followed
  int64_t instructions = 0;                          // executed
};

} // namespace

Expected<ProgramVerifierResult> DataflowWalk::run() {
  const plan::Program &program = context.program;
  for (const plan::State &bound : program.states())
    if (MaybeError error = state.write(bound.buffer()))
      return *error;
  if (MaybeError error = putInputs())
    return *error;
  if (MaybeError error = runSchedule())
    return *error;
  if (MaybeError error = checkEnd())
    return *error;
  ProgramVerifierResult facts;
  facts.entries = program.schedule_size();
  facts.instructions = instructions;
  facts.sends = state.sends();
  facts.receives = state.receives();
  facts.arenaBytes = program.arena_bytes();
  facts.arenaLowerBound = program.arena_lower_bound();
  facts.hostArenaBytes = program.host_arena_bytes();
  facts.slots = state.liveliestSlots();
  return facts;
}

MaybeError DataflowWalk::putInputs() {
  for (const plan::Input &input : context.program.inputs()) {
    // Which replicas take a step is the same in all repetitions.
    bool isOfRepetition = input.role() == plan::Input::DATA && input.name() != kClientActiveInput;
    if (MaybeError error = state.write(input.buffer(), isOfRepetition))
      return error->inContext(fmt::format("input \"{}\"", input.name()));
  }
  return std::nullopt;
}

/// Whether the task does more than its operands say for a microbatch but the first.
bool DataflowWalk::dependsOnMicrobatch(const plan::Task &task) const {
  auto isSlotted = [&](uint32_t buffer) { return state.hasSlots(buffer); };
  for (const plan::Instruction &instruction : task.instructions()) {
    if (instruction.has_start_transfer() || instruction.has_finish_transfer())
      return true;
    const plan::KernelCall &call = instruction.kernel();
    if (std::any_of(call.inputs().begin(), call.inputs().end(), isSlotted) ||
        std::any_of(call.outputs().begin(), call.outputs().end(), isSlotted))
      return true;
    for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
      if (state.hasSlots(tensor.input()) || state.hasSlots(tensor.output()))
        return true;
  }
  return false;
}

MaybeError DataflowWalk::runSchedule() {
  const plan::Program &program = context.program;
  for (const plan::Task &task : program.tasks()) {
    depends.push_back(dependsOnMicrobatch(task));
    std::vector<KernelFacts> &ofTask = kernelFacts.emplace_back();
    for (const plan::Instruction &instruction : task.instructions()) {
      const std::string &kernel = instruction.kernel().kernel();
      ofTask.push_back({findKernel(kernel).drawsMask, readsOwnOutput(kernel)});
    }
  }
  auto begin = static_cast<int>(program.loop_begin()), end = static_cast<int>(program.loop_end());
  if (MaybeError error = runEntries(0, begin))
    return error;
  state.point.inLoop = true;
  if (MaybeError error = runEntries(begin, end))
    return error;
  state.point.inLoop = false;
  // Once more for all times: the loop then finds the same values as the second time.
  if (repeatsLoop && end > begin) {
    if (MaybeError error = state.checkAllFinished())
      return error->inContext("before the loop over microbatches runs again");
    state.forgetTransfers();
    ++state.point.repetition;
    if (MaybeError error = putInputs())
      return error->inContext("before the loop over microbatches runs again");
    state.point.inLoop = true;
    if (MaybeError error = runEntries(begin, end))
      return error->inContext("when the loop over microbatches runs again");
    state.point.inLoop = false;
  }
  return runEntries(end, program.schedule_size());
}

MaybeError DataflowWalk::runEntries(int begin, int end) {
  const plan::Program &program = context.program;
  bool settled = false; // the execution before this one left all values as they were
  for (int entry = begin; entry < end; ++entry) {
    const plan::ScheduleEntry &execution = program.schedule(entry);
    bool repeats = entry > begin && !depends[execution.task()] && !closesIn(execution) &&
                   program.schedule(entry - 1).task() == execution.task() &&
                   program.schedule(entry - 1).microbatch() > 0 &&
                   program.schedule(entry - 1).microbatch() + 1 == execution.microbatch();
    state.point.entry = entry;
    instructions += program.tasks(static_cast<int>(execution.task())).instructions_size();
    if (MaybeError error = budget.spend(1))
      return error;
    if (repeats && settled) {
      pendingSkip = execution.microbatch();
      continue;
    }
    if (MaybeError error = endSkip())
      return error;
    state.point.microbatch = execution.microbatch();
    followed = entry;
    settled = false;
    if (!repeats) {
      if (MaybeError error = runTask(execution.task()))
        return error;
      continue;
    }
    if (MaybeError error = budget.spend(static_cast<int64_t>(state.heldValues().size())))
      return error;
    ArenaValues before = state.heldValues();
    if (MaybeError error = runTask(execution.task()))
      return error;
    settled = state.heldValues().holdsLike(before);
  }
  return endSkip();
}

/// The executions that were not followed have left their values as the last microbatch's.
MaybeError DataflowWalk::endSkip() {
  if (!pendingSkip)
    return std::nullopt;
  if (MaybeError error = budget.spend(static_cast<int64_t>(state.heldValues().size())))
    return error;
  state.skipTo(*pendingSkip, followed);
  pendingSkip.reset();
  return std::nullopt;
}

bool DataflowWalk::closesIn(const plan::ScheduleEntry &entry) const {
  bool isLastRepetition = !repeatsLoop || state.point.repetition > 0;
  return isLastRepetition && closing.anyIn(entry.task()) &&
         entry.microbatch() == closing.lastMicrobatch();
}

MaybeError DataflowWalk::runTask(uint32_t number) {
  const plan::Task &task = context.program.tasks(static_cast<int>(number));
  if (MaybeError error = budget.spend(task.instructions_size()))
    return error;
  bool closes = closesIn(context.program.schedule(state.point.entry));
  for (int i = 0; i < task.instructions_size(); ++i) {
    if (!closes && closing.contains(number, i))
      continue;
    state.point.instruction = i;
    state.point.closes = closing.contains(number, i);
    ++state.point.now;
    if (MaybeError error =
            runInstruction(task.instructions(i), kernelFacts[number][static_cast<size_t>(i)]))
      return error->inContext(describeExecution(context, state.point.entry, i));
  }
  return std::nullopt;
}

MaybeError DataflowWalk::runInstruction(const plan::Instruction &instruction,
                                        const KernelFacts &facts) {
  if (instruction.has_kernel())
    return runKernel(instruction.kernel(), facts);
  if (instruction.has_start_transfer())
    return state.startTransfer(instruction.start_transfer().transfer());
  if (instruction.has_finish_transfer())
    return state.finishTransfer(instruction.finish_transfer().transfer());
  // checkAsync() has shown that nothing touches the outputs of an async instruction before it is
  // done; whether they have their values now or then makes no difference.
  bool ofData = false;
  for (const plan::CollectiveTensor &tensor : instruction.collective().tensors()) {
    if (MaybeError error = state.read({"the input"}, tensor.input()))
      return error;
    ofData |= state.lastReadIsOfData();
  }
  for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
    if (MaybeError error = state.write(tensor.output(), ofData))
      return error;
  return std::nullopt;
}

MaybeError DataflowWalk::runKernel(const plan::KernelCall &call, const KernelFacts &facts) {
  bool ofData = false;
  for (int i = 0; i < call.inputs_size(); ++i) {
    if (MaybeError error = state.read({"input", i}, call.inputs(i)))
      return error;
    ofData |= state.lastReadIsOfData() || (facts.drawsMask && isRandomKey(call.inputs(i)));
  }
  if (facts.readsOwnOutput)
    for (uint32_t output : call.outputs())
      if (MaybeError error = state.readSum(output))
        return error;
  for (uint32_t output : call.outputs())
    if (MaybeError error = state.write(output, ofData))
      return error;
  return std::nullopt;
}

MaybeError DataflowWalk::checkEnd() {
  state.point.closes = false;
  if (MaybeError error = state.checkAllFinished())
    return error;
  ++state.point.now;
  state.point.microbatch = 0;
  for (const plan::State &bound : context.program.states())
    if (MaybeError error =
            state.read({"its tensor"}, bound.has_update() ? bound.update() : bound.buffer()))
      return error->inContext(fmt::format("state \"{}\", after the step", bound.name()));
  for (const plan::Output &output : context.program.outputs()) {
    if (state.isUnwritten(output.buffer()))
      return Error{fmt::format("output \"{}\" (buffer {}) is never written", output.name(),
                               output.buffer())};
    if (MaybeError error = state.read({"its tensor"}, output.buffer()))
      return error->inContext(fmt::format("output \"{}\", after the step", output.name()));
  }
  return std::nullopt;
}

Expected<ProgramVerifierResult> checkDataflow(const PlanContext &context, bool repeatsLoop,
                                              std::set<uint32_t> &channelsOfData,
                                              WorkLimit &budget) {
  return DataflowWalk(context, repeatsLoop, channelsOfData, budget).run();
}

} // namespace dtc
