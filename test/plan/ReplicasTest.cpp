//===- ReplicasTest.cpp - Replicas whose states differ --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/Replicas.h"
#include "plan/PlanVerifier.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"

#include <gtest/gtest.h>

namespace replicasTest {

using namespace dtc;
using namespace dtc::runtime::testing;

/// The mistake that a plan of this test has.
enum class Mistake {
  None,
  StepSends,           ///< the step reduces an output over the outer axis
  StepStateDiffers,    ///< of clients: what counts steps is not reduced over the outer axis
  OuterStepSkipsState, ///< the outer step leaves a parameter as it is
  OuterStepReadsOwn,   ///< and adds to its sum what differs
  OuterStepReadsPart,  ///< and adds to its sum the replica's part of a state
  BeginningDiffers,    ///< the outer step does not start from the same values on all replicas
  SeveralAxes,         ///< the outer step sums over another axis as well
};

/// A step that adds the replica's data to `w`, on 2 replicas of 2 devices. The
/// outer step adds the sum of `w` over the replicas to `o`, which is `w` at the beginning, and
/// doubles `lost`; each replica has a part of `lost`. `f` is frozen.
static plan::Plan planOf(const std::string &entry, Mistake mistake) {
  PlanBuilder builder;
  builder.axis("dp", 2);
  builder.axis("tp", 2);
  uint32_t w = builder.state("w", DType::F32, {4}, {{"tp"}}).buffer();
  uint32_t o = builder.state("o", DType::F32, {4}, {{"tp"}}).buffer();
  builder.state("f", DType::F32, {2}, {{}});
  uint32_t lost = builder.state("lost", DType::F32, {4}, {{"dp"}}).buffer();
  plan::State &counter = builder.state("dtc.applied_steps", DType::I32, {}, {});
  counter.set_kind(plan::State::APPLIED_STEPS);
  uint32_t steps = counter.buffer();
  if (entry.empty()) {
    uint32_t x = builder.input("x", DType::F32, {8}, {{"dp", "tp"}}).buffer();
    uint32_t ids = builder.input("ids", DType::I32, {2}, {{"dp"}}).buffer();
    uint32_t one = builder.view(ids, DType::I32, {});
    uint32_t sum = builder.buffer(DType::F32, {2}, plan::Buffer::OUTPUT);
    builder.task("step");
    builder.kernel("add", {w, x}, {w});
    if (mistake == Mistake::StepSends || mistake == Mistake::StepStateDiffers)
      builder.collective(plan::Collective::ALL_REDUCE, {"dp", "tp"}, x, sum);
    else
      builder.collective(plan::Collective::ALL_REDUCE, {"tp"}, x, sum);
    if (mistake == Mistake::StepStateDiffers)
      builder.kernel("add", {steps, one}, {steps});
    builder.schedule(0);
    builder.output("sum", DType::F32, {2}, {{}}, sum);
  } else if (entry == "outer_begin") {
    builder.task(entry);
    if (mistake == Mistake::BeginningDiffers)
      builder.collective(plan::Collective::ALL_TO_ALL, {"dp"}, w, o);
    else
      builder.kernel("copy", {w}, {o});
    builder.schedule(0);
    builder.plan.set_entry(entry);
  } else {
    uint32_t sum = builder.buffer(DType::F32, {2});
    builder.task("outer");
    builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, w, sum);
    if (mistake == Mistake::SeveralAxes)
      builder.collective(plan::Collective::ALL_REDUCE, {"tp"}, w, builder.buffer(DType::F32, {2}));
    builder.kernel("add", {sum, o}, {sum});
    if (mistake == Mistake::OuterStepReadsOwn)
      builder.kernel("add", {sum, w}, {sum});
    if (mistake == Mistake::OuterStepReadsPart)
      builder.kernel("add", {sum, lost}, {sum});
    builder.kernel("add", {lost, lost}, {lost});
    if (mistake != Mistake::OuterStepSkipsState)
      builder.kernel("copy", {sum}, {w});
    builder.schedule(0);
    builder.plan.set_entry(entry);
  }
  return *builder.build();
}

static plan::Plan planWith(Mistake mistake, const char *entry = "outer") {
  plan::Plan plan = planOf("", mistake);
  *plan.add_entry_points() = planOf(entry, mistake);
  *plan.add_entry_points() = planOf("outer_begin", mistake);
  return plan;
}

