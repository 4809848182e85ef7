//===- RecomputeSearch.cpp - Local search between minimum cuts ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/RecomputeSearch.h"

#include <algorithm>
#include <queue>
#include <utility>

using namespace dtc;

using Cost = MinimumCut::Capacity;

//===----------------------------------------------------------------------===//
// RecomputeSelection
//===----------------------------------------------------------------------===//

RecomputeSelection::RecomputeSelection(const RecomputeInput &input,
                                       const std::vector<bool> &selected)
    : input(input), choice(selected.size()) {
  for (const RecomputeValue &value : input.problem.values) {
    uses.push_back(value.usedBackward);
    bytes += value.usedBackward ? value.bytes : 0;
  }
  for (int op = int(selected.size()) - 1; op >= 0; --op)
    if (selected[op] && isNeeded(op))
      toggle(op);
  toggled.clear();
  work = 0;
}

bool RecomputeSelection::isNeeded(int op) const {
  const std::vector<int> &results = input.problem.ops[op].results;
  return std::any_of(results.begin(), results.end(), [&](int value) { return uses[value] > 0; });
}

void RecomputeSelection::toggle(int op) {
  const RecomputeOp &toggledOp = input.problem.ops[op];
  const std::vector<RecomputeValue> &values = input.problem.values;
  int sign = choice[op] ? -1 : 1;
  choice[op] = !choice[op];
  ticks += sign * input.ticks[op];
  for (int result : toggledOp.results)
    if (uses[result] > 0)
      bytes -= sign * values[result].bytes;
  for (int operand : toggledOp.operands) {
    bool wasUsed = uses[operand] > 0;
    uses[operand] += sign;
    bool isKept = values[operand].producer < 0 || !choice[values[operand].producer];
    if (isKept && wasUsed != (uses[operand] > 0))
      bytes += sign * values[operand].bytes;
  }
  toggled.push_back(op);
  work += int64_t(toggledOp.operands.size() + toggledOp.results.size());
}

void RecomputeSelection::keep(int op) {
  std::vector<int> stack = {op};
  while (!stack.empty()) {
    int kept = stack.back();
    stack.pop_back();
    if (!choice[kept])
      continue; // two of those that needed it are gone
    toggle(kept);
    for (int operand : input.problem.ops[kept].operands) {
      int producer = input.problem.values[operand].producer;
      if (producer >= 0 && choice[producer] && !isNeeded(producer))
        stack.push_back(producer);
    }
  }
}

void RecomputeSelection::rollback(size_t mark) {
  while (toggled.size() > mark) {
    int op = toggled.back();
    toggle(op);
    toggled.resize(toggled.size() - 2);
  }
}

//===----------------------------------------------------------------------===//
// Refinement
//===----------------------------------------------------------------------===//

namespace {
class Refinement {
public:
  Refinement(const RecomputeInput &input, int64_t keepBytes, RecomputePrice price)
      : input(input), values(input.problem.values), ops(input.problem.ops), keepBytes(keepBytes),
        price(price), users(values.size()) {
    for (int op = 0; op < int(ops.size()); ++op)
      if (input.ticks[op] >= 0)
        for (int value : ops[op].operands)
          users[value].push_back(op);
  }

  /// Takes ops out while what is kept fits.
  void fill(RecomputeSelection &selection);
  /// Adds ops until what is kept fits; false if none helps. Never adds `except`.
  bool repair(RecomputeSelection &selection, int except = -1);
  /// Adds or takes out an op that does not help alone, if it does after fill() or repair().
  void exchange(RecomputeSelection &selection);

private:
  /// The saving and the cost of a change: bytes and ticks, or ticks and bytes.
  struct Rate {
    int64_t saved = 0, spent = 0;
    int index = 0; // of the change; decides between equals
    bool operator<(const Rate &other) const {
      Cost mine = Cost(saved) * other.spent, others = Cost(other.saved) * spent;
      return mine != others ? mine < others : index > other.index;
    }
  };

  /// A change that recomputes less: for an op, not that one; for a value, none that needs it.
  void takeOut(RecomputeSelection &selection, int index) const;
  /// Computes `op` again, and what it needs as far as that pays at the price.
  void add(RecomputeSelection &selection, int op) const;
  Cost getCost(const RecomputeSelection &selection) const {
    return Cost(price.tick) * selection.getTicks() + Cost(price.byte) * selection.getBytes();
  }
  bool mayAdd(const RecomputeSelection &selection, int op) const {
    return input.ticks[op] >= 0 && !selection.isComputed(op) && selection.isNeeded(op);
  }

