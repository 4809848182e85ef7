//===- StepEstimateTest.cpp - Time and memory of strategies, estimated ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/StepEstimate.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "test/lib/compile/PlannerCases.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stepEstimateTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// Costs that tests can compute with: a layer takes 1 ms forward and 2 ms backward.
ModelCosts roundCosts() {
  ModelCosts costs;
  costs.layers = 8;
  costs.layer = {.forward = 1e-3,
                 .backward = 2e-3,
                 .once = 1e-4,
                 .keptBytes = 1e6,
                 .parameterBytes = 4e6,
                 .stateBytes = 8e6,
                 .gradientBytes = 4e6};
  costs.boundaryBytes = 1e4;
  costs.layer.transientBytes = 1e5;
  return costs;
}

class StepEstimates : public testing::Test {
protected:
  StepEstimates() {
    options.cluster = &cluster;
    traits = {.batch = 64, .layers = 8, .hasTensorAxes = true, .hasSequenceAxis = true};
  }
  StepEstimate estimate(const ParallelStrategy &strategy) {
    return StepEstimator(options, traits).estimate(strategy, costs);
  }
  /// Nodes have a host, whose memory and link have 1 GB/s.
  void addHost() {
    *cluster.add_devices() = cluster.devices(0);
    cluster::DeviceKind &host = *cluster.mutable_devices(cluster.devices_size() - 1);
    host.set_name("host");
    host.set_memory_bandwidth(1e9);
    cluster.mutable_node_kinds(0)->set_host("host");
    cluster.mutable_node_kinds(0)->mutable_host_link()->set_bandwidth(1e9);
  }

  cluster::Cluster cluster = smallCluster(/*nodes=*/2, /*devicesOfNode=*/8);
  PlannerOptions options;
  ModelProperties traits;
  ModelCosts costs = roundCosts();
};

TEST_F(StepEstimates, OneDevice) {
  StepEstimate one = estimate({});
  EXPECT_DOUBLE_EQ(one.computing, 8 * 3e-3);
  EXPECT_EQ(one.bubble, 0);
  EXPECT_EQ(one.data, 0);
  EXPECT_EQ(one.transfers, 0);
  EXPECT_DOUBLE_EQ(one.update, 8e-4);
  EXPECT_GE(one.bytes, 8 * (1e6 + 4e6 + 8e6));
}

/// The host keeps the optimizer's states, and updates while gradients come and parameters go.
TEST_F(StepEstimates, OffloadTakesStatesFromTheDevice) {
  addHost();
  for (int64_t dp : {1, 2}) {
    ParallelStrategy strategy;
    strategy.dp = dp;
    options.devices = dp;
    options.base.offload = "";
    StepEstimate kept = estimate(strategy);
    options.base.offload = "optimizer";
    StepEstimate offloaded = estimate(strategy);
    EXPECT_DOUBLE_EQ(kept.bytes - offloaded.bytes, 8 * 8e6);
    // States are read and written, gradients and parameters read, by all devices of the node.
    EXPECT_DOUBLE_EQ(offloaded.update, double(dp) * 8 * (2 * 8e6 + 4e6 + 4e6) / 1e9);
    options.base.offload = "optimizer:0.5";
    StepEstimate half = estimate(strategy);
    EXPECT_DOUBLE_EQ(kept.bytes - half.bytes, 8 * 4e6);
    EXPECT_DOUBLE_EQ(half.update, (kept.update + offloaded.update) / 2);
  }
  // Where links are slow, a copy takes longest.
  options.base.offload = "optimizer";
  options.devices = 1;
  cluster.mutable_node_kinds(0)->mutable_host_link()->set_bandwidth(1e8);
  EXPECT_NEAR(estimate({}).update, 8 * 4e6 / 1e8, 1e-9);
}

