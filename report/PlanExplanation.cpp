//===- PlanExplanation.cpp - Causes and costs of communication ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/PlanExplanation.h"

#include "plan/ClosingInstructions.h"
#include "plan/OuterFragments.h"
#include "plan/ParentAxes.h"
#include "plan/PlanTypes.h"
#include "report/AlikeCollectives.h"
#include "simulator/cluster/CollectiveTime.h"
#include "support/Format.h"
#include "support/OuterEntries.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <tuple>
#include <utility>

namespace dtc {

namespace {

/// Fills an explanation from the programs of a plan.
class Explainer {
public:
  Explainer(const plan::Plan &plan, const std::vector<NamedLink> &links, PlanExplanation &result)
      : plan(plan), mesh(meshOf(plan)), result(result) {
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
    findReceivers();
    for (int p = 0; p < plan.programs_size(); ++p)
      addProgram(p);
    sortByCost(result.collectives, [](const ExplainedCollective &collective) {
      return std::tuple(collective.stepSeconds(), collective.stepBytes());
    });
    result.groups = mergeAlikeCollectives(result.collectives);
    sortByCost(result.groups);
    addTotals();
  }

private:
  /// The text of a location; empty for the first, which is "unknown".
  std::string locationOf(uint32_t index) const {
    auto i = static_cast<int>(index);
    return i > 0 && i < plan.locations_size() ? plan.locations(i) : "";
  }

  void addProgram(int p) {
    const plan::Program &program = plan.programs(p);
    std::vector<uint64_t> runs(static_cast<size_t>(program.tasks_size()));
    for (const plan::ScheduleEntry &entry : program.schedule())
      ++runs[entry.task()];
    const ClosingInstructions closing(program);
    for (int t = 0; t < program.tasks_size(); ++t) {
      const plan::Task &task = program.tasks(t);
      for (int i = 0; i < task.instructions_size(); ++i) {
        const plan::Instruction &instruction = task.instructions(i);
        if (!instruction.has_collective() && !startsSend(program, instruction))
          continue;
        ExplainedCollective &out = result.collectives.emplace_back();
        out.program = static_cast<size_t>(p);
        out.task = task.name();
        out.instruction = i;
        out.location = locationOf(instruction.location());
        out.calls = closing.countRuns(static_cast<uint32_t>(t), i, runs[static_cast<size_t>(t)]);
        if (instruction.has_collective())
          addCollective(program, instruction.collective(), out);
        else
          addSend(program, task, instruction.start_transfer().transfer(), out);
      }
    }
  }

  static bool startsSend(const plan::Program &program, const plan::Instruction &instruction) {
    return instruction.has_start_transfer() &&
           kindOf(program.transfers(static_cast<int>(instruction.start_transfer().transfer()))) ==
               TransferKind::Send;
  }

  void addSend(const plan::Program &program, const plan::Task &task, uint32_t index,
               ExplainedCollective &out) const {
    const plan::Transfer &transfer = program.transfers(static_cast<int>(index));
    const MeshAxis *axis = mesh.pipelineAxis();
    out.isSend = true;
    out.async = true;
    out.axes = {axis->name};
    out.parentAxes = parentAxes(plan, out.axes);
    out.members = 2;
    ExplainedReason reason;
    reason.from = describeEnd(&task, static_cast<int>(out.program));
    reason.to = describeEnd(receiverOf(transfer), static_cast<int>(transfer.peer()));
    for (uint32_t number : transfer.buffers()) {
      const plan::Buffer &buffer = program.buffers(static_cast<int>(number));
      out.tensors.push_back({typeOf(buffer).str(), typeOf(buffer).numBytes(), reason});
      out.bytes += out.tensors.back().bytes;
    }
    out.seconds = messageTime(static_cast<double>(out.bytes), groupOver(out.axes)).seconds;
  }

  /// "stage 2 on pp=0".
  std::string describeEnd(const plan::Task *task, int coordinate) const {
    std::string place = fmt::format("{}={}", mesh.pipelineAxis()->name, coordinate);
    return task && passOf(*task) ? fmt::format("stage {} on {}", task->stage(), place) : place;
  }

  /// The first task of the other device that waits for a send, or null.
  const plan::Task *receiverOf(const plan::Transfer &send) const {
    auto it = receivers.find({send.peer(), send.channel()});
    return it == receivers.end() ? nullptr : it->second;
  }

  void findReceivers() {
    for (int p = 0; p < plan.programs_size(); ++p)
      for (const plan::Task &task : plan.programs(p).tasks())
        for (const plan::Instruction &instruction : task.instructions())
          if (instruction.has_finish_transfer()) {
            auto index = static_cast<int>(instruction.finish_transfer().transfer());
            uint32_t channel = plan.programs(p).transfers(index).channel();
            receivers.try_emplace({static_cast<uint32_t>(p), channel}, &task);
          }
  }

