//===- PipelineScheduleTest.cpp - Comparison of schedules with formulas ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/analysis/PipelineSimulation.h"
#include "test/lib/plans/Expect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace pipelineScheduleTest {

using namespace dtc;

namespace {

struct PipelineRun {
  PipelineSchedule schedule;
  PipelineSimulation simulation;
};

} // namespace

static PipelineRun run(llvm::StringRef name, const PipelineShape &shape,
                       StageSeconds seconds = {}) {
  std::optional<ScheduleRule> rule = findScheduleRule(name);
  EXPECT_TRUE(rule) << name.str();
  EXPECT_OK(checkShape(shape, *rule));
  PipelineSchedule schedule = buildSchedule(shape, *rule);
  std::vector<StageSeconds> all(shape.stages(), seconds);
  PipelineSimulation simulation =
      simulateSchedule(schedule, all, linkValues(schedule, chainEdges(shape)));
  EXPECT_EQ(simulation.deadlock, "");
  return {schedule, simulation};
}

/// All pipelines of 2 to 8 devices and 1 to 32 microbatches.
static void forAllShapes(const std::vector<int> &chunks,
                         const std::function<void(const PipelineShape &)> &check) {
  for (int v : chunks)
    for (int p = 2; p <= 8; ++p)
      for (int m = 1; m <= 32; ++m) {
        SCOPED_TRACE("devices " + std::to_string(p) + " chunks " + std::to_string(v) +
                     " microbatches " + std::to_string(m));
        check({p, v, m});
        if (::testing::Test::HasFailure())
          return;
      }
}

static const StageSeconds kSomeSeconds[] = {{1, 1, 1}, {1, 1, 0}, {2, 1, 3}, {0.5, 1.5, 0.25}};

static double sum(const StageSeconds &seconds) {
  return seconds.forward + seconds.backward + seconds.weight;
}

//===----------------------------------------------------------------------===//
// Bubbles
//===----------------------------------------------------------------------===//

TEST(PipelineBubble, NaiveKeepsOneDeviceBusy) {
  forAllShapes({1}, [](const PipelineShape &shape) {
    for (const StageSeconds &seconds : kSomeSeconds)
      EXPECT_NEAR(run("naive", shape, seconds).simulation.bubbleShare, 1 - 1. / shape.devices,
                  1e-12);
  });
}

TEST(PipelineBubble, GpipeAndOneForwardOneBackward) {
  forAllShapes({1}, [](const PipelineShape &shape) {
    double p = shape.devices, m = shape.microbatches;
    for (const StageSeconds &seconds : kSomeSeconds)
      for (const char *name : {"gpipe", "1f1b"})
        EXPECT_NEAR(run(name, shape, seconds).simulation.bubbleShare, (p - 1) / (m + p - 1), 1e-12)
            << name;
  });
}

TEST(PipelineBubble, InterleavedDividesItByTheChunks) {
  forAllShapes({2, 3, 4}, [](const PipelineShape &shape) {
    double p = shape.devices, v = shape.chunks, m = shape.microbatches;
    for (const StageSeconds &seconds : kSomeSeconds) {
      PipelineSimulation simulation = run("interleaved", shape, seconds).simulation;
      if (m >= p) {
        EXPECT_NEAR(simulation.bubbleShare, (p - 1) / (v * m + p - 1), 1e-12);
      }
      // Fewer microbatches than devices come back to a chunk one way's length after they left.
      EXPECT_NEAR(simulation.span, sum(seconds) * (m >= p ? v * m + p - 1 : v * p + m - 1), 1e-9);
    }
  });
}

