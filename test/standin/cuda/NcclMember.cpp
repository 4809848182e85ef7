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

template <typename T> void reduceAs(const Meeting &meeting, size_t begin, const NcclCall &call) {
  auto *out = static_cast<T *>(call.received);
  for (size_t i = 0; i < call.count; ++i) {
    auto at = [&](size_t rank) {
      T value;
      std::memcpy(&value, meeting.sent[rank].data() + (begin + i) * sizeof(T), sizeof(T));
      return value;
    };
    T result = at(0);
    for (size_t rank = 1; rank < meeting.sent.size(); ++rank)
      result = combine(call.reduction, result, at(rank));
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

void reduce(const Meeting &meeting, size_t begin, const NcclCall &call) {
  switch (call.type) {
  case ncclFloat32:
    return reduceAs<float>(meeting, begin, call);
  case ncclFloat64:
    return reduceAs<double>(meeting, begin, call);
  case ncclInt32: // which wraps around
    if (call.reduction != ncclSum)
      return reduceAs<int32_t>(meeting, begin, call);
    return reduceAs<uint32_t>(meeting, begin, call);
  case ncclUint32:
    return reduceAs<uint32_t>(meeting, begin, call);
  case ncclUint64:
    return reduceAs<uint64_t>(meeting, begin, call);
  default:
    return reduceAs<uint8_t>(meeting, begin, call);
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
  enqueueWork(engine, call, "takes", [=] {
    if (member->aborted)
      return;
    for (uint8_t hasSent : meeting->hasSent)
      if (!hasSent) {
        member->asyncError = ncclRemoteError; // its GPU is lost
        return;
      }
    if (call.kind != NcclCall::AllGather)
      return reduce(*meeting, call.kind == NcclCall::ReduceScatter ? rank * call.count : 0, call);
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

/// What NCCL does at the first collective of a communicator and at the first message with a peer:
/// it allocates memory and waits for the device. All members do it together, before the kernel of
/// any.
static void connectAtFirstUse(Engine &engine, Member &member, const NcclCall &call) {
  bool isNew = call.isMessage() ? member.connectedPeers.insert(call.peer).second
                                : !std::exchange(member.isConnected, true);
  if (isNew)
    (void)mayWaitForDevice(engine, "the first " + call.describe() + " of a communicator",
                           member.device, member.clique.get());
}

void enqueueCalls(Engine &engine, const std::shared_ptr<Member> &member,
                  const std::vector<NcclCall> &calls) {
  std::vector<NcclCall> messages;
  for (const NcclCall &call : calls)
    connectAtFirstUse(engine, *member, call);
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
