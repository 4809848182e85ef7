//===- NcclGroup.cpp - The communicators of NCCL of one group -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/nccl/NcclGroup.h"

#include "runtime/backends/cuda/CudaError.h"
#include "runtime/fabrics/nccl/NcclWorld.h"
#include "support/Format.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <thread>
#include <utility>

namespace dtc::runtime::nccl {

using Clock = std::chrono::steady_clock;

/// How long communicators may take to meet. All processes connect them at the same place.
static constexpr auto kMeetingTime = std::chrono::seconds(120);
/// For how long a call that NCCL has not taken yet is looked at without sleeping: most are taken
/// within it, and each sleep takes some 50 us more than it says.
static constexpr auto kBusy = std::chrono::microseconds(200);
/// Between two looks after that.
static constexpr auto kPause = std::chrono::microseconds(20);

NcclGroup::NcclGroup(NcclWorld &world, Use use, std::string name, std::vector<int64_t> devices)
    : world(world), use(use), name(std::move(name)), devices(std::move(devices)),
      members(this->devices.size()), comes(this->devices.size()) {
  for (size_t rank = 0; rank < size(); ++rank)
    if (world.isHere(this->devices[rank])) {
      members[rank].gpu = world.gpuOf(this->devices[rank]);
      ++membersHere;
    }
}

NcclGroup::~NcclGroup() {
  for (Member &member : members)
    if (member.communicator)
      (void)world.api().commDestroy(member.communicator);
  for (size_t rank = 0; rank < bytes.size(); ++rank) {
    if (!isHere(rank) || cudaSetDevice(members[rank].gpu) != cudaSuccess)
      continue;
    if (streams[rank])
      (void)cudaStreamDestroy(streams[rank]);
    if (bytes[rank])
      (void)cudaFree(bytes[rank]);
  }
}

/// NCCL does not say that it found too little memory, but that a call of CUDA has failed.
static std::string describeMemory(ncclResult_t result, int gpu) {
  size_t free = 0, total = 0;
  if ((result != ncclUnhandledCudaError && result != ncclSystemError) ||
      cudaSetDevice(gpu) != cudaSuccess || cudaMemGetInfo(&free, &total) != cudaSuccess)
    return "";
  return fmt::format(
      "; cuda {} has {} free, and communicators take what they need of it beside the "
      "plan's memory: if that is little, compile for more or smaller shards, or "
      "limit their channels (--nccl-channels)",
      gpu, formatBytes(free));
}

Error NcclGroup::describe(size_t rank, ncclResult_t result, const std::string &what) const {
  const Nccl &api = world.api();
  const char *last = api.getLastError(members[rank].communicator);
  std::string detail = last && *last ? fmt::format(": {}", last) : "";
  return Error{fmt::format("NCCL cannot {}, {}, rank {} on cuda {}: {}{}{}; NCCL_DEBUG=WARN prints "
                           "more",
                           what, name, rank, members[rank].gpu, api.getErrorString(result), detail,
                           describeMemory(result, members[rank].gpu))};
}

MaybeError NcclGroup::useGpuOf(size_t rank) const {
  return cuda::checkCuda(cudaSetDevice(members[rank].gpu),
                         fmt::format("cannot use cuda {}", members[rank].gpu));
}

MaybeError NcclGroup::connect(const ncclUniqueId &id) {
  MaybeError error = initialize(id);
  if (!error && use == Use::Messages)
    error = allocatePair();
  if (error)
    abort();
  else
    connected = true;
  return error;
}

MaybeError NcclGroup::initialize(const ncclUniqueId &id) {
  const Nccl &api = world.api();
  std::vector<std::unique_lock<std::mutex>> locks;
  for (Member &member : members)
    locks.emplace_back(member.mutex);
  // Who ends the communicators of a failed run waits for these locks, after the failure is known.
  if (MaybeError error = world.failure())
    return error;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (world.getMostChannels() > 0)
    config.maxCTAs = world.getMostChannels();
#if NCCL_VERSION_CODE >= 22900
  config.graphUsageMode = use == Use::InGraphs ? 1 : 0;
#endif
  ncclResult_t result = api.groupStart();
  MaybeError error;
  for (size_t rank = 0; rank < size() && result == ncclSuccess && !error; ++rank) {
    if (!isHere(rank))
      continue;
    error = useGpuOf(rank);
    if (!error)
      result = api.commInitRankConfig(&members[rank].communicator, static_cast<int>(size()), id,
                                      static_cast<int>(rank), &config);
    if (result == ncclInProgress)
      result = ncclSuccess;
  }
  ncclResult_t ended = api.groupEnd();
  if (error)
    return error;
  if (result == ncclSuccess)
    result = ended;
  // They are asked in any case.
  if (result == ncclSuccess)
    result = ncclInProgress;
  for (size_t rank = 0; rank < size(); ++rank)
    if (isHere(rank))
      if (MaybeError failed = settle(rank, result, "make a communicator"))
        return failed;
  return std::nullopt;
}

MaybeError NcclGroup::settle(size_t rank, ncclResult_t result, const char *what) {
  ncclComm_t communicator = members[rank].communicator;
  const Clock::time_point begin = Clock::now();
  while (result == ncclInProgress) {
    ncclResult_t state = ncclSuccess;
    result = world.api().commGetAsyncError(communicator, &state);
    if (result == ncclSuccess)
      result = state;
    if (result != ncclInProgress)
      break;
    if (MaybeError error = world.failure())
      return error;
    const auto waited = Clock::now() - begin;
    if (waited > kMeetingTime)
      return Error{fmt::format("NCCL cannot {}, {}, rank {} on cuda {}: the other members have not "
                               "come within {} s; NCCL_DEBUG=INFO prints what it waits for",
                               what, name, rank, members[rank].gpu, kMeetingTime.count())};
    if (waited < kBusy)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPause);
  }
  return result == ncclSuccess ? std::nullopt : MaybeError(describe(rank, result, what));
}

