//===- ProcessWorld.h - Common state of a process -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_PROCESSWORLD_H
#define DTC_RUNTIME_FABRICS_PROCESSES_PROCESSWORLD_H

#include "runtime/fabrics/local/LocalCommunicator.h"
#include "runtime/fabrics/processes/Messages.h"
#include "runtime/fabrics/processes/ProcessCollective.h"
#include "runtime/fabrics/processes/TransferProgress.h"
#include "support/Mesh.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace dtc::runtime {

/// The members of a group that live in this process: they meet, and the last one to come does the
/// collective for all of them.
class SharedGroup {
public:
  SharedGroup(Messages &messages, ProcessGroup group, int64_t tag, HostSharing sharing)
      : collective(messages, std::move(group), tag, sharing),
        localGroup(collective.getGroup().ownRanks().size()) {}

  size_t numMembers() const { return collective.getGroup().numMembers(); }
  /// For the member of that place among those of this process. It is an error if the group was
  /// aborted or its members differ, which aborts it.
  MaybeError run(size_t member, std::span<const CollectiveSpec> specs,
                 std::span<const CollectiveOperands> operands);
  void abort() { localGroup.abort(); }

private:
  ProcessCollective collective;
  LocalGroup localGroup;
  std::vector<std::span<const CollectiveOperands>> published;
  MaybeError failure; // of the last collective
};

class ProcessWorld {
public:
  ProcessWorld(Mesh mesh, std::vector<int64_t> processOfDevice, std::shared_ptr<Messages> messages,
               HostSharing sharing);
  ~ProcessWorld();

  const Mesh &getMesh() const { return mesh; }
  Messages &getMessages() const { return *messages; }
  int64_t processOf(int64_t device) const { return processOfDevice[static_cast<size_t>(device)]; }
  std::vector<int64_t> ownDevices() const;
  /// For groups whose members are all in this process.
  const std::shared_ptr<LocalWorld> &getLocal() const { return local; }
  TransferProgress &getProgress() { return progress; }
  LocalResults &results(int64_t device) { return transferResults.at(device); }

  /// The group of `device` over `axes` on a lane; the same object for all its members. Null if all
  /// of them are in this process.
  Expected<std::shared_ptr<SharedGroup>>
  openGroup(int64_t device, const std::vector<std::string> &axes, int64_t lane);
  /// The tag of messages from one device to another.
  int64_t transferTag(int64_t from, int64_t to) const;
  /// Whether the network has as many tags as the mesh needs for messages between devices.
  MaybeError checkTags() const;

  void abort(const Error &reason) { messages->abort(reason); }
  MaybeError failure() const;

private:
  void abortHere(const Error &reason);

  Mesh mesh;
  std::vector<int64_t> processOfDevice;
  std::shared_ptr<Messages> messages;
  HostSharing sharing;
  std::shared_ptr<LocalWorld> local;
  std::map<int64_t, LocalResults> transferResults; // by device of this process

  std::mutex mutex;
  /// The axes, the first of the devices that belong to the group, and the lane.
  std::map<std::tuple<std::vector<std::string>, int64_t, int64_t>, std::shared_ptr<SharedGroup>>
      groups;
  /// All devices open groups over the same axes in the same order, so that the numbers of these are
  /// the same in all processes.
  std::map<std::vector<std::string>, int64_t> axesNumbers;
  bool aborted = false;
  TransferProgress progress; // last: its thread uses the others
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_PROCESSWORLD_H
