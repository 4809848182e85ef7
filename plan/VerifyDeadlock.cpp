//===- VerifyDeadlock.cpp - Deadlock check --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Runs the transfers of all programs, as strictly as plan.proto allows: starting a send waits for
// the start of the receive of its message, and the messages from one program to another meet their
// receives in the order of the sends, on all channels.
//
// One order of running decides. A program waits until another has come to some place. That is never
// undone, and running one program takes nothing away that another waits for. So every order comes
// to the same end.
//
// One device for each program decides, too. The devices of a program do the same things in the same
// order, and a transfer links devices that differ in nothing but their programs. So when the check
// comes to an instruction, all devices of its program can execute it: by the same argument their
// peers have done what it waits for, and if it is a collective, the other members, which all run
// this program, come to it as well. Other collectives than the group's next one are not in the way,
// because all members meet theirs in one order.
//
// One repetition of the loop over microbatches decides, too. Both ends of a message are in the
// loop, or both on one side of it, and a transfer is finished where it was started
// (DataflowTracker). So a wait and the instruction that ends it lie in the same part of a step:
// before the loop, in one repetition of it, or after it. A circle of programs that wait for each
// other would lie in one part, and each repetition is the same. Nor does a repetition leave a
// message to the next one: sends and receives of a part are equally many.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanChecks.h"
#include "plan/PlanTypes.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace dtc {

namespace {

/// Messages from one program to another, in the order of receives and of sends.
struct Link {
  struct Receive {
    uint32_t channel, microbatch;
    int entry, instruction;
  };
  std::vector<Receive> receives; // that have started
  /// Number of the message, by channel and microbatch.
  std::map<std::pair<uint32_t, uint32_t>, size_t> messageFor;
  size_t sends = 0; // that have started
};

/// A program and how far it has come.
struct Runner {
  const PlanContext *context = nullptr;
  /// By task: the instructions that start or finish a transfer.
  std::vector<std::vector<int>> transferInstructions;
  int entry = 0;
  size_t next = 0; // of those of the entry's task

  bool ended() const { return entry >= context->program.schedule_size(); }
  const plan::ScheduleEntry &execution() const { return context->program.schedule(entry); }
  int instruction() const { return transferInstructions[execution().task()][next]; }
  std::string place() const { return describeExecution(*context, entry, instruction()); }
};

class DeadlockCheck {
public:
  explicit DeadlockCheck(const std::vector<PlanContext> &programs);

  Expected<int64_t> run();

private:
  /// Whether the program has come past its next instruction.
  Expected<bool> pass(Runner &runner);
  Expected<bool> startSend(const Runner &runner, const plan::Transfer &transfer);
  MaybeError runUntilBlocked(int program);
  Error deadlock() const;
  std::string describeWait(const Runner &runner) const;

  const plan::Transfer &transferAt(const Runner &runner, bool &starts) const;
  /// The link of the messages of a transfer of the program.
  Link &linkOf(const Runner &runner, const plan::Transfer &transfer) {
    auto peer = static_cast<int>(transfer.peer());
    return kindOf(transfer) == TransferKind::Send ? links[{runner.context->number, peer}]
                                                  : links[{peer, runner.context->number}];
  }

  std::vector<Runner> runners;
  std::map<std::pair<int, int>, Link> links; // by sender and receiver
  std::vector<int> ready;                    // programs that may be able to go on
  int64_t messages = 0;
};

} // namespace

DeadlockCheck::DeadlockCheck(const std::vector<PlanContext> &programs) {
  for (const PlanContext &context : programs) {
    Runner runner;
    runner.context = &context;
    for (const plan::Task &task : context.program.tasks()) {
      std::vector<int> &instructions = runner.transferInstructions.emplace_back();
      for (int i = 0; i < task.instructions_size(); ++i)
        if (task.instructions(i).has_start_transfer() || task.instructions(i).has_finish_transfer())
          instructions.push_back(i);
    }
    runners.push_back(std::move(runner));
  }
}

const plan::Transfer &DeadlockCheck::transferAt(const Runner &runner, bool &starts) const {
  const plan::Program &program = runner.context->program;
  const plan::Instruction &instruction =
      program.tasks(static_cast<int>(runner.execution().task())).instructions(runner.instruction());
  starts = instruction.has_start_transfer();
  return program.transfers(static_cast<int>(starts ? instruction.start_transfer().transfer()
                                                   : instruction.finish_transfer().transfer()));
}

