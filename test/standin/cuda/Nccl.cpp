//===- Nccl.cpp - The stand-in's NCCL ------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A member of a collective leaves what it sends with the others, waits until all have, and takes
// its result from that: its stream stands still until the last member has come, as with NCCL. All
// members have to call the same. Communicators that do not block may take a call later, as often as
// the seed has it: until they are asked and say that they have, nothing is enqueued. The end of a
// communicator waits for its kernels, and for the graphs that have some, as in NCCL 2.28.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Api.h"
#include "test/standin/cuda/Capture.h"
#include "test/standin/cuda/NcclMember.h"

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <thread>
#include <utility>

struct ncclComm {
  std::shared_ptr<dtc::standin::Member> member;
};

namespace dtc::standin {

namespace {

/// Of the calling thread: the calls of each communicator since ncclGroupStart().
struct Group {
  int depth = 0;
  std::vector<std::pair<std::shared_ptr<Member>, std::vector<NcclCall>>> calls;
  std::vector<std::shared_ptr<Member>> initialized;
  std::vector<ncclComm_t> ended; // destroyed or aborted
};
thread_local Group group;

/// Communicators whose members are not all there, by the number in the id. With the engine's lock.
std::map<uint64_t, std::shared_ptr<Clique>> &meetingCliques() {
  static auto &cliques = *new std::map<uint64_t, std::shared_ptr<Clique>>;
  return cliques;
}

ncclResult_t takeCalls(Engine &engine, const std::shared_ptr<Member> &member,
                       const std::vector<NcclCall> &calls) {
  if (!member->blocks)
    member->polls = engine.draw() % 3;
  if (member->polls > 0) {
    member->pending.push_back(calls);
    return ncclInProgress;
  }
  enqueueCalls(engine, member, calls);
  return ncclResult_t(member->asyncError.load());
}

bool isIn(const Engine &engine, const Member &member, const void *address, size_t bytes) {
  if (bytes == 0)
    return true;
  const Allocation *found = engine.memory.find(address);
  auto *first = static_cast<const std::byte *>(address);
  return found && !found->freed && found->device == member.device && first >= found->data &&
         first + bytes <= found->data + found->bytes;
}

ncclResult_t give(const char *function, ncclComm_t communicator, NcclCall given,
                  cudaStream_t handle) {
  std::shared_ptr<Member> member = communicator ? communicator->member : nullptr;
  ncclResult_t result = ncclInvalidArgument;
  cudaError_t error = call(function, [&](Engine &engine, Lock &) {
    if (!member)
      return violation(engine, fmt::format("{} of no communicator", function));
    if (!member->isReady())
      return violation(engine, fmt::format("{} of a communicator that is in progress", function));
    if (cudaError_t failed = findStream(engine, handle, function, given.stream))
      return failed;
    if (given.stream->device != member->device)
      return violation(engine,
                       fmt::format("{} of a communicator of device {} on a stream of device {}",
                                   function, member->device, given.stream->device));
    int ranks = member->clique->ranks;
    if (!isIn(engine, *member, given.sent, given.sentBytes(ranks)) ||
        !isIn(engine, *member, given.received, given.receivedBytes(ranks)))
      return violation(engine, fmt::format("{} of memory that is not all in an allocation of "
                                           "device {}",
                                           given.describe(), member->device));
    bool reduces = given.kind == NcclCall::AllReduce || given.kind == NcclCall::ReduceScatter;
    if ((reduces && !canReduce(given.type, given.reduction)) ||
        (given.isMessage() && (given.peer < 0 || given.peer >= ranks)))
      return violation(engine,
                       fmt::format("{}, which the stand-in does not have", given.describe()));
    if (group.depth == 0) {
      result = takeCalls(engine, member, {given});
      return cudaSuccess;
    }
    result = ncclSuccess;
    for (auto &[other, calls] : group.calls)
      if (other == member) {
        calls.push_back(given);
        return cudaSuccess;
      }
    group.calls.emplace_back(member, std::vector{given});
    return cudaSuccess;
  });
  if (error == cudaSuccess)
    return result;
  if (member)
    member->lastError = fmt::format("{}: {}", function, cudaGetErrorString(error));
  return ncclUnhandledCudaError;
}

/// Whether a graph that has calls of the member exists.
bool isInGraph(const Engine &engine, const Member &member) {
  auto exists = [](const auto &graphs, const std::shared_ptr<const Capture> &capture) {
    return std::any_of(graphs.begin(), graphs.end(),
                       [&](const auto &graph) { return graph.second == capture; });
  };
  return std::any_of(member.captures.begin(), member.captures.end(), [&](const auto &weak) {
    std::shared_ptr<const Capture> capture = weak.lock();
    return capture && (exists(engine.graphs, capture) || exists(engine.executables, capture));
  });
}

/// The use that keeps the communicator from its end; null: none.
const char *findUser(const Engine &engine, const Member &member) {
  bool isDone = std::all_of(member.ends.begin(), member.ends.end(), [&](const auto &end) {
    return end.first->done >= end.second || engine.errorOf(end.first->device);
  });
  // NCCL does not wait for graphs of a device that is lost, which cannot be destroyed any more.
  bool isLost = engine.errorOf(member.device) != cudaSuccess;
  return !isDone ? "a kernel" : !isLost && isInGraph(engine, member) ? "a graph" : nullptr;
}

void reclaim(Engine &engine, Lock &lock, ncclComm_t communicator, const char *function) {
  // Looks are counted, not time: where the machine has other work, the streams get their share of
  // it between two looks as well.
  constexpr std::chrono::milliseconds pause(1);
  auto looks = engine.settings.patience / pause;
  while (const char *user = findUser(engine, *communicator->member)) {
    if (looks-- == 0) {
      engine.violate(fmt::format("{}: rank {} has waited {} ms for the end of {} of the "
                                 "communicator",
                                 function, communicator->member->rank,
                                 engine.settings.patience.count(), user));
      break;
    }
    lock.unlock();
    std::this_thread::sleep_for(pause);
    lock.lock();
  }
  Member &member = *communicator->member;
  engine.memory.take(member.device, -ptrdiff_t(std::exchange(member.bytes, 0)));
  delete communicator;
}

/// Of a communicator: now, or at the end of the group.
void endCommunicator(Engine &engine, Lock &lock, ncclComm_t communicator, const char *function) {
  if (group.depth > 0)
    group.ended.push_back(communicator);
  else
    reclaim(engine, lock, communicator, function);
}

} // namespace

} // namespace dtc::standin

