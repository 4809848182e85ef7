//===- PlannerFlags.cpp - The flags of dtc-compile that choose the parallel strategy -===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-compile/PlannerFlags.h"

#include "compiler/driver/OptionTable.h"
#include "support/NearestName.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>

using namespace dtc;

void dtc::addPlannerOptions(CLI::App &app, PlannerArguments &args) {
  app.add_option("--cluster", args.cluster,
                 "The cluster, as text or JSON (docs/clusters.md); without --mesh or --strategy "
                 "the best parallel strategy for it is searched");
  app.add_option(
         "--devices", args.devices,
         "How many devices of the cluster to use, its first ones (default: all); a cluster of "
         "one kind of node gets more nodes if it has too few")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 31));
  app.add_option(
         "--set", args.set,
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
  app.add_option("--alternatives", args.alternatives,
                 "The number of alternative strategies to print")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 20))
      ->capture_default_str();
}

MaybeError dtc::checkPlannerFlags(const CLI::App &app, const PlannerArguments &args,
                                  const CompileOptions &options) {
  if (!args.strategy.empty())
    for (const Option &option : getOptions())
      if (option.isStrategy && app.count(option.flag()) > 0)
        return Error{fmt::format("{}: the strategy says it; change {} or leave the flag out",
                                 option.flag(), args.strategy)};
  if (args.searches(options)) {
    if (options.mode == CompileMode::Generate)
      return Error{"--cluster: for generation nothing is searched; give --mesh"};
    for (const Option &option : getOptions())
      if (option.needsMesh && app.count(option.flag()) > 0)
        return Error{
            fmt::format("{}: the search chooses the mesh that it would be for; give --mesh, or "
                        "leave it out",
                        option.flag())};
    return std::nullopt;
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

/// The axes whose sizes can be fixed.
static constexpr const char *kSearchedAxes[] = {"dp", "fsdp", "ep", "cp", "tp", "pp"};

/// Fixes the size of an axis or an option.
static MaybeError setFixedOption(llvm::StringRef text, PlannerOptions &options) {
  auto [key, value] = text.split('=');
  std::string name = key.str();
  if (options.fixed.contains(name) || options.axes.contains(name))
    return Error{name + " is given twice"};
  if (llvm::is_contained(kSearchedAxes, name)) {
    constexpr int64_t most = int64_t(1) << 31;
    int64_t size = 0;
    if (value.getAsInteger(10, size) || size < 1 || size > most)
      return Error{fmt::format("{} is \"{}\", expected 1 to {}", name, value.str(), most)};
    options.axes[name] = size;
    return std::nullopt;
  }
  const Option *option = findOption(name);
  if (!option || !option->isSearched) {
    std::vector<std::string> names(std::begin(kSearchedAxes), std::end(kSearchedAxes));
    for (const Option &each : getOptions())
      if (each.isSearched)
        names.push_back(each.name.str());
    return Error{fmt::format("there is no searched option \"{}\"{}; the searched options are {}",
                             name, didYouMean(name, names), quoteNames(names))};
  }
  if (auto error = setOption(*option, value, options.base, OptionSpelling::Field, /*isFixed=*/true))
    return error;
  options.fixed.insert(name);
  return std::nullopt;
}

Expected<PlannerOptions> dtc::readPlannerOptions(const CLI::App &app, const PlannerArguments &args,
                                                 const CompileOptions &options,
                                                 const cluster::Cluster &cluster) {
  PlannerOptions planner;
  planner.cluster = &cluster;
  planner.devices = args.devices;
  planner.base = options;
  for (const Option &option : getOptions())
    if (option.isSearched && app.count(option.flag()) > 0)
      planner.fixed.insert(option.name.str());
  for (const std::string &text : args.set)
    if (MaybeError error = setFixedOption(text, planner))
      return error->inContext("--set");
  return planner;
}
