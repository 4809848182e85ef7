//===- StallCulprit.cpp - The device for which the others wait ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/StallCulprit.h"

#include "runtime/executor/DevicePlaces.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>

namespace dtc::runtime {

/// More say nothing more.
static constexpr size_t kMostLines = 4;

namespace {

/// How far a device has come.
struct Place {
  const DeviceExecutor *device;
  uint64_t stepsBefore; // that are done
  size_t entriesBefore; // of the step
  ReachedCommunication reached;
};

/// `waiter` has come to an instruction to which `on`, which takes part in it, has not.
struct Wait {
  const Place *waiter, *on;
  size_t instruction;
};

class WaitFinder {
public:
  WaitFinder(const PreparedPlan &plan, const std::vector<std::unique_ptr<DeviceExecutor>> &devices)
      : plan(plan) {
    for (const std::unique_ptr<DeviceExecutor> &device : devices)
      places.emplace(device->index(), placeOf(*device));
    for (const auto &[index, place] : places) {
      if (place.reached.collective)
        addWaitsOfCollective(place, *place.reached.collective);
      if (place.reached.transfer)
        addWaitOfTransfer(place, *place.reached.transfer);
    }
  }

  std::vector<std::string> describe() const {
    if (waits.empty())
      return describeMet();
    std::set<const Place *> waiting;
    for (const Wait &wait : waits)
      waiting.insert(wait.waiter);
    std::vector<std::string> lines;
    std::set<const Place *> named;
    for (const Wait &wait : waits)
      if (!waiting.contains(wait.on) && lines.size() < kMostLines && named.insert(wait.on).second)
        lines.push_back(describe(wait));
    if (lines.empty()) // each waits for another one
      for (const Wait &wait : waits)
        if (lines.size() < kMostLines)
          lines.push_back(describe(wait));
    return lines;
  }

private:
  static Place placeOf(const DeviceExecutor &device) {
    if (std::optional<DeviceExecutor::Position> position = device.position())
      return {&device, position->step > 0 ? position->step - 1 : 0, position->entriesBefore,
              position->reached};
    return {&device, device.stepsDone(), 0, {}};
  }

  /// How many instructions that match a device has come to since its first step, up to `last` of
  /// the entry that it is in.
  template <typename Match>
  static uint64_t count(const Place &place, std::optional<size_t> last, const Match &match) {
    const PreparedProgram &program = place.device->getProgram();
    const std::vector<size_t> &entries = place.device->entriesOfStep();
    std::map<uint32_t, uint64_t> byTask;
    auto ofTask = [&](uint32_t task) {
      auto [found, isNew] = byTask.try_emplace(task, 0);
      if (isNew)
        for (size_t i = program.taskBegin[task]; i < program.taskBegin[task + 1]; ++i)
          found->second += match(program, program.instructions[i]) ? 1 : 0;
      return found->second;
    };
    uint64_t before = 0, ofStep = 0;
    for (size_t i = 0; i < entries.size(); ++i) {
      uint64_t own = ofTask(program.schedule[entries[i]].task);
      ofStep += own;
      before += i < place.entriesBefore ? own : 0;
    }
    uint64_t here = 0;
    if (last)
      for (size_t i = program.taskBegin[program.taskOf(*last)]; i <= *last; ++i)
        here += match(program, program.instructions[i]) ? 1 : 0;
    return place.stepsBefore * ofStep + before + here;
  }

  uint64_t collectivesOf(const Place &place, size_t group) const {
    return count(place, place.reached.collective,
                 [&](const PreparedProgram &, const PreparedInstruction &instruction) {
                   const auto *collective = std::get_if<PreparedCollective>(&instruction);
                   return collective && collective->group == group;
                 });
  }

  /// The devices of a collective that has come to `index`.
  std::vector<int64_t> membersOf(const Place &place, size_t index) const {
    const auto &collective =
        std::get<PreparedCollective>(place.device->getProgram().instructions[index]);
    return plan.mesh.group(place.device->index(), plan.groups[collective.group]);
  }

  void addWaitsOfCollective(const Place &place, size_t index) {
    size_t group =
        std::get<PreparedCollective>(place.device->getProgram().instructions[index]).group;
    uint64_t own = collectivesOf(place, group);
    for (int64_t member : membersOf(place, index))
      if (auto other = places.find(member);
          other != places.end() && collectivesOf(other->second, group) < own)
        waits.push_back({&place, &other->second, index});
  }

  void addWaitOfTransfer(const Place &place, size_t index) {
    const PreparedProgram &program = place.device->getProgram();
    const auto *finish = std::get_if<PreparedFinishTransfer>(&program.instructions[index]);
    if (!finish)
      return;
    const uint32_t channel = program.transfers[finish->transfer].channel;
    const bool sends = program.transfers[finish->transfer].sends;
    auto peer = places.find(place.device->transferPeer(finish->transfer));
    if (peer == places.end())
      return;
    uint64_t finished = count(place, index, [&](const PreparedProgram &of, const auto &each) {
      const auto *end = std::get_if<PreparedFinishTransfer>(&each);
      return end && of.transfers[end->transfer].channel == channel &&
             of.transfers[end->transfer].sends == sends;
    });
    uint64_t started = count(peer->second, peer->second.reached.transfer,
                             [&](const PreparedProgram &of, const auto &each) {
                               const auto *start = std::get_if<PreparedStartTransfer>(&each);
                               return start && of.transfers[start->transfer].channel == channel &&
                                      of.transfers[start->transfer].sends != sends;
                             });
    if (started < finished)
      waits.push_back({&place, &peer->second, index});
  }

  std::string describe(const Wait &wait) const {
    return fmt::format("{} has not come to what device {} waits for: {}",
                       nameDevice(plan, *wait.on->device), wait.waiter->device->index(),
                       describeInstruction(plan, *wait.waiter->device, wait.instruction));
  }

  /// Of collectives to which all devices have come, as far as they are in this process.
  std::vector<std::string> describeMet() const {
    std::vector<std::string> lines;
    std::set<std::pair<std::vector<int64_t>, size_t>> named;
    for (const auto &[index, place] : places) {
      if (!place.reached.collective || lines.size() == kMostLines)
        continue;
      std::vector<int64_t> members = membersOf(place, *place.reached.collective);
      if (!named.emplace(members, *place.reached.collective).second)
        continue;
      bool areHere = std::ranges::all_of(members, [&](int64_t m) { return places.contains(m); });
      lines.push_back(
          fmt::format("{} have come to {}, and to no later one",
                      areHere ? "all its devices" : "its devices of this process",
                      describeInstruction(plan, *place.device, *place.reached.collective)));
    }
    return lines;
  }

  const PreparedPlan &plan;
  std::map<int64_t, Place> places; // of devices of this process
  std::vector<Wait> waits;
};

} // namespace

std::vector<std::string>
describeCulprits(const PreparedPlan &plan,
                 const std::vector<std::unique_ptr<DeviceExecutor>> &devices) {
  return WaitFinder(plan, devices).describe();
}

} // namespace dtc::runtime
