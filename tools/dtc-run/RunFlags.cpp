//===- RunFlags.cpp - The flags of dtc-run --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/RunFlags.h"

#include "runtime/checkpoint/RunIdentity.h"
#include "runtime/data/Sampling.h"
#include "runtime/metrics/MetricsServer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace dtc;
using namespace dtc::runtime;

static const std::map<std::string, LearningRateDecay> kDecays = {
    {"constant", LearningRateDecay::Constant},
    {"linear", LearningRateDecay::Linear},
    {"cosine", LearningRateDecay::Cosine}};

static const std::map<std::string, Sampling> kSamplings = {{"random", Sampling::Random},
                                                           {"epochs", Sampling::Epochs}};

template <typename T> static CLI::Validator wholeNumber() {
  constexpr T most = std::numeric_limits<T>::max();
  return numberBetween<T>(0, most, fmt::format("a whole number from 0 to {}", most));
}

static CLI::Validator nonNegativeNumber() {
  return numberBetween(0.0, std::numeric_limits<double>::infinity(), "a number of 0 or more");
}

/// Adds the flags of each command that runs a plan.
static void addPlanFlags(CLI::App &app, TrainOptions &options) {
  app.add_option("plan", options.planPath, "The plan, as dtc-compile writes it")->required();
  app.add_option("--init", options.initPaths,
                 "Start from the parameters of a .safetensors file, of the files of a "
                 "model.safetensors.index.json, or of a folder with either; may be given again, as "
                 "for a base model and its adapters: the last one that has a tensor holds")
      ->allow_extra_args(false);
  app.add_flag("--allow-unused-adapters", options.allowUnusedAdapters,
               "Leave out adapters of --init for layers that have none in the model, instead of "
               "ending with an error");
  app.add_option("--seed", options.seed,
                 "Draws the parameters that --init does not give, the batches, tokens and random "
                 "masks")
      ->check(wholeNumber<uint64_t>())
      ->capture_default_str();
  app.add_option("--stall-timeout", options.stallTimeout,
                 "Seconds without progress of any device after which the run is aborted; 0: never")
      ->check(nonNegativeNumber())
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--stall-marks",
         [&options](const std::string &use) { options.marksCommunication = use == "on"; },
         "Whether GPUs mark to which collective and message they have come (on), so that the error "
         "of a stall names the device that others wait for, at four bytes copied to the host for "
         "each (off: it says only which task each device is at)")
      ->check(CLI::IsMember({"on", "off"}))
      ->default_str("on");
}

void dtc::addThreadFlag(CLI::App &app, TrainOptions &options) {
  app.add_option("--threads", options.threadsPerDevice,
                 "Threads for each device; with commas between them, for those of each process, in "
                 "the order of the processes (default: the cores divided by the devices)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1024));
}

void dtc::addGenerateFlags(CLI::App &app, TrainOptions &run, GenerateOptions &options) {
  addPlanFlags(app, run);
  addThreadFlag(app, run);
  app.add_option("--prompt", options.promptPaths,
                 "A prompt to continue: a file of text or of tokens (.bin, .u32); may be given "
                 "again")
      ->allow_extra_args(false)
      ->required();
  app.add_option("--max-new-tokens", options.generator.maxNewTokens, "Tokens to generate")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31))
      ->capture_default_str();
  CLI::Option *temperature =
      app.add_option("--temperature", options.generator.sampler.temperature,
                     "Draw tokens from softmax(logits / temperature); 0: take the most likely one")
          ->check(nonNegativeNumber())
          ->capture_default_str();
  app.add_option("--top-k", options.generator.sampler.topK,
                 "The number of the most likely tokens among which one is drawn; 0: all")
      ->check(wholeNumber<int64_t>())
      ->needs(temperature)
      ->capture_default_str();
  CLI::Option *stop =
      app.add_option(
             "--stop-token", options.generator.stopTokens,
             "End a sequence after this token; may be given again: after any of them "
             "(default: eos_token_id of generation_config.json or config.json in the folder "
             "of --init)")
          ->check(wholeNumber<int32_t>())
          ->allow_extra_args(false);
  app.add_flag("--ignore-eos", options.ignoresEos,
               "End no sequence after the eos_token_id of the model")
      ->excludes(stop);
  app.add_option("--tokens", options.tokensPath,
                 "Write a JSON object for each prompt to this file: its tokens and the new ones");
}

