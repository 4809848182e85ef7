//===- VerifyDataflowTest.cpp - Operands find the values that they name ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanVerifier.h"

#include "plan/ClosingInstructions.h"
#include "plan/KernelTable.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TimeGuard.h"

#include <functional>
#include <gtest/gtest.h>
#include <numeric>

namespace verifyDataflowTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

using Order = std::vector<uint32_t>;

Order upTo(uint32_t end) {
  Order order(end);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// Task "prepare", then a loop in which task "add" adds values to a sum for the microbatches of
/// `order`, then task "use". Plans are verified as they are, not converted.
struct SumPlan : PlanBuilder {
  SumPlan(int64_t microbatches, const Order &order) {
    axis("micro", microbatches, /*temporal=*/true);
    s = state("s", DType::F32, {8}, {{}}).buffer();
    x = input("x", DType::F32, {8}, {{}}).buffer();
    value = buffer(DType::F32, {8});
    sum = buffer(DType::F32, {8});
    used = buffer(DType::F32, {8});
    prepared = buffer(DType::F32, {8});
    schedule(task("prepare"));
    program().set_loop_begin(1);
    task("add");
    for (uint32_t microbatch : order)
      schedule(1, microbatch);
    endLoop();
    kernel("neg", {x}, {value});
    accumulate(value, sum);
    task("use");
  }
  void endLoop() { program().set_loop_end(static_cast<uint32_t>(program().schedule_size())); }
  plan::KernelCall &accumulate(uint32_t from, uint32_t to) {
    plan::KernelCall &call = kernel("accumulate", {from}, {to});
    (*call.mutable_attributes())["axis"] = stringAttribute("micro");
    return call;
  }
  /// The error if the last task reads that after the loop.
  std::string errorOfUse(uint32_t buffer, bool repeatsLoop = false) {
    kernel("copy", {buffer}, {used});
    schedule(2);
    return messageOf(findPlanError(plan, repeatsLoop));
  }
  /// An instruction at the end of a task.
  void addTo(int task, const std::string &kernel, uint32_t input, uint32_t output) {
    plan::KernelCall *call = program().mutable_tasks(task)->add_instructions()->mutable_kernel();
    call->set_kernel(kernel);
    call->add_inputs(input);
    call->add_outputs(output);
    addRequiredAttributes(*call);
  }

  uint32_t s, x, value, sum, used, prepared;
};

std::string errorOfSum(int64_t microbatches, const Order &order, bool repeatsLoop = false) {
  SumPlan plan(microbatches, order);
  return plan.errorOfUse(plan.sum, repeatsLoop);
}

} // namespace

TEST(Sums, TakeEachMicrobatchOnceInTheirOrder) {
  EXPECT_EQ(errorOfSum(3, {0, 1, 2}), "");
  EXPECT_EQ(errorOfSum(3, {0, 1, 2}, /*repeatsLoop=*/true), "");
  EXPECT_EQ(errorOfSum(1, {0}), "");
  auto expectFound = [](const Order &order, uint32_t found, uint32_t expected) {
    std::string error = errorOfSum(3, order);
    EXPECT_TRUE(contains(error, "(kernel accumulate), microbatch"));
    EXPECT_TRUE(contains(error, "the output that it adds to (buffer 3, f32[8]) holds the sum up to "
                                "microbatch " +
                                    std::to_string(found)));
    EXPECT_TRUE(contains(error, "expected the sum up to microbatch " + std::to_string(expected) +
                                    ": sums take microbatches in their order, each once"));
  };
  expectFound({0, 2}, 0, 1);
  expectFound({0, 2, 1}, 0, 1);
  expectFound({0, 1, 1, 2}, 1, 0);
  expectFound({0, 1, 2, 2}, 2, 1);
  expectFound({0, 1, 2, 1}, 2, 0);
  EXPECT_TRUE(contains(errorOfSum(3, {1, 2}),
                       "the output that it adds to (buffer 3, f32[8]) is read before it is "
                       "written"));
  EXPECT_TRUE(contains(errorOfSum(3, {2, 1, 0}), "is read before it is written"));
}

