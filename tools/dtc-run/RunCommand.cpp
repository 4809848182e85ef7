//===- RunCommand.cpp - The command dtc-run -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/RunCommand.h"

#include "runtime/data/DataFiles.h"
#include "runtime/data/WeightsFileShards.h"
#include "runtime/fabrics/local/LocalFabric.h"
#include "runtime/train/TrainLoop.h"
#include "support/CommandFiles.h"
#include "support/FilePath.h"
#include "support/Print.h"
#include "support/StartThread.h"
#include "tools/dtc-run/Devices.h"
#include "tools/dtc-run/LaunchProcesses.h"
#include "tools/dtc-run/Launchers.h"
#include "tools/dtc-run/RunFlags.h"
#include "tools/dtc-run/StopSignals.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

using namespace dtc;
using namespace dtc::runtime;

RunCommand::RunCommand(RunKind kind, CLI::App &app, std::vector<std::string> arguments)
    : kind(kind), app(app), arguments(std::move(arguments)) {
  switch (kind) {
  case RunKind::Train:
    addTrainFlags(app, train);
    break;
  case RunKind::Evaluate:
    addEvaluateFlags(app, train);
    break;
  case RunKind::Generate:
    addGenerateFlags(app, train, generate);
    break;
  case RunKind::Calibrate:
    addCalibrateFlags();
    return;
  case RunKind::Links:
    addLaunchFlags();
    return;
  case RunKind::Placement:
    addPlacementFlags();
    return;
  case RunKind::Devices:
    return;
  }
  app.add_flag("--profile", train.profile, "Print the time that each kind of kernel took");
  addDeviceFlag();
  addExchangeFlags();
  addGpuFlags();
  addProcessFlags();
}

void RunCommand::addCalibrateFlags() {
  app.add_option("cluster", calibrationPath, "The file to write")->required();
  addDeviceFlag();
  app.add_option("--devices", calibration.devices,
                 "The virtual devices of the cluster; or with --device cuda the GPUs, which are "
                 "measured as NCCL connects them (default: 1)")
      ->check(CLI::Range(int64_t{1}, kMaxLocalDevices))
      ->capture_default_str();
  addThreadFlag(app, train);
  addProductFlags();
}

void RunCommand::addDeviceFlag() {
  app.add_option("--device", device,
                 "What the plan runs on, or is measured: the CPU, GPUs (cuda), or GPUs "
                 "if there are any (auto)")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->capture_default_str();
}

/// How GPUs exchange tensors, and how they get steps.
void RunCommand::addExchangeFlags() {
  app.add_option(
         "--fabric", fabric,
         "How GPUs exchange tensors: through the memory of the hosts (local), from GPU to GPU "
         "where each device has one of its own (nccl), or nccl where that is so (auto)")
      ->check(CLI::IsMember({"local", "nccl", "auto"}))
      ->capture_default_str();
  app.add_flag("--share-gpu", sharesGpu,
               "Let devices share a GPU with --fabric nccl too, which takes NCCL 2.30: to test a "
               "plan on fewer GPUs than it has devices; its times say nothing of as many GPUs");
  app.add_option("--nccl-channels", ncclChannels,
                 "The most channels of each communicator of NCCL, where each takes memory of the "
                 "GPU and a multiprocessor (default: as many as NCCL chooses)")
      ->check(CLI::Range(1, 64));
  app.add_option_function<std::string>(
         "--cuda-graphs",
         [this](const std::string &use) {
           train.graphs = use == "auto" ? std::optional<bool>() : use == "on";
         },
         "Whether GPUs get steps as CUDA graphs (on) or each instruction for itself (off), for "
         "debuggers; or graphs where nothing speaks against them (auto)")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->default_str("auto");
}

void RunCommand::addGpuFlags() {
  addProductFlags();
  app.add_option_function<std::string>(
         "--kernel-fusion", [this](const std::string &use) { gpus.fusesCalls = use == "on"; },
         "Whether GPUs compute kernel calls of a plan together where they can, such as a product "
         "and the bias that is added to it (on), or each by itself (off), for debugging")
      ->check(CLI::IsMember({"on", "off"}))
      ->default_str("on");
}

