//===- StepGraphsTest.cpp - Graphs of a device's steps --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/StepGraphs.h"

#include "runtime/executor/Session.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"

#include <gtest/gtest.h>

namespace stepGraphsTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

using Ends = std::vector<std::pair<size_t, size_t>>;

class StepGraphsTest : public ::testing::Test {
protected:
  StepGraphsTest() {
    builder.axis("dp", 2);
    builder.axis("micro", 4, /*temporal=*/true);
    builder.task("forward");
    x = builder.buffer(DType::F32, {8});
  }

  void kernels(int count) {
    for (int i = 0; i < count; ++i)
      builder.kernel("sqrt", {x}, {x});
  }
  uint32_t startAsync() {
    builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, x, x);
    return builder.async();
  }

  /// Prepares the first program as it is; its results do not matter.
  const PreparedProgram &prepare() {
    auto made = std::make_shared<plan::Plan>(builder.plan);
    auto created = PreparedPlan::create(made, *createFakeBackend(), 1);
    EXPECT_TRUE(created) << created.error().message;
    prepared = *created;
    program = &prepared->programs[0];
    return *program;
  }
  Ends stretches(bool withCollectives) {
    Ends ends;
    for (const Stretch &stretch : find(withCollectives))
      ends.emplace_back(stretch.begin, stretch.end);
    return ends;
  }
  std::vector<Stretch> find(bool withCollectives) {
    return findStretches(prepare(), [=](size_t) { return withCollectives; });
  }

  PlanBuilder builder;
  uint32_t x;
  std::shared_ptr<const PreparedPlan> prepared;
  const PreparedProgram *program = nullptr; // of `prepared`
};

TEST_F(StepGraphsTest, ATaskWithoutCommunicationIsOneStretch) {
  kernels(5);
  builder.task("backward");
  kernels(4);
  EXPECT_EQ(stretches(true), (Ends{{0, 5}, {5, 9}}));
}

TEST_F(StepGraphsTest, FewInstructionsAreNoStretch) {
  kernels(2);
  EXPECT_EQ(stretches(true), Ends());
}

TEST_F(StepGraphsTest, CollectivesAreAmongThemOrBetweenThem) {
  kernels(3);
  builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, x, x);
  kernels(4);
  EXPECT_EQ(stretches(true), (Ends{{0, 8}}));
  EXPECT_EQ(find(true)[0].collectives, (std::vector<size_t>{3}));
  EXPECT_EQ(stretches(false), (Ends{{0, 3}, {4, 8}}));
}

TEST_F(StepGraphsTest, AnAsyncCollectiveIsFinishedWhereItIsStarted) {
  kernels(3);                    // 0 to 2
  uint32_t first = startAsync(); // 3
  kernels(3);
  builder.wait(first); // 7
  kernels(3);
  EXPECT_EQ(stretches(true), (Ends{{0, 11}}));
  // Instructions that overlap with a collective that no graph holds are not captured either.
  EXPECT_EQ(stretches(false), (Ends{{0, 3}, {8, 11}}));
}

TEST_F(StepGraphsTest, ATransferEndsAStretch) {
  PlanBuilder pipeline;
  pipeline.pipelineAxis("pp", 2);
  pipeline.axis("dp", 2);
  builder = pipeline;
  builder.task("forward");
  x = builder.buffer(DType::F32, {8});
  uint32_t sent = builder.transfer(plan::Transfer::SEND, 1, 0, {x});
  kernels(3); // 0 to 2
  builder.startTransfer(sent);
  kernels(3);                     // 4 to 6
  uint32_t beside = startAsync(); // 7
  kernels(3);
  builder.finishTransfer(sent); // 11
  kernels(3);
  builder.wait(beside); // 15
  kernels(3);
  // The collective that goes on beside the transfer is in no graph, nor are its neighbours.
  EXPECT_EQ(stretches(true), (Ends{{0, 3}, {4, 7}, {16, 19}}));
}