  const RecomputeInput &input;
  const std::vector<RecomputeValue> &values;
  const std::vector<RecomputeOp> &ops;
  int64_t keepBytes;
  RecomputePrice price;
  std::vector<std::vector<int>> users; // by value: the ops that need it and may be recomputed
};
} // namespace

void Refinement::takeOut(RecomputeSelection &selection, int index) const {
  if (index < int(ops.size())) {
    if (selection.isComputed(index))
      selection.keep(index);
    return;
  }
  for (int user : users[index - ops.size()])
    if (selection.isComputed(user))
      selection.keep(user);
}

void Refinement::fill(RecomputeSelection &selection) {
  std::priority_queue<Rate> rates;
  auto push = [&](int index) {
    int64_t ticks = selection.getTicks(), bytes = selection.getBytes();
    size_t mark = selection.getMark();
    takeOut(selection, index);
    Rate rate{ticks - selection.getTicks(), std::max<int64_t>(selection.getBytes() - bytes, 0),
              index};
    if (rate.saved > 0 && selection.getBytes() <= keepBytes)
      rates.push(rate);
    selection.rollback(mark);
    return rate;
  };
  bool changed = true;
  while (changed) {
    changed = false;
    for (int op = 0; op < int(ops.size()); ++op)
      if (selection.isComputed(op))
        push(op);
    for (size_t value = 0; value < values.size(); ++value)
      if (users[value].size() > 1 && !values[value].usedBackward)
        push(int(ops.size() + value));
    while (!rates.empty()) {
      Rate best = rates.top();
      rates.pop();
      // Changes since may have made it worse: then it waits for its turn.
      size_t size = rates.size();
      Rate now = push(best.index);
      if (rates.size() == size || now < best)
        continue;
      takeOut(selection, best.index);
      changed = true;
    }
  }
}

void Refinement::add(RecomputeSelection &selection, int op) const {
  constexpr size_t kMaxChain = 32;
  std::vector<int> chain = {op};
  size_t bestMark = 0;
  Cost bestCost = 0;
  for (size_t i = 0; i < chain.size() && i < kMaxChain; ++i) { // chain grows
    if (!mayAdd(selection, chain[i]))
      continue;
    selection.toggle(chain[i]);
    Cost cost = getCost(selection);
    if (i == 0 || cost < bestCost) {
      bestCost = cost;
      bestMark = selection.getMark();
    }
    for (int operand : ops[chain[i]].operands)
      if (values[operand].producer >= 0 && selection.getNumUses(operand) == 1)
        chain.push_back(values[operand].producer);
  }
  if (bestMark > 0)
    selection.rollback(bestMark);
}

bool Refinement::repair(RecomputeSelection &selection, int except) {
  while (selection.getBytes() > keepBytes) {
    Rate best;
    for (int op = 0; op < int(ops.size()); ++op) {
      if (op == except || !mayAdd(selection, op))
        continue;
      int64_t ticks = selection.getTicks(), bytes = selection.getBytes();
      size_t mark = selection.getMark();
      add(selection, op);
      // More than is missing is worth nothing.
      Rate rate{std::min(bytes - selection.getBytes(), bytes - keepBytes),
                selection.getTicks() - ticks, op};
      if (rate.saved > 0 && (best.saved == 0 || best < rate))
        best = rate;
      selection.rollback(mark);
    }
    if (best.saved == 0)
      return false;
    add(selection, best.index);
  }
  return true;
}

void Refinement::exchange(RecomputeSelection &selection) {
  constexpr int64_t kMaxWork = 2'000'000;
  bool changed = true;
  while (changed) {
    changed = false;
    for (int op = 0; op < int(ops.size()); ++op) {
      if (selection.getWork() > kMaxWork)
        return;
      int64_t ticks = selection.getTicks();
      size_t mark = selection.getMark();
      if (selection.isComputed(op))
        selection.keep(op);
      else if (mayAdd(selection, op))
        add(selection, op);
      else
        continue;
      bool fits = repair(selection, op);
      if (fits)
        fill(selection);
      if (fits && selection.getTicks() < ticks)
        changed = true;
      else
        selection.rollback(mark);
    }
  }
}

std::vector<bool> dtc::refineRecompute(const RecomputeInput &input,
                                       const std::vector<bool> &fitting,
                                       const std::vector<bool> &exceeding, int64_t keepBytes,
                                       RecomputePrice price) {
  Refinement refinement(input, keepBytes, price);
  RecomputeSelection best(input, fitting), other(input, exceeding);
  refinement.fill(best);
  if (refinement.repair(other)) {
    refinement.fill(other);
    if (other.getTicks() < best.getTicks()) {
      refinement.exchange(other);
      return other.getChoice();
    }
  }
  refinement.exchange(best);
  return best.getChoice();
}
