//===- planner-regret.cpp - Evaluation of the planner's choices -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Draws small models and clusters, runs the planner on each with a few options left to choose, and
// compiles and simulates every strategy to see what the best one would have been. Then times
// estimates for a model of many layers on many devices, on one thread.
//
//===----------------------------------------------------------------------===//

#include "support/Format.h"
#include "test/lib/compile/PlannerCases.h"
#include "tools/CommandLine.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fmt/format.h>

using namespace dtc;
using namespace dtc::test;

namespace {
struct Arguments {
  int64_t pairs = 50, devices = 16;
  uint64_t seed = 1;
  double seconds = 0.5; ///< of estimates, at least
};
} // namespace

static double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

static int measureRegret(const Arguments &args) {
  fmt::print("{:>6} {:>10} {:>7} {:>9} {:>10} {:>10} {:>8}  {}\n", "seed", "strategies", "fitting",
             "simulated", "chosen", "best", "regret",
             "chosen strategy / best strategy, where they differ");
  std::vector<double> regrets;
  int64_t unfit = 0;
  for (uint64_t seed = args.seed; seed < args.seed + uint64_t(args.pairs); ++seed) {
    PlannedCase planned = randomCase(seed, args.devices);
    auto regret = findRegret(planned);
    if (!regret)
      return fail(planned.str() + ": " + regret.error().message);
    if ((regret->best > 0) != (regret->chosen > 0))
      return fail(fmt::format("{}: {} strategies fit, the planner {}", planned.str(),
                              regret->fitting, regret->chosen > 0 ? "found one" : "found none"));
    fmt::print("{:>6} {:>10} {:>7} {:>9} {:>10} {:>10} {:>7.2f}%  {}\n", seed, regret->strategies,
               regret->fitting, regret->simulated, formatDuration(regret->chosen),
               formatDuration(regret->best), 100 * regret->share(),
               regret->share() > 1e-9 ? regret->chosenStrategy + " / " + regret->bestStrategy : "");
    std::fflush(stdout);
    if (regret->best > 0)
      regrets.push_back(regret->share());
    else
      ++unfit;
  }
  if (regrets.empty())
    return fail("no strategy of any pair fits; draw more pairs");
  double sum = 0, most = 0;
  for (double regret : regrets) {
    sum += regret;
    most = std::max(most, regret);
  }
  int64_t best = llvm::count_if(regrets, [](double regret) { return regret <= 1e-9; });
  fmt::print(
      "{} of {} pairs have the best strategy; regret {:.3f}% on average, {:.2f}% at most; {} "
      "pairs where nothing fits\n",
      best, regrets.size(), 100 * sum / double(regrets.size()), 100 * most, unfit);
  return 0;
}

static int measureEstimates(const Arguments &args) {
  PlannerContext compiler;
  PlannedModel model{.name = "gpt2", .layers = 48, .hidden = 64, .batch = 512, .heads = 8};
  auto module = importCase(compiler, model);
  cluster::Cluster cluster = smallCluster(/*nodes=*/32, /*devicesOfNode=*/8);
  PlannerOptions options;
  options.cluster = &cluster;
  CostProbe probe(*module, options.base, cluster, model.batch);
  ModelProperties traits = findProperties(*module, probe.numLayers());
  std::vector<ParallelStrategy> strategies = enumerateStrategies(options, traits);
  std::vector<std::pair<ParallelStrategy, llvm::ArrayRef<ModelCosts>>> known;
  for (const ParallelStrategy &strategy : strategies)
    if (llvm::ArrayRef<ModelCosts> costs = probe.find(strategy.key(traits.batch)); !costs.empty())
      known.emplace_back(strategy, costs);
  if (known.empty())
    return fail("no strategy can be estimated");
  double sum = 0, seconds = 0;
  int64_t count = 0;
  StepEstimator estimator(options, traits);
  auto begin = std::chrono::steady_clock::now();
  do {
    for (const auto &[strategy, costs] : known) {
      sum += estimator.estimate(strategy, costs).seconds();
      ++count;
    }
    seconds = secondsSince(begin);
  } while (seconds < std::max(args.seconds, 0.2));
  fmt::print(
      "{} estimates of {} strategies of {} on 256 devices in {:.2f} s: {:.0f} a second on one "
      "thread (sum {:.3g} s)\n",
      count, known.size(), model.str(), seconds, double(count) / seconds, sum);
  return 0;
}

static int runMain(int argc, char **argv) {
  Arguments args;
  CLI::App app("Compares what the planner chooses with the best of all strategies.",
               "dtc-benchmark-planner-regret");
  app.add_option("--pairs", args.pairs, "How many models and clusters")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 20))
      ->capture_default_str();
  app.add_option("--devices", args.devices, "The most devices of a cluster")
      ->check(CLI::Range(int64_t(2), int64_t(1) << 10))
      ->capture_default_str();
  app.add_option("--seed", args.seed, "Of the first pair")->capture_default_str();
  app.add_option("--seconds", args.seconds, "How long to estimate, at least 0.2")
      ->capture_default_str();
  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  if (int status = args.pairs > 0 ? measureRegret(args) : 0)
    return status;
  return measureEstimates(args);
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
