//===- PlannerReport.cpp - Report of the planner's search -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/PlannerReport.h"

#include "compiler/driver/OffloadOption.h"
#include "compiler/driver/OptionTable.h"
#include "compiler/planner/Strategy.h"
#include "report/SimulationReport.h"
#include "support/Format.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>
#include <vector>

using namespace dtc;

namespace {
/// A part of a step's time, with its name.
using Part = std::pair<std::string, double>;
} // namespace

/// The parts of a strategy's time; by the simulation if both have one, so that like is compared
/// with like.
static std::vector<Part> partsOf(const EstimatedStrategy &entry, bool simulated) {
  if (!simulated) {
    const StepEstimate &estimate = entry.estimate;
    return {{"computing", estimate.computing},
            {"bubble", estimate.bubble},
            {"exposed collectives over the data axes", estimate.data},
            {"exposed transfers", estimate.transfers},
            {"update", estimate.update}};
  }
  const Simulation &simulation = *entry.simulation;
  std::vector<Part> parts = {{"idle (bubble)", simulation.idle},
                             {"exposed transfers", simulation.exposedTransfers},
                             {"exposed work of the host", simulation.exposedHost}};
  for (size_t c = 0; c < kNumKernelClasses; ++c)
    parts.emplace_back(fmt::format("{} kernels", name(static_cast<KernelClass>(c))),
                       simulation.kernels[c]);
  for (const AxesSeconds &exposed : simulation.exposed)
    parts.emplace_back("exposed collectives over " + exposed.axes, exposed.seconds);
  return parts;
}

std::string dtc::explainSlower(const EstimatedStrategy &entry, const EstimatedStrategy &best) {
  if (!entry.fits)
    return "does not fit: needs " + formatBytes(uint64_t(entry.neededBytes()));
  bool simulated = entry.simulation && best.simulation;
  std::vector<Part> own = partsOf(entry, simulated), others = partsOf(best, simulated);
  for (Part &part : own)
    for (const Part &other : others)
      if (other.first == part.first)
        part.second -= other.second;
  llvm::stable_sort(own, [](const Part &a, const Part &b) { return a.second > b.second; });
  double base = best.seconds();
  std::string text;
  for (const Part &part : llvm::ArrayRef(own).take_front(2))
    if (base > 0 && part.second > 0.001 * base)
      text += fmt::format("{}{} +{:.1f} %", text.empty() ? "" : ", ", part.first,
                          100 * part.second / base);
  if (entry.strategy.recompute != best.strategy.recompute &&
      entry.strategy.recompute != Recompute::None)
    text += fmt::format("{}recomputes ({})", text.empty() ? "" : "; ",
                        wordOf(entry.strategy.recompute));
  return text.empty() ? "about the same" : text;
}

/// "zero=1": a option that is fixed, as --set takes it.
static std::string describeFixedOption(const std::string &option, const CompileOptions &base) {
  return option + "=" + formatOption(*findOption(option), base);
}