TEST(Sums, HaveAllMicrobatchesBehindTheLoop) {
  EXPECT_TRUE(contains(errorOfSum(3, {0, 1}),
                       "task \"use\", instruction 0 (kernel copy), microbatch 0: input 0 (buffer "
                       "3, f32[8]) is read after the loop over microbatches and holds the sum up "
                       "to microbatch 1, written by task \"add\", instruction 1 (kernel "
                       "accumulate), microbatch 1; expected the sum of all 3"));
  EXPECT_TRUE(contains(errorOfSum(3, {0, 1, 2, 0}), "holds the sum up to microbatch 0"));
  EXPECT_TRUE(contains(errorOfSum(3, {}), "input 0 (buffer 3, f32[8]) is read before"));
}

TEST(Sums, GoOnInEachRunOfTheLoop) {
  // Complete in one run, but the second run would add to the first half of itself.
  EXPECT_EQ(errorOfSum(2, {0, 1, 0, 1}), "");
  EXPECT_TRUE(contains(errorOfSum(2, {0, 1, 0, 1}, /*repeatsLoop=*/true),
                       "when the loop over microbatches runs again: task \"add\""));
  // Something that takes the place of the sum between two runs, which one run does not mind.
  SumPlan plan(1, {0});
  plan.kernel("copy", {plan.sum}, {plan.used});
  plan.schedule(2, 0);
  plan.task("clobber");
  uint32_t other = plan.buffer(DType::F32, {8});
  plan.program()
      .mutable_buffers(static_cast<int>(other))
      ->set_offset(plan.program().buffers(static_cast<int>(plan.sum)).offset());
  plan.kernel("neg", {plan.s}, {other});
  plan.schedule(3, 0);
  plan.endLoop();
  EXPECT_OK(findPlanError(plan.plan));
  EXPECT_ERROR(findPlanError(plan.plan, /*repeatsLoop=*/true),
               "the output that it adds to (buffer 3, f32[8]) does not hold its value any more: "
               "buffer 6");
}

TEST(Sums, AreFollowedOverManyMicrobatches) {
  constexpr uint32_t count = 1000;
  for (bool repeatsLoop : {false, true})
    EXPECT_EQ(errorOfSum(count, upTo(count), repeatsLoop), "");
  EXPECT_TRUE(contains(errorOfSum(count, upTo(count - 1)),
                       "holds the sum up to microbatch 998, written by"));
  EXPECT_TRUE(contains(errorOfSum(count, upTo(count - 1)), "expected the sum of all 1000"));
  Order gap = upTo(count);
  gap.erase(gap.begin() + 500);
  EXPECT_TRUE(contains(errorOfSum(count, gap), "microbatch 501: the output that it adds to"));
  EXPECT_TRUE(contains(errorOfSum(count, gap), "holds the sum up to microbatch 499"));
  Order twice = upTo(count);
  twice.insert(twice.begin() + 500, 500);
  EXPECT_TRUE(contains(errorOfSum(count, twice), "holds the sum up to microbatch 500"));
  Order swapped = upTo(count);
  std::swap(swapped[500], swapped[501]);
  EXPECT_TRUE(contains(errorOfSum(count, swapped), "holds the sum up to microbatch 499"));
  // After them, the value is that of the last one.
  auto errorOfLate = [](uint32_t microbatch) {
    SumPlan plan(count, upTo(count));
    plan.schedule(2, microbatch);
    plan.kernel("copy", {plan.value}, {plan.used});
    plan.endLoop();
    return messageOf(findPlanError(plan.plan));
  };
  EXPECT_EQ(errorOfLate(count - 1), "");
  EXPECT_TRUE(contains(errorOfLate(count - 2), "should hold the value of microbatch 998, but holds "
                                               "that of microbatch 999"));
  EXPECT_TRUE(contains(errorOfLate(2), "should hold the value of microbatch 2"));
}

TEST(Sums, WhatIsNotFollowedMakesNoOtherValueNew) {
  // Task "early" runs for microbatches 0 to 2, before "add" runs for all ten. Its value stays that
  // of microbatch 2.
  auto errorOfLate = [](uint32_t microbatch) {
    SumPlan plan(10, {});
    uint32_t early = plan.task("early");
    uint32_t made = plan.buffer(DType::F32, {8});
    plan.kernel("neg", {plan.x}, {made});
    for (uint32_t m : upTo(3))
      plan.schedule(early, m);
    for (uint32_t m : upTo(10))
      plan.schedule(1, m);
    plan.schedule(2, microbatch);
    plan.addTo(2, "copy", made, plan.used);
    plan.endLoop();
    return messageOf(findPlanError(plan.plan));
  };
  EXPECT_EQ(errorOfLate(2), "");
  EXPECT_TRUE(contains(errorOfLate(9), "should hold the value of microbatch 9, but holds that of "
                                       "microbatch 2"));
}

