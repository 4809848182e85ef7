//===- NcclGroup.h - The communicators of NCCL of one group ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_NCCL_NCCLGROUP_H
#define DTC_RUNTIME_FABRICS_NCCL_NCCLGROUP_H

#include "runtime/fabrics/nccl/Nccl.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dtc::runtime::nccl {

class NcclWorld;

/// A communicator of NCCL for each member of a group that is a GPU of this process; the others are
/// in other processes. They do not block: where NCCL waits for another member, the caller looks now
/// and then whether the run has failed. A member's calls may come from any thread, one at a time;
/// abort() from any other.
class NcclGroup {
public:
  /// A communicator of NCCL has one: calls in graphs and others do not mix, for which NCCL would
  /// put events of its own into graphs ("Using NCCL with CUDA Graphs" in its user guide).
  enum class Use { Collectives, InGraphs, Messages };

  NcclGroup(NcclWorld &world, Use use, std::string name, std::vector<int64_t> devices);
  ~NcclGroup();

  size_t size() const { return devices.size(); }
  const std::vector<int64_t> &getDevices() const { return devices; }
  const std::string &getName() const { return name; }
  Use getUse() const { return use; }

  /// Makes the communicators and waits until they are there, which is when all processes that have
  /// members have been given the same id.
  MaybeError connect(const ncclUniqueId &id);
  bool isConnected() const { return connected; }
  /// Of messages, after connect() of all groups of all processes: sends a byte from rank 0 to rank
  /// 1, so that messages find their connection.
  MaybeError connectPair();

  /// Lets rank call functions of NCCL. `what` is for messages, "all_reduce". The error is NCCL's,
  /// or that of the run if it failed meanwhile.
  MaybeError call(size_t rank, const char *what,
                  const std::function<ncclResult_t(ncclComm_t)> &functions);
  /// Announces the next collective of a rank. An error, which ends the run, if other members in
  /// this process have announced another one. All processes have the same plan.
  MaybeError agree(size_t rank, uint64_t fingerprint, const char *what);

  /// An error that NCCL has found in work that was enqueued.
  MaybeError findAsyncError();
  /// Ends what the communicators do, which cannot be used any more. Returns when no graph has work
  /// of them: not for a thread that somebody waits for who has graphs.
  void abort();

private:
  struct Member {
    int gpu = -1; // of another process
    ncclComm_t communicator = nullptr;
    std::mutex mutex;          // of the communicator, and of what follows
    const char *last = "none"; // the last collective or message, for messages
    uint64_t calls = 0;
  };

  MaybeError initialize(const ncclUniqueId &id);
  MaybeError allocatePair();
  bool isHere(size_t rank) const { return members[rank].gpu >= 0; }
  MaybeError useGpuOf(size_t rank) const;
  /// Waits until a call of a rank, which gave `result`, has been taken. Its mutex is held.
  MaybeError settle(size_t rank, ncclResult_t result, const char *what);
  Error describe(size_t rank, ncclResult_t result, const std::string &what) const;

  NcclWorld &world;
  const Use use;
  std::string name; // "axes [dp], devices [0, 1]"
  std::vector<int64_t> devices;
  std::deque<Member> members;
  size_t membersHere = 0;
  std::atomic<bool> connected = false;
  /// Of connectPair(), which allocates and frees nothing: that would wait for all that the GPU
  /// does, which may wait for others.
  std::vector<void *> bytes;
  std::vector<cudaStream_t> streams;

  std::mutex agreement;
  struct Said {
    uint64_t fingerprint;
    size_t members;
  };
  std::deque<Said> said;       // collectives that not all members here have come to
  uint64_t firstSaid = 0;      // the number of the first of them
  std::vector<uint64_t> comes; // how many each rank has come to
};

} // namespace dtc::runtime::nccl

#endif // DTC_RUNTIME_FABRICS_NCCL_NCCLGROUP_H
