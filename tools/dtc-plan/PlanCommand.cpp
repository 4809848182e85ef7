//===- PlanCommand.cpp - The subcommands and flags of dtc-plan -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-plan/PlanCommand.h"

#include "report/PlanExplanation.h"
#include "report/TimelineReport.h"
#include "support/NearestName.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

using namespace dtc;

/// CLI11 would only count the arguments that it did not expect.
MaybeError PlanCommand::checkSubcommand(const std::string &word) const {
  std::vector<std::string> names;
  for (const CLI::App *subcommand : app.get_subcommands({}))
    names.push_back(subcommand->get_name());
  if (std::find(names.begin(), names.end(), word) != names.end())
    return std::nullopt;
  std::string text = fmt::format("there is no subcommand \"{}\"", word);
  if (word.ends_with(".plan"))
    text += fmt::format("; did you mean dtc-plan show {}? The", word);
  else if (std::string guess = nearestName(word, names); !guess.empty())
    text += fmt::format("; did you mean {}? The", guess);
  else
    text += "; the";
  return Error{text +
               fmt::format(" subcommands are {}; see dtc-plan --help", fmt::join(names, ", "))};
}

/// Of an unknown flag before the subcommand, CLI11 would say that the subcommand or its plan is
/// missing.
MaybeError PlanCommand::checkFlag(const std::string &text) const {
  std::string flag = text.substr(0, text.find('='));
  if (app.get_option_no_throw(flag))
    return std::nullopt;
  std::string meant = didYouMean(flag, flagsOf(app));
  return Error{fmt::format("there is no option \"{}\" before the subcommand{} dtc-plan --help",
                           flag, meant.empty() ? "; see" : meant + " See")};
}

MaybeError PlanCommand::check(int argc, char **argv) const {
  // Before the subcommand there are only flags.
  for (int i = 1; i < argc; ++i) {
    bool isFlag = argv[i][0] == '-';
    MaybeError error = isFlag ? checkFlag(argv[i]) : checkSubcommand(argv[i]);
    if (error || !isFlag)
      return error;
  }
  return std::nullopt;
}

/// The flags of `simulate` alone.
static void addSimulationFlags(CLI::App &app, PlanArguments &args) {
  app.add_option("--tokens", args.tokens, "Of a whole training, such as 300e9: its days and cost")
      // With more the cost is no finite number in the end.
      ->check(numberBetween(1.0, 1e18, "a number from 1 to 1e18"));
  app.add_option("--outer-every", args.outerEvery,
                 "Simulate a round of this many steps too, with the outer steps of the plan")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31));
  app.add_option("--trace", args.trace,
                 "Write the step as a trace for ui.perfetto.dev, a JSON file");
  app.add_option("--report", args.report,
                 "Write all of it as an HTML report, index.html in this folder");
}

/// The flags of `show` alone.
static void addShowFlags(CLI::App &show, PlanArguments &args) {
  CLI::Option *schedule = show.add_flag(
      "--schedule", args.schedule,
      "Draw the schedule instead, simulated on the cluster or else with the estimates of the plan; "
      "JSON has both");
  show.add_option("--width", args.width, "The columns of the drawing; JSON has none")
      ->check(CLI::Range(kFewestTimelineColumns, size_t{10000}))
      ->capture_default_str()
      ->needs(schedule)
      ->excludes(show.get_option("--json"));
  CLI::Option *gpus =
      show.add_flag("--gpus", args.gpus,
                    "Print what a run takes of a GPU instead: the plan, libraries, and what NCCL "
                    "takes by an estimate, where each device has a GPU of one machine")
          ->excludes(schedule)
          ->excludes(show.get_option("--json"));
  show.add_option("--nccl-channels", args.ncclChannels,
                  "The most channels of each communicator, as dtc-run has it")
      ->check(CLI::Range(int64_t{1}, NcclChannels::kMost))
      ->capture_default_str()
      ->needs(gpus);
  show.add_option("--schedule-svg", args.scheduleSvg, "Write the schedule as an SVG figure");
}

PlanCommand::PlanCommand(CLI::App &app) : app(app) {
  app.require_subcommand(1);
  auto addSubcommand = [&](const char *name, const char *description,
                           int (*run)(const PlanArguments &)) {
    CLI::App *subcommand = app.add_subcommand(name, description);
    subcommand->add_option("plan", args.path, "The plan, as dtc-compile writes it")->required();
    subcommand->add_flag("--json", args.json, "Print one JSON object");
    subcommand->final_callback([this, run] { status = run(args); });
    return subcommand;
  };
  CLI::App *showCommand = addSubcommand(
      "show", "Print the mesh, the memory, the operations, the traffic and the schedule", showPlan);
  addShowFlags(*showCommand, args);
  addSubcommand("verify",
                "Prove that the plan can be run: that every value is there when it is read, that "
                "memory is enough, and that no device waits without end",
                verifyPlan);
  CLI::App *explainCommand = addSubcommand(
      "explain", "Print what each collective costs, why it is there and what would remove it",
      explainPlan);
  explainCommand
      ->add_option("--top", args.top,
                   "How many rows to print, the most expensive ones; JSON has all")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 32))
      ->capture_default_str();
  explainCommand
      ->add_option("--link", args.links,
                   "What the links of a mesh axis do, such as dp=25GB/s,10us; once for each axis "
                   "(default: as the plan says, or else " +
                       formatLinkSpeed(kAssumedLink) + ")")
      ->allow_extra_args(false);

  CLI::App *simulateCommand = addSubcommand(
      "simulate", "Simulate a step on a cluster: time by cause, memory, energy and cost",
      simulatePlan);
  for (CLI::App *subcommand : {showCommand, simulateCommand}) {
    CLI::Option *cluster = subcommand->add_option(
        "--cluster", args.cluster,
        "The cluster, as text or JSON; see docs/clusters.md and examples/clusters");
    cluster->required(subcommand == simulateCommand);
    subcommand
        ->add_option(
            "--devices", args.devices,
            "The least number of devices that a cluster of one kind of node is taken to have")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 31))
        ->needs(cluster);
  }
  addSimulationFlags(*simulateCommand, args);

  CLI::App *checkpointCommand = app.add_subcommand(
      "checkpoint",
      "Read all checkpoints of a folder and print their steps, tensors and bytes, and "
      "whether each is complete and undamaged");
  checkpointCommand->add_option("folder", args.path, "The folder of dtc-run --checkpoint")
      ->required();
  checkpointCommand->add_flag("--json", args.json, "Print one JSON object");
  checkpointCommand->final_callback([this] { status = showCheckpoints(args); });

  for (CLI::App *subcommand : {showCommand, explainCommand, simulateCommand})
    subcommand->add_option("--entry", args.entry,
                           "A further entry point, such as evaluate or decode");
}
