//===- StagePartition.cpp - Partitioning of ops into pipeline stages ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/StagePartition.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

using namespace dtc;

MaybeError dtc::checkPartition(const StagePartitionProblem &problem) {
  int ops = problem.seconds.size(), places = 0;
  assert(problem.cutSeconds.size() == problem.seconds.size() &&
         problem.mayCut.size() == problem.seconds.size());
  for (int op = 1; op < ops; ++op)
    places += problem.mayCut[op];
  if (problem.stages < 1)
    return Error{"a model in " + std::to_string(problem.stages) + " stages; expected at least one"};
  if (ops == 0)
    return Error{"a model without ops, which cannot be cut into stages"};
  if (problem.stages > places + 1)
    return Error{std::to_string(problem.stages) + " stages; the model can be cut at " +
                 std::to_string(places) + (places == 1 ? " place" : " places") + ", into at most " +
                 std::to_string(places + 1) + "; ask for fewer"};
  int before = 0;
  for (int cut : problem.fixedCuts) {
    if (cut <= before || cut >= ops)
      return Error{"a fixed cut before op " + std::to_string(cut) + " after one before op " +
                   std::to_string(before) + " of " + std::to_string(ops) +
                   "; expected ascending ones, with an op in each stage"};
    if (!problem.mayCut[cut])
      return Error{"a fixed cut before op " + std::to_string(cut) +
                   ", where the model cannot be cut"};
    before = cut;
  }
  if (int(problem.fixedCuts.size()) >= problem.stages)
    return Error{std::to_string(problem.fixedCuts.size()) + " fixed cuts, which make " +
                 std::to_string(problem.fixedCuts.size() + 1) + " stages; expected at most " +
                 std::to_string(problem.stages) + "; remove cuts or ask for more stages"};
  return std::nullopt;
}

namespace {

/// Places are numbered: 0 is the beginning, then all where a cut may be, and `last` is the end.
/// Costs are whole numbers, so that sums are exact and equal stages are equal.
class StagePartitioner {
public:
  explicit StagePartitioner(const StagePartitionProblem &problem) : stages(problem.stages) {
    int ops = problem.seconds.size();
    double sum = 0;
    for (int op = 0; op < ops; ++op)
      sum += problem.seconds[op] + (op > 0 && problem.mayCut[op] ? problem.cutSeconds[op] : 0);
    // The sum becomes at most 2^30, which leaves room for its product with a number of stages.
    int exponent = 0;
    std::frexp(sum, &exponent);
    auto rounded = [&](double seconds) -> int64_t {
      return std::llround(std::ldexp(seconds, 30 - exponent));
    };
    int64_t cost = 0;
    for (int op = 0; op <= ops; ++op) {
      bool inside = op > 0 && op < ops;
      if (!inside || problem.mayCut[op]) {
        opAfter.push_back(op);
        before.push_back(cost);
        cut.push_back(inside ? rounded(problem.cutSeconds[op]) : 0);
      }
      if (op < ops)
        cost += rounded(problem.seconds[op]);
    }
    last = opAfter.size() - 1;
    lastFixed.push_back(0);
    for (int place = 1; place <= last; ++place) {
      bool fixed = llvm::is_contained(problem.fixedCuts, opAfter[place - 1]);
      lastFixed.push_back(fixed ? place - 1 : lastFixed.back());
    }
  }

  StagePartition run() {
    // Some partition exists, since the problem is a possible one: any high enough limit will do.
    // Most often the limit is little above the lower bound. The higher it is, the more stages there
    // are to look at, so it rises slowly.
    int64_t low = lowerBound(), high = low;
    for (int64_t step = low / 64 + 1; !isPossible(high); step *= 2) {
      low = high + 1;
      high += step;
    }
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      if (isPossible(middle))
        high = middle;
      else
        low = middle + 1;
    }
    bottleneck = high;
    findLeastCuts();
    return choose();
  }

private:
  /// The seconds of the ops between a place and the next: an indivisible part.
  int64_t indivisible(int place) const { return before[place + 1] - before[place]; }

  int64_t stageCost(int from, int to) const {
    return before[to] - before[from] + cut[from] + cut[to];
  }

  /// No bottleneck is less than an even share, nor than the least stage that has a given
  /// indivisible part.
  int64_t lowerBound() const {
    std::vector<int64_t> right(last + 1, 0); // what a stage takes from a place to its end, at least
    for (int place = last - 1; place > 0; --place) {
      bool fixed = lastFixed[place + 1] == place;
      right[place] =
          fixed ? cut[place] : std::min(cut[place], indivisible(place) + right[place + 1]);
    }
    int64_t bound = before[last] / stages, left = 0;
    for (int place = 0; place < last; ++place) {
      bool fixed = lastFixed[place + 1] == place;
      left = place == 0 || fixed ? cut[place] : std::min(cut[place], indivisible(place - 1) + left);
      bound = std::max(bound, left + indivisible(place) + right[place + 1]);
    }
    return bound;
  }

  /// Calls `visit` with all places at which a stage that ends at `to` can begin, the latest first.
  template <typename Visit> void forBegins(int to, int64_t limit, Visit visit) const {
    for (int from = to - 1; from >= lastFixed[to]; --from) {
      if (before[to] - before[from] + cut[to] > limit)
        return;
      if (stageCost(from, to) <= limit)
        visit(from);
    }
  }

