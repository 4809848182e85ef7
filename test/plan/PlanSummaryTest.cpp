//===- PlanSummaryTest.cpp - Tests of the summary of a plan ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanSummary.h"

#include "plan/PlanTypes.h"
#include "plan/PlanVerifier.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/executor/Session.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"
#include "test/lib/plans/TrainStep.h"

#include <gtest/gtest.h>
#include <limits>

namespace planSummaryTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// Every kind of collective, in a task that runs for each of three microbatches and in one that
/// runs once. Sizes that a ring does not divide evenly are among them.
std::shared_ptr<plan::Plan> collectivePlan() {
  PlanBuilder builder;
  builder.axis("dp", 2);
  builder.axis("tp", 3);
  builder.axis("micro", 3, /*temporal=*/true);
  uint32_t x = builder.input("x", DType::F32, {12, 6}, {{"dp"}, {}}).buffer(); // f32[6,6]
  uint32_t odd = builder.buffer(DType::F32, {7});
  uint32_t sum = builder.buffer(DType::F32, {6, 6}, plan::Buffer::OUTPUT);
  uint32_t gathered = builder.buffer(DType::F32, {6, 18});
  uint32_t scattered = builder.buffer(DType::F32, {1, 6});
  uint32_t exchanged = builder.buffer(DType::F32, {2, 18});
  builder.task("micro_step");
  (*builder.kernel("fill", {}, {odd}).mutable_attributes())["value"] = floatAttribute(1);
  builder.collective(plan::Collective::ALL_REDUCE, {"tp"}, odd, odd);
  plan::CollectiveTensor &gather =
      builder.collective(plan::Collective::ALL_GATHER, {"tp"}, x, gathered);
  gather.set_dim(1);
  builder.task("finish");
  builder.collective(plan::Collective::ALL_REDUCE, {"dp", "tp"}, x, sum);
  builder.collective(plan::Collective::REDUCE_SCATTER, {"dp", "tp"}, x, scattered).set_dim(0);
  plan::CollectiveTensor &exchange =
      builder.collective(plan::Collective::ALL_TO_ALL, {"tp"}, x, exchanged);
  exchange.set_dim(1);
  exchange.set_split_dim(0);
  builder.output("sum", DType::F32, {12, 6}, {{"dp"}, {}}, sum);
  for (uint32_t m = 0; m < 3; ++m)
    builder.schedule(0, m);
  builder.schedule(1);
  return builder.build();
}

const KernelSummary *findKernel(const PlanSummary &summary, const std::string &name) {
  for (const KernelSummary &kernel : summary.kernels)
    if (kernel.kernel == name)
      return &kernel;
  return nullptr;
}

const CollectiveSummary *findCollective(const PlanSummary &summary, CollectiveKind kind,
                                        const Axes &axes) {
  for (const CollectiveSummary &collective : summary.collectives)
    if (collective.kind == kind && collective.axes == axes)
      return &collective;
  return nullptr;
}

/// The bytes that the devices of a session send in one step, all together.
CommunicatorBytes bytesOfAStep(const std::shared_ptr<const plan::Plan> &plan) {
  auto session = Session::create(plan, createCpuBackend());
  EXPECT_OK(session);
  if (!session)
    return {};
  EXPECT_OK((*session)->initializeStates(1));
  for (const plan::Input &input : plan->programs(0).inputs())
    if (input.role() == plan::Input::DATA) {
      EXPECT_OK((*session)->setInput(input.name(), HostTensor(typeOf(input))));
    }
  EXPECT_OK(trainStep(**session, 0.1));
  return (*session)->communicatorBytes();
}

} // namespace

TEST(PlanSummary, Mesh) {
  PlanSummary summary = summarizePlan(*trainingPlan({2, 4, 8}));
  ASSERT_EQ(summary.axes.size(), 3u);
  EXPECT_EQ(summary.axes[1].name, "tp");
  EXPECT_TRUE(summary.axes[2].temporal);
  EXPECT_EQ(summary.numDevices, 8);
  EXPECT_EQ(summary.microbatches, 8);
  EXPECT_EQ(summary.model, "a square");
  EXPECT_EQ(summary.producer, "a test");
  EXPECT_EQ(summary.version, 10u);

  summary = summarizePlan(*forwardPlan());
  EXPECT_TRUE(summary.axes.empty());
  EXPECT_EQ(summary.numDevices, 1);
  EXPECT_EQ(summary.microbatches, 1);
}

