//===- RunCommand.cpp - What dtc-run does ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/RunCommand.h"

#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/data/DataFiles.h"
#include "runtime/data/SafetensorsShards.h"
#include "runtime/fabrics/local/LocalFabric.h"
#include "runtime/train/FlightRecord.h"
#include "runtime/train/TrainLoop.h"
#include "support/CommandFiles.h"
#include "support/Print.h"
#include "support/Printable.h"
#include "support/StartThread.h"
#include "tools/dtc-run/Devices.h"
#include "tools/dtc-run/Launch.h"
#include "tools/dtc-run/RunFlags.h"
#include "tools/dtc-run/StopSignals.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>
#include <xxhash.h>

using namespace dtc;
using namespace dtc::runtime;

RunCommand::RunCommand(CLI::App &app, std::vector<std::string> arguments)
    : app(app), arguments(std::move(arguments)) {
  addTrainFlags(app, train);
  addGenerateFlags(app, generate);
  CLI::Option *calibrate =
      app.add_option("--calibrate", calibrationPath,
                     "Measure this machine instead of running a plan, which takes a minute or two, "
                     "and write what it does to this file, a cluster of virtual devices; takes "
                     "--threads too (default: 1)")
          ->type_name("FILE");
  app.add_option("--devices", calibration.devices,
                 "The virtual devices of the cluster that --calibrate writes")
      ->check(CLI::Range(int64_t{1}, maxLocalDevices))
      ->needs(calibrate)
      ->capture_default_str();
  app.add_option("--device", device,
                 "What the plan runs on: the CPU, GPUs (cuda), or GPUs if there are any (auto)")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->capture_default_str();
  app.add_option("--fabric", fabric,
                 "How the devices of one process exchange tensors: through the memory of the host "
                 "(local), from GPU to GPU where each device has one of its own (nccl), or nccl "
                 "where that is so (auto)")
      ->check(CLI::IsMember({"local", "nccl", "auto"}))
      ->capture_default_str();
  app.add_option("--processes", numProcesses,
                 "Start so many processes on this machine, by mpirun, and run the plan in all of "
                 "them together")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
  app.add_option("--max-restarts", maxRestarts,
                 "How often --processes starts them again where one was lost, each time from the "
                 "newest checkpoint")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 16))
      ->needs(app.get_option("--processes"))
      ->needs(app.get_option("--checkpoint"))
      ->capture_default_str();
  app.add_option("--heartbeat-timeout", heartbeatTimeout,
                 "Of several processes: end all when nothing has been heard of one of them for so "
                 "many seconds")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str();
  app.add_option("--start-timeout", startTimeout,
                 "Of several processes: give up when they have not met after so many seconds")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str();
  app.add_option("--flight-record", flightPath,
                 "Of several processes: when the run fails, write to this folder what the devices "
                 "of each process were at, their last collectives and transfers, and the next ones")
      ->type_name("FOLDER");
  app.add_option("--control-network", control.network,
                 "Of several processes on several hosts: the network, such as 10.1.0.0/16, or the "
                 "interface, such as eth0, over which they notice that one is lost (default: that "
                 "of the name of each host)");
  app.add_flag("--list-devices", listsDevices,
               "Print the devices and the libraries for GPUs that dtc-run finds, and end");
}

/// Puts files in the place of patterns.
MaybeError RunCommand::findFiles() {
  for (auto [flag, paths] :
       {std::pair("--data", &train.dataPaths), std::pair("--eval-data", &train.evalDataPaths)}) {
    Expected<std::vector<std::string>> files = findDataFiles(*paths);
    if (!files)
      return files.error().inContext(flag);
    *paths = std::move(*files);
  }
  return std::nullopt;
}

