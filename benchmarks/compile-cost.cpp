//===- compile-cost.cpp - Cost of compilation by model size ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Compiles the configurations of examples/compile-cost, up to 96 layers of hidden size 12288, for
// the same mesh, and the largest for meshes of other sizes. Time should grow with the layers and
// not with the devices. Every run is a process of its own, so that its peak of memory is its own as
// well.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/ImportAndCompile.h"
#include "benchmarks/Median.h"
#include "plan/PlanReader.h"
#include "support/Format.h"
#include "test/lib/files/SourcePath.h"
#include "tools/CommandLine.h"

#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dtc;

namespace {

/// One line of the table.
struct Case {
  int64_t layers;
  int64_t dp;
  int64_t zero = 0;
  bool sequenceParallel = false;

  std::string form() const {
    std::string text = zero > 0 ? fmt::format("ZeRO-{}", zero) : "";
    if (sequenceParallel)
      text += text.empty() ? "sequence" : ", sequence";
    return text;
  }
};

/// The figures that a run tells its parent.
struct Sample {
  double importSeconds = 0;
  double compileSeconds = 0; // until the plan is bytes
  double cpuSeconds = 0;     // of the whole run; compiling has one thread
  uint64_t planBytes = 0;
  uint64_t peakBytes = 0;
};

struct Arguments {
  std::string examples = dtc::test::sourcePath("examples/compile-cost");
  int64_t seq = 2048;
  int repeats = 3;
};

} // namespace

static constexpr int64_t kTp = 8;
static constexpr int64_t kBatch = 1024; // divides over every dp below
static constexpr uint64_t kPlanLimit = 20'000'000;

static std::string configOf(const Case &c, const Arguments &args) {
  return fmt::format("{}/gpt2-{}-layers/config.json", args.examples, c.layers);
}

static Expected<Sample> compileOnce(const Case &c, const Arguments &args) {
  ImportOptions importOptions;
  importOptions.batch = kBatch;
  importOptions.seq = args.seq;
  CompileOptions compileOptions;
  compileOptions.mesh = {{"dp", c.dp}, {"tp", kTp}};
  compileOptions.zero = c.zero;
  compileOptions.sequenceParallel = c.sequenceParallel;
  auto model = benchmarks::importAndCompile(configOf(c, args), importOptions, compileOptions);
  if (!model)
    return model.error();
  Sample sample;
  auto begin = std::chrono::steady_clock::now();
  sample.planBytes = serializePlan(*model->plan).size();
  std::chrono::duration<double> serializing = std::chrono::steady_clock::now() - begin;
  sample.importSeconds = model->importSeconds;
  sample.compileSeconds = model->compileSeconds + serializing.count();
  return sample;
}

static double seconds(const timeval &time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

/// Runs in a child and reads what it writes: a Sample, or the text of an error.
static Expected<Sample> measure(const Case &c, const Arguments &args) {
  int ends[2];
  if (pipe(ends) != 0)
    return Error{fmt::format("cannot make a pipe: {}", std::strerror(errno))};
  std::fflush(stdout);
  pid_t child = fork();
  if (child < 0)
    return Error{fmt::format("cannot start a process: {}", std::strerror(errno))};
  if (child == 0) {
    Expected<Sample> sample = compileOnce(c, args);
    std::string text = sample
                           ? std::string(reinterpret_cast<const char *>(&*sample), sizeof(Sample))
                           : sample.error().message;
    bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written && sample ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char chunk[4096];
  for (ssize_t n; (n = read(ends[0], chunk, sizeof(chunk))) > 0;)
    text.append(chunk, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  rusage usage = {};
  wait4(child, &status, 0, &usage);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Error{text.empty() ? "the compiler ended without a result" : text};
  Sample sample;
  std::memcpy(&sample, text.data(), sizeof(sample));
  sample.cpuSeconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  sample.peakBytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  return sample;
}

/// The median of each time, and the largest sizes.
static Expected<Sample> measureRepeatedly(const Case &c, const Arguments &args) {
  Sample result;
  std::vector<double> importSeconds, compileSeconds, cpuSeconds;
  for (int i = 0; i < args.repeats; ++i) {
    Expected<Sample> sample = measure(c, args);
    if (!sample)
      return sample.error();
    importSeconds.push_back(sample->importSeconds);
    compileSeconds.push_back(sample->compileSeconds);
    cpuSeconds.push_back(sample->cpuSeconds);
    result.planBytes = std::max(result.planBytes, sample->planBytes);
    result.peakBytes = std::max(result.peakBytes, sample->peakBytes);
  }
  result.importSeconds = benchmarks::median(importSeconds);
  result.compileSeconds = benchmarks::median(compileSeconds);
  result.cpuSeconds = benchmarks::median(cpuSeconds);
  return result;
}

static MaybeError run(const Arguments &args) {
  fmt::print("GPT-2, batch {}, sequence {}, tp={}; median of {}\n"
             "ms/layer: of the whole run's CPU time; to linear: compared with the first line\n\n",
             kBatch, args.seq, kTp, args.repeats);
  fmt::print("{:>6} {:>6} {:>8} {:>10} {:>10} {:>8} {:>10} {:>9} {:>10} {:>10}  form\n", "layers",
             "dp", "devices", "import s", "compile s", "CPU s", "ms/layer", "to linear", "plan",
             "peak RSS");
  double firstPerLayer = 0;
  bool tooLarge = false;
  for (Case c : {Case{12, 64},
                 {24, 64},
                 {48, 64},
                 {96, 64},
                 {96, 1},
                 {96, 1024},
                 {12, 64, 3},
                 {24, 64, 3},
                 {48, 64, 3},
                 {96, 64, 3},
                 {96, 64, 3, true}}) {
    Expected<Sample> sample = measureRepeatedly(c, args);
    if (!sample)
      return sample.error();
    double perLayer = sample->cpuSeconds / static_cast<double>(c.layers);
    if (firstPerLayer == 0)
      firstPerLayer = perLayer;
    fmt::print(
        "{:>6} {:>6} {:>8} {:>10.3f} {:>10.3f} {:>8.3f} {:>10.2f} {:>9.2f} {:>10} {:>10}  {}\n",
        c.layers, c.dp, c.dp * kTp, sample->importSeconds, sample->compileSeconds,
        sample->cpuSeconds, perLayer * 1e3, perLayer / firstPerLayer,
        formatBytes(sample->planBytes), formatBytes(sample->peakBytes), c.form());
    std::fflush(stdout);
    tooLarge |= sample->planBytes > kPlanLimit;
  }
  if (tooLarge)
    return Error{fmt::format("a plan takes more than {}", formatBytes(kPlanLimit))};
  return std::nullopt;
}

static int runMain(int argc, char **argv) {
  CLI::App app("Compiles GPT-2 of 12 to 96 layers and prints what that costs.",
               "dtc-benchmark-compile-cost");
  Arguments args;
  app.add_option("--examples", args.examples, "The folder of the configurations")
      ->capture_default_str();
  app.add_option("--seq", args.seq, "Tokens in a sequence")
      ->check(CLI::Range(int64_t{1}, int64_t{2048}))
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
