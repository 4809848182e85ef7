//===- RunCommand.h - What dtc-run does ------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_RUNCOMMAND_H
#define DTC_TOOLS_DTC_RUN_RUNCOMMAND_H

#include "runtime/calibrate/Calibration.h"
#include "runtime/generate/GenerateRun.h"
#include "runtime/train/TrainOptions.h"
#include "tools/CommandLine.h"

#include <string>

namespace dtc {

/// Runs a plan, measures the machine, or lists devices.
class RunCommand {
public:
  /// Adds the flags; the command outlives the parsing of the command line.
  explicit RunCommand(CLI::App &app);

  /// Does what the flags say; the status of the process.
  int run();

private:
  int calibrate();
  int runPlan();
  runtime::MaybeError findFiles();
  runtime::MaybeError checkFiles() const;
  bool isGiven(const char *flag) const { return app.get_option(flag)->count() > 0; }

  CLI::App &app;
  runtime::TrainOptions train;
  runtime::GenerateOptions generate;
  runtime::CalibrationOptions calibration;
  std::string calibrationPath;
  std::string device = "cpu";
  bool listsDevices = false;
};

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_RUNCOMMAND_H
