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
#include "tools/dtc-run/DeviceFlags.h"
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
  addDeviceFlag(app, devices);
  addExchangeFlags(app, devices);
  addGpuFlags(app, devices);
  addProcessFlags();
}

void RunCommand::addCalibrateFlags() {
  app.add_option("cluster", calibrationPath, "The file to write")->required();
  addDeviceFlag(app, devices);
  app.add_option("--devices", calibration.devices,
                 "The virtual devices of the cluster; or with --device cuda the GPUs, which are "
                 "measured as NCCL connects them (default: 1)")
      ->check(CLI::Range(int64_t{1}, kMaxLocalDevices))
      ->capture_default_str();
  addThreadFlag(app, train);
  addProductFlags(app, devices);
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

/// In the folder of checkpoints, folders come and go with everything that is in them, and so do the
/// folders that are being written and the lock.
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
  Expected<std::shared_ptr<const Backend>> backend = openBackend(devices);
  if (!backend)
    return fail(backend.error().message);
  bool isGpu = (*backend)->name() == "cuda";
  for (const std::string &flag : isGpu ? ofCores : ofGpus)
    if (isGiven(flag.c_str()))
      return fail(fmt::format("{} is for --device {}; leave it out", flag, isGpu ? "cpu" : "cuda"));
  if (isGpu) {
    int64_t count = isGiven("--devices") ? calibration.devices : 1;
    calibration = gpuCalibrationOptions();
    calibration.devices = count;
    if (count > 1) {
      devices.fabric = "nccl";
      Expected<OpenFabric> nccl = chooseFabric(devices, **backend, train.processes, stderr);
      if (!nccl)
        return fail(nccl.error().message);
      calibration.openFabric = std::move(*nccl);
    }
    if (devices.usesTf32)
      calibration.remarks = {"Products of f32 round their operands to TF32."};
  } else {
    if (train.threadsPerDevice.size() > 1)
      return fail(fmt::format("--threads has {} numbers, but one process measures; give one",
                              train.threadsPerDevice.size()));
    calibration.threadsPerDevice =
        train.threadsPerDevice.empty() ? 1 : train.threadsPerDevice.front();
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
  Expected<OpenDevices> opened = openDevices(devices, train.processes, notes);
  if (!opened)
    return opened.error();
  if (!isGiven("--device") && train.processes.isFirst())
    noteUnusedGpus(notes);
  train.openFabric = opened->openFabric;
  train.graphs = devices.graphs;
  train.onFirstStep = [notes](int64_t step) {
    if (std::optional<double> seconds = secondsSinceLoss())
      printTo(notes, "note: step {} was done {:.1f} s after a process was lost\n", step, *seconds);
  };
  stopOnSignals();
  if (kind == RunKind::Generate) {
    generate.generator.sampler.seed = train.seed;
    MaybeError error =
        runtime::generate(train, generate, opened->backend, out, notes, stopRequested());
    return error ? Expected<bool>(*error) : stopRequested().load();
  }
  Expected<TrainResult> result =
      runtime::train(train, opened->backend, out, notes, stopRequested());
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