/// What changes how fast a GPU computes one kernel call.
void RunCommand::addProductFlags() {
  app.add_option_function<std::string>(
         "--matmul-algorithms",
         [this](const std::string &how) { gpus.timesProducts = how == "timed"; },
         "How GPUs choose among cuBLASLt's algorithms for each matrix product: its first proposal "
         "(first), or the fastest of its proposals, which are timed once and kept in a file "
         "(timed)")
      ->check(CLI::IsMember({"first", "timed"}))
      ->default_str("first");
  app.add_option_function<std::string>(
         "--matmul-precision", [this](const std::string &use) { gpus.usesTf32 = use == "tf32"; },
         "How GPUs read the f32 operands of matrix products: as they are (f32), or rounded to the "
         "10 bits of mantissa that tensor cores multiply much faster (tf32); sums are f32 in both")
      ->check(CLI::IsMember({"f32", "tf32"}))
      ->default_str("f32");
  app.add_option_function<std::string>(
         "--cudnn",
         [this](const std::string &use) {
           using Cudnn = GpuOptions::Cudnn;
           gpus.cudnn = use == "on" ? Cudnn::On : use == "off" ? Cudnn::Off : Cudnn::Auto;
         },
         "Whether GPUs compute attention by cuDNN (on), or by kernels of dtc (off), or by cuDNN "
         "where it is found (auto); what cuDNN does not have is computed by kernels of dtc")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->default_str("auto");
}

/// Puts files in the place of patterns.
MaybeError RunCommand::findFiles() {
  for (auto [flag, paths] : {std::pair("--data", &train.dataPaths),
                             std::pair(train.evalDataFlag, &train.evalDataPaths)}) {
    Expected<std::vector<std::string>> files = findDataFiles(*paths);
    if (!files)
      return files.error().inContext(flag);
    *paths = std::move(*files);
  }
  return std::nullopt;
}

/// In the folder of checkpoints they come and go with all that is in them, and so do what they are
/// written to and the lock.
static MaybeError checkBesideCheckpoints(const std::string &folder, const std::string &flag,
                                         const std::string &path) {
  if (folder.empty() || path.empty())
    return std::nullopt;
  std::string inFolder =
      std::filesystem::path(followLinks(path)).lexically_relative(followLinks(folder)).string();
  bool isTaken =
      inFolder.starts_with("step-") || inFolder == ".lock" || inFolder.starts_with(".tmp-step-");
  if (!isTaken)
    return std::nullopt;
  return Error{fmt::format("{} {} lies in a checkpoint of --checkpoint {}, or where one is made; "
                           "name another place",
                           flag, path, folder)};
}

MaybeError RunCommand::checkFiles() const {
  CommandFiles files;
  files.reads("the plan", train.planPath);
  for (const std::string &path : train.dataPaths)
    files.reads("--data", path);
  for (const std::string &path : train.evalDataPaths)
    files.reads(train.evalDataFlag, path);
  for (const std::string &path : train.initPaths) {
    Expected<std::vector<std::string>> weights = safetensorsFilesOf(path);
    if (!weights)
      return weights.error();
    for (const std::string &file : *weights)
      files.reads("--init", file);
  }
  for (const std::string &path : generate.promptPaths)
    files.reads("--prompt", path);
  files.writes("--checkpoint", train.checkpointPath);
  files.writes("--save", train.savePath);
  files.replacesFolder("--save-adapters", train.saveAdaptersPath);
  files.writes("--save-merged", train.saveMergedPath);
  files.writes("--metrics", train.metricsPath);
  files.writes("--trace", train.tracePath);
  files.writes("--tokens", generate.tokensPath);
  if (MaybeError error = files.check())
    return error;
  for (const auto &[flag, path] :
       {std::pair("--save", &train.savePath), std::pair("--save-adapters", &train.saveAdaptersPath),
        std::pair("--save-merged", &train.saveMergedPath),
        std::pair("--metrics", &train.metricsPath),
        std::pair("--tensorboard", &train.tensorBoardPath), std::pair("--trace", &train.tracePath)})
    if (MaybeError error = checkBesideCheckpoints(train.checkpointPath, flag, *path))
      return error;
  return std::nullopt;
}

