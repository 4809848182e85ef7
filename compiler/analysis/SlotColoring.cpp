//===- SlotColoring.cpp - Assignment of slots to microbatches -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/SlotColoring.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <utility>

using namespace dtc;

namespace {

/// Goes over the intervals that are not empty, in the order in which they begin.
class Sweep {
public:
  explicit Sweep(llvm::ArrayRef<SlotInterval> intervals) : intervals(intervals) {
    for (size_t i = 0; i < intervals.size(); ++i)
      if (!intervals[i].isEmpty())
        order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return intervals[a].first < intervals[b].first; });
  }

  /// Calls `ends` for the intervals that have ended before the next one begins, then `begins` for
  /// that one.
  void run(llvm::function_ref<void(size_t)> ends, llvm::function_ref<void(size_t)> begins) {
    std::priority_queue<std::pair<int, size_t>, std::vector<std::pair<int, size_t>>, std::greater<>>
        inUse; // by last place
    for (size_t next : order) {
      for (; !inUse.empty() && inUse.top().first < intervals[next].first; inUse.pop())
        ends(inUse.top().second);
      inUse.push({intervals[next].last, next});
      begins(next);
    }
  }

private:
  llvm::ArrayRef<SlotInterval> intervals;
  std::vector<size_t> order;
};

} // namespace

int64_t dtc::countSlotsInTurn(llvm::ArrayRef<SlotInterval> intervals) {
  // Two values that are in use at one place are both in use where the later one begins. All from
  // the least number in use to the greatest need slots of their own.
  int64_t slots = 1;
  std::set<size_t> inUse;
  Sweep(intervals).run([&](size_t ended) { inUse.erase(ended); },
                       [&](size_t begun) {
                         inUse.insert(begun);
                         slots = std::max(slots, int64_t(*inUse.rbegin() - *inUse.begin()) + 1);
                       });
  return slots;
}

SlotColoring dtc::colorSlots(llvm::ArrayRef<SlotInterval> intervals) {
  SlotColoring coloring;
  coloring.slotOf.assign(intervals.size(), 0);
  int64_t used = 0;
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> free;
  Sweep(intervals).run([&](size_t ended) { free.push(coloring.slotOf[ended]); },
                       [&](size_t begun) {
                         if (free.empty())
                           free.push(used++);
                         coloring.slotOf[begun] = free.top();
                         free.pop();
                       });
  coloring.slots = std::max<int64_t>(used, 1);
  return coloring;
}
