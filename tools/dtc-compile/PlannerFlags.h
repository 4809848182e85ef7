//===- PlannerFlags.h - The flags of dtc-compile that choose the parallel strategy -===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_COMPILE_PLANNERFLAGS_H
#define DTC_TOOLS_DTC_COMPILE_PLANNERFLAGS_H

#include "compiler/driver/PassPipeline.h"
#include "compiler/planner/StrategySearch.h"

#include <CLI/CLI.hpp>
#include <set>
#include <string>

namespace dtc {

/// The flags' values.
struct PlannerArguments {
  std::string cluster, strategy, strategyOutput, report;
  SearchRequest request; ///< but for the options that are given

  /// Whether the strategy is to be searched.
  bool searches(const CompileOptions &options) const {
    return !cluster.empty() && strategy.empty() && options.mesh.empty();
  }
};

void addPlannerOptions(CLI::App &app, PlannerArguments &args);

/// The names of the options that have flags on the command line.
std::set<std::string> findGivenOptions(const CLI::App &app);

/// Checks flags that exclude each other.
MaybeError checkPlannerFlags(const CLI::App &app, const PlannerArguments &args,
                             const CompileOptions &options);

} // namespace dtc

#endif // DTC_TOOLS_DTC_COMPILE_PLANNERFLAGS_H
