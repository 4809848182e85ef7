//===- ArenaOffsets.cpp - Offsets for buffers with known live ranges ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/ArenaOffsets.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

using namespace dtc;

namespace {

/// The gaps of an arena: best fit, neighbours merged.
class FreeList {
public:
  int64_t allocate(int64_t bytes) {
    auto fit = bySize.lower_bound({bytes, 0});
    if (fit != bySize.end()) {
      auto [size, offset] = *fit;
      remove(offset, size);
      if (size > bytes)
        insert(offset + bytes, size - bytes);
      return offset;
    }
    // Nothing fits: grow, from the last gap if it touches the end.
    int64_t offset = end;
    if (!byOffset.empty()) {
      auto [gap, size] = *byOffset.rbegin();
      if (gap + size == end) {
        remove(gap, size);
        offset = gap;
      }
    }
    end = offset + bytes;
    return offset;
  }

  void free(int64_t offset, int64_t bytes) {
    auto next = byOffset.lower_bound(offset);
    if (next != byOffset.end() && offset + bytes == next->first) {
      auto [nextOffset, nextSize] = *next;
      remove(nextOffset, nextSize);
      bytes += nextSize;
    }
    auto after = byOffset.lower_bound(offset);
    if (after != byOffset.begin()) {
      auto [previous, size] = *std::prev(after);
      if (previous + size == offset) {
        remove(previous, size);
        offset = previous;
        bytes += size;
      }
    }
    insert(offset, bytes);
  }

  int64_t size() const { return end; }

private:
  void insert(int64_t offset, int64_t size) {
    byOffset[offset] = size;
    bySize.insert({size, offset});
  }
  void remove(int64_t offset, int64_t size) {
    byOffset.erase(offset);
    bySize.erase({size, offset});
  }

  std::map<int64_t, int64_t> byOffset;
  std::set<std::pair<int64_t, int64_t>> bySize;
  int64_t end = 0;
};

} // namespace

/// Places in order of the first program point. Returns the size of the arena.
static int64_t place(llvm::ArrayRef<LiveRange> ranges, std::vector<int64_t> &offsets) {
  std::vector<unsigned> order(ranges.size());
  std::iota(order.begin(), order.end(), 0u);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    const LiveRange &l = ranges[a], &r = ranges[b];
    return std::make_tuple(l.first, -l.last, -l.bytes, a) <
           std::make_tuple(r.first, -r.last, -r.bytes, b);
  });
  std::set<std::pair<int, unsigned>> alive; // by last program point
  FreeList gaps;
  offsets.assign(ranges.size(), 0);
  for (unsigned index : order) {
    const LiveRange &range = ranges[index];
    while (!alive.empty() && alive.begin()->first < range.first) {
      unsigned dead = alive.begin()->second;
      gaps.free(offsets[dead], ranges[dead].bytes);
      alive.erase(alive.begin());
    }
    if (range.bytes == 0)
      continue;
    offsets[index] = gaps.allocate(range.bytes);
    alive.insert({range.last, index});
  }
  return gaps.size();
}

/// Places the largest first, each at the lowest offset at which it is disjoint from those that are
/// placed and alive with it. Takes the square of their number. Returns the size of the arena.
static int64_t placeBySize(llvm::ArrayRef<LiveRange> ranges, std::vector<int64_t> &offsets) {
  std::vector<unsigned> order(ranges.size());
  std::iota(order.begin(), order.end(), 0u);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    const LiveRange &l = ranges[a], &r = ranges[b];
    return std::make_tuple(-l.bytes, l.first - l.last, a) <
           std::make_tuple(-r.bytes, r.first - r.last, b);
  });
  struct Placed {
    int64_t offset, end;
    int first, last;
  };
  std::vector<Placed> placed; // by offset
  int64_t size = 0;
  offsets.assign(ranges.size(), 0);
  for (unsigned index : order) {
    const LiveRange &range = ranges[index];
    if (range.bytes == 0)
      continue;
    int64_t offset = 0;
    for (const Placed &other : placed) {
      if (other.offset - offset >= range.bytes)
        break;
      if (other.first <= range.last && range.first <= other.last)
        offset = std::max(offset, other.end);
    }
    offsets[index] = offset;
    Placed own{offset, offset + range.bytes, range.first, range.last};
    size = std::max(size, own.end);
    placed.insert(
        llvm::upper_bound(placed, own,
                          [](const Placed &a, const Placed &b) { return a.offset < b.offset; }),
        own);
  }
  return size;
}

ArenaOffsets dtc::assignOffsets(llvm::ArrayRef<LiveRange> ranges) {
  ArenaOffsets plan;
  std::map<int, int64_t> change;
  for (const LiveRange &range : ranges) {
    change[range.first] += range.bytes;
    change[range.last + 1] -= range.bytes;
  }
  int64_t alive = 0;
  for (auto [point, bytes] : change) {
    alive += bytes;
    if (alive > plan.lowerBound) {
      plan.lowerBound = alive;
      plan.peak = point;
    }
  }

  plan.arenaBytes = place(ranges, plan.offsets);
  auto attempt = [&](auto place, llvm::ArrayRef<LiveRange> ranges) {
    if (plan.arenaBytes == plan.lowerBound)
      return;
    std::vector<int64_t> offsets;
    if (int64_t bytes = place(ranges, offsets); bytes < plan.arenaBytes) {
      plan.arenaBytes = bytes;
      plan.offsets = std::move(offsets);
    }
  };
  std::vector<LiveRange> reversed;
  for (const LiveRange &range : ranges)
    reversed.push_back({range.bytes, -range.last, -range.first});
  attempt(place, reversed);
  // In large programs the remaining gain is worth less time.
  constexpr size_t kMostBySize = 4096;
  if (ranges.size() <= kMostBySize)
    attempt(placeBySize, ranges);
  return plan;
}
