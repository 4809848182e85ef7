//===- SearchSpaceTest.cpp - Tests of the search space --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/SearchSpace.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/import/ImportModel.h"
#include "compiler/planner/Strategy.h"
#include "test/lib/compile/PlannerCases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace searchSpaceTest {

using namespace dtc;
using namespace dtc::test;

namespace {

class SearchSpace : public testing::Test {
protected:
  SearchSpace() {
    traits = {.batch = 24, .layers = 8, .hasTensorAxes = true, .hasSequenceAxis = true};
    options.cluster = &cluster;
  }
  std::vector<ParallelStrategy> strategies() const { return enumerateStrategies(options, traits); }
  /// All fields, as the compiler is asked for them.
  static std::string textOf(const ParallelStrategy &strategy) {
    return formatStrategy(strategy.toOptions({})) + std::to_string(strategy.pipelineInside);
  }
  void fix(const char *option) { options.fixed.insert(option); }

  cluster::Cluster cluster = smallCluster(/*nodes=*/3, /*devicesOfNode=*/4);
  PlannerOptions options;
  ModelProperties traits;
};

TEST_F(SearchSpace, EveryStrategyUsesAllDevicesAndDividesTheBatch) {
  ASSERT_GT(strategies().size(), 100u);
  for (const ParallelStrategy &strategy : strategies()) {
    EXPECT_EQ(strategy.dp * strategy.fsdp * strategy.tp * strategy.pp, 12);
    EXPECT_EQ(traits.batch % (strategy.data() * strategy.microbatches), 0);
    EXPECT_GE(strategy.key(traits.batch).samples, 1);
    EXPECT_LE(strategy.tp, 4) << "tensor parallelism stays in a node";
  }
}

/// A model with batch norms takes neither a pipeline nor microbatches, also where these are fixed.
TEST_F(SearchSpace, MixedSamplesAreInOneMicrobatch) {
  traits.mixesSamples = true;
  ASSERT_FALSE(strategies().empty());
  for (const ParallelStrategy &strategy : strategies()) {
    EXPECT_EQ(strategy.pp, 1);
    EXPECT_EQ(strategy.microbatches, 1);
  }
  options.axes = {{"pp", 2}};
  EXPECT_TRUE(strategies().empty());
  options.axes.clear();
  fix("microbatches");
  options.base.microbatches = 2;
  EXPECT_TRUE(strategies().empty());
  options.base.microbatches = 1;
  EXPECT_FALSE(strategies().empty());
}

TEST_F(SearchSpace, FewerDevicesThanTheClusterHas) {
  for (int64_t devices : {1, 2, 4, 6, 8}) {
    options.devices = devices;
    ASSERT_FALSE(strategies().empty()) << devices;
    for (const ParallelStrategy &strategy : strategies())
      EXPECT_EQ(strategy.dp * strategy.fsdp * strategy.tp * strategy.pp, devices);
  }
}

TEST_F(SearchSpace, NoStrategyIsThereTwiceAndTheOrderIsFixed) {
  std::set<std::string> seen;
  for (const ParallelStrategy &strategy : strategies())
    EXPECT_TRUE(seen.insert(textOf(strategy)).second) << textOf(strategy);
  std::vector<ParallelStrategy> once = strategies(), again = strategies();
  ASSERT_EQ(once.size(), again.size());
  for (size_t i = 0; i < once.size(); ++i)
    EXPECT_EQ(textOf(once[i]), textOf(again[i])) << i;
}

/// A person can give a search the texts that it has written.
TEST_F(SearchSpace, EveryStrategyIsReadFromItsText) {
  auto check = [&] {
    ASSERT_FALSE(strategies().empty());
    for (const ParallelStrategy &strategy : strategies()) {
      CompileOptions read;
      std::string text = formatStrategy(strategy.toOptions(options.base));
      auto error = parseStrategy(text, read);
      ASSERT_FALSE(error) << error->message << "\n" << text;
      ASSERT_EQ(formatStrategy(read), text);
    }
  };
  check();
  fix("sequence_parallel");
  options.base.sequenceParallel = true;
  check();
  fix("zero");
  for (int64_t zero : {0, 1, 2, 3}) {
    options.base.zero = zero;
    check();
  }
}

TEST_F(SearchSpace, EveryScheduleSupportsItsShape) {
  std::set<std::string> seen;
  for (const ParallelStrategy &strategy : strategies()) {
    if (strategy.pp == 1)
      continue;
    auto rule = findScheduleRule(strategy.schedule);
    ASSERT_TRUE(rule) << strategy.schedule;
    seen.insert(strategy.schedule);
    PipelineShape shape{int(strategy.pp), int(strategy.chunks), int(strategy.microbatches)};
    EXPECT_FALSE(checkShape(shape, *rule)) << textOf(strategy);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"}));
}

/// 126 layers, the embedding and the loss are 128 places; 100 layers are far from 128.
TEST_F(SearchSpace, StagesMayHaveRoomForALayerMore) {
  cluster = smallCluster(/*nodes=*/8, /*devicesOfNode=*/4);
  traits.batch = 256;
  auto mostStages = [&](int64_t layers) {
    traits.layers = layers;
    int64_t most = 0;
    for (const ParallelStrategy &strategy : strategies())
      if (strategy.schedule == "interleaved" && strategy.pp == 16)
        most = std::max(most, strategy.pp * strategy.chunks);
    return most;
  };
  EXPECT_EQ(mostStages(126), 128);
  EXPECT_EQ(mostStages(128), 128);
  EXPECT_EQ(mostStages(100), 0);
}

/// A model without repeated layers is cut into few stages: parts of its few ops make no more.
TEST_F(SearchSpace, WithoutLayersThereAreFewStages) {
  traits.layers = 0;
  ASSERT_FALSE(strategies().empty());
  for (const ParallelStrategy &strategy : strategies())
    EXPECT_LE(strategy.chunks == 1 ? 1 : strategy.pp * strategy.chunks, 4) << textOf(strategy);
}

TEST_F(SearchSpace, FixedOptionsHold) {
  size_t all = strategies().size();
  struct SearchedOption {
    const char *name;
    void (*set)(CompileOptions &);
    bool (*holds)(const ParallelStrategy &);
  };
  const SearchedOption searched[] = {
      {"microbatches", [](CompileOptions &o) { o.microbatches = 3; },
       [](const ParallelStrategy &l) { return l.microbatches == 3; }},
      {"zero", [](CompileOptions &o) { o.zero = 2; },
       [](const ParallelStrategy &l) { return l.zero == 2 && l.data() > 1; }},
      {"zero", [](CompileOptions &o) { o.zero = 0; },
       [](const ParallelStrategy &l) { return l.zero == 0 && l.fsdp == 1; }},
      {"sequence_parallel", [](CompileOptions &o) { o.sequenceParallel = true; },
       [](const ParallelStrategy &l) { return l.sequenceParallel && l.tp > 1; }},
      {"sequence_parallel", [](CompileOptions &o) { o.sequenceParallel = false; },
       [](const ParallelStrategy &l) { return !l.sequenceParallel; }},
      {"schedule", [](CompileOptions &o) { o.schedule = "naive"; },
       [](const ParallelStrategy &l) { return l.pp == 1 || l.schedule == "naive"; }},
      {"recompute", [](CompileOptions &o) { o.recompute = Recompute::Full; },
       [](const ParallelStrategy &l) { return l.recompute == Recompute::Full; }},
      {"bucket_bytes", [](CompileOptions &o) { o.bucketBytes = 7; },
       [](const ParallelStrategy &l) { return l.bucketBytes == 7; }},
  };
  for (const SearchedOption &option : searched) {
    options.base = {};
    options.fixed = {option.name};
    option.set(options.base);
    std::vector<ParallelStrategy> left = strategies();
    EXPECT_FALSE(left.empty()) << option.name;
    EXPECT_LE(left.size(), all) << option.name;
    for (const ParallelStrategy &strategy : left)
      EXPECT_TRUE(option.holds(strategy)) << option.name << "\n" << textOf(strategy);
  }
}

TEST_F(SearchSpace, FixedAxesHold) {
  options.axes = {{"pp", 3}, {"tp", 2}};
  ASSERT_FALSE(strategies().empty());
  for (const ParallelStrategy &strategy : strategies())
    EXPECT_TRUE(strategy.pp == 3 && strategy.tp == 2 && strategy.data() == 2) << textOf(strategy);
  options.axes = {{"fsdp", 4}};
  ASSERT_FALSE(strategies().empty());
  for (const ParallelStrategy &strategy : strategies())
    EXPECT_EQ(strategy.fsdp, 4) << textOf(strategy);
  options.axes = {{"dp", 5}};
  EXPECT_TRUE(strategies().empty());
  options.axes = {{"dp", 1}, {"fsdp", 1}, {"tp", 1}, {"pp", 1}};
  EXPECT_TRUE(strategies().empty()) << "12 devices";
}

TEST_F(SearchSpace, NeighboursOfANodeSplitHeads) {
  cluster = smallCluster(/*nodes=*/2, /*devicesOfNode=*/4);
  traits = {.batch = 1, .hasTensorAxes = true, .positions = 32768, .heads = 4};
  std::set<std::tuple<int64_t, int64_t, int64_t>> found; // tp, cp and heads
  for (const ParallelStrategy &strategy : strategies())
    if (strategy.cp > 1)
      found.insert({strategy.tp, strategy.cp, strategy.contextHeads});
  using Sizes = std::set<std::tuple<int64_t, int64_t, int64_t>>;
  EXPECT_EQ(found, (Sizes{{1, 2, 1},
                          {1, 4, 1},
                          {1, 4, 2},
                          {1, 8, 1},
                          {1, 8, 4},
                          {2, 2, 1},
                          {2, 4, 1},
                          {2, 4, 2},
                          {4, 2, 1}}));
  // Of two heads, one device along tp has one alone.
  traits.heads = 2;
  for (const ParallelStrategy &strategy : strategies())
    EXPECT_TRUE(strategy.contextHeads == 1 || strategy.tp * strategy.contextHeads == 2)
        << textOf(strategy);
  fix("context_heads");
  options.base.contextHeads = 2;
  ASSERT_FALSE(strategies().empty());
  for (const ParallelStrategy &strategy : strategies())
    EXPECT_TRUE(strategy.contextHeads == 2 && strategy.cp >= 4 && strategy.tp == 1)
        << textOf(strategy);
  options.base.contextHeads = 3;
  EXPECT_TRUE(strategies().empty());
  options.base.contextHeads = 1;
  for (const ParallelStrategy &strategy : strategies())
    EXPECT_EQ(strategy.contextHeads, 1);
}

TEST_F(SearchSpace, WhatTheModelDoesNotAllowIsNotThere) {
  traits.hasTensorAxes = false;
  traits.hasSequenceAxis = false;
  for (const ParallelStrategy &strategy : strategies())
    EXPECT_EQ(strategy.tp, 1);
  traits.batch = 1;
  for (const ParallelStrategy &strategy : strategies())
    EXPECT_EQ(strategy.data(), 1);
}

TEST_F(SearchSpace, ReadsWhatAModelAllows) {
  PlannerContext compiler;
  auto gpt2 = importCase(compiler, {.name = "gpt2", .layers = 2, .batch = 6});
  ModelProperties found = findProperties(*gpt2, 2);
  EXPECT_EQ(found.batch, 6);
  EXPECT_EQ(found.samplePositions, 32) << "tokens";
  EXPECT_EQ(found.layers, 2);
  EXPECT_TRUE(found.hasTensorAxes);
  EXPECT_TRUE(found.hasSequenceAxis);
  EXPECT_EQ(found.heads, 4);
  auto plain =
      compiler.parse(R"(func.func @loss(%x: tensor<4xf32> {dtc.input = "x"}) -> tensor<f32> {
    %s = dtc.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
    return %s : tensor<f32>
  })");
  ASSERT_TRUE(plain) << compiler.diagnostics();
  found = findProperties(*plain, 0);
  EXPECT_EQ(found.batch, 4) << "the first dimension of inputs";
  EXPECT_EQ(found.batchDims, std::vector<std::string>{"x#0"});
  EXPECT_FALSE(found.hasTensorAxes);
  EXPECT_FALSE(found.hasSequenceAxis);
  EXPECT_EQ(found.heads, 0);
}

/// The largest input of a model of images is its pixels, and a position has many of them.
TEST_F(SearchSpace, MicrobatchesOfImagesAreBoundedByTheirPositions) {
  PlannerContext compiler;
  ImportOptions batch;
  batch.batch = 1024;
  ImportLog log;
  auto images = importModel(compiler.context(), R"({"model_type": "vit", "image_size": 256,
    "patch_size": 32, "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2})",
                            "config.json", batch, log);
  ASSERT_TRUE(images);
  traits = findProperties(*images, 2);
  EXPECT_EQ(traits.batch, 1024);
  EXPECT_EQ(traits.samplePositions, 65);
  EXPECT_TRUE(traits.hasSequenceAxis);
  int64_t most = 0;
  for (const ParallelStrategy &strategy : strategies())
    most = std::max(most, traits.batch / strategy.data() / strategy.microbatches);
  EXPECT_GT(most, 128) << "8 samples are far fewer positions than a device can do at once";
  // Features that are no integers have no positions that are known: samples count.
  auto features = compiler.parse(
      R"(func.func @loss(%x: tensor<4x8xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}) -> tensor<f32> {
    %s = dtc.reduce sum %x dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
    return %s : tensor<f32>
  })");
  ASSERT_TRUE(features) << compiler.diagnostics();
  EXPECT_EQ(findProperties(*features, 0).samplePositions, 1);
}

} // namespace

} // namespace searchSpaceTest
