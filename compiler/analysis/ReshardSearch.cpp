//===- ReshardSearch.cpp - Search for the cheapest reshard steps ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/ReshardSearch.h"

#include "simulator/cluster/CollectiveTime.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;
using namespace dtc;

static constexpr uint8_t kUnused = 0xff, kPartial = 0xfe;

static uint8_t placeOf(size_t dim, size_t position) { return uint8_t(dim << 4 | position); }
static bool isPlaced(uint8_t place) { return place < kPartial; }

ReshardGraph::ReshardGraph(const ReshardProblem &problem) : problem(problem) {
  leastLatency = std::numeric_limits<double>::infinity();
  for (auto [index, axis] : llvm::enumerate(problem.mesh.axes)) {
    if (axis.size == 1 || axis.pipeline)
      continue;
    unsigned number = axes.size();
    axes.push_back(index);
    sizes.push_back(axis.size);
    if (axis.temporal) {
      temporal |= 1u << number;
      continue;
    }
    if (!problem.to.isPartialOver(index))
      reducible |= 1u << number;
    bandwidth = std::max(bandwidth, axis.bandwidth);
    leastLatency = std::min(leastLatency, axis.latency);
  }
  if (!fits())
    return;
  target = encode(problem.to);
  dims.resize(problem.shape.size());
  load(target);
  targetBytes = bytes;
}

LayoutKey ReshardGraph::encode(const Layout &layout) const {
  LayoutKey key;
  key.fill(kUnused);
  for (auto [number, axis] : llvm::enumerate(axes)) {
    if (layout.isPartialOver(axis))
      key[number] = kPartial;
    for (auto [dim, list] : llvm::enumerate(layout.dims))
      if (auto *found = llvm::find(list, axis); found != list.end())
        key[number] = placeOf(dim, found - list.begin());
  }
  return key;
}

Layout ReshardGraph::decode(const LayoutKey &key) const {
  Layout layout = Layout::replicated(problem.shape.size());
  layout.partialKind = problem.from.partialKind;
  for (auto [number, axis] : llvm::enumerate(axes)) {
    uint8_t place = key[number];
    if (place == kPartial)
      layout.partial.push_back(axis);
    if (!isPlaced(place))
      continue;
    AxisList &list = layout.dims[place >> 4];
    list.resize(std::max<size_t>(list.size(), (place & 15) + 1));
    list[place & 15] = axis;
  }
  return layout;
}

void ReshardGraph::load(const LayoutKey &key) {
  now = key;
  for (Dim &dim : dims) {
    dim.list.clear();
    dim.shards = 1;
    dim.prefix = true;
  }
  for (unsigned axis = 0; axis < axes.size(); ++axis) {
    uint8_t place = key[axis];
    if (!isPlaced(place))
      continue;
    Dim &dim = dims[place >> 4];
    if (dim.list.size() <= (place & 15))
      dim.list.resize((place & 15) + 1);
    dim.list[place & 15] = uint8_t(axis);
    dim.shards *= sizes[axis];
    dim.prefix &= target[axis] == place;
  }
  bytes = double(problem.elementBytes);
  for (auto [dim, global] : llvm::zip_equal(dims, problem.shape)) {
    dim.size = (global + dim.shards - 1) / dim.shards;
    bytes *= double(dim.size);
  }
}

double ReshardGraph::cost(CollectiveKind kind, uint32_t mask, double localBytes) const {
  std::array<unsigned, 16> list;
  size_t count = 0;
  for (unsigned axis = 0; axis < axes.size(); ++axis)
    if (mask >> axis & 1)
      list[count++] = axes[axis];
  GroupShape group = problem.mesh.groupOver(ArrayRef(list.data(), count));
  return dtc::collectiveTime(kind, localBytes, group).seconds;
}

double ReshardGraph::lowerBound(const LayoutKey &key) {
  load(key);
  bool prefix = llvm::all_of(dims, [](const Dim &dim) { return dim.prefix; });
  for (unsigned axis = 0; axis < axes.size(); ++axis)
    prefix &= key[axis] != kPartial || target[axis] == kPartial;
  return prefix ? 0 : std::max(0., targetBytes - bytes) / bandwidth + leastLatency;
}

void ReshardGraph::forEachEdge(const LayoutKey &key, size_t maxTries, Visitor visit) {
  load(key);
  slicesAndReduceScatters(visit);
  allReduces(visit);
  allGathers(visit);
  allToAlls(visit);
  triesLeft = maxTries;
  permutes(visit);
}