TEST(Loops, OnlySumsLeaveALoopOfSeveralMicrobatches) {
  SumPlan several(3, {0, 1, 2}), one(1, {0});
  EXPECT_TRUE(contains(several.errorOfUse(several.value),
                       "input 0 (buffer 2, f32[8]) is read after the loop over microbatches and "
                       "holds the value of microbatch 2, written by task \"add\", instruction 0 "
                       "(kernel neg), microbatch 2; expected a sum, or what is made outside of the "
                       "loop"));
  EXPECT_EQ(one.errorOfUse(one.value), "");
  SumPlan outside(3, {0, 1, 2});
  outside.addTo(0, "neg", outside.s, outside.prepared);
  EXPECT_EQ(outside.errorOfUse(outside.prepared, /*repeatsLoop=*/true), "");
  SumPlan output(3, {0, 1, 2});
  output.output("value", DType::F32, {8}, {{}}, output.value);
  EXPECT_TRUE(contains(messageOf(findPlanError(output.plan)),
                       "output \"value\", after the step: its tensor (buffer 2, f32[8]) is read "
                       "after the loop"));
}

TEST(RepeatedLoops, AreLeftBySumsAlone) {
  // The value of the only microbatch is the sum in one repetition; in several it is the last one's.
  SumPlan once(1, {0}), again(1, {0}), output(1, {0});
  EXPECT_EQ(once.errorOfUse(once.value), "");
  EXPECT_TRUE(
      contains(again.errorOfUse(again.value, /*repeatsLoop=*/true),
               "input 0 (buffer 2, f32[8]) is read after the loop over microbatches and "
               "holds the value of microbatch 0 of the last repetition of the loop, written "
               "by task \"add\", instruction 0 (kernel neg)"));
  output.output("value", DType::F32, {8}, {{}}, output.value);
  EXPECT_OK(findPlanError(output.plan));
  EXPECT_ERROR(findPlanError(output.plan, /*repeatsLoop=*/true),
               "output \"value\", after the step: its tensor (buffer 2, f32[8]) is read after the "
               "loop");
  EXPECT_EQ(errorOfSum(1, {0}, /*repeatsLoop=*/true), "");
}

TEST(ClosingInstructions, ReadWholeSumsInTheLoop) {
  // "add" makes `prepared` of the sum, for the last microbatch alone, and "use" reads it.
  for (bool repeatsLoop : {false, true})
    for (uint32_t count : {1u, 2u, 5u, 1000u}) {
      SumPlan plan(count, upTo(count));
      plan.addTo(1, "neg", plan.sum, plan.prepared);
      ClosingInstructions closing(plan.program());
      EXPECT_TRUE(closing.contains(1, 2));
      EXPECT_FALSE(closing.contains(1, 0) || closing.contains(1, 1) || closing.anyIn(2));
      EXPECT_EQ(closing.countRuns(1, 2, count), 1u);
      EXPECT_EQ(closing.countRuns(1, 1, count), count);
      EXPECT_EQ(plan.errorOfUse(plan.prepared, repeatsLoop), "");
    }
  // Also through another one.
  SumPlan chain(3, upTo(3));
  chain.addTo(1, "neg", chain.sum, chain.prepared);
  uint32_t last = chain.buffer(DType::F32, {8});
  chain.addTo(1, "neg", chain.prepared, last);
  EXPECT_TRUE(ClosingInstructions(chain.program()).contains(1, 3));
  EXPECT_EQ(chain.errorOfUse(last, /*repeatsLoop=*/true), "");
}

TEST(ClosingInstructions, AreFoundInWhateverOrderTheyStand) {
  // Each makes what the one before it reads, the last one of the sum; many, as one look at all for
  // each of them would not come to an end.
  constexpr int count = 1 << 18;
  SumPlan plan(2, upTo(2));
  std::vector<uint32_t> made = {plan.sum};
  for (int i = 0; i < count; ++i)
    made.push_back(plan.buffer(DType::F32, {8}));
  for (size_t i = made.size() - 1; i > 0; --i)
    plan.addTo(1, "neg", made[i - 1], made[i]);
  ClosingInstructions closing(plan.program());
  EXPECT_FALSE(closing.contains(1, 0) || closing.contains(1, 1));
  for (int i = 2; i < count + 2; ++i)
    ASSERT_TRUE(closing.contains(1, i)) << i;
}

