//===- dtc-plan.cpp - What is in a plan -----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "report/ExplanationReport.h"
#include "report/PlanReport.h"
#include "report/ProofReport.h"
#include "report/SimulationReport.h"
#include "report/SimulationTrace.h"
#include "report/TimelineReport.h"
#include "report/TimelineSvg.h"
#include "report/html/SimulationPage.h"
#include "runtime/checkpoint/CheckpointListing.h"
#include "simulator/PlanSimulation.h"
#include "simulator/cluster/ClusterReader.h"
#include "support/AtomicFile.h"
#include "support/CommandFiles.h"
#include "support/NearestName.h"
#include "support/Printable.h"
#include "tools/CommandLine.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

using namespace dtc;
using namespace dtc::runtime;

namespace {
struct Arguments {
  std::string path;
  bool json = false;
  bool schedule = false;
  std::string scheduleSvg;
  size_t width = defaultTimelineColumns;
  std::vector<std::string> links;
  size_t top = defaultExplainedGroups;
  std::string entry; // empty: the plan's own
  std::string cluster;
  int64_t devices = 0;
  double tokens = 0;
  std::string trace;
  std::string report;
};
} // namespace

static int print(const std::string &foreign) {
  std::string text = printableLines(foreign);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return fail(std::string("cannot write the standard output: ") + std::strerror(errno));
  return 0;
}

static MaybeError checkFiles(const Arguments &args) {
  CommandFiles files;
  files.reads("the plan", args.path);
  files.reads("--cluster", args.cluster);
  files.writes("--schedule-svg", args.scheduleSvg);
  files.writes("--trace", args.trace);
  files.writesInto("--report", args.report, pageFileName);
  return files.check();
}

