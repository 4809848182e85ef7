//===- TimelineReportTest.cpp - Timelines as text and as JSON -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/TimelineReport.h"

#include "simulator/PlanSimulation.h"
#include "test/lib/plans/Expect.h"
#include "test/report/SchedulePlans.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace timelineReportTest {

using namespace dtc;
using namespace dtc::runtime::testing;

static Timeline timelineOf(const std::shared_ptr<plan::Plan> &plan) {
  Expected<Timeline> timeline = simulatePlan(*plan);
  EXPECT_TRUE(timeline) << timeline.error().message;
  return timeline ? *timeline : Timeline();
}

TEST(TimelineReport, Picture) {
  std::string text = formatTimeline(timelineOf(gpipePlan({.devices = 3, .microbatches = 2})), 48);
  EXPECT_EQ(text, R"(      0 s to 8.0 s
pp=0  F0---F1---....................B0---B1---
pp=1  .....F0---F1---..........B0---B1---.....
pp=2  ..........F0---F1---B0---B1---..........

schedule    gpipe: 3 stages on 3 devices (pp), 2
            microbatches
a step      8.0 s
bubble      50.0% of the 8.0 s from the first
            forward to the last backward
in flight   most microbatches at once: stage 0:
            2, stage 1: 2, stage 2: 2
letters     F forward, B backward, . waits
)");
}

TEST(TimelineReport, SeveralStagesOnADevice) {
  Timeline timeline = timelineOf(gpipePlan({.devices = 2, .chunks = 2, .microbatches = 2}));
  std::string text = formatTimeline(timeline, 46);
  EXPECT_TRUE(contains(text, "pp=0  F0--F1--f0--f1--........b0--b1--B0--B1--\n"));
  EXPECT_TRUE(contains(text, "pp=1  ....F0--F1--f0--f1--b0--b1--B0--B1--....\n"));
  EXPECT_TRUE(contains(text, "small: every"));
}

/// The labels of a long schedule have room, in bands below each other.
TEST(TimelineReport, LongSchedulesGoOnInBands) {
  for (uint32_t p : {2, 4, 8})
    for (uint32_t m : {1, 8, 32}) {
      SchedulePlanShape shape{.devices = p, .microbatches = m, .backward = 2};
      std::string text = formatTimeline(timelineOf(oneForwardOneBackwardPlan(shape)), 100);
      std::istringstream lines(text);
      std::string first; // the bands of the first device, joined
      for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), 100u) << line;
        if (line.starts_with("pp=0  "))
          first += line.substr(6);
      }
      for (uint32_t i = 0; i < m; ++i) {
        EXPECT_TRUE(contains(first, "F" + std::to_string(i))) << i;
        EXPECT_TRUE(contains(first, "B" + std::to_string(i))) << i;
      }
    }
}

/// A box that is too short for its number shows its letter alone.
TEST(TimelineReport, ANumberIsWholeOrNotThere) {
  Timeline timeline;
  timeline.programs = {
      {{0, 0, 123, StagePass::Forward, 0, 0, 1e-3}, {1, 1, 123, StagePass::Backward, 0, 1e-3, 1}}};
  timeline.taskNames = {{"a", "b"}};
  std::string text = formatTimeline(timeline, 40);
  EXPECT_TRUE(contains(text, "device=0  B123") || contains(text, "device=0  FB123"));
  EXPECT_FALSE(contains(text, "F1"));
}

/// A step that is mostly something else shows its pipelined part.
TEST(TimelineReport, OtherWork) {
  Timeline timeline = timelineOf(gpipePlan({.devices = 2, .microbatches = 2}));
  double end = timeline.step().end;
  timeline.programs[0].push_back(
      {99, timeline.taskNames[0].size(), 0, std::nullopt, 0, end, end + 2});
  timeline.taskNames[0].push_back("update");
  EXPECT_TRUE(contains(formatTimeline(timeline, 46), "B1---=========="));
  EXPECT_TRUE(contains(formatTimeline(timeline, 46), "= other"));
  timeline.programs[0].back().end = end + 20;
  std::string text = formatTimeline(timeline, 46);
  EXPECT_FALSE(contains(text, "=="));
  EXPECT_TRUE(contains(text, "a step      26.0 s; the figure shows"));
}

TEST(TimelineReport, NothingToDraw) {
  Timeline timeline = timelineOf(gpipePlan({.devices = 2, .forward = 0, .backward = 0}));
  EXPECT_TRUE(contains(formatTimeline(timeline), "there is nothing to draw"));
  EXPECT_TRUE(contains(formatTimeline(timeline), "gpipe: 2 stages on 2 devices"));
}

TEST(TimelineReport, Json) {
  Timeline timeline = timelineOf(gpipePlan({.devices = 2, .microbatches = 2}));
  nlohmann::json json = timelineToJson(timeline);
  EXPECT_EQ(json["schedule"], "gpipe");
  EXPECT_EQ(json["stages"], 2);
  EXPECT_NEAR(json["bubble_share"], 1.0 / 3, 1e-9);
  EXPECT_EQ(json["in_flight"][0]["microbatches"], 2);
  EXPECT_EQ(json["devices"][1]["stages"], std::vector<int>{1});
  EXPECT_NEAR(json["devices"][1]["busy_seconds"], 4, 1e-9);
  nlohmann::json work;
  for (const nlohmann::json &interval : json["devices"][1]["intervals"])
    if (interval["kind"] == "backward" && interval["microbatch"] == 1)
      work = interval;
  EXPECT_EQ(work["task"], "backward.1");
  EXPECT_EQ(work["stage"], 1);
  EXPECT_NEAR(work["start"], 4, 1e-9);
  EXPECT_NEAR(work["end"], 5, 1e-9);
  ASSERT_EQ(json["transfers"].size(), 4u);
  EXPECT_EQ(json["transfers"][0]["bytes"], 32);
}

} // namespace timelineReportTest
