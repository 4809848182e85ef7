//===- MutatedPlanTest.cpp - Verification and execution of mutated plans --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Plans that the compiler made, each with one change that keeps it well-formed: another place in
// the arena, another order, also of the messages at one end of a channel, a wait less, a message
// more. Plans that the verifier accepts must compute, bit by bit, the results from before the
// change. Plans that it refuses are executed all the same, to count how many of the changes matter:
// a verifier is tested by wrong plans whose execution differs.
//
// Each seed is one change. A look at thousands, by hand:
//
//   DTC_RANDOM_SEED=new DTC_RANDOM_CASES=5000 dtc-equivalence-test --gtest_filter='MutatedPlan*'
//
//===----------------------------------------------------------------------===//

#include "plan/KernelTable.h"
#include "plan/PlanTypes.h"
#include "plan/PlanVerifier.h"
#include "plan/plan.pb.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "test/lib/RandomCases.h"
#include "test/lib/compile/CompileAndRun.h"
#include "test/lib/plans/TrainStep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <optional>
#include <random>

namespace mutatedPlanTest {

using namespace dtc;
using namespace dtc::test;

namespace {

constexpr int64_t kBatch = 8, kSeq = 4;
constexpr const char *kConfig =
    R"({"model_type": "gpt2", "vocab_size": 8, "n_positions": 8, "n_embd": 4, "n_layer": 3,
        "n_head": 2, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})";

struct Strategy {
  const char *text;
  int64_t batches; ///< of a step
};
const Strategy kStrategies[] = {
    {"", 1},
    {"m=3", 1},
    {"m=2", 2},
    {"accumulate", 2},
    {"m=2 recompute=full", 1},
    {"dp=2 zero=1 bucket=0", 1},
    {"dp=2 m=2 zero=2 bucket=1024", 2},
    {"dp=2 m=2 zero=3 bucket=0", 1},
    {"tp=2 m=2 sp bucket=0", 1},
    {"pp=2", 1},
    {"pp=2 accumulate", 2},
    {"pp=3 schedule=zb-v", 1},
    {"pp=2 m=4 schedule=zb-v", 1},
    {"pp=2 m=3 schedule=zb-h1", 1},
    {"pp=2 m=4 schedule=interleaved chunks=2", 1},
    {"pp=3 m=4 schedule=gpipe", 2},
    {"dp=2,pp=2 m=2 zero=2 schedule=zb-h1 bucket=0", 1},
    {"pp=2 m=4 schedule=1f1b", 1},
    {"dp=2,tp=2,pp=2 m=2 zero=1", 1},
    // Reductions in the last microbatch:
    {"dp=2 m=3 zero=1 bucket=0", 1},
    {"dp=2 m=2 bucket=1024", 2},
    {"dp=2,pp=2 m=2 bucket=0", 2},
    {"dp=2,pp=2 m=4 zero=1 schedule=zb-v bucket=0", 1},
};

/// All that a run leaves, as bytes.
using Results = std::map<std::string, std::vector<std::byte>>;

/// Runs two steps without verifying the plan; nothing if the run fails or hangs: if no device comes
/// to another instruction for `stallTimeout` seconds.
std::optional<Results> executePlan(const std::shared_ptr<const plan::Plan> &plan, int64_t batches,
                                   double stallTimeout) {
  std::shared_ptr<const runtime::Backend> backend = runtime::createCpuBackend();
  auto prepared = runtime::PreparedPlan::create(plan, *backend, 1);
  if (!prepared)
    return std::nullopt;
  runtime::SessionOptions options;
  options.stallTimeout = stallTimeout;
  options.batches = batches;
  auto session = runtime::Session::create(*prepared, backend, options);
  if (!session || (*session)->initializeStates(7))
    return std::nullopt;
  Results results;
  auto keep = [&](const std::string &name, const HostTensor &tensor) {
    auto *begin = reinterpret_cast<const std::byte *>(tensor.bytes.data());
    results[name].assign(begin, begin + tensor.bytes.size());
  };
  for (int step = 1; step <= 2; ++step) {
    TensorType type{DType::I32, {kBatch, kSeq}};
    for (const char *name : {"tokens", "labels"})
      for (int64_t batch = 0; batch < batches; ++batch)
        if ((*session)->setInput(name, randomTensor(type, uint64_t(10 * step + batch), name, 8),
                                 batch))
          return std::nullopt;
    if (trainStep(**session, 1e-2))
      return std::nullopt;
    for (const plan::Output *output : distinctOutputs(*plan))
      keep(output->name() + std::to_string(step), *(*session)->getOutput(output->name()));
  }
  for (const plan::State *state : distinctStates(*plan))
    keep(state->name(), *(*session)->getState(state->name()));
  return results;
}