TEST(ClosingInstructions, ReadNoSumOfFewerMicrobatches) {
  SumPlan early(3, {0, 1});
  early.addTo(1, "neg", early.sum, early.prepared);
  EXPECT_TRUE(contains(early.errorOfUse(early.prepared),
                       "is read after the loop over microbatches and holds the value of microbatch "
                       "1"));
  // Before the sum has the last microbatch.
  SumPlan before(3, {});
  uint32_t first = before.task("first");
  before.addTo(static_cast<int>(first), "neg", before.sum, before.prepared);
  for (uint32_t microbatch : upTo(3)) {
    before.schedule(first, microbatch);
    before.schedule(1, microbatch);
  }
  before.endLoop();
  EXPECT_ERROR(findPlanError(before.plan), "task \"first\", instruction 0 (kernel neg), microbatch "
                                           "2: input 0 (buffer 3, f32[8]) should hold the value of "
                                           "microbatch 2, but holds that of microbatch 1");
}

TEST(ClosingInstructions, ReadNoValueOfOneMicrobatch) {
  // `prepared` is made of the sum, and of the value of a microbatch or of a state.
  auto errorOf = [](uint32_t SumPlan::*other, uint32_t count, bool repeatsLoop) {
    SumPlan plan(count, upTo(count));
    plan.addTo(1, "add", plan.sum, plan.prepared);
    plan.program().mutable_tasks(1)->mutable_instructions(2)->mutable_kernel()->add_inputs(plan.*
                                                                                           other);
    return plan.errorOfUse(plan.prepared, repeatsLoop);
  };
  for (bool repeatsLoop : {false, true}) {
    EXPECT_EQ(errorOf(&SumPlan::s, 2, repeatsLoop), "");
    EXPECT_TRUE(
        contains(errorOf(&SumPlan::value, 2, repeatsLoop),
                 "instruction 2 (kernel add), microbatch 1: input 1 (buffer 2, f32[8]) is "
                 "read by an instruction that runs for the last microbatch alone and holds "
                 "the value of microbatch 1, written by task \"add\", instruction 0 (kernel "
                 "neg), microbatch 1; expected a sum, or what is made outside of the loop"));
    EXPECT_EQ(errorOf(&SumPlan::value, 1, repeatsLoop).empty(), !repeatsLoop);
  }
}

TEST(ClosingInstructions, LeaveBytesAloneThatAreNeeded) {
  // `prepared` lies where `value` does: "add" reads `value` before and makes it again, so that this
  // is right only as the last microbatch has no other one after it.
  auto errorOf = [](uint32_t SumPlan::*below, bool repeatsLoop) {
    SumPlan plan(3, upTo(3));
    plan.program()
        .mutable_buffers(static_cast<int>(plan.prepared))
        ->set_offset(plan.program().buffers(static_cast<int>(plan.*below)).offset());
    plan.addTo(1, "neg", plan.sum, plan.prepared);
    return plan.errorOfUse(plan.prepared, repeatsLoop);
  };
  for (bool repeatsLoop : {false, true}) {
    EXPECT_EQ(errorOf(&SumPlan::value, repeatsLoop), "");
    EXPECT_TRUE(contains(errorOf(&SumPlan::s, repeatsLoop), "state \"s\", after the step"));
  }
  // A later task of the loop writes there.
  SumPlan later(3, {});
  uint32_t clobber = later.task("clobber");
  uint32_t other = later.buffer(DType::F32, {8});
  later.program()
      .mutable_buffers(static_cast<int>(other))
      ->set_offset(later.program().buffers(static_cast<int>(later.prepared)).offset());
  later.kernel("neg", {later.x}, {other});
  later.addTo(1, "neg", later.sum, later.prepared);
  for (uint32_t microbatch : upTo(3)) {
    later.schedule(1, microbatch);
    later.schedule(clobber, microbatch);
  }
  later.endLoop();
  later.addTo(2, "copy", later.prepared, later.used);
  later.schedule(2);
  EXPECT_ERROR(findPlanError(later.plan), "does not hold its value any more: buffer 6");
}

