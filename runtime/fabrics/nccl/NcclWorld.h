//===- NcclWorld.h - Common state of the GPUs of a run --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_NCCL_NCCLWORLD_H
#define DTC_RUNTIME_FABRICS_NCCL_NCCLWORLD_H

#include "runtime/backends/shared/QueueFailure.h"
#include "runtime/fabrics/nccl/Nccl.h"
#include "runtime/fabrics/nccl/NcclGroup.h"
#include "runtime/fabrics/processes/Messages.h"
#include "support/Mesh.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace dtc::runtime::nccl {

/// A listener that an abort calls before it makes queues fail: a thread that sees a failed queue
/// finds the listener's output complete.
class AbortListener {
public:
  virtual ~AbortListener() = default;
  /// Called once, on the thread that aborts, with the mutex of the world. Does not call the world.
  virtual void aborted(const Error &failure) = 0;
};

/// The groups of the GPUs of this process and the failure of the run. A thread asks NCCL for errors
/// of what was enqueued, and ends the communicators when the run has failed. NCCL ends none before
/// the graphs that have work of it are destroyed, so who fails does not wait for that, and this has
/// to outlive the graphs.
class NcclWorld {
public:
  /// This process sees `gpus` GPUs; `messages` connect the processes, null: there is one.
  /// Communicators have `mostChannels` channels at most, 0: as many as NCCL chooses. Throws
  /// ThreadStartError.
  NcclWorld(const Nccl &nccl, Mesh mesh, int gpus, std::shared_ptr<Messages> messages,
            int mostChannels = 0);
  ~NcclWorld();

  const Nccl &api() const { return nccl; }
  const Mesh &getMesh() const { return mesh; }
  int getMostChannels() const { return mostChannels; }

  /// Whether a device of the mesh lives in this process.
  bool isHere(int64_t device) const;
  /// The GPU of a device of this process, as the calls of CUDA count. The GPUs of all processes of
  /// a host are as many as their devices, which are consecutive, or each process sees its own.
  int gpuOf(int64_t device) const { return static_cast<int>(device % gpus); }

  /// The group of `device` over `axes` on a lane, for collectives that are in graphs or for those
  /// that are not; the same object for all its members.
  std::shared_ptr<NcclGroup> openGroup(int64_t device, const std::vector<std::string> &axes,
                                       int64_t lane, bool isInGraphs);
  /// For messages from one device to another: rank 0 sends.
  std::shared_ptr<NcclGroup> openPair(int64_t from, int64_t to);
  /// Connects what was opened since the last call. Each process makes its connections in one order
  /// of all of them, so that no two wait for each other.
  MaybeError connect();
  /// The same for messages, once all processes have connected.
  MaybeError connectPairs();

  /// A queue that fails when the run does, from now on.
  void watch(const std::shared_ptr<QueueFailure> &queue);
  /// `listener` is told of an abort from now on until it is removed. One that came before is what
  /// failure() says.
  void add(AbortListener &listener);
  void remove(AbortListener &listener);
  /// Makes all that runs or will run fail: what waits for others ends soon after the call. Only the
  /// first call counts.
  void abort(const Error &reason);
  /// "another device failed: ..." after an abort.
  MaybeError failure() const;

private:
  /// The use, the axes, the first of the devices, and the lane or the receiver.
  using Key = std::tuple<NcclGroup::Use, std::vector<std::string>, int64_t, int64_t>;

  std::shared_ptr<NcclGroup> open(const Key &key, const std::string &name,
                                  std::vector<int64_t> devices);
  /// For each group the id that one of its processes has drawn and sent to the others.
  Expected<std::vector<ncclUniqueId>>
  shareIds(const std::vector<std::shared_ptr<NcclGroup>> &added);
  void abortHere(const Error &reason);
  void lookForErrors();
  /// With the mutex.
  std::vector<std::shared_ptr<NcclGroup>> allGroups() const;

  const Nccl &nccl;
  const Mesh mesh;
  const int gpus;
  const int mostChannels;
  const std::shared_ptr<Messages> messages;
  const std::vector<int64_t> processOfDevice;
  std::mutex connecting;                            // one group after the other
  std::vector<std::shared_ptr<NcclGroup>> newPairs; // connected, without a message; with it
  mutable std::mutex mutex;
  std::condition_variable ends;
  std::map<Key, std::shared_ptr<NcclGroup>> groups;
  std::vector<std::shared_ptr<QueueFailure>> queues;
  std::vector<AbortListener *> listeners;
  MaybeError aborted;
  bool isEnding = false; // `ends` tells of this and of `aborted`
  std::thread thread;
};

} // namespace dtc::runtime::nccl

#endif // DTC_RUNTIME_FABRICS_NCCL_NCCLWORLD_H
