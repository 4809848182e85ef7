//===- StepPrediction.h - Predicted step of a published configuration -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_STEPPREDICTION_H
#define DTC_BENCHMARKS_STEPPREDICTION_H

#include "benchmarks/PublishedCases.h"
#include "simulator/cluster/cluster.pb.h"

#include <optional>
#include <string>

namespace dtc::benchmarks {

/// The time of a step and the memory of the first device.
struct StepPrediction {
  double seconds = 0;
  double stateBytes = 0; ///< parameters, master weights, gradients, the optimizer's state
  double keptBytes = 0;  ///< activations from the forward to the backward pass, of all microbatches
  /// The bytes that masks of dropout would add to these if they were stored; only for a case that
  /// dtc does not execute, and not where all is recomputed.
  std::optional<double> maskBytes;
  double arenaBytes = 0; ///< all that the device needs
  /// The memory of the device that needs most of its own: all that it needs, and the part that a
  /// plan may use.
  double neededBytes = 0, usableBytes = 0;
  double modelFlopsShare = 0; ///< of the devices' peak (MFU)
  double compileSeconds = 0, simulateSeconds = 0;

  bool fits() const { return neededBytes <= usableBytes; }
};

/// The seconds of one of the model's layers for a microbatch.
struct LayerPrediction {
  double forward = 0, backward = 0;
};

/// Compiles and simulates a step. The cluster gets as many nodes as are needed, where all are of
/// one kind. `folder` is where the case's configuration is looked for.
Expected<StepPrediction> predictStep(const PublishedCase &row, const std::string &folder,
                                     cluster::Cluster cluster);

/// The same for one layer: as CostProbe finds it, all of the model on one pipeline stage for each
/// layer. The case's pipeline and data parallelism do not count.
Expected<LayerPrediction> predictLayer(const PublishedCase &row, const std::string &folder,
                                       cluster::Cluster cluster);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_STEPPREDICTION_H
