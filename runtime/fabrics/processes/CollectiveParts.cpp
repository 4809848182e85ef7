//===- CollectiveParts.cpp - The part of each process in a collective ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/CollectiveParts.h"

#include "runtime/fabrics/local/Reduce.h"

#include <algorithm>
#include <cstring>

namespace dtc::runtime {

MaybeError CollectiveParts::run(std::span<const CollectiveSpec> theSpecs,
                                std::span<const std::span<const CollectiveOperands>> ofMembers) {
  specs = theSpecs;
  operands = ofMembers;
  bool reduces = kind() == CollectiveKind::AllReduce || kind() == CollectiveKind::ReduceScatter;
  return reduces ? reduce() : move();
}

size_t CollectiveParts::inputBytes() const {
  size_t bytes = 0;
  for (const CollectiveSpec &spec : specs)
    bytes += spec.input.numBytes();
  return bytes;
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

/// The block that rank `to` gets of the input of another.
Block sourceBlock(const CollectiveSpec &spec, size_t to) {
  return spec.kind == CollectiveKind::AllToAll
             ? blockOf(spec.input, spec.splitDim, spec.members, to)
             : wholeOf(spec.input);
}

/// The block of an output that comes from rank `from`.
Block targetBlock(const CollectiveSpec &spec, size_t from) {
  return spec.kind == CollectiveKind::Permute
             ? wholeOf(spec.input)
             : blockOf(spec.output(), spec.dim, spec.members, from);
}

} // namespace

//===----------------------------------------------------------------------===//
// AllGather, AllToAll and Permute
//===----------------------------------------------------------------------===//

bool CollectiveParts::moves(const CollectiveSpec &spec, size_t from, size_t to) const {
  return spec.kind != CollectiveKind::Permute || (*spec.sources)[to] == static_cast<int64_t>(from);
}

/// All members of a process gather the same, so that only its first one is sent to.
static std::span<const size_t> receivers(const CollectiveSpec &spec,
                                         const std::vector<size_t> &ranks) {
  return spec.kind == CollectiveKind::AllGather ? std::span(ranks).first(1) : std::span(ranks);
}

void CollectiveParts::sendMoved(size_t process, std::vector<MessagePart> &to) const {
  for (size_t rank : receivers(specs.front(), group.ranks[process]))
    for (size_t member = 0; member < operands.size(); ++member)
      for (size_t tensor = 0; tensor < specs.size(); ++tensor)
        if (moves(specs[tensor], group.ownRanks()[member], rank))
          appendParts(input(member, tensor), sourceBlock(specs[tensor], rank), to);
}

void CollectiveParts::receiveMoved(size_t process, std::vector<MessagePart> &to) const {
  std::span<const size_t> own = receivers(specs.front(), group.ownRanks());
  for (size_t member = 0; member < own.size(); ++member)
    for (size_t from : group.ranks[process])
      for (size_t tensor = 0; tensor < specs.size(); ++tensor)
        if (moves(specs[tensor], from, own[member]))
          appendParts(output(member, tensor), targetBlock(specs[tensor], from), to);
}

void CollectiveParts::moveHere() const {
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

void CollectiveParts::shareGathered() const {
  for (size_t tensor = 0; tensor < specs.size(); ++tensor)
    for (size_t rank = 0; rank < group.numMembers() && specs[tensor].input.numBytes() > 0; ++rank) {
      if (group.processOfRank[rank] == group.own)
        continue;
      Block block = targetBlock(specs[tensor], rank);
      for (size_t member = 1; member < operands.size(); ++member)
        copyBlock(output(member, tensor), block, output(0, tensor), block);
    }
}

//===----------------------------------------------------------------------===//
// AllReduce and ReduceScatter
//===----------------------------------------------------------------------===//

DType CollectiveParts::sentType(size_t tensor) const {
  DType type = specs[tensor].input.dtype;
  bool isNarrow = type == DType::BF16 || type == DType::F16;
  return isNarrow && group.hasShared() ? DType::F32 : type;
}

CollectiveParts::Segments CollectiveParts::segmentsOf(size_t process, bool everything,
                                                      size_t room) const {
  Segments result;
  size_t left = 0;
  auto append = [&](Piece piece) {
    while (piece.bytes > 0) {
      if (left == 0) {
        result.emplace_back();
        left = room;
      }
      Piece now = piece;
      now.bytes = std::min(piece.bytes, left);
      result.back().push_back(now);
      piece.offset += now.bytes;
      piece.outputOffset += now.bytes;
      piece.bytes -= now.bytes;
      left -= std::min(left, alignedBytes(now.bytes));
    }
  };
  size_t processes = group.numProcesses();
  for (size_t tensor = 0; tensor < specs.size(); ++tensor) {
    const CollectiveSpec &spec = specs[tensor];
    size_t bytes = spec.input.numBytes();
    if (bytes == 0)
      continue;
    if (everything) {
      append({tensor, 0, bytes, 0, 0});
    } else if (spec.kind == CollectiveKind::AllReduce) {
      size_t share = alignedBytes((bytes + processes - 1) / processes);
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

size_t CollectiveParts::sentBytes(const Piece &piece) const {
  DType type = specs[piece.tensor].input.dtype;
  return piece.bytes / byteWidth(type) * byteWidth(sentType(piece.tensor));
}

size_t CollectiveParts::stagedBytes(const Segment &segment) const {
  size_t bytes = 0;
  for (const Piece &piece : segment)
    bytes += alignedBytes(sentBytes(piece));
  return bytes;
}

void CollectiveParts::addUp(const Segment &segment, std::byte *staging) const {
  inputs.resize(operands.size());
  for (const Piece &piece : segment) {
    DType type = specs[piece.tensor].input.dtype, sent = sentType(piece.tensor);
    for (size_t member = 0; member < operands.size(); ++member)
      inputs[member] = input(member, piece.tensor) + piece.offset;
    if (inputs.size() == 1 && sent == type)
      std::memcpy(staging, inputs.front(), piece.bytes);
    else
      reduceElements(specs[piece.tensor].reduction, type, sent, inputs, {&staging, 1},
                     piece.bytes / byteWidth(type), Store::Cached);
    staging += alignedBytes(sentBytes(piece));
  }
}

void CollectiveParts::addProcesses(const Segment &segment, std::span<const std::byte *const> staged,
                                   std::byte *copy) const {
  added.resize(staged.size());
  size_t at = 0; // of the staged piece
  for (const Piece &piece : segment) {
    const CollectiveSpec &spec = specs[piece.tensor];
    DType type = spec.input.dtype;
    for (size_t process = 0; process < staged.size(); ++process)
      added[process] =
          staged[process] ? staged[process] + at : input(0, piece.tensor) + piece.offset;
    results.clear();
    if (spec.kind == CollectiveKind::ReduceScatter)
      results.push_back(output(piece.member, piece.tensor) + piece.outputOffset);
    else
      for (size_t member = 0; member < operands.size(); ++member)
        results.push_back(output(member, piece.tensor) + piece.outputOffset);
    if (copy)
      results.push_back(copy);
    reduceElements(spec.reduction, sentType(piece.tensor), type, added, results,
                   piece.bytes / byteWidth(type), Store::Cached);
    at += alignedBytes(sentBytes(piece));
    if (copy)
      copy += alignedBytes(piece.bytes);
  }
}

} // namespace dtc::runtime
