//===- DtcPlanTest.cpp - The program dtc-plan -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanReader.h"
#include "test/runtime/testing/Expect.h"
#include "test/runtime/testing/RunTool.h"
#include "test/runtime/testing/TempDir.h"
#include "test/runtime/testing/TestPlans.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// Runs the program in a folder with a plan and files for what it prints.
class DtcPlan : public ::testing::Test {
protected:
  DtcPlan() { EXPECT_OK(writePlan(*trainingPlan({2, 2, 2}), plan)); }

  int run(const std::vector<std::string> &arguments) {
    return waitForTool(startTool(DTC_PLAN_PATH, arguments, dir.path("out"), dir.path("err")));
  }

  std::string out() const { return dir.read("out"); }
  std::string err() const { return dir.read("err"); }

  TempDir dir;
  std::string plan = dir.path("m.plan");
};

} // namespace

TEST_F(DtcPlan, HelpAndVersion) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_TRUE(contains(out(), "show"));
  EXPECT_EQ(run({"show", "--help"}), 0);
  EXPECT_TRUE(contains(out(), "--json"));
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_TRUE(contains(out(), "(plan version 2)"));
  EXPECT_EQ(err(), "");
}

TEST_F(DtcPlan, ShowsAPlan) {
  EXPECT_EQ(run({"show", plan}), 0);
  EXPECT_TRUE(contains(out(), "a square"));
  EXPECT_EQ(err(), "");
  EXPECT_EQ(run({"show", plan, "--json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(out())["mesh"]["devices"], 4);
  EXPECT_EQ(err(), "");
}

TEST_F(DtcPlan, UsageErrors) {
  for (const std::vector<std::string> &arguments : {std::vector<std::string>{},
                                                    {"shoe", plan},
                                                    {"show"},
                                                    {plan},
                                                    {"show", plan, "--jsn"},
                                                    {"show", plan, plan}}) {
    EXPECT_EQ(run(arguments), 1);
    EXPECT_TRUE(err().starts_with("error: ")) << err();
    EXPECT_EQ(out(), "");
  }
}

TEST_F(DtcPlan, PlansThatCannotBeRead) {
  EXPECT_EQ(run({"show", dir.path("none.plan")}), 1);
  EXPECT_TRUE(contains(err(), "error: ") && contains(err(), "none.plan: cannot open"));

  std::string bytes = dir.read("m.plan");
  EXPECT_EQ(run({"show", dir.write("half.plan", bytes.substr(0, bytes.size() / 2))}), 1);
  EXPECT_TRUE(contains(err(), "error: ") && contains(err(), "truncated"));

  auto newer = trainingPlan();
  newer->set_version(planVersion + 1);
  EXPECT_EQ(run({"show", dir.write("newer.plan", serializePlan(*newer))}), 1);
  EXPECT_TRUE(err().starts_with("error: ") && contains(err(), "version"));
  EXPECT_EQ(out(), "");
}
