//===- Simulation.h - Simulation of a plan on a cluster -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_SIMULATION_H
#define DTC_SIMULATOR_SIMULATION_H

#include "plan/PlanSummary.h"
#include "simulator/OuterRound.h"
#include "simulator/StepSimulator.h"
#include "simulator/cluster/cluster.pb.h"
#include "support/Error.h"

#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace dtc {

struct SimulationOptions {
  double tokens = 0; ///< of a whole training, for its days and cost; 0: not asked for
  bool keepCollectives = false;
};

/// Seconds by the axes that collectives are over, as the user knows them ("dp", "dp+tp").
struct AxesSeconds {
  std::string axes;
  double seconds = 0;
};

/// One stage of the pipeline, or all of the model without one.
struct StageSimulation {
  StepBreakdown times;
  KernelSeconds kernels{}; ///< of a step
  PeakMemory memory;
  uint64_t arenaBytes = 0;
  double memoryBytes = 0;      ///< that a plan may fill on the smallest of its devices
  uint64_t hostArenaBytes = 0; ///< of one device, in the memory of its host
  /// Of the node where least is left: what its devices need of the host's memory together, of all
  /// stages, and the part that a plan may fill. 0 where the plan uses no host.
  double nodeHostBytes = 0, hostMemoryBytes = 0;
  double flops = 0; ///< that a device computes in a step
  std::vector<std::string> deviceKinds;

  bool fits() const {
    return static_cast<double>(arenaBytes) <= memoryBytes && nodeHostBytes <= hostMemoryBytes;
  }
};

/// The simulated step of a plan on a cluster.
struct Simulation {
  std::string cluster;
  std::string model;
  int64_t devices = 1, nodes = 1, microbatches = 1;
  double stepSeconds = 0;
  double tokens = 0; ///< of a step; 0 where the plan has no input of tokens

  /// FLOPs of all devices: needed by the model, the same without the part of attention that a
  /// causal mask hides, and computed by the plan. 0 where the plan does not say.
  double modelFlops = 0, causalModelFlops = 0, executedFlops = 0;
  /// The devices' data sheet FLOP/s in the element type of most FLOPs, together.
  double peakFlops = 0;
  std::string peakDtype;
  /// Model FLOPs (needed by the model; Chowdhery et al. 2022) and hardware FLOPs (computed) a
  /// second, divided by the peak. "Causal" leaves out the FLOPs that the mask hides.
  double mfu() const { return share(modelFlops); }
  double causalMfu() const { return share(causalModelFlops); }
  double hfu() const { return share(executedFlops); }

  double bubbleShare = 0; ///< of the pipelined part of the step; see Timeline::bubbleShare()
  /// Means over the stages.
  double computing = 0, exposedTransfers = 0, exposedHost = 0, idle = 0;
  std::vector<AxesSeconds> exposed; ///< the longest first
  KernelSeconds kernels{};
  /// The time that computing takes beyond its kernels alone: beside messages and collectives, and
  /// on cores that others use too.
  double slowedDown() const {
    return computing - std::accumulate(kernels.begin(), kernels.end(), 0.0);
  }
  std::vector<StageSimulation> stages;

  /// The price of the devices for a step, and the energy and carbon of the nodes at the site.
  double cost = 0, joules = 0, grams = 0;
  bool hasPrice = false, hasPower = false, hasCarbon = false;
  std::optional<OuterRound> outerRound; ///< of a plan with outer steps, where it was asked for
  double trainingTokens = 0;
  /// Steps that the whole training takes; none where it was not asked for or has no tokens.
  std::optional<double> trainingSteps() const {
    if (trainingTokens <= 0 || tokens <= 0)
      return std::nullopt;
    return trainingTokens / tokens;
  }

  StepSimulation step;
  std::vector<std::vector<std::string>> axes; ///< of StepSimulation's indices

private:
  double share(double flops) const {
    return stepSeconds > 0 && peakFlops > 0 ? flops / stepSeconds / peakFlops : 0;
  }
};

/// Runs a step of a plan that findPlanError() accepts on a cluster that checkCluster() accepts. An
/// error if the cluster has too few devices.
Expected<Simulation> simulateOnCluster(const plan::Plan &plan, const cluster::Cluster &cluster,
                                       const SimulationOptions &options = {});

} // namespace dtc

#endif // DTC_SIMULATOR_SIMULATION_H