TEST(PlanSummary, ParametersAreThoseOfTheWholeModel) {
  PlanSummary summary = summarizePlan(*trainingPlan({1, 2, 1}));
  EXPECT_EQ(summary.parameterTensors, 1u); // the momentum is no parameter
  EXPECT_EQ(summary.parameterElements, 64u);
  EXPECT_EQ(summary.parameterBytes, 256u);
}

TEST(PlanSummary, Memory) {
  auto plan = trainingPlan();
  plan::Program &program = *plan->mutable_programs(0);
  program.set_arena_lower_bound(1000);
  program.set_arena_bytes(1250);
  auto &kinds = *program.mutable_memory_by_kind();
  kinds["parameter"] = 1;
  kinds["gradient"] = 2;
  kinds["optimizer_state"] = 4;
  kinds["activation"] = 8;
  kinds["constant"] = 16;
  kinds["input"] = 32;
  kinds["output"] = 64;
  kinds["something_new"] = 128;
  PlanSummary summary = summarizePlan(*plan);
  EXPECT_EQ(summary.peak.parameters, 1u);
  EXPECT_EQ(summary.peak.gradients, 2u);
  EXPECT_EQ(summary.peak.optimizerState, 4u);
  EXPECT_EQ(summary.peak.activations, 8u);
  EXPECT_EQ(summary.peak.constants, 16u);
  EXPECT_EQ(summary.peak.inputsAndOutputs, 96u);
  EXPECT_EQ(summary.peak.other, 128u);
  EXPECT_EQ(summary.peak.total(), 255u);
  EXPECT_EQ(summary.arenaBytes, 1250u);
  EXPECT_DOUBLE_EQ(summary.arenaRatio().value(), 1.25);
}

TEST(PlanSummary, MemoryThatThePlanDoesNotState) {
  PlanSummary summary = summarizePlan(*trainingPlan());
  EXPECT_EQ(summary.peak.total(), 0u);
  EXPECT_EQ(summary.arenaRatio(), std::nullopt);
  EXPECT_GT(summary.arenaBytes, 0u);
}

TEST(PlanSummary, FlopsCountEveryRunOfATask) {
  auto plan = trainingPlan({2, 1, 4});
  plan::Program &program = *plan->mutable_programs(0);
  program.mutable_tasks(0)->mutable_instructions(0)->set_flops(10);  // shard_slice
  program.mutable_tasks(0)->mutable_instructions(2)->set_flops(7);   // reduce
  program.mutable_tasks(1)->mutable_instructions(1)->set_flops(100); // mul
  PlanSummary summary = summarizePlan(*plan);
  EXPECT_EQ(summary.flops, 4 * (10 + 7) + 100);
  EXPECT_EQ(summary.totalFlops(), 2 * summary.flops);
  ASSERT_EQ(summary.tasks.size(), 2u);
  EXPECT_EQ(summary.tasks[0].flops, 17);
  EXPECT_EQ(summary.tasks[1].flops, 100);

  EXPECT_EQ(summary.kernels[0].kernel, "mul"); // the most flops
  EXPECT_EQ(summary.kernels[1].kernel, "shard_slice");
  EXPECT_EQ(summary.kernels[1].flops, 40);
  const KernelSummary *reduce = findKernel(summary, "reduce");
  ASSERT_NE(reduce, nullptr);
  EXPECT_EQ(reduce->instructions, 3u);
  EXPECT_EQ(reduce->calls, 4u + 2u);
  EXPECT_EQ(reduce->flops, 28);
}

TEST(PlanSummary, TasksAndSchedule) {
  PlanSummary summary = summarizePlan(*trainingPlan({1, 1, 4}));
  ASSERT_EQ(summary.tasks.size(), 2u);
  EXPECT_EQ(summary.tasks[0].name, "forward");
  EXPECT_EQ(summary.tasks[0].runs, 4u);
  EXPECT_EQ(summary.tasks[0].instructions, 4u);
  EXPECT_EQ(summary.tasks[1].runs, 1u);
  EXPECT_EQ(summary.instructions, summary.tasks[0].instructions + summary.tasks[1].instructions);
  ASSERT_EQ(summary.schedule.size(), 2u);
  EXPECT_EQ(summary.schedule[0].task, 0u);
  EXPECT_EQ(summary.schedule[0].firstMicrobatch, 0u);
  EXPECT_EQ(summary.schedule[0].count, 4u);
  EXPECT_EQ(summary.schedule[1].task, 1u);
  EXPECT_EQ(summary.schedule[1].count, 1u);
}

