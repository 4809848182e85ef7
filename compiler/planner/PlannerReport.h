//===- PlannerReport.h - Report of the planner's search -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_PLANNERREPORT_H
#define DTC_COMPILER_PLANNER_PLANNERREPORT_H

#include "compiler/planner/Planner.h"
#include "report/html/SimulationPage.h"

#include <string>

namespace dtc {

/// The chosen plan, where its time goes, the next best strategies with what makes each slower, the
/// lower bound and the gap to it; or, where nothing fits, what binds and the least change that
/// fits.
std::string formatChoice(const PlannerResult &choice, const PlannerOptions &options,
                         size_t alternatives = 10);

/// The compiler's first error and the strategy that had it, where none compiles.
std::string explainFailure(const FailedStrategy &failed, const PlannerOptions &options);

/// Why there is no strategy to look at, as the planner's error: what is asked for that no strategy
/// has, and the nearest numbers of devices and samples that have some.
std::string explainNoStrategy(const PlannerOptions &options, const ModelProperties &traits);

/// The same for an HTML report about the chosen plan.
SimulationPageOptions pageOptions(const PlannerResult &choice, const PlannerOptions &options,
                                  size_t alternatives = 10);

/// What makes a strategy slower than the best one, or why it does not fit, in a few words.
std::string explainSlower(const EstimatedStrategy &entry, const EstimatedStrategy &best);

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_PLANNERREPORT_H
