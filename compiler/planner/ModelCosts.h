//===- ModelCosts.h - Costs of the sections of a model --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_MODELCOSTS_H
#define DTC_COMPILER_PLANNER_MODELCOSTS_H

#include "compiler/driver/PassPipeline.h"
#include "simulator/cluster/Topology.h"

#include <map>
#include <string>
#include <vector>

namespace dtc {

/// The properties of a parameter that decide how ZeRO splits it, and its bytes on a device before
/// that.
struct ParameterKind {
  std::vector<int64_t> shape;  ///< on all devices together
  std::vector<int64_t> shards; ///< of each dimension
  double parameterBytes = 0, stateBytes = 0, gradientBytes = 0;

  auto operator<=>(const ParameterKind &) const = default;
};

/// Bytes of parameters, of their optimizer's state and of their gradients.
struct ParameterBytes {
  double parameters = 0, states = 0, gradients = 0;
};

/// The costs of a part of a model on one device: for one microbatch, except those that occur once.
struct SectionCost {
  double forward = 0, backward = 0; ///< seconds, with what is recomputed and the collectives
  double once = 0;                  ///< seconds of the update, its state whole
  double keptBytes = 0;             ///< from the forward to the backward pass
  double parameterBytes = 0;        ///< in the type that the model computes in
  double stateBytes = 0;            ///< of the optimizer, master weights with it
  double gradientBytes = 0;         ///< of the sums over microbatches
  double inputBytes = 0;            ///< of the data of a microbatch
  double transientBytes = 0;        ///< beside the bytes held once and those kept
  /// How many of each kind there are. Where it is empty, ZeRO splits evenly.
  std::map<ParameterKind, int64_t> parameters;

  /// The share of the bytes above on a device where ZeRO splits all of them over `devices` devices.
  ParameterBytes underZero(int64_t devices) const;
  /// The share of them that ZeRO keeps whole on every device.
  const ParameterBytes &keptWhole(int64_t devices) const { return restOf(devices).whole; }
  /// The bytes of the `count` largest parameters.
  double largestParameterBytes(int64_t count) const;

  /// In how many collectives all parameters are gathered, and all gradients summed, where those of
  /// less than `bucketBytes` share collectives of that size.
  struct Collectives {
    double parameters = 0, gradients = 0;
  };
  const Collectives &collectivesOf(int64_t bucketBytes) const;

  /// The bytes beyond an even share, because tensors are whole or padded, and the bytes of whole
  /// tensors.
  struct Rest {
    ParameterBytes beyond, whole;
  };
  const Rest &restOf(int64_t devices) const;
  mutable std::map<int64_t, Rest> rests;              ///< those of `parameters` that were asked for
  mutable std::map<int64_t, Collectives> collectives; ///< those that were asked for
};

/// A model as what comes before its repeated layers, one of these, and what comes after. A model
/// without repeated layers has none, and all of it is `before`.
struct ModelCosts {
  SectionCost before, layer, after;
  /// The cost of tensors that both `before` and `after` have, such as a table that is the embedding
  /// and the head: it counts once where both are on one device.
  SectionCost tied;
  int64_t layers = 0;
  double boundaryBytes = 0; ///< of the activations of a microbatch between two layers
};

/// The least cost of a microbatch with a share of the samples: the share of the time, less a
/// twentieth. Smaller microbatches use devices worse, but for sizes that happen to fill their units
/// better. Bytes are the share.
ModelCosts boundFewerSamples(ModelCosts costs, double share);

/// The choices that decide the cost of a microbatch.
struct CostKey {
  int64_t tp = 1, ep = 1, cp = 1;
  int64_t samples = 1; ///< of a microbatch on a device
  bool sequenceParallel = false;
  Recompute recompute = Recompute::None;
  std::vector<std::string> shard; ///< entries of the axis map beside those of the options
  int64_t contextHeads = 1;       ///< neighbours along cp that split heads

  auto operator<=>(const CostKey &) const = default;
};

/// How many devices of a cluster are used where its first `asked` ones are asked for, all for 0.
int64_t usedDevices(const cluster::Cluster &cluster, int64_t asked);

/// The kinds of the nodes that the first `devices` devices of a cluster are in, all for 0, each
/// once, in the cluster's order.
std::vector<const cluster::NodeKind *> kindsOfNodes(const cluster::Cluster &cluster,
                                                    int64_t devices);

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_MODELCOSTS_H