  /// Whether there is a partition without a stage slower than `limit`. Keeps for each place the set
  /// of the numbers of stages that can end there, as bits.
  bool isPossible(int64_t limit) const {
    int words = stages / 64 + 1;
    std::vector<uint64_t> counts(size_t(last + 1) * words, 0), any(words);
    counts[0] = 1;
    for (int to = 1; to <= last; ++to) {
      llvm::fill(any, 0);
      forBegins(to, limit, [&](int from) {
        const uint64_t *begin = &counts[size_t(from) * words];
        for (int w = 0, end = std::min(words, from / 64 + 1); w < end; ++w)
          any[w] |= begin[w];
      });
      uint64_t carry = 0;
      for (int w = 0; w < words; ++w) {
        counts[size_t(to) * words + w] = any[w] << 1 | carry;
        carry = any[w] >> 63;
      }
    }
    return counts[size_t(last) * words + stages / 64] >> (stages % 64) & 1;
  }

  int64_t &cuts(int count, int place) { return leastCuts[size_t(count) * (last + 1) + place]; }

  /// Fills `leastCuts`: for each number of stages and place, the least sum of the cuts up to the
  /// place, itself included, with that many stages before it and none slower than the bottleneck.
  ///
  /// A stage may begin at a place if before - cut of that is at least before + cut of the stage's
  /// end, less the bottleneck. So beginnings are ordered by before - cut, and one is dropped where
  /// another has at least its before - cut and no more cuts.
  void findLeastCuts() {
    leastCuts.assign(size_t(stages + 1) * (last + 1), none);
    cuts(0, 0) = 0;
    std::vector<std::pair<int64_t, int64_t>> begins; // before - cut, and cuts: both ascend
    for (int count = 1; count <= stages; ++count) {
      begins.clear();
      for (int to = count; to <= last; ++to) {
        int from = to - 1;
        if (lastFixed[to] == from)
          begins.clear();
        if (int64_t least = cuts(count - 1, from); least != none) {
          int64_t key = before[from] - cut[from];
          auto next =
              llvm::lower_bound(begins, std::pair(key, std::numeric_limits<int64_t>::min()));
          if (next == begins.end() || next->second > least) {
            auto first = next;
            while (first != begins.begin() && std::prev(first)->second >= least)
              --first;
            next = begins.erase(first, next);
            begins.insert(next, {key, least});
          }
        }
        auto best = llvm::lower_bound(begins, std::pair(before[to] + cut[to] - bottleneck,
                                                        std::numeric_limits<int64_t>::min()));
        if (best != begins.end())
          cuts(count, to) = best->second + cut[to];
      }
    }
  }

  /// An even share of the work before a place for each of `count` stages, as a fraction. An
  /// indivisible part that takes more than the share has a stage of its own. (There are fewer such
  /// parts than stages: as many as there are stages would take more than the whole.)
  std::pair<int64_t, int64_t> evenShare(int place, int count) {
    int64_t seconds = before[place] + 2 * cuts(count, place) - cut[place];
    std::pair<int64_t, int64_t> share(seconds, count);
    while (true) {
      std::pair<int64_t, int64_t> less(seconds, count);
      for (int p = 0; p < place; ++p)
        if (indivisible(p) * share.second > share.first) {
          less.first -= indivisible(p);
          --less.second;
        }
      if (less == share)
        return share;
      share = less;
    }
  }

  /// From the last stage to the first, the stage closest to an even share of the rest.
  StagePartition choose() {
    std::vector<int> firstOps;
    for (int place = last, count = stages; count > 0; --count) {
      auto [seconds, parts] = evenShare(place, count);
      int64_t closest = none;
      int begin = -1;
      forBegins(place, bottleneck, [&, seconds = seconds, parts = parts](int from) {
        int64_t least = cuts(count - 1, from);
        int64_t distance = std::abs(stageCost(from, place) * parts - seconds);
        // The earliest beginning comes last, and wins where all else is equal.
        if (least != none && least + cut[place] == cuts(count, place) && distance <= closest) {
          closest = distance;
          begin = from;
        }
      });
      assert(begin >= 0 && "the problem is impossible");
      place = begin;
      firstOps.push_back(opAfter[place]);
    }
    std::reverse(firstOps.begin(), firstOps.end());
    return {std::move(firstOps)};
  }

  static constexpr int64_t none = std::numeric_limits<int64_t>::max();

  int stages;
  int last = 0;
  std::vector<int> opAfter;    ///< by place
  std::vector<int64_t> before; ///< by place, the cost of all ops before it
  std::vector<int64_t> cut;    ///< by place
  std::vector<int> lastFixed;  ///< by place, the last fixed cut before it, or 0
  int64_t bottleneck = 0;
  std::vector<int64_t> leastCuts; ///< see `cuts`
};

} // namespace

StagePartition dtc::partitionStages(const StagePartitionProblem &problem) {
  assert(!checkPartition(problem));
  StagePartition partition = StagePartitioner(problem).run();
  for (int stage = 0; stage < problem.stages; ++stage) {
    int first = partition.firstOps[stage];
    bool isLast = stage + 1 == problem.stages;
    int end = isLast ? int(problem.seconds.size()) : partition.firstOps[stage + 1];
    double begins = stage > 0 ? problem.cutSeconds[first] : 0;
    double seconds = begins + (isLast ? 0 : problem.cutSeconds[end]);
    for (int op = first; op < end; ++op)
      seconds += problem.seconds[op];
    partition.bottleneck = std::max(partition.bottleneck, seconds);
    partition.cutSeconds += begins;
  }
  return partition;
}
