//===- dtc-run.cpp - Runs a plan ------------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/calibrate/Calibration.h"
#include "runtime/checkpoint/RunIdentity.h"
#include "runtime/data/DataFiles.h"
#include "runtime/data/SafetensorsShards.h"
#include "runtime/executor/Session.h"
#include "runtime/fabrics/local/LocalFabric.h"
#include "runtime/generate/GenerateRun.h"
#include "runtime/train/TrainLoop.h"
#include "support/CommandFiles.h"
#include "support/StartThread.h"
#include "tools/CommandLine.h"
#include "tools/dtc-run/Devices.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace dtc;
using namespace dtc::runtime;

static std::atomic<bool> stopRequested = false;
static std::atomic<int> stopSignal = 0; // the first one that asked
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "set from a signal handler");

/// The first signal asks the run to end after its step and save. A second SIGINT or SIGTERM ends
/// the process; a terminal that is closed sends more than one SIGHUP, and a pipe that nobody reads
/// a SIGPIPE for each line.
static void stopOnSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    int none = 0;
    stopSignal.compare_exchange_strong(none, signal);
    stopRequested = true;
  };
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    action.sa_flags = SA_RESTART | (signal == SIGINT || signal == SIGTERM ? SA_RESETHAND : 0);
    struct sigaction before = {};
    // nohup asks for a run that outlives its terminal.
    if (signal == SIGHUP && sigaction(signal, nullptr, &before) == 0 &&
        before.sa_handler == SIG_IGN)
      continue;
    sigaction(signal, &action, nullptr);
  }
  // A file that may not grow any more is an error as a full disk is.
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, nullptr);
}

/// As a shell reports a process that a signal has ended.
static int interruptedStatus() { return 128 + stopSignal; }

static const std::map<std::string, LearningRateDecay> decays = {
    {"constant", LearningRateDecay::Constant},
    {"linear", LearningRateDecay::Linear},
    {"cosine", LearningRateDecay::Cosine}};

static const std::map<std::string, Sampling> samplings = {{"random", Sampling::Random},
                                                          {"epochs", Sampling::Epochs}};

/// CLI11 takes -1 for the largest unsigned number, and what is larger than the largest one for it.
template <typename T> static CLI::Validator wholeNumber() {
  return CLI::Validator(
      [](const std::string &text) -> std::string {
        T value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= 0)
          return "";
        return fmt::format("found {}, expected a whole number from 0 to {}", text,
                           std::numeric_limits<T>::max());
      },
      "");
}

/// CLI11's own check lets NaN pass.
static CLI::Validator nonNegativeNumber() {
  return CLI::Validator(
      [](const std::string &text) -> std::string {
        double value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= 0)
          return "";
        return fmt::format("found {}, expected a number of 0 or more", text);
      },
      "");
}

static void addGenerateOptions(CLI::App &app, GenerateOptions &options) {
  CLI::Option *prompt =
      app.add_option("--prompt", options.promptPaths,
                     "Go on with the text or the tokens (.bin, .u32) of this file, by a plan of "
                     "dtc-compile --mode generate; may be given again")
          ->allow_extra_args(false);
  app.add_option("--max-new-tokens", options.generator.maxNewTokens, "Tokens to generate")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31))
      ->needs(prompt)
      ->capture_default_str();
  // What a user would take for something that generation does.
  for (const char *flag :
       {"--data", "--sampling", "--eval-data", "--eval-every", "--eval-batches", "--steps",
        "--accumulate", "--save", "--checkpoint", "--metrics", "--trace", "--lr", "--loss-scale"})
    prompt->excludes(app.get_option(flag));
  CLI::Option *temperature =
      app.add_option("--temperature", options.generator.sampler.temperature,
                     "Draw tokens from softmax(logits / temperature); 0: take the most likely one")
          ->check(nonNegativeNumber())
          ->needs(prompt)
          ->capture_default_str();
  app.add_option("--top-k", options.generator.sampler.topK,
                 "Draw among so many of the most likely tokens; 0: among all")
      ->check(wholeNumber<int64_t>())
      ->needs(prompt)
      ->needs(temperature)
      ->capture_default_str();
  app.add_option("--stop-token", options.generator.stopToken, "End a sequence behind this token")
      ->check(wholeNumber<int32_t>())
      ->needs(prompt);
  app.add_option("--tokens", options.tokensPath,
                 "Write a JSON object for each prompt to this file: its tokens and the new ones")
      ->needs(prompt);
}