/// The graphs of a stretch that runs for four microbatches in each of two batches.
class StepGraphRuns : public StepGraphsTest {
protected:
  void open() {
    for (uint32_t microbatch = 0; microbatch < 4; ++microbatch)
      builder.schedule(0, microbatch);
    builder.plan.mutable_programs(0)->set_loop_end(4);
    graphs = std::make_unique<StepGraphs>(
        prepare(), [](size_t) { return true; }, /*batches=*/2);
    ASSERT_TRUE(graphs->at(0));
  }
  /// Which of the eight have the same graph, as the number of the first that has it.
  std::vector<size_t> same() {
    std::vector<const StepGraphs::Run *> runs;
    std::vector<size_t> first;
    for (int64_t repetition : {0, 1})
      for (uint32_t microbatch = 0; microbatch < 4; ++microbatch) {
        runs.push_back(&graphs->find(*graphs->at(0), microbatch, repetition));
        first.push_back(
            static_cast<size_t>(std::find(runs.begin(), runs.end(), runs.back()) - runs.begin()));
      }
    return first;
  }

  std::unique_ptr<StepGraphs> graphs;
};

TEST_F(StepGraphRuns, AllMicrobatchesShareOneWhereNothingDiffers) {
  kernels(3);
  open();
  EXPECT_EQ(same(), (std::vector<size_t>{0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_F(StepGraphRuns, EachSlotHasItsOwn) {
  uint32_t slots = builder.slotted(DType::F32, {8}, 2);
  kernels(2);
  builder.kernel("sqrt", {x}, {slots});
  open();
  EXPECT_EQ(same(), (std::vector<size_t>{0, 1, 0, 1, 0, 1, 0, 1}));
}

TEST_F(StepGraphRuns, TheFirstMicrobatchStartsASum) {
  kernels(2);
  auto &call = builder.kernel("accumulate", {x}, {builder.buffer(DType::F32, {8})});
  (*call.mutable_attributes())["axis"] = stringAttribute("micro");
  open();
  EXPECT_EQ(same(), (std::vector<size_t>{0, 1, 1, 1, 1, 1, 1, 1}));
}

TEST_F(StepGraphRuns, EachMicrobatchHasItsOwnWhereAKernelAsksForIt) {
  kernels(3);
  auto &call = builder.kernel("shard_slice", {x}, {builder.buffer(DType::F32, {2})});
  (*call.mutable_attributes())["axes"] = stringsAttribute({"micro"});
  open();
  EXPECT_EQ(same(), (std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(StepGraphRuns, EachRunIsThereBeforeTheFirstStep) {
  kernels(3);
  auto &call = builder.kernel("shard_slice", {x}, {builder.buffer(DType::F32, {2})});
  (*call.mutable_attributes())["axes"] = stringsAttribute({"micro"});
  open();
  std::vector<std::pair<uint32_t, int64_t>> runs;
  for (const StepGraphs::Run &run : graphs->allRuns()) {
    EXPECT_EQ(run.stretch, graphs->at(0));
    EXPECT_EQ(run.entry, run.microbatch);
    runs.emplace_back(run.microbatch, run.repetition);
  }
  EXPECT_EQ(runs, (std::vector<std::pair<uint32_t, int64_t>>{
                      {0, 0}, {1, 0}, {2, 0}, {3, 0}, {0, 1}, {1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(graphs->instructions(), 4u);
  EXPECT_TRUE(graphs->holds(3));
}

TEST_F(StepGraphRuns, TooManyInstructionsAreNotInGraphs) {
  kernels(3);
  builder.task("update");
  kernels(5);
  builder.schedule(0, 0);
  builder.schedule(1, 0);
  auto all = [](size_t) { return true; };
  StepGraphs both(prepare(), all, /*batches=*/1, /*most=*/8);
  EXPECT_TRUE(both.at(0) && both.at(3));
  StepGraphs first(*program, all, 1, 7);
  EXPECT_TRUE(first.at(0) && !first.at(3) && !first.holds(4));
  EXPECT_EQ(first.allRuns().size(), 1u);
  StepGraphs second(*program, all, 1, 2);
  EXPECT_EQ(second.instructions(), 0u);
}

/// A collective that is in graphs for some members of its group and not for others makes NCCL hang.
TEST_F(StepGraphsTest, OnlySomeGroupsMayBeCaptured) {
  kernels(3);
  builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, x, x);
  kernels(4);
  EXPECT_EQ(findStretches(prepare(), [](size_t group) { return group != 0; }).size(), 2u);
}

TEST(StepGraphOptions, DevicesWithoutGraphsRefuseThem) {
  SessionOptions options;
  options.graphs = true;
  EXPECT_ERROR(Session::create(trainingPlan(), createFakeBackend(), options),
               "--cuda-graphs on: the devices are no GPUs (--device cuda)");
  options.graphs = false;
  EXPECT_OK(Session::create(trainingPlan(), createFakeBackend(), options));
}

} // namespace

} // namespace stepGraphsTest
