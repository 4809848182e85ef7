//===- ArenaPlan.cpp - Offsets for buffers with known lifetimes -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/ArenaPlan.h"

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

/// Places in order of the first instant. Returns the size of the arena.
static int64_t place(llvm::ArrayRef<Lifetime> lifetimes, std::vector<int64_t> &offsets) {
  std::vector<unsigned> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0u);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    const Lifetime &l = lifetimes[a], &r = lifetimes[b];
    return std::make_tuple(l.first, -l.last, -l.bytes, a) <
           std::make_tuple(r.first, -r.last, -r.bytes, b);
  });
  std::set<std::pair<int, unsigned>> alive; // by last instant
  FreeList gaps;
  offsets.assign(lifetimes.size(), 0);
  for (unsigned index : order) {
    const Lifetime &lifetime = lifetimes[index];
    while (!alive.empty() && alive.begin()->first < lifetime.first) {
      unsigned dead = alive.begin()->second;
      gaps.free(offsets[dead], lifetimes[dead].bytes);
      alive.erase(alive.begin());
    }
    if (lifetime.bytes == 0)
      continue;
    offsets[index] = gaps.allocate(lifetime.bytes);
    alive.insert({lifetime.last, index});
  }
  return gaps.size();
}

ArenaPlan dtc::planArena(llvm::ArrayRef<Lifetime> lifetimes) {
  ArenaPlan plan;
  plan.arenaBytes = place(lifetimes, plan.offsets);

  std::vector<Lifetime> reversed;
  for (const Lifetime &lifetime : lifetimes)
    reversed.push_back({lifetime.bytes, -lifetime.last, -lifetime.first});
  std::vector<int64_t> offsets;
  if (int64_t bytes = place(reversed, offsets); bytes < plan.arenaBytes) {
    plan.arenaBytes = bytes;
    plan.offsets = offsets;
  }

  std::map<int, int64_t> change;
  for (const Lifetime &lifetime : lifetimes) {
    change[lifetime.first] += lifetime.bytes;
    change[lifetime.last + 1] -= lifetime.bytes;
  }
  int64_t alive = 0;
  for (auto [instant, bytes] : change) {
    alive += bytes;
    if (alive > plan.lowerBound) {
      plan.lowerBound = alive;
      plan.peak = instant;
    }
  }
  return plan;
}
