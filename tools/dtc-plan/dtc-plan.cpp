//===- dtc-plan.cpp - What is in a plan -----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanReader.h"
#include "runtime/report/PlanReport.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

using namespace dtc::runtime;

static int fail(const std::string &message) {
  fmt::print(stderr, "error: {}\n", message);
  return 1;
}

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

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) // --help, --version
      return app.exit(error);
    return fail(fmt::format("{}; see dtc-plan --help", error.what()));
  }
  return status;
}
