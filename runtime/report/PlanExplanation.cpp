//===- PlanExplanation.cpp - Why a plan communicates ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/report/PlanExplanation.h"

#include "runtime/plan/PlanTypes.h"
#include "runtime/report/CollectiveCost.h"
#include "runtime/report/UserAxes.h"
#include "runtime/support/Format.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>
#include <tuple>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Links
//===----------------------------------------------------------------------===//

MaybeError checkLinks(const plan::Plan &plan, const std::vector<NamedLink> &links) {
  std::set<std::string> seen;
  for (const NamedLink &link : links) {
    std::vector<std::string> known;
    bool found = false, temporal = false;
    for (const plan::Axis &axis : plan.axes()) {
      bool named = link.axis == axis.name() || link.axis == axis.part_of();
      temporal |= named && axis.temporal();
      found |= named && !axis.temporal();
      if (!axis.temporal())
        known.push_back(axis.name());
    }
    if (temporal)
      return Error{fmt::format("axis \"{}\" counts microbatches and has no link; expected an axis "
                               "of devices",
                               link.axis)};
    if (!found)
      return Error{fmt::format("the mesh has no axis \"{}\"; {}", link.axis,
                               known.empty()
                                   ? "it is one device and has no links"
                                   : fmt::format("its axes are {}", fmt::join(known, ", ")))};
    if (!seen.insert(link.axis).second)
      return Error{fmt::format("axis \"{}\" has two links; expected one", link.axis)};
  }
  return std::nullopt;
}

static void overrideLink(AxisLink &link, const LinkSpeed &speed, LinkOrigin origin) {
  if (speed.bandwidth > 0) {
    link.speed.bandwidth = speed.bandwidth;
    link.bandwidthFrom = origin;
  }
  if (speed.latency > 0) {
    link.speed.latency = speed.latency;
    link.latencyFrom = origin;
  }
}

static AxisLink resolveLink(const plan::Axis &axis, const std::vector<NamedLink> &links) {
  AxisLink result{axis.name(), axis.part_of(), kAssumedLink};
  overrideLink(result, {axis.bandwidth(), axis.latency()}, LinkOrigin::Plan);
  // The link of a part is more precise than that of the whole.
  for (const NamedLink &link : links)
    if (!axis.part_of().empty() && link.axis == axis.part_of())
      overrideLink(result, link.speed, LinkOrigin::Option);
  for (const NamedLink &link : links)
    if (link.axis == axis.name())
      overrideLink(result, link.speed, LinkOrigin::Option);
  return result;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

std::string layerPattern(const std::string &text) {
  std::string pattern;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9')
      ++end;
    bool ends = end == text.size() || text[end] == '.' || text[end] == ' ';
    if (end > i && i > 0 && text[i - 1] == '.' && ends)
      pattern += '*';
    else
      pattern.append(text, i, std::max<size_t>(end - i, 1));
    i = std::max(end, i + 1);
  }
  return pattern;
}

/// Calls `visit` with each text of a collective that may name a layer.
template <typename Visitor>
static void visitLayerTexts(ExplainedCollective &collective, Visitor visit) {
  visit(collective.source);
  for (ExplainedTensor &tensor : collective.tensors) {
    visit(tensor.reason.value);
    visit(tensor.reason.producer);
    visit(tensor.reason.consumer);
    visit(tensor.reason.remedy);
  }
}

/// What the collectives of one group have in common.
static std::vector<std::string> groupKey(ExplainedCollective collective) {
  std::vector<std::string> key{std::to_string(collective.kind), std::to_string(collective.async),
                               collective.task, std::to_string(collective.bytes),
                               fmt::format("{}", fmt::join(collective.axes, "+"))};
  for (const ExplainedTensor &tensor : collective.tensors)
    key.insert(key.end(), {tensor.type, tensor.reason.from, tensor.reason.to});
  visitLayerTexts(collective, [&](const std::string &text) { key.push_back(layerPattern(text)); });
  return key;
}

