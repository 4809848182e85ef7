//===- StrategySearchTest.cpp - Tests of a search as it is asked for ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/StrategySearch.h"

#include "compiler/planner/Strategy.h"
#include "simulator/cluster/DeviceTime.h"
#include "test/lib/compile/PlannerCases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace strategySearchTest {

using namespace dtc;
using namespace dtc::test;
using testing::HasSubstr;

namespace {

class StrategySearch : public testing::Test {
protected:
  StrategySearch() : model(importCase(compiler, {.layers = 2, .hidden = 32, .batch = 8})) {
    request.spelling = OptionSpelling::Field;
  }

  Expected<StrategyChoice> search() {
    return searchStrategy(*model, "m", options, request, cluster);
  }
  /// The text of the error; empty without one.
  std::string errorOfSearch() {
    Expected<StrategyChoice> choice = search();
    return choice ? "" : choice.error().message;
  }
  static std::string textOf(const MaybeError &error) { return error ? error->message : ""; }

  PlannerContext compiler;
  mlir::OwningOpRef<mlir::ModuleOp> model;
  cluster::Cluster cluster = smallCluster(/*nodes=*/1, /*devicesOfNode=*/4);
  CompileOptions options;
  SearchRequest request;
};

/// What a search reports grows to what the result says, and what is to come comes to nothing.
TEST_F(StrategySearch, ReportsWhatIsDoneAndToCome) {
  request.set = {"pp=1"};
  std::vector<PlannerProgress> reports;
  Expected<StrategyChoice> choice =
      searchStrategy(*model, "m", options, request, cluster, [&](const PlannerProgress &progress) {
        reports.push_back(progress);
        return true;
      });
  ASSERT_TRUE(choice) << choice.error().message;
  const PlannerProgress &last = choice->result.progress;
  ASSERT_GT(reports.size(), size_t(last.simulated));
  EXPECT_EQ(reports.front().probes, 0);
  EXPECT_GT(reports.front().probesToCome, 1);
  for (size_t i = 1; i < reports.size(); ++i) {
    EXPECT_GE(reports[i].probes, reports[i - 1].probes);
    EXPECT_GE(reports[i].simulated, reports[i - 1].simulated);
  }
  EXPECT_GE(reports.front().simulationsToCome, last.simulated);
  EXPECT_EQ(reports.back().probesToCome, 0);
  EXPECT_EQ(reports.back().probes, last.probes);
  EXPECT_EQ(reports.back().simulated, last.simulated);
  EXPECT_EQ(reports.back().bestSeconds, last.bestSeconds);
  EXPECT_GT(last.bestSeconds, 0);
}

/// A search ends where its callback asks for it: while it probes, before the first strategy is
/// compiled, and later.
TEST_F(StrategySearch, EndsWhereItsCallbackDoes) {
  request.set = {"pp=1"};
  auto endsWhere = [&](llvm::function_ref<bool(const PlannerProgress &)> isEnd) {
    PlannerProgress last;
    int64_t after = 0;
    bool isAsked = false;
    Expected<StrategyChoice> choice =
        searchStrategy(*model, "m", options, request, cluster, [&](const PlannerProgress &each) {
          after += isAsked;
          last = each;
          isAsked = isEnd(each);
          return !isAsked;
        });
    EXPECT_FALSE(choice);
    EXPECT_EQ(choice ? "" : choice.error().message, "the search was ended");
    EXPECT_TRUE(isAsked);
    EXPECT_EQ(after, 0) << "calls after the end";
    return last;
  };
  EXPECT_EQ(endsWhere([](const PlannerProgress &) { return true; }).probes, 0);
  EXPECT_EQ(endsWhere([](const PlannerProgress &each) { return each.probes >= 2; }).simulated, 0);
  EXPECT_EQ(endsWhere([](const PlannerProgress &each) { return each.simulated == 1; }).simulated,
            1);
}

TEST_F(StrategySearch, GivenOptionsAndSizesStay) {
  options.zero = 2;
  options.dtype = ComputeType::BF16;
  request.given = {"zero", "dtype"};
  request.set = {"dp=4", "microbatches=2"};
  Expected<StrategyChoice> choice = search();
  ASSERT_TRUE(choice) << choice.error().message;
  const CompileOptions &chosen = choice->result.options;
  EXPECT_EQ(chosen.mesh, (MeshSizes{{"dp", 4}}));
  EXPECT_EQ(chosen.zero, 2);
  EXPECT_EQ(chosen.microbatches, 2);
  EXPECT_EQ(chosen.dtype, ComputeType::BF16);
  EXPECT_THAT(choice->report, HasSubstr("chosen: " + describeStrategy(chosen) + "\n"));
}

TEST_F(StrategySearch, WhatIsNotGivenIsSearched) {
  options.zero = 2; // a default of the caller
  request.set = {"dp=4"};
  Expected<StrategyChoice> choice = search();
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_FALSE(choice->asked.fixed.contains("zero"));
  options.zero = 0;
  Expected<StrategyChoice> again = search();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(formatStrategy(choice->result.options), formatStrategy(again->result.options));
}

TEST_F(StrategySearch, AutomaticRecomputationIsSearched) {
  request.set = {"dp=4"};
  Expected<StrategyChoice> choice = search();
  ASSERT_TRUE(choice) << choice.error().message;
  options.recompute = Recompute::Auto;
  options.memoryLimit = 64'000'000;
  request.given = {"recompute", "memory_limit"};
  Expected<StrategyChoice> automatic = search();
  ASSERT_TRUE(automatic) << automatic.error().message;
  EXPECT_FALSE(automatic->asked.fixed.contains("recompute"));
  EXPECT_EQ(formatStrategy(choice->result.options), formatStrategy(automatic->result.options));
}

TEST_F(StrategySearch, ErrorsOfWhatIsFixed) {
  request.set = {"sero=1"};
  EXPECT_THAT(errorOfSearch(), HasSubstr("set: there is no searched option \"sero\"; did you mean "
                                         "\"zero\"?"));
  request.set = {"pp=2", "pp=1"};
  EXPECT_EQ(errorOfSearch(), "set: pp is given twice");
  request.set = {"dp=0"};
  EXPECT_EQ(errorOfSearch(), "set: dp is \"0\", expected 1 to 2147483648");
  request.spelling = OptionSpelling::Flag;
  EXPECT_EQ(errorOfSearch(), "--set: dp is \"0\", expected 1 to 2147483648");
  request.set = {"pp=3"};
  EXPECT_EQ(errorOfSearch(),
            "no strategy with pp=3 divides 4 devices and a batch of 8 samples; leave out pp=3");
}

/// The errors of the planner name possible requests in the form of the caller's.
TEST_F(StrategySearch, ErrorsNameFlagsOrFields) {
  cluster = smallCluster(/*nodes=*/2, /*devicesOfNode=*/4);
  request.devices = 7;
  EXPECT_THAT(errorOfSearch(), HasSubstr("there are some with devices=6"));
  request.spelling = OptionSpelling::Flag;
  EXPECT_THAT(errorOfSearch(), HasSubstr("there are some with --devices 6"));
}

TEST_F(StrategySearch, NothingFits) {
  request.set = {"dp=4"};
  ASSERT_EQ(textOf(fitCluster(cluster, request, 100'000)), "");
  EXPECT_THAT(errorOfSearch(), HasSubstr("a device has 97.7 KiB that a plan may use\nthe closest"));
}

TEST_F(StrategySearch, ALimitBoundsWhatPlansMayUse) {
  cluster.mutable_devices(0)->set_memory_bytes(64e6);
  cluster.mutable_devices(0)->set_usable_memory(0.5);
  ASSERT_EQ(textOf(fitCluster(cluster, request, 32'000'001)), "");
  EXPECT_EQ(cluster.devices(0).memory_bytes(), 64e6) << "less is usable already";
  ASSERT_EQ(textOf(fitCluster(cluster, request, 0)), "");
  EXPECT_EQ(cluster.devices(0).memory_bytes(), 64e6) << "there is no limit";
  ASSERT_EQ(textOf(fitCluster(cluster, request, 31'000'000)), "");
  EXPECT_EQ(usableBytes(cluster.devices(0)), 31e6);
}

TEST_F(StrategySearch, ClustersGrow) {
  request.devices = 9;
  cluster = smallCluster(/*nodes=*/2, /*devicesOfNode=*/4);
  ASSERT_EQ(textOf(fitCluster(cluster, request, 0)), "");
  EXPECT_EQ(cluster.nodes(0).count(), 3);
  cluster = mixedCluster(/*devicesOfNode=*/4, /*times=*/2);
  EXPECT_THAT(textOf(fitCluster(cluster, request, 0)), HasSubstr("devices: 9 devices are asked"));
  request.spelling = OptionSpelling::Flag;
  EXPECT_THAT(textOf(fitCluster(cluster, request, 0)), HasSubstr("--devices: 9 devices are asked"));
}

TEST_F(StrategySearch, DevicesOfAMesh) {
  request.devices = 4;
  EXPECT_EQ(textOf(checkDevices({{"dp", 2}, {"tp", 2}}, request)), "");
  EXPECT_EQ(textOf(checkDevices({{"dp", 2}}, request)),
            "devices is 4, but the mesh has 2; leave devices out, or search a mesh for them with "
            "mesh=\"auto\"");
  MeshSizes large{{"a", int64_t(1) << 40}, {"b", int64_t(1) << 40}};
  EXPECT_THAT(textOf(checkDevices(large, request)), HasSubstr("the mesh has more;"));
  request.spelling = OptionSpelling::Flag;
  EXPECT_EQ(textOf(checkDevices({{"dp", 2}}, request)),
            "--devices: the mesh has 2 devices, not 4; leave the flag out, or search without a "
            "mesh");
}

TEST_F(StrategySearch, OptionsOfOneMesh) {
  request.given = {"zero", "memory_limit"};
  EXPECT_EQ(textOf(checkSearch(request, options)), "");
  request.given = {"zero", "stages"};
  EXPECT_EQ(textOf(checkSearch(request, options)),
            "stages: the search chooses the mesh that it would be for; give the axes and sizes of "
            "the mesh, or leave it out");
  options.mode = CompileMode::Generate;
  request.spelling = OptionSpelling::Flag;
  EXPECT_EQ(textOf(checkSearch(request, options)),
            "--cluster: for generation nothing is searched; give --mesh");
}

} // namespace
} // namespace strategySearchTest
