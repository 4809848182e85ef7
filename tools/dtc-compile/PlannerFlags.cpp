//===- PlannerFlags.cpp - The flags of dtc-compile that choose the parallel strategy -===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-compile/PlannerFlags.h"

#include "compiler/driver/OptionTable.h"

#include <fmt/format.h>

using namespace dtc;

void dtc::addPlannerOptions(CLI::App &app, PlannerArguments &args) {
  app.add_option("--cluster", args.cluster,
                 "The cluster, as text or JSON (docs/clusters.md); without --mesh or --strategy "
                 "the best parallel strategy for it is searched");
  app.add_option(
         "--devices", args.request.devices,
         "How many devices of the cluster to use, its first ones (default: all); a cluster of "
         "one kind of node gets more nodes if it has too few")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 31));
  app.add_option(
         "--set", args.request.set,
         "Fixes an option of the search, such as pp=4 or zero=1: sizes of the axes dp, fsdp, ep, "
         "cp, tp, pp; microbatches, zero, sequence_parallel, schedule, chunks, recompute, "
         "bucket_bytes")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--strategy", args.strategy,
                 "A strategy file, as a search writes it or by hand, instead of --mesh and the "
                 "flags of its fields");
  app.add_option("--strategy-output", args.strategyOutput,
                 "Where a search writes its strategy (default: the plan's name with "
                 ".strategy.textproto)");
  app.add_option("--report", args.report,
                 "A folder for the HTML report of the plan on the cluster: index.html");
  app.add_option("--alternatives", args.request.alternatives,
                 "The number of alternative strategies to print")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 20))
      ->capture_default_str();
}

std::set<std::string> dtc::findGivenOptions(const CLI::App &app) {
  std::set<std::string> names;
  for (const Option &option : getOptions())
    if (app.count(option.flag()) > 0)
      names.insert(option.name.str());
  return names;
}

MaybeError dtc::checkPlannerFlags(const CLI::App &app, const PlannerArguments &args,
                                  const CompileOptions &options) {
  if (!args.strategy.empty())
    for (const Option &option : getOptions())
      if (option.isStrategy && app.count(option.flag()) > 0)
        return Error{fmt::format("{}: the strategy says it; change {} or leave the flag out",
                                 option.flag(), args.strategy)};
  if (args.searches(options)) {
    SearchRequest request = args.request;
    request.given = findGivenOptions(app);
    return checkSearch(request, options);
  }
  if (args.cluster.empty() && app.count("--report") > 0)
    return Error{"--report: it is about a cluster; give --cluster"};
  if (args.cluster.empty() && app.count("--devices") > 0)
    return Error{"--devices: there is no cluster to take them of; give --cluster"};
  for (const char *flag : {"--set", "--strategy-output", "--alternatives"})
    if (app.count(flag) > 0)
      return Error{fmt::format("{}: nothing is searched; give --cluster, and neither --mesh nor "
                               "--strategy",
                               flag)};
  return std::nullopt;
}
