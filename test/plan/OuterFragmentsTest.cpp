//===- OuterFragmentsTest.cpp - Outer steps of parts of the parameters ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/OuterFragments.h"
#include "plan/PlanVerifier.h"
#include "plan/Replicas.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"

#include <gtest/gtest.h>

namespace outerFragmentsTest {

using namespace dtc;
using namespace dtc::runtime::testing;

/// The mistake that a plan of this test has.
enum class Mistake {
  None,
  SendsInArena,     ///< what sends has a buffer in the arena of the others
  SendsParameter,   ///< what sends reads a parameter
  StepPends,        ///< the step updates what is sent
  StepReadsPending, ///< the step reads what is sent
  ApplySends,       ///< what applies has a collective over the replicas
  OuterStateDiffers ///< what applies adds the replica's own parameters to an outer state
};

/// An entry point of a plan of 2 replicas with a parameter `w`, which the step adds data to, an
/// outer state `s` and a pending state `p`.
static plan::Plan planOf(const std::string &entry, Mistake mistake = Mistake::None) {
  PlanBuilder builder;
  builder.axis("dp", 2);
  uint32_t w = builder.state("w", DType::F32, {4}, {{}}).buffer();
  auto outerState = [&](const char *name) {
    plan::State &state = builder.state(name, DType::F32, {4}, {{}});
    state.set_kind(plan::State::OPTIMIZER);
    state.set_parameter("w");
    return state.buffer();
  };
  uint32_t s = outerState("s"), p = outerState("p");
  builder.plan.set_entry(entry);
  if (entry.empty()) {
    uint32_t x = builder.input("x", DType::F32, {8}, {{"dp"}}).buffer();
    builder.task("step");
    builder.kernel("add", {w, x}, {w});
    if (mistake == Mistake::StepReadsPending)
      builder.kernel("add", {w, p}, {w});
    if (mistake == Mistake::StepPends)
      builder.kernel("add", {p, p}, {p});
  } else if (entry.starts_with("outer_take")) {
    builder.task("take");
    builder.kernel("sub", {s, w}, {p});
  } else if (entry.starts_with("outer_send")) {
    if (mistake != Mistake::SendsInArena)
      builder.program().set_arena_bytes(4096);
    uint32_t sum = builder.buffer(DType::F32, {4});
    builder.task("send");
    builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, p, sum);
    if (mistake == Mistake::SendsParameter)
      builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, w, sum);
    builder.kernel("copy", {sum}, {p});
  } else {
    builder.task("apply");
    builder.kernel("sub", {s, p}, {s});
    if (mistake == Mistake::ApplySends)
      builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, s, builder.buffer(DType::F32, {4}));
    if (mistake == Mistake::OuterStateDiffers)
      builder.kernel("add", {s, w}, {s});
    builder.kernel("copy", {s}, {w});
  }
  builder.schedule(0);
  return *builder.build();
}

static plan::Plan planWith(const std::vector<std::string> &entries,
                           Mistake mistake = Mistake::None) {
  plan::Plan plan = planOf("", mistake);
  for (const std::string &entry : entries)
    *plan.add_entry_points() = planOf(entry, mistake);
  return plan;
}

static const std::vector<std::string> kOne = {"outer_take.0", "outer_send.0",
                                              "outer_apply.0.after.3"};

TEST(OuterFragments, AreFoundByTheirNames) {
  plan::Plan plan = planWith(kOne);
  EXPECT_OK(findPlanError(plan));
  Expected<OuterFragments> fragments = outerFragmentsOf(plan);
  ASSERT_OK(fragments);
  ASSERT_EQ(fragments->entries.size(), 1u);
  EXPECT_EQ(fragments->delay, 3);
  EXPECT_EQ(fragments->entries[0].apply->entry(), "outer_apply.0.after.3");
  std::optional<Replicas> replicas = replicasOf(plan);
  ASSERT_TRUE(replicas);
  EXPECT_EQ(replicas->axis, "dp");
  EXPECT_EQ(replicas->states, (std::set<std::string>{"p", "w"}));
  Expected<OuterFragments> none = outerFragmentsOf(planWith({}));
  ASSERT_OK(none);
  EXPECT_TRUE(none->entries.empty());
}

