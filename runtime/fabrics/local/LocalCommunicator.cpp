//===- LocalCommunicator.cpp - Devices that are threads -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/local/LocalCommunicator.h"

#include <cstring>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

std::shared_ptr<LocalGroup>
LocalWorld::openGroup(int64_t device, const std::vector<std::string> &axes, int64_t lane) {
  std::vector<int64_t> members = mesh.group(device, axes);
  std::lock_guard lock(mutex);
  std::shared_ptr<LocalGroup> &group = groups[{axes, members.front(), lane}];
  if (!group) {
    group = std::make_shared<LocalGroup>(members.size());
    if (aborted)
      group->abort();
  }
  return group;
}

void LocalWorld::abort(const MaybeError &reason) {
  std::lock_guard lock(mutex);
  if (aborted)
    return;
  const char *text = "another device failed";
  aborted = reason ? reason->inContext(text) : Error{text};
  for (auto &[key, group] : groups)
    group->abort();
  for (LocalMailbox &mailbox : mailboxes)
    mailbox.abort();
  for (LocalResults &results : transferResults)
    results.abort(*aborted);
}

MaybeError LocalWorld::failure() const {
  std::lock_guard lock(mutex);
  return aborted;
}

Expected<Communicator::Group> LocalCommunicator::openGroup(const std::vector<std::string> &axes) {
  std::shared_ptr<LocalGroup> group = world->openGroup(device, axes, lane);
  size_t members = group->size();
  groups.push_back({std::move(group), world->getMesh().blockIndex(device, axes),
                    LocalCollective::Workspace(members)});
  return groups.size() - 1;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// A group of one has nobody to wait for; every kind of collective is a copy.
static void copyBucket(std::span<const CollectiveSpec> specs,
                       std::span<const CollectiveOperands> operands) {
  for (size_t i = 0; i < specs.size(); ++i)
    if (size_t bytes = specs[i].input.numBytes(); bytes && operands[i].input != operands[i].output)
      std::memcpy(operands[i].output, operands[i].input, bytes);
}

MaybeError LocalCommunicator::run(Group index, const CollectiveSpec &spec, const void *input,
                                  void *output) {
  CollectiveOperands operands{input, output};
  return run(index, {&spec, 1}, {&operands, 1});
}

MaybeError LocalCommunicator::run(Group index, std::span<const CollectiveSpec> specs,
                                  std::span<const CollectiveOperands> operands) {
  Membership &membership = groups[index];
  LocalGroup &group = *membership.group;
  if (static_cast<size_t>(specs.front().members) != group.size())
    return Error{"the collective is for a group of another size"};
  if (group.size() == 1) {
    copyBucket(specs, operands);
    return std::nullopt;
  }
  auto rank = static_cast<size_t>(membership.rank);
  LocalCollective collective(group, specs, membership.workspace);
  bool small = collective.isSmall();
  bool ok = group.publish(rank, {operands, fingerprintOf(specs)}, [&] {
    if (small)
      collective.run(0, group.size());
  });
  if (ok && !small) {
    collective.run(rank, rank + 1);
    // The others may still be reading this member's inputs and writing its outputs.
    ok = group.barrier();
  }
  if (ok)
    return std::nullopt;
  world->abort(Error{std::string(name(specs.front().kind)) +
                     ": the members of the group called different collectives"});
  return world->failure()->inContext(name(specs.front().kind));
}

} // namespace dtc::runtime
