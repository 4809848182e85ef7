//===- EntryPointsTest.cpp - Further entry points, and loops that repeat --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanChecks.h"
#include "plan/PlanTypes.h"
#include "plan/PlanVerifier.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"

#include <functional>
#include <gtest/gtest.h>

namespace entryPointsTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

/// A training plan with itself as the entry point "again".
static std::shared_ptr<plan::Plan> planWithCompanion() {
  auto plan = trainingPlan({2, 2, 2});
  plan::Plan copy = *plan;
  copy.set_entry("again");
  *plan->add_entry_points() = copy;
  return plan;
}

static std::string errorAfter(const std::function<void(plan::Plan &, plan::Plan &)> &change) {
  auto plan = planWithCompanion();
  change(*plan, *plan->mutable_entry_points(0));
  return messageOf(findPlanError(*plan));
}

#define EXPECT_ERROR_AFTER(part, ...)                                                              \
  EXPECT_TRUE(                                                                                     \
      contains(errorAfter([](plan::Plan &plan, plan::Plan &entryPoint) { __VA_ARGS__; }), part))

TEST(EntryPoints, AreFoundByName) {
  auto plan = planWithCompanion();
  EXPECT_OK(findPlanError(*plan));
  EXPECT_EQ(findEntryPoint(*plan, ""), plan.get());
  EXPECT_EQ(findEntryPoint(*plan, "again"), &plan->entry_points(0));
  EXPECT_EQ(findEntryPoint(*plan, "other"), nullptr);
}

TEST(EntryPoints, HaveNames) {
  EXPECT_ERROR_AFTER("an entry point has no name", entryPoint.clear_entry());
  EXPECT_ERROR_AFTER("two entry points are named \"again\"",
                     *plan.add_entry_points() = plan::Plan(entryPoint));
  EXPECT_ERROR_AFTER("is the entry point \"again\" of another one", plan = plan::Plan(entryPoint));
  EXPECT_ERROR_AFTER(
      "at most 16 are allowed", for (int i = 0; i < 16; ++i) {
        plan::Plan copy = entryPoint;
        copy.set_entry("again" + std::to_string(i));
        *plan.add_entry_points() = copy;
      });
}

TEST(EntryPoints, AreWholePlansOnTheSameMesh) {
  EXPECT_ERROR_AFTER("entry point \"again\": has entry points of its own",
                     plan::Plan copy = entryPoint;
                     *entryPoint.add_entry_points() = copy);
  EXPECT_ERROR_AFTER("entry point \"again\": its mesh axes are not those of the plan",
                     entryPoint.mutable_axes(0)->set_size(4));
  EXPECT_ERROR_AFTER("entry point \"again\": plan version 3 is older", entryPoint.set_version(3));
  EXPECT_ERROR_AFTER("entry point \"again\": the plan has 0 programs", entryPoint.clear_programs());
}

TEST(EntryPoints, AreFollowedWithinOneLimit) {
  auto alone = trainingPlan({2, 2, 2}), both = planWithCompanion();
  auto passes = [](int64_t steps, const plan::Plan &plan) {
    return bool(verifyWithin(WorkLimit(steps, steps), plan, /*repeatsLoop=*/false));
  };
  int64_t steps = 1;
  while (!passes(steps, *alone))
    ++steps;
  EXPECT_TRUE(passes(2 * steps, *both));
  EXPECT_FALSE(passes(2 * steps - 1, *both));
  EXPECT_ERROR(verifyWithin(WorkLimit(2 * steps, 2 * steps - 1), *both, /*repeatsLoop=*/false),
               "entry point \"again\": output \"token_sum\", after the step: the schedules of all "
               "programs together run more than");
}