TEST(OuterFragments, TakeTurns) {
  OuterFragments fragments{.entries = {{}, {}, {}}, .delay = 5};
  std::vector<std::vector<int64_t>> sent(3), applied(3);
  for (int64_t step = 0; step <= 16; ++step)
    for (int64_t k = 0; k < 3; ++k) {
      if (fragments.isSentAfter(k, step, 6))
        sent[size_t(k)].push_back(step);
      if (fragments.isAppliedAfter(k, step, 6))
        applied[size_t(k)].push_back(step);
    }
  EXPECT_EQ(sent, (std::vector<std::vector<int64_t>>{{2, 8, 14}, {4, 10, 16}, {6, 12}}));
  EXPECT_EQ(applied, (std::vector<std::vector<int64_t>>{{7, 13}, {9, 15}, {11}}));
  EXPECT_OK(checkOuterEvery(fragments, 6));
  EXPECT_ERROR(checkOuterEvery(fragments, 7), "is 7, expected a multiple of 3");
  EXPECT_ERROR(checkOuterEvery(fragments, 3), "is 3, expected more than 5");
}

TEST(OuterFragments, HaveThreeEntryPointsEach) {
  EXPECT_ERROR(verifyPlan(planWith({kOne[0], kOne[1]})),
               "fragment 0 of 1 has no entry point that applies it");
  EXPECT_ERROR(verifyPlan(planWith({kOne[0], kOne[2]})),
               "fragment 0 of 1 has no entry point that sends it");
  EXPECT_ERROR(verifyPlan(planWith({"outer_take.1", "outer_send.1", "outer_apply.1.after.3"})),
               "fragment 0 of 2 has no entry point that takes it");
  for (const char *name :
       {"outer_send.x", "outer_send.4", "outer_take.", "outer_apply.0", "outer_apply.0.after.",
        "outer_apply.0.after.-1", "outer_apply.a.after.1"})
    EXPECT_ERROR(verifyPlan(planWith({name})), "is of no fragment; expected");
  EXPECT_ERROR(verifyPlan(planWith({kOne[0], kOne[1], kOne[2], "outer_apply.1.after.2"})),
               "\"outer_apply.1.after.2\" applies a fragment after 2 steps, another one after 3");
  EXPECT_ERROR(verifyPlan(planWith({kOne[0], kOne[1], kOne[2], "outer"})),
               "expected outer steps of all parameters or of fragments, not both");
}

TEST(OuterFragments, AreSentBesideOtherWork) {
  EXPECT_ERROR(verifyPlan(planWith(kOne, Mistake::SendsInArena)),
               "as other entry points run beside");
  EXPECT_ERROR(verifyPlan(planWith(kOne, Mistake::SendsParameter)),
               "it uses the state \"w\", which it does not update");
  EXPECT_ERROR(verifyPlan(planWith(kOne, Mistake::StepPends)),
               "updates the state \"p\", which \"outer_send.0\" sends");
  EXPECT_ERROR(verifyPlan(planWith(kOne, Mistake::StepReadsPending)),
               "reads the state \"p\" while \"outer_send.0\" may send it; expected that of "
               "\"outer_apply.0.after.3\" alone");
}

TEST(OuterFragments, AreSentByCollectivesInTheirOwnBytes) {
  plan::Plan sound = planWith(kOne), plan = sound;
  auto check = [&] { return checkSentBeside(plan, *outerFragmentsOf(plan)); };
  EXPECT_OK(check());
  plan::Program &program = *plan.mutable_entry_points(1)->mutable_programs(0);
  program.add_transfers()->set_channel(0);
  EXPECT_ERROR(check(), "entry point \"outer_send.0\", program 0: it has transfers");
  // The sum lies where the pending state does, which has 4 elements.
  plan = sound;
  plan::Program &other = *plan.mutable_entry_points(1)->mutable_programs(0);
  uint32_t sum = other.tasks(0).instructions(0).collective().tensors(0).output();
  plan::Buffer &buffer = *other.mutable_buffers(int(sum));
  buffer.set_offset(other.buffers(int(other.states(2).buffer())).offset());
  EXPECT_OK(check());
  buffer.set_shape(0, 5);
  EXPECT_ERROR(check(), "as other entry points run beside");
}

TEST(OuterFragments, HaveOuterStatesThatAreAlike) {
  EXPECT_ERROR(verifyPlan(planWith(kOne, Mistake::OuterStateDiffers)),
               "state \"s\" differs between the replicas along \"dp\" after the outer step");
}

TEST(OuterFragments, SendNothingWhereTheyAreApplied) {
  EXPECT_ERROR(verifyPlan(planWith(kOne, Mistake::ApplySends)),
               "entry point \"outer_apply.0.after.3\": task \"apply\" has a collective over "
               "\"dp\" (ALL_REDUCE), along which replicas train on their own");
}

} // namespace outerFragmentsTest
