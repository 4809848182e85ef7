//===- PlanSummary.cpp - Summary of a plan --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanSummary.h"

#include "plan/ClosingInstructions.h"
#include "plan/ParentAxes.h"
#include "plan/PlanTypes.h"
#include "plan/TransferEnds.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace dtc {

static std::optional<double> ratioOf(uint64_t bytes, uint64_t lowerBound) {
  if (lowerBound == 0)
    return std::nullopt;
  return static_cast<double>(bytes) / static_cast<double>(lowerBound);
}

std::optional<double> ProgramSummary::arenaRatio() const {
  return ratioOf(arenaBytes, arenaLowerBound);
}

std::optional<double> PlanSummary::arenaRatio() const {
  return ratioOf(arenaBytes, arenaLowerBound);
}

/// 0 of a task that is never executed.
static double flopsOf(double oneExecution, uint64_t executions) {
  return executions == 0 ? 0 : oneExecution * static_cast<double>(executions);
}

namespace {

/// Fills a summary from the programs of a plan.
class Summarizer {
public:
  Summarizer(const plan::Plan &plan, PlanSummary &summary)
      : plan(plan), mesh(meshOf(plan)), summary(summary) {}

  void run() {
    summary.version = plan.version();
    summary.producer = plan.producer();
    summary.model = plan.model();
    summary.entry = plan.entry();
    for (const plan::Plan &entryPoint : plan.entry_points())
      summary.entryPoints.push_back(entryPoint.entry());
    summary.numDevices = mesh.numDevices();
    summary.pipelineSchedule = plan.pipeline().schedule();
    summary.stages = plan.pipeline().stages();
    for (const plan::Axis &axis : plan.axes()) {
      summary.axes.push_back(
          {{axis.name(), axis.size(), axis.temporal(), axis.pipeline()}, axis.sub_axis_of()});
      if (axis.temporal())
        summary.microbatches = axis.size();
      if (axis.pipeline())
        summary.pipelineAxis = axis.name();
    }
    for (const plan::Program &program : plan.programs())
      addProgram(program);
    takeLargest();
    sortEntries();
  }

private:
  void addProgram(const plan::Program &program) {
    ProgramSummary &out = summary.programs.emplace_back();
    size_t firstTask = summary.tasks.size();
    addParameters(program);
    addMemory(program, out);
    addSchedule(program, firstTask);
    const ClosingInstructions closing(program);
    for (uint32_t i = 0; i < static_cast<uint32_t>(program.tasks_size()); ++i)
      addTask(program, closing, i, out, summary.tasks[firstTask + i]);
    TransferSummary &all = summary.transfers;
    all.instructions += out.transfers.instructions;
    all.tensors += out.transfers.tensors;
    all.messages += out.transfers.messages;
    all.bytes += out.transfers.bytes;
  }

  void addParameters(const plan::Program &program) {
    for (const plan::State &state : program.states()) {
      // A parameter that two stages hold is one parameter.
      if (state.kind() != plan::State::PARAMETER || !parameters.insert(state.name()).second)
        continue;
      TensorType type = typeOf(state);
      ++summary.parameterTensors;
      summary.parameterElements += static_cast<uint64_t>(type.numElements());
      summary.parameterBytes += type.numBytes();
    }
  }

  static void addMemory(const plan::Program &program, ProgramSummary &out) {
    out.arenaBytes = program.arena_bytes();
    out.arenaLowerBound = program.arena_lower_bound();
    const std::map<std::string, uint64_t PeakMemory::*> members = {
        {"parameter", &PeakMemory::parameters},   {"master_weight", &PeakMemory::masterWeights},
        {"gradient", &PeakMemory::gradients},     {"optimizer_state", &PeakMemory::optimizerState},
        {"activation", &PeakMemory::activations}, {"constant", &PeakMemory::constants},
        {"cache", &PeakMemory::caches},           {"input", &PeakMemory::inputsAndOutputs},
        {"output", &PeakMemory::inputsAndOutputs}};
    auto add = [&](const auto &byKind, PeakMemory &peak) {
      for (const auto &[kind, bytes] : byKind) {
        auto member = members.find(kind);
        peak.*(member == members.end() ? &PeakMemory::other : member->second) += bytes;
      }
    };
    add(program.memory_by_kind(), out.peak);
    out.hostArenaBytes = program.host_arena_bytes();
    add(program.host_memory_by_kind(), out.hostPeak);
    addSlots(program, out);
  }

  /// Those of the device's memory. Buffers may share bytes, which count once.
  static void addSlots(const plan::Program &program, ProgramSummary &out) {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const plan::Buffer &buffer : program.buffers()) {
      if (buffer.slots() == 0 || isOnHost(buffer))
        continue;
      constexpr uint64_t alignment = 64; // of the copies, as plan.proto says
      uint64_t copy = (typeOf(buffer).numBytes() + alignment - 1) / alignment * alignment;
      ranges.emplace_back(buffer.offset(), buffer.offset() + buffer.slots() * copy);
      out.mostSlots = std::max(out.mostSlots, buffer.slots());
    }
    std::sort(ranges.begin(), ranges.end());
    uint64_t counted = 0; // all bytes before this one
    for (auto [begin, end] : ranges) {
      out.slotBytes += std::max(end, counted) - std::max(begin, counted);
      counted = std::max(counted, end);
    }
  }

