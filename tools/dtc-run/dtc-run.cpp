//===- dtc-run.cpp - Runs a plan -------------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "tools/CommandLine.h"
#include "tools/dtc-run/Launchers.h"
#include "tools/dtc-run/RunCommand.h"

#include <fmt/format.h>
#include <string>
#include <vector>

using namespace dtc;

static int runMain(int argc, char **argv) {
  endWithParent();
  CLI::App app{
      "Runs a plan of dtc-compile: trains the model, computes its outputs, or generates tokens. "
      "Or calibrates: measures this machine as a cluster.",
      "dtc-run"};
  app.set_version_flag("--version",
                       fmt::format("dtc-run {} (plan version {})", DTC_VERSION, dtc::kPlanVersion));
  RunCommand command(app, std::vector<std::string>(argv + 1, argv + argc));
  auto failed = [&](const std::string &message) { return command.failTogether(message); };
  if (auto status = parseCommandLine(app, argc, argv, failed))
    return *status;
  return command.run();
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