/// The same. A plan that the verifier refuses may throw, as one with a wait before what it is for.
std::optional<Results> execute(const std::shared_ptr<const plan::Plan> &plan, int64_t batches,
                               double stallTimeout = 60) {
  try {
    return executePlan(plan, batches, stallTimeout);
  } catch (const std::exception &) {
    return std::nullopt;
  }
}

/// One change of a program.
class Mutation {
public:
  Mutation(plan::Program &program, std::mt19937_64 &random) : program(program), random(random) {}

  /// Describes the change; empty if there was nothing of the kind that was drawn.
  std::string apply() {
    switch (below(11)) {
    case 9:
      return reorderTransfer();
    case 10:
      return exchangeTransfers();
    case 8:
      return replaceSum();
    case 0:
      return workInPlace();
    case 1:
    case 2:
      return moveTo(/*fresh=*/false);
    case 3:
      return below(4) == 0 ? moveTo(/*fresh=*/true) : changeSlots();
    case 4:
    case 5:
      return reorderSchedule();
    case 6:
      return below(3) == 0 ? removeWait() : moveWait();
    default:
      return reorderInstructions();
    }
  }

private:
  int below(int size) { return int(random() % uint64_t(std::max(size, 1))); }
  plan::Buffer &buffer(uint32_t index) { return *program.mutable_buffers(int(index)); }
  plan::Task &anyTask() { return *program.mutable_tasks(below(program.tasks_size())); }

  uint64_t bytesOf(uint32_t storage) {
    uint64_t copy = (typeOf(buffer(storage)).numBytes() + 63) / 64 * 64;
    return copy * std::max(buffer(storage).slots(), 1u);
  }

  /// Puts all values of a storage at the place of `as`.
  void place(uint32_t storage, const plan::Buffer &as) {
    for (uint32_t b = 0; b < uint32_t(program.buffers_size()); ++b) {
      if (storageOf(program, b) != storage)
        continue;
      buffer(b).set_offset(as.offset());
      buffer(b).set_slots(as.slots());
      buffer(b).clear_slot_map();
      if (as.has_slot_map())
        buffer(b).set_slot_map(as.slot_map());
    }
  }

  std::string workInPlace() {
    for (int tries = 0; tries < 50; ++tries) {
      plan::Task &task = anyTask();
      const plan::KernelCall &call = task.instructions(below(task.instructions_size())).kernel();
      if (call.inputs().empty() || call.outputs().empty())
        continue;
      int i = below(call.inputs_size()), o = below(call.outputs_size());
      uint32_t from = storageOf(program, call.inputs(i)), to = storageOf(program, call.outputs(o));
      if (from == to || !mayRunInPlace(call.kernel(), i, o) ||
          typeOf(buffer(call.inputs(i))) != typeOf(buffer(call.outputs(o))))
        continue;
      place(to, plan::Buffer(buffer(from)));
      return "output " + std::to_string(o) + " of " + call.kernel() + " in task " + task.name() +
             " takes the place of input " + std::to_string(i);
    }
    return "";
  }