TEST(PlanSummary, AScheduleThatRepeatsAMicrobatchIsNotOneSpan) {
  auto plan = trainingPlan({1, 1, 2});
  plan::Program &program = *plan->mutable_programs(0);
  program.clear_schedule();
  for (uint32_t microbatch : {0, 1, 1, 0}) {
    plan::ScheduleEntry *entry = program.add_schedule();
    entry->set_microbatch(microbatch);
  }
  PlanSummary summary = summarizePlan(*plan);
  ASSERT_EQ(summary.schedule.size(), 3u);
  EXPECT_EQ(summary.schedule[0].count, 2u);
  EXPECT_EQ(summary.schedule[1].firstMicrobatch, 1u);
  EXPECT_EQ(summary.schedule[2].firstMicrobatch, 0u);
}

TEST(PlanSummary, ATaskThatNeverRunsCountsForNothing) {
  auto plan = trainingPlan();
  plan::Task *task = plan->mutable_programs(0)->add_tasks();
  task->set_name("unused");
  *task->add_instructions() = plan->programs(0).tasks(1).instructions(0);
  task->mutable_instructions(0)->set_flops(std::numeric_limits<double>::infinity());
  PlanSummary summary = summarizePlan(*plan), without = summarizePlan(*trainingPlan());
  EXPECT_EQ(summary.flops, 0);
  EXPECT_EQ(summary.tasks[2].runs, 0u);
  EXPECT_EQ(summary.sentBytes, without.sentBytes);
}

TEST(PlanSummary, CollectivesByKindAndAxes) {
  auto plan = collectivePlan();
  ASSERT_OK(findPlanError(*plan));
  PlanSummary summary = summarizePlan(*plan);
  EXPECT_EQ(summary.collectives.size(), 5u);

  const CollectiveSummary *odd = findCollective(summary, CollectiveKind::AllReduce, {"tp"});
  ASSERT_NE(odd, nullptr);
  EXPECT_EQ(odd->members, 3);
  EXPECT_EQ(odd->instructions, 1u);
  EXPECT_EQ(odd->calls, 3u);
  EXPECT_EQ(odd->bytes, 3u * (2 * 28 - 2 * 28 / 3));

  const CollectiveSummary *gather = findCollective(summary, CollectiveKind::AllGather, {"tp"});
  ASSERT_NE(gather, nullptr);
  EXPECT_EQ(gather->bytes, 3u * 2 * 144); // two shards of f32[6,6] a time

  const CollectiveSummary *both = findCollective(summary, CollectiveKind::AllReduce, {"dp", "tp"});
  ASSERT_NE(both, nullptr);
  EXPECT_EQ(both->members, 6);
  EXPECT_EQ(both->bytes, 2u * 144 * 5 / 6);

  const CollectiveSummary *scatter =
      findCollective(summary, CollectiveKind::ReduceScatter, {"dp", "tp"});
  ASSERT_NE(scatter, nullptr);
  EXPECT_EQ(scatter->bytes, 144u * 5 / 6);

  const CollectiveSummary *exchange = findCollective(summary, CollectiveKind::AllToAll, {"tp"});
  ASSERT_NE(exchange, nullptr);
  EXPECT_EQ(exchange->bytes, 144u * 2 / 3);

  EXPECT_EQ(summary.collectives.front().kind, CollectiveKind::AllGather); // the most bytes
  EXPECT_EQ(summary.sentBytes.of(CollectiveKind::AllReduce), odd->bytes + both->bytes);
  EXPECT_EQ(summary.sentBytes.total(),
            odd->bytes + gather->bytes + both->bytes + scatter->bytes + exchange->bytes);
}

TEST(PlanSummary, PredictsTheBytesThatASessionCounts) {
  for (const std::shared_ptr<plan::Plan> &plan :
       {collectivePlan(), trainingPlan({2, 2, 2}), trainingPlan({4, 2, 1}), trainingPlan(),
        kernelPlan()}) {
    PlanSummary summary = summarizePlan(*plan);
    CommunicatorBytes counted = bytesOfAStep(plan);
    for (size_t kind = 0; kind < counted.byKind.size(); ++kind)
      EXPECT_EQ(summary.sentBytes.byKind[kind] * static_cast<uint64_t>(summary.numDevices),
                counted.byKind[kind]);
  }
}

} // namespace planSummaryTest
