//===- ReportFuzzTest.cpp - Fuzz tests of reports -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "report/ExplanationReport.h"
#include "report/PlanReport.h"
#include "report/SimulationReport.h"
#include "report/SimulationTrace.h"
#include "report/TimelineReport.h"
#include "report/TimelineSvg.h"
#include "report/VerifierReport.h"
#include "simulator/PlanSimulation.h"
#include "support/Printable.h"
#include "test/lib/RandomCases.h"
#include "test/lib/plans/ChainPlan.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/MutatePlan.h"
#include "test/lib/plans/TestPlans.h"
#include "test/lib/plans/TimeGuard.h"
#include "test/report/SchedulePlans.h"
#include "test/simulator/cluster/ParsedCluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sys/resource.h>

namespace reportFuzzTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;
namespace cluster = dtc::cluster;

namespace {

/// Clusters with hosts and without, and with shared cores.
const std::vector<cluster::Cluster> &clusters() {
  static const std::vector<cluster::Cluster> clusters = [] {
    std::string many = plainDevice("fuses_pointwise: true overlap_slowdown: 0.1 launch_seconds: 1");
    return std::vector{parsedCluster(many + R"(name: "nodes"
          node_kinds { name: "n" device: "plain" devices: 3 link { bandwidth: 1 latency: 1 }
                       network_bandwidth: 1 host: "plain" host_link { bandwidth: 1 } }
          nodes { node: "n" count: 2000 })"),
                       parsedCluster(many + R"(name: "cores"
          node_kinds { name: "n" device: "plain" devices: 64 link { bandwidth: 1 }
                       shared_cores: 2 }
          nodes { node: "n" count: 1 })")};
  }();
  return clusters;
}

/// Prints the output of dtc-plan simulate for it.
void reportSimulation(const plan::Plan &plan, const cluster::Cluster &cluster) {
  Expected<Simulation> simulation = simulateOnCluster(plan, cluster, {.keepCollectives = true});
  if (!simulation) {
    // Errors that findPlanError() does not look for are refused with a message, and no plan stalls.
    const std::string &message = simulation.error().message;
    EXPECT_TRUE(message.starts_with("the mesh has ") ||
                message.find("expected an equation") != message.npos ||
                message.find("the cluster does not describe the host") != message.npos)
        << message;
    return;
  }
  for (const StepBreakdown &times : simulation->step.devices) {
    double sum = times.computing + times.exposedTransfers + times.exposedHost + times.idle;
    for (double seconds : times.exposed)
      sum += seconds;
    EXPECT_NEAR(sum, simulation->stepSeconds, 1e-6 * simulation->stepSeconds);
  }
  EXPECT_TRUE(formatSimulation(*simulation).ends_with("\n"));
  EXPECT_TRUE(nlohmann::json::accept(simulationToJson(*simulation)));
  EXPECT_TRUE(nlohmann::json::accept(simulationToTrace(plan, *simulation)));
}

/// All that dtc-plan says of a plan that was read. It hangs together.
void report(const plan::Plan &plan, const VerifierResult &facts) {
  EXPECT_TRUE(nlohmann::json::accept(verifierResultToJson(facts)));
  EXPECT_TRUE(formatVerifierResult(facts).ends_with("\n"));
  PlanSummary summary = summarizePlan(plan);
  EXPECT_TRUE(formatSummary(summary).ends_with("\n"));
  EXPECT_EQ(static_cast<int64_t>(summary.transfers.messages), facts.messages);

  for (bool rendezvous : {false, true}) {
    // Plans that verifyPlan() accepts never stall, however sends wait.
    Expected<Timeline> timeline = simulatePlan(plan, {.rendezvous = rendezvous});
    ASSERT_OK(timeline);
    EXPECT_EQ(static_cast<int64_t>(timeline->transfers.size()), facts.messages);
    for (size_t p = 0; p < timeline->programs.size(); ++p)
      if (facts.programs[p].entries > 0)
        EXPECT_EQ(static_cast<int64_t>(timeline->programs[p].back().execution) + 1,
                  facts.programs[p].entries);
    for (size_t columns : {kFewestTimelineColumns, kDefaultTimelineColumns, size_t{10000}})
      EXPECT_TRUE(formatTimeline(*timeline, columns).ends_with("\n"));
    EXPECT_TRUE(timelineToSvg(*timeline).ends_with("</svg>\n"));
    EXPECT_TRUE(nlohmann::json::accept(summaryToJson(summary, &*timeline)));
  }

  PlanExplanation explanation = explainPlan(plan);
  for (size_t top : {size_t{0}, size_t{1}, kDefaultExplainedRows})
    EXPECT_TRUE(formatExplanation(explanation, top).ends_with("\n"));
  EXPECT_TRUE(nlohmann::json::accept(explanationToJson(explanation)));
  if (MaybeError error = checkCommunicationBudget(explanation, 0))
    EXPECT_TRUE(contains(error->message, "but the budget is "));
  for (const cluster::Cluster &cluster : clusters())
    reportSimulation(plan, cluster);
}

void fuzz(const plan::Plan &plan) {
  const uint64_t count = dtc::test::randomCases(600), seed = dtc::test::randomSeed();
  std::mt19937_64 random(seed);
  std::string original = serializePlan(plan);
  uint64_t accepted = 0;
  for (uint64_t i = 0; i < count; ++i) {
    std::string bytes = i == 0       ? original
                        : i % 4 == 1 ? mutateBytes(original, random)
                                     : mutateFields(plan, random);
    std::string about = fmt::format("DTC_RANDOM_SEED={}, plan {}", seed, i);
    SCOPED_TRACE(about);
    TimeGuard guard(std::chrono::seconds(60), about);
    VerifierResult facts;
    auto read = parsePlan(bytes.data(), bytes.size(), &facts);
    if (!read) {
      EXPECT_FALSE(read.error().message.empty());
      EXPECT_GT(i, 0u);
      continue;
    }
    ++accepted;
    report(**read, facts);
    if (::testing::Test::HasFailure())
      return;
  }
  // Some changes do no harm (a letter of a name), and most do.
  std::cout << accepted << " of " << count << " were accepted\n";
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, count);
  // All of that needs little memory, whatever numbers the plans have. (A sanitizer keeps what was
  // freed for a while.)
  struct rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  EXPECT_LT(used.ru_maxrss, int64_t{2} << 20); // KiB
}

/// A name that is meant to deceive: a color, a line that looks like the tool's own, and the other
/// direction of writing.
constexpr const char *kDeceit = "\x1B[31m\r\nerror: fake\x7F\xC2\x9B\xE2\x80\xAE";

/// Adds it to all texts of a message, but to those of the messages of these types, which the
/// runtime looks up in tables of its own.
void deceive(google::protobuf::Message &message, const std::set<std::string> &spared) {
  using google::protobuf::FieldDescriptor;
  const auto *reflection = message.GetReflection();
  if (spared.count(message.GetDescriptor()->name()))
    return;
  std::vector<const FieldDescriptor *> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor *field : fields) {
    int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count && !field->is_map(); ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
        deceive(field->is_repeated() ? *reflection->MutableRepeatedMessage(&message, field, i)
                                     : *reflection->MutableMessage(&message, field),
                spared);
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_STRING)
        continue;
      if (field->is_repeated())
        reflection->SetRepeatedString(&message, field, i,
                                      reflection->GetRepeatedString(message, field, i) + kDeceit);
      else
        reflection->SetString(&message, field, reflection->GetString(message, field) + kDeceit);
    }
  }
}