  std::string moveTo(bool fresh) {
    for (int tries = 0; tries < 50; ++tries) {
      uint32_t from = storageOf(program, uint32_t(below(program.buffers_size())));
      uint32_t to = storageOf(program, uint32_t(below(program.buffers_size())));
      if (from == to || buffer(from).kind() == plan::Buffer::PARAMETER)
        continue;
      plan::Buffer as = buffer(from);
      if (fresh) {
        as.set_offset((program.arena_bytes() + 63) / 64 * 64);
        program.set_arena_bytes(as.offset() + bytesOf(from));
      } else {
        as.set_offset(buffer(to).offset());
        if (as.offset() + bytesOf(from) > program.arena_bytes())
          continue;
      }
      place(from, as);
      return "buffer " + std::to_string(from) + " moves to " +
             (fresh ? "the end of the arena" : "buffer " + std::to_string(to));
    }
    return "";
  }

  std::string changeSlots() {
    for (int tries = 0; tries < 50; ++tries) {
      uint32_t storage = storageOf(program, uint32_t(below(program.buffers_size())));
      plan::Buffer as = buffer(storage);
      if (as.slots() == 0)
        continue;
      if (as.has_slot_map()) {
        plan::SlotMap &map = *program.mutable_slot_maps(int(as.slot_map()));
        map.set_slots(below(map.slots_size()), uint32_t(below(int(as.slots()))));
        return "slot map " + std::to_string(as.slot_map()) + " changes";
      }
      as.set_slots(as.slots() - 1);
      place(storage, as);
      return "buffer " + std::to_string(storage) + " has a slot less";
    }
    return "";
  }

  std::string reorderSchedule() {
    int count = program.schedule_size(), from = below(count), to = from + 1 + below(3);
    if (to >= count)
      return "";
    plan::ScheduleEntry entry = program.schedule(from);
    for (int i = from; i < to; ++i)
      *program.mutable_schedule(i) = plan::ScheduleEntry(program.schedule(i + 1));
    *program.mutable_schedule(to) = entry;
    return "schedule entry " + std::to_string(from) + " moves to " + std::to_string(to);
  }

  /// A value of the last microbatch instead of the sum.
  std::string replaceSum() {
    for (int tries = 0; tries < 50; ++tries) {
      plan::Task &task = anyTask();
      int index = below(task.instructions_size());
      if (task.instructions(index).kernel().kernel() != "accumulate")
        continue;
      plan::KernelCall &call = *task.mutable_instructions(index)->mutable_kernel();
      call.set_kernel("copy");
      call.clear_attributes();
      return "sum " + std::to_string(index) + " of task " + task.name() + " is a copy";
    }
    return "";
  }

  std::string removeWait() {
    for (int tries = 0; tries < 50; ++tries) {
      plan::Task &task = anyTask();
      int index = below(task.instructions_size());
      if (!task.instructions(index).has_wait())
        continue;
      task.mutable_instructions()->DeleteSubrange(index, 1);
      for (plan::Instruction &instruction : *task.mutable_instructions())
        if (instruction.has_wait() && int(instruction.wait().instruction()) > index)
          instruction.mutable_wait()->set_instruction(instruction.wait().instruction() - 1);
      return "wait " + std::to_string(index) + " of task " + task.name() + " is gone";
    }
    return "";
  }

  std::string moveWait() {
    for (int tries = 0; tries < 50; ++tries) {
      plan::Task &task = anyTask();
      int index = below(task.instructions_size());
      if (task.instructions(index).has_wait())
        return moveInstruction(task, index, index + 1 + below(8));
    }
    return "";
  }

  std::string reorderInstructions() {
    plan::Task &task = anyTask();
    int from = below(task.instructions_size());
    return moveInstruction(task, from, from + 1 + below(4));
  }

