//===- SearchProgress.h - How far a search is -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_SEARCHPROGRESS_H
#define DTC_COMPILER_PLANNER_SEARCHPROGRESS_H

#include <cstdint>
#include <functional>

namespace dtc {

/// How far a search has come, and the work that is known to remain.
struct PlannerProgress {
  int64_t strategies = 0, estimated = 0, probes = 0, simulated = 0;
  int64_t probesToCome = 0;      ///< at least
  int64_t simulationsToCome = 0; ///< at most
  double bestSeconds = 0;        ///< simulated; 0: none yet
};

/// Called on the thread that searches, between probes and between compilations of strategies. Where
/// it returns false the search ends soon, with an error, and it is not called again.
using ProgressCallback = std::function<bool(const PlannerProgress &)>;

/// The error of a search that its caller has ended.
inline constexpr const char *kSearchEnded = "the search was ended";

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_SEARCHPROGRESS_H