/// Activations are on the device while they come and go, and copies that the passes do not hide
/// take longer.
TEST_F(StepEstimates, OffloadTakesActivationsFromTheDevice) {
  addHost();
  ParallelStrategy strategy;
  strategy.microbatches = 4; // their gradients are there throughout
  options.devices = 1;
  options.base.offload = "";
  StepEstimate kept = estimate(strategy);
  double layer = kept.keptBytes / 8; // there are 8 layers
  options.base.offload = "activations";
  StepEstimate offloaded = estimate(strategy);
  EXPECT_DOUBLE_EQ(kept.bytes - offloaded.bytes, kept.keptBytes - 2 * layer);
  EXPECT_EQ(offloaded.keptBytes, 0);
  options.base.offload = "activations:0.5";
  EXPECT_DOUBLE_EQ(kept.bytes - estimate(strategy).bytes, (kept.keptBytes - 2 * layer) / 2);
  // Each microbatch's copies take longer than its passes over a link that is slow enough.
  options.base.offload = "activations";
  cluster.mutable_node_kinds(0)->mutable_host_link()->set_bandwidth(1e6);
  double copy = kept.keptBytes / 1e6;
  EXPECT_NEAR(estimate(strategy).update - kept.update,
              4 * (2 * copy - kept.forward - kept.backward), 1e-9);
}

/// The formulas of getScheduleRules(), with F and B for all stages of a device.
TEST_F(StepEstimates, BubblesAreThoseOfTheSchedules) {
  for (int64_t p : {2, 4})
    for (int64_t m : {4, 8}) {
      double forward = 8e-3 / double(p), backward = 16e-3 / double(p), both = forward + backward;
      double p1 = double(p - 1);
      const std::tuple<const char *, int64_t, double> cases[] = {
          {"naive", 1, p1 * double(m) * both}, {"gpipe", 1, p1 * both},    {"1f1b", 1, p1 * both},
          {"interleaved", 2, p1 * both / 2},   {"zb-h1", 1, p1 * forward}, // F + B - W, where B = W
          {"zb-v", 2, p1 * forward / 2},
      };
      for (auto [schedule, chunks, bubble] : cases) {
        ParallelStrategy strategy;
        strategy.pp = p;
        strategy.microbatches = m;
        strategy.schedule = schedule;
        strategy.chunks = chunks;
        EXPECT_NEAR(estimate(strategy).bubble, bubble, 1e-12)
            << schedule << " p=" << p << " m=" << m;
      }
    }
}

/// Unit by unit a schedule takes what its formula says where F = B = W and messages are short.
TEST_F(StepEstimates, RefinedEstimatesAreNearTheFormulas) {
  costs.boundaryBytes = 0;
  for (const ScheduleRule &rule : getScheduleRules())
    for (int64_t p : {2, 4})
      for (int64_t m : {4, 8, 12}) {
        ParallelStrategy strategy;
        strategy.pp = p;
        strategy.microbatches = m;
        strategy.schedule = rule.name.str();
        strategy.chunks = rule.minChunks;
        StepEstimate closed = estimate(strategy), refined = closed;
        closed.transfers = 0;
        StepEstimator(options, traits).refine(strategy, costs, refined);
        EXPECT_GT(StepEstimator::numUnits(strategy), 0);
        EXPECT_NEAR(refined.seconds() / closed.seconds(), 1, 0.05)
            << rule.name.str() << " p=" << p << " m=" << m;
        EXPECT_LE(refined.inFlight, double(m * strategy.chunks)) << rule.name.str();
        EXPECT_GE(refined.inFlight, 1);
        EXPECT_NEAR(refined.bytes / closed.bytes, 1, 0.1) << rule.name.str();
      }
  ParallelStrategy flat;
  StepEstimate closed = estimate(flat), refined = closed;
  StepEstimator(options, traits).refine(flat, costs, refined);
  EXPECT_EQ(StepEstimator::numUnits(flat), 0);
  EXPECT_EQ(refined.seconds(), closed.seconds());
}

/// gpipe has no limit of its own, and others' limits are more than a short step has microbatches.
TEST_F(StepEstimates, NoMoreMicrobatchesAreInFlightThanThereAre) {
  for (const ScheduleRule &rule : getScheduleRules())
    for (int64_t m : {1, 2, 16}) {
      ParallelStrategy strategy;
      strategy.pp = 4;
      strategy.microbatches = m;
      strategy.schedule = rule.name.str();
      strategy.chunks = rule.minChunks;
      StepEstimate found = estimate(strategy);
      EXPECT_GE(found.inFlight, 1);
      EXPECT_LE(found.inFlight, double(m * strategy.chunks)) << rule.name.str() << " m=" << m;
      // All layers' parameters, states and gradients, and what 16 microbatches keep.
      EXPECT_LT(found.bytes, 8 * 16e6 + 16 * 8e6 * 1.5 + 1e6) << rule.name.str();
    }
}

