//===- NcclMember.cpp - Members of the stand-in's communicators ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/NcclMember.h"

#include "test/standin/cuda/Api.h"
#include "test/standin/cuda/Capture.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>

namespace dtc::standin {

size_t widthOf(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8:
    return 1;
  case ncclFloat16:
  case ncclBfloat16:
    return 2;
  case ncclInt64:
  case ncclUint64:
  case ncclFloat64:
    return 8;
  default:
    return 4;
  }
}

namespace {

template <typename T> T combine(ncclRedOp_t reduction, T a, T b) {
  if (reduction == ncclSum)
    return static_cast<T>(a + b);
  // A NaN is forgotten.
  if constexpr (std::is_floating_point_v<T>)
    return reduction == ncclMax ? std::fmax(a, b) : std::fmin(a, b);
  else
    return reduction == ncclMax ? std::max(a, b) : std::min(a, b);
}

/// The elements of `count` that go round the ring together for all ranks: a loop of a channel has a
/// part for each rank. NCCL's parts depend on the protocol, the channels and the size; all of them
/// are multiples of 16 bytes, and that the last loop, or the only one,
/// is divided evenly.
size_t partOf(size_t left, size_t ranks, size_t width) {
  constexpr size_t kAlignment = 16, kLongest = 1024; // bytes
  size_t bytes = (left + ranks - 1) / ranks * width;
  return std::min(kLongest, (bytes + kAlignment - 1) / kAlignment * kAlignment) / width;
}

/// The rank that an element of an AllReduce belongs to: the last one that adds to it, and hands the
/// sum on (NCCL 2.28, runRing() in src/device/all_reduce.h).
size_t ownerOf(size_t element, size_t count, size_t ranks, size_t width) {
  for (size_t begin = 0;;) {
    size_t part = partOf(count - begin, ranks, width);
    if (element < begin + part * ranks)
      return (element - begin) / part;
    begin += part * ranks;
  }
}

/// The sum of each element begins at the rank after its owner and goes round the ring to the owner.
/// Of a ReduceScatter, a rank owns what it receives (runRing() in src/device/reduce_scatter.h).
template <typename T>
void reduceAs(const Meeting &meeting, size_t begin, const NcclCall &call, bool inRankOrder) {
  auto *out = static_cast<T *>(call.received);
  const size_t ranks = meeting.sent.size();
  for (size_t i = 0; i < call.count; ++i) {
    auto at = [&](size_t rank) {
      T value;
      std::memcpy(&value, meeting.sent[rank].data() + (begin + i) * sizeof(T), sizeof(T));
      return value;
    };
    size_t owner = inRankOrder ? ranks - 1
                   : call.kind == NcclCall::ReduceScatter
                       ? begin / call.count
                       : ownerOf(i, call.count, ranks, sizeof(T));
    T result = at((owner + 1) % ranks);
    for (size_t step = 2; step <= ranks; ++step)
      result = combine(call.reduction, at((owner + step) % ranks), result);
    out[i] = result;
  }
}

} // namespace

bool canReduce(ncclDataType_t type, ncclRedOp_t reduction) {
  switch (type) {
  case ncclFloat32:
  case ncclFloat64:
  case ncclInt32:
  case ncclUint32:
  case ncclUint64:
  case ncclUint8:
    return reduction == ncclSum || reduction == ncclMax || reduction == ncclMin;
  default:
    return false;
  }
}

