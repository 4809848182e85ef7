//===- PageFuzzTest.cpp - Fuzz tests of HTML reports ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "report/html/SimulationPage.h"
#include "simulator/cluster/ClusterReader.h"
#include "test/lib/RandomCases.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/MutatePlan.h"
#include "test/lib/plans/TestPlans.h"
#include "test/lib/plans/TimeGuard.h"
#include "test/report/SchedulePlans.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <iostream>
#include <random>

namespace pageFuzzTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

/// Whatever a plan holds that its reader accepts, its page hangs together.
static void fuzz(const plan::Plan &plan) {
  Expected<dtc::cluster::Cluster> cluster = parseCluster(R"(
    devices { name: "gpu" memory_bytes: 24e9 memory_bandwidth: 800e9
              matrix { dtype: "f32" flops: 30e12 } }
    node_kinds { name: "machine" device: "gpu" devices: 4 link { bandwidth: 25e9 }
                 network_bandwidth: 10e9 }
    nodes { node: "machine" count: 1000 }
    network { latency: 1e-5 })");
  ASSERT_OK(cluster);
  const uint64_t count = dtc::test::randomCases(300), seed = dtc::test::randomSeed();
  std::mt19937_64 random(seed);
  uint64_t drawn = 0;
  for (uint64_t i = 0; i < count; ++i) {
    std::string bytes = i == 0 ? serializePlan(plan) : mutateFields(plan, random);
    std::string about = fmt::format("DTC_RANDOM_SEED={}, plan {}", seed, i);
    SCOPED_TRACE(about);
    TimeGuard guard(std::chrono::seconds(60), about);
    auto read = parsePlan(bytes.data(), bytes.size());
    if (!read)
      continue;
    SimulationOptions options;
    options.keepCollectives = true;
    Expected<Simulation> simulation = simulateOnCluster(**read, *cluster, options);
    if (!simulation)
      continue;
    Expected<std::string> page = simulationToHtml(**read, *cluster, *simulation);
    ASSERT_OK(page);
    ++drawn;
    EXPECT_TRUE(page->ends_with("</html>\n"));
    for (const char *number : {"=\"nan", "=\"-nan", "=\"inf", "=\"-inf", " nan ", " inf "})
      EXPECT_EQ(page->find(number), std::string::npos) << number;
    if (::testing::Test::HasFailure())
      return;
  }
  std::cout << drawn << " of " << count << " were drawn\n";
  EXPECT_GT(drawn, 0u);
}

TEST(PageFuzz, OfATrainingPlan) { fuzz(*trainingPlan({2, 2, 2})); }
TEST(PageFuzz, OfBucketsBesideKernels) { fuzz(*overlapPlan(/*async=*/true)); }

TEST(PageFuzz, OfAPipeline) { fuzz(*pipelinePlan(2)); }
TEST(PageFuzz, OfManyStages) { fuzz(*gpipePlan({.devices = 3, .chunks = 2})); }

} // namespace pageFuzzTest