  std::string moveInstruction(plan::Task &task, int from, int to) {
    if (to >= task.instructions_size())
      return "";
    std::vector<int> order;
    for (int i = 0; i < task.instructions_size(); ++i)
      if (i != from)
        order.push_back(i);
    order.insert(order.begin() + to, from);
    std::vector<uint32_t> numberOf(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      numberOf[size_t(order[i])] = uint32_t(i);
    plan::Task moved;
    for (int i : order) {
      plan::Instruction &instruction = *moved.add_instructions();
      instruction = task.instructions(i);
      if (instruction.has_wait())
        instruction.mutable_wait()->set_instruction(numberOf[instruction.wait().instruction()]);
    }
    task.mutable_instructions()->Swap(moved.mutable_instructions());
    return "instruction " + std::to_string(from) + " of task " + task.name() + " moves to " +
           std::to_string(to);
  }

  /// One end of a channel moves two of its tensors, of one type, in each other's place.
  std::string reorderTransfer() {
    for (int tries = 0; tries < 50 && program.transfers_size() > 0; ++tries) {
      int number = below(program.transfers_size());
      plan::Transfer &transfer = *program.mutable_transfers(number);
      int i = below(transfer.buffers_size()), j = below(transfer.buffers_size());
      if (transfer.buffers(i) == transfer.buffers(j) ||
          typeOf(buffer(transfer.buffers(i))) != typeOf(buffer(transfer.buffers(j))))
        continue;
      transfer.mutable_buffers()->SwapElements(i, j);
      return "transfer " + std::to_string(number) + " has tensors " + std::to_string(i) + " and " +
             std::to_string(j) + " in each other's place";
    }
    return "";
  }

  /// One end of two channels has them, or what they move, in each other's place.
  std::string exchangeTransfers() {
    for (int tries = 0; tries < 50 && program.transfers_size() > 1; ++tries) {
      int i = below(program.transfers_size()), j = below(program.transfers_size());
      plan::Transfer &a = *program.mutable_transfers(i), &b = *program.mutable_transfers(j);
      if (i == j || a.kind() != b.kind() || a.peer() != b.peer() ||
          !std::equal(a.buffers().begin(), a.buffers().end(), b.buffers().begin(),
                      b.buffers().end(), [&](uint32_t left, uint32_t right) {
                        return typeOf(buffer(left)) == typeOf(buffer(right));
                      }))
        continue;
      bool exchangesBuffers = below(2) == 0;
      if (exchangesBuffers) {
        a.mutable_buffers()->Swap(b.mutable_buffers());
      } else {
        uint32_t channel = a.channel();
        a.set_channel(b.channel());
        b.set_channel(channel);
      }
      return "transfers " + std::to_string(i) + " and " + std::to_string(j) +
             " have each other's " + (exchangesBuffers ? "buffers" : "channels");
    }
    return "";
  }

  plan::Program &program;
  std::mt19937_64 &random;
};

/// A message more, between two programs, which nobody reads: from anywhere in one schedule to
/// anywhere in the other. Empty if the plan has one program.
std::string addMessage(plan::Plan &plan, std::mt19937_64 &random) {
  if (plan.programs_size() < 2)
    return "";
  const plan::Buffer &sent = plan.programs(0).buffers(int(plan.programs(0).states(0).buffer()));
  constexpr uint32_t kNewValue = 1u << 20;
  const uint32_t value = sent.has_value() ? sent.value() : kNewValue;
  std::string change = "a message more:";
  for (uint32_t end : {0, 1}) {
    plan::Program &program = *plan.mutable_programs(int(end));
    plan::Transfer &transfer = *program.add_transfers();
    transfer.set_kind(end == 0 ? plan::Transfer::SEND : plan::Transfer::RECEIVE);
    transfer.set_peer(1 - end);
    transfer.set_channel(1000);
    if (end == 0) {
      transfer.add_buffers(program.states(0).buffer());
      program.mutable_buffers(int(program.states(0).buffer()))->set_value(value);
    } else {
      plan::Buffer &buffer = *program.add_buffers();
      buffer = sent;
      buffer.set_kind(plan::Buffer::ACTIVATION);
      buffer.set_value(value);
      buffer.set_offset((program.arena_bytes() + 63) / 64 * 64);
      program.set_arena_bytes(buffer.offset() + typeOf(buffer).numBytes());
      transfer.add_buffers(uint32_t(program.buffers_size() - 1));
    }
    plan::Task &task = *program.add_tasks();
    task.set_name("message");
    uint32_t number = uint32_t(program.transfers_size() - 1);
    task.add_instructions()->mutable_start_transfer()->set_transfer(number);
    task.add_instructions()->mutable_finish_transfer()->set_transfer(number);
    // Where the loop begins or ends, the new entry is the first or the last one of the loop.
    auto at = uint32_t(random() % uint64_t(program.schedule_size() + 1));
    uint32_t begin = program.loop_begin(), last = program.loop_end();
    program.add_schedule()->set_task(uint32_t(program.tasks_size() - 1));
    for (int i = program.schedule_size() - 1; i > int(at); --i)
      program.mutable_schedule()->SwapElements(i, i - 1);
    program.set_loop_begin(begin + (at < begin));
    program.set_loop_end(last + (at <= last && last > begin));
    change += " " + std::to_string(at);
  }
  return change;
}

struct Original {
  Strategy strategy;
  std::shared_ptr<plan::Plan> plan;
  Results results;
};

std::vector<Original> compileAll() {
  std::vector<Original> all;
  for (const Strategy &each : kStrategies) {
    SCOPED_TRACE(each.text);
    Compiler compiler;
    auto module = compiler.importText(kConfig, "config.json", kBatch, kSeq);
    EXPECT_TRUE(module);
    toDouble(*module);
    std::shared_ptr<plan::Plan> plan = compiler.compileCopy(*module, strategy(each.text));
    EXPECT_TRUE(plan) << compiler.diagnostics();
    if (!plan)
      continue;
    plan->clear_entry_points();
    auto error = findPlanError(*plan, each.batches > 1);
    EXPECT_FALSE(error) << error->message;
    auto results = execute(plan, each.batches);
    EXPECT_TRUE(results);
    if (results)
      all.push_back({each, plan, std::move(*results)});
  }
  return all;
}

} // namespace

