//===- RecomputeExact.cpp - Branch and bound for few ops ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/RecomputeSearch.h"

#include <utility>

using namespace dtc;

using Cost = MinimumCut::Capacity;

namespace {
/// Decides op by op, from the last to the first: so the needed values are known.
class BranchAndBound {
public:
  BranchAndBound(const RecomputeInput &input, const std::vector<bool> &fitting, int64_t keepBytes,
                 RecomputePrice price);

  std::vector<bool> run() {
    decide(int(candidates.size()), startBytes);
    return best;
  }

private:
  /// Decides about the first `count` candidates. The decided values keep `bytes`.
  void decide(int count, int64_t bytes);
  bool isCandidate(int op) const { return op >= 0 && input.ticks[op] >= 0; }

  /// The least that the remaining values add to those decided.
  struct Bound {
    Cost cost = 0; // at the price
    int64_t bytes = 0;
  };

  const RecomputeInput &input;
  const std::vector<RecomputeValue> &values;
  const std::vector<RecomputeOp> &ops;
  int64_t keepBytes;
  RecomputePrice price;
  std::vector<int> candidates; // ops that may be recomputed
  std::vector<Bound> bounds;   // by number of candidates to decide about
  int64_t startBytes = 0;
  RecomputeSelection selection;
  std::vector<bool> best;
  int64_t bestTicks;
  int64_t steps = 0;
};
} // namespace

BranchAndBound::BranchAndBound(const RecomputeInput &input, const std::vector<bool> &fitting,
                               int64_t keepBytes, RecomputePrice price)
    : input(input), values(input.problem.values), ops(input.problem.ops), keepBytes(keepBytes),
      price(price), selection(input, std::vector<bool>(fitting.size())), best(fitting),
      bestTicks(RecomputeSelection(input, fitting).getTicks()) {
  // The bounds leave out what can only be kept: whether it is needed is part of what is decided.
  RecomputeProblem undecided = input.problem;
  for (RecomputeValue &value : undecided.values)
    if (!isCandidate(value.producer)) {
      startBytes += value.usedBackward ? value.bytes : 0;
      value.bytes = 0;
    }
  RecomputeInput undecidedInput(std::move(undecided));
  bounds.push_back({});
  for (int op = 0; op < int(ops.size()); ++op) {
    if (!isCandidate(op))
      continue;
    candidates.push_back(op);
    bounds.push_back({RecomputeCut(undecidedInput, price, op + 1).cost,
                      int64_t(RecomputeCut(undecidedInput, {0, 1}, op + 1).cost)});
  }
}

void BranchAndBound::decide(int count, int64_t bytes) {
  constexpr int64_t kMaxSteps = 4'000'000;
  int64_t ticks = selection.getTicks();
  const Bound &bound = bounds[count];
  // The values kept in the end have at most keepBytes, so the price bounds the ticks.
  if (ticks >= bestTicks || bytes + bound.bytes > keepBytes ||
      Cost(price.tick) * (bestTicks - ticks) <=
          bound.cost - Cost(price.byte) * (keepBytes - bytes) ||
      ++steps > kMaxSteps)
    return;
  if (count == 0) {
    bestTicks = ticks;
    best = selection.getChoice();
    return;
  }
  int op = candidates[count - 1];
  int64_t keptBytes = bytes;
  for (int result : ops[op].results)
    keptBytes += selection.getNumUses(result) > 0 ? values[result].bytes : 0;
  decide(count - 1, keptBytes);
  if (!selection.isNeeded(op))
    return;
  size_t mark = selection.getMark();
  for (int operand : ops[op].operands)
    if (!isCandidate(values[operand].producer) && selection.getNumUses(operand) == 0)
      bytes += values[operand].bytes;
  selection.toggle(op);
  decide(count - 1, bytes);
  selection.rollback(mark);
}

std::vector<bool> dtc::searchRecompute(const RecomputeInput &input,
                                       const std::vector<bool> &fitting, int64_t keepBytes,
                                       RecomputePrice price) {
  return BranchAndBound(input, fitting, keepBytes, price).run();
}
