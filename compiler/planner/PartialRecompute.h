//===- PartialRecompute.h - Strategies that recompute in part -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_PARTIALRECOMPUTE_H
#define DTC_COMPILER_PLANNER_PARTIALRECOMPUTE_H

#include "compiler/planner/Planner.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace dtc {

/// How much of its memory a strategy has to leave by its estimate to be taken to fit.
inline constexpr double kMemoryError = 0.05;

/// From strategies that differ in nothing but what they recompute, makes the one that recomputes as
/// little as the memory asks for (Recompute::Auto with `memoryLimit`, bytes). It stands between one
/// that is too large or nearly so, and one that is not: its estimate is on the line between theirs,
/// at the available memory. What is recomputed first saves most for its time, so that the step is
/// likely to be faster than that. Its `bytes` are those of the one that fits, which are the least
/// that it needs. Nullopt where there are no such two, the one that fits is as fast, or one already
/// recomputes in part. `memoryTimes`: how many times its estimate each holds.
std::optional<EstimatedStrategy>
findPartlyRecomputed(llvm::ArrayRef<const EstimatedStrategy *> alike, int64_t memoryLimit,
                     double memoryTimes = 1);

/// Adds what findPartlyRecomputed() finds of all strategies.
void addPartlyRecomputed(std::vector<EstimatedStrategy> &strategies, int64_t memoryLimit);

/// A strategy but for its recomputation: equal for those that differ in nothing else.
ParallelStrategy withoutRecompute(ParallelStrategy strategy);

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_PARTIALRECOMPUTE_H