int RunCommand::calibrate() {
  const std::vector<std::string> ofCores = {"--threads"},
                                 ofGpus = {"--matmul-precision", "--matmul-algorithms", "--cudnn"};
  Expected<std::shared_ptr<const Backend>> backend = openBackend(device, gpus);
  if (!backend)
    return fail(backend.error().message);
  bool isGpu = (*backend)->name() == "cuda";
  for (const std::string &flag : isGpu ? ofCores : ofGpus)
    if (isGiven(flag.c_str()))
      return fail(fmt::format("{} is for --device {}; leave it out", flag, isGpu ? "cpu" : "cuda"));
  if (isGpu) {
    int64_t devices = isGiven("--devices") ? calibration.devices : 1;
    calibration = gpuCalibrationOptions();
    calibration.devices = devices;
    if (devices > 1) {
      Expected<OpenFabric> nccl = chooseFabric("nccl", /*sharesGpu=*/false, /*channels=*/0,
                                               **backend, train.processes, stderr);
      if (!nccl)
        return fail(nccl.error().message);
      calibration.openFabric = std::move(*nccl);
    }
    if (gpus.usesTf32)
      calibration.remarks = {"Products of f32 round their operands to TF32."};
  } else {
    calibration.threadsPerDevice = std::max(train.threadsPerDevice, 1);
  }
  try {
    MaybeError error = calibrateToFile(calibration, calibrationPath, *backend, stdout, stderr);
    return error ? fail(error->message) : 0;
  } catch (const ThreadStartError &error) {
    return fail(error.what());
  }
}

/// Whether a signal has ended the run.
Expected<bool> RunCommand::doRun(std::FILE *out, std::FILE *notes) {
  if (MaybeError error = findFiles())
    return *error;
  if (MaybeError error = checkFiles())
    return *error;
  Expected<std::shared_ptr<const Backend>> backend = openBackend(device, gpus);
  if (!backend)
    return backend.error();
  if (!isGiven("--device") && train.processes.isFirst())
    noteUnusedGpus(notes);
  Expected<OpenFabric> network =
      chooseFabric(fabric, sharesGpu, ncclChannels, **backend, train.processes, notes);
  if (!network)
    return network.error();
  train.openFabric = std::move(*network);
  train.onFirstStep = [notes](int64_t step) {
    if (std::optional<double> seconds = secondsSinceLoss())
      printTo(notes, "note: step {} was done {:.1f} s after a process was lost\n", step, *seconds);
  };
  stopOnSignals();
  if (kind == RunKind::Generate) {
    generate.generator.sampler.seed = train.seed;
    MaybeError error = runtime::generate(train, generate, *backend, out, notes, stopRequested());
    return error ? Expected<bool>(*error) : stopRequested().load();
  }
  Expected<TrainResult> result = runtime::train(train, *backend, out, notes, stopRequested());
  return result ? Expected<bool>(result->interrupted) : result.error();
}

int RunCommand::runPlan() {
  // A kernel that does not return keeps its thread, so that the ordinary end of the process would
  // wait for it for ever.
  train.onHang = [](const Error &error) {
    std::fflush(stdout);
    std::_Exit(fail(error.message));
  };
  if (launchedProcesses() > 1)
    return runTogether();
  if (MaybeError error = checkCluster())
    return fail(error->message);
  Expected<bool> interrupted = doRun(stdout, stderr);
  if (!interrupted)
    return fail(interrupted.error().message);
  return *interrupted ? interruptedStatus() : 0;
}

int RunCommand::run() {
  if (kind == RunKind::Devices) {
    for (const std::string &line : listDevices())
      fmt::print("{}\n", line);
    return 0;
  }
  if (kind == RunKind::Calibrate)
    return calibrate();
  if (MaybeError error = checkVariables())
    return fail(error->message);
  if (kind == RunKind::Links)
    return checkLinks();
  if (MaybeError error = findProcesses())
    return launchedProcesses() > 1 ? failTogether(error->message) : fail(error->message);
  if (kind == RunKind::Placement)
    return printPlacement();
  if (numProcesses > 1 && launchedProcesses() == 1 && !startedByLaunch())
    return launch();
  return runPlan();
}