TEST(ClosingInstructions, MakeShardsInTheBytesOfSumsThatAreScattered) {
  // "add" scatters two sums, each to a shard of its own. The second shard lies in the bytes of
  // `below`.
  struct TwoScatters : SumPlan {
    TwoScatters(uint32_t SumPlan::*below, const std::vector<bool> &order) : SumPlan(3, upTo(3)) {
      axis("a", 2);
      other = buffer(DType::F32, {8});
      for (bool second : {false, true})
        shards[second] = buffer(DType::F32, {4});
      addTo(1, "accumulate", value, other);
      program()
          .mutable_buffers(static_cast<int>(shards[true]))
          ->set_offset(program().buffers(static_cast<int>(this->*below)).offset());
      std::vector<uint32_t> started;
      for (bool second : order)
        started.push_back(scatter(second ? other : sum, shards[second]));
      for (uint32_t instruction : started)
        add().mutable_wait()->set_instruction(instruction);
      for (bool second : {false, true})
        kernel("copy", {shards[second]}, {buffer(DType::F32, {4})});
      schedule(2);
    }
    plan::Instruction &add() { return *program().mutable_tasks(1)->add_instructions(); }
    uint32_t scatter(uint32_t input, uint32_t output) {
      plan::Collective &collective = *add().mutable_collective();
      collective.set_kind(plan::Collective::REDUCE_SCATTER);
      collective.set_reduction(plan::Collective::SUM);
      collective.add_axes("a");
      collective.add_tensors()->set_input(input);
      collective.mutable_tensors(0)->set_output(output);
      collective.set_async(true);
      return static_cast<uint32_t>(program().tasks(1).instructions_size() - 1);
    }
    uint32_t other, shards[2];
  };
  for (bool repeatsLoop : {false, true}) {
    EXPECT_OK(findPlanError(TwoScatters(&SumPlan::sum, {false, true}).plan, repeatsLoop));
    // The sum is scattered after its bytes have been written.
    EXPECT_ERROR(findPlanError(TwoScatters(&SumPlan::sum, {true, false}).plan, repeatsLoop),
                 "until the wait for it");
    EXPECT_ERROR(findPlanError(TwoScatters(&SumPlan::s, {false, true}).plan, repeatsLoop),
                 "state \"s\", after the step");
  }
  // Something else reads the sum after the loop.
  TwoScatters read(&SumPlan::sum, {false, true});
  read.addTo(2, "copy", read.sum, read.used);
  EXPECT_ERROR(findPlanError(read.plan), "does not hold its value any more");
}

TEST(ClosingInstructions, AreNotWhatOthersWaitFor) {
  // "add" starts a collective of `value` and a closing one of the sum, and waits for both.
  struct TwoCollectives : SumPlan {
    TwoCollectives() : SumPlan(2, {0, 1}) {
      axis("a", 2);
      reduced = buffer(DType::F32, {8});
      first = start(value, reduced);
      closing = start(sum, prepared);
    }
    plan::Instruction &add() { return *program().mutable_tasks(1)->add_instructions(); }
    uint32_t start(uint32_t input, uint32_t output) {
      plan::Collective &collective = *add().mutable_collective();
      collective.set_kind(plan::Collective::ALL_REDUCE);
      collective.set_reduction(plan::Collective::SUM);
      collective.add_axes("a");
      collective.add_tensors()->set_input(input);
      collective.mutable_tensors(0)->set_output(output);
      collective.set_async(true);
      return static_cast<uint32_t>(program().tasks(1).instructions_size() - 1);
    }
    void waitFor(uint32_t instruction) { add().mutable_wait()->set_instruction(instruction); }
    uint32_t reduced, first, closing;
  };
  TwoCollectives valid;
  valid.waitFor(valid.first);
  valid.addTo(1, "neg", valid.reduced, valid.used);
  valid.waitFor(valid.closing);
  EXPECT_TRUE(ClosingInstructions(valid.program()).contains(1, 6)) << "the wait";
  EXPECT_OK(findPlanError(valid.plan, /*repeatsLoop=*/true));
  // The lane is through with the first one when the second one ends, which only the last has.
  TwoCollectives late;
  late.waitFor(late.closing);
  late.addTo(1, "neg", late.reduced, late.used);
  late.waitFor(late.first);
  EXPECT_ERROR(findPlanError(late.plan), "for a microbatch but the last: task \"add\", instruction "
                                         "5 (kernel neg): reads buffer 6 (f32[8])");
  TwoCollectives after;
  uint32_t third = after.start(after.value, after.used);
  after.program()
      .mutable_tasks(1)
      ->mutable_instructions(static_cast<int>(third))
      ->add_after(after.closing);
  EXPECT_ERROR(findPlanError(after.plan),
               "comes after instruction 3 (all_reduce), which runs for the "
               "last microbatch alone; expected one that runs for each "
               "microbatch");
}

