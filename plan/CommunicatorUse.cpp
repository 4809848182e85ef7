//===- CommunicatorUse.cpp - Communicators that a plan needs --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/CommunicatorUse.h"

#include "plan/PlanTypes.h"
#include "support/OuterEntries.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dtc {

namespace {

struct Uses {
  struct Group {
    bool reducesAll = false, hasRings = false, exchangesWithAll = false;
    /// Of permutes: each has one member to send to and one to receive from.
    std::set<std::pair<std::vector<std::string>, int64_t>> permutes;
  };
  std::map<std::vector<std::string>, Group> groups; // by axes
  std::set<uint32_t> sends, receives;               // coordinates on the pipeline axis

  void add(const plan::Collective &collective) {
    Group &group = groups[toVector(collective.axes())];
    switch (collective.kind()) {
    case plan::Collective::ALL_REDUCE:
      group.reducesAll = true;
      break;
    case plan::Collective::ALL_TO_ALL:
      group.exchangesWithAll = true;
      break;
    case plan::Collective::PERMUTE:
      group.permutes.emplace(toVector(collective.source_axes()), collective.shift());
      break;
    default:
      group.hasRings = true;
    }
  }
  void add(const plan::Program &program) {
    for (const plan::Task &task : program.tasks())
      for (const plan::Instruction &instruction : task.instructions())
        if (instruction.has_collective())
          add(instruction.collective());
    for (const plan::Transfer &transfer : program.transfers())
      (transfer.kind() == plan::Transfer::SEND ? sends : receives).insert(transfer.peer());
  }
};

} // namespace

CommunicatorNeeds communicatorNeeds(const plan::Plan &plan, int program) {
  Uses uses, beside;
  uses.add(plan.programs(program));
  for (const plan::Plan &entry : plan.entry_points())
    (entry.entry().starts_with(kOuterSendEntry) ? beside : uses).add(entry.programs(program));
  const Mesh mesh = meshOf(plan);
  CommunicatorNeeds needs;
  for (const Uses *lane : {&uses, &beside})
    for (const auto &[axes, group] : lane->groups) {
      int64_t members = mesh.groupSize(axes);
      if (members == 1)
        continue;
      int64_t peers =
          group.exchangesWithAll ? members - 1 : std::min(std::ssize(group.permutes), members - 1);
      needs.groups.push_back({members, group.reducesAll, group.hasRings, peers});
    }
  needs.sends = std::ssize(uses.sends);
  needs.receives = std::ssize(uses.receives);
  return needs;
}

} // namespace dtc
