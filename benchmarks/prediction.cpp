//===- prediction.cpp - Simulated steps against those of this machine -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Trains two models in many layouts on virtual devices of one thread each, and compares the time of
// their steps with what dtc-plan simulate says of them on a cluster that dtc-run --calibrate wrote
// on this machine. The layouts take turns, step by step, so that what else the machine does falls
// on all of them alike.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/ImportAndCompile.h"
#include "benchmarks/Median.h"
#include "benchmarks/RandomTokens.h"
#include "compiler/planner/Strategy.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/cluster/ClusterReader.h"
#include "runtime/executor/Session.h"
#include "runtime/simulate/Simulation.h"
#include "tools/CommandLine.h"

#include <cmath>
#include <fmt/format.h>

using namespace dtc;
using namespace dtc::runtime;

namespace {
struct Model {
  const char *name, *config;
  int64_t batch, seq;
};

/// A layout at work.
struct Entry {
  std::string model, name;
  std::unique_ptr<Session> session;
  std::vector<double> seconds; // of each step that counts
  double predicted = 0;

  double measured() const { return benchmarks::median(seconds); }
  double error() const { return predicted / measured() - 1; }
};
} // namespace

using MeshAxes = std::vector<std::pair<std::string, int64_t>>;

static std::vector<CompileOptions> layouts() {
  std::vector<CompileOptions> all;
  auto add = [&](MeshAxes mesh, int64_t microbatches = 1, int64_t zero = 0, bool sequence = false,
                 const char *schedule = "1f1b", const char *recompute = "none") {
    CompileOptions &options = all.emplace_back();
    options.mesh = std::move(mesh);
    options.microbatches = microbatches;
    options.zero = zero;
    options.sequenceParallel = sequence;
    options.schedule = schedule;
    options.recompute = recompute;
  };
  add({});
  add({}, 2);
  add({}, 1, 0, false, "1f1b", "full");
  add({{"dp", 2}});
  add({{"dp", 2}}, 1, 1);
  add({{"dp", 2}}, 1, 3);
  add({{"dp", 2}}, 2, 2);
  add({{"tp", 2}});
  add({{"tp", 2}}, 1, 0, true);
  add({{"pp", 2}}, 4);
  add({{"pp", 2}}, 4, 0, false, "gpipe");
  add({{"pp", 2}}, 4, 0, false, "zb-h1");
  add({{"dp", 4}});
  add({{"dp", 4}}, 1, 1);
  add({{"dp", 4}}, 1, 3);
  add({{"dp", 2}, {"tp", 2}});
  add({{"pp", 2}, {"dp", 2}}, 4);
  add({{"pp", 2}, {"tp", 2}}, 2);
  add({{"pp", 4}}, 4);
  add({{"dp", 8}});
  add({{"dp", 4}, {"tp", 2}}, 1, 1);
  add({{"pp", 2}, {"dp", 2}, {"tp", 2}}, 2, 1);
  return all;
}

static MaybeError open(const Model &model, const CompileOptions &options,
                       const cluster::Cluster &cluster, Entry &entry) {
  ImportOptions importOptions;
  importOptions.batch = model.batch;
  importOptions.seq = model.seq;
  entry.model = model.name;
  entry.name = describeStrategy(options);
  auto compiled = benchmarks::importAndCompile(
      fmt::format("{}/examples/{}/config.json", DTC_SOURCE_DIR, model.config), importOptions,
      options);
  if (!compiled)
    return compiled.error();
  auto simulation = simulateOnCluster(*compiled->plan, cluster);
  if (!simulation)
    return simulation.error();
  entry.predicted = simulation->stepSeconds;
  auto session = Session::create(compiled->plan, createCpuBackend(), SessionOptions());
  if (!session)
    return session.error();
  entry.session = std::move(*session);
  return entry.session->initializeStates(1);
}

static MaybeError step(Entry &entry, int number) {
  std::mt19937_64 random(static_cast<uint64_t>(number));
  Expected<double> seconds = benchmarks::timeStep(*entry.session, number, random);
  if (!seconds)
    return seconds.error();
  if (number > 0)
    entry.seconds.push_back(*seconds);
  return std::nullopt;
}

/// Kendall's tau: of all pairs, how many more are in the same order than in another.
static double kendall(const std::vector<Entry> &entries) {
  double sum = 0, pairs = 0;
  for (size_t i = 0; i < entries.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      double product = (entries[i].predicted - entries[j].predicted) *
                       (entries[i].measured() - entries[j].measured());
      sum += product > 0 ? 1 : product < 0 ? -1 : 0;
      ++pairs;
    }
  return pairs > 0 ? sum / pairs : 1;
}

static void print(const std::vector<Entry> &entries) {
  double sum = 0, largest = 0;
  fmt::print("\n{:<8}{:<44}{:>12}{:>12}{:>9}\n", "model", "layout", "measured", "predicted",
             "error");
  const Entry *chosen = &entries.front(), *best = chosen;
  for (const Entry &entry : entries) {
    fmt::print("{:<8}{:<44}{:>9.1f} ms{:>9.1f} ms{:>+8.1f}%\n", entry.model, entry.name,
               entry.measured() * 1e3, entry.predicted * 1e3, 100 * entry.error());
    sum += std::abs(entry.error());
    largest = std::max(largest, std::abs(entry.error()));
    if (entry.predicted < chosen->predicted)
      chosen = &entry;
    if (entry.measured() < best->measured())
      best = &entry;
  }
  fmt::print("mean error {:.1f} %, largest {:.1f} %, Kendall's tau {:.3f}\n",
             100 * sum / static_cast<double>(entries.size()), 100 * largest, kendall(entries));
  fmt::print("predicted to be fastest: {}, {:.1f} % slower than the fastest, {}\n", chosen->name,
             100 * (chosen->measured() / best->measured() - 1), best->name);
}

static MaybeError run(const std::string &path, int steps) {
  auto cluster = readCluster(path);
  if (!cluster)
    return cluster.error();
  for (const Model &model :
       {Model{"gpt2", "gpt2-tiny", 16, 128}, Model{"llama", "llama-tiny", 16, 128}}) {
    std::vector<Entry> entries;
    for (const CompileOptions &options : layouts()) {
      entries.emplace_back();
      if (MaybeError error = open(model, options, *cluster, entries.back()))
        return error->inContext(entries.back().name);
    }
    for (int number = 0; number <= steps; ++number)
      for (Entry &entry : entries)
        if (MaybeError error = step(entry, number))
          return error->inContext(entry.name);
    print(entries);
  }
  return std::nullopt;
}

static int runMain(int argc, char **argv) {
  CLI::App app("Compares the steps of two models in many layouts with what they are predicted to "
               "take.",
               "dtc-benchmark-prediction");
  std::string cluster;
  int steps = 11;
  app.add_option("--cluster", cluster, "What dtc-run --calibrate wrote on this machine")
      ->required();
  app.add_option("--steps", steps, "Steps that count; one more runs before them")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  if (MaybeError error = run(cluster, steps))
    return fail(error->message);
  return 0;
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