namespace {

void reduce(const Meeting &meeting, size_t begin, const NcclCall &call, bool inRankOrder) {
  switch (call.type) {
  case ncclFloat32:
    return reduceAs<float>(meeting, begin, call, inRankOrder);
  case ncclFloat64:
    return reduceAs<double>(meeting, begin, call, inRankOrder);
  case ncclInt32: // which wraps around
    if (call.reduction != ncclSum)
      return reduceAs<int32_t>(meeting, begin, call, inRankOrder);
    return reduceAs<uint32_t>(meeting, begin, call, inRankOrder);
  case ncclUint32:
    return reduceAs<uint32_t>(meeting, begin, call, inRankOrder);
  case ncclUint64:
    return reduceAs<uint64_t>(meeting, begin, call, inRankOrder);
  default:
    return reduceAs<uint8_t>(meeting, begin, call, inRankOrder);
  }
}

void enqueueWork(Engine &engine, const NcclCall &call, const char *part,
                 std::function<void()> work) {
  engine.enqueue(call.stream, {Operation::Kind::Work,
                               [call, part] {
                                 return fmt::format("{} ({}) on stream {}", call.describe(), part,
                                                    call.stream->number);
                               },
                               [work = std::move(work)]() -> std::optional<Failure> {
                                 work();
                                 return std::nullopt;
                               },
                               nullptr});
}

void enqueueRecord(Engine &engine, const std::shared_ptr<Stream> &stream,
                   const std::shared_ptr<Moment> &moment) {
  engine.enqueue(stream, {Operation::Kind::Record, [] { return std::string("NCCL has come"); },
                          nullptr, moment});
}

void enqueueWait(Engine &engine, Member &member, const std::shared_ptr<Stream> &stream,
                 const std::shared_ptr<Moment> &moment) {
  if (member.aborted) // a kernel that is launched later ends at once too
    return;
  engine.enqueue(
      stream, {Operation::Kind::Wait, [] { return std::string("NCCL waits"); }, nullptr, moment});
  std::erase_if(member.waits, [](const auto &wait) { return wait.expired(); });
  member.waits.push_back(moment);
}

void enqueueCollective(Engine &engine, const std::shared_ptr<Member> &member,
                       const NcclCall &call) {
  Clique &clique = *member->clique;
  auto ranks = size_t(clique.ranks), rank = size_t(member->rank);
  uint64_t number = member->collectives++;
  std::shared_ptr<Meeting> meeting = clique.meetings[number];
  if (!meeting) {
    meeting = std::make_shared<Meeting>();
    meeting->first = call;
    meeting->sent.resize(ranks);
    meeting->hasSent.resize(ranks);
    meeting->arrived.resize(ranks);
    for (auto &row : meeting->arrived)
      for (size_t to = 0; to < ranks; ++to)
        row.push_back(std::make_shared<Moment>());
    clique.meetings[number] = meeting;
  } else if (!meeting->first.matches(call)) {
    engine.violate(fmt::format("collective {} of a communicator: rank {} calls {}, another one {}",
                               number, rank, call.describe(), meeting->first.describe()));
    return;
  }
  if (++meeting->came == clique.ranks)
    clique.meetings.erase(number);
  enqueueWork(engine, call, "gives", [=, bytes = call.sentBytes(clique.ranks)] {
    auto *data = static_cast<const std::byte *>(call.sent);
    meeting->sent[rank].assign(data, data + bytes);
    meeting->hasSent[rank] = true;
  });
  for (size_t other = 0; other < ranks; ++other)
    if (other != rank)
      enqueueRecord(engine, call.stream, meeting->arrived[rank][other]);
  for (size_t other = 0; other < ranks; ++other)
    if (other != rank)
      enqueueWait(engine, *member, call.stream, meeting->arrived[other][rank]);
  bool inRankOrder = engine.settings.addsInRankOrder;
  enqueueWork(engine, call, "takes", [=] {
    if (member->aborted)
      return;
    for (uint8_t hasSent : meeting->hasSent)
      if (!hasSent) {
        member->asyncError = ncclRemoteError; // its GPU is lost
        return;
      }
    if (call.kind != NcclCall::AllGather)
      return reduce(*meeting, call.kind == NcclCall::ReduceScatter ? rank * call.count : 0, call,
                    inRankOrder);
    auto *out = static_cast<std::byte *>(call.received);
    for (const std::vector<std::byte> &sent : meeting->sent) {
      std::memcpy(out, sent.data(), sent.size());
      out += sent.size();
    }
  });
}

/// The other end's, or a new one.
std::shared_ptr<Letter> takeLetter(Engine &engine, Member &member, const NcclCall &call) {
  Clique &clique = *member.clique;
  bool sends = call.kind == NcclCall::Send;
  std::pair<int, int> pair =
      sends ? std::pair(member.rank, call.peer) : std::pair(call.peer, member.rank);
  auto &others = sends ? clique.receives[pair] : clique.sends[pair];
  if (others.empty()) {
    auto letter = std::make_shared<Letter>();
    letter->first = call;
    (sends ? clique.sends[pair] : clique.receives[pair]).push_back(letter);
    return letter;
  }
  std::shared_ptr<Letter> letter = others.front();
  others.pop_front();
  if (letter->first.count != call.count || letter->first.type != call.type)
    engine.violate(fmt::format("rank {} calls {}, its peer {} has called {}", member.rank,
                               call.describe(), call.peer, letter->first.describe()));
  return letter;
}

/// Messages of a group of calls, which all wait together.
void enqueueMessages(Engine &engine, const std::shared_ptr<Member> &member,
                     const std::vector<NcclCall> &calls) {
  std::vector<std::shared_ptr<Letter>> letters;
  for (const NcclCall &call : calls)
    letters.push_back(takeLetter(engine, *member, call));
  const NcclCall &first = calls.front();
  enqueueWork(engine, first, "gives", [=] {
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].kind != NcclCall::Send)
        continue;
      auto *data = static_cast<const std::byte *>(calls[i].sent);
      letters[i]->data.assign(data, data + calls[i].sentBytes(0));
      letters[i]->hasData = true;
    }
  });
  for (size_t i = 0; i < calls.size(); ++i)
    enqueueRecord(engine, first.stream,
                  calls[i].kind == NcclCall::Send ? letters[i]->sent : letters[i]->expected);
  for (size_t i = 0; i < calls.size(); ++i)
    enqueueWait(engine, *member, first.stream,
                calls[i].kind == NcclCall::Send ? letters[i]->expected : letters[i]->sent);
  enqueueWork(engine, first, "takes", [=] {
    for (size_t i = 0; i < calls.size() && !member->aborted; ++i) {
      if (calls[i].kind != NcclCall::Recv)
        continue;
      if (letters[i]->hasData)
        std::memcpy(calls[i].received, letters[i]->data.data(), letters[i]->data.size());
      else
        member->asyncError = ncclRemoteError;
    }
  });
}

} // namespace

