//===- StepEstimate.h - A step's time and memory in closed form -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_STEPESTIMATE_H
#define DTC_COMPILER_PLANNER_STEPESTIMATE_H

#include "compiler/driver/OffloadOption.h"
#include "compiler/planner/SearchSpace.h"
#include "simulator/cluster/Topology.h"

#include <map>
#include <tuple>

namespace dtc {

/// The parts of a step's time on the device that takes longest, and its memory.
struct StepEstimate {
  double computing = 0; ///< both passes of all microbatches, with collectives over tp
  double bubble = 0;    ///< of the pipeline
  double data = 0;      ///< exposed collectives over the data axes
  double transfers = 0; ///< that fill and drain the pipeline
  double update = 0;    ///< of the optimizer, and waiting for activations of the host
  /// The bytes of the device that needs most of its memory, and what plans may use there.
  double bytes = 0, memoryBytes = 0;

  double seconds() const { return computing + bubble + data + transfers + update; }
  double memoryShare() const { return bytes / memoryBytes; }
  /// The seconds of one pass of a microbatch on a device, and of a message to the next.
  double forward = 0, backward = 0, message = 0;
  /// The bytes that a stage keeps of a microbatch, and the number of microbatches that `bytes`
  /// counts.
  double keptBytes = 0, inFlight = 0;
};

/// Estimates strategies of one model on one cluster, from the costs of the strategy's microbatches
/// on each kind of node (see kindsOfNodes()).
class StepEstimator {
public:
  StepEstimator(const PlannerOptions &options, const ModelProperties &traits);

  /// Where the stages of a pipeline are on several kinds of nodes, gives each as many layers as its
  /// device's speed and memory allow, so that the slowest has as little to do as possible; else
  /// nothing: the compiler cuts equal stages better.
  void balance(ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs);

  /// F and B of a device are those of all its stages. The bubble is that of getScheduleRules();
  /// collectives over data axes are hidden by the passes of the microbatches that they overlap
  /// with, as far as these last; those of each microbatch with ZeRO 2 and 3 only in part.
  StepEstimate estimate(const ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs);

  /// Takes the bubble, the transfers and what is kept from a simulation of the schedule, unit by
  /// unit (see simulateSchedule()), which takes time in proportion to numUnits().
  void refine(const ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs,
              StepEstimate &estimate);
  static int64_t numUnits(const ParallelStrategy &strategy) {
    return strategy.pp > 1 ? 3 * strategy.pp * strategy.chunks * strategy.microbatches : 0;
  }

private:
  /// The groups of a mesh.
  struct Connections {
    GroupShape data, zero, outer; ///< all data axes, ZeRO's, those that are not ZeRO's
    GroupShape pipeline;          ///< neighbours on it
    GroupShape ends;              ///< its first and its last coordinate
    /// The kinds of nodes that each coordinate on the pipeline axis has devices in, and the least
    /// memory of these. One coordinate stands for all where all are alike.
    std::vector<llvm::SmallVector<size_t, 2>> kinds;
    std::vector<double> memoryBytes;
  };
  const Connections &connectionsOf(const ParallelStrategy &strategy);
  /// A cost of a part of the model, such as one of the fields of SectionCost.
  using Field = llvm::function_ref<double(const SectionCost &)>;
  /// The cost of the parts on one coordinate of the pipeline axis, on its slowest device. The
  /// coordinate has `layers` layers of the model.
  static double costOf(const ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs,
                       const Connections &connections, size_t coordinate, double layers,
                       Field field);
  /// The cost of a device's parts: an equal share of the model where all devices are alike and
  /// stages equal, else the cost on the coordinate of the pipeline axis where it is highest.
  static double mostOf(const ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs,
                       const Connections &connections, Field field);
  double tiedSeconds(const ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs,
                     const Connections &connections) const;
  double dataSeconds(const ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs,
                     const Connections &connections, double forward, double backward);
  /// The seconds in which the hosts update what lies in their memory, and get and return it.
  double hostSeconds(const ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs,
                     const Connections &connections) const;
  /// The seconds by which copies of activations to the host and back take longer than the passes.
  double activationSeconds(const ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs,
                           const Connections &connections, double forward, double backward) const;
  double bytesOf(const ParallelStrategy &strategy, const ModelCosts &costs, int64_t coordinate,
                 double layers, StepEstimate &estimate) const;
  void addBytes(const ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs,
                const Connections &connections, StepEstimate &estimate);

  const PlannerOptions &options;
  const ModelProperties &traits;
  Offload offloaded; ///< what hosts keep
  std::vector<const cluster::NodeKind *> nodeKinds;
  std::vector<double> kindBytes; ///< that plans may use on a device of each
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool, bool>,
           Connections>
      known;
};

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_STEPESTIMATE_H
