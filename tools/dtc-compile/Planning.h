//===- Planning.h - The flags of dtc-compile that choose the parallel strategy -===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_COMPILE_PLANNING_H
#define DTC_TOOLS_DTC_COMPILE_PLANNING_H

#include "compiler/driver/Pipeline.h"
#include "compiler/planner/Planner.h"
#include "simulator/cluster/cluster.pb.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dtc {

/// The flags' values.
struct PlanningArguments {
  std::string cluster, strategy, strategyOutput, report;
  int64_t devices = 0;
  std::vector<std::string> set;
  size_t alternatives = 10;

  /// Whether the strategy is to be searched.
  bool searches(const CompileOptions &options) const {
    return !cluster.empty() && strategy.empty() && options.mesh.empty();
  }
};

void addPlanningOptions(CLI::App &app, PlanningArguments &args);

/// Checks flags that exclude each other.
MaybeError checkPlanningFlags(const CLI::App &app, const PlanningArguments &args,
                              const CompileOptions &options);

/// What is searched: knobs that --set or a flag of their own gives are fixed. The error names the
/// flag.
Expected<PlannerOptions> readPlannerOptions(const CLI::App &app, const PlanningArguments &args,
                                            const CompileOptions &options,
                                            const cluster::Cluster &cluster);

} // namespace dtc

#endif // DTC_TOOLS_DTC_COMPILE_PLANNING_H
