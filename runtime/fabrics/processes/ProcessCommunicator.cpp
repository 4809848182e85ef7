//===- ProcessCommunicator.cpp - Collectives of devices in many processes --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/ProcessCommunicator.h"

namespace dtc::runtime {

Expected<Communicator::Group> ProcessCommunicator::openGroup(const std::vector<std::string> &axes) {
  Expected<std::shared_ptr<SharedGroup>> shared = world->openGroup(device, axes, lane);
  if (!shared)
    return shared.error();
  Membership membership{std::move(*shared), 0, 0};
  if (!membership.shared) {
    Expected<Group> group = local.openGroup(axes);
    if (!group)
      return group.error();
    membership.localGroup = *group;
  } else {
    for (int64_t other : world->getMesh().group(device, axes)) {
      if (other == device)
        break;
      membership.member += world->processOf(other) == world->processOf(device);
    }
  }
  groups.push_back(std::move(membership));
  return groups.size() - 1;
}

MaybeError ProcessCommunicator::run(Group group, std::span<const CollectiveSpec> specs,
                                    std::span<const CollectiveOperands> operands) {
  const Membership &membership = groups[group];
  if (!membership.shared)
    return local.run(membership.localGroup, specs, operands);
  if (MaybeError error = world->failure())
    return error;
  const char *what = name(specs.front().kind);
  if (static_cast<size_t>(specs.front().members) != membership.shared->numMembers())
    return Error{"the collective is for a group of another size"};
  MaybeError error = membership.shared->run(membership.member, specs, operands);
  // The first reason holds, in all processes.
  if (error && !world->failure())
    world->abort(*error);
  if (MaybeError failure = world->failure())
    return failure->inContext(what);
  return std::nullopt;
}

} // namespace dtc::runtime