ExplainedCollective representativeOf(const PlanExplanation &explanation,
                                     const ExplainedGroup &group) {
  auto textsOf = [](ExplainedCollective collective) {
    std::vector<std::string> texts;
    visitLayerTexts(collective, [&](const std::string &text) { texts.push_back(text); });
    return texts;
  };
  ExplainedCollective result = explanation.collectives[group.members.front()];
  std::vector<std::string> first = textsOf(result);
  for (size_t member : group.members) {
    std::vector<std::string> texts = textsOf(explanation.collectives[member]);
    size_t i = 0;
    visitLayerTexts(result, [&](std::string &text) {
      if (texts[i] != first[i])
        text = layerPattern(first[i]);
      ++i;
    });
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The explanation
//===----------------------------------------------------------------------===//

namespace {

/// Fills an explanation from the one program of a plan.
class Explainer {
public:
  Explainer(const plan::Plan &plan, const std::vector<NamedLink> &links, PlanExplanation &result)
      : plan(plan), program(plan.programs(0)), mesh(meshOf(plan)), result(result) {
    result.model = plan.model();
    result.numDevices = mesh.numDevices();
    for (const plan::Axis &axis : plan.axes()) {
      if (axis.temporal())
        continue;
      AxisLink link = resolveLink(axis, links);
      speeds[axis.name()] = link.speed;
      if (axis.size() > 1)
        result.links.push_back(std::move(link));
    }
  }

  void run() {
    std::vector<uint64_t> runs(static_cast<size_t>(program.tasks_size()));
    for (const plan::ScheduleEntry &entry : program.schedule())
      ++runs[entry.task()];
    for (int t = 0; t < program.tasks_size(); ++t)
      for (int i = 0; i < program.tasks(t).instructions_size(); ++i)
        if (program.tasks(t).instructions(i).has_collective())
          addCollective(program.tasks(t), i, runs[static_cast<size_t>(t)]);
    sortByCost(result.collectives, [](const ExplainedCollective &collective) {
      return std::tuple(collective.stepSeconds(), collective.stepBytes());
    });
    addGroups();
    addTotals();
  }

private:
  /// The text of a source; empty for the first, which is "unknown".
  std::string sourceOf(uint32_t index) const {
    auto i = static_cast<int>(index);
    return i > 0 && i < plan.sources_size() ? plan.sources(i) : "";
  }

  void addCollective(const plan::Task &task, int index, uint64_t runs) {
    const plan::Instruction &instruction = task.instructions(index);
    const plan::Collective &collective = instruction.collective();
    ExplainedCollective &out = result.collectives.emplace_back();
    out.kind = collective.kind();
    out.axes = toVector(collective.axes());
    out.userAxes = userAxes(plan, out.axes);
    out.members = mesh.groupSize(out.axes);
    out.async = collective.async();
    out.task = task.name();
    out.instruction = index;
    out.source = sourceOf(instruction.source());
    out.calls = runs;
    for (const plan::CollectiveTensor &tensor : collective.tensors()) {
      out.tensors.push_back({typeOf(program.buffers(static_cast<int>(tensor.input()))).str(),
                             sentBytes(program, collective, tensor, out.members),
                             reasonOf(tensor.reason())});
      out.bytes += out.tensors.back().bytes;
    }
    std::vector<GroupAxis> links;
    for (const std::string &axis : out.axes)
      links.push_back({mesh.find(axis)->size, speeds.at(axis)});
    out.seconds = estimateSeconds(static_cast<CollectiveKind>(out.kind), out.bytes, links);
  }

  ExplainedReason reasonOf(uint32_t index) const {
    auto i = static_cast<int>(index);
    if (i <= 0 || i >= plan.reasons_size())
      return {};
    const plan::Reason &reason = plan.reasons(i);
    return {reason.value(),
            reason.from(),
            reason.to(),
            sourceOf(reason.producer()),
            sourceOf(reason.consumer()),
            reason.remedy()};
  }

  template <typename T, typename Cost> static void sortByCost(std::vector<T> &entries, Cost cost) {
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const T &a, const T &b) { return cost(a) > cost(b); });
  }
  template <typename T> static void sortByCost(std::vector<T> &entries) {
    sortByCost(entries, [](const T &entry) { return std::tuple(entry.seconds, entry.bytes); });
  }

  void addGroups() {
    std::map<std::vector<std::string>, size_t> groups;
    for (size_t i = 0; i < result.collectives.size(); ++i) {
      const ExplainedCollective &collective = result.collectives[i];
      auto [it, fresh] = groups.try_emplace(groupKey(collective), result.groups.size());
      if (fresh)
        result.groups.emplace_back();
      ExplainedGroup &group = result.groups[it->second];
      group.members.push_back(i);
      group.calls += collective.calls;
      group.bytes += collective.stepBytes();
      group.seconds += collective.stepSeconds();
    }
    sortByCost(result.groups);
  }

  static void addTo(CommunicationTotal &total, const ExplainedCollective &collective) {
    ++total.instructions;
    total.calls += collective.calls;
    total.bytes += collective.stepBytes();
    total.seconds += collective.stepSeconds();
    if (collective.async)
      total.asyncSeconds += collective.stepSeconds();
  }

  void addTotals() {
    std::map<std::string, CommunicationTotal> byAxes, byKind;
    for (const ExplainedCollective &collective : result.collectives) {
      addTo(byAxes[fmt::format("{}", fmt::join(collective.userAxes, "+"))], collective);
      addTo(byKind[name(collective.kind)], collective);
      addTo(result.total, collective);
    }
    auto take = [](std::map<std::string, CommunicationTotal> &from,
                   std::vector<CommunicationTotal> &to) {
      for (auto &[name, total] : from) {
        total.name = name;
        to.push_back(std::move(total));
      }
      sortByCost(to);
    };
    take(byAxes, result.byAxes);
    take(byKind, result.byKind);
    result.total.name = "all";
  }

  const plan::Plan &plan;
  const plan::Program &program;
  Mesh mesh;
  std::map<std::string, LinkSpeed> speeds;
  PlanExplanation &result;
};

} // namespace

PlanExplanation explainPlan(const plan::Plan &plan, const std::vector<NamedLink> &links) {
  PlanExplanation result;
  Explainer(plan, links, result).run();
  return result;
}

MaybeError checkCommunicationBudget(const PlanExplanation &explanation, uint64_t budget) {
  if (explanation.total.bytes <= budget)
    return std::nullopt;
  const ExplainedGroup &most = *std::max_element(
      explanation.groups.begin(), explanation.groups.end(),
      [](const ExplainedGroup &a, const ExplainedGroup &b) { return a.bytes < b.bytes; });
  ExplainedCollective collective = representativeOf(explanation, most);
  std::string text = fmt::format(
      "a device sends {} in a step ({} bytes), but the budget is {} ({} bytes); {} of "
      "it by {} over {}",
      formatBytes(explanation.total.bytes), explanation.total.bytes, formatBytes(budget), budget,
      formatBytes(most.bytes), name(collective.kind), fmt::join(collective.userAxes, "+"));
  if (!collective.source.empty())
    text += " at " + collective.source;
  const ExplainedReason &reason = collective.tensors.front().reason;
  if (reason.known())
    text +=
        fmt::format(", as {} lies as {} and is needed as {}", reason.value, reason.from, reason.to);
  text += reason.remedy.empty() ? "; shard the model in another way or raise the budget"
                                : "; what would remove it: " + reason.remedy;
  return Error{text};
}

} // namespace dtc::runtime