TEST(RepeatedLoops, DrawTheMasksOfEachRunInIt) {
  // "prepare" makes a value from the random key, and the loop makes another one from that.
  auto errorOf = [](const char *kernel, bool repeatsLoop) {
    SumPlan plan(2, {0, 1});
    plan::State &key = plan.state("key", DType::I32, {2}, {{}});
    key.set_kind(plan::State::RANDOM_KEY);
    plan.addTo(0, kernel, plan.s, plan.prepared);
    plan::KernelCall &call =
        *plan.program().mutable_tasks(0)->mutable_instructions(0)->mutable_kernel();
    while (call.inputs_size() + 1 < findKernel(kernel).inputs.most)
      call.add_inputs(plan.s);
    call.add_inputs(key.buffer());
    while (call.outputs_size() < findKernel(kernel).outputs)
      call.add_outputs(plan.buffer(DType::F32, {8}));
    plan.addTo(1, "neg", plan.prepared, plan.used);
    return messageOf(findPlanError(plan.plan, repeatsLoop));
  };
  for (const char *kernel : {"dropout", "attention", "attention_grad"}) {
    EXPECT_EQ(errorOf(kernel, false), "");
    EXPECT_TRUE(
        contains(errorOf(kernel, true),
                 "is made from the data of one repetition of the loop over microbatches, written "
                 "by task \"prepare\", instruction 0"));
  }
  EXPECT_EQ(errorOf("add", true), "");
}

TEST(RepeatedLoops, DoNotReadWhatIsMadeOfTheDataOfAnEarlierRun) {
  // "prepare" makes a value from `from`, and the loop makes another one from that.
  auto errorOf = [](uint32_t SumPlan::*from, bool repeatsLoop,
                    plan::Input::Role role = plan::Input::DATA) {
    SumPlan plan(2, {0, 1});
    plan.program().mutable_inputs(0)->set_role(role);
    if (role == plan::Input::BATCHES) {
      plan.program().mutable_inputs(0)->clear_shape();
      plan.program().mutable_inputs(0)->clear_sharding();
      plan.program().mutable_buffers(static_cast<int>(plan.x))->clear_shape();
    }
    plan.addTo(0, "neg", plan.*from, plan.prepared);
    plan.addTo(1, "neg", plan.prepared, plan.used);
    return messageOf(findPlanError(plan.plan, repeatsLoop));
  };
  EXPECT_EQ(errorOf(&SumPlan::x, false), "");
  EXPECT_EQ(errorOf(&SumPlan::s, true), "");
  EXPECT_EQ(errorOf(&SumPlan::x, true, plan::Input::BATCHES), "");
  std::string error = errorOf(&SumPlan::x, true);
  EXPECT_TRUE(contains(error,
                       "when the loop over microbatches runs again: task \"add\", "
                       "instruction 2 (kernel neg), microbatch 0: input 0 (buffer 5, f32[8]) "
                       "is made from the data of one repetition of the loop over microbatches, "
                       "written by task \"prepare\", instruction 0 (kernel neg), microbatch "
                       "0, and read in another one"));
  // After the loop it would be that of the first run, and the input that of the last.
  SumPlan behind(2, {0, 1});
  behind.addTo(0, "neg", behind.x, behind.prepared);
  EXPECT_TRUE(contains(behind.errorOfUse(behind.prepared, /*repeatsLoop=*/true),
                       "is made from the data of one repetition of the loop over microbatches"));
  SumPlan input(2, {0, 1});
  EXPECT_TRUE(
      contains(input.errorOfUse(input.x, /*repeatsLoop=*/true), "and read outside of the loop"));
  SumPlan once(2, {0, 1});
  EXPECT_EQ(once.errorOfUse(once.x), "");
}

