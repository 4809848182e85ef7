//===- MessageCollective.cpp - Collectives by messages ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/MessageCollective.h"

#include <algorithm>
#include <cstring>

namespace dtc::runtime {

/// Messages of this size keep a network busy, and while one is added up the next is on its way.
static constexpr size_t kSegmentBytes = 512 * 1024;

/// Each process gets everything of such a small bucket at once, instead of a part and then the
/// rest.
static constexpr size_t kDirectBytes = 4096;

MessageCollective::MessageCollective(Messages &messages, const ProcessGroup &group, int64_t tag)
    : CollectiveParts(group), tag(tag), batch(messages.openBatch()) {
  for (Exchange &exchange : exchanges)
    exchange.batch = messages.openBatch();
}

MaybeError MessageCollective::move() {
  for (size_t process = 0; process < group.numProcesses(); ++process) {
    if (process == group.own)
      continue;
    parts.clear();
    receiveMoved(process, parts);
    if (!parts.empty())
      if (MaybeError error = batch->receive(group.processes[process], tag, parts))
        return error;
    parts.clear();
    sendMoved(process, parts);
    if (!parts.empty())
      if (MaybeError error = batch->send(group.processes[process], tag, parts))
        return error;
  }
  moveHere();
  if (MaybeError error = batch->wait())
    return error;
  if (kind() == CollectiveKind::AllGather)
    shareGathered();
  return std::nullopt;
}

void MessageCollective::stagedParts(const Segment &segment, std::byte *staging,
                                    std::vector<MessagePart> &to) const {
  to.clear();
  for (const Piece &piece : segment) {
    to.push_back({staging, sentBytes(piece)});
    staging += alignedBytes(sentBytes(piece));
  }
}

/// Sends the other processes this one's values of the parts that they reduce, and receives theirs.
MaybeError MessageCollective::startExchange(size_t number) {
  Exchange &exchange = exchanges[number % 2];
  size_t processes = group.numProcesses(), largest = 0;
  for (const Segments &each : segments)
    if (number < each.size())
      largest = std::max(largest, stagedBytes(each[number]));
  for (Staging *staging : {&exchange.partial, &exchange.received}) {
    staging->stride = largest;
    if (size_t bytes = staging == &exchange.partial && direct ? 0 : processes * largest;
        staging->bytes.size() < bytes)
      staging->bytes.resize(bytes);
  }
  for (size_t process = 0; process < processes; ++process) {
    std::byte *partial = exchange.partial.bytes.data() + process * largest;
    if (number < segments[process].size() && !direct)
      addUp(segments[process][number], partial);
    if (process == group.own)
      continue;
    if (number < segments[group.own].size()) {
      stagedParts(segments[group.own][number], exchange.received.bytes.data() + process * largest,
                  parts);
      if (MaybeError error = exchange.batch->receive(group.processes[process], tag, parts))
        return error;
    }
    if (number < segments[process].size()) {
      const Segment &segment = segments[process][number];
      if (direct) {
        parts.clear();
        for (const Piece &piece : segment)
          parts.push_back(
              {const_cast<std::byte *>(input(0, piece.tensor)) + piece.offset, piece.bytes});
      } else {
        stagedParts(segment, partial, parts);
      }
      if (MaybeError error = exchange.batch->send(group.processes[process], tag, parts))
        return error;
    }
  }
  return std::nullopt;
}

/// Waits for the other processes' values and reduces them.
MaybeError MessageCollective::finishExchange(size_t number) {
  Exchange &exchange = exchanges[number % 2];
  if (MaybeError error = exchange.batch->wait())
    return error;
  if (number >= segments[group.own].size())
    return std::nullopt;
  std::vector<const std::byte *> values(group.numProcesses());
  for (size_t process = 0; process < values.size(); ++process)
    if (process != group.own)
      values[process] = exchange.received.bytes.data() + process * exchange.received.stride;
    else if (!direct)
      values[process] = exchange.partial.bytes.data() + process * exchange.partial.stride;
  addProcesses(segments[group.own][number], values, nullptr);
  return std::nullopt;
}

/// Sends the results of this process to all others, and receives theirs.
MaybeError MessageCollective::spreadResults(size_t number) {
  auto resultParts = [&](size_t process) {
    parts.clear();
    for (const Piece &piece : segments[process][number])
      parts.push_back({output(0, piece.tensor) + piece.offset, piece.bytes});
  };
  for (size_t process = 0; process < group.numProcesses(); ++process) {
    if (process == group.own)
      continue;
    if (number < segments[process].size()) {
      resultParts(process);
      if (MaybeError error = batch->receive(group.processes[process], tag, parts))
        return error;
    }
    if (number < segments[group.own].size()) {
      resultParts(group.own);
      if (MaybeError error = batch->send(group.processes[process], tag, parts))
        return error;
    }
  }
  return std::nullopt;
}

/// Gives the other members the data that the first one has got from other processes.
void MessageCollective::shareReduced() const {
  for (size_t process = 0; process < group.numProcesses(); ++process)
    for (const Segment &segment : segments[process])
      for (const Piece &piece : segment)
        for (size_t member = 1; member < operands.size() && process != group.own; ++member)
          std::memcpy(output(member, piece.tensor) + piece.offset,
                      output(0, piece.tensor) + piece.offset, piece.bytes);
}

MaybeError MessageCollective::reduce() {
  bool isAllReduce = kind() == CollectiveKind::AllReduce;
  size_t longest = 0;
  everywhere = isAllReduce && inputBytes() <= kDirectBytes;
  direct = !group.hasShared();
  segments.clear();
  for (size_t process = 0; process < group.numProcesses(); ++process) {
    segments.push_back(segmentsOf(process, everywhere, kSegmentBytes));
    longest = std::max(longest, segments.back().size());
  }
  // While a segment is added up and its result spread, the next one is on its way.
  for (size_t number = 0; number < longest; ++number) {
    for (size_t next = number == 0 ? 0 : number + 1; next < std::min(number + 2, longest); ++next)
      if (MaybeError error = startExchange(next))
        return error;
    if (MaybeError error = finishExchange(number))
      return error;
    if (isAllReduce && !everywhere)
      if (MaybeError error = spreadResults(number))
        return error;
  }
  if (MaybeError error = batch->wait())
    return error;
  if (isAllReduce && !everywhere)
    shareReduced();
  return std::nullopt;
}

} // namespace dtc::runtime
