//===- SearchSpace.h - Search space of the planner ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_SEARCHSPACE_H
#define DTC_COMPILER_PLANNER_SEARCHSPACE_H

#include "compiler/driver/OptionTable.h"
#include "compiler/planner/ModelCosts.h"
#include "simulator/cluster/cluster.pb.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dtc {

/// The request to the planner.
struct PlannerOptions {
  const cluster::Cluster *cluster = nullptr;
  int64_t devices = 0; ///< of the cluster, the first ones; 0: all
  CompileOptions base; ///< what is not searched, and the values of options that are fixed
  /// Options that keep their values: "microbatches", "zero", "sequence_parallel", "schedule",
  /// "chunks", "recompute", "bucket_bytes", "context_heads", "zero_axes".
  std::set<std::string> fixed;
  std::map<std::string, int64_t> axes; ///< sizes of axes that are fixed: dp, fsdp, ep, cp, tp, pp
  /// The threads that compile; 0: as many as the machine runs. The result does not depend on it.
  size_t threads = 0;
  /// How messages name what is asked for.
  OptionSpelling spelling = OptionSpelling::Flag;
};

/// A way to lay a model over devices. The mesh is pp, dp, fsdp, ep, cp, tp from the outermost axis
/// to that of neighbours, or with pp inside of dp.
struct ParallelStrategy {
  int64_t dp = 1, fsdp = 1, ep = 1, cp = 1, tp = 1, pp = 1;
  bool pipelineInside = false; ///< the pipeline is inside of dp
  int64_t contextHeads = 1; ///< neighbours along cp that split heads: CompileOptions::contextHeads
  bool sequenceParallel = false;
  int64_t zero = 0;
  int64_t microbatches = 1;
  std::string schedule = "1f1b";
  int64_t chunks = 1;
  Recompute recompute = Recompute::None;
  int64_t memoryLimit = 0; ///< bytes, of the recomputation "auto"
  int64_t bucketBytes = 0;
  /// How many of the repeated layers each stage has, where devices of several kinds are to have
  /// different numbers of them (see StepEstimator::balance()), and that as CompileOptions::stages.
  std::vector<int64_t> stageLayers;
  std::string stages;
  /// Axis-map entries: what tp splits other than by default, and the first
  /// dimensions of inputs that data parallelism splits, where these have no name.
  std::vector<std::string> shard, batchDims;

  /// The devices that have different samples, also inside experts, and outside of them.
  int64_t expertData() const { return dp * fsdp; }
  int64_t data() const { return expertData() * ep; }
  /// The devices that have all that is no expert's: they have different samples or positions.
  int64_t replicas() const { return data() * cp; }
  /// Over how many devices ZeRO splits the states of experts; those of all else over ep as well.
  int64_t zeroDevices() const { return zero == 0 ? 1 : fsdp > 1 ? fsdp : dp * cp; }
  CostKey key(int64_t batch) const {
    return {tp,        ep,    cp,          batch / (data() * microbatches), sequenceParallel,
            recompute, shard, contextHeads};
  }
  /// The options that compile it; `base` says the rest.
  CompileOptions toOptions(const CompileOptions &base) const;

  auto operator<=>(const ParallelStrategy &) const = default;
};

/// The properties of a model that limit its strategies.
struct ModelProperties {
  int64_t batch = 1;           ///< samples of a step
  bool hasBatch = false;       ///< they are known
  int64_t samplePositions = 1; ///< of one sample: its tokens, or the patches of an image
  int64_t layers = 0;          ///< that repeat; 0: none do
  std::string layerPrefix;     ///< of these layers' names: "h."
  bool hasTensorAxes =
      false; ///< has dimensions that tp can split; findProperties(): that have names
  bool hasSequenceAxis = false;
  /// It needs all samples of a step at once, as batch norms that train do: it takes neither
  /// microbatches nor a pipeline.
  bool mixesSamples = false;
  /// The size of the dimension of inputs that context parallelism splits, by the logical axis
  /// "seq"; 1: no input has it.
  int64_t positions = 1;
  /// A common divisor of the heads and the key-value heads of all attention; 0: no attention.
  int64_t heads = 0;
  int64_t experts = 1; ///< of a layer, by the logical axis of that name; 1: it has none
  std::vector<std::string> batchDims; ///< see findBatchDims(); empty where samples have a name
};

/// Reads them from the function of a model, with its repeated layers given.
ModelProperties findProperties(mlir::ModuleOp model, int64_t layers);

/// The strategy that stands for all that lie on the devices in the same way. That is the one with
/// the pipeline outside of dp, where the axes inside of both fill whole nodes, which are all of one
/// kind: the other order only gives the nodes other numbers. A step takes as long with either, and
/// a device holds the same. Where the order says more than that, it is the strategy itself.
ParallelStrategy standardOrder(ParallelStrategy strategy, const PlannerOptions &options);

/// All strategies of a model on the devices, in a fixed order. Empty where none divides the devices
/// and the batch.
std::vector<ParallelStrategy> enumerateStrategies(const PlannerOptions &options,
                                                  const ModelProperties &traits);

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_SEARCHSPACE_H
