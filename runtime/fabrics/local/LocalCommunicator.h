//===- LocalCommunicator.h - Devices that are threads ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_LOCAL_LOCALCOMMUNICATOR_H
#define DTC_RUNTIME_FABRICS_LOCAL_LOCALCOMMUNICATOR_H

#include "runtime/fabrics/local/LocalCollective.h"
#include "runtime/fabrics/local/LocalGroup.h"
#include "runtime/fabrics/local/LocalMailbox.h"
#include "runtime/fabrics/local/QueuedNetwork.h"
#include "support/Mesh.h"

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace dtc::runtime {

/// The state that the devices of one process share: groups for collectives, mailboxes for
/// transfers.
class LocalWorld {
public:
  explicit LocalWorld(Mesh mesh)
      : mesh(std::move(mesh)), transferResults(devices()), mailboxes(devices()) {}

  /// The group of `device` over `axes` on a lane; the same object for all its members.
  std::shared_ptr<LocalGroup> openGroup(int64_t device, const std::vector<std::string> &axes,
                                        int64_t lane);
  /// The messages to a device, and the ends of its own transfers.
  LocalMailbox &mailbox(int64_t device) { return mailboxes[static_cast<size_t>(device)]; }
  LocalResults &results(int64_t device) { return transferResults[static_cast<size_t>(device)]; }
  const Mesh &getMesh() const { return mesh; }
  /// Makes all collectives and transfers that wait or will wait fail, on all devices, with
  /// failure(). Only the first call counts.
  void abort(const MaybeError &reason = std::nullopt);
  /// "another device failed: ..." after an abort.
  MaybeError failure() const;

private:
  size_t devices() const { return static_cast<size_t>(mesh.numDevices()); }
  /// The axes, the first of the devices that belong to the group, and the lane.
  using Key = std::tuple<std::vector<std::string>, int64_t, int64_t>;

  Mesh mesh;
  mutable std::mutex mutex;
  std::map<Key, std::shared_ptr<LocalGroup>> groups;
  MaybeError aborted;
  std::vector<LocalResults> transferResults;
  std::vector<LocalMailbox> mailboxes; // last: their threads use the results
};

/// Devices that are threads of one process. Members show each other the operands of a whole bucket,
/// then read and write them where they lie, between two barriers, so nothing is copied that is not
/// part of a result. Of a small bucket the last member to come does all the work, and one barrier
/// is enough. Waits are those of WaitBriefly.h. Reductions add in rank order: every member gets the
/// same bits in every run.
class LocalCommunicator final : public QueuedCommunicator {
public:
  LocalCommunicator(std::shared_ptr<LocalWorld> world, int64_t device, int64_t lane = 0)
      : world(std::move(world)), device(device), lane(lane) {}

  Expected<Group> openGroup(const std::vector<std::string> &axes) override;
  MaybeError run(Group group, std::span<const CollectiveSpec> specs,
                 std::span<const CollectiveOperands> operands) override;
  MaybeError run(Group group, const CollectiveSpec &spec, const void *input, void *output);

private:
  struct Membership {
    std::shared_ptr<LocalGroup> group;
    int64_t rank;
    LocalCollective::Workspace workspace;
  };

  std::shared_ptr<LocalWorld> world;
  int64_t device, lane;
  std::vector<Membership> groups;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_LOCAL_LOCALCOMMUNICATOR_H
