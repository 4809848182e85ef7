//===- VerifyAsync.cpp - Verification of asynchronous collectives -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanChecks.h"
#include "plan/PlanTypes.h"
#include "plan/RangeCounts.h"

#include <fmt/format.h>
#include <set>

namespace dtc {

namespace {

/// Follows each task with the operands of the collectives that have started and not ended.
class AsyncWalk {
public:
  AsyncWalk(const PlanContext &context, WorkLimit &budget)
      : context(context), budget(budget), inputsInUse(context.ranges),
        outputsInUse(context.ranges) {}

  MaybeError run() {
    for (const plan::Task &task : context.program.tasks()) {
      transferParts.clear();
      for (int i = 0; i < task.instructions_size(); ++i)
        if (MaybeError error = runInstruction(task, i))
          return error->inContext(describeInstruction(context.plan, task, i));
      if (!inFlight.empty())
        return Error{"is async, but the task does not wait for it"}.inContext(
            describeInstruction(context.plan, task, *inFlight.begin()));
    }
    return std::nullopt;
  }

private:
  MaybeError runInstruction(const plan::Task &task, int index) {
    const plan::Instruction &instruction = task.instructions(index);
    if (instruction.has_wait())
      return finish(task, index, instruction.wait().instruction());
    if (instruction.has_start_transfer() || instruction.has_finish_transfer())
      if (MaybeError error = checkOnce(instruction))
        return error;
    if (!inFlight.empty())
      if (MaybeError error = checkOperands(task, instruction))
        return error;
    if (instruction.has_collective() && instruction.collective().async()) {
      inFlight.insert(index);
      use(instruction.collective(), 1);
    }
    return std::nullopt;
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

  MaybeError finish(const plan::Task &task, int index, uint32_t started) {
    if (started >= static_cast<uint32_t>(index))
      return Error{fmt::format("waits for instruction {}; expected one before it", started)};
    const plan::Instruction &instruction = task.instructions(static_cast<int>(started));
    if (!instruction.has_collective() || !instruction.collective().async())
      return Error{fmt::format("waits for instruction {} ({}); expected an async collective",
                               started, describeKind(instruction))};
    if (inFlight.erase(static_cast<int>(started)) == 0)
      return Error{fmt::format("waits for instruction {} ({}) a second time", started,
                               describeKind(instruction))};
    use(instruction.collective(), -1);
    return std::nullopt;
  }

  void use(const plan::Collective &collective, int change) {
    for (const plan::CollectiveTensor &tensor : collective.tensors()) {
      inputsInUse.add(context.ranges[tensor.input()], change);
      outputsInUse.add(context.ranges[tensor.output()], change);
    }
  }

  MaybeError checkOperands(const plan::Task &task, const plan::Instruction &instruction) {
    if (instruction.has_collective()) {
      for (const plan::CollectiveTensor &tensor : instruction.collective().tensors()) {
        if (MaybeError error = checkRead(task, tensor.input()))
          return error;
        if (MaybeError error = checkWrite(task, tensor.output()))
          return error;
      }
      return std::nullopt;
    }
    if (instruction.has_start_transfer() || instruction.has_finish_transfer())
      return checkTransfer(task, instruction);
    for (uint32_t input : instruction.kernel().inputs())
      if (MaybeError error = checkRead(task, input))
        return error;
    for (uint32_t output : instruction.kernel().outputs())
      if (MaybeError error = checkWrite(task, output))
        return error;
    return std::nullopt;
  }

  /// A send reads and a receive writes from its start to its finish. If one of them lies in another
  /// task, the dataflow's walk checks the instructions between.
  MaybeError checkTransfer(const plan::Task &task, const plan::Instruction &instruction) {
    uint32_t number = instruction.has_start_transfer() ? instruction.start_transfer().transfer()
                                                       : instruction.finish_transfer().transfer();
    const plan::Transfer &transfer = context.program.transfers(static_cast<int>(number));
    bool sends = kindOf(transfer) == TransferKind::Send;
    // Many tasks may name one transfer of many tensors.
    if (MaybeError error = budget.spend(transfer.buffers_size()))
      return error;
    for (uint32_t buffer : transfer.buffers())
      if (MaybeError error = sends ? checkRead(task, buffer) : checkWrite(task, buffer))
        return error;
    return std::nullopt;
  }

  MaybeError checkRead(const plan::Task &task, uint32_t buffer) const {
    if (outputsInUse.anyIn(context.ranges[buffer]))
      return conflict(task, "reads", buffer, /*otherWrites=*/true);
    return std::nullopt;
  }
  MaybeError checkWrite(const plan::Task &task, uint32_t buffer) const {
    if (outputsInUse.anyIn(context.ranges[buffer]))
      return conflict(task, "writes", buffer, /*otherWrites=*/true);
    if (inputsInUse.anyIn(context.ranges[buffer]))
      return conflict(task, "writes", buffer, /*otherWrites=*/false);
    return std::nullopt;
  }

  /// Looks for the collective, which is worth the time only for an error.
  Error conflict(const plan::Task &task, const char *does, uint32_t buffer,
                 bool otherWrites) const {
    for (int index : inFlight)
      for (const plan::CollectiveTensor &tensor : task.instructions(index).collective().tensors()) {
        uint32_t other = otherWrites ? tensor.output() : tensor.input();
        if (context.ranges[other].overlaps(context.ranges[buffer]))
          return Error{fmt::format(
              "{} buffer {} ({}), which shares bytes of the arena with buffer {}, which "
              "instruction {} ({}) {} until the wait for it",
              does, buffer, context.types[buffer].str(), other, index,
              describeKind(task.instructions(index)), otherWrites ? "writes" : "reads")};
      }
    return Error{"touches the operands of a collective that is running"};
  }

  const PlanContext &context;
  WorkLimit &budget;
  RangeCounts inputsInUse, outputsInUse;
  std::set<int> inFlight;                            // numbers of instructions of the task
  std::set<std::pair<bool, uint32_t>> transferParts; // of the task: starts or finishes, and which
};

} // namespace

MaybeError checkAsync(const PlanContext &context, WorkLimit &budget) {
  return AsyncWalk(context, budget).run();
}

} // namespace dtc