MaybeError RunCommand::checkFiles() const {
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

/// The first flag that was given and is not one of those.
static std::optional<std::string> otherFlag(const CLI::App &app,
                                            const std::vector<std::string> &names) {
  for (const CLI::Option *option : app.get_options())
    if (option->count() > 0 && std::ranges::find(names, option->get_name()) == names.end())
      return option->get_name();
  return std::nullopt;
}

int RunCommand::calibrate() {
  if (auto other = otherFlag(app, {"--calibrate", "--devices", "--threads"}))
    return fail(fmt::format("{} was given with --calibrate, which measures this machine and runs "
                            "no plan; leave one of them out",
                            *other));
  calibration.threadsPerDevice = std::max(train.threadsPerDevice, 1);
  try {
    MaybeError error =
        calibrateToFile(calibration, calibrationPath, createCpuBackend(), stdout, stderr);
    return error ? fail(error->message) : 0;
  } catch (const ThreadStartError &error) {
    return fail(error.what());
  }
}

/// Whether a signal has ended the run.
Expected<bool> RunCommand::doRun(std::FILE *out, std::FILE *notes) {
  Expected<std::shared_ptr<const Backend>> backend = openBackend(device);
  if (!backend)
    return backend.error();
  Expected<OpenFabric> network = chooseFabric(fabric, **backend, train.processes, notes);
  if (!network)
    return network.error();
  train.openFabric = std::move(*network);
  stopOnSignals();
  if (!generate.promptPaths.empty()) {
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
  if (MaybeError error = findFiles())
    return fail(error->message);
  if (MaybeError error = checkFiles())
    return fail(error->message);
  if (launchedProcesses() > 1)
    return runTogether();
  Expected<bool> interrupted = doRun(stdout, stderr);
  if (!interrupted)
    return fail(interrupted.error().message);
  return *interrupted ? interruptedStatus() : 0;
}

//===----------------------------------------------------------------------===//
// Several processes
//===----------------------------------------------------------------------===//

/// Whether all processes have the same command line and the same plan.
MaybeError RunCommand::checkSame() {
  std::string plan;
  std::ifstream file(train.planPath, std::ios::binary);
  plan.assign(std::istreambuf_iterator<char>(file), {});
  for (const auto &[what, value] :
       {std::pair("process 0 was given other flags than {}; give all the same",
                  app.config_to_str()),
        std::pair("process 0 has another plan than {}; give all the same file", plan)}) {
    Expected<std::string> others =
        train.processes.differing(fmt::format("{:x}", XXH3_64bits(value.data(), value.size())));
    if (!others)
      return others.error();
    if (!others->empty())
      return Error{fmt::format("{}: {}", train.planPath, fmt::format(fmt::runtime(what), *others))};
  }
  return std::nullopt;
}

int RunCommand::launch() {
  for (int64_t restarts = 0;; ++restarts) {
    Expected<LaunchedRun> run = launchProcesses(numProcesses, arguments);
    if (!run)
      return fail(run.error().message);
    if (!run->hasLostProcess() || restarts == maxRestarts)
      return run->status;
    printTo(stderr, "note: a process was lost; restart {} of {}, from the newest checkpoint\n",
            restarts + 1, maxRestarts);
    if (!isGiven("--resume") && restarts == 0)
      arguments.push_back("--resume");
  }
}

/// Takes what the devices are at, before they are woken; the result writes it.
std::function<void()> RunCommand::recordFlight(int64_t process, const RunEnd &end) const {
  if (flightPath.empty())
    return nullptr;
  return [path = flightPath, process, reason = end.reason, devices = train.watch->flight()] {
    if (MaybeError error = writeFlightRecord(path, process, hostName(), reason, devices))
      printTo(stderr, "note: {}\n", printable(error->message));
  };
}

int RunCommand::runTogether() {
  train.watch = std::make_shared<RunWatch>();
  auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  };
  control.heartbeatTimeout = milliseconds(heartbeatTimeout);
  Expected<std::unique_ptr<Launch>> started = Launch::start(
      control, milliseconds(startTimeout),
      {[watch = train.watch] { return watch->describe(); },
       [this](int64_t process, const RunEnd &end) { return recordFlight(process, end); }});
  if (!started)
    return fail(started.error().message);
  Launch &launch = **started;
  stopOnSignals(); // a launcher sends SIGTERM to those that are to say what has happened
  train.processes = launch.processes();
  const Processes &processes = train.processes;
  train.onHang = [&launch](const Error &error) { launch.fail(error); };
  train.outputIsTerminal = outputIsTerminal();
  std::FILE *nowhere = std::fopen("/dev/null", "w");
  std::FILE *out = processes.isFirst() ? stdout : nowhere;
  std::FILE *notes = processes.isFirst() ? stderr : nowhere;
  if (!nowhere)
    launch.fail(Error{"/dev/null cannot be written to"});
  if (processes.isFirst())
    fmt::print("{} processes, {} on this machine\n", processes.count(), processes.onHost());
  if (!processes.isFirst() && !train.tracePath.empty())
    train.tracePath.clear(); // the trace shows the devices of the first one
  int status = 0;
  if (MaybeError error = checkSame()) {
    launch.fail(*error);
  } else if (Expected<bool> interrupted = doRun(out, notes); !interrupted) {
    launch.fail(interrupted.error());
  } else if (*interrupted) {
    // Not each of them need have got the signal.
    status = interruptedStatus();
    if (auto all = processes.all(std::to_string(status)))
      for (const std::string &other : *all)
        status = std::max(status, std::atoi(other.c_str()));
  }
  std::fclose(nowhere);
  std::fflush(stdout);
  train.processes = {};
  return status;
}

int RunCommand::run() {
  if (listsDevices) {
    if (otherFlag(app, {"--list-devices"}))
      return fail("--list-devices runs nothing; give it alone");
    for (const std::string &line : listDevices())
      fmt::print("{}\n", line);
    return 0;
  }
  if (isGiven("--calibrate"))
    return calibrate();
  if (!isGiven("plan"))
    return fail("plan is required; see dtc-run --help");
  if (numProcesses > 1 && launchedProcesses() == 1)
    return launch();
  return runPlan();
}
