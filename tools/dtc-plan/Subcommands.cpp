//===- Subcommands.cpp - Subcommands of dtc-plan --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-plan/Subcommands.h"

#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "report/GpuMemoryReport.h"
#include "report/PlanReport.h"
#include "report/SimulationReport.h"
#include "report/SimulationTrace.h"
#include "report/TimelineSvg.h"
#include "report/VerifierReport.h"
#include "report/html/SimulationPage.h"
#include "runtime/checkpoint/CheckpointListing.h"
#include "simulator/PlanSimulation.h"
#include "simulator/cluster/ClusterReader.h"
#include "support/AtomicFile.h"
#include "support/CommandFiles.h"
#include "support/Printable.h"
#include "tools/CommandLine.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <optional>
#include <utility>

using namespace dtc;

static int print(const std::string &foreign) {
  std::string text = printableLines(foreign);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return fail(std::string("cannot write the standard output: ") + std::strerror(errno));
  return 0;
}

static MaybeError checkFiles(const PlanArguments &args) {
  CommandFiles files;
  files.reads("the plan", args.path);
  files.reads("--cluster", args.cluster);
  files.writes("--schedule-svg", args.scheduleSvg);
  files.writes("--trace", args.trace);
  files.writesInto("--report", args.report, kPageFileName);
  return files.check();
}

/// The plan, or the entry point of it that was asked for.
static Expected<std::shared_ptr<const dtc::plan::Plan>> readEntry(const PlanArguments &args) {
  auto plan = readPlan(args.path);
  if (!plan)
    return plan;
  const dtc::plan::Plan *entry = findEntryPoint(**plan, args.entry);
  if (entry)
    return std::shared_ptr<const dtc::plan::Plan>(*plan, entry);
  std::vector<std::string> names;
  for (const dtc::plan::Plan &entryPoint : (*plan)->entry_points())
    names.push_back(entryPoint.entry());
  return Error{fmt::format("--entry: {} has no entry point \"{}\"; beside its own it has {}",
                           args.path, args.entry,
                           names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")))};
}

/// The cluster of --cluster, with as many devices as --devices asks for.
static Expected<cluster::Cluster> readGivenCluster(const PlanArguments &args) {
  Expected<cluster::Cluster> cluster = readCluster(args.cluster);
  if (!cluster)
    return cluster.error().inContext("--cluster");
  if (MaybeError error = extendCluster(*cluster, args.devices))
    return error->inContext("--devices");
  return cluster;
}

/// Who works when: on the cluster, or without one by the plan's own estimates.
static Expected<Timeline> drawnTimeline(const dtc::plan::Plan &plan, const PlanArguments &args) {
  if (args.cluster.empty()) {
    Expected<Timeline> timeline = simulatePlan(plan);
    if (!timeline)
      return timeline.error().inContext(args.path);
    return timeline;
  }
  Expected<cluster::Cluster> cluster = readGivenCluster(args);
  if (!cluster)
    return cluster.error();
  Expected<Simulation> simulation = simulateOnCluster(plan, *cluster);
  if (!simulation)
    return simulation.error().inContext(args.path + " on " + args.cluster);
  return std::move(simulation->step.timeline);
}

int dtc::showPlan(const PlanArguments &args) {
  if (MaybeError error = checkFiles(args))
    return fail(error->message);
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
  if (args.schedule && !args.json)
    return print(formatTimeline(*timeline, args.width));
  if (args.gpus)
    return print(formatGpuMemory(**plan, {.most = args.ncclChannels}));
  PlanSummary summary = summarizePlan(**plan);
  const auto &programs = (*plan)->programs();
  PlanPeak peak =
      findPlanPeak(**plan, programs.Get(static_cast<int>(summary.largestProgram)), /*most=*/10);
  return print(args.json ? summaryToJson(summary, args.schedule ? &*timeline : nullptr, &peak)
                         : formatSummary(summary, &peak));
}

int dtc::verifyPlan(const PlanArguments &args) {
  if (MaybeError error = checkFiles(args))
    return fail(error->message);
  VerifierResult facts;
  auto plan = readPlan(args.path, &facts);
  if (!plan)
    return fail(plan.error().message);
  if (mayRepeatLoop(**plan))
    if (MaybeError error = findPlanError(**plan, /*repeatsLoop=*/true))
      return fail(
          fmt::format("{}: can be run, but not with dtc-run --accumulate, which repeats the "
                      "loop over microbatches: {}",
                      args.path, error->message));
  return print(args.json ? verifierResultToJson(facts) : formatVerifierResult(facts));
}

int dtc::explainPlan(const PlanArguments &args) {
  if (MaybeError error = checkFiles(args))
    return fail(error->message);
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

int dtc::simulatePlan(const PlanArguments &args) {
  if (MaybeError error = checkFiles(args))
    return fail(error->message);
  Expected<cluster::Cluster> cluster = readGivenCluster(args);
  if (!cluster)
    return fail(cluster.error().message);
  Expected<std::shared_ptr<const dtc::plan::Plan>> plan = readEntry(args);
  if (!plan)
    return fail(plan.error().message);
  SimulationOptions options;
  options.tokens = args.tokens;
  options.keepCollectives = !args.trace.empty() || !args.report.empty();
  Expected<Simulation> simulation = simulateOnCluster(**plan, *cluster, options);
  if (!simulation)
    return fail(args.path + " on " + args.cluster + ": " + simulation.error().message);
  if (args.tokens > 0 && simulation->tokens == 0)
    return fail(fmt::format("--tokens: {} has no input of tokens, so that there is no telling how "
                            "many steps {:g} tokens take; leave --tokens out",
                            args.path, args.tokens));
  if (args.outerEvery > 0) {
    Expected<OuterRound> round =
        simulateOuterRound(**plan, *cluster, args.outerEvery, simulation->stepSeconds);
    if (!round)
      return fail("--outer-every: " + round.error().message);
    simulation->outerRound = *round;
  }
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

int dtc::showCheckpoints(const PlanArguments &args) {
  Expected<std::string> listing = runtime::listCheckpoints(args.path, args.json);
  return listing ? print(*listing) : fail(listing.error().message);
}