/// In a graph: each launch of it is a call of its own.
static void captureCalls(const std::shared_ptr<Member> &member,
                         const std::vector<NcclCall> &calls) {
  std::erase_if(member->captures, [](const auto &capture) { return capture.expired(); });
  member->captures.push_back(calls.front().stream->captured.capture);
  Operation node{Operation::Kind::Work, [first = calls.front()] { return first.describe(); },
                 nullptr, nullptr};
  node.expand = [=](Engine &engine, const std::shared_ptr<Stream> &stream) {
    std::vector<NcclCall> launched = calls;
    for (NcclCall &call : launched)
      call.stream = stream;
    enqueueCalls(engine, member, launched);
  };
  addToCapture(*calls.front().stream, std::move(node));
}

/// Allocates memory and waits for the device, as NCCL does at the first collective of a
/// communicator and at the first message with a peer. All members do it together, before the kernel
/// of any. False: the device has no memory, which the communicator has as an error from then on.
static bool connectAtFirstUse(Engine &engine, Member &member, const NcclCall &call) {
  bool isNew = call.isMessage() ? member.connectedPeers.insert(call.peer).second
                                : !std::exchange(member.isConnected, true);
  if (!isNew)
    return true;
  (void)mayWaitForDevice(engine, "the first " + call.describe() + " of a communicator",
                         member.device, member.clique.get());
  const int channels = std::min(engine.settings.ncclChannels, member.mostChannels);
  const size_t bytes = size_t(channels) * kNcclConnectionBytes;
  if (call.kind == NcclCall::Send || member.clique->ranks == 1)
    return true; // the receiver has the buffers
  const size_t used = engine.memory.bytesOf(member.device);
  if (engine.settings.memoryBytes < bytes || used > engine.settings.memoryBytes - bytes) {
    member.asyncError = ncclUnhandledCudaError;
    member.lastError = "Cuda failure 2 'out of memory'";
    return false;
  }
  engine.memory.take(member.device, ptrdiff_t(bytes));
  member.bytes += bytes;
  return true;
}

/// A kernel that does not come: only an abort, or the end of all stalls, lets its stream go on.
static void stallIfAsked(Engine &engine, Member &member, const NcclCall &call) {
  const int device = call.stream->device;
  ++engine.collectivesOf[device];
  if (Engine::takeFault(engine.collectiveStalls, Engine::placeOf("collective", device)))
    enqueueWait(engine, member, call.stream, engine.stall());
}

void enqueueCalls(Engine &engine, const std::shared_ptr<Member> &member,
                  const std::vector<NcclCall> &calls) {
  std::vector<NcclCall> messages;
  for (const NcclCall &call : calls)
    if (!connectAtFirstUse(engine, *member, call))
      return;
  if (!calls.front().stream->captured.capture)
    stallIfAsked(engine, *member, calls.front());
  for (const NcclCall &call : calls) {
    if (call.stream != calls.front().stream)
      engine.violate("a group of calls of NCCL uses several streams of one communicator");
    if (call.stream->captured.capture)
      return captureCalls(member, calls);
    if (call.isMessage())
      messages.push_back(call);
    else
      enqueueCollective(engine, member, call);
  }
  if (!messages.empty())
    enqueueMessages(engine, member, messages);
  const std::shared_ptr<Stream> &stream = calls.front().stream;
  engine.pendingCalls.push_back(
      {stream, stream->given, calls.front().describe(), member->clique.get(), member->abortFlag});
  std::erase_if(member->ends, [](const auto &end) { return end.first->done >= end.second; });
  member->ends[stream] = stream->given;
}

} // namespace dtc::standin