  void addCollective(const plan::Program &program, const plan::Collective &collective,
                     ExplainedCollective &out) const {
    out.kind = kindOf(collective);
    out.axes = toVector(collective.axes());
    out.parentAxes = parentAxes(plan, out.axes);
    out.members = mesh.groupSize(out.axes);
    out.async = collective.async();
    double inputBytes = 0;
    for (const plan::CollectiveTensor &tensor : collective.tensors()) {
      TensorType type = typeOf(program.buffers(static_cast<int>(tensor.input())));
      inputBytes += static_cast<double>(type.numBytes());
      out.tensors.push_back({type.str(), sentBytes(program, collective, tensor, out.members),
                             reasonOf(tensor.reason())});
      out.bytes += out.tensors.back().bytes;
    }
    out.seconds = collectiveTime(out.kind, inputBytes, groupOver(out.axes)).seconds;
  }

  /// The devices of a group, with the links of its axes.
  GroupShape groupOver(const std::vector<std::string> &axes) const {
    std::vector<GroupAxis> group;
    for (const std::string &axis : axes)
      group.push_back({mesh.find(axis)->size, speeds.at(axis)});
    return GroupShape::ofTorus(group);
  }

  ExplainedReason reasonOf(uint32_t index) const {
    auto i = static_cast<int>(index);
    if (i <= 0 || i >= plan.reasons_size())
      return {};
    const plan::Reason &reason = plan.reasons(i);
    return {reason.value(),
            reason.from(),
            reason.to(),
            locationOf(reason.producer()),
            locationOf(reason.consumer()),
            reason.remedy()};
  }

  template <typename T, typename Cost> static void sortByCost(std::vector<T> &entries, Cost cost) {
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const T &a, const T &b) { return cost(a) > cost(b); });
  }
  template <typename T> static void sortByCost(std::vector<T> &entries) {
    sortByCost(entries, [](const T &entry) { return std::tuple(entry.seconds, entry.bytes); });
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
    result.byProgram.resize(static_cast<size_t>(plan.programs_size()));
    for (const ExplainedCollective &collective : result.collectives) {
      addTo(byAxes[fmt::format("{}", fmt::join(collective.parentAxes, "+"))], collective);
      addTo(byKind[collective.kindName()], collective);
      addTo(result.byProgram[collective.program], collective);
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
    for (size_t p = 0; p < result.byProgram.size(); ++p)
      result.byProgram[p].name = std::to_string(p);
    result.total.name = "all";
  }

  const plan::Plan &plan;
  Mesh mesh;
  std::map<std::string, LinkSpeed> speeds;
  /// The first task that finishes a transfer, by program and channel.
  std::map<std::pair<uint32_t, uint32_t>, const plan::Task *> receivers;
  PlanExplanation &result;
};

} // namespace

PlanExplanation explainPlan(const plan::Plan &plan, const std::vector<NamedLink> &links) {
  PlanExplanation result;
  Explainer(plan, links, result).run();
  for (const plan::Plan *outer : outerReductionsOf(plan)) {
    CommunicationTotal total = explainPlan(*outer, links).total;
    if (!result.outerStep)
      result.outerStep = CommunicationTotal{.name = kOuterStepEntry};
    result.outerStep->instructions += total.instructions;
    result.outerStep->calls += total.calls;
    result.outerStep->bytes += total.bytes;
    result.outerStep->seconds += total.seconds;
    result.outerStep->asyncSeconds += total.asyncSeconds;
    result.outerFragments += outer->entry() != kOuterStepEntry;
  }
  return result;
}

const char *ExplainedCollective::kindName() const { return isSend ? "send" : name(kind); }

MaybeError checkCommunicationBudget(const PlanExplanation &explanation, uint64_t budget) {
  auto lessBytes = [](const auto &a, const auto &b) { return a.bytes < b.bytes; };
  auto worst =
      std::max_element(explanation.byProgram.begin(), explanation.byProgram.end(), lessBytes);
  if (worst == explanation.byProgram.end() || worst->bytes <= budget)
    return std::nullopt;
  auto program = static_cast<size_t>(worst - explanation.byProgram.begin());
  // The figures of the device that sends most in each group.
  ExplainedRow most;
  for (const ExplainedRow &group : explanation.groups) {
    ExplainedRow part;
    for (size_t member : group.members)
      if (explanation.collectives[member].program == program) {
        part.members.push_back(member);
        part.bytes += explanation.collectives[member].stepBytes();
      }
    if (most.members.empty() || part.bytes > most.bytes)
      most = std::move(part);
  }
  ExplainedCollective collective = representativeOf(explanation, most);
  std::string text = fmt::format(
      "a device sends {} in a step ({} bytes), but the budget is {} ({} bytes); {} of "
      "it by {} over {}",
      formatBytes(worst->bytes), worst->bytes, formatBytes(budget), budget, formatBytes(most.bytes),
      collective.kindName(), fmt::join(collective.parentAxes, "+"));
  if (!collective.location.empty())
    text += " at " + collective.location;
  const ExplainedReason &reason = collective.tensors.front().reason;
  if (reason.known())
    text +=
        fmt::format(", as {} lies as {} and is needed as {}", reason.value, reason.from, reason.to);
  text += reason.remedy.empty() ? "; shard the model in another way or raise the budget"
                                : "; what would remove it: " + reason.remedy;
  return Error{text};
}

} // namespace dtc
