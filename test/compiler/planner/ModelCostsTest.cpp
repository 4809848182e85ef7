//===- ModelCostsTest.cpp - Bounds of what microbatches cost --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/CostProbe.h"
#include "compiler/planner/SearchSpace.h"
#include "simulator/cluster/ClusterReader.h"
#include "test/lib/RandomCases.h"
#include "test/lib/compile/PlannerCases.h"
#include "test/lib/files/SourcePath.h"

#include "mlir/IR/Diagnostics.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>

namespace modelCostsTest {

using namespace dtc;
using namespace dtc::test;

// Strategies whose bound is too slow are not probed. A step takes at least as long as its bound.
TEST(ModelCosts, FewerSamplesCostAtLeastTheirBound) {
  const uint64_t seed = randomSeed();
  SCOPED_TRACE("DTC_RANDOM_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto oneOf = [&](auto... values) {
    std::array all{values...};
    return all[random() % all.size()];
  };
  int compared = 0;
  for (int draw = 0; draw < 6; ++draw) {
    PlannedModel model{.name = oneOf("gpt2", "llama"), .layers = 4, .batch = 64};
    model.hidden = oneOf(256, 1024, 4096);
    model.seq = oneOf(128, 1024, 2048);
    model.heads = oneOf(8, 16);
    model.vocab = oneOf(1024, 32768);
    SCOPED_TRACE(model.str());
    PlannerContext compiler;
    auto module = importCase(compiler, model);
    ASSERT_TRUE(module) << compiler.diagnostics();
    auto cluster = readCluster(sourcePath(std::string("examples/clusters/") +
                                          oneOf("dgx-h100.textproto", "dgx-a100-80gb.textproto")));
    ASSERT_TRUE(cluster) << cluster.error().message;
    CompileOptions options;
    options.dtype = ComputeType::BF16;
    CostProbe probe(*module, options, *cluster, model.batch);
    CostKey most{.tp = oneOf(1, 2, 8), .samples = 8};
    llvm::ArrayRef<ModelCosts> known = probe.find(most);
    ASSERT_FALSE(known.empty());
    for (int64_t samples : {1, 2, 4}) {
      CostKey fewer = most;
      fewer.samples = samples;
      llvm::ArrayRef<ModelCosts> costs = probe.find(fewer);
      ASSERT_FALSE(costs.empty());
      ModelCosts bound = boundFewerSamples(known.front(), double(samples) / 8);
      auto secondsOf = [](const ModelCosts &of) {
        double seconds = 0;
        for (const SectionCost *part : {&of.before, &of.layer, &of.after})
          seconds += part->forward + part->backward;
        return seconds;
      };
      EXPECT_LE(secondsOf(bound), secondsOf(costs.front())) << samples << " samples";
      EXPECT_GT(secondsOf(bound), 0);
      EXPECT_LE(bound.layer.keptBytes, 1.01 * costs.front().layer.keptBytes);
      EXPECT_EQ(bound.layer.parameterBytes, costs.front().layer.parameterBytes);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 18);
}

} // namespace modelCostsTest
