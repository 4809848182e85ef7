//===- ChromeTraceTest.cpp - Tests of Chrome traces -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ChromeTrace.h"

#include "test/lib/plans/ChainPlan.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/TempDir.h"
#include "test/lib/plans/TestPlans.h"
#include "test/lib/plans/TrainStep.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

namespace chromeTraceTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;
using Json = nlohmann::json;

namespace {

/// The events of a run of some steps.
std::vector<Json> trace(std::shared_ptr<const plan::Plan> plan, int steps, size_t traceSteps) {
  SessionOptions options;
  options.traceSteps = traceSteps;
  auto session = Session::create(std::move(plan), createFakeBackend(), options);
  EXPECT_OK(session);
  EXPECT_OK((*session)->initializeStates(1));
  for (int step = 1; step <= steps; ++step)
    EXPECT_OK(trainStep(**session, 0));
  TempDir dir;
  EXPECT_OK(writeChromeTrace(**session, dir.path("t.json")));
  Json file = Json::parse(dir.read("t.json"));
  return file["traceEvents"];
}

std::vector<Json> select(const std::vector<Json> &events, const std::string &key,
                         const std::string &value) {
  std::vector<Json> result;
  std::copy_if(events.begin(), events.end(), std::back_inserter(result),
               [&](const Json &event) { return event.value(key, "") == value; });
  return result;
}

/// Spans of a thread enclose each other or lie apart; allows for the rounding of decimal numbers.
void expectNested(const std::vector<Json> &events) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> spans;
  for (const Json &event : select(events, "ph", "X"))
    spans[{event["pid"], event["tid"]}].push_back(
        {event["ts"], event["ts"].get<double>() + event["dur"].get<double>()});
  EXPECT_FALSE(spans.empty());
  constexpr double rounding = 1e-4;
  for (auto &[thread, list] : spans) {
    std::sort(list.begin(), list.end(), [](auto a, auto b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    std::vector<double> open;
    for (auto [begin, end] : list) {
      while (!open.empty() && open.back() <= begin + rounding)
        open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(end, open.back() + rounding);
      }
      open.push_back(end);
    }
  }
}

} // namespace

TEST(ChromeTrace, APipeline) {
  auto plan = chainPlan({3, 2, 4, ""});
  plan->set_locations(1, "a \"quoted\\ name\n\xff");
  std::vector<Json> events = trace(plan, 5, 2);
  expectNested(events);
  // Four microbatches on two devices of each stage in two steps.
  std::vector<Json> tasks = select(events, "cat", "task");
  EXPECT_EQ(select(tasks, "name", "forward.1").size(), 16u);
  EXPECT_EQ(select(tasks, "name", "backward.2").size(), 16u);
  std::vector<Json> copies = select(events, "name", "copy");
  EXPECT_EQ(copies.size(), 16u);
  EXPECT_EQ(copies.front()["args"]["task"], "backward.2");
  std::vector<Json> converts = select(events, "name", "convert");
  EXPECT_EQ(converts.size(), 16u);
  EXPECT_EQ(converts[3]["args"]["microbatch"], 3);
  EXPECT_EQ(converts.front()["args"]["location"], "a \"quoted\\ name\n\ufffd");
  EXPECT_EQ(select(events, "name", "send").size(), 4u * 16);
  EXPECT_EQ(select(events, "name", "wait for receive").size(), 4u * 16);

  // Every arrow goes from a send to the receive of the other device.
  std::map<int, Json> begins;
  for (const Json &event : select(events, "ph", "s"))
    EXPECT_TRUE(begins.emplace(event["id"], event).second);
  EXPECT_EQ(begins.size(), 4u * 16);
  for (const Json &event : select(events, "ph", "f")) {
    ASSERT_EQ(begins.count(event["id"]), 1u);
    int from = begins[event["id"]]["pid"], to = event["pid"];
    EXPECT_EQ(std::abs(from - to), 2); // the next stage, the same place on dp
    EXPECT_LE(begins[event["id"]]["ts"], event["ts"]);
    begins.erase(event["id"]);
  }
  EXPECT_TRUE(begins.empty());

  std::map<std::string, int> names;
  for (const Json &event : select(events, "ph", "M"))
    if (event["args"].contains("name"))
      ++names[event["args"]["name"]];
  EXPECT_EQ(names["device 3 (pp=1, dp=1)"], 1);
  EXPECT_EQ(names["compute"], 6);
  EXPECT_EQ(names["collectives"], 6);
  EXPECT_GE(names["transfers"], 6);
}

TEST(ChromeTrace, Collectives) {
  std::vector<Json> events = trace(overlapPlan(true), 1, 3);
  expectNested(events);
  for (const char *name : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute"}) {
    std::vector<Json> spans = select(events, "name", name);
    EXPECT_EQ(spans.size(), 8u); // twice on four devices
    EXPECT_EQ(spans.front()["tid"], 1);
    EXPECT_EQ(select(events, "name", std::string("wait for ") + name).size(), 8u);
  }
}

TEST(ChromeTrace, WithoutSteps) {
  EXPECT_TRUE(select(trace(overlapPlan(true), 0, 3), "ph", "X").empty());
  EXPECT_TRUE(select(trace(overlapPlan(true), 1, 0), "ph", "X").empty());
}

TEST(ChromeTrace, AFileThatCannotBeWritten) {
  auto session = Session::create(overlapPlan(true), createFakeBackend());
  ASSERT_OK(session);
  EXPECT_ERROR(writeChromeTrace(**session, "/no/such/folder/t.json"), "/no/such/folder/t.json");
}

} // namespace chromeTraceTest
