//===- NcclMember.h - Members of the stand-in's communicators ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_NCCLMEMBER_H
#define DTC_TEST_STANDIN_CUDA_NCCLMEMBER_H

#include "test/standin/cuda/Engine.h"

#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dtc::standin {

size_t widthOf(ncclDataType_t type);

/// A call of one member.
struct NcclCall {
  enum Kind { AllReduce, ReduceScatter, AllGather, Send, Recv } kind;
  const void *sent = nullptr;
  void *received = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t reduction = ncclSum;
  int peer = 0;
  std::shared_ptr<Stream> stream = {};

  bool isMessage() const { return kind == Send || kind == Recv; }
  std::string describe() const {
    constexpr const char *names[] = {"ncclAllReduce", "ncclReduceScatter", "ncclAllGather",
                                     "ncclSend", "ncclRecv"};
    return fmt::format("{} of {} elements of type {} (reduction {})", names[kind], count, int(type),
                       int(reduction));
  }
  /// Whether the members of a collective call the same.
  bool matches(const NcclCall &other) const {
    return kind == other.kind && count == other.count && type == other.type &&
           reduction == other.reduction;
  }
  size_t sentBytes(int ranks) const {
    return kind == Recv ? 0 : count * widthOf(type) * (kind == ReduceScatter ? size_t(ranks) : 1);
  }
  size_t receivedBytes(int ranks) const {
    return kind == Send ? 0 : count * widthOf(type) * (kind == AllGather ? size_t(ranks) : 1);
  }
};

/// A collective that members come to.
struct Meeting {
  NcclCall first;
  int came = 0;
  std::vector<std::vector<std::byte>> sent; // by rank
  std::vector<uint8_t> hasSent;
  /// arrived[from][to]: what `from` sends is there for `to`.
  std::vector<std::vector<std::shared_ptr<Moment>>> arrived;
};

/// A message that both ends come to.
struct Letter {
  NcclCall first; // of the end that came first
  std::vector<std::byte> data;
  bool hasData = false;
  std::shared_ptr<Moment> sent = std::make_shared<Moment>();
  std::shared_ptr<Moment> expected = std::make_shared<Moment>();
};

struct Clique {
  int ranks = 0, joined = 0;
  std::map<uint64_t, std::shared_ptr<Meeting>> meetings; // that not all have come to
  /// By sender and receiver: the messages with only one end so far. One of the two is empty.
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Letter>>> sends, receives;
};

struct Member {
  int device = 0, rank = 0;
  bool blocks = true;
  std::shared_ptr<Clique> clique;
  uint64_t collectives = 0;
  /// Calls that are not taken yet, and how often NCCL has to be asked before they are.
  std::vector<std::vector<NcclCall>> pending;
  uint64_t polls = 0;
  std::vector<std::weak_ptr<Moment>> waits;
  /// The end of its enqueued work on each stream.
  std::map<std::shared_ptr<Stream>, uint64_t> ends;
  /// Graphs that have calls of it, if they still exist.
  std::vector<std::weak_ptr<const Capture>> captures;
  std::shared_ptr<std::atomic<bool>> abortFlag = std::make_shared<std::atomic<bool>>(false);
  std::atomic<bool> &aborted = *abortFlag;
  std::atomic<int> asyncError = ncclSuccess;
  std::string lastError;
  /// Whether collectives have connected it, and which peers messages have.
  bool isConnected = false;
  std::set<int> connectedPeers;
  size_t bytes = 0;                                   // of the device, for its connections
  int mostChannels = std::numeric_limits<int>::max(); // by its config

  bool isReady() const { return polls == 0 && clique->joined == clique->ranks; }
};

/// Whether the stand-in has the reduction.
bool canReduce(ncclDataType_t type, ncclRedOp_t reduction);

/// Enqueues the calls of a member between ncclGroupStart() and ncclGroupEnd(). With the engine's
/// lock.
void enqueueCalls(Engine &engine, const std::shared_ptr<Member> &member,
                  const std::vector<NcclCall> &calls);

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_NCCLMEMBER_H
