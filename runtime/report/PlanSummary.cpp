//===- PlanSummary.cpp - What is in a plan --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/report/PlanSummary.h"

#include "runtime/plan/PlanTypes.h"
#include "runtime/report/CollectiveCost.h"
#include "runtime/report/UserAxes.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace dtc::runtime {

std::optional<double> PlanSummary::arenaRatio() const {
  if (arenaLowerBound == 0)
    return std::nullopt;
  return static_cast<double>(arenaBytes) / static_cast<double>(arenaLowerBound);
}

/// Of a task that never runs, whatever one run takes.
static double flopsOf(double oneRun, uint64_t runs) {
  return runs == 0 ? 0 : oneRun * static_cast<double>(runs);
}

namespace {

/// Fills a summary from the one program of a plan.
class Summarizer {
public:
  Summarizer(const plan::Plan &plan, PlanSummary &summary)
      : plan(plan), program(plan.programs(0)), mesh(meshOf(plan)), summary(summary) {}

  void run() {
    summary.version = plan.version();
    summary.producer = plan.producer();
    summary.model = plan.model();
    summary.numDevices = mesh.numDevices();
    for (const plan::Axis &axis : plan.axes()) {
      summary.axes.push_back({{axis.name(), axis.size(), axis.temporal()}, axis.part_of()});
      if (axis.temporal())
        summary.microbatches = axis.size();
    }
    addParameters();
    addMemory();
    addSchedule();
    for (int i = 0; i < program.tasks_size(); ++i)
      addTask(program.tasks(i), summary.tasks[static_cast<size_t>(i)]);
    sortEntries();
  }

private:
  void addParameters() {
    for (const plan::State &state : program.states()) {
      if (!state.parameter().empty())
        continue;
      TensorType type = typeOf(state);
      ++summary.parameterTensors;
      summary.parameterElements += static_cast<uint64_t>(type.numElements());
      summary.parameterBytes += type.numBytes();
    }
  }

  void addMemory() {
    summary.arenaBytes = program.arena_bytes();
    summary.arenaLowerBound = program.arena_lower_bound();
    PeakMemory &peak = summary.peak;
    const std::map<std::string, uint64_t PeakMemory::*> members = {
        {"parameter", &PeakMemory::parameters},
        {"gradient", &PeakMemory::gradients},
        {"optimizer_state", &PeakMemory::optimizerState},
        {"activation", &PeakMemory::activations},
        {"constant", &PeakMemory::constants},
        {"input", &PeakMemory::inputsAndOutputs},
        {"output", &PeakMemory::inputsAndOutputs}};
    for (const auto &[kind, bytes] : program.memory_by_kind()) {
      auto member = members.find(kind);
      peak.*(member == members.end() ? &PeakMemory::other : member->second) += bytes;
    }
  }

  void addSchedule() {
    summary.tasks.resize(static_cast<size_t>(program.tasks_size()));
    for (const plan::ScheduleEntry &entry : program.schedule()) {
      ++summary.tasks[entry.task()].runs;
      if (!summary.schedule.empty()) {
        ScheduleSpan &last = summary.schedule.back();
        if (last.task == entry.task() && entry.microbatch() == last.firstMicrobatch + last.count) {
          ++last.count;
          continue;
        }
      }
      summary.schedule.push_back({entry.task(), entry.microbatch(), 1});
    }
  }

  void addTask(const plan::Task &task, TaskSummary &out) {
    out.name = task.name();
    out.instructions = static_cast<uint64_t>(task.instructions_size());
    summary.instructions += out.instructions;
    for (const plan::Instruction &instruction : task.instructions()) {
      out.flops += instruction.flops();
      if (instruction.has_collective())
        addCollective(instruction.collective(), out.runs);
      else if (instruction.has_kernel())
        addKernel(instruction, out.runs);
    }
    summary.flops += flopsOf(out.flops, out.runs);
  }

  void addKernel(const plan::Instruction &instruction, uint64_t runs) {
    KernelSummary &entry = kernels[instruction.kernel().kernel()];
    ++entry.instructions;
    entry.calls += runs;
    entry.flops += flopsOf(instruction.flops(), runs);
  }

  void addCollective(const plan::Collective &collective, uint64_t runs) {
    auto kind = static_cast<CollectiveKind>(collective.kind());
    CollectiveSummary &entry = collectives[{kind, toVector(collective.axes())}];
    entry.members = mesh.groupSize(toVector(collective.axes()));
    ++entry.instructions;
    entry.asyncInstructions += collective.async() ? 1 : 0;
    entry.calls += runs;
    for (const plan::CollectiveTensor &tensor : collective.tensors()) {
      ++entry.tensors;
      entry.bytes += runs * sentBytes(program, collective, tensor, entry.members);
    }
  }

  /// Takes the entries from the maps, whose order decides between equals.
  void sortEntries() {
    for (auto &[name, entry] : kernels) {
      entry.kernel = name;
      summary.kernels.push_back(std::move(entry));
    }
    std::stable_sort(summary.kernels.begin(), summary.kernels.end(),
                     [](const KernelSummary &a, const KernelSummary &b) {
                       return std::tie(a.flops, a.calls) > std::tie(b.flops, b.calls);
                     });
    for (auto &[key, entry] : collectives) {
      std::tie(entry.kind, entry.axes) = key;
      entry.userAxes = userAxes(plan, entry.axes);
      summary.sentBytes.byKind.at(static_cast<size_t>(entry.kind) - 1) += entry.bytes;
      summary.collectives.push_back(std::move(entry));
    }
    std::stable_sort(
        summary.collectives.begin(), summary.collectives.end(),
        [](const CollectiveSummary &a, const CollectiveSummary &b) { return a.bytes > b.bytes; });
  }

  const plan::Plan &plan;
  const plan::Program &program;
  Mesh mesh;
  PlanSummary &summary;
  std::map<std::string, KernelSummary> kernels;
  std::map<std::pair<CollectiveKind, std::vector<std::string>>, CollectiveSummary> collectives;
};

} // namespace

PlanSummary summarizePlan(const plan::Plan &plan) {
  PlanSummary summary;
  Summarizer(plan, summary).run();
  return summary;
}

} // namespace dtc::runtime
