//===- Subcommands.h - Subcommands of dtc-plan ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_PLAN_SUBCOMMANDS_H
#define DTC_TOOLS_DTC_PLAN_SUBCOMMANDS_H

#include "report/ExplanationReport.h"
#include "report/TimelineReport.h"
#include "support/GpuMemory.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dtc {

/// The values of the subcommands' flags; each subcommand reads those that it has.
struct PlanArguments {
  std::string path; // of the plan, or the folder of checkpoints
  bool json = false;
  bool schedule = false;
  std::string scheduleSvg;
  size_t width = kDefaultTimelineColumns;
  std::vector<std::string> links;
  size_t top = kDefaultExplainedRows;
  std::string entry; // empty: the plan's own
  bool gpus = false;
  int64_t ncclChannels = NcclChannels::kCollectives;
  std::string cluster;
  int64_t devices = 0;
  double tokens = 0;
  int64_t outerEvery = 0; // 0: not asked for
  std::string trace;
  std::string report;
};

/// Each runs a subcommand and returns the status of the process.
int showPlan(const PlanArguments &args);
int verifyPlan(const PlanArguments &args);
int explainPlan(const PlanArguments &args);
int simulatePlan(const PlanArguments &args);
int showCheckpoints(const PlanArguments &args);

} // namespace dtc

#endif // DTC_TOOLS_DTC_PLAN_SUBCOMMANDS_H
