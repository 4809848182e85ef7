//===- SessionReport.cpp - Measurements of a session ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"

#include "plan/CommunicatorUse.h"
#include "plan/PlanTypes.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

void Session::addPipelineTime() {
  std::optional<PipelineSpan> all;
  for (const std::unique_ptr<DeviceExecutor> &device : devices)
    if (const std::optional<PipelineSpan> &span = device->pipelineSpan()) {
      if (!all)
        all = PipelineSpan{span->begin, span->end, 0};
      all->begin = std::min(all->begin, span->begin);
      all->end = std::max(all->end, span->end);
      all->busySeconds += span->busySeconds;
    }
  if (!all)
    return;
  pipeline.busySeconds += all->busySeconds;
  pipeline.deviceSeconds += std::chrono::duration<double>(all->end - all->begin).count() *
                            static_cast<double>(devices.size());
}

double Session::waitedSeconds() const {
  double sum = 0;
  for (const std::unique_ptr<DeviceExecutor> &device : devices)
    sum += device->waitedSeconds();
  return sum / static_cast<double>(devices.size());
}

uint64_t Session::peakBytes() const {
  uint64_t most = 0;
  for (size_t i = 0; i < prepared->programs.size(); ++i)
    most = std::max(most, prepared->arenaBytes(i));
  return most;
}

uint64_t Session::workspaceBytes() const {
  uint64_t most = 0;
  for (size_t i = 0; i < prepared->programs.size(); ++i)
    most = std::max(most, prepared->workspaceBytes(i));
  return most;
}

std::string Session::describeGraphs() const {
  size_t all = 0, captured = 0;
  for (const std::unique_ptr<DeviceExecutor> &device : devices) {
    all += device->getProgram().instructions.size();
    captured += device->instructionsInGraphs();
  }
  if (captured == 0)
    return "without CUDA graphs";
  if (captured == all)
    return "all instructions in CUDA graphs";
  return fmt::format("{:.1f}% of the instructions in CUDA graphs, the others between them",
                     100 * static_cast<double>(captured) / static_cast<double>(all));
}

CommunicatorBytes Session::communicatorBytes() const {
  CommunicatorBytes total;
  for (const std::unique_ptr<DeviceExecutor> &device : devices)
    total += device->sent();
  return total;
}

std::vector<ProfileEntry> Session::profile() const {
  std::map<std::string, ProfileEntry> byName;
  auto add = [&](const std::string &name, uint64_t calls, double seconds, double flops) {
    ProfileEntry &entry = byName[name];
    entry.name = name;
    entry.calls += calls;
    entry.seconds += seconds;
    entry.flops += static_cast<double>(calls) * flops;
  };
  for (const std::unique_ptr<DeviceExecutor> &device : devices) {
    for (size_t i = 0; i < device->times().size(); ++i) {
      const InstructionTime &time = device->times()[i];
      const plan::Instruction &instruction = device->getProgram().instruction(i);
      if (instruction.has_kernel())
        add(instruction.kernel().kernel(), time.calls, time.seconds, instruction.flops());
      else if (instruction.has_collective())
        add(dtc::name(kindOf(instruction.collective())), time.calls, time.seconds,
            instruction.flops());
    }
    for (size_t i = 0; i < device->transferTimes().size(); ++i) {
      const TransferTime &time = device->transferTimes()[i];
      add(device->getProgram().transfers[i].sends ? "send" : "receive", time.calls, time.seconds,
          0);
    }
  }
  std::vector<ProfileEntry> entries;
  for (auto &[name, entry] : byName)
    entries.push_back(std::move(entry));
  std::stable_sort(
      entries.begin(), entries.end(),
      [](const ProfileEntry &a, const ProfileEntry &b) { return a.seconds > b.seconds; });
  return entries;
}

MeasuredCollectives Session::measuredCollectives() const {
  MeasuredCollectives total;
  for (const std::unique_ptr<DeviceExecutor> &device : devices)
    for (size_t i = 0; i < device->times().size(); ++i)
      if (std::holds_alternative<PreparedCollective>(device->getProgram().instructions[i])) {
        total.seconds += device->times()[i].seconds;
        total.exposedSeconds += device->times()[i].exposedSeconds;
      }
  return total;
}

TransferTime Session::transferTime() const {
  TransferTime total;
  for (const std::unique_ptr<DeviceExecutor> &device : devices)
    for (const TransferTime &time : device->transferTimes())
      total += time;
  return total;
}

double MeasuredCollectives::hiddenShare() const {
  // Waking up takes time as well: the exposed time may be the longer one.
  return seconds > exposedSeconds ? 1 - exposedSeconds / seconds : 0;
}

} // namespace dtc::runtime
