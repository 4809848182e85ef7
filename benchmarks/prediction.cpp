//===- prediction.cpp - Simulated and measured steps ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Trains two models in many strategies on virtual devices of one thread each, and compares the time
// of their steps with the times that dtc-plan simulate predicts on a cluster that dtc-run calibrate
// wrote on this machine. The strategies take turns, step by step, so that other work of the machine
// falls on all of them alike. Steps that something else slowed down do not count.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/ImportAndCompile.h"
#include "benchmarks/MeasuredSteps.h"
#include "benchmarks/Median.h"
#include "benchmarks/PredictedStrategies.h"
#include "benchmarks/RandomTokens.h"
#include "compiler/planner/Strategy.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/executor/Session.h"
#include "simulator/Simulation.h"
#include "simulator/cluster/ClusterReader.h"
#include "support/AtomicFile.h"
#include "test/lib/files/SourcePath.h"
#include "tools/CommandLine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <iterator>

using namespace dtc;
using namespace dtc::benchmarks;
using namespace dtc::runtime;

namespace {

struct Arguments {
  std::string cluster, only, save;
  std::vector<std::string> models, measured;
  int64_t steps = 20;
  double seconds = 0;
};

/// A strategy of a model.
struct Measurement {
  std::string model, name;
  std::shared_ptr<const plan::Plan> plan;
  double predicted = 0;        // seconds of a step
  std::vector<double> seconds; // of each step but the first

  /// Other work of the machine makes steps longer and never shorter: the fastest step had the cores
  /// for itself.
  double measured() const { return *std::min_element(seconds.begin(), seconds.end()); }
  double error() const { return predicted / measured() - 1; }
};

} // namespace

/// Compiles the strategies of a model, and simulates them.
static Expected<std::vector<Measurement>>
predict(const PredictedModel &model, const cluster::Cluster &cluster, const std::string &only) {
  std::vector<Measurement> entries;
  ImportOptions importOptions;
  importOptions.batch = model.batch;
  importOptions.seq = model.seq;
  for (const CompileOptions &options : predictedStrategies()) {
    Measurement entry{model.name, describeStrategy(options), nullptr, 0, {}};
    if (entry.name.find(only) == entry.name.npos)
      continue;
    auto compiled = importAndCompile(
        dtc::test::sourcePath(fmt::format("examples/{}/config.json", model.config)), importOptions,
        options);
    if (!compiled)
      return compiled.error().inContext(entry.name);
    entry.plan = compiled->plan;
    auto simulation = simulateOnCluster(*entry.plan, cluster);
    if (!simulation)
      return simulation.error().inContext(entry.name);
    entry.predicted = simulation->stepSeconds;
    entries.push_back(std::move(entry));
  }
  if (entries.empty())
    return Error{fmt::format("--only {}: no strategy has that in its name", only)};
  return entries;
}

/// Trains all strategies in turns, as many steps each and for as long as was asked for.
static MaybeError measure(std::vector<Measurement> &entries, const Arguments &arguments) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (const Measurement &entry : entries) {
    auto session = Session::create(entry.plan, createCpuBackend(), SessionOptions());
    if (!session)
      return session.error().inContext(entry.name);
    sessions.push_back(std::move(*session));
    if (MaybeError error = sessions.back()->initializeStates(1))
      return error->inContext(entry.name);
  }
  auto begin = std::chrono::steady_clock::now();
  auto isLate = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >
           arguments.seconds;
  };
  // The first step is the first to touch the memory.
  for (int number = 0; number <= arguments.steps || !isLate(); ++number)
    for (size_t i = 0; i < entries.size(); ++i) {
      std::mt19937_64 random(static_cast<uint64_t>(number));
      Expected<double> seconds = timeStep(*sessions[i], number, random);
      if (!seconds)
        return seconds.error().inContext(entries[i].name);
      if (number > 0)
        entries[i].seconds.push_back(*seconds);
    }
  return std::nullopt;
}

/// Kendall's tau between what was predicted and a measure of each entry: the pairs in the same
/// order less the pairs in the opposite order, as a share of all pairs.
template <typename Measure>
static double kendall(const std::vector<Measurement> &entries, const Measure &measure) {
  double sum = 0, pairs = 0;
  for (size_t i = 0; i < entries.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      double product = (entries[i].predicted - entries[j].predicted) *
                       (measure(entries[i]) - measure(entries[j]));
      sum += product > 0 ? 1 : product < 0 ? -1 : 0;
      ++pairs;
    }
  return pairs > 0 ? sum / pairs : 1;
}

