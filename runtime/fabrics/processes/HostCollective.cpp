//===- HostCollective.cpp - Collectives through shared memory --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/HostCollective.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace dtc::runtime {

/// The most bytes that all processes' values of a small bucket have together. Adding up this many
/// takes less time than waiting for what others have added up.
static constexpr size_t kSmallHostBytes = 2 * HostExchange::smallBytes();

template <typename Start, typename Take>
MaybeError HostCollective::runChunks(size_t count, const Start &start, const Take &take) {
  uint64_t fingerprint = fingerprintOf(specs);
  for (size_t number = 0, started = 0; number < count; ++number) {
    for (; started < std::min(number + 2, count); ++started) {
      if (MaybeError error = exchange->startChunk())
        return error;
      start(started);
      exchange->publishChunk(fingerprint);
    }
    if (MaybeError error = exchange->awaitChunk(fingerprint))
      return error;
    if (MaybeError error = take(number))
      return error;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// AllGather, AllToAll and Permute
//===----------------------------------------------------------------------===//

namespace {

/// The bytes of parts, one after the other.
class PartCursor {
public:
  explicit PartCursor(std::vector<MessagePart> theParts) : parts(std::move(theParts)) {}

  /// Calls move(data, bytes) for the next bytes, at most `most` of them.
  template <typename Move> void forEach(size_t most, const Move &move) {
    while (most > 0 && part < parts.size()) {
      size_t bytes = std::min(most, parts[part].bytes - at);
      move(parts[part].data + at, bytes);
      most -= bytes;
      at += bytes;
      if (at == parts[part].bytes) {
        ++part;
        at = 0;
      }
    }
  }
  void copyTo(std::byte *to, size_t most) {
    forEach(most, [&](const std::byte *data, size_t bytes) {
      std::memcpy(to, data, bytes);
      to += bytes;
    });
  }
  void copyFrom(const std::byte *from, size_t most) {
    forEach(most, [&](std::byte *data, size_t bytes) {
      std::memcpy(data, from, bytes);
      from += bytes;
    });
  }

private:
  std::vector<MessagePart> parts;
  size_t part = 0, at = 0;
};

} // namespace

/// The most that a process gives another one; the same in all processes.
size_t HostCollective::movedBytes() const {
  size_t processes = group.numProcesses(), most = 0;
  std::vector<size_t> sources(processes * processes, 0); // of a permutation
  if (kind() == CollectiveKind::Permute)
    for (size_t to = 0; to < group.numMembers(); ++to) {
      size_t from = group.processOfRank[static_cast<size_t>((*specs.front().sources)[to])];
      ++sources[from * processes + group.processOfRank[to]];
    }
  for (size_t from = 0; from < processes; ++from)
    for (size_t to = 0; to < processes; ++to) {
      size_t inputs = kind() == CollectiveKind::AllGather ? group.ranks[from].size()
                      : kind() == CollectiveKind::AllToAll
                          ? group.ranks[from].size() * group.ranks[to].size()
                          : sources[from * processes + to];
      if (from != to)
        most = std::max(most, inputs);
    }
  size_t bytes = most * inputBytes();
  return kind() == CollectiveKind::AllToAll ? bytes / group.numMembers() : bytes;
}

MaybeError HostCollective::move() {
  // Gathered data is the same for all.
  bool isForAll = kind() == CollectiveKind::AllGather;
  size_t room = isForAll ? exchange->allBytes() : exchange->pairBytes();
  std::vector<PartCursor> sent, received;
  for (size_t process = 0; process < group.numProcesses(); ++process) {
    std::vector<MessagePart> toOther, fromOther;
    if (process != group.own) {
      sendMoved(process, toOther);
      receiveMoved(process, fromOther);
    }
    sent.emplace_back(std::move(toOther));
    received.emplace_back(std::move(fromOther));
  }
  MaybeError error = runChunks(
      (movedBytes() + room - 1) / room,
      [&](size_t) {
        for (size_t process = 0; process < sent.size(); ++process)
          if (!isForAll && process != group.own)
            sent[process].copyTo(exchange->outgoing(process), room);
        if (isForAll)
          sent[group.own == 0 ? 1 : 0].copyTo(exchange->forAll(), room);
      },
      [&](size_t) -> MaybeError {
        for (size_t process = 0; process < received.size(); ++process)
          if (process != group.own)
            received[process].copyFrom(
                isForAll ? exchange->fromAll(process) : exchange->incoming(process), room);
        exchange->takeChunk();
        return std::nullopt;
      });
  if (error)
    return error;
  moveHere();
  if (isForAll)
    shareGathered();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// AllReduce and ReduceScatter
//===----------------------------------------------------------------------===//

/// Each process adds up everything.
MaybeError HostCollective::reduceSmall() {
  everything.clear();
  for (size_t tensor = 0; tensor < specs.size(); ++tensor)
    if (size_t bytes = specs[tensor].input.numBytes(); bytes > 0)
      everything.push_back({tensor, 0, bytes, 0, 0});
  if (everything.empty())
    return std::nullopt;
  if (MaybeError error = exchange->exchangeSmall(
          fingerprintOf(specs), [&](std::byte *staging) { addUp(everything, staging); }))
    return error;
  values.resize(group.numProcesses());
  for (size_t process = 0; process < values.size(); ++process)
    values[process] = exchange->fromSmall(process);
  addProcesses(everything, values, nullptr);
  return std::nullopt;
}

void HostCollective::startReduction(size_t number) {
  for (size_t process = 0; process < segments.size(); ++process) {
    if (number >= segments[process].size())
      continue;
    const Segment &segment = segments[process][number];
    if (process != group.own) {
      addUp(segment, exchange->outgoing(process));
    } else if (group.hasShared()) {
      partial[number % 2].resize(std::max(partial[number % 2].size(), stagedBytes(segment)));
      addUp(segment, partial[number % 2].data());
    }
  }
}

void HostCollective::finishReduction(size_t number, bool spreads) {
  const Segments &own = segments[group.own];
  if (number < own.size()) {
    values.resize(group.numProcesses());
    for (size_t process = 0; process < values.size(); ++process)
      values[process] = process != group.own ? exchange->incoming(process)
                        : group.hasShared()  ? partial[number % 2].data()
                                             : nullptr;
    addProcesses(own[number], values, spreads ? exchange->result() : nullptr);
  }
  exchange->takeChunk();
}

void HostCollective::takeResults(size_t number) const {
  for (size_t process = 0; process < segments.size(); ++process) {
    if (process == group.own || number >= segments[process].size())
      continue;
    const std::byte *result = exchange->resultOf(process);
    for (const Piece &piece : segments[process][number]) {
      for (size_t member = 0; member < operands.size(); ++member)
        std::memcpy(output(member, piece.tensor) + piece.outputOffset, result, piece.bytes);
      result += alignedBytes(piece.bytes);
    }
  }
}

MaybeError HostCollective::reduce() {
  bool isAllReduce = kind() == CollectiveKind::AllReduce;
  // Sent elements may be twice as wide as the inputs of the sum.
  size_t width = group.hasShared() ? 2 : 1, bytes = 0, longest = 0;
  for (const CollectiveSpec &spec : specs)
    bytes += alignedBytes(spec.input.numBytes() * width);
  if (isAllReduce && bytes <= kSmallHostBytes / group.numProcesses())
    return reduceSmall();
  segments.clear();
  size_t room = exchange->pairBytes() / width / 64 * 64;
  for (size_t process = 0; process < group.numProcesses(); ++process) {
    segments.push_back(segmentsOf(process, /*everything=*/false, room));
    longest = std::max(longest, segments.back().size());
  }
  return runChunks(
      longest, [&](size_t number) { startReduction(number); },
      [&](size_t number) -> MaybeError {
        finishReduction(number, isAllReduce);
        if (!isAllReduce)
          return std::nullopt;
        if (MaybeError error = exchange->awaitResults())
          return error;
        takeResults(number);
        return std::nullopt;
      });
}

} // namespace dtc::runtime
