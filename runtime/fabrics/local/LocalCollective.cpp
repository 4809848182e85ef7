//===- LocalCollective.cpp - The work of a collective among threads -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/local/LocalCollective.h"

#include <algorithm>
#include <cassert>

namespace dtc::runtime {

/// The most bytes that all members' operands of a small collective have together. One thread passes
/// over this many in less time than a sleeping thread takes to wake.
static constexpr uint64_t kSmallBytes = 64 * 1024;

/// A member's operands of this size do not stay in the caches until they are used again.
static constexpr uint64_t kStreamingBytes = 4 * 1024 * 1024;

static constexpr size_t kLineBytes = 64;

static size_t linesOf(const CollectiveSpec &spec) {
  return (spec.input.numBytes() + kLineBytes - 1) / kLineBytes;
}

static int64_t product(const std::vector<int64_t> &shape, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i)
    result *= shape[i];
  return result;
}

LocalCollective::LocalCollective(const LocalGroup &group, std::span<const CollectiveSpec> specs,
                                 Workspace &workspace)
    : group(group), specs(specs), workspace(workspace), members(group.size()) {
  for (const CollectiveSpec &spec : specs)
    bytesOfMember += spec.input.numBytes();
  if (specs.front().kind == CollectiveKind::AllGather)
    bytesOfMember *= members;
  if (bytesOfMember >= kStreamingBytes)
    store = Store::Streaming;
}

bool LocalCollective::isSmall() const { return bytesOfMember <= kSmallBytes / members; }

void LocalCollective::run(size_t begin, size_t end) {
  if (specs.front().kind == CollectiveKind::AllReduce) {
    allReduce(begin, end);
  } else {
    for (size_t rank = begin; rank < end; ++rank)
      for (size_t tensor = 0; tensor < specs.size(); ++tensor)
        runTensor(tensor, rank);
  }
  if (store == Store::Streaming)
    finishStores();
}

void LocalCollective::runTensor(size_t tensor, size_t rank) {
  if (specs[tensor].input.numBytes() == 0)
    return;
  switch (specs[tensor].kind) {
  case CollectiveKind::AllReduce:
    break; // divides the bucket, not its tensors
  case CollectiveKind::AllGather:
    return allGather(tensor, rank);
  case CollectiveKind::ReduceScatter:
    return reduceScatter(tensor, rank);
  case CollectiveKind::AllToAll:
    return allToAll(tensor, rank);
  case CollectiveKind::Permute:
    return permute(tensor, rank);
  }
}

/// The tensors' cache lines, one tensor after the other, are dealt out in equal parts. A member
/// reduces its part and writes the result to everyone: that reads each input once. In place, the
/// bytes of a part are read by the same member that writes them.
void LocalCollective::allReduce(size_t begin, size_t end) {
  size_t lines = 0;
  for (const CollectiveSpec &spec : specs)
    lines += linesOf(spec);
  size_t part = (lines + members - 1) / members;
  size_t partBegin = std::min(begin * part, lines), partEnd = std::min(end * part, lines);
  size_t first = 0; // the tensor's first line
  for (size_t tensor = 0; tensor < specs.size(); ++tensor) {
    const CollectiveSpec &spec = specs[tensor];
    size_t next = first + linesOf(spec);
    size_t from = std::max(first, partBegin), to = std::min(next, partEnd);
    if (from < to) {
      size_t offset = (from - first) * kLineBytes;
      size_t bytes = std::min((to - first) * kLineBytes, spec.input.numBytes()) - offset;
      for (size_t rank = 0; rank < members; ++rank) {
        workspace.inputs[rank] = input(tensor, rank) + offset;
        workspace.outputs[rank] = output(tensor, rank) + offset;
      }
      reduceElements(spec.reduction, spec.input.dtype, spec.input.dtype, workspace.inputs,
                     workspace.outputs, bytes / byteWidth(spec.input.dtype), store);
    }
    first = next;
  }
}