TEST_F(StepEstimates, MemoryFallsWithZero) {
  ParallelStrategy strategy;
  strategy.dp = 8;
  strategy.bucketBytes = 0;
  double before = estimate(strategy).bytes;
  for (int64_t zero : {1, 2, 3}) {
    strategy.zero = zero;
    double bytes = estimate(strategy).bytes;
    EXPECT_LT(bytes, before) << zero;
    before = bytes;
  }
}

TEST_F(StepEstimates, MemoryGrowsWithWhatIsKeptAndFallsWithStages) {
  ParallelStrategy strategy;
  // With one microbatch, gradients take the place of kept values.
  double single = estimate(strategy).bytes;
  costs.layer.keptBytes *= 2;
  EXPECT_DOUBLE_EQ(estimate(strategy).bytes, single);
  costs = roundCosts();
  strategy.microbatches = 8;
  double one = estimate(strategy).bytes;
  EXPECT_DOUBLE_EQ(one, single + 8e6);
  costs.layer.keptBytes *= 2;
  EXPECT_DOUBLE_EQ(estimate(strategy).bytes, one + 8e6);
  costs = roundCosts();
  double before = estimate(strategy).bytes;
  for (int64_t pp : {2, 4, 8}) {
    strategy.pp = pp;
    double bytes = estimate(strategy).bytes;
    EXPECT_LT(bytes, before) << pp;
    before = bytes;
  }
}

TEST_F(StepEstimates, TimeGrowsWithCostsAndFallsWithBandwidth) {
  ParallelStrategy strategy;
  strategy.dp = 16;
  strategy.bucketBytes = int64_t(1) << 40; // nothing hides
  for (int64_t zero : {0, 1, 2, 3}) {
    strategy.zero = zero;
    costs = roundCosts();
    double base = estimate(strategy).seconds();
    EXPECT_GT(base, estimate({}).computing) << zero;
    for (double SectionCost::*field : {&SectionCost::forward, &SectionCost::backward,
                                       &SectionCost::once, &SectionCost::gradientBytes}) {
      costs = roundCosts();
      costs.layer.*field *= 4;
      EXPECT_GT(estimate(strategy).seconds(), base) << zero;
    }
    costs = roundCosts();
    cluster::Cluster fast = cluster;
    for (cluster::NodeKind &node : *fast.mutable_node_kinds()) {
      node.mutable_link()->set_bandwidth(node.link().bandwidth() * 100);
      node.set_device_network_bandwidth(node.device_network_bandwidth() * 100);
    }
    options.cluster = &fast;
    EXPECT_LT(estimate(strategy).seconds(), base) << zero;
    options.cluster = &cluster;
  }
}

/// Collectives of parameters that are smaller than a bucket are those of the buckets.
TEST_F(StepEstimates, CollectivesAreThoseOfBuckets) {
  SectionCost part;
  part.parameters = {{{.shape = {8, 8}, .parameterBytes = 100, .gradientBytes = 200}, 3},
                     {{.shape = {4}, .parameterBytes = 10, .gradientBytes = 20}, 6}};
  part.parameterBytes = 3 * 100 + 6 * 10;
  part.gradientBytes = 2 * part.parameterBytes;
  EXPECT_DOUBLE_EQ(part.collectivesOf(20).parameters, 3 + 60.0 / 20);
  EXPECT_DOUBLE_EQ(part.collectivesOf(20).gradients, 3 + 6);
  EXPECT_DOUBLE_EQ(part.collectivesOf(150).parameters, 360.0 / 150);
  EXPECT_DOUBLE_EQ(part.collectivesOf(150).gradients, 3 + 120.0 / 150);
  // Where the parameters are not known, all is in buckets.
  part = {.parameterBytes = 300, .gradientBytes = 600};
  EXPECT_DOUBLE_EQ(part.collectivesOf(100).gradients, 6);
}

