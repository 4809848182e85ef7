//===- PlannerFlags.h - The flags of dtc-compile that choose the parallel strategy -===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_COMPILE_PLANNERFLAGS_H
#define DTC_TOOLS_DTC_COMPILE_PLANNERFLAGS_H

#include "compiler/driver/PassPipeline.h"
#include "compiler/planner/Planner.h"
#include "simulator/cluster/cluster.pb.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dtc {

/// The flags' values.
struct PlannerArguments {
  std::string cluster, strategy, strategyOutput, report;
  int64_t devices = 0;
  std::vector<std::string> set;
  size_t alternatives = 10;

  /// Whether the strategy is to be searched.
  bool searches(const CompileOptions &options) const {
    return !cluster.empty() && strategy.empty() && options.mesh.empty();
  }
};

void addPlannerOptions(CLI::App &app, PlannerArguments &args);

/// Checks flags that exclude each other.
MaybeError checkPlannerFlags(const CLI::App &app, const PlannerArguments &args,
                             const CompileOptions &options);

/// What is searched: options that --set or a flag of their own gives are fixed. The error names the
/// flag.
Expected<PlannerOptions> readPlannerOptions(const CLI::App &app, const PlannerArguments &args,
                                            const CompileOptions &options,
                                            const cluster::Cluster &cluster);

} // namespace dtc

#endif // DTC_TOOLS_DTC_COMPILE_PLANNERFLAGS_H