/// A member writes its input to everyone, which reads each input once.
void LocalCollective::allGather(size_t tensor, size_t rank) {
  const TensorType &type = specs[tensor].input;
  auto dim = static_cast<size_t>(specs[tensor].dim);
  auto outer = static_cast<size_t>(product(type.shape, 0, dim));
  size_t run = type.numBytes() / outer;
  for (size_t o = 0; o < outer; ++o) {
    // Members begin at different outputs, so that they do not all write to the same memory.
    for (size_t step = 0; step < members; ++step)
      workspace.outputs[step] =
          output(tensor, (rank + step) % members) + (o * members + rank) * run;
    copyToAll(input(tensor, rank) + o * run, workspace.outputs, run, store);
  }
}

void LocalCollective::reduceScatter(size_t tensor, size_t rank) {
  const CollectiveSpec &spec = specs[tensor];
  auto dim = static_cast<size_t>(spec.dim);
  auto outer = static_cast<size_t>(product(spec.input.shape, 0, dim));
  size_t run = spec.input.numBytes() / outer / members;
  for (size_t o = 0; o < outer; ++o) {
    for (size_t member = 0; member < members; ++member)
      workspace.inputs[member] = input(tensor, member) + (o * members + rank) * run;
    std::byte *result = output(tensor, rank) + o * run;
    reduceElements(spec.reduction, spec.input.dtype, spec.input.dtype, workspace.inputs,
                   {&result, 1}, run / byteWidth(spec.input.dtype), store);
  }
}

/// The input is split along one dimension and the parts are joined along another; when both are
/// the same, parts change places. A member collects the parts for its output.
void LocalCollective::allToAll(size_t tensor, size_t rank) {
  const CollectiveSpec &spec = specs[tensor];
  const std::vector<int64_t> &in = spec.input.shape;
  auto dim = static_cast<size_t>(spec.dim);
  auto split = static_cast<size_t>(spec.splitDim);
  auto n = static_cast<int64_t>(members);
  // The part that a member sends is the input with the split dimension divided.
  int64_t partDim = dim == split ? in[dim] / n : in[dim], partSplit = in[split] / n;
  // Dimensions inside the inner one of the two are whole in input, part and output.
  size_t low = std::min(dim, split), high = std::max(dim, split);
  int64_t inner = product(in, high + 1, in.size());
  int64_t middle = low == high ? 1 : product(in, low + 1, high);
  int64_t outer = product(in, 0, low);
  int64_t partHigh = dim == high ? partDim : partSplit;
  int64_t partLow = low == high ? 1 : dim == low ? partDim : partSplit;
  int64_t inLow = low == high ? 1 : in[low];
  int64_t outLow = low == high ? 1 : dim == low ? partDim * n : partSplit;
  int64_t outHigh = dim == high ? partDim * n : partSplit;
  size_t width = byteWidth(spec.input.dtype);
  size_t run = static_cast<size_t>(partHigh * inner) * width;
  for (size_t step = 0; step < members; ++step) {
    size_t member = (rank + step) % members;
    // Where my part begins in the member's input, and where its part begins in my output.
    int64_t inOffset[2] = {0, 0}, outOffset[2] = {0, 0}; // along low, along high
    inOffset[split == high] = static_cast<int64_t>(rank) * partSplit;
    outOffset[dim == high] = static_cast<int64_t>(member) * partDim;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t l = 0; l < partLow; ++l)
        for (int64_t m = 0; m < middle; ++m) {
          int64_t inRow = (o * inLow + l + inOffset[0]) * middle + m;
          int64_t outRow = (o * outLow + l + outOffset[0]) * middle + m;
          std::byte *to = output(tensor, rank) +
                          static_cast<size_t>((outRow * outHigh + outOffset[1]) * inner) * width;
          copyToAll(input(tensor, member) +
                        static_cast<size_t>((inRow * in[high] + inOffset[1]) * inner) * width,
                    {&to, 1}, run, store);
        }
  }
}

void LocalCollective::permute(size_t tensor, size_t rank) {
  const CollectiveSpec &spec = specs[tensor];
  assert(spec.sources && spec.sources->size() == members && "a source for each member");
  auto source = static_cast<size_t>((*spec.sources)[rank]);
  std::byte *to = output(tensor, rank);
  copyToAll(input(tensor, source), {&to, 1}, spec.input.numBytes(), store);
}

} // namespace dtc::runtime
