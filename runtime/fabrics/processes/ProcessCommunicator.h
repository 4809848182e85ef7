//===- ProcessCommunicator.h - Collectives of devices in many processes ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_PROCESSCOMMUNICATOR_H
#define DTC_RUNTIME_FABRICS_PROCESSES_PROCESSCOMMUNICATOR_H

#include "runtime/fabrics/processes/ProcessWorld.h"

#include <memory>
#include <vector>

namespace dtc::runtime {

/// Groups whose members are all in this process are those of the local fabric.
class ProcessCommunicator final : public QueuedCommunicator {
public:
  ProcessCommunicator(std::shared_ptr<ProcessWorld> world, int64_t device, int64_t lane)
      : world(std::move(world)), device(device), lane(lane),
        local(this->world->getLocal(), device, lane) {}

  Expected<Group> openGroup(const std::vector<std::string> &axes) override;
  MaybeError run(Group group, std::span<const CollectiveSpec> specs,
                 std::span<const CollectiveOperands> operands) override;

private:
  struct Membership {
    std::shared_ptr<SharedGroup> shared; // null: a group of `local`
    size_t member = 0;                   // the place among those of this process
    Group localGroup = 0;
  };

  std::shared_ptr<ProcessWorld> world;
  int64_t device, lane;
  LocalCommunicator local;
  std::vector<Membership> groups;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_PROCESSCOMMUNICATOR_H
