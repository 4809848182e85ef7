//===- RecomputeSearch.h - Local search between minimum cuts --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The search of chooseRecompute, from the choices of minimum cuts.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_RECOMPUTESEARCH_H
#define DTC_COMPILER_ANALYSIS_RECOMPUTESEARCH_H

#include "compiler/analysis/MinimumCut.h"
#include "compiler/analysis/Recompute.h"

#include <cstddef>
#include <vector>

namespace dtc {

/// Up to this many ops that may be recomputed chooseRecompute looks at all choices.
constexpr int kMaxExactRecomputeOps = 24;

/// chooseRecompute with another limit: for tests.
RecomputeChoice chooseRecompute(const RecomputeProblem &problem, int64_t keepBytes,
                                int maxExactOps);

/// A problem whose seconds are integers, so that sums are exact in every order, and whose ops have
/// each operand once.
struct RecomputeInput {
  explicit RecomputeInput(RecomputeProblem original);

  RecomputeProblem problem;
  std::vector<int64_t> ticks; ///< by op; -1: it may not be recomputed
  int64_t totalTicks = 0, totalBytes = 0;
};

/// A choice costs tick * its ticks + byte * its kept bytes.
struct RecomputePrice {
  int64_t tick = 1, byte = 1;
};

/// The cheapest choices at a price, among the first `numOps` ops and their values.
struct RecomputeCut {
  RecomputeCut(const RecomputeInput &input, RecomputePrice price, int numOps);
  RecomputeCut(const RecomputeInput &input, RecomputePrice price)
      : RecomputeCut(input, price, int(input.ticks.size())) {}

  /// By op, whether it is recomputed, where `side` is the side of the source.
  std::vector<bool> getChoice(const std::vector<bool> &side) const;

  MinimumCut graph;
  std::vector<int> opNodes;      ///< by op; -1: it has none
  MinimumCut::Capacity cost = 0; ///< of the cheapest choices
};

/// A choice that changes op by op, and can go back.
class RecomputeSelection {
public:
  RecomputeSelection(const RecomputeInput &input, const std::vector<bool> &choice);

  const RecomputeInput &getInput() const { return input; }
  const std::vector<bool> &getChoice() const { return choice; }
  bool isComputed(int op) const { return choice[op]; }
  int64_t getTicks() const { return ticks; }
  int64_t getBytes() const { return bytes; }
  int getNumUses(int value) const { return uses[value]; }
  /// Whether the backward pass, or an op that is recomputed, needs a result of `op`.
  bool isNeeded(int op) const;

  /// Computes `op` again if it is not, and does not if it is; nothing else changes.
  void toggle(int op);
  /// No longer computes `op` again, nor what only it needed.
  void keep(int op);

  size_t getMark() const { return toggled.size(); }
  /// Takes back what was done since getMark() was `mark`.
  void rollback(size_t mark);
  /// How many values toggles went over, those taken back too: a measure of work.
  int64_t getWork() const { return work; }

private:
  const RecomputeInput &input;
  std::vector<bool> choice;
  std::vector<int> uses; // by value: the backward pass, and operands of what is recomputed
  std::vector<int> toggled;
  int64_t ticks = 0, bytes = 0, work = 0;
};

/// A choice near `fitting`, which keeps at most `keepBytes`, and `exceeding`, which keeps more:
/// not more ticks than `fitting`. Ops are taken out of it in the order of the time saved for each
/// byte, alone, with those that only they need, or with those that need the same value; then pairs
/// are exchanged while that saves time. `price` compares ways to save bytes.
std::vector<bool> refineRecompute(const RecomputeInput &input, const std::vector<bool> &fitting,
                                  const std::vector<bool> &exceeding, int64_t keepBytes,
                                  RecomputePrice price);

/// A choice with the fewest ticks among those that keep at most `keepBytes`, by branch and bound
/// from `fitting`, with the bound that minimum cuts at `price` give. It ends early, with the best
/// choice so far, after some millions of steps.
std::vector<bool> searchRecompute(const RecomputeInput &input, const std::vector<bool> &fitting,
                                  int64_t keepBytes, RecomputePrice price);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_RECOMPUTESEARCH_H
