//===- strategies.cpp - Speed of strategies against one device ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Trains one model in several strategies, all with the same number of threads in all, and compares
// their steps with those of one device. The strategies take turns, step by step, so that other work
// of the machine falls on all of them alike.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/ImportAndCompile.h"
#include "benchmarks/Median.h"
#include "benchmarks/RandomTokens.h"
#include "benchmarks/TrainingArguments.h"
#include "plan/PlanSummary.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/executor/Session.h"
#include "simulator/PlanSimulation.h"
#include "support/Format.h"
#include "test/lib/files/SourcePath.h"
#include "tools/CommandLine.h"

#include <fmt/format.h>

using namespace dtc;
using namespace dtc::runtime;

namespace {
struct Strategy {
  const char *name;
  std::vector<std::pair<std::string, int64_t>> mesh;
  int64_t zero = 0;
  bool sequenceParallel = false;
  const char *schedule = "1f1b"; // of a pipeline
  int64_t microbatches = 1;
};

/// A strategy at work.
struct Measurement {
  Strategy strategy;
  PlanSummary summary;
  std::unique_ptr<Session> session;
  std::vector<double> seconds; // of each step that counts
  MeasuredCollectives before;  // in the steps that do not
  std::optional<double> predictedBubble;
};
} // namespace

static std::vector<Strategy> strategiesOver(int64_t n) {
  return {{"one device", {}},
          {"dp", {{"dp", n}}},
          {"dp, ZeRO-1", {{"dp", n}}, 1},
          {"dp, ZeRO-2", {{"dp", n}}, 2},
          {"dp, ZeRO-3", {{"dp", n}}, 3},
          {"tp", {{"tp", n}}},
          {"tp, sequence", {{"tp", n}}, 0, true}};
}

/// Pipelines of `n` devices, for a machine on which each has a core.
static std::vector<Strategy> pipelinesOver(int64_t n, int64_t microbatches) {
  std::vector<Strategy> strategies{{"one device", {}}};
  for (const char *schedule : {"1f1b", "gpipe", "interleaved", "zb-h1", "zb-v", "naive"})
    strategies.push_back({schedule, {{"pp", n}}, 0, false, schedule, microbatches});
  return strategies;
}

/// About what a core and the memory of a desktop machine do: predictions need only their
/// proportion.
static constexpr double kCoreFlops = 60e9;
static constexpr double kCoreBandwidth = 10e9;

static MaybeError open(const benchmarks::TrainingArguments &args, bool pipelines,
                       Measurement &entry) {
  ImportOptions importOptions;
  importOptions.batch = args.batch;
  importOptions.seq = args.seq;
  CompileOptions options;
  options.mesh = entry.strategy.mesh;
  options.zero = entry.strategy.zero;
  options.sequenceParallel = entry.strategy.sequenceParallel;
  options.schedule = entry.strategy.schedule;
  options.microbatches = entry.strategy.microbatches;
  options.deviceFlops = kCoreFlops;
  options.deviceBandwidth = kCoreBandwidth;
  options.links["pp"] = {kCoreBandwidth, 1e-5};
  auto model = benchmarks::importAndCompile(args.config, importOptions, options);
  if (!model)
    return model.error();
  entry.summary = summarizePlan(*model->plan);
  if (auto timeline = simulatePlan(*model->plan); timeline && entry.strategy.microbatches > 1)
    entry.predictedBubble = timeline->bubbleShare();
  SessionOptions sessionOptions;
  // A pipeline is held against one of its devices alone.
  sessionOptions.threadsPerDevice =
      pipelines ? 1 : std::max<int>(1, args.threads / static_cast<int>(entry.summary.numDevices));
  sessionOptions.profile = true;
  auto session = Session::create(model->plan, createCpuBackend(), sessionOptions);
  if (!session)
    return session.error();
  entry.session = std::move(*session);
  return entry.session->initializeStates(1);
}

static MaybeError step(Measurement &entry, int number, std::mt19937_64 random) {
  Expected<double> seconds = benchmarks::timeStep(*entry.session, number, random);
  if (!seconds)
    return seconds.error();
  if (number > 0)
    entry.seconds.push_back(*seconds);
  else
    entry.before = entry.session->measuredCollectives();
  return std::nullopt;
}