TEST(EntryPoints, ShareStates) {
  EXPECT_ERROR_AFTER("entry point \"again\": program 0: state 1 is \"other\"",
                     entryPoint.mutable_programs(0)->mutable_states(1)->set_name("other"));
  // One that the plan does not use.
  EXPECT_ERROR_AFTER("entry point \"again\": program 0 has 4 states; expected 5",
                     plan::Program &program = *plan.mutable_programs(0);
                     plan::State &state = *program.add_states(); state = program.states(1);
                     state.set_name("unused"); state.clear_update();
                     plan::Buffer buffer = program.buffers(static_cast<int>(state.buffer()));
                     buffer.set_offset((program.arena_bytes() + 63) / 64 * 64);
                     program.set_arena_bytes(buffer.offset() + 4096);
                     state.set_buffer(static_cast<uint32_t>(program.buffers_size()));
                     *program.add_buffers() = buffer);
  // The same states in another place.
  EXPECT_ERROR_AFTER("expected the same in the same place",
                     plan::Program &program = *entryPoint.mutable_programs(0);
                     for (plan::Buffer &buffer
                          : *program.mutable_buffers()) buffer.set_offset(buffer.offset() + 64);
                     program.set_arena_bytes(program.arena_bytes() + 64));
}

TEST(EntryPoints, CachesAreNoParameters) {
  EXPECT_ERROR_AFTER("is a cache; expected that it starts as zeros",
                     plan::State &state = *entryPoint.mutable_programs(0)->mutable_states(0);
                     state.set_kind(plan::State::CACHE);
                     state.mutable_init()->set_kind(plan::Init::ONES));
}

namespace {

/// value = x + 1 before the loop; in it sum += value. With `clobber`, the loop then writes to the
/// bytes of `value`, which one run does not mind.
std::shared_ptr<plan::Plan> loopPlan(bool clobber) {
  PlanBuilder builder;
  builder.axis("micro", 1, /*temporal=*/true);
  uint32_t x = builder.state("x", DType::F32, {4}, {{}}).buffer();
  uint32_t value = builder.buffer(DType::F32, {4});
  uint32_t sum = builder.buffer(DType::F32, {4}, plan::Buffer::OUTPUT);
  uint32_t scratch = builder.buffer(DType::F32, {4});
  if (clobber)
    builder.program()
        .mutable_buffers(int(scratch))
        ->set_offset(builder.program().buffers(int(value)).offset());
  builder.task("prepare");
  builder.kernel("add", {x, x}, {value});
  builder.task("microbatch");
  (*builder.kernel("accumulate", {value}, {sum}).mutable_attributes())["axis"] =
      stringAttribute("micro");
  builder.kernel("add", {x, x}, {scratch});
  builder.task("update");
  builder.kernel("add", {sum, x}, {sum});
  builder.schedule(0);
  builder.schedule(1);
  builder.schedule(2);
  builder.program().set_loop_begin(1);
  builder.program().set_loop_end(2);
  builder.output("sum", DType::F32, {4}, {{}}, sum);
  return builder.build();
}

} // namespace

TEST(RepeatedLoops, FindWhatTheyNeed) {
  EXPECT_OK(findPlanError(*loopPlan(false), /*repeatsLoop=*/true));
  EXPECT_OK(findPlanError(*loopPlan(true)));
  EXPECT_ERROR(findPlanError(*loopPlan(true), /*repeatsLoop=*/true),
               "when the loop over microbatches runs again: task \"microbatch\", instruction 0");
}

TEST(RepeatedLoops, LieInTheSchedule) {
  auto plan = loopPlan(false);
  plan->mutable_programs(0)->set_loop_end(4);
  EXPECT_ERROR(findPlanError(*plan), "the loop is entries 1 to 4 of a schedule of 3");
  plan->mutable_programs(0)->set_loop_begin(3);
  plan->mutable_programs(0)->set_loop_end(2);
  EXPECT_ERROR(findPlanError(*plan), "the loop is entries 3 to 2");
}

#undef EXPECT_ERROR_AFTER

} // namespace entryPointsTest