  void addSchedule(const plan::Program &program, size_t firstTask) {
    summary.tasks.resize(firstTask + static_cast<size_t>(program.tasks_size()));
    size_t firstSpan = summary.schedule.size();
    for (const plan::ScheduleEntry &entry : program.schedule()) {
      size_t task = firstTask + entry.task();
      ++summary.tasks[task].runs;
      if (summary.schedule.size() > firstSpan) {
        ScheduleSpan &last = summary.schedule.back();
        if (last.task == task && entry.microbatch() == last.firstMicrobatch + last.count) {
          ++last.count;
          continue;
        }
      }
      summary.schedule.push_back({task, entry.microbatch(), 1});
    }
  }

  void addTask(const plan::Program &program, const ClosingInstructions &closing, uint32_t number,
               ProgramSummary &total, TaskSummary &out) {
    const plan::Task &task = program.tasks(static_cast<int>(number));
    out.program = summary.programs.size() - 1;
    out.name = task.name();
    out.instructions = static_cast<uint64_t>(task.instructions_size());
    summary.instructions += out.instructions;
    double flopsOnce = 0;
    for (int i = 0; i < task.instructions_size(); ++i) {
      const plan::Instruction &instruction = task.instructions(i);
      const uint64_t runs = closing.countRuns(number, i, out.runs);
      (closing.contains(number, i) ? flopsOnce : out.flops) += instruction.flops();
      if (instruction.has_collective())
        total.collectiveBytes += addCollective(program, instruction.collective(), runs);
      else if (instruction.has_kernel())
        addKernel(instruction, runs);
      else if (instruction.has_start_transfer())
        addSend(program, instruction.start_transfer().transfer(), out.runs, total.transfers);
    }
    double flops = flopsOf(out.flops, out.runs) + flopsOnce;
    total.flops += flops;
    summary.flops += flops;
  }

  void addKernel(const plan::Instruction &instruction, uint64_t executions) {
    KernelSummary &entry = kernels[instruction.kernel().kernel()];
    ++entry.instructions;
    entry.calls += executions;
    entry.flops += flopsOf(instruction.flops(), executions);
  }

  /// The bytes that a device sends for it in a step.
  uint64_t addCollective(const plan::Program &program, const plan::Collective &collective,
                         uint64_t executions) {
    CollectiveKind kind = kindOf(collective);
    CollectiveSummary &entry = collectives[{kind, toVector(collective.axes())}];
    entry.members = mesh.groupSize(toVector(collective.axes()));
    ++entry.instructions;
    entry.asyncInstructions += collective.async() ? 1 : 0;
    entry.calls += executions;
    uint64_t bytes = 0;
    for (const plan::CollectiveTensor &tensor : collective.tensors()) {
      ++entry.tensors;
      bytes += executions * sentBytes(program, collective, tensor, entry.members);
    }
    entry.bytes += bytes;
    return bytes;
  }

  static void addSend(const plan::Program &program, uint32_t index, uint64_t executions,
                      TransferSummary &out) {
    const plan::Transfer &transfer = program.transfers(static_cast<int>(index));
    if (kindOf(transfer) != TransferKind::Send)
      return;
    ++out.instructions;
    out.tensors += static_cast<uint64_t>(transfer.buffers_size());
    out.messages += executions;
    out.bytes += executions * messageBytes(program, transfer);
  }

  void takeLargest() {
    for (size_t p = 0; p < summary.programs.size(); ++p)
      if (summary.programs[p].arenaBytes > summary.programs[summary.largestProgram].arenaBytes)
        summary.largestProgram = p;
    const ProgramSummary &largest = summary.programs[summary.largestProgram];
    summary.peak = largest.peak;
    summary.arenaBytes = largest.arenaBytes;
    summary.arenaLowerBound = largest.arenaLowerBound;
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
      entry.parentAxes = parentAxes(plan, entry.axes);
      summary.sentBytes.byKind[indexOf(entry.kind)] += entry.bytes;
      summary.collectives.push_back(std::move(entry));
    }
    std::stable_sort(
        summary.collectives.begin(), summary.collectives.end(),
        [](const CollectiveSummary &a, const CollectiveSummary &b) { return a.bytes > b.bytes; });
  }

  const plan::Plan &plan;
  Mesh mesh;
  PlanSummary &summary;
  std::set<std::string> parameters;
  std::map<std::string, KernelSummary> kernels;
  std::map<std::pair<CollectiveKind, std::vector<std::string>>, CollectiveSummary> collectives;
};

} // namespace

PlanSummary summarizePlan(const plan::Plan &plan) {
  PlanSummary summary;
  Summarizer(plan, summary).run();
  return summary;
}

} // namespace dtc