/// How many of its names a text shows; none of them as it is.
size_t countNames(const std::string &text) {
  for (const char *raw : {"\x1B", "\r", "\x7F", "\xC2\x9B", "\nerror", "\xE2\x80\xAE"})
    EXPECT_EQ(text.find(raw), std::string::npos) << text;
  size_t count = 0;
  for (size_t at = 0; (at = text.find("error: fake", at)) != std::string::npos; ++at)
    ++count;
  return count;
}

} // namespace

TEST(ReportFuzz, NamesAreWrittenOut) {
  cluster::Cluster cluster = clusters()[0];
  deceive(cluster, {"MatrixRate"});
  size_t names = 0;
  for (const auto &original :
       {trainingPlan({2, 2, 2}), overlapPlan(/*async=*/true), kernelPlan(), pipelinePlan(2)}) {
    auto plan = std::make_shared<plan::Plan>(*original);
    plan->add_locations("h.3.attn");
    deceive(*plan, {"KernelCall"});
    std::string bytes = serializePlan(*plan);
    VerifierResult facts;
    auto read = parsePlan(bytes.data(), bytes.size(), &facts);
    ASSERT_OK(read);
    PlanSummary summary = summarizePlan(**read);
    Expected<Timeline> timeline = simulatePlan(**read);
    ASSERT_OK(timeline);
    PlanExplanation explanation = explainPlan(**read);
    SimulationOptions options;
    options.keepCollectives = true;
    Expected<Simulation> simulation = simulateOnCluster(**read, cluster, options);
    ASSERT_OK(simulation);
    EXPECT_EQ(countNames(formatVerifierResult(facts)), 0u);
    for (const std::string &text : {formatSummary(summary), formatTimeline(*timeline, 200),
                                    formatExplanation(explanation, 1000),
                                    formatSimulation(*simulation), timelineToSvg(*timeline)})
      names += countNames(text);
    // JSON may leave DEL and the characters above it as they are; a terminal gets that written out.
    for (const std::string &text :
         {summaryToJson(summary, &*timeline), explanationToJson(explanation),
          simulationToJson(*simulation), simulationToTrace(**read, *simulation)}) {
      std::string shown = printableLines(text);
      names += countNames(shown);
      EXPECT_EQ(nlohmann::json::parse(shown), nlohmann::json::parse(text));
    }
  }
  EXPECT_GT(names, 100u);
}

TEST(ReportFuzz, OfATrainingPlan) { fuzz(*trainingPlan({2, 2, 2})); }
TEST(ReportFuzz, OfBucketsBesideKernels) { fuzz(*overlapPlan(/*async=*/true)); }
TEST(ReportFuzz, OfEveryKernel) { fuzz(*kernelPlan()); }
TEST(ReportFuzz, OfAPipeline) { fuzz(*pipelinePlan(2)); }
TEST(ReportFuzz, OfALongPipeline) { fuzz(*chainPlan({.stages = 4, .microbatches = 6})); }
TEST(ReportFuzz, OfTimesOfTasks) {
  SchedulePlanShape shape;
  shape.devices = 3;
  fuzz(*oneForwardOneBackwardPlan(shape));
}

} // namespace reportFuzzTest