/// A value that parse() takes or says why not.
template <typename T>
static auto parsedBy(const char *flag, T &value, Expected<T> (*parse)(std::string_view)) {
  return [flag, &value, parse](const std::string &text) {
    Expected<T> parsed = parse(text);
    if (!parsed)
      throw CLI::ValidationError(flag, parsed.error().message);
    value = *parsed;
  };
}

static void addCheckpointOptions(CLI::App &app, TrainOptions &options) {
  CLI::Option *checkpoint = app.add_option(
      "--checkpoint", options.checkpointPath,
      "Save the whole state of the training to this folder now and then, at the end, and when the "
      "run is interrupted");
  app.add_option_function<std::string>(
         "--checkpoint-every",
         parsedBy("--checkpoint-every", options.checkpointEvery, parseCheckpointInterval),
         "Steps from one checkpoint to the next, such as 5, or a time, such as 30s, 10min or 2h")
      ->needs(checkpoint)
      ->default_str("10min");
  app.add_option("--keep", options.keepCheckpoints,
                 "How many of the newest checkpoints to keep; 0: all")
      ->check(wholeNumber<int64_t>())
      ->needs(checkpoint)
      ->capture_default_str();
  CLI::Option *resume =
      app.add_flag("--resume", options.resume,
                   "Go on from the newest checkpoint that is complete, or start if there is none. "
                   "--steps counts from the beginning of the training")
          ->needs(checkpoint);
  app.add_option("--allow-change", options.allowedChanges,
                 fmt::format("What may be other than in the checkpoint: {}",
                             fmt::join(allowedChanges(), ", ")))
      ->check(
          CLI::IsMember(std::vector<std::string>(allowedChanges().begin(), allowedChanges().end())))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(resume);
}