/// The plan, or the entry point of it that was asked for.
static Expected<std::shared_ptr<const dtc::plan::Plan>> readEntry(const Arguments &args) {
  auto plan = readPlan(args.path);
  if (!plan)
    return plan;
  const dtc::plan::Plan *entry = findEntryPoint(**plan, args.entry);
  if (entry)
    return std::shared_ptr<const dtc::plan::Plan>(*plan, entry);
  std::vector<std::string> names;
  for (const dtc::plan::Plan &companion : (*plan)->companions())
    names.push_back(companion.entry());
  return Error{fmt::format("--entry: {} has no entry point \"{}\"; beside its own it has {}",
                           args.path, args.entry,
                           names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")))};
}

/// The cluster of --cluster, with as many devices as --devices asks for.
static Expected<cluster::Cluster> readMachines(const Arguments &args) {
  Expected<cluster::Cluster> cluster = readCluster(args.cluster);
  if (!cluster)
    return cluster.error().inContext("--cluster");
  if (MaybeError error = extendCluster(*cluster, args.devices))
    return error->inContext("--devices");
  return cluster;
}

/// Who works when: on the cluster, or without one by the plan's own estimates.
static Expected<Timeline> drawnTimeline(const dtc::plan::Plan &plan, const Arguments &args) {
  if (args.cluster.empty()) {
    Expected<Timeline> timeline = simulatePlan(plan);
    if (!timeline)
      return timeline.error().inContext(args.path);
    return timeline;
  }
  Expected<cluster::Cluster> cluster = readMachines(args);
  if (!cluster)
    return cluster.error();
  Expected<Simulation> simulation = simulateOnCluster(plan, *cluster);
  if (!simulation)
    return simulation.error().inContext(args.path + " on " + args.cluster);
  return std::move(simulation->step.timeline);
}

static int show(const Arguments &args) {
  Expected<std::shared_ptr<const dtc::plan::Plan>> plan = readEntry(args);
  if (!plan)
    return fail(plan.error().message);
  std::optional<Timeline> timeline;
  if (args.schedule || !args.scheduleSvg.empty()) {
    Expected<Timeline> drawn = drawnTimeline(**plan, args);
    if (!drawn)
      return fail(drawn.error().message);
    timeline = std::move(*drawn);
  } else if (!args.cluster.empty()) {
    return fail("--cluster: nothing is simulated; give --schedule or --schedule-svg");
  }
  if (!args.scheduleSvg.empty())
    if (MaybeError error = writeTextFile(args.scheduleSvg, timelineToSvg(*timeline)))
      return fail("--schedule-svg: " + error->message);
  if (args.json)
    return print(summaryToJson(summarizePlan(**plan), args.schedule ? &*timeline : nullptr));
  return print(args.schedule ? formatTimeline(*timeline, args.width)
                             : formatSummary(summarizePlan(**plan)));
}

static int verify(const Arguments &args) {
  PlanFacts facts;
  if (auto plan = readPlan(args.path, &facts); !plan)
    return fail(plan.error().message);
  return print(args.json ? factsToJson(facts) : formatFacts(facts));
}

static int explain(const Arguments &args) {
  std::vector<NamedLink> links;
  for (const std::string &text : args.links) {
    Expected<NamedLink> link = parseNamedLink(text);
    if (!link)
      return fail("--link: " + link.error().message);
    links.push_back(*link);
  }
  Expected<std::shared_ptr<const dtc::plan::Plan>> plan = readEntry(args);
  if (!plan)
    return fail(plan.error().message);
  if (MaybeError error = checkLinks(**plan, links))
    return fail("--link: " + error->message);
  PlanExplanation explanation = explainPlan(**plan, links);
  return print(args.json ? explanationToJson(explanation)
                         : formatExplanation(explanation, args.top));
}

static int simulate(const Arguments &args) {
  Expected<cluster::Cluster> cluster = readMachines(args);
  if (!cluster)
    return fail(cluster.error().message);
  Expected<std::shared_ptr<const dtc::plan::Plan>> plan = readEntry(args);
  if (!plan)
    return fail(plan.error().message);
  ClusterSimulationOptions options;
  options.tokens = args.tokens;
  options.keepCollectives = !args.trace.empty() || !args.report.empty();
  Expected<Simulation> simulation = simulateOnCluster(**plan, *cluster, options);
  if (!simulation)
    return fail(args.path + " on " + args.cluster + ": " + simulation.error().message);
  if (args.tokens > 0 && simulation->tokens == 0)
    return fail(fmt::format("--tokens: {} has no input of tokens, so that there is no telling how "
                            "many steps {:g} tokens take; leave --tokens out",
                            args.path, args.tokens));
  if (!args.trace.empty())
    if (MaybeError error = writeTextFile(args.trace, simulationToTrace(**plan, *simulation)))
      return fail("--trace: " + error->message);
  if (!args.report.empty()) {
    Expected<std::string> page = simulationToHtml(**plan, *cluster, *simulation);
    if (!page)
      return fail("--report: " + page.error().message);
    if (MaybeError error = writePage(args.report, *page))
      return fail("--report: " + error->message);
  }
  return print(args.json ? simulationToJson(*simulation) : formatSimulation(*simulation));
}

/// CLI11 would only count the arguments that it did not expect.
static std::string checkSubcommand(const CLI::App &app, const std::string &word) {
  std::vector<std::string> names;
  for (const CLI::App *subcommand : app.get_subcommands({}))
    names.push_back(subcommand->get_name());
  if (std::find(names.begin(), names.end(), word) != names.end())
    return "";
  std::string text = fmt::format("there is no subcommand \"{}\"", word);
  if (word.ends_with(".plan"))
    text += fmt::format("; did you mean dtc-plan show {}? The", word);
  else if (std::string guess = nearestName(word, names); !guess.empty())
    text += fmt::format("; did you mean {}? The", guess);
  else
    text += "; the";
  return text + fmt::format(" subcommands are {}; see dtc-plan --help", fmt::join(names, ", "));
}

/// Of an unknown flag before the subcommand, CLI11 would say that the subcommand or its plan is
/// missing.
static std::string checkFlag(const CLI::App &app, const std::string &text) {
  std::string flag = text.substr(0, text.find('='));
  if (app.get_option_no_throw(flag))
    return "";
  return fmt::format("there is no option \"{}\" before the subcommand; see dtc-plan --help", flag);
}

static int runMain(int argc, char **argv) {
  CLI::App app{"Says what is in a plan of dtc-compile.", "dtc-plan"};
  app.set_version_flag("--version",
                       fmt::format("dtc-plan {} (plan version {})", DTC_VERSION, planVersion));
  app.require_subcommand(1);
  Arguments args;
  int status = 0;
  auto addSubcommand = [&](const char *name, const char *description,
                           int (*run)(const Arguments &)) {
    CLI::App *subcommand = app.add_subcommand(name, description);
    subcommand->add_option("plan", args.path, "The plan, as dtc-compile writes it")->required();
    subcommand->add_flag("--json", args.json, "Print one JSON object");
    subcommand->final_callback([&args, &status, run] {
      MaybeError error = checkFiles(args);
      status = error ? fail(error->message) : run(args);
    });
    return subcommand;
  };
  CLI::App *showCommand = addSubcommand(
      "show", "Print the mesh, the memory, the operations, the traffic and the schedule", show);
  CLI::Option *schedule = showCommand->add_flag(
      "--schedule", args.schedule,
      "Draw who would work when instead, on the cluster or else by the plan's own estimates; JSON "
      "has both");
  showCommand->add_option("--width", args.width, "The columns of the drawing; JSON has none")
      ->check(CLI::Range(fewestTimelineColumns, size_t{10000}))
      ->capture_default_str()
      ->needs(schedule)
      ->excludes(showCommand->get_option("--json"));
  showCommand->add_option("--schedule-svg", args.scheduleSvg,
                          "Write the same as a picture, an SVG file");
  addSubcommand("verify",
                "Prove that the plan can be run: that every value is there when it is read, that "
                "memory is enough, and that no device waits without end",
                verify);
  CLI::App *explainCommand = addSubcommand(
      "explain", "Print what each collective costs, why it is there and what would remove it",
      explain);
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
      "simulate",
      "Print what a step would take on a cluster, where its time goes, and what it costs",
      simulate);
  for (CLI::App *subcommand : {showCommand, simulateCommand}) {
    CLI::Option *cluster = subcommand->add_option(
        "--cluster", args.cluster,
        "The machines, as text or JSON; see docs/clusters.md and examples/clusters");
    cluster->required(subcommand == simulateCommand);
    subcommand
        ->add_option("--devices", args.devices,
                     "Take a cluster of one kind of node to have at least so many devices")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 31))
        ->needs(cluster);
  }
  simulateCommand
      ->add_option("--tokens", args.tokens, "Of a whole training, such as 300e9: its days and cost")
      ->check(CLI::Validator(
          [](const std::string &text) {
            double tokens = 0;
            // NaN is in no range. With more the cost is no finite number in the end.
            return CLI::detail::lexical_cast(text, tokens) && tokens >= 1 && tokens <= 1e18
                       ? std::string()
                       : fmt::format("found {}, expected a number from 1 to 1e18", text);
          },
          ""));
  simulateCommand->add_option("--trace", args.trace,
                              "Write the step as a trace for ui.perfetto.dev, a JSON file");
  simulateCommand
      ->add_option("--report", args.report,
                   "Write all of it as a page for browsers, index.html in this folder")
      ->check([](const std::string &folder) {
        return std::string(folder.empty() ? "expected the name of a folder" : "");
      });

  CLI::App *checkpointCommand = app.add_subcommand(
      "checkpoint",
      "Read all checkpoints of a folder and print their steps, tensors and bytes, and "
      "whether each is complete and undamaged");
  checkpointCommand->add_option("folder", args.path, "The folder of dtc-run --checkpoint")
      ->required();
  checkpointCommand->add_flag("--json", args.json, "Print one JSON object");
  checkpointCommand->final_callback([&] {
    Expected<std::string> listing = listCheckpoints(args.path, args.json);
    status = listing ? print(*listing) : fail(listing.error().message);
  });

  for (CLI::App *subcommand : {showCommand, explainCommand, simulateCommand})
    subcommand->add_option("--entry", args.entry,
                           "An entry point beside the plan's own, such as evaluate or decode");

  // Before the subcommand there are only flags.
  for (int i = 1; i < argc; ++i) {
    bool isFlag = argv[i][0] == '-';
    std::string problem = isFlag ? checkFlag(app, argv[i]) : checkSubcommand(app, argv[i]);
    if (!problem.empty())
      return fail(problem);
    if (!isFlag)
      break;
  }
  if (auto ended = parseCommandLine(app, argc, argv))
    return *ended;
  return status;
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
