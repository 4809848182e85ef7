//===- RunCommand.h - The command dtc-run ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_RUNCOMMAND_H
#define DTC_TOOLS_DTC_RUN_RUNCOMMAND_H

#include "runtime/calibrate/Calibration.h"
#include "runtime/control/ControlConnection.h"
#include "runtime/generate/GenerateRun.h"
#include "runtime/train/TrainOptions.h"
#include "tools/CommandLine.h"
#include "tools/dtc-run/Devices.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dtc {

class RunMembership;
struct ElasticPlan;

/// The task of dtc-run.
enum class RunKind : uint8_t { Train, Evaluate, Generate, Calibrate, Links, Placement, Devices };

/// The command line of dtc-run. Its first word names the task; without one it trains.
class RunCommand {
public:
  /// Adds the flags of `kind`, and no others; the command outlives the parsing of the command line.
  /// `arguments` are those of the program, as they were given.
  RunCommand(RunKind kind, CLI::App &app, std::vector<std::string> arguments);

  /// Does what the command line says; the status of the process.
  int run();
  /// The status after an error that was found before anything ran, maybe in all processes of a
  /// run: it is told once.
  int failTogether(const std::string &message);

private:
  void addCalibrateFlags();
  void addMeetingFlags();
  void addLaunchFlags();
  void addDivisionFlags();
  void addPlacementFlags();
  void addProcessFlags();
  int calibrate();
  MaybeError chooseElasticPlan();
  MaybeError findProcesses();
  int printPlacement();
  int checkLinks();
  /// Starts the processes, and starts them again where one was lost.
  int launch();
  MaybeError shrink(const std::vector<ElasticPlan> &plans, int64_t devices, int64_t lost);
  /// Alone, or as one of several processes.
  int runPlan();
  int runTogether();
  Expected<std::unique_ptr<RunMembership>> meetOthers();
  std::function<void()> recordFlight(int64_t process, const runtime::RunEnd &end) const;
  MaybeError checkSame();
  MaybeError checkCluster();
  Expected<bool> doRun(std::FILE *out, std::FILE *notes);
  MaybeError findFiles();
  MaybeError checkFiles() const;
  bool isGiven(const char *flag) const { return app.get_option(flag)->count() > 0; }

  RunKind kind;
  CLI::App &app;
  std::vector<std::string> arguments;
  runtime::TrainOptions train;
  runtime::GenerateOptions generate;
  runtime::CalibrationOptions calibration;
  std::string calibrationPath;
  DeviceSelection devices;
  int64_t numProcesses = 0;      // to start
  int64_t devicesPerProcess = 0; // 0: as many as there are
  int64_t processesPerHost = 0;  // that are thought of; 0: none are
  int64_t maxRestarts = 0;
  std::string elasticFolder;
  std::string network = "tcp"; // of the processes to start
  bool avoidsSharedMemory = false;
  std::string clusterPath; // empty: none is compared with the hosts
  runtime::ControlOptions control;
  double heartbeatTimeout = 10; // seconds
  double startTimeout = 60;     // seconds
  std::string flightPath;
};

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_RUNCOMMAND_H
