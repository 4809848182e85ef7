//===- dtc-plan.cpp - What is in a plan -----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanReader.h"
#include "runtime/report/PlanReport.h"
#include "tools/CommandLine.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>

using namespace dtc;
using namespace dtc::runtime;

namespace {
struct ShowArguments {
  std::string path;
  bool json = false;
};
} // namespace

static int show(const ShowArguments &args) {
  Expected<std::shared_ptr<const dtc::plan::Plan>> plan = readPlan(args.path);
  if (!plan)
    return fail(plan.error().message);
  PlanSummary summary = summarizePlan(**plan);
  fmt::print("{}", args.json ? summaryToJson(summary) : formatSummary(summary));
  if (std::fflush(stdout) != 0)
    return fail(std::string("cannot write the standard output: ") + std::strerror(errno));
  return 0;
}

int main(int argc, char **argv) {
  CLI::App app{"Says what is in a plan of dtc-compile.", "dtc-plan"};
  app.set_version_flag("--version",
                       fmt::format("dtc-plan {} (plan version {})", DTC_VERSION, planVersion));
  app.require_subcommand(1);
  int status = 0;

  ShowArguments showArguments;
  CLI::App *showCommand = app.add_subcommand(
      "show", "Print the mesh, the memory, the operations, the traffic and the schedule");
  showCommand->add_option("plan", showArguments.path, "The plan, as dtc-compile writes it")
      ->required();
  showCommand->add_flag("--json", showArguments.json, "Print one JSON object");
  showCommand->final_callback([&] { status = show(showArguments); });

  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  return status;
}