std::string dtc::explainNoStrategy(const PlannerOptions &options, const ModelProperties &traits) {
  int64_t devices = usedDevices(*options.cluster, options.devices);
  std::string asked, enough;
  auto add = [](std::string &list, const std::string &word) {
    list += (list.empty() ? "" : ", ") + word;
  };
  // A fixed option without which there are strategies is one too many.
  auto consider = [&](const std::string &text, const PlannerOptions &without) {
    add(asked, text);
    if (!enumerateStrategies(without, traits).empty())
      add(enough, text);
  };
  for (const auto &[axis, size] : options.axes) {
    PlannerOptions without = options;
    without.axes.erase(axis);
    consider(fmt::format("{}={}", axis, size), without);
  }
  for (const std::string &option : options.fixed) {
    PlannerOptions without = options;
    without.fixed.erase(option);
    consider(describeFixedOption(option, options.base), without);
  }
  std::string text = fmt::format("no strategy{} divides {} devices and a batch of {} samples",
                                 asked.empty() ? "" : " with " + asked, devices, traits.batch);
  if (traits.mixesSamples)
    text +=
        "; the model mixes samples, as a batch norm does, so that it takes neither microbatches "
        "nor a pipeline";
  if (!enough.empty())
    return text + fmt::format("; leave out {}{}", enough.find(',') != enough.npos ? "one of " : "",
                              enough);
  auto has = [&](int64_t otherDevices, int64_t batch) {
    PlannerOptions other = options;
    other.devices = otherDevices;
    ModelProperties otherTraits = traits;
    otherTraits.batch = batch;
    return !enumerateStrategies(other, otherTraits).empty();
  };
  std::string changes;
  for (int64_t fewer = devices - 1; fewer > 0 && fewer >= devices - 64; --fewer)
    if (has(fewer, traits.batch)) {
      add(changes, fmt::format("{}{}{}", spell("devices", options.spelling),
                               options.spelling == OptionSpelling::Flag ? ' ' : '=', fewer));
      break;
    }
  for (int64_t batch = traits.batch + 1; batch <= traits.batch + std::min<int64_t>(devices, 64);
       ++batch)
    if (has(devices, batch)) {
      changes += fmt::format("{}a batch of {}", changes.empty() ? "" : " or ", batch);
      break;
    }
  return text + (changes.empty()
                     ? std::string("; choose other numbers of both, or fix fewer options")
                     : "; there are some with " + changes);
}

static std::string describe(const ParallelStrategy &strategy, const PlannerOptions &options) {
  std::string text = describeStrategy(strategy.toOptions(options.base));
  if (!strategy.stageLayers.empty())
    text += fmt::format(" layers={}", fmt::join(strategy.stageLayers, "|"));
  return text;
}

std::string dtc::explainFailure(const FailedStrategy &failed, const PlannerOptions &options) {
  return fmt::format("the first error, of {}, is: {}\ncompile the model for one device (without "
                     "{}) or with that strategy ({}) to see all diagnostics",
                     describe(failed.strategy, options), failed.reason,
                     options.spelling == OptionSpelling::Flag ? "--cluster" : "mesh",
                     spell("mesh", options.spelling));
}

/// The options of all that `choice` has.
static PlannerOptions searchedOptions(const PlannerResult &choice, PlannerOptions options) {
  options.base.offload = choice.offload;
  return options;
}

static std::string formatNothing(const PlannerResult &choice, const PlannerOptions &options) {
  std::string text = fmt::format(
      "no strategy fits: {} strategies were considered, a device has {} that a plan may use\n",
      choice.progress.strategies, formatBytes(uint64_t(choice.memoryBytes)));
  // The strategies that should fit by their estimates failed.
  if (choice.failed && (!choice.closest || choice.progress.simulated == 0))
    return "none of the best strategies compiles or can be simulated; " +
           explainFailure(*choice.failed, options) + "\n";
  if (!choice.closest)
    return text;
  const EstimatedStrategy &closest = *choice.closest;
  double bytes = closest.neededBytes();
  text += fmt::format("the closest is {}, which needs {} {}: {} too much\n",
                      describe(closest.strategy, options), formatBytes(uint64_t(bytes)),
                      closest.isOfHost ? "of the memory of a node's host" : "a device",
                      formatBytes(uint64_t(bytes - closest.usableBytes())));
  if (closest.isOfHost)
    return text + fmt::format("use hosts with {:.1f} times the memory, or more nodes\n",
                              closest.memoryShare());
  return text + fmt::format("use devices with {:.1f} times the memory, or more of them, or a "
                            "smaller batch or shorter sequences\n",
                            closest.memoryShare());
}

