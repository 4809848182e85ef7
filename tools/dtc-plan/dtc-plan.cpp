//===- dtc-plan.cpp - Inspects, verifies and simulates plans --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "tools/CommandLine.h"
#include "tools/dtc-plan/PlanCommand.h"

#include <fmt/format.h>

using namespace dtc;

static int runMain(int argc, char **argv) {
  CLI::App app{"Inspects, verifies and simulates plans of dtc-compile.", "dtc-plan"};
  app.set_version_flag("--version",
                       fmt::format("dtc-plan {} (plan version {})", DTC_VERSION, kPlanVersion));
  PlanCommand command(app);
  if (auto error = command.check(argc, argv))
    return fail(error->message);
  if (auto ended = parseCommandLine(app, argc, argv))
    return *ended;
  return command.status;
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