using namespace dtc::standin;

extern "C" {

ncclResult_t ncclGetVersion(int *version) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  *version = engine.settings.ncclVersion;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess:
    return "no error";
  case ncclUnhandledCudaError:
    return "unhandled cuda error";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclInProgress:
    return "NCCL operation in progress";
  default:
    return "invalid usage";
  }
}

const char *ncclGetLastError(ncclComm_t communicator) {
  return communicator ? communicator->member->lastError.c_str() : "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static std::atomic<uint64_t> last = 0;
  uint64_t number = ++last;
  std::memset(id->internal, 0, sizeof(id->internal));
  std::memcpy(id->internal, &number, sizeof(number));
  return ncclSuccess;
}

/// NCCL refuses less than 1 and a minimum above the maximum, and takes 64 for more
/// (envConfigOverride and parseCommConfig in src/init.cc of 2.30); who asks for more is mistaken.
static bool hasValidChannels(const ncclConfig_t &config) {
  auto isUnset = [](int count) { return count == NCCL_CONFIG_UNDEF_INT; };
  auto isValid = [&](int count) { return isUnset(count) || (count >= 1 && count <= 64); };
  return isValid(config.minCTAs) && isValid(config.maxCTAs) &&
         (isUnset(config.minCTAs) || isUnset(config.maxCTAs) || config.minCTAs <= config.maxCTAs);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof(number));
  cudaError_t error = call("ncclCommInitRankConfig", [&](Engine &engine, Lock &) {
    std::shared_ptr<Clique> &clique = meetingCliques()[number];
    if (!clique) {
      clique = std::make_shared<Clique>();
      clique->ranks = ranks;
    }
    if (clique->ranks != ranks || rank < 0 || rank >= ranks)
      return violation(engine, "ncclCommInitRankConfig with ranks that do not fit");
    if (config && !hasValidChannels(*config))
      return violation(engine, "ncclCommInitRankConfig with minCTAs or maxCTAs out of range");
    if (config && config->blocking && group.depth == 0 && ranks > 1)
      return violation(engine, "ncclCommInitRankConfig would wait for the other ranks");
    if (cudaError_t failed = mayWaitForDevice(engine, "ncclCommInitRankConfig", currentDevice()))
      return failed;
    auto member = std::make_shared<Member>();
    member->device = currentDevice();
    member->rank = rank;
    member->blocks = !config || config->blocking;
    if (config && config->maxCTAs != NCCL_CONFIG_UNDEF_INT)
      member->mostChannels = config->maxCTAs;
    member->clique = clique;
    member->polls = member->blocks ? 0 : engine.draw() % 3;
    *communicator = new ncclComm{member};
    if (group.depth > 0)
      group.initialized.push_back(member);
    if (++clique->joined == ranks)
      meetingCliques().erase(number);
    return cudaSuccess;
  });
  return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  endCommunicator(engine, lock, communicator, "ncclCommDestroy");
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  Member &member = *communicator->member;
  member.aborted = true;
  member.pending.clear();
  for (const std::weak_ptr<Moment> &wait : member.waits)
    if (std::shared_ptr<Moment> moment = wait.lock())
      engine.complete(*moment);
  endCommunicator(engine, lock, communicator, "ncclCommAbort");
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t *error) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  const std::shared_ptr<Member> &member = communicator->member;
  const bool waits = member->polls > 0;
  if (waits)
    --member->polls;
  if (waits && member->polls == 0)
    for (const std::vector<NcclCall> &calls : std::exchange(member->pending, {}))
      enqueueCalls(engine, member, calls);
  *error = member->isReady() ? ncclResult_t(member->asyncError.load()) : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *sent, void *received, size_t count, ncclDataType_t type,
                           ncclRedOp_t reduction, ncclComm_t communicator, cudaStream_t stream) {
  return give("ncclAllReduce", communicator,
              {NcclCall::AllReduce, sent, received, count, type, reduction}, stream);
}