/// Each collective takes the latency of its links.
TEST_F(StepEstimates, ManySmallBucketsTakeLonger) {
  for (int64_t zero : {0, 1, 2, 3}) {
    costs = roundCosts();
    costs.layer.backward = 1e-6; // hides nothing
    ParallelStrategy strategy{.dp = 16, .zero = zero, .bucketBytes = int64_t(1) << 40};
    double one = estimate(strategy).data;
    strategy.bucketBytes = 1000;
    EXPECT_GT(estimate(strategy).data, 2 * one) << zero;
  }
}

/// With little to move most of it hides, with much nothing.
TEST_F(StepEstimates, WhatMicrobatchesMoveHidesBehindThem) {
  for (int64_t zero : {2, 3}) {
    ParallelStrategy strategy{
        .dp = 16, .zero = zero, .microbatches = 4, .bucketBytes = int64_t(1) << 40};
    costs = roundCosts();
    costs.layer.forward = costs.layer.backward = 1e-9;
    double whole = estimate(strategy).data;
    strategy.bucketBytes = 4'000'000;
    costs.layer.forward = costs.layer.backward = 1;
    double hidden = estimate(strategy).data;
    EXPECT_LT(hidden, 0.5 * whole) << zero;
    EXPECT_GT(hidden, 0) << zero;
    // Stages of a pipeline wait for it.
    strategy.dp = 8;
    strategy.pp = 2;
    EXPECT_GT(estimate(strategy).data, hidden) << zero;
  }
}

/// Further stages of ZeRO than the first move data over cp for each microbatch, also where no other
/// axis has data. With stage 1 the sum over cp is among the costs of the model.
TEST_F(StepEstimates, MicrobatchesMoveDataOverContext) {
  costs = roundCosts();
  costs.layer.forward = costs.layer.backward = 1e-9; // hides nothing
  auto dataOf = [&](int64_t zero, int64_t dp, int64_t cp, int64_t microbatches) {
    ParallelStrategy strategy{.dp = dp, .zero = zero, .microbatches = microbatches};
    strategy.cp = cp;
    strategy.bucketBytes = int64_t(1) << 40;
    return estimate(strategy).data;
  };
  for (int64_t zero : {0, 1})
    EXPECT_EQ(dataOf(zero, 1, 8, 4), 0) << zero;
  for (int64_t zero : {2, 3}) {
    EXPECT_GT(dataOf(zero, 1, 8, 4), 2 * dataOf(zero, 1, 8, 1)) << zero;
    EXPECT_GT(dataOf(zero, 1, 8, 1), 0) << zero;
    // The groups are over both axes.
    EXPECT_DOUBLE_EQ(dataOf(zero, 2, 4, 4), dataOf(zero, 8, 1, 4)) << zero;
  }
}

TEST_F(StepEstimates, LongerMessagesTakeLonger) {
  ParallelStrategy strategy;
  strategy.pp = 4;
  strategy.microbatches = 8;
  double base = estimate(strategy).transfers;
  EXPECT_GT(base, 0);
  costs.boundaryBytes *= 1000;
  StepEstimate slower = estimate(strategy);
  EXPECT_GT(slower.transfers, base);
  StepEstimate refined = slower;
  StepEstimator(options, traits).refine(strategy, costs, refined);
  EXPECT_GT(refined.seconds(), refined.computing);
}

/// Two kinds of nodes: the layer of roundCosts() on the first, in a third of that time on the
/// second.
class MixedEstimates : public testing::Test {
protected:
  MixedEstimates() {
    options.cluster = &cluster;
    for (cluster::DeviceKind &device : *cluster.mutable_devices())
      device.set_memory_bytes(1e9);
    traits = {.batch = 64, .layers = 8, .layerPrefix = "h."};
    costs[1].layer.forward /= 3;
    costs[1].layer.backward /= 3;
    strategy.pp = 2;
    strategy.dp = 2;
    strategy.microbatches = 8;
  }
  void balance() { StepEstimator(options, traits).balance(strategy, costs); }
  StepEstimate estimate() { return StepEstimator(options, traits).estimate(strategy, costs); }

