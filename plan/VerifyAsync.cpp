//===- VerifyAsync.cpp - Verification of asynchronous work ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/ClosingInstructions.h"
#include "plan/PlanChecks.h"
#include "plan/PlanTypes.h"
#include "plan/RangeCounts.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>

namespace dtc {

namespace {

/// The instructions that are known to be done at some point: in each lane, all of the task up to a
/// number, as the instructions of a lane run in their order.
struct DoneInstructions {
  std::array<int, kNumLanes> upTo;

  DoneInstructions() { upTo.fill(-1); }
  int &operator[](Lane lane) { return upTo[static_cast<size_t>(lane)]; }
  int operator[](Lane lane) const { return upTo[static_cast<size_t>(lane)]; }
  void add(const DoneInstructions &other) {
    for (size_t lane = 0; lane < kNumLanes; ++lane)
      upTo[lane] = std::max(upTo[lane], other.upTo[lane]);
  }
};

/// Follows each task with the operands of the instructions that have started and not ended, and
/// with the instructions that each lane and the compute queue have waited for.
class AsyncWalk {
public:
  AsyncWalk(const PlanContext &context, const ClosingInstructions &closing, WorkLimit &budget)
      : context(context), closing(closing), budget(budget), inputsInUse(context.ranges),
        outputsInUse(context.ranges) {}

  /// With the closing instructions, or as all microbatches but the last run: without them.
  MaybeError run(bool closes) {
    for (int number = 0; number < context.program.tasks_size(); ++number) {
      const plan::Task &task = context.program.tasks(number);
      ofTask = static_cast<uint32_t>(number);
      if (!closes && !closing.anyIn(ofTask))
        continue;
      transferParts.clear();
      doneAtEnd.clear();
      done = {};
      lastOfLane.fill(-1);
      for (int i = 0; i < task.instructions_size(); ++i)
        if (closes || !closing.contains(ofTask, i))
          if (MaybeError error = runInstruction(task, i))
            return error->inContext(describeInstruction(context.plan, task, i));
      int first = -1;
      for (const std::set<int> &running : inFlight)
        if (!running.empty() && (first < 0 || *running.begin() < first))
          first = *running.begin();
      if (first >= 0)
        return Error{"is async, but the task does not wait for it"}.inContext(
            describeInstruction(context.plan, task, first));
    }
    return std::nullopt;
  }

private:
  Lane laneOf(const plan::Instruction &instruction) const {
    return dtc::laneOf(context.program, instruction);
  }

  MaybeError runInstruction(const plan::Task &task, int index) {
    const plan::Instruction &instruction = task.instructions(index);
    if (instruction.has_wait())
      return finish(task, index, instruction.wait().instruction());
    if (instruction.has_start_transfer() || instruction.has_finish_transfer())
      if (MaybeError error = checkOnce(instruction))
        return error;
    if (!isAsync(instruction)) {
      if (instruction.after_size() > 0)
        return Error{"comes after other instructions and is not async; expected that it is, or "
                     "waits for them before it"};
      return checkOperands(task, instruction, done, Lane::Compute);
    }
    return start(task, index);
  }

  /// An execution of a task is for one microbatch, so a transfer happens once in it.
  MaybeError checkOnce(const plan::Instruction &instruction) {
    bool starts = instruction.has_start_transfer();
    uint32_t number =
        starts ? instruction.start_transfer().transfer() : instruction.finish_transfer().transfer();
    if (transferParts.insert({starts, number}).second)
      return std::nullopt;
    return Error{fmt::format("{} transfer {} a second time in the task",
                             starts ? "starts" : "finishes", number)};
  }

  /// A lane begins after everything that the compute queue has waited for, after the last
  /// instruction of the lane, and after those that the instruction names.
  MaybeError start(const plan::Task &task, int index) {
    const plan::Instruction &instruction = task.instructions(index);
    Lane lane = laneOf(instruction);
    int &last = lastOfLane[static_cast<size_t>(lane)];
    DoneInstructions before = done;
    if (last >= 0)
      before.add(doneAtEnd.at(last));
    if (MaybeError error = budget.spend(instruction.after_size()))
      return error;
    for (uint32_t other : instruction.after()) {
      if (MaybeError error = checkAsyncBefore(task, index, other, "comes after"))
        return error;
      before.add(doneAtEnd.at(static_cast<int>(other)));
    }
    if (MaybeError error = checkOperands(task, instruction, before, lane))
      return error;
    last = before[lane] = index;
    doneAtEnd[index] = before;
    inFlight[static_cast<size_t>(lane)].insert(index);
    use(instruction, 1);
    return std::nullopt;
  }

  MaybeError checkAsyncBefore(const plan::Task &task, int index, uint32_t other,
                              const char *does) const {
    if (other >= static_cast<uint32_t>(index))
      return Error{fmt::format("{} instruction {}; expected one before it", does, other)};
    const plan::Instruction &instruction = task.instructions(static_cast<int>(other));
    if (closing.contains(ofTask, static_cast<int>(other)) && !closing.contains(ofTask, index))
      return Error{fmt::format("{} instruction {} ({}), which runs for the last microbatch alone; "
                               "expected one that runs for each microbatch",
                               does, other, describeKind(instruction))};
    if (!isAsync(instruction))
      return Error{fmt::format("{} instruction {} ({}); expected an async one", does, other,
                               describeKind(instruction))};
    return std::nullopt;
  }

  MaybeError finish(const plan::Task &task, int index, uint32_t started) {
    if (MaybeError error = checkAsyncBefore(task, index, started, "waits for"))
      return error;
    const plan::Instruction &instruction = task.instructions(static_cast<int>(started));
    auto number = static_cast<int>(started);
    if (inFlight[static_cast<size_t>(laneOf(instruction))].erase(number) == 0)
      return Error{fmt::format("waits for instruction {} ({}) a second time", started,
                               describeKind(instruction))};
    done.add(doneAtEnd.at(number));
    use(instruction, -1);
    return std::nullopt;
  }