TEST(Replicas, DifferInWhatTheirDataChange) {
  plan::Plan plan = planWith(Mistake::None);
  EXPECT_OK(findPlanError(plan));
  std::optional<Replicas> replicas = replicasOf(plan);
  ASSERT_TRUE(replicas);
  EXPECT_EQ(replicas->axis, "dp");
  EXPECT_EQ(replicas->count, 2);
  EXPECT_EQ(replicas->states, std::set<std::string>{"w"});
  EXPECT_EQ(replicas->outputs, std::set<std::string>{"sum"});
  EXPECT_FALSE(replicasOf(planWith(Mistake::None, "other")));
}

TEST(Replicas, AddUpInACompressedForm) {
  // Each adds up its part, and all gather the parts.
  plan::Plan step = planOf("", Mistake::None);
  PlanBuilder builder;
  builder.axis("dp", 2);
  builder.axis("tp", 2);
  uint32_t w = builder.state("w", DType::F32, {4}, {{"tp"}}).buffer();
  uint32_t parts = builder.buffer(DType::F32, {2}), part = builder.buffer(DType::F32, {1});
  builder.task("outer");
  builder.collective(plan::Collective::ALL_TO_ALL, {"dp"}, w, parts);
  builder.kernel("reduce", {parts}, {part});
  builder.collective(plan::Collective::ALL_GATHER, {"dp"}, part, w);
  builder.schedule(0);
  builder.plan.set_entry("outer");
  *step.add_entry_points() = *builder.build();
  std::optional<Replicas> replicas = replicasOf(step);
  ASSERT_TRUE(replicas);
  EXPECT_EQ(replicas->axis, "dp");
  EXPECT_OK(checkReplicas(step));
}

TEST(Replicas, SendNothingInTheStep) {
  EXPECT_ERROR(
      checkReplicas(planWith(Mistake::StepSends)),
      "task \"step\" has a collective over \"dp\" (ALL_REDUCE), along which replicas train "
      "on their own; expected those of outer steps alone");
}

/// Replicas of clients may send each other scalars, and have the outputs and the step state of all.
static plan::Plan clientsWith(Mistake mistake) {
  plan::Plan plan = planWith(mistake);
  *plan.add_entry_points() = planOf("outer_check", Mistake::None);
  return plan;
}

TEST(Replicas, OfClientsAgreeOnOutputs) {
  EXPECT_OK(checkReplicas(clientsWith(Mistake::StepSends)));
  EXPECT_ERROR(checkReplicas(clientsWith(Mistake::None)),
               "output \"sum\" differs between the replicas along \"dp\"");
}

TEST(Replicas, OfClientsAgreeOnTheStepState) {
  EXPECT_ERROR(checkReplicas(clientsWith(Mistake::StepStateDiffers)),
               "the step state \"dtc.applied_steps\" differs between the replicas along \"dp\"");
  plan::Plan alone = planWith(Mistake::StepStateDiffers);
  for (plan::Program &program : *alone.mutable_programs())
    for (plan::Task &task : *program.mutable_tasks())
      for (plan::Instruction &instruction : *task.mutable_instructions())
        if (instruction.has_collective())
          instruction.mutable_collective()->mutable_axes()->erase(
              instruction.mutable_collective()->mutable_axes()->begin());
  EXPECT_OK(checkReplicas(alone));
  EXPECT_TRUE(replicasOf(alone)->states.count("dtc.applied_steps"));
}

TEST(Replicas, AreAlikeAfterTheOuterStep) {
  for (Mistake mistake :
       {Mistake::OuterStepSkipsState, Mistake::OuterStepReadsOwn, Mistake::OuterStepReadsPart})
    EXPECT_ERROR(verifyPlan(planWith(mistake)),
                 "entry point \"outer\": state \"w\" differs between the replicas along \"dp\" "
                 "after the outer step");
}

TEST(Replicas, BeginAlike) {
  EXPECT_ERROR(verifyPlan(planWith(Mistake::BeginningDiffers)),
               "entry point \"outer\": state \"w\" differs between the replicas along \"dp\" "
               "after the outer step");
}

TEST(Replicas, AreAlongOneAxis) {
  EXPECT_ERROR(
      verifyPlan(planWith(Mistake::SeveralAxes)),
      "entry point \"outer\" reduces over several axes, dp and tp; expected the outer axis "
      "alone");
}

} // namespace replicasTest