ncclResult_t ncclReduceScatter(const void *sent, void *received, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t communicator,
                               cudaStream_t stream) {
  return give("ncclReduceScatter", communicator,
              {NcclCall::ReduceScatter, sent, received, count, type, reduction}, stream);
}

ncclResult_t ncclAllGather(const void *sent, void *received, size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  return give("ncclAllGather", communicator, {NcclCall::AllGather, sent, received, count, type},
              stream);
}

ncclResult_t ncclSend(const void *sent, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return give("ncclSend", communicator, {NcclCall::Send, sent, nullptr, count, type, ncclSum, peer},
              stream);
}

ncclResult_t ncclRecv(void *received, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return give("ncclRecv", communicator,
              {NcclCall::Recv, nullptr, received, count, type, ncclSum, peer}, stream);
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group.depth > 0)
    return ncclSuccess;
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  ncclResult_t result = ncclSuccess;
  for (const auto &[member, calls] : std::exchange(group.calls, {}))
    if (ncclResult_t taken = takeCalls(engine, member, calls); taken != ncclSuccess)
      result = taken;
  for (const auto &member : std::exchange(group.initialized, {}))
    if (!member->isReady())
      result = ncclInProgress;
  for (ncclComm_t communicator : std::exchange(group.ended, {}))
    reclaim(engine, lock, communicator, "ncclGroupEnd");
  return result;
}

} // extern "C"