  /// Calls `visit(buffer, isWritten)` for each operand up to the first error.
  template <typename Visit>
  static MaybeError visitOperands(const plan::Instruction &instruction, const Visit &visit) {
    for (const plan::CollectiveTensor &tensor : instruction.collective().tensors()) {
      if (MaybeError error = visit(tensor.input(), false))
        return error;
      if (MaybeError error = visit(tensor.output(), true))
        return error;
    }
    for (uint32_t input : instruction.kernel().inputs())
      if (MaybeError error = visit(input, false))
        return error;
    for (uint32_t output : instruction.kernel().outputs())
      if (MaybeError error = visit(output, true))
        return error;
    return std::nullopt;
  }

  void use(const plan::Instruction &instruction, int change) {
    (void)visitOperands(instruction, [&](uint32_t buffer, bool isWritten) -> MaybeError {
      (isWritten ? outputsInUse : inputsInUse).add(context.ranges[buffer], change);
      return std::nullopt;
    });
  }

  /// `before` is done when the instruction begins, on that lane.
  MaybeError checkOperands(const plan::Task &task, const plan::Instruction &instruction,
                           const DoneInstructions &before, Lane lane) {
    if (std::all_of(inFlight.begin(), inFlight.end(),
                    [](const std::set<int> &running) { return running.empty(); }))
      return std::nullopt;
    auto check = [&](uint32_t buffer, bool isWritten) {
      return checkOperand(task, buffer, isWritten, before, lane);
    };
    if (!instruction.has_start_transfer() && !instruction.has_finish_transfer())
      return visitOperands(instruction, check);
    // A send reads and a receive writes from its start to its finish. If one of them lies in
    // another task, the dataflow's walk checks the instructions between.
    uint32_t number = instruction.has_start_transfer() ? instruction.start_transfer().transfer()
                                                       : instruction.finish_transfer().transfer();
    const plan::Transfer &transfer = context.program.transfers(static_cast<int>(number));
    // Many tasks may name one transfer of many tensors.
    if (MaybeError error = budget.spend(transfer.buffers_size()))
      return error;
    for (uint32_t buffer : transfer.buffers())
      if (MaybeError error = check(buffer, kindOf(transfer) == TransferKind::Receive))
        return error;
    return std::nullopt;
  }

  /// Most operands are in no use, which the counts tell at once.
  MaybeError checkOperand(const plan::Task &task, uint32_t buffer, bool isWritten,
                          const DoneInstructions &before, Lane lane) {
    const ByteRange &range = context.ranges[buffer];
    bool mayConflict = outputsInUse.anyIn(range) || (isWritten && inputsInUse.anyIn(range));
    for (size_t other = 0; mayConflict && other < kNumLanes; ++other) {
      // Collectives of the lane run in their order: one may write what an earlier one has read.
      // One that needs what an earlier one writes waits for it all the same.
      bool isSameLane =
          static_cast<Lane>(other) == Lane::Communication && lane == Lane::Communication;
      if (isSameLane && !outputsInUse.anyIn(range))
        continue;
      const std::set<int> &running = inFlight[other];
      auto it = isSameLane ? running.begin() : running.upper_bound(before.upTo[other]);
      for (; it != running.end(); ++it)
        if (MaybeError error = checkConflict(task, buffer, isWritten, *it, isSameLane))
          return error;
    }
    return std::nullopt;
  }

  MaybeError checkConflict(const plan::Task &task, uint32_t buffer, bool isWritten, int running,
                           bool mayWriteOverInputs) {
    const plan::Instruction &other = task.instructions(running);
    if (MaybeError error =
            budget.spend(other.kernel().inputs_size() + other.kernel().outputs_size() +
                         2 * other.collective().tensors_size()))
      return error;
    return visitOperands(other, [&](uint32_t operand, bool otherWrites) -> MaybeError {
      bool mayOverlap = !otherWrites && (!isWritten || mayWriteOverInputs);
      if (mayOverlap || !context.ranges[operand].overlaps(context.ranges[buffer]))
        return std::nullopt;
      return Error{
          fmt::format("{} buffer {} ({}), which shares bytes of the arena with buffer {}, which "
                      "instruction {} ({}) {} until the wait for it",
                      isWritten ? "writes" : "reads", buffer, context.types[buffer].str(), operand,
                      running, describeKind(other), otherWrites ? "writes" : "reads")};
    });
  }

  const PlanContext &context;
  const ClosingInstructions &closing;
  WorkLimit &budget;
  uint32_t ofTask = 0; // its number
  RangeCounts inputsInUse, outputsInUse;
  // Of the task, by number of the instruction:
  std::array<std::set<int>, kNumLanes> inFlight;     // until the wait, by lane
  std::array<int, kNumLanes> lastOfLane;             // -1: none
  std::map<int, DoneInstructions> doneAtEnd;         // of each async instruction, with itself
  DoneInstructions done;                             // for the compute queue
  std::set<std::pair<bool, uint32_t>> transferParts; // of the task: starts or finishes, and which
};

} // namespace

MaybeError checkAsync(const PlanContext &context, WorkLimit &budget) {
  ClosingInstructions closing(context.program);
  AsyncWalk walk(context, closing, budget);
  if (MaybeError error = walk.run(/*closes=*/true))
    return error;
  if (MaybeError error = walk.run(/*closes=*/false))
    return error->inContext("for a microbatch but the last");
  return std::nullopt;
}

} // namespace dtc
