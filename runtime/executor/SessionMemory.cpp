//===- SessionMemory.cpp - Whether the devices of a session have enough memory ===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"

#include "plan/CommunicatorUse.h"
#include "plan/PlanVerifier.h"
#include "support/Format.h"
#include "support/Memory.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <sstream>

namespace dtc::runtime {

/// The bytes that the devices of this process need of a memory that they share.
struct Session::MemoryUse {
  Device::FreeMemory free;
  uint64_t needed = 0, traces = 0, communicators = 0, devices = 0;
};

/// How many processes have devices in a memory, by its owner, hosts aside. All processes have then
/// asked for their free memory, and none has allocated any.
Expected<std::map<std::string, uint64_t>>
Session::countSharers(const std::map<std::string, MemoryUse> &own) const {
  std::string owners;
  for (const auto &[name, use] : own)
    if (!use.free.owner.empty())
      owners += use.free.owner + '\n';
  Expected<bool> exist = fabric().any(!owners.empty());
  if (!exist)
    return exist.error();
  std::map<std::string, uint64_t> sharers;
  for (int64_t process = 0; *exist && process < fabric().numProcesses(); ++process) {
    Expected<std::string> given = fabric().broadcast(process, owners);
    if (!given)
      return given.error();
    std::istringstream lines(*given);
    for (std::string owner; std::getline(lines, owner);)
      ++sharers[owner];
  }
  return sharers;
}

/// Devices that share a memory have it together.
MaybeError Session::checkMemory(const SessionOptions &options) const {
  std::map<std::string, MemoryUse> uses;
  for (size_t i = 0; i < shared->resources.size(); ++i) {
    auto program = static_cast<size_t>(prepared->mesh.programOf(fabric().devices()[i]));
    Device &device = shared->resources[i]->getDevice();
    Expected<Device::FreeMemory> free = device.freeMemory();
    if (!free)
      return free.error();
    MemoryUse &use = uses[free->limitedBy];
    use.free = *free;
    ++use.devices;
    // Programs of at most 2^46 bytes, and at most 2^16 devices of a process: no sum overflows.
    use.needed += prepared->arenaBytes(program) +
                  std::min<uint64_t>(prepared->workspaceBytes(program), kMaxArenaBytes) +
                  std::min(prepared->workspaceBeside(program), kMaxArenaBytes);
    use.communicators += memoryOfFabric(fabric().devices()[i]).bytes;
    if (uint64_t bytes = prepared->hostArenaBytes(program); bytes > 0) {
      MemoryLimit limit = memoryLimit();
      MemoryUse &host = uses[limit.holder];
      if (!device.isHostMemory()) {
        host.free = {limit.bytes, limit.holder};
        ++host.devices;
      }
      host.needed += bytes + std::min(prepared->hostWorkspaceBytes(program), kMaxArenaBytes);
    }
    if (options.traceSteps > 0 && device.isHostMemory())
      use.traces += std::min(
          DeviceTrace::bytesFor(prepared->programs[program], options.traceSteps, options.batches),
          kMaxArenaBytes);
  }
  Expected<std::map<std::string, uint64_t>> sharers = countSharers(uses);
  if (!sharers)
    return sharers.error();
  for (const auto &[name, use] : uses) {
    // Each of them needs as much.
    uint64_t processes = use.free.owner.empty() ? static_cast<uint64_t>(fabric().processesOnHost())
                                                : sharers->at(use.free.owner);
    uint64_t free = use.free.bytes / processes;
    uint64_t available = free - std::min(free, use.free.reserved);
    std::string has =
        fmt::format("{} has {}{}", name, formatBytes(available),
                    processes > 1 ? fmt::format(" for each of {} processes", processes) : "");
    if (use.free.reserved > 0)
      has += fmt::format(" beside {} for libraries, graphs and what else is in no plan",
                         formatBytes(use.free.reserved));
    if (use.communicators > 0 && use.needed + use.communicators > available)
      return Error{
          fmt::format("the plan needs {} for {} devices ({} and {} of workspace each), and "
                      "what connects them {} ({}), but {}; compile for more or smaller "
                      "shards, or a smaller batch, or give communicators fewer channels "
                      "(--nccl-channels)",
                      formatBytes(use.needed), use.devices, formatBytes(peakBytes()),
                      formatBytes(workspaceBytes()), formatBytes(use.communicators),
                      describeFabricMemory(), has)};
    if (use.needed > available)
      return Error{fmt::format("the plan needs {} for {} devices ({}{} and {} of workspace each), "
                               "but {}; compile for more or smaller shards, or a smaller batch",
                               formatBytes(use.needed), use.devices,
                               prepared->programs.size() > 1 ? "at most " : "",
                               formatBytes(peakBytes()), formatBytes(workspaceBytes()), has)};
    if (use.needed + use.traces > available)
      return Error{fmt::format("the trace of {} steps needs {} beside the {} of the plan, but {}; "
                               "trace fewer steps",
                               options.traceSteps, formatBytes(use.traces), formatBytes(use.needed),
                               has)};
  }
  return std::nullopt;
}

Fabric::MemoryUse Session::memoryOfFabric(int64_t device) const {
  auto program = static_cast<int>(prepared->mesh.programOf(device));
  return fabric().memoryFor(communicatorNeeds(*prepared->plan, program));
}

std::string Session::describeFabricMemory() const {
  Fabric::MemoryUse most;
  for (int64_t device : fabric().devices())
    if (Fabric::MemoryUse use = memoryOfFabric(device); use.bytes > most.bytes)
      most = std::move(use);
  return most.description;
}

} // namespace dtc::runtime