std::string dtc::formatChoice(const PlannerResult &choice, const PlannerOptions &given,
                              size_t alternatives) {
  const PlannerOptions options = searchedOptions(choice, given);
  if (choice.best.empty())
    return formatNothing(choice, options);
  const EstimatedStrategy &best = choice.best.front();
  const PlannerProgress &progress = choice.progress;
  std::string text =
      fmt::format("{} strategies estimated from {} probes, {} compiled and simulated\n",
                  progress.estimated, progress.probes, progress.simulated);
  text += fmt::format("chosen: {}\n", describe(best.strategy, options));
  text += fmt::format("  {} a step, {} of {} a device\n", formatDuration(best.seconds()),
                      formatBytes(uint64_t(best.arenaBytes)),
                      formatBytes(uint64_t(best.usableBytes())));
  for (const StageSimulation &stage : best.simulation->stages)
    if (stage.hostArenaBytes > 0) {
      text += fmt::format(
          "  {} lie in the memory of the hosts: {} of a device, {} of {} of a node\n",
          describeOffload(offloadOf(choice.offload)), formatBytes(stage.hostArenaBytes),
          formatBytes(uint64_t(stage.nodeHostBytes)), formatBytes(uint64_t(stage.hostMemoryBytes)));
      break;
    }
  if (choice.lowerBound > 0)
    text += fmt::format("  no plan can take less than {}: the model's products at the rate that "
                        "large ones reach on these devices; the gap is {:.1f} %\n",
                        formatDuration(choice.lowerBound),
                        100 * (best.seconds() / choice.lowerBound - 1));
  size_t count = std::min(alternatives, choice.best.size() - 1);
  if (count > 0)
    text += "\nnext best\n";
  for (const EstimatedStrategy &entry : llvm::ArrayRef(choice.best).slice(1, count))
    text += fmt::format("  {:>10} {:>7} {:<10} {:<58} {}\n", formatDuration(entry.seconds()),
                        fmt::format("{:+.1f} %", 100 * (entry.seconds() / best.seconds() - 1)),
                        entry.simulation ? "simulated" : "estimated",
                        describe(entry.strategy, options), explainSlower(entry, best));
  if (count > 0 && choice.unknown > 0)
    text +=
        fmt::format("not listed: {} more whose estimates are near the choice; estimates may be too "
                    "low, and these were not compiled\n",
                    choice.unknown);
  return text;
}

SimulationPageOptions dtc::pageOptions(const PlannerResult &choice, const PlannerOptions &given,
                                       size_t alternatives) {
  const PlannerOptions options = searchedOptions(choice, given);
  SimulationPageOptions page;
  const EstimatedStrategy &best = choice.best.front();
  CompileOptions compiled = best.strategy.toOptions(options.base);
  for (const auto &[name, size] : compiled.mesh)
    page.strategy.push_back({name, std::to_string(size),
                             options.axes.contains(name) ? "fixed by the user" : "searched"});
  for (const Option &option : getOptions()) {
    bool isOfPipeline = option.name == "schedule" || option.name == "chunks";
    bool isOfContext = option.name == "context_heads";
    if (option.isSearched && (best.strategy.pp > 1 || !isOfPipeline) &&
        (best.strategy.cp > 1 || !isOfContext))
      page.strategy.push_back(
          {option.name.str(), formatOption(option, compiled),
           options.fixed.contains(option.name.str()) ? "fixed by the user" : "searched"});
  }
  for (const EstimatedStrategy &entry :
       llvm::ArrayRef(choice.best).slice(1, std::min(alternatives, choice.best.size() - 1)))
    page.alternatives.push_back(
        {describe(entry.strategy, options), entry.seconds(), uint64_t(entry.neededBytes()),
         (entry.simulation ? "" : "estimated: ") + explainSlower(entry, best)});
  if (choice.lowerBound > 0) {
    page.lowerBoundSeconds = choice.lowerBound;
    page.lowerBoundReason =
        "the model's products at the rate that large ones reach on these devices";
  }
  return page;
}
