//===- SimulationPage.h - HTML reports of simulations ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_HTML_SIMULATIONPAGE_H
#define DTC_REPORT_HTML_SIMULATIONPAGE_H

#include "plan/plan.pb.h"
#include "simulator/Simulation.h"
#include "simulator/cluster/cluster.pb.h"
#include "support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// A part of the strategy, with why it was chosen.
struct StrategyItem {
  std::string name;   ///< "recompute"
  std::string value;  ///< "selective"
  std::string reason; ///< may be empty
};

/// A plan that was considered and is not the report's.
struct AlternativeStrategy {
  std::string name;         ///< "pp=4, tp=2, 1f1b"
  double seconds = 0;       ///< of a step; 0 where it was not simulated
  uint64_t memoryBytes = 0; ///< of the device that needs most; 0 where that is not known
  std::string reason;       ///< why it is slower, or why it is no plan at all
};

/// The content of an HTML report that does not follow from the plan and its simulation.
struct SimulationPageOptions {
  std::vector<StrategyItem> strategy;
  std::vector<AlternativeStrategy> alternatives; ///< in their order in the report
  /// No plan of this model can be faster on the cluster; the report states the gap.
  std::optional<double> lowerBoundSeconds;
  std::string lowerBoundReason; ///< its parts; may be empty
};

/// The HTML report: one file that is complete by itself, the same bytes for the same arguments, and
/// well-formed XML too. It is below 2 MB for pipelines of 64 stages and 512 microbatches: it shows
/// only a part of larger steps and says so. The simulation is one of this plan on this cluster,
/// best with SimulationOptions::keepCollectives: without, neither the figure of the step nor the
/// table of the communication have the times of collectives.
Expected<std::string> simulationToHtml(const plan::Plan &plan, const cluster::Cluster &cluster,
                                       const Simulation &simulation,
                                       const SimulationPageOptions &options = {});

inline constexpr const char *kPageFileName = "index.html";

/// Writes an HTML report to the file of that name in a folder, which is made where it is not there,
/// with those above it. An error that names the path where that cannot be done.
MaybeError writePage(const std::string &folder, const std::string &page);

} // namespace dtc

#endif // DTC_REPORT_HTML_SIMULATIONPAGE_H
