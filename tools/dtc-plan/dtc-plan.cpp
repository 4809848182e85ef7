//===- dtc-plan.cpp - What is in a plan -----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanReader.h"
#include "runtime/plan/PlanTypes.h"
#include "runtime/report/ExplanationReport.h"
#include "runtime/report/PlanReport.h"
#include "runtime/report/PlanSimulation.h"
#include "runtime/report/ProofReport.h"
#include "runtime/report/TimelineReport.h"
#include "runtime/report/TimelineSvg.h"
#include "runtime/support/AtomicFile.h"
#include "tools/CommandLine.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
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
};
} // namespace

static int print(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return fail(std::string("cannot write the standard output: ") + std::strerror(errno));
  return 0;
}

static MaybeError writeText(const std::string &path, const std::string &text) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (MaybeError error = file->write(text))
    return error;
  return file->commit();
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

static int show(const Arguments &args) {
  Expected<std::shared_ptr<const dtc::plan::Plan>> plan = readEntry(args);
  if (!plan)
    return fail(plan.error().message);
  std::optional<Timeline> timeline;
  if (args.schedule || !args.scheduleSvg.empty()) {
    Expected<Timeline> simulated = simulatePlan(**plan);
    if (!simulated)
      return fail(args.path + ": " + simulated.error().message);
    timeline = std::move(*simulated);
  }
  if (!args.scheduleSvg.empty())
    if (MaybeError error = writeText(args.scheduleSvg, timelineToSvg(*timeline)))
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

/// How many letters must be added, removed or replaced to make one word the other.
static size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// CLI11 would only count the arguments that it did not expect.
static std::string checkSubcommand(const CLI::App &app, const std::string &word) {
  std::vector<std::string> names;
  std::string guess;
  for (const CLI::App *subcommand : app.get_subcommands({})) {
    names.push_back(subcommand->get_name());
    // More than two letters off is another word.
    if (word.size() < 32 && editDistance(word, names.back()) <= 2)
      guess = names.back();
  }
  if (std::find(names.begin(), names.end(), word) != names.end())
    return "";
  std::string text = fmt::format("there is no subcommand \"{}\"", word);
  if (word.ends_with(".plan"))
    text += fmt::format("; did you mean dtc-plan show {}? The", word);
  else if (!guess.empty())
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
    subcommand->final_callback([&args, &status, run] { status = run(args); });
    return subcommand;
  };
  CLI::App *showCommand = addSubcommand(
      "show", "Print the mesh, the memory, the operations, the traffic and the schedule", show);
  CLI::Option *schedule = showCommand->add_flag(
      "--schedule", args.schedule,
      "Draw who would work when instead, by the plan's own estimates; JSON has both");
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

  for (CLI::App *subcommand : {showCommand, explainCommand})
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
