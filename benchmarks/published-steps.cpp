//===- published-steps.cpp - Predicted and published times ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Reads a table of configurations with what was measured for them, compiles and simulates each on a
// cluster, and prints both. docs/accuracy.md has the results for tables in benchmarks/published.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/StepPrediction.h"
#include "simulator/cluster/ClusterReader.h"
#include "tools/CommandLine.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <cstdio>
#include <fmt/format.h>

using namespace dtc;
using namespace dtc::benchmarks;

namespace {

struct Arguments {
  std::string table, cluster, only;
  bool layer = false;
};

/// Errors of one quantity, in percent.
class Errors {
public:
  /// The text of a prediction's error: that of "+1.2 %", or "-" where nothing was measured.
  std::string add(double predicted, const std::optional<double> &measured) {
    if (!measured)
      return "-";
    double error = 100 * (predicted / *measured - 1);
    sum += std::abs(error);
    largest = std::max(largest, std::abs(error));
    ++count;
    return fmt::format("{:+.1f} %", error);
  }
  void print(const char *what) const {
    if (count > 0)
      fmt::print("{}: mean absolute error {:.1f} %, largest {:.1f} %, of {}\n", what,
                 sum / double(count), largest, count);
  }

private:
  double sum = 0, largest = 0;
  int64_t count = 0;
};

} // namespace

static std::string shown(const std::optional<double> &value) {
  return value ? fmt::format("{:.2f}", *value) : "-";
}

static MaybeError printSteps(const std::vector<PublishedCase> &cases, const Arguments &args,
                             const cluster::Cluster &cluster) {
  constexpr const char *line = "{:<28} {:>8} {:>9} {:>9} {:>8} {:>6}  {:>7} {:>7} {:>8}  {:>7} "
                               "{:>7} {:>7} {:>8} {:>7}  {:>9} {:>8}  {}\n";
  fmt::print("A step in seconds; what the first device holds in GiB: the state is parameters, "
             "master weights,\ngradients and the optimizer's; kept are activations from forward to "
             "backward, with masks\nthe same with those of dropout, where what executes the step "
             "stores them, and then\ncompared; the arena is all that it needs; whether the fullest "
             "device has the memory\n\n");
  fmt::print(line, "configuration", "devices", "measured", "predicted", "error", "MFU %", "state",
             "predict", "error", "activ.", "kept", "+masks", "error", "arena", "compile s",
             "simul. s", "fits");
  Errors seconds, state, activations;
  constexpr double gib = 1 << 30;
  size_t tooLarge = 0;
  std::string folder = llvm::sys::path::parent_path(args.table).str();
  for (const PublishedCase &row : cases) {
    Expected<StepPrediction> step = predictStep(row, folder, cluster);
    if (!step)
      return Error{fmt::format("{}: line {} ({}): {}", args.table, row.line, row.name,
                               step.error().message)};
    double kept = (step->keptBytes + step->maskBytes.value_or(0)) / gib;
    fmt::print(
        line, row.name, row.devices(), shown(row.measuredSeconds),
        fmt::format("{:.4g}", step->seconds), seconds.add(step->seconds, row.measuredSeconds),
        fmt::format("{:.1f}", 100 * step->modelFlopsShare), shown(row.measuredStateGib),
        shown(step->stateBytes / gib), state.add(step->stateBytes / gib, row.measuredStateGib),
        shown(row.measuredActivationGib), shown(step->keptBytes / gib),
        step->maskBytes ? shown(kept) : "-", activations.add(kept, row.measuredActivationGib),
        shown(step->arenaBytes / gib), fmt::format("{:.1f}", step->compileSeconds),
        fmt::format("{:.1f}", step->simulateSeconds),
        step->fits() ? "yes"
                     : fmt::format("no: needs {:.2f} of {:.2f}", step->neededBytes / gib,
                                   step->usableBytes / gib));
    std::fflush(stdout);
    tooLarge += !step->fits();
  }
  fmt::print("\n");
  if (tooLarge > 0)
    fmt::print(
        "{} of {} configurations do not fit the devices of the cluster \"{}\"; their times are "
        "those of devices with more memory\n",
        tooLarge, cases.size(), cluster.name());
  seconds.print("step");
  state.print("state");
  activations.print("kept activations");
  return std::nullopt;
}

static MaybeError printLayers(const std::vector<PublishedCase> &cases, const Arguments &args,
                              const cluster::Cluster &cluster) {
  constexpr const char *line = "{:<28} {:>9} {:>9} {:>8}  {:>9} {:>9} {:>8}\n";
  fmt::print("One layer of one microbatch in milliseconds; backward has what is recomputed\n\n");
  fmt::print(line, "configuration", "forward", "predicted", "error", "backward", "predicted",
             "error");
  Errors errors;
  std::string folder = llvm::sys::path::parent_path(args.table).str();
  for (const PublishedCase &row : cases) {
    Expected<LayerPrediction> layer = predictLayer(row, folder, cluster);
    if (!layer)
      return Error{fmt::format("{}: line {} ({}): {}", args.table, row.line, row.name,
                               layer.error().message)};
    double forward = 1e3 * layer->forward, backward = 1e3 * layer->backward;
    fmt::print(line, row.name, shown(row.measuredForwardMs), fmt::format("{:.4g}", forward),
               errors.add(forward, row.measuredForwardMs), shown(row.measuredBackwardMs),
               fmt::format("{:.4g}", backward), errors.add(backward, row.measuredBackwardMs));
    std::fflush(stdout);
  }
  fmt::print("\n");
  errors.print("layer");
  return std::nullopt;
}

static MaybeError run(const Arguments &args) {
  auto buffer = llvm::MemoryBuffer::getFile(args.table, /*IsText=*/true);
  if (!buffer)
    return Error{fmt::format("{}: cannot open: {}", args.table, buffer.getError().message())};
  auto all = parsePublishedCases((*buffer)->getBuffer().str());
  if (!all)
    return Error{fmt::format("{}: {}", args.table, all.error().message)};
  std::vector<PublishedCase> cases;
  for (const PublishedCase &row : *all)
    if (row.name.find(args.only) != std::string::npos)
      cases.push_back(row);
  if (cases.empty())
    return Error{fmt::format("--only {}: no configuration of {} has that in its name", args.only,
                             args.table)};
  auto cluster = readCluster(args.cluster);
  if (!cluster)
    return Error{"--cluster: " + cluster.error().message};
  return args.layer ? printLayers(cases, args, *cluster) : printSteps(cases, args, *cluster);
}

static int runMain(int argc, char **argv) {
  CLI::App app("Predicts the time and the memory of published configurations and compares them.",
               "dtc-benchmark-published-steps");
  Arguments args;
  app.add_option("table", args.table, "A CSV file of configurations; see benchmarks/README.md")
      ->required();
  app.add_option("--cluster", args.cluster, "The cluster, as dtc-plan simulate takes it")
      ->required();
  app.add_flag("--layer", args.layer, "One layer's forward and backward pass instead of steps");
  app.add_option("--only", args.only, "Only configurations that have this in their names");
  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  if (MaybeError error = run(args))
    return fail(error->message);
  return 0;
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