void dtc::addEvaluateFlags(CLI::App &app, TrainOptions &options) {
  options.steps = 0;
  options.evalDataFlag = "--data";
  addPlanFlags(app, options);
  addThreadFlag(app, options);
  app.add_option("--data", options.evalDataPaths,
                 "What to compute the loss on, without dropout: files as those of dtc-run train")
      ->allow_extra_args(false)
      ->required();
  app.add_option("--batches", options.evalBatches,
                 "How many batches, the first ones (default: all)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option_function<std::string>(
         "--checkpoint",
         [&options](const std::string &path) {
           options.checkpointPath = path;
           options.resume = options.needsCheckpoint = true;
         },
         "The parameters of the newest checkpoint that is complete in this folder")
      ->excludes(app.get_option("--init"));
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

static void addCheckpointFlags(CLI::App &app, TrainOptions &options) {
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

static void addMetricsFlags(CLI::App &app, TrainOptions &options) {
  app.add_option("--metrics", options.metricsPath, "Write a JSON object a step to this file");
  app.add_option("--tensorboard", options.tensorBoardPath,
                 "Write the metrics of each step to this folder, for TensorBoard");
  app.add_option_function<std::string>(
      "--metrics-port",
      [&options](const std::string &where) {
        if (Expected<std::string> address = parseMetricsAddress(where); !address)
          throw CLI::ValidationError("--metrics-port", address.error().message);
        options.metricsAddress = where;
      },
      "Offer the metrics of the last step to Prometheus at this port, of this machine alone; or "
      "at ADDRESS:PORT, such as 0.0.0.0:9400, to others too; port 0: any free one");
}

static void addDataFlags(CLI::App &app, TrainOptions &options) {
  CLI::Option *data =
      app.add_option(
             "--data", options.dataPaths,
             "A text file (bytes are tokens), tokens of 16 bits or of llm.c (.bin), tokens of "
             "32 bits (.u32), or tensors named as the plan's inputs (.safetensors); or a quoted "
             "pattern, 'shards/*.bin'; may be given again: all files are one data set")
          ->allow_extra_args(false);
  app.add_option("--clients", options.clientsPath,
                 "Instead of --data, of a plan of dtc-compile --clients: a file in Protobuf's text "
                 "format that names clients and the files of their data; each --outer-every steps "
                 "are a round, in which each replica trains for another one")
      ->excludes(data);
  app.add_option_function<std::string>(
         "--sampling", [&](const std::string &name) { options.sampling = kSamplings.at(name); },
         "How the samples of batches are drawn: each for itself (random), or each once in an "
         "epoch, "
         "in another order each time (epochs)")
      ->check(CLI::IsMember({"random", "epochs"}))
      ->default_str("random");
  app.add_option("--accumulate", options.batches,
                 "Batches per step: gradients are summed over them before each update")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  CLI::Option *every =
      app.add_option("--outer-every", options.outerEvery,
                     "Of a plan of dtc-compile --outer: the steps from one outer step to the next, "
                     "which gives the replicas the same parameters again")
          ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--local-epochs", options.localEpochs,
                 "Of --clients, instead of --outer-every: passes over the data of each client in a "
                 "round, rounded up to a step; the others wait for the one that takes most steps")
      ->check(numberBetween(0.0, 1e6, "a number from 0 to 1000000"))
      ->excludes(every);
  app.add_option("--client-clip", options.clientClip,
                 "Of a plan of dtc-compile --client-noise: the largest norm of what a client "
                 "changes in a round; a larger change is scaled down")
      ->check(nonNegativeNumber());
  app.add_option("--noise-multiplier", options.noiseMultiplier,
                 "Of such a plan: the standard deviation of the noise, in units of --client-clip; "
                 "it is added to the sum over clients")
      ->check(nonNegativeNumber());
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
}

static void addStepFlags(CLI::App &app, TrainOptions &options) {
  CLI::Option *steps =
      app.add_option("--steps", options.steps,
                     "Steps to run (default: 100; 1 for a plan that does not train, 0 if it only "
                     "has --eval-data)")
          ->check(wholeNumber<int64_t>());
  app.add_option("--epochs", options.epochs,
                 "Instead of --steps: passes over --data, such as 3 or 0.5; the run has the steps "
                 "that take as many samples, rounded up")
      ->check(numberBetween(0.0, 1e6, "a number from 0 to 1000000"))
      ->excludes(steps);
  app.add_option("--rounds", options.rounds,
                 "Of --clients, instead of --steps: the rounds of the run")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->excludes(steps);
  app.add_option("--lr", options.learningRate, "The learning rate after the warm-up")
      ->capture_default_str();
  app.add_option("--min-lr", options.minLearningRate,
                 "The learning rate of the last step (default: 0)");
  CLI::Option *warmup =
      app.add_option("--warmup", options.warmupSteps,
                     "Steps in which the learning rate rises (default: a tenth of the steps, at "
                     "most 100)")
          ->check(wholeNumber<int64_t>());
  app.add_option(
         "--warmup-ratio", options.warmupRatio,
         "Instead of --warmup: the part of the steps in which the learning rate rises, such "
         "as 0.03; rounded up to a step")
      ->check(numberBetween(0.0, 1.0, "a number from 0 to 1"))
      ->excludes(warmup);
  app.add_option_function<std::string>(
         "--lr-schedule", [&](const std::string &name) { options.decay = kDecays.at(name); },
         "How the learning rate falls to its minimum")
      ->check(CLI::IsMember({"constant", "linear", "cosine"}))
      ->default_str("cosine");
  app.add_option("--loss-scale", options.lossScale,
                 "The factor of the loss at first, in a plan that scales it (default: "
                 "65536)");
  app.add_option("--loss-scale-growth-interval", options.lossScaleGrowthInterval,
                 "Steps without a skipped one after which the loss scale doubles (default: 2000)")
      ->check(wholeNumber<int64_t>());
}

static void addSaveFlags(CLI::App &app, TrainOptions &options) {
  app.add_option("--save", options.savePath,
                 "Write the parameters to a .safetensors file at the end");
  app.add_option(
      "--save-adapters", options.saveAdaptersPath,
      "Write the adapters of a model with --lora, and nothing else, to this folder at "
      "the end, as PEFT does: adapter_model.safetensors, in f32 (f64 of a model in f64), "
      "and adapter_config.json");
  app.add_option(
      "--save-merged", options.saveMergedPath,
      "Write the parameters of a model with --lora, with its adapters added to them, to a "
      ".safetensors file at the end; it is one of the model without adapters");
}

#ifdef DTC_HAS_INJECTIONS
static void addInjectionFlags(CLI::App &app, TrainOptions &options) {
  app.add_option_function<std::vector<std::string>>(
         "--inject-delay",
         [&](const std::vector<std::string> &texts) {
           for (const std::string &text : texts) {
             Expected<InjectedDelay> delay = parseDelay(text);
             if (!delay)
               throw CLI::ValidationError("--inject-delay", delay.error().message);
             options.delays.push_back(*delay);
           }
         },
         "In a build with tests, to see how a run copes: 'device=2,seconds=0.05' lets that device "
         "do nothing for so long "
         "at the beginning of each step. May be given several times")
      ->allow_extra_args(false);
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
         "In a build with tests, to see how a run copes: 'op=h.1.mlp,step=3,device=5' makes an "
         "element infinite that the "
         "first kernel of that op makes on that device in that step. May follow: kernel=einsum, "
         "match=-1 (the last such kernel, of the backward pass), microbatch=1, element=7, "
         "value=-inf or nan. May be given several times")
      ->allow_extra_args(false);
}
#endif

void dtc::addTrainFlags(CLI::App &app, TrainOptions &options) {
  addDataFlags(app, options);
  addStepFlags(app, options);
  addPlanFlags(app, options);
  addSaveFlags(app, options);
  addCheckpointFlags(app, options);
  addMetricsFlags(app, options);
  addThreadFlag(app, options);
  app.add_option("--log-every", options.logEvery,
                 "Steps from one line to the next, where the output is not a terminal")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32))
      ->capture_default_str();
  CLI::Option *trace = app.add_option(
      "--trace", options.tracePath,
      "Write what the devices did in the last steps to this file, for ui.perfetto.dev");
  app.add_option("--trace-steps", options.traceSteps, "The steps that --trace shows")
      ->check(CLI::Range(1, 1000))
      ->needs(trace)
      ->capture_default_str();
  app.add_flag("--allow-nonfinite", options.allowNonfinite,
               "Go on when the loss is not a finite number, and however many steps are skipped");
#ifdef DTC_HAS_INJECTIONS
  addInjectionFlags(app, options);
#endif
}