TEST(PipelineBubble, SplitBackwardLeavesAThird) {
  forAllShapes({1}, [](const PipelineShape &shape) {
    double p = shape.devices, m = shape.microbatches;
    PipelineSimulation simulation = run("zb-h1", shape).simulation;
    if (m >= p) {
      EXPECT_NEAR(simulation.bubbleShare, (p - 1) / (3 * m + p - 1), 1e-12);
    }
    EXPECT_EQ(simulation.span, m >= p ? 3 * m + p - 1 : 2 * p + 2 * m - 1);
    double thrice = run("1f1b", shape).simulation.span - 3 * m;
    if (m >= p) {
      EXPECT_EQ(thrice, 3 * (simulation.span - 3 * m));
    }
  });
}

TEST(PipelineBubble, VLeavesTheWayToTheLastDevice) {
  forAllShapes({2}, [](const PipelineShape &shape) {
    int p = shape.devices, m = shape.microbatches;
    PipelineRun zbv = run("zb-v", shape);
    if (m == p || 2 * m >= 3 * p) {
      EXPECT_EQ(zbv.simulation.span, 6 * m + p - 1);
      // Only the way there is lost: each device works from its first unit on without a break.
      for (int device = 0; device < p; ++device) {
        const std::vector<UnitTime> &times = zbv.simulation.times[device];
        EXPECT_LE(times.front().start, device);
        EXPECT_LE(times.back().end - times.front().start, 6 * m + p - 1 - device);
      }
    } else if (m > p) {
      EXPECT_LE(zbv.simulation.span, 6 * m + p - 1 + p - 2);
    } else {
      EXPECT_LE(zbv.simulation.span, 4 * p + 4 * m - 3);
    }
  });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(PipelineInFlight, IsWhatTheScheduleIsKnownFor) {
  forAllShapes({1}, [](const PipelineShape &shape) {
    int p = shape.devices, m = shape.microbatches;
    for (int device = 0; device < p; ++device) {
      EXPECT_EQ(run("naive", shape).simulation.deviceInFlight[device], 1);
      EXPECT_EQ(run("gpipe", shape).simulation.deviceInFlight[device], m);
      EXPECT_EQ(run("1f1b", shape).simulation.deviceInFlight[device], std::min(p - device, m));
      EXPECT_LE(run("zb-h1", shape).simulation.deviceInFlight[device], std::min(p, m));
    }
  });
}

TEST(PipelineInFlight, OfSeveralChunks) {
  forAllShapes({2, 3}, [](const PipelineShape &shape) {
    int p = shape.devices, v = shape.chunks, m = shape.microbatches;
    int group = m < p ? m : p + m % p;
    PipelineRun interleaved = run("interleaved", shape);
    for (int device = 0; device < p; ++device)
      EXPECT_LE(interleaved.simulation.deviceInFlight[device],
                std::min(v * m, 2 * (p - 1 - device) + (v - 1) * group + 1));
    if (v != 2)
      return;
    PipelineRun zbv = run("zb-v", shape);
    for (int device = 0; device < p; ++device)
      EXPECT_EQ(zbv.simulation.deviceInFlight[device], 2 * std::min(p, m)); // half stages
  });
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

static std::string orderOf(const PipelineSchedule &schedule, int device) {
  std::string text;
  for (const PipelineUnit &unit : schedule.orders[device])
    text += (text.empty() ? "" : " ") + unit.str();
  return text;
}

TEST(PipelineSchedule, OrdersOfSmallPipelines) {
  PipelineRun r = run("1f1b", {2, 1, 3});
  EXPECT_EQ(orderOf(r.schedule, 0), "F0@0 F1@0 B0@0 F2@0 B1@0 B2@0");
  EXPECT_EQ(orderOf(r.schedule, 1), "F0@1 B0@1 F1@1 B1@1 F2@1 B2@1");
  EXPECT_EQ(orderOf(run("gpipe", {2, 1, 2}).schedule, 1), "F0@1 F1@1 B0@1 B1@1");
  EXPECT_EQ(orderOf(run("naive", {2, 1, 2}).schedule, 0), "F0@0 B0@0 F1@0 B1@0");
  EXPECT_EQ(orderOf(run("interleaved", {2, 2, 2}).schedule, 1),
            "F0@1 F1@1 F0@3 B0@3 F1@3 B1@3 B0@1 B1@1");
  EXPECT_EQ(orderOf(run("zb-v", {2, 2, 1}).schedule, 0), "F0@0 F0@3 B0@3 W0@3 B0@0 W0@0");
  EXPECT_EQ(orderOf(run("zb-v", {2, 2, 1}).schedule, 1), "F0@1 F0@2 B0@2 B0@1 W0@1 W0@2");
}

TEST(PipelineSchedule, OneDeviceIsAPipelineToo) {
  for (const ScheduleRule &rule : getScheduleRules()) {
    PipelineRun r = run(rule.name, {1, rule.minChunks, 5});
    EXPECT_NEAR(r.simulation.bubbleShare, 0, 1e-12) << rule.name.str();
  }
}

TEST(PipelineSchedule, TightLimitsLeaveAPlaceForEachChunk) {
  // Without one, the first chunk, which this rule prefers, would fill the device.
  for (int chunks = 2; chunks <= 4; ++chunks) {
    ScheduleRule rule = *findScheduleRule("interleaved");
    rule.inFlight = [](const PipelineShape &shape, int) { return shape.chunks; };
    rule.unitPriority = [](const PipelineShape &, const PipelineUnit &unit) -> std::array<int, 2> {
      return {unit.stage};
    };
    PipelineSchedule schedule = buildSchedule({4, chunks, 8}, rule);
    PipelineSimulation simulation =
        simulateSchedule(schedule, std::vector<StageSeconds>(schedule.shape.stages()),
                         linkValues(schedule, chainEdges(schedule.shape)));
    EXPECT_EQ(simulation.deadlock, "");
    for (int device = 0; device < 4; ++device) {
      EXPECT_EQ(schedule.orders[device].size(), size_t(8 * 2 * chunks));
      EXPECT_LE(simulation.deviceInFlight[device], chunks);
    }
  }
}

TEST(PipelineSchedule, LargePipelinesEnd) {
  for (const ScheduleRule &rule : getScheduleRules()) {
    PipelineShape shape{64, rule.minChunks, 200};
    PipelineRun r = run(rule.name, shape);
    size_t units = 0;
    for (auto &order : r.schedule.orders)
      units += order.size();
    EXPECT_EQ(units, size_t(shape.stages()) * 200 * (rule.splitsWeight ? 3 : 2));
  }
}

TEST(PipelineSchedule, SaysWhatItDoesNotSupport) {
  auto explain = [](llvm::StringRef name, PipelineShape shape) {
    return runtime::testing::messageOf(checkShape(shape, *findScheduleRule(name)));
  };
  EXPECT_EQ(explain("1f1b", {4, 2, 8}), "2 stages on each device; the schedule 1f1b expects 1; "
                                        "with more, choose interleaved");
  EXPECT_EQ(explain("zb-v", {4, 1, 8}), "1 stage on each device; the schedule zb-v expects 2; "
                                        "with one, choose 1f1b or zb-h1");
  EXPECT_EQ(explain("zb-v", {4, 3, 8}), "3 stages on each device; the schedule zb-v expects 2");
  EXPECT_EQ(explain("interleaved", {4, 1, 8}),
            "1 stage on each device; the schedule interleaved expects at least 2; with one, choose "
            "1f1b or zb-h1");
  EXPECT_EQ(explain("gpipe", {4, 1, 0}), "a pipeline of 0 microbatches; expected at least one");
  EXPECT_EQ(explain("gpipe", {0, 1, 1}), "a pipeline of 0 devices; expected at least one");
  EXPECT_EQ(explain("interleaved", {4, 7, 1}), "");
  EXPECT_FALSE(findScheduleRule("2f2b"));
  EXPECT_EQ(listScheduleNames(), "naive, gpipe, 1f1b, interleaved, zb-h1, zb-v");
}

} // namespace pipelineScheduleTest