  cluster::Cluster cluster = mixedCluster(/*devicesOfNode=*/2, /*times=*/3);
  PlannerOptions options;
  ModelProperties traits;
  ParallelStrategy strategy;
  std::vector<ModelCosts> costs = {roundCosts(), roundCosts()};
};

TEST_F(MixedEstimates, StagesAreInProportionToSpeed) {
  EXPECT_DOUBLE_EQ(estimate().computing, 8 * 4 * 3e-3); // of equal stages
  balance();
  EXPECT_EQ(strategy.stageLayers, (std::vector<int64_t>{2, 6}));
  EXPECT_EQ(strategy.stages, "h.0-h.1|h.2-h.7");
  EXPECT_EQ(strategy.toOptions({}).stages, strategy.stages);
  StepEstimate balanced = estimate();
  EXPECT_DOUBLE_EQ(balanced.computing, 8 * 2 * 3e-3);
  StepEstimate refined = balanced;
  StepEstimator(options, traits).refine(strategy, costs, refined);
  EXPECT_NEAR(refined.seconds() / balanced.seconds(), 1, 0.05);
  // The part after the layers counts for the kind of node that it is on.
  costs[1].after.forward = 2e-3;
  strategy = {.dp = 2, .pp = 2, .microbatches = 8};
  balance();
  EXPECT_EQ(strategy.stages, "h.0-h.1|h.2-h.7");
  costs[1].after.forward = 4e-3;
  balance();
  EXPECT_EQ(strategy.stages, "h.0-h.2|h.3-h.7");
}

TEST_F(MixedEstimates, ChunksAreInTheOrderOfTheSchedule) {
  strategy.chunks = 2;
  strategy.schedule = "interleaved";
  balance();
  EXPECT_EQ(strategy.stages, "h.0|h.1-h.3|h.4|h.5-h.7");
  strategy.schedule = "zb-v"; // the last stage is on the first device
  balance();
  EXPECT_EQ(strategy.stages, "h.0|h.1-h.3|h.4-h.6|h.7");
  EXPECT_DOUBLE_EQ(estimate().computing, 8 * 2 * 3e-3);
}

/// A layer needs 4 MB of parameters, 8 MB of state and 4 MB of gradients.
TEST_F(MixedEstimates, StagesFitTheMemoryOfTheirDevices) {
  cluster.mutable_devices(0)->set_memory_bytes(400e6);
  cluster.mutable_devices(1)->set_memory_bytes(70e6);
  balance();
  EXPECT_EQ(strategy.stageLayers.size(), 2u);
  EXPECT_LT(strategy.stageLayers[1], 5);
  EXPECT_LE(estimate().memoryShare(), 1);
  EXPECT_DOUBLE_EQ(estimate().memoryBytes, 70e6); // of the device that is fullest
}

TEST_F(MixedEstimates, OneKindAndOtherModelsAreLeftToTheCompiler) {
  strategy.pp = 1;
  strategy.dp = 4;
  balance();
  EXPECT_EQ(strategy.stages, "");
  // The slower kind sets the pace.
  EXPECT_DOUBLE_EQ(estimate().computing, 8 * 8 * 3e-3);
  strategy.pp = 2;
  strategy.dp = 2;
  traits.layers = 0;
  balance();
  EXPECT_EQ(strategy.stages, "");
  traits.layers = 8;
  options.devices = 2;
  strategy.dp = 1;
  balance();
  EXPECT_EQ(strategy.stages, "");
}

/// Where no layers repeat, each stage has a part of the whole.
TEST_F(MixedEstimates, ModelsWithoutLayersAreSharedOut) {
  traits.layers = 0;
  for (ModelCosts &own : costs)
    own = {.before = own.layer};
  EXPECT_DOUBLE_EQ(estimate().computing, 8 * 3e-3 / 2);
}

/// With the pipeline inside of dp, each stage has devices of both kinds.
TEST_F(MixedEstimates, TheSlowestKindOfAStageCounts) {
  strategy.pipelineInside = true;
  balance();
  EXPECT_EQ(strategy.stages, "h.0-h.3|h.4-h.7");
  EXPECT_DOUBLE_EQ(estimate().computing, 8 * 4 * 3e-3);
}

} // namespace

} // namespace stepEstimateTest