static void addOptions(CLI::App &app, TrainOptions &options) {
  app.add_option("plan", options.planPath, "The plan, as dtc-compile writes it");
  app.add_option(
         "--data", options.dataPaths,
         "A text file (bytes are tokens), tokens of 16 bits or of llm.c (.bin), tokens of "
         "32 bits (.u32), or tensors named as the plan's inputs (.safetensors); or a quoted "
         "pattern, 'shards/*.bin'; may be given again: all files are one data set")
      ->allow_extra_args(false);
  app.add_option_function<std::string>(
         "--sampling", [&](const std::string &name) { options.sampling = samplings.at(name); },
         "How the samples of batches are drawn: each for itself (random), or each once in an "
         "epoch, "
         "in another order each time (epochs)")
      ->check(CLI::IsMember({"random", "epochs"}))
      ->default_str("random");
  app.add_option("--accumulate", options.batches,
                 "Batches of a step: gradients are summed over them before each update")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--eval-data", options.evalDataPaths,
                 "Held-out data, as --data, to compute the loss on; without dropout")
      ->allow_extra_args(false);
  app.add_option("--eval-every", options.evalEvery,
                 "Steps from one evaluation to the next (default: a tenth of all); there is one "
                 "after the last step too")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--eval-batches", options.evalBatches,
                 "Batches of each evaluation, the first ones of --eval-data (default: all)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--steps", options.steps,
                 "Steps to run (default: 100; 1 for a plan that does not train)")
      ->check(wholeNumber<int64_t>());
  app.add_option("--lr", options.learningRate, "The learning rate after the warm-up")
      ->capture_default_str();
  app.add_option("--min-lr", options.minLearningRate,
                 "The learning rate of the last step (default: 0)");
  app.add_option("--warmup", options.warmupSteps,
                 "Steps in which the learning rate rises (default: a tenth of the steps, at most "
                 "100)")
      ->check(wholeNumber<int64_t>());
  app.add_option_function<std::string>(
         "--lr-schedule", [&](const std::string &name) { options.decay = decays.at(name); },
         "How the learning rate falls to its minimum")
      ->check(CLI::IsMember({"constant", "linear", "cosine"}))
      ->default_str("cosine");
  app.add_option("--loss-scale", options.lossScale,
                 "What the loss is multiplied by at first, in a plan that scales it (default: "
                 "65536)");
  app.add_option("--loss-scale-growth-interval", options.lossScaleGrowthInterval,
                 "Steps without a skipped one after which the loss scale doubles (default: 2000)")
      ->check(wholeNumber<int64_t>());
  app.add_option("--seed", options.seed, "Draws the initial weights, the batches and random masks")
      ->check(wholeNumber<uint64_t>())
      ->capture_default_str();
  app.add_option("--init", options.initPaths,
                 "Start from the weights of a .safetensors file, of the files of a "
                 "model.safetensors.index.json, or of a folder with either; may be given again, as "
                 "for a base model and its adapters: the last one that has a tensor holds")
      ->allow_extra_args(false);
  app.add_option("--save", options.savePath, "Write the weights to a .safetensors file at the end");
  app.add_option(
      "--save-adapters", options.saveAdaptersPath,
      "Write the adapters of a model with --lora, and nothing else, to this folder at "
      "the end, as PEFT does: adapter_model.safetensors, in f32 (f64 of a model in f64), "
      "and adapter_config.json");
  addCheckpointOptions(app, options);
  app.add_option("--metrics", options.metricsPath, "Write a JSON object a step to this file");
  app.add_option("--threads", options.threadsPerDevice,
                 "Threads for each device (default: the cores divided by the devices)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--log-every", options.logEvery,
                 "Steps from one line to the next, where the output is not a terminal")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32))
      ->capture_default_str();
  app.add_option(
         "--stall-timeout", options.stallTimeout,
         "Give up when no device comes to another instruction for so many seconds; 0: never")
      ->check(nonNegativeNumber())
      ->capture_default_str();
  CLI::Option *trace = app.add_option(
      "--trace", options.tracePath,
      "Write what the devices did in the last steps to this file, for ui.perfetto.dev");
  app.add_option("--trace-steps", options.traceSteps, "The steps that --trace shows")
      ->check(CLI::Range(1, 1000))
      ->needs(trace)
      ->capture_default_str();
  app.add_flag("--profile", options.profile, "Print the time that each kind of kernel took");
  app.add_flag("--allow-nonfinite", options.allowNonfinite,
               "Go on when the loss is not a finite number, and however many steps are skipped");
  app.add_option_function<std::vector<std::string>>(
         "--inject-nonfinite",
         [&](const std::vector<std::string> &texts) {
           for (const std::string &text : texts) {
             Expected<Injection> injection = parseInjection(text);
             if (!injection)
               throw CLI::ValidationError("--inject-nonfinite", injection.error().message);
             options.injections.push_back(*injection);
           }
         },
         "To test how a run copes: 'op=h.1.mlp,step=3,device=5' makes an element infinite that the "
         "first kernel of that op makes on that device in that step. May follow: kernel=einsum, "
         "match=-1 (the last such kernel, of the backward pass), microbatch=1, element=7, "
         "value=-inf or nan. May be given several times")
      ->allow_extra_args(false);
}

/// Puts files in the place of patterns.
static MaybeError findFiles(TrainOptions &options) {
  for (auto [flag, paths] : {std::pair("--data", &options.dataPaths),
                             std::pair("--eval-data", &options.evalDataPaths)}) {
    Expected<std::vector<std::string>> files = findDataFiles(*paths);
    if (!files)
      return files.error().inContext(flag);
    *paths = std::move(*files);
  }
  return std::nullopt;
}

static MaybeError checkFiles(const TrainOptions &train, const GenerateOptions &generate) {
  CommandFiles files;
  files.reads("the plan", train.planPath);
  for (const std::string &path : train.dataPaths)
    files.reads("--data", path);
  for (const std::string &path : train.evalDataPaths)
    files.reads("--eval-data", path);
  for (const std::string &path : train.initPaths) {
    Expected<std::vector<std::string>> weights = safetensorsFilesOf(path);
    if (!weights)
      return weights.error();
    for (const std::string &file : *weights)
      files.reads("--init", file);
  }
  for (const std::string &path : generate.promptPaths)
    files.reads("--prompt", path);
  files.writes("--save", train.savePath);
  files.replacesFolder("--save-adapters", train.saveAdaptersPath);
  files.writes("--metrics", train.metricsPath);
  files.writes("--trace", train.tracePath);
  files.writes("--tokens", generate.tokensPath);
  return files.check();
}