/// A temporal axis stays where it is put, with as many shards before it, so it is put only where
/// the target has it.
bool ReshardGraph::mayAppend(size_t dim, unsigned axis) const {
  if (!(temporal >> axis & 1))
    return true;
  if (!isPlaced(target[axis]) || size_t(target[axis] >> 4) != dim)
    return false;
  int64_t before = 1;
  for (unsigned other = 0; other < axes.size(); ++other)
    if (isPlaced(target[other]) && size_t(target[other] >> 4) == dim &&
        target[other] < target[axis])
      before *= sizes[other];
  return before == dims[dim].shards;
}

void ReshardGraph::slicesAndReduceScatters(Visitor visit) const {
  for (unsigned axis = 0; axis < axes.size(); ++axis) {
    bool partial = now[axis] == kPartial;
    if (isPlaced(now[axis]) || (partial && (!(reducible >> axis & 1))))
      continue;
    for (auto [index, dim] : llvm::enumerate(dims)) {
      if (!mayAppend(index, axis))
        continue;
      LayoutKey next = now;
      next[axis] = placeOf(index, dim.list.size());
      ReshardMove move{.collective =
                           partial ? std::optional(CollectiveKind::ReduceScatter) : std::nullopt,
                       .axis = uint8_t(axis),
                       .dim = uint8_t(index)};
      double seconds = kSliceSeconds;
      if (partial) {
        int64_t padded = (dim.size + sizes[axis] - 1) / sizes[axis] * sizes[axis];
        double paddedBytes = dim.size ? bytes / double(dim.size) * double(padded) : 0;
        seconds = cost(CollectiveKind::ReduceScatter, 1u << axis, paddedBytes);
      }
      visit(next, seconds, move);
    }
  }
}

void ReshardGraph::allReduces(Visitor visit) const {
  uint32_t all = 0;
  for (unsigned axis = 0; axis < axes.size(); ++axis)
    if (now[axis] == kPartial && (reducible >> axis & 1))
      all |= 1u << axis;
  for (uint32_t mask = all; mask; mask = (mask - 1) & all) {
    LayoutKey next = now;
    for (unsigned axis = 0; axis < axes.size(); ++axis)
      if (mask >> axis & 1)
        next[axis] = kUnused;
    visit(next, cost(CollectiveKind::AllReduce, mask, bytes),
          {.collective = CollectiveKind::AllReduce, .mask = uint16_t(mask)});
  }
}

void ReshardGraph::allGathers(Visitor visit) const {
  for (auto [index, dim] : llvm::enumerate(dims)) {
    if (dim.list.empty() || (temporal >> dim.list.back() & 1))
      continue;
    LayoutKey next = now;
    next[dim.list.back()] = kUnused;
    visit(next, cost(CollectiveKind::AllGather, 1u << dim.list.back(), bytes),
          {.collective = CollectiveKind::AllGather, .dim = uint8_t(index)});
  }
}

void ReshardGraph::allToAlls(Visitor visit) const {
  for (auto [index, dim] : llvm::enumerate(dims)) {
    uint32_t mask = 0;
    int64_t group = 1;
    for (size_t count = 1; count <= dim.list.size(); ++count) {
      unsigned first = dim.list[dim.list.size() - count];
      if (temporal >> first & 1)
        break;
      mask |= 1u << first;
      // The axes after `first` must split the shards of `first` evenly, on both dimensions; see
      // LinkedMesh::splitsInRankOrder.
      int64_t minor = group;
      group *= sizes[first];
      int64_t before = dim.shards / group;
      int64_t joined = (problem.shape[index] + before - 1) / before;
      if ((joined + sizes[first] - 1) / sizes[first] % minor)
        continue;
      for (auto [splitIndex, split] : llvm::enumerate(dims)) {
        int64_t part = (split.size + sizes[first] - 1) / sizes[first];
        if (splitIndex == index || part % minor || !mayAppend(splitIndex, first))
          continue;
        LayoutKey next = now;
        for (size_t i = 0; i < count; ++i)
          next[dim.list[dim.list.size() - count + i]] = placeOf(splitIndex, split.list.size() + i);
        int64_t rows = part / minor * group;
        auto padded = double(rows);
        double paddedBytes = split.size ? bytes / double(split.size) * padded : 0;
        ReshardMove move{.collective = CollectiveKind::AllToAll,
                         .dim = uint8_t(index),
                         .splitDim = uint8_t(splitIndex),
                         .count = uint8_t(count)};
        visit(next, cost(CollectiveKind::AllToAll, mask, paddedBytes), move);
      }
    }
  }
}

