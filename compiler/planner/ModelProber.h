//===- ModelProber.h - Costs of a model by compiling a part of it ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_MODELPROBER_H
#define DTC_COMPILER_PLANNER_MODELPROBER_H

#include "compiler/driver/PassPipeline.h"
#include "compiler/planner/ModelCosts.h"
#include "support/Error.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace dtc {

namespace plan {
class Program;
class Plan;
} // namespace plan

/// The common settings of all probes of a model.
struct ProbeSetting {
  CompileOptions options;
  std::vector<cluster::Cluster> clusters; ///< one for each kind of node
  int64_t batch = 0;                      ///< samples
  std::vector<std::string> batchDims;     ///< see findBatchDims()
  /// The prefix of the model's repeated layers; empty where it is probed whole.
  std::string prefix;
  int64_t layers = 0;
  int64_t keptLayers = 0;    ///< that are left of them
  bool mixesSamples = false; ///< see ModelProperties
  /// Changes the plan of a probe before it is timed; may be null.
  std::function<void(plan::Plan &)> changePlan;
};

/// Whether a model compiles for one device and one microbatch, and not for the fewest microbatches
/// above one that divide the batch, as the one stage of a pipeline. Options that say nothing of
/// samples are left out.
bool mixesSamples(mlir::ModuleOp model, const ProbeSetting &setting);

/// Finds costs by compiling a model that has all but three of its layers taken out, one layer on
/// each stage of a pipeline, and timing its instructions on nodes of each kind. A model that mixes
/// samples is whole, in one microbatch and without a pipeline (see splitStep()). Several probers
/// work at a time if each has a model in an MLIR context of its own.
class ModelProber {
public:
  /// All of CostKey but the recomputation: these fields decide how the program is split over
  /// devices, which is done once.
  using PartitionKey =
      std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, bool, std::vector<std::string>>;
  static PartitionKey partitionKeyOf(const CostKey &key);

  /// Both outlive the prober.
  ModelProber(mlir::ModuleOp model, const ProbeSetting &setting) : model(model), setting(setting) {}

  /// The costs on each kind of node, or the first error.
  Expected<std::vector<ModelCosts>> probe(const CostKey &key);

private:
  using Partition = Expected<mlir::OwningOpRef<mlir::ModuleOp>>;
  Expected<ModelCosts> timeOn(const cluster::Cluster &cluster, const plan::Plan &plan) const;
  const Partition &partition(const PartitionKey &key, const CompileOptions &probed);

  mlir::ModuleOp model;
  const ProbeSetting &setting;
  std::map<PartitionKey, Partition> partitions;
};

/// The bytes of a program's activations that forward tasks write and others of the same microbatch
/// read, views counted as their sources: of one microbatch, or of as many as the program keeps at a
/// time.
double keptBytes(const plan::Program &program, bool ofAllMicrobatches = false);

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_MODELPROBER_H
