//===- Recompute.h - Choice of the saved activations ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A value of the forward pass that the backward pass uses is kept until then, or recomputed,
// from values that are kept or recomputed themselves (Chen et al. 2016, "Training Deep Nets
// with Sublinear Memory Cost").
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_RECOMPUTE_H
#define DTC_COMPILER_ANALYSIS_RECOMPUTE_H

#include <cstdint>
#include <vector>

namespace dtc {

struct RecomputeValue {
  int64_t bytes = 0;         ///< that keeping it takes, not negative; 0: it is there anyway
  bool usedBackward = false; ///< by an op of the backward pass
  int producer = -1;         ///< index of an op; -1: it comes from outside and can only be kept
};

/// An op of the forward pass. If it is recomputed, all its results are.
struct RecomputeOp {
  double seconds = 0;                 ///< that recomputing it takes, not negative
  std::vector<int> operands, results; ///< indices of values
  bool allowed = true;                ///< whether it may be recomputed
};

struct RecomputeProblem {
  std::vector<RecomputeValue> values;
  std::vector<RecomputeOp> ops; ///< each after those that make its operands
};

struct RecomputeChoice {
  std::vector<bool> recompute; ///< by op
  double seconds = 0;          ///< of all that is recomputed
  int64_t keptBytes = 0;       ///< of all that is kept
};

/// The cost of a choice. Ops that may not be recomputed are taken out of it, and those of whose
/// results none is needed, by the backward pass or by what is recomputed.
RecomputeChoice evaluateRecompute(const RecomputeProblem &problem, std::vector<bool> recompute);

/// The choice with the fewest kept bytes, and among those the fewest seconds.
RecomputeChoice keepLeast(const RecomputeProblem &problem);

/// A choice with few seconds among those that keep at most `keepBytes`; keepLeast() where none
/// does, nothing recomputed where that fits. For each price of a byte in seconds the best
/// choice is a minimum cut; the choices of rising prices are nested. Between the cheapest of them
/// that fits and the one before it, which does not, ops are taken out one by one, or a few
/// together, while it fits; then ops are exchanged. With up to 24 ops that may be recomputed,
/// the fewest seconds. Deterministic. 3,000 ops take some 0.1 s.
RecomputeChoice chooseRecompute(const RecomputeProblem &problem, int64_t keepBytes);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_RECOMPUTE_H