void ReshardGraph::permutes(Visitor visit) {
  next = now;
  uint32_t free = 0;
  for (unsigned axis = 0; axis < axes.size(); ++axis) {
    uint8_t place = now[axis];
    bool padded = isPlaced(place) && problem.shape[place >> 4] % dims[place >> 4].shards;
    if (place == kPartial || padded)
      continue;
    if (!(temporal >> axis & 1))
      free |= 1u << axis;
    next[axis] = kUnused;
  }
  permuteFrom(0, 1, 0, free, visit);
}

/// Goes on with `next`, where axes split dimensions before `dim`, and the first `position` axes of
/// `dim` make `shards`, in all ways that give each dimension its number of shards.
void ReshardGraph::permuteFrom(size_t dim, int64_t shards, unsigned position, uint32_t free,
                               Visitor visit) {
  if (triesLeft == 0)
    return;
  --triesLeft;
  if (dim == dims.size()) {
    // Only axes that move take part; see getPermute.
    uint32_t moved = 0;
    auto minorShards = [&](const LayoutKey &key, unsigned axis) {
      int64_t product = 1;
      for (unsigned other = 0; other < axes.size(); ++other)
        if (isPlaced(key[other]) && key[other] >> 4 == key[axis] >> 4 && key[other] > key[axis])
          product *= sizes[other];
      return product;
    };
    for (unsigned axis = 0; axis < axes.size(); ++axis) {
      bool before = isPlaced(now[axis]), after = isPlaced(next[axis]);
      if (before != after || (before && (now[axis] >> 4 != next[axis] >> 4 ||
                                         minorShards(now, axis) != minorShards(next, axis))))
        moved |= 1u << axis;
    }
    if (moved)
      visit(next, cost(CollectiveKind::Permute, moved, bytes),
            {.collective = CollectiveKind::Permute});
    return;
  }
  const Dim &old = dims[dim];
  if (problem.shape[dim] % old.shards)
    return permuteFrom(dim + 1, 1, 0, free, visit);
  // A temporal axis of this dimension comes where as many shards are before it as there were.
  int64_t before = 1;
  bool all = true;
  for (unsigned axis : old.list) {
    if ((temporal >> axis & 1) && next[axis] == kUnused) {
      if (before == shards) {
        next[axis] = placeOf(dim, position);
        permuteFrom(dim, shards * sizes[axis], position + 1, free, visit);
        next[axis] = kUnused;
        return;
      }
      all = false;
    }
    before *= sizes[axis];
  }
  if (shards == old.shards) {
    if (all)
      permuteFrom(dim + 1, 1, 0, free, visit);
    return;
  }
  uint8_t place = placeOf(dim, position);
  for (bool atTarget : {true, false})
    for (unsigned axis = 0; axis < axes.size(); ++axis) {
      if (!(free >> axis & 1) || old.shards % (shards * sizes[axis]) ||
          (target[axis] == place) != atTarget)
        continue;
      next[axis] = place;
      permuteFrom(dim, shards * sizes[axis], position + 1, free & ~(1u << axis), visit);
      next[axis] = kUnused;
    }
}

void ReshardGraph::replay(const LayoutKey &from, const LayoutKey &to, const ReshardMove &move,
                          ReshardBuilder &builder) const {
  if (!move.collective)
    return builder.slice(move.dim, axes[move.axis]);
  switch (*move.collective) {
  case CollectiveKind::ReduceScatter:
    return builder.reduceScatter(move.dim, axes[move.axis]);
  case CollectiveKind::AllGather:
    return builder.allGather(move.dim);
  case CollectiveKind::AllToAll:
    return builder.allToAll(move.dim, move.splitDim, move.count);
  case CollectiveKind::AllReduce: {
    AxisList list;
    for (unsigned axis = 0; axis < axes.size(); ++axis)
      if (move.mask >> axis & 1)
        list.push_back(axes[axis]);
    return builder.allReduce(list);
  }
  case CollectiveKind::Permute: {
    Layout before = decode(from), after = decode(to);
    return builder.permute(after, *getPermute(problem.mesh, problem.shape, before, after));
  }
  }
  llvm_unreachable("unknown step");
}
