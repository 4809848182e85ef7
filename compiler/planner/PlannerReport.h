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

/// The planner's error when there is no strategy to look at: the requests that no strategy meets,
/// and the nearest numbers of devices and samples that have strategies.
std::string explainNoStrategy(const PlannerOptions &options, const ModelProperties &traits);

/// The same for an HTML report about the chosen plan.
SimulationPageOptions pageOptions(const PlannerResult &choice, const PlannerOptions &options,
                                  size_t alternatives = 10);

/// Why a strategy is slower than the best one, or does not fit, in a few words.
std::string explainSlower(const EstimatedStrategy &entry, const EstimatedStrategy &best);

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_PLANNERREPORT_H
