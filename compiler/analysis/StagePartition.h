//===- StagePartition.h - Partitioning of ops into pipeline stages --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_STAGEPARTITION_H
#define DTC_COMPILER_ANALYSIS_STAGEPARTITION_H

#include "support/Error.h"

#include <vector>

namespace dtc {

/// The ops of a forward program, in order, and the places between them where it may be cut. No
/// seconds are negative.
struct StagePartitionProblem {
  /// The time of an op, forward and backward, in seconds.
  std::vector<double> seconds;
  /// By op, as the next two: the seconds of a cut right before it, for all values that are
  /// used on both sides. The first op's counts nothing.
  std::vector<double> cutSeconds;
  /// Whether a cut may be right before an op. The first op's counts nothing.
  std::vector<bool> mayCut;
  /// Ops before which there must be a cut, ascending.
  std::vector<int> fixedCuts;
  int stages = 1;
};

struct StagePartition {
  std::vector<int> firstOps; ///< by stage, the first is 0
  /// The seconds of the slowest stage: of its ops, and of the cuts at its beginning and its end.
  double bottleneck = 0;
  double cutSeconds = 0; ///< the sum over all cuts, each once
};

/// Whether there is a partition.
MaybeError checkPartition(const StagePartitionProblem &problem);

/// Cuts the ops into stages of at least one op each. Among all partitions it has
///   1. the least bottleneck;
///   2. among those, the least seconds of cuts in sum;
///   3. among those, from the last stage to the first, the stage whose seconds, cuts included, are
///      closest to an even share of what is left: the mean of the stages that are left, where
///      indivisible parts (see mayCut) that take more than that are not counted, and have stages of
///      their own;
///   4. where two are as close, the longer one.
/// So stages other than the slowest are even, too, where that costs no transfers.
///
/// Exact, but for costs being rounded to a power of two, about 2^-30 of the sum of all. For n
/// places to cut and k stages, O(n k log n) and, at most some 30 times, n k / 64 steps for each
/// place in the slowest stage: less than a second for 3000 ops on 512 stages.
///
/// The problem must be a possible one.
StagePartition partitionStages(const StagePartitionProblem &problem);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_STAGEPARTITION_H