TEST(RepeatedLoops, DoNotReceiveWhatIsMadeOfTheDataOfAnEarlierRun) {
  // The first program makes a value of its data before the loop and sends it; the second receives
  // it before the loop and reads it in every run.
  PlanBuilder builder;
  builder.pipelineAxis("pp", 2);
  builder.axis("micro", 2, /*temporal=*/true);
  for (uint32_t program : {0, 1}) {
    builder.inProgram(static_cast<int>(program));
    uint32_t made = builder.buffer(DType::F32, {8}), used = builder.buffer(DType::F32, {8});
    builder.transfer(program == 0 ? plan::Transfer::SEND : plan::Transfer::RECEIVE, 1 - program, 0,
                     {made});
    builder.schedule(builder.task("prepare"));
    if (program == 0)
      builder.kernel("neg", {builder.input("x", DType::F32, {8}, {{}}).buffer()}, {made});
    builder.startTransfer(0);
    builder.finishTransfer(0);
    builder.task("loop");
    if (program == 1)
      builder.kernel("neg", {made}, {used});
    builder.schedule(1, 0);
    builder.schedule(1, 1);
    builder.program().set_loop_begin(1);
    builder.program().set_loop_end(3);
  }
  EXPECT_OK(findPlanError(builder.plan));
  EXPECT_ERROR(findPlanError(builder.plan, /*repeatsLoop=*/true),
               "the data of one repetition of the loop");
}

namespace {

/// A state that "read" copies and "update" doubles in place, in that order of the schedule.
std::string errorOfOrder(bool readFirst, bool inOneTask = false) {
  PlanBuilder builder;
  uint32_t s = builder.state("s", DType::F32, {8}, {{}}).buffer();
  plan::Buffer updated = builder.program().buffers(static_cast<int>(s));
  updated.set_reuses(s);
  *builder.program().add_buffers() = updated;
  builder.program().mutable_states(0)->set_update(1);
  uint32_t copy = builder.buffer(DType::F32, {8});
  for (bool read : {readFirst, !readFirst}) {
    if (!inOneTask || builder.program().tasks_size() == 0)
      builder.schedule(builder.task(inOneTask ? "both" : read ? "read" : "update"));
    if (read)
      builder.kernel("copy", {s}, {copy});
    else
      builder.kernel("add", {s, s}, {1});
  }
  return messageOf(findPlanError(builder.plan));
}

} // namespace

TEST(Updates, AreNotReadAsTheStateBeforeTheStep) {
  EXPECT_EQ(errorOfOrder(/*readFirst=*/true), "");
  EXPECT_EQ(errorOfOrder(/*readFirst=*/true, /*inOneTask=*/true), "");
  EXPECT_TRUE(
      contains(errorOfOrder(/*readFirst=*/false),
               "task \"read\", instruction 0 (kernel copy): input 0 (buffer 0, f32[8]) does "
               "not hold its value any more: buffer 1, f32[8], which shares bytes of the "
               "arena with it, was written since by task \"update\", instruction 0 (kernel "
               "add)"));
  EXPECT_TRUE(contains(errorOfOrder(/*readFirst=*/false, /*inOneTask=*/true),
                       "input 0 (buffer 0, f32[8]) does not hold its value any more: buffer 1"));
}

TEST(VerifyDataflow, AViewHasTheValueOfItsBuffer) {
  PlanBuilder builder;
  uint32_t whole = builder.buffer(DType::F32, {16});
  uint32_t view = builder.view(whole, DType::F32, {4, 4});
  uint32_t other = builder.buffer(DType::F32, {16}), copy = builder.buffer(DType::F32, {4, 4});
  builder.task("t");
  builder.schedule(0);
  builder.kernel("fill", {}, {whole});
  builder.kernel("fill", {}, {other});
  builder.kernel("copy", {view}, {copy});
  EXPECT_OK(findPlanError(*builder.build()));
  // Something else lies in the bytes by then.
  builder.program().mutable_buffers(static_cast<int>(other))->set_offset(0);
  EXPECT_ERROR(findPlanError(*builder.build()),
               "instruction 2 (kernel copy): input 0 (buffer 1, f32[4,4]) does not hold its value "
               "any more: buffer 2, f32[16], which shares bytes of the arena with it, was written "
               "since by task \"t\", instruction 1 (kernel fill)");
  builder.program().mutable_buffers(static_cast<int>(view))->set_view_of(3);
  EXPECT_ERROR(findPlanError(*builder.build()),
               "buffer 1: is a view of buffer 3; expected one before it");
  builder.program().mutable_buffers(static_cast<int>(view))->set_view_of(whole);
  builder.program().mutable_buffers(static_cast<int>(view))->set_dtype(plan::I32);
  EXPECT_ERROR(findPlanError(*builder.build()), "expected as many elements of the same type");
}