Expected<bool> DeadlockCheck::startSend(const Runner &runner, const plan::Transfer &transfer) {
  Link &link = linkOf(runner, transfer);
  if (link.receives.size() <= link.sends)
    return false;
  const Link::Receive &receive = link.receives[link.sends];
  uint32_t microbatch = runner.execution().microbatch();
  if (receive.channel != transfer.channel() || receive.microbatch != microbatch)
    return Error{fmt::format(
        "message {} from program {} to program {} is sent on channel {} for microbatch {} ({}), "
        "but received on channel {} for microbatch {} ({}); messages from one program to another "
        "arrive in the order in which they are sent",
        link.sends, runner.context->number, transfer.peer(), transfer.channel(), microbatch,
        runner.place(), receive.channel, receive.microbatch,
        describeExecution(*runners[transfer.peer()].context, receive.entry, receive.instruction))};
  LoopPlace sent = loopPlaceOf(runner.context->program, runner.entry);
  const PlanContext &receiver = *runners[transfer.peer()].context;
  LoopPlace received = loopPlaceOf(receiver.program, receive.entry);
  if (sent != received)
    return Error{fmt::format(
        "message {} from program {} to program {}, on channel {}, is sent {} ({}), but received {} "
        "({}); expected both in the loop, or both on the same side of it",
        link.sends, runner.context->number, transfer.peer(), transfer.channel(), describe(sent),
        runner.place(), describe(received),
        describeExecution(receiver, receive.entry, receive.instruction))};
  ++link.sends;
  ++messages;
  ready.push_back(static_cast<int>(transfer.peer()));
  return true;
}

Expected<bool> DeadlockCheck::pass(Runner &runner) {
  bool starts = false;
  const plan::Transfer &transfer = transferAt(runner, starts);
  // When a send has started, so has its receive, and the message goes through by itself.
  if (kindOf(transfer) == TransferKind::Send)
    return starts ? startSend(runner, transfer) : true;
  Link &link = linkOf(runner, transfer);
  std::pair<uint32_t, uint32_t> message(transfer.channel(), runner.execution().microbatch());
  if (!starts)
    return link.messageFor.at(message) < link.sends;
  link.messageFor[message] = link.receives.size();
  link.receives.push_back({message.first, message.second, runner.entry, runner.instruction()});
  ready.push_back(static_cast<int>(transfer.peer()));
  return true;
}

MaybeError DeadlockCheck::runUntilBlocked(int program) {
  Runner &runner = runners[static_cast<size_t>(program)];
  while (!runner.ended()) {
    if (runner.next == runner.transferInstructions[runner.execution().task()].size()) {
      ++runner.entry;
      runner.next = 0;
      continue;
    }
    Expected<bool> passed = pass(runner);
    if (!passed)
      return passed.error();
    if (!*passed)
      return std::nullopt;
    ++runner.next;
  }
  return std::nullopt;
}

std::string DeadlockCheck::describeWait(const Runner &runner) const {
  if (runner.ended())
    return fmt::format("program {} has ended", runner.context->number);
  bool starts = false;
  const plan::Transfer &transfer = transferAt(runner, starts);
  return fmt::format("program {} waits in {} for program {} to start to {} the message of channel "
                     "{} for microbatch {}",
                     runner.context->number, runner.place(), transfer.peer(),
                     starts ? "receive" : "send", transfer.channel(),
                     runner.execution().microbatch());
}

/// Programs that have ended are of interest where another waits for them.
Error DeadlockCheck::deadlock() const {
  std::vector<bool> isNamed(runners.size(), false);
  for (const Runner &runner : runners)
    if (!runner.ended()) {
      bool starts = false;
      isNamed[static_cast<size_t>(runner.context->number)] = true;
      isNamed[transferAt(runner, starts).peer()] = true;
    }
  std::vector<std::string> waits;
  for (const Runner &runner : runners)
    if (isNamed[static_cast<size_t>(runner.context->number)])
      waits.push_back(describeWait(runner));
  return Error{
      fmt::format("the programs wait for each other without end: {}", fmt::join(waits, "; "))};
}

Expected<int64_t> DeadlockCheck::run() {
  for (int p = 0; p < static_cast<int>(runners.size()); ++p)
    ready.push_back(p);
  while (!ready.empty()) {
    int program = ready.back();
    ready.pop_back();
    if (MaybeError error = runUntilBlocked(program))
      return *error;
  }
  if (std::any_of(runners.begin(), runners.end(), [](const Runner &r) { return !r.ended(); }))
    return deadlock();
  return messages;
}

Expected<int64_t> checkDeadlock(const std::vector<PlanContext> &programs) {
  return DeadlockCheck(programs).run();
}

} // namespace dtc
