//===- ProcessCollective.cpp - Collectives by messages ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/ProcessCollective.h"

#include "runtime/fabrics/local/Reduce.h"

#include <algorithm>
#include <cstring>

namespace dtc::runtime {

/// Messages of this size keep a network busy, and while one is added up the next is on its way.
static constexpr size_t kSegmentBytes = 512 * 1024;

/// Of so small a bucket each process gets everything at once instead of a part and then the rest.
static constexpr size_t kSmallBytes = 4096;

/// Of pieces, so that every element of them is aligned and parts end between cache lines.
static constexpr size_t kAlignment = 64;

static size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

ProcessCollective::ProcessCollective(Messages &messages, ProcessGroup group, int64_t tag)
    : messages(messages), group(std::move(group)), tag(tag), batch(messages.openBatch()) {
  for (Exchange &exchange : exchanges)
    exchange.batch = messages.openBatch();
}

MaybeError ProcessCollective::run(std::span<const CollectiveSpec> theSpecs,
                                  std::span<const std::span<const CollectiveOperands>> ofMembers) {
  specs = theSpecs;
  operands = ofMembers;
  CollectiveKind kind = specs.front().kind;
  bool reduces = kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
  return reduces ? reduce() : move();
}

//===----------------------------------------------------------------------===//
// Blocks of tensors
//===----------------------------------------------------------------------===//

namespace {

/// The bytes of a block of a dense row-major tensor: `count` runs.
struct Block {
  size_t offset = 0, bytes = 0, stride = 0, count = 1;
};

Block wholeOf(const TensorType &type) { return {0, type.numBytes(), 0, 1}; }

/// The block of that index, of `blocks` along a dimension.
Block blockOf(const TensorType &type, int64_t dim, int64_t blocks, size_t index) {
  size_t outer = 1, inner = byteWidth(type.dtype);
  for (int64_t d = 0; d < type.rank(); ++d)
    (d < dim ? outer : inner) *= static_cast<size_t>(type.shape[static_cast<size_t>(d)]);
  size_t run = inner / static_cast<size_t>(blocks);
  return {index * run, run, inner, outer};
}

void appendParts(const std::byte *tensor, const Block &block, std::vector<MessagePart> &parts) {
  for (size_t i = 0; i < block.count && block.bytes > 0; ++i) {
    auto *at = const_cast<std::byte *>(tensor) + block.offset + i * block.stride;
    if (!parts.empty() && parts.back().data + parts.back().bytes == at)
      parts.back().bytes += block.bytes;
    else
      parts.push_back({at, block.bytes});
  }
}

void copyBlock(std::byte *to, const Block &toBlock, const std::byte *from, const Block &fromBlock) {
  // Both have as many bytes, in runs of their own.
  size_t total = toBlock.bytes * toBlock.count;
  for (size_t done = 0; done < total;) {
    size_t toRun = done / toBlock.bytes, toAt = done % toBlock.bytes;
    size_t fromRun = done / fromBlock.bytes, fromAt = done % fromBlock.bytes;
    size_t bytes = std::min(toBlock.bytes - toAt, fromBlock.bytes - fromAt);
    std::memcpy(to + toBlock.offset + toRun * toBlock.stride + toAt,
                from + fromBlock.offset + fromRun * fromBlock.stride + fromAt, bytes);
    done += bytes;
  }
}

/// What rank `to` gets of the input of another.
Block sourceBlock(const CollectiveSpec &spec, size_t to) {
  return spec.kind == CollectiveKind::AllToAll
             ? blockOf(spec.input, spec.splitDim, spec.members, to)
             : wholeOf(spec.input);
}

/// Where in an output is what comes from rank `from`.
Block targetBlock(const CollectiveSpec &spec, size_t from) {
  return spec.kind == CollectiveKind::Permute
             ? wholeOf(spec.input)
             : blockOf(spec.output(), spec.dim, spec.members, from);
}

} // namespace

//===----------------------------------------------------------------------===//
// AllGather, AllToAll and Permute
//===----------------------------------------------------------------------===//

bool ProcessCollective::moves(const CollectiveSpec &spec, size_t from, size_t to) const {
  return spec.kind != CollectiveKind::Permute || (*spec.sources)[to] == static_cast<int64_t>(from);
}

/// All members of a process gather the same, so that only its first one is sent to.
static std::span<const size_t> receivers(const CollectiveSpec &spec,
                                         const std::vector<size_t> &ranks) {
  return spec.kind == CollectiveKind::AllGather ? std::span(ranks).first(1) : std::span(ranks);
}

void ProcessCollective::sendMoved(size_t process, std::vector<MessagePart> &to) const {
  for (size_t rank : receivers(specs.front(), group.ranks[process]))
    for (size_t member = 0; member < operands.size(); ++member)
      for (size_t tensor = 0; tensor < specs.size(); ++tensor)
        if (moves(specs[tensor], group.ownRanks()[member], rank))
          appendParts(input(member, tensor), sourceBlock(specs[tensor], rank), to);
}

void ProcessCollective::receiveMoved(size_t process, std::vector<MessagePart> &to) const {
  std::span<const size_t> own = receivers(specs.front(), group.ownRanks());
  for (size_t member = 0; member < own.size(); ++member)
    for (size_t from : group.ranks[process])
      for (size_t tensor = 0; tensor < specs.size(); ++tensor)
        if (moves(specs[tensor], from, own[member]))
          appendParts(output(member, tensor), targetBlock(specs[tensor], from), to);
}

/// Between members of this process.
void ProcessCollective::moveHere() const {
  for (size_t to = 0; to < operands.size(); ++to)
    for (size_t from = 0; from < operands.size(); ++from)
      for (size_t tensor = 0; tensor < specs.size(); ++tensor) {
        const CollectiveSpec &spec = specs[tensor];
        size_t toRank = group.ownRanks()[to], fromRank = group.ownRanks()[from];
        if (spec.input.numBytes() > 0 && moves(spec, fromRank, toRank))
          copyBlock(output(to, tensor), targetBlock(spec, fromRank), input(from, tensor),
                    sourceBlock(spec, toRank));
      }
}

/// Gives the other members what the first one has gathered from other processes.
void ProcessCollective::shareGathered() const {
  for (size_t tensor = 0; tensor < specs.size(); ++tensor)
    for (size_t rank = 0; rank < group.numMembers() && specs[tensor].input.numBytes() > 0; ++rank) {
      if (group.processOfRank[rank] == group.own)
        continue;
      Block block = targetBlock(specs[tensor], rank);
      for (size_t member = 1; member < operands.size(); ++member)
        copyBlock(output(member, tensor), block, output(0, tensor), block);
    }
}

MaybeError ProcessCollective::move() {
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
  if (specs.front().kind == CollectiveKind::AllGather)
    shareGathered();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// AllReduce and ReduceScatter
//===----------------------------------------------------------------------===//

/// Sums of some members travel as wide as they are, so that a result in 16 bits is rounded once.
DType ProcessCollective::sentType(size_t tensor) const {
  DType type = specs[tensor].input.dtype;
  bool isNarrow = type == DType::BF16 || type == DType::F16;
  return isNarrow && group.hasShared() ? DType::F32 : type;
}

/// What that process reduces; the same in all processes.
ProcessCollective::Segments ProcessCollective::segmentsOf(size_t process) const {
  Segments result;
  size_t room = 0;
  auto append = [&](Piece piece) {
    while (piece.bytes > 0) {
      if (room == 0) {
        result.emplace_back();
        room = kSegmentBytes;
      }
      Piece now = piece;
      now.bytes = std::min(piece.bytes, room);
      result.back().push_back(now);
      piece.offset += now.bytes;
      piece.outputOffset += now.bytes;
      piece.bytes -= now.bytes;
      room -= std::min(room, aligned(now.bytes));
    }
  };
  size_t processes = group.numProcesses();
  for (size_t tensor = 0; tensor < specs.size(); ++tensor) {
    const CollectiveSpec &spec = specs[tensor];
    size_t bytes = spec.input.numBytes();
    if (bytes == 0)
      continue;
    if (everywhere) {
      append({tensor, 0, bytes, 0, 0});
    } else if (spec.kind == CollectiveKind::AllReduce) {
      size_t share = aligned((bytes + processes - 1) / processes);
      size_t begin = std::min(process * share, bytes), end = std::min(begin + share, bytes);
      append({tensor, begin, end - begin, 0, begin});
    } else {
      for (size_t member = 0; member < group.ranks[process].size(); ++member) {
        Block block = blockOf(spec.input, spec.dim, spec.members, group.ranks[process][member]);
        for (size_t i = 0; i < block.count; ++i)
          append({tensor, block.offset + i * block.stride, block.bytes, member, i * block.bytes});
      }
    }
  }
  return result;
}

/// In the type in which they are sent.
static size_t sentBytes(size_t bytes, DType type, DType sent) {
  return bytes / byteWidth(type) * byteWidth(sent);
}

size_t ProcessCollective::stagedBytes(const Segment &segment) const {
  size_t bytes = 0;
  for (const Piece &piece : segment)
    bytes +=
        aligned(sentBytes(piece.bytes, specs[piece.tensor].input.dtype, sentType(piece.tensor)));
  return bytes;
}

void ProcessCollective::stagedParts(const Segment &segment, std::byte *staging,
                                    std::vector<MessagePart> &to) const {
  to.clear();
  for (const Piece &piece : segment) {
    size_t bytes = sentBytes(piece.bytes, specs[piece.tensor].input.dtype, sentType(piece.tensor));
    to.push_back({staging, bytes});
    staging += aligned(bytes);
  }
}

/// Adds up the members of this process.
void ProcessCollective::addUp(const Segment &segment, std::byte *partial) const {
  std::vector<const std::byte *> inputs(operands.size());
  for (const Piece &piece : segment) {
    DType type = specs[piece.tensor].input.dtype, sent = sentType(piece.tensor);
    for (size_t member = 0; member < operands.size(); ++member)
      inputs[member] = input(member, piece.tensor) + piece.offset;
    reduceElements(specs[piece.tensor].reduction, type, sent, inputs, {&partial, 1},
                   piece.bytes / byteWidth(type), Store::Cached);
    partial += aligned(sentBytes(piece.bytes, type, sent));
  }
}

/// Sends the other processes this one's values of what they reduce, and receives theirs.
MaybeError ProcessCollective::startExchange(size_t number) {
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
MaybeError ProcessCollective::finishExchange(size_t number) {
  Exchange &exchange = exchanges[number % 2];
  if (MaybeError error = exchange.batch->wait())
    return error;
  if (number >= segments[group.own].size())
    return std::nullopt;
  std::vector<const std::byte *> values(group.numProcesses());
  std::vector<std::byte *> results;
  size_t at = 0; // of the staged piece
  for (const Piece &piece : segments[group.own][number]) {
    const CollectiveSpec &spec = specs[piece.tensor];
    DType type = spec.input.dtype, sent = sentType(piece.tensor);
    for (size_t process = 0; process < group.numProcesses(); ++process)
      values[process] =
          process != group.own
              ? exchange.received.bytes.data() + process * exchange.received.stride + at
          : direct ? input(0, piece.tensor) + piece.offset
                   : exchange.partial.bytes.data() + process * exchange.partial.stride + at;
    results.clear();
    if (spec.kind == CollectiveKind::ReduceScatter)
      results.push_back(output(piece.member, piece.tensor) + piece.outputOffset);
    else
      for (size_t member = 0; member < operands.size(); ++member)
        results.push_back(output(member, piece.tensor) + piece.outputOffset);
    reduceElements(spec.reduction, sent, type, values, results, piece.bytes / byteWidth(type),
                   Store::Cached);
    at += aligned(sentBytes(piece.bytes, type, sent));
  }
  return std::nullopt;
}

/// Sends all processes what this one has reduced, and receives what they have.
MaybeError ProcessCollective::spreadResults(size_t number) {
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

/// Gives the other members what the first one has got from other processes.
void ProcessCollective::shareReduced() const {
  for (size_t process = 0; process < group.numProcesses(); ++process)
    for (const Segment &segment : segments[process])
      for (const Piece &piece : segment)
        for (size_t member = 1; member < operands.size() && process != group.own; ++member)
          std::memcpy(output(member, piece.tensor) + piece.offset,
                      output(0, piece.tensor) + piece.offset, piece.bytes);
}

MaybeError ProcessCollective::reduce() {
  bool isAllReduce = specs.front().kind == CollectiveKind::AllReduce;
  size_t bytes = 0, longest = 0;
  for (const CollectiveSpec &spec : specs)
    bytes += spec.input.numBytes();
  everywhere = isAllReduce && bytes <= kSmallBytes;
  direct = !group.hasShared();
  segments.clear();
  for (size_t process = 0; process < group.numProcesses(); ++process) {
    segments.push_back(segmentsOf(process));
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