/// What dtc-run does instead of running a plan.
struct CalibrateCommand {
  std::string path;
  CalibrationOptions options;
};

static void addCalibrateOptions(CLI::App &app, CalibrateCommand &command) {
  CLI::Option *calibrate =
      app.add_option("--calibrate", command.path,
                     "Measure this machine instead of running a plan, which takes a minute or two, "
                     "and write what it does to this file, a cluster of virtual devices; takes "
                     "--threads too (default: 1)")
          ->type_name("FILE");
  app.add_option("--devices", command.options.devices,
                 "The virtual devices of the cluster that --calibrate writes")
      ->check(CLI::Range(int64_t{1}, maxLocalDevices))
      ->needs(calibrate)
      ->capture_default_str();
}

static int calibrateMain(const CLI::App &app, CalibrateCommand &command, int threads) {
  for (const CLI::Option *option : app.get_options()) {
    std::string name = option->get_name();
    if (option->count() > 0 && name != "--calibrate" && name != "--devices" && name != "--threads")
      return fail(fmt::format("{} was given with --calibrate, which measures this machine and runs "
                              "no plan; leave one of them out",
                              name));
  }
  command.options.threadsPerDevice = std::max(threads, 1);
  try {
    MaybeError error =
        calibrateToFile(command.options, command.path, createCpuBackend(), stdout, stderr);
    return error ? fail(error->message) : 0;
  } catch (const ThreadStartError &error) {
    return fail(error.what());
  }
}

static int runMain(int argc, char **argv) {
  CLI::App app{
      "Runs a plan of dtc-compile: trains the model, computes its outputs, or generates tokens. "
      "Or measures this machine, for plans that are made for it.",
      "dtc-run"};
  app.set_version_flag("--version",
                       fmt::format("dtc-run {} (plan version {})", DTC_VERSION, planVersion));
  TrainOptions options;
  addOptions(app, options);
  GenerateOptions generateOptions;
  addGenerateOptions(app, generateOptions);
  CalibrateCommand calibrateCommand;
  addCalibrateOptions(app, calibrateCommand);
  std::string device = "cpu";
  app.add_option("--device", device,
                 "What the plan runs on: the CPU, GPUs (cuda), or GPUs if there are any (auto)")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->capture_default_str();
  bool listsDevices = false;
  app.add_flag("--list-devices", listsDevices,
               "Print the devices and the libraries for GPUs that dtc-run finds, and end");
  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  if (listsDevices) {
    if (argc > 2)
      return fail("--list-devices runs nothing; give it alone");
    for (const std::string &line : listDevices())
      fmt::print("{}\n", line);
    return 0;
  }
  if (app.get_option("--calibrate")->count() > 0)
    return calibrateMain(app, calibrateCommand, options.threadsPerDevice);
  if (app.get_option("plan")->count() == 0)
    return fail("plan is required; see dtc-run --help");
  // A kernel that does not return keeps its thread, so that the ordinary end of the process would
  // wait for it for ever.
  options.onHang = [](const Error &error) {
    std::fflush(stdout);
    std::_Exit(fail(error.message));
  };
  if (MaybeError error = findFiles(options))
    return fail(error->message);
  if (MaybeError error = checkFiles(options, generateOptions))
    return fail(error->message);
  Expected<std::shared_ptr<const Backend>> backend = openBackend(device);
  if (!backend)
    return fail(backend.error().message);
  stopOnSignals();
  if (!generateOptions.promptPaths.empty()) {
    generateOptions.generator.sampler.seed = options.seed;
    MaybeError error = generate(options, generateOptions, *backend, stdout, stderr, stopRequested);
    return error ? fail(error->message) : stopRequested ? interruptedStatus() : 0;
  }
  Expected<TrainResult> result = train(options, *backend, stdout, stderr, stopRequested);
  if (!result)
    return fail(result.error().message);
  return result->interrupted ? interruptedStatus() : 0;
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