TEST(MutatedPlan, IsRefusedOrComputesTheSame) {
  std::vector<Original> originals = compileAll();
  ASSERT_EQ(originals.size(), std::size(kStrategies));
  uint64_t accepted = 0, differing = 0, refusedInVain = 0, ofTransfers = 0;
  const uint64_t count = forEachRandomCase(300, [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    std::shared_ptr<plan::Plan> plan;
    const Original *original = nullptr;
    int program = 0;
    std::string change;
    while (change.empty()) {
      original = &originals[random() % originals.size()];
      plan = std::make_shared<plan::Plan>(*original->plan);
      program = int(random() % uint64_t(plan->programs_size()));
      change = random() % 8 == 0 ? addMessage(*plan, random)
                                 : Mutation(*plan->mutable_programs(program), random).apply();
    }
    ofTransfers += change.starts_with("transfer");
    auto error = findPlanError(*plan, original->strategy.batches > 1);
    // Many that are refused hang.
    std::optional<Results> results = execute(plan, original->strategy.batches, error ? 0.1 : 60);
    bool same = results && *results == original->results;
    differing += !same;
    refusedInVain += error && same;
    accepted += !error;
    EXPECT_TRUE(error || same) << "strategy \"" << original->strategy.text << "\", program "
                               << program << ": " << change << (results ? "" : "; the run fails");
  });
  if (count == 0)
    return; // one seed alone
  std::cout << accepted << " of " << count << " changed plans were accepted, " << count - accepted
            << " refused; the execution of " << differing << " differs, of " << refusedInVain
            << " that were refused it does not; " << ofTransfers << " changes were of transfers\n";
  EXPECT_GT(accepted, 0u);
  EXPECT_GT(ofTransfers, 0u);
  EXPECT_GE(2 * differing, count) << "too few of the changes matter";
}

} // namespace mutatedPlanTest
