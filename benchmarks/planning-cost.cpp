//===- planning-cost.cpp - Cost of the planner by model and cluster size --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Plans GPT-3 175B on A100s as dtc-compile --cluster does, from model IR to a plan as bytes: with
// 12 to 96 of its layers on as many devices, and with all of them on more and more devices. Time
// should grow at most linearly with the layers and logarithmically with the devices.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/ImportAndCompile.h"
#include "benchmarks/Median.h"
#include "compiler/planner/Planner.h"
#include "compiler/planner/Strategy.h"
#include "plan/PlanReader.h"
#include "simulator/cluster/ClusterReader.h"
#include "test/lib/files/SourcePath.h"
#include "tools/CommandLine.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>
#include <ctime>
#include <fmt/format.h>

using namespace dtc;

namespace {
struct Arguments {
  std::string config = dtc::test::sourcePath("examples/gpt3-175b/config.json");
  std::string cluster = dtc::test::sourcePath("examples/clusters/dgx-a100-80gb.textproto");
  int64_t batch = 1536, seq = 2048;
  int repeats = 3;
};

struct Sample {
  double seconds = 0; ///< of this process's CPU time; the planner has one thread
  int64_t strategies = 0, probes = 0, simulated = 0;
  std::string chosen;
};
} // namespace

static double cpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// The configuration with another number of layers.
static Expected<std::string> configOf(const std::string &path, int64_t layers) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return Error{fmt::format("--config: cannot open {}: {}", path, buffer.getError().message())};
  auto value = llvm::json::parse((*buffer)->getBuffer());
  if (!value || !value->getAsObject())
    return Error{fmt::format("--config: {} is no JSON object", path)};
  (*value->getAsObject())["n_layer"] = layers;
  std::string text;
  llvm::raw_string_ostream(text) << *value;
  return text;
}

static Expected<Sample> planOnce(const Arguments &args, int64_t layers, int64_t devices) {
  auto config = configOf(args.config, layers);
  if (!config)
    return config.error();
  auto cluster = readCluster(args.cluster);
  if (!cluster)
    return cluster.error();
  if (MaybeError error = extendCluster(*cluster, devices))
    return *error;
  ImportOptions importOptions;
  importOptions.batch = args.batch;
  importOptions.seq = args.seq;
  auto model =
      benchmarks::ImportedModel::create(*config, args.config, "planning-cost", importOptions);
  if (!model)
    return model.error();
  double begin = cpuSeconds();
  PlannerOptions options;
  options.cluster = &*cluster;
  options.devices = devices;
  options.base.dtype = ComputeType::BF16;
  auto choice = Planner((*model)->module(), "planning-cost", options).run();
  if (!choice)
    return choice.error();
  if (choice->best.empty())
    return Error{fmt::format("{} layers do not fit on {} devices", layers, devices)};
  plan::Plan plan;
  if (failed(finishCompile((*model)->module(), *choice->search, *choice->compiled, "planning-cost",
                           plan)))
    return Error{"the chosen strategy does not compile"};
  serializePlan(plan);
  return Sample{cpuSeconds() - begin, choice->progress.strategies, choice->progress.probes,
                choice->progress.simulated, describeStrategy(choice->options)};
}

static Expected<Sample> planRepeatedly(const Arguments &args, int64_t layers, int64_t devices) {
  std::vector<double> seconds;
  Sample result;
  for (int i = 0; i < args.repeats; ++i) {
    auto sample = planOnce(args, layers, devices);
    if (!sample)
      return sample.error();
    result = *sample;
    seconds.push_back(sample->seconds);
  }
  result.seconds = benchmarks::median(seconds);
  return result;
}

static MaybeError run(const Arguments &args) {
  fmt::print("batch {}, sequence {}; CPU seconds from model IR to a plan, median of {}\n"
             "to before: times the line above\n\n",
             args.batch, args.seq, args.repeats);
  fmt::print("{:>6} {:>8} {:>10} {:>7} {:>9} {:>9} {:>10} {:>14}  chosen\n", "layers", "devices",
             "strategies", "probes", "simulated", "seconds", "to before", "s/log2 devices");
  double before = 0;
  auto measure = [&](int64_t layers, int64_t devices) -> MaybeError {
    auto sample = planRepeatedly(args, layers, devices);
    if (!sample)
      return sample.error();
    fmt::print("{:>6} {:>8} {:>10} {:>7} {:>9} {:>9.2f} {:>10} {:>14.3f}  {}\n", layers, devices,
               sample->strategies, sample->probes, sample->simulated, sample->seconds,
               before > 0 ? fmt::format("{:.2f}", sample->seconds / before) : "",
               sample->seconds / std::log2(double(devices)), sample->chosen);
    std::fflush(stdout);
    before = sample->seconds;
    return std::nullopt;
  };
  for (int64_t layers : {12, 24, 48, 96})
    if (MaybeError error = measure(layers, 1024))
      return error;
  fmt::print("\n");
  before = 0;
  for (int64_t devices : {128, 512, 2048, 8192})
    if (MaybeError error = measure(96, devices))
      return error;
  return std::nullopt;
}

static int runMain(int argc, char **argv) {
  CLI::App app("Plans GPT-3 on more and more devices and prints what that costs.",
               "dtc-benchmark-planning-cost");
  Arguments args;
  app.add_option("--config", args.config, "A Hugging Face config.json with n_layer")
      ->capture_default_str();
  app.add_option("--cluster", args.cluster, "The cluster, with as many nodes as it takes")
      ->capture_default_str();
  app.add_option("--batch", args.batch, "Sequences in a batch")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seq", args.seq, "Tokens in a sequence")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--repeats", args.repeats, "Runs whose median is taken")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  if (MaybeError error = run(args))
    return fail(error->message);
  return 0;
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