MaybeError NcclGroup::call(size_t rank, const char *what,
                           const std::function<ncclResult_t(ncclComm_t)> &functions) {
  Member &member = members[rank];
  std::lock_guard lock(member.mutex);
  if (MaybeError error = world.failure())
    return error;
  if (!member.communicator)
    return Error{fmt::format("{}: {} is not connected", what, name)};
  member.last = what;
  ++member.calls;
  return settle(rank, functions(member.communicator), what);
}

MaybeError NcclGroup::agree(size_t rank, uint64_t fingerprint, const char *what) {
  bool differs = false;
  {
    std::lock_guard lock(agreement);
    size_t at = static_cast<size_t>(comes[rank]++ - firstSaid);
    if (at == said.size())
      said.push_back({fingerprint, 0});
    differs = said[at].fingerprint != fingerprint;
    if (++said[at].members == membersHere) {
      // Those before have been met by all members too.
      said.pop_front();
      ++firstSaid;
    }
  }
  if (!differs)
    return std::nullopt;
  world.abort(Error{fmt::format("{}: the members of the group called different collectives ({}, "
                                "rank {})",
                                what, name, rank)});
  return world.failure();
}

MaybeError NcclGroup::allocatePair() {
  MaybeError error;
  auto check = [&](cudaError_t status) {
    if (!error)
      error = cuda::checkCuda(status, "cannot connect two GPUs (" + name + ")");
    return !error;
  };
  bytes.resize(2);
  streams.resize(2);
  for (size_t rank = 0; rank < 2; ++rank)
    if (isHere(rank))
      (void)(check(cudaSetDevice(members[rank].gpu)) &&
             check(cudaStreamCreateWithFlags(&streams[rank], cudaStreamNonBlocking)) &&
             check(cudaMalloc(&bytes[rank], 1)));
  return error;
}

MaybeError NcclGroup::connectPair() {
  const Nccl &api = world.api();
  {
    std::scoped_lock lock(members[0].mutex, members[1].mutex);
    if (MaybeError error = world.failure()) // after an abort there are no communicators
      return error;
    ncclResult_t result = api.groupStart();
    auto take = [&](ncclResult_t given) {
      if (result == ncclSuccess && given != ncclInProgress)
        result = given;
    };
    if (isHere(0))
      take(api.send(bytes[0], 1, ncclUint8, 1, members[0].communicator, streams[0]));
    if (isHere(1))
      take(api.recv(bytes[1], 1, ncclUint8, 0, members[1].communicator, streams[1]));
    ncclResult_t ended = api.groupEnd();
    result = result == ncclSuccess ? ended : result;
    for (size_t rank = 0; rank < 2; ++rank)
      if (isHere(rank))
        if (MaybeError error = settle(rank, result, "connect two GPUs"))
          return error;
  }
  for (size_t rank = 0; rank < 2; ++rank) {
    if (!isHere(rank))
      continue;
    if (MaybeError error = useGpuOf(rank))
      return error;
    if (MaybeError error = cuda::checkCuda(cudaStreamSynchronize(streams[rank]),
                                           "cannot connect two GPUs (" + name + ")"))
      return error;
  }
  return std::nullopt;
}

MaybeError NcclGroup::findAsyncError() {
  for (size_t rank = 0; rank < size(); ++rank) {
    Member &member = members[rank];
    std::unique_lock lock(member.mutex, std::try_to_lock);
    if (!lock || !member.communicator)
      continue; // who has it looks too
    ncclResult_t state = ncclSuccess;
    ncclResult_t result = world.api().commGetAsyncError(member.communicator, &state);
    if (result == ncclSuccess)
      result = state;
    if (result != ncclSuccess && result != ncclInProgress)
      return describe(rank, result,
                      fmt::format("go on; call {}, {}, was the last", member.calls, member.last));
  }
  return std::nullopt;
}

void NcclGroup::abort() {
  const Nccl &api = world.api();
  (void)api.groupStart();
  for (Member &member : members) {
    ncclComm_t communicator = nullptr;
    {
      std::lock_guard lock(member.mutex);
      communicator = std::exchange(member.communicator, nullptr);
    }
    if (!communicator)
      continue;
    // Without the lock: NCCL may wait, and callers of call() may not.
    (void)cudaSetDevice(member.gpu);
    (void)api.commAbort(communicator);
  }
  (void)api.groupEnd();
}

} // namespace dtc::runtime::nccl
