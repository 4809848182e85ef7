//===- StepEstimate.h - A step's time and memory in closed form ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_STEPESTIMATE_H
#define DTC_COMPILER_PLANNER_STEPESTIMATE_H

#include "compiler/planner/SearchSpace.h"
#include "runtime/cluster/Topology.h"

#include <map>
#include <tuple>

namespace dtc {

/// The parts of a step's time on the device that takes longest, and its memory.
struct StepEstimate {
  double computing = 0; ///< both passes of all microbatches, with collectives over tp
  double bubble = 0;    ///< of the pipeline
  double data = 0;      ///< exposed collectives over the data axes
  double transfers = 0; ///< that fill and drain the pipeline
  double update = 0;    ///< of the optimizer
  double bytes = 0;     ///< of the device that needs most

  double seconds() const { return computing + bubble + data + transfers + update; }
  /// Of one pass of a microbatch on a device, and of a message to the next.
  double forward = 0, backward = 0, message = 0;
  /// What a stage keeps of a microbatch, and how many of these `bytes` have.
  double keptBytes = 0, inFlight = 0;
};

/// Estimates layouts of one model on one cluster.
class StepEstimator {
public:
  StepEstimator(const PlannerOptions &options, const ModelTraits &traits)
      : options(options), traits(traits) {}

  /// With the costs of the layout's microbatches. F and B of a device are those of all its stages.
  /// The bubble is that of getScheduleRules(); collectives over data axes hide behind the passes of
  /// the microbatches that they run beside, as far as these last.
  StepEstimate estimate(const ParallelLayout &layout, const ModelCosts &costs);

  /// Takes the bubble, the transfers and what is kept from a run of the schedule, unit by unit (see
  /// simulateSchedule()), which takes time in proportion to numUnits().
  static void refine(const ParallelLayout &layout, StepEstimate &estimate);
  static int64_t numUnits(const ParallelLayout &layout) {
    return layout.pp > 1 ? 3 * layout.pp * layout.chunks * layout.microbatches : 0;
  }

private:
  /// The groups of a mesh.
  struct Connections {
    runtime::GroupShape data, zero, outer; ///< all data axes, ZeRO's, those that are not ZeRO's
    runtime::GroupShape pipeline;          ///< neighbours on it
  };
  const Connections &connectionsOf(const ParallelLayout &layout);
  double dataSeconds(const ParallelLayout &layout, const ModelCosts &costs,
                     const Connections &connections, double forward, double backward);
  void addBytes(const ParallelLayout &layout, const ModelCosts &costs, StepEstimate &estimate);

  const PlannerOptions &options;
  const ModelTraits &traits;
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, bool, bool>, Connections> known;
};

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_STEPESTIMATE_H
