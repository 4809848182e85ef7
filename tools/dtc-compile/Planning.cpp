//===- Planning.cpp - The flags of dtc-compile that choose the parallel form -===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-compile/Planning.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "support/NearestName.h"
#include "support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>

using namespace dtc;
using runtime::Error;
using runtime::Expected;

void dtc::addPlanningOptions(CLI::App &app, PlanningArguments &args) {
  app.add_option("--cluster", args.cluster,
                 "The machines, as text or JSON (docs/clusters.md); without --mesh or --strategy "
                 "the best parallel form for them is searched");
  app.add_option(
         "--devices", args.devices,
         "How many devices of the cluster to use, its first ones (default: all); a cluster of "
         "one kind of node gets more nodes if it has too few")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 31));
  app.add_option("--set", args.set,
                 "Fixes a knob of the search, such as pp=4 or zero=1: sizes of the axes dp, fsdp, "
                 "tp, pp; microbatches, zero, sequence_parallel, schedule, chunks, recompute, "
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
                 "A folder for a page about the plan on the cluster, index.html, to read in a "
                 "browser");
  app.add_option("--alternatives", args.alternatives, "How many of the next best to print")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 20))
      ->capture_default_str();
}

/// The flags that a strategy has fields for.
static constexpr const char *kStrategyFlags[] = {"--mesh",
                                                 "--shard",
                                                 "--microbatches",
                                                 "--accumulate",
                                                 "--zero",
                                                 "--zero-axes",
                                                 "--sequence-parallel",
                                                 "--bucket-bytes",
                                                 "--prefetch",
                                                 "--schedule",
                                                 "--chunks",
                                                 "--stages",
                                                 "--recompute",
                                                 "--memory-limit",
                                                 "--dtype",
                                                 "--grad-reduce-dtype",
                                                 "--link",
                                                 "--device-flops",
                                                 "--device-bandwidth"};

std::string dtc::checkPlanningFlags(const CLI::App &app, const PlanningArguments &args,
                                    const CompileOptions &options) {
  if (!args.strategy.empty())
    for (const char *flag : kStrategyFlags)
      if (app.count(flag) > 0)
        return fmt::format("{}: the strategy says it; change {} or leave the flag out", flag,
                           args.strategy);
  if (args.searches(options)) {
    if (options.mode == CompileOptions::Mode::Generate)
      return "--cluster: for generation nothing is searched; give --mesh";
    for (const char *flag : {"--zero-axes", "--stages", "--memory-limit", "--link"})
      if (app.count(flag) > 0)
        return fmt::format("{}: the search chooses the mesh that it would be for; give --mesh, or "
                           "leave it out",
                           flag);
    return "";
  }
  if (args.cluster.empty() && app.count("--report") > 0)
    return "--report: it is about a cluster; give --cluster";
  if (args.cluster.empty() && app.count("--devices") > 0)
    return "--devices: there is no cluster to take them of; give --cluster";
  for (const char *flag : {"--set", "--strategy-output", "--alternatives"})
    if (app.count(flag) > 0)
      return fmt::format("{}: nothing is searched; give --cluster, and neither --mesh nor "
                         "--strategy",
                         flag);
  return "";
}

/// Fixes one knob. Returns what is wrong, or an empty string.
static std::string setKnob(llvm::StringRef text, PlannerOptions &options) {
  auto [key, value] = text.split('=');
  std::string name = key.str();
  CompileOptions &base = options.base;
  if (options.fixed.contains(name) || options.axes.contains(name))
    return name + " is given twice";
  auto number = [&](int64_t &into, int64_t least, int64_t most) {
    int64_t parsed = 0;
    if (value.getAsInteger(10, parsed) || parsed < least || parsed > most)
      return fmt::format("{} is \"{}\", expected {} to {}", name, value.str(), least, most);
    into = parsed;
    options.fixed.insert(name);
    return std::string();
  };
  auto word = [&](std::string &into, std::vector<std::string> words) {
    if (!llvm::is_contained(words, value))
      return fmt::format("{} is \"{}\", expected one of {}", name, value.str(),
                         runtime::quoteNames(words));
    into = value.str();
    options.fixed.insert(name);
    return std::string();
  };
  std::vector<std::string> axes = {"dp", "fsdp", "tp", "pp"};
  if (llvm::is_contained(axes, name)) {
    int64_t size = 1;
    std::string problem = number(size, 1, int64_t(1) << 31);
    options.fixed.erase(name);
    options.axes[name] = size;
    return problem;
  }
  if (name == "microbatches")
    return number(base.microbatches, 1, int64_t(1) << 20);
  if (name == "zero")
    return number(base.zero, 0, 3);
  if (name == "chunks")
    return number(base.chunks, 1, 1 << 10);
  if (name == "bucket_bytes") {
    auto bytes = runtime::parseByteSize(value);
    if (!bytes)
      return "bucket_bytes: " + bytes.error().message;
    base.bucketBytes = int64_t(std::min<uint64_t>(*bytes, INT64_MAX));
    options.fixed.insert(name);
    return "";
  }
  if (name == "sequence_parallel") {
    std::string chosen;
    std::string problem = word(chosen, {"true", "false"});
    base.sequenceParallel = chosen == "true";
    return problem;
  }
  if (name == "schedule") {
    std::vector<std::string> names;
    for (const ScheduleRule &rule : getScheduleRules())
      names.push_back(rule.name.str());
    return word(base.schedule, names);
  }
  if (name == "recompute")
    return word(base.recompute, {"none", "selective", "full"});
  std::vector<std::string> knobs = {
      "dp",       "fsdp",   "tp",        "pp",          "microbatches", "zero", "sequence_parallel",
      "schedule", "chunks", "recompute", "bucket_bytes"};
  return fmt::format("there is no knob \"{}\"{}; the knobs are {}", name,
                     runtime::didYouMean(name, knobs), runtime::quoteNames(knobs));
}

Expected<PlannerOptions> dtc::readPlannerOptions(const CLI::App &app, const PlanningArguments &args,
                                                 const CompileOptions &options,
                                                 const cluster::Cluster &cluster) {
  PlannerOptions planner;
  planner.cluster = &cluster;
  planner.devices = args.devices;
  planner.base = options;
  const std::pair<const char *, const char *> flags[] = {
      {"--microbatches", "microbatches"},
      {"--zero", "zero"},
      {"--sequence-parallel", "sequence_parallel"},
      {"--schedule", "schedule"},
      {"--chunks", "chunks"},
      {"--recompute", "recompute"},
      {"--bucket-bytes", "bucket_bytes"}};
  for (auto [flag, knob] : flags)
    if (app.count(flag) > 0)
      planner.fixed.insert(knob);
  for (const std::string &text : args.set)
    if (std::string problem = setKnob(text, planner); !problem.empty())
      return Error{"--set: " + problem};
  return planner;
}