static void print(const benchmarks::TrainingArguments &args,
                  const std::vector<Measurement> &entries) {
  fmt::print("\n{:<14}{:>10}{:>12}{:>8}{:>14}{:>12}{:>10}{:>14}\n", "strategy", "ms a step",
             "tokens/s", "ratio", "collectives", "hidden", "MiB sent", "MiB a device");
  for (const Measurement &entry : entries) {
    // Ratios of steps that ran next to each other.
    std::vector<double> ratios;
    for (size_t i = 0; i < entry.seconds.size(); ++i)
      ratios.push_back(entries.front().seconds[i] / entry.seconds[i]);
    double median = benchmarks::median(entry.seconds);
    MeasuredCollectives time = entry.session->measuredCollectives();
    time.seconds -= entry.before.seconds;
    time.exposedSeconds -= entry.before.exposedSeconds;
    double devices = static_cast<double>(entry.summary.numDevices);
    double perStep = time.seconds / devices / static_cast<double>(entry.seconds.size());
    bool moves = time.seconds > 0;
    fmt::print("{:<14}{:>10.1f}{:>12.0f}{:>8.2f}{:>11.1f} ms{:>12}{:>10.1f}{:>14.1f}\n",
               entry.strategy.name, median * 1e3,
               static_cast<double>(args.batch * args.seq) / median, benchmarks::median(ratios),
               perStep * 1e3, moves ? fmt::format("{:.0f}%", 100 * time.hiddenShare()) : "",
               static_cast<double>(entry.summary.sentBytes.total()) / (1 << 20),
               static_cast<double>(entry.summary.arenaBytes) / (1 << 20));
  }
}

static void printBubbles(const std::vector<Measurement> &entries) {
  fmt::print("\n{:<14}{:>18}{:>12}\n", "schedule", "bubble: measured", "predicted");
  for (const Measurement &entry : entries)
    if (entry.predictedBubble)
      fmt::print("{:<14}{:>17.1f}%{:>11.1f}%\n", entry.strategy.name,
                 100 * entry.session->pipelineTime().bubbleShare(), 100 * *entry.predictedBubble);
}

static MaybeError run(const benchmarks::TrainingArguments &args, int64_t devices,
                      int64_t microbatches) {
  std::vector<Measurement> entries;
  bool pipelines = microbatches > 0;
  for (const Strategy &strategy :
       pipelines ? pipelinesOver(devices, microbatches) : strategiesOver(devices)) {
    entries.emplace_back().strategy = strategy;
    if (MaybeError error = open(args, pipelines, entries.back()))
      return error->inContext(strategy.name);
  }
  fmt::print("{:.1f} million parameters, batch {}, sequence {}, f32; {}\n",
             static_cast<double>(entries.front().summary.parameterElements) * 1e-6, args.batch,
             args.seq,
             pipelines ? fmt::format("a thread for each device, {} microbatches", microbatches)
                       : fmt::format("{} threads in all", args.threads));
  for (int number = 0; number <= args.steps; ++number)
    for (Measurement &entry : entries)
      if (MaybeError error = step(entry, number, std::mt19937_64(static_cast<uint64_t>(number))))
        return error->inContext(entry.strategy.name);
  print(args, entries);
  if (pipelines)
    printBubbles(entries);
  return std::nullopt;
}

static int runMain(int argc, char **argv) {
  CLI::App app("Trains a model in several strategies and compares their speed with one device's.",
               "dtc-benchmark-strategies");
  benchmarks::TrainingArguments args{dtc::test::sourcePath("examples/gpt2-30m/config.json"), 8,
                                     256};
  int64_t devices = 2;
  args.addTo(app, "Threads of all devices together");
  app.add_option("--devices", devices, "Devices of the strategies that have several")
      ->check(CLI::Range(int64_t{2}, int64_t{64}))
      ->capture_default_str();
  int64_t microbatches = 0;
  app.add_option(
         "--pipelines", microbatches,
         "Compare pipelines of this many microbatches instead, with one device of one thread")
      ->check(CLI::Range(int64_t{2}, int64_t{1024}));
  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  if (MaybeError error = run(args, devices, microbatches))
    return fail(error->message);
  return 0;
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