static void print(const std::vector<Measurement> &entries) {
  double sum = 0, largest = 0;
  fmt::print("\n{:<8}{:<44}{:>12}{:>12}{:>12}{:>9}\n", "model", "strategy", "median", "fastest",
             "predicted", "error");
  const Measurement *chosen = &entries.front(), *best = chosen;
  for (const Measurement &entry : entries) {
    fmt::print("{:<8}{:<44}{:>9.1f} ms{:>9.1f} ms{:>9.1f} ms{:>+8.1f}%\n", entry.model, entry.name,
               median(entry.seconds) * 1e3, entry.measured() * 1e3, entry.predicted * 1e3,
               100 * entry.error());
    sum += std::abs(entry.error());
    largest = std::max(largest, std::abs(entry.error()));
    if (entry.predicted < chosen->predicted)
      chosen = &entry;
    if (entry.measured() < best->measured())
      best = &entry;
  }
  fmt::print("mean error {:.1f} %, largest {:.1f} %, Kendall's tau {:.3f}, with medians {:.3f}\n",
             100 * sum / static_cast<double>(entries.size()), 100 * largest,
             kendall(entries, [](const Measurement &entry) { return entry.measured(); }),
             kendall(entries, [](const Measurement &entry) { return median(entry.seconds); }));
  fmt::print("predicted to be fastest: {}, {:.1f} % slower than the fastest, {}\n", chosen->name,
             100 * (chosen->measured() / best->measured() - 1), best->name);
}

/// The measurements of earlier runs.
static Expected<MeasuredSteps> readMeasured(const std::vector<std::string> &paths) {
  MeasuredSteps steps;
  for (const std::string &path : paths) {
    std::ifstream file(path);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    if (!file)
      return Error{fmt::format("{}: cannot be read", path)};
    if (MaybeError error = addMeasuredSteps(text, steps))
      return error->inContext(path);
  }
  return steps;
}

static MaybeError run(const Arguments &arguments) {
  auto cluster = readCluster(arguments.cluster);
  if (!cluster)
    return cluster.error();
  auto known = readMeasured(arguments.measured);
  if (!known)
    return known.error();
  if (!arguments.save.empty())
    if (MaybeError error = checkWritable(arguments.save))
      return error;
  MeasuredSteps measured;
  for (const PredictedModel &model : predictedModels()) {
    if (!arguments.models.empty() && std::find(arguments.models.begin(), arguments.models.end(),
                                               model.name) == arguments.models.end())
      continue;
    auto entries = predict(model, *cluster, arguments.only);
    if (!entries)
      return entries.error();
    if (arguments.measured.empty())
      if (MaybeError error = measure(*entries, arguments))
        return error;
    for (Measurement &entry : *entries) {
      if (!arguments.measured.empty()) {
        auto found = known->find({entry.model, entry.name});
        if (found == known->end())
          return Error{fmt::format("--measured: found no steps of {}, {}; measure them with --save",
                                   entry.model, entry.name)};
        entry.seconds = found->second;
      }
      measured[{entry.model, entry.name}] = entry.seconds;
    }
    print(*entries);
  }
  return arguments.save.empty() ? std::nullopt
                                : writeTextFile(arguments.save, formatMeasuredSteps(measured));
}

static int runMain(int argc, char **argv) {
  CLI::App app(
      "Compares the steps of two models in many strategies with what they are predicted to "
      "take.",
      "dtc-benchmark-prediction");
  Arguments arguments;
  std::vector<std::string> names;
  for (const PredictedModel &model : predictedModels())
    names.push_back(model.name);
  app.add_option("--cluster", arguments.cluster, "What dtc-run calibrate wrote on this machine")
      ->required();
  app.add_option("--model", arguments.models, "Only this model; may be given again")
      ->check(CLI::IsMember(names));
  app.add_option("--only", arguments.only, "Only strategies that have this in their names");
  CLI::Option *steps =
      app.add_option("--steps", arguments.steps, "Steps of each strategy, at least")
          ->check(CLI::PositiveNumber)
          ->capture_default_str();
  CLI::Option *seconds =
      app.add_option("--seconds", arguments.seconds, "Go on for this many seconds with each model")
          ->check(CLI::PositiveNumber)
          ->capture_default_str();
  CLI::Option *save =
      app.add_option("--save", arguments.save, "Write what was measured to this file");
  app.add_option("--measured", arguments.measured,
                 "Take what --save wrote instead of measuring; may be given again")
      ->excludes(steps)
      ->excludes(seconds)
      ->excludes(save);
  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  if (MaybeError error = run(arguments))
    return fail(error->message);
  return 0;
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