TEST(VerifyDataflow, ViewsCountByTheirBytes) {
  // A part of a value is another value, and two parts beside each other are not the whole.
  struct Parts : PlanBuilder {
    Parts() {
      whole = buffer(DType::F32, {32});
      low = view(whole, DType::F32, {16});
      high = view(whole, DType::F32, {16});
      program().mutable_buffers(static_cast<int>(high))->set_offset(64);
      copy = buffer(DType::F32, {32});
      copyOfPart = buffer(DType::F32, {16});
      schedule(task("t"));
    }
    std::string error() { return messageOf(findPlanError(*build())); }
    uint32_t whole, low, high, copy, copyOfPart;
  };
  Parts halves;
  halves.kernel("fill", {}, {halves.low});
  halves.kernel("fill", {}, {halves.high});
  halves.kernel("copy", {halves.high}, {halves.copyOfPart});
  EXPECT_EQ(halves.error(), "");
  halves.kernel("copy", {halves.whole}, {halves.copy});
  EXPECT_TRUE(contains(halves.error(),
                       "instruction 3 (kernel copy): input 0 (buffer 0, f32[32]) is read before it "
                       "is written"));
  halves.program().mutable_tasks(0)->mutable_instructions()->DeleteSubrange(1, 2);
  EXPECT_TRUE(contains(halves.error(), "instruction 1 (kernel copy): input 0 (buffer 0, f32[32]) "
                                       "is read before it is written"));
  Parts part;
  part.kernel("fill", {}, {part.whole});
  part.kernel("copy", {part.low}, {part.copyOfPart});
  EXPECT_TRUE(contains(part.error(), "instruction 1 (kernel copy): input 0 (buffer 1, f32[16]) "
                                     "is read before it is written"));
  Parts broken;
  broken.kernel("fill", {}, {broken.whole});
  broken.kernel("fill", {}, {broken.high});
  broken.kernel("copy", {broken.whole}, {broken.copy});
  EXPECT_TRUE(contains(broken.error(), "input 0 (buffer 0, f32[32]) does not hold its value any "
                                       "more: buffer 2, f32[16]"));
}

TEST(VerifyDataflow, StatesAreLookedThroughOnceForRandomKeys) {
  // 2 * 10^10 pairs of a state and an operand, if each operand of a mask looked through them.
  constexpr int states = 100000, masks = 100;
  PlanBuilder builder;
  builder.axis("micro", 1000, /*temporal=*/true);
  for (int i = 0; i < states; ++i)
    builder.state("s" + std::to_string(i), DType::F32, {0}, {{}});
  builder.task("t");
  uint32_t x = builder.slotted(DType::F32, {8}, 1);
  builder.kernel("fill", {}, {x});
  for (int i = 0; i < masks; ++i) {
    uint32_t y = builder.slotted(DType::F32, {8}, 1);
    builder.kernel("dropout", {x, x}, {y});
    x = y;
  }
  for (uint32_t i = 0; i < 1000; ++i)
    builder.schedule(0, i);
  TimeGuard guard(std::chrono::seconds(30), "looking for random keys");
  EXPECT_OK(findPlanError(*builder.build()));
}

TEST(VerifyDataflow, ALongScheduleIsWalkedInLinearTime) {
  PlanBuilder builder;
  builder.axis("micro", 100000, /*temporal=*/true);
  uint32_t a = builder.buffer(DType::F32, {8});
  builder.task("t");
  for (int i = 0; i < 5000; ++i)
    builder.kernel("fill", {}, {a});
  for (uint32_t i = 0; i < 100000; ++i)
    builder.schedule(0, i);
  EXPECT_OK(findPlanError(*builder.build()));
}

} // namespace verifyDataflowTest
