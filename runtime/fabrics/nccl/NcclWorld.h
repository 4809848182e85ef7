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

/// The groups of all GPUs of a run and its failure. A thread asks NCCL for errors of what was
/// enqueued.
class NcclWorld {
public:
  /// Throws ThreadStartError.
  NcclWorld(const Nccl &nccl, Mesh mesh);
  ~NcclWorld();

  const Nccl &api() const { return nccl; }
  const Mesh &getMesh() const { return mesh; }

  /// The group of `device` over `axes` on a lane; the same object for all its members, made when
  /// the first one asks.
  Expected<std::shared_ptr<NcclGroup>>
  openGroup(int64_t device, const std::vector<std::string> &axes, int64_t lane);
  /// For messages from one device to another: rank 0 sends. It is connected.
  Expected<std::shared_ptr<NcclGroup>> openPair(int64_t from, int64_t to);

  /// A queue that fails when the run does, from now on.
  void watch(const std::shared_ptr<QueueFailure> &queue);
  /// Makes all that runs or will run fail. Only the first call counts.
  void abort(const Error &reason);
  /// "another device failed: ..." after an abort.
  MaybeError failure() const;

private:
  /// The kind, the axes, the first of the devices, and the lane or the receiver.
  using Key = std::tuple<bool, std::vector<std::string>, int64_t, int64_t>;

  Expected<std::shared_ptr<NcclGroup>> open(const Key &key, const std::string &name,
                                            std::vector<int64_t> devices);
  void lookForErrors();

  const Nccl &nccl;
  const Mesh mesh;
  std::mutex opening; // one group after the other
  mutable std::mutex mutex;
  std::condition_variable ends;
  std::map<Key, std::shared_ptr<NcclGroup>> groups;
  std::vector<std::shared_ptr<QueueFailure>> queues;
  MaybeError aborted;
  bool isEnding = false;
  std::thread thread;
};

} // namespace dtc::runtime::nccl

#endif // DTC_RUNTIME_FABRICS_NCCL_NCCLWORLD_H
