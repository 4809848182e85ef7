//===- CostProbe.h - Costs of a model for all strategies ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_COSTPROBE_H
#define DTC_COMPILER_PLANNER_COSTPROBE_H

#include "compiler/planner/ModelProber.h"
#include "compiler/planner/RepeatedLayers.h"

#include "llvm/ADT/ArrayRef.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dtc {

/// The costs of the sections of a model, each found once by a ModelProber.
class CostProbe {
public:
  /// `model` is whole; `batch` is its number of samples, which the first dimensions `batchDims` are
  /// (see findBatchDims()) where these have no name. The first `devices` devices of the cluster are
  /// used, all for 0.
  CostProbe(mlir::ModuleOp model, const CompileOptions &options, const cluster::Cluster &cluster,
            int64_t batch, int64_t devices = 0, std::vector<std::string> batchDims = {});
  ~CostProbe();

  /// Finds the costs of several keys at a time, on as many threads as the machine runs. The costs
  /// do not depend on the number of threads.
  void findAll(llvm::ArrayRef<CostKey> keys);
  bool isKnown(const CostKey &key) const { return known.contains(key); }
  /// The costs on each kind of node, or nothing where such a model does not compile.
  llvm::ArrayRef<ModelCosts> find(const CostKey &key);
  /// Why find() has found nothing: the first error of compiling such a model, or of timing it.
  const std::string &problemOf(const CostKey &key) const { return known.at(key).error().message; }

  /// The plan of each further probe is timed as `change` leaves it.
  void changePlans(std::function<void(plan::Plan &)> change) {
    setting.changePlan = std::move(change);
  }

  /// Asked before each probe on the thread that asks for it, where it is set; once it is false
  /// there are no more probes: all that is not known does not compile.
  std::function<bool()> goesOn;
  /// Says that there will be probes of the keys that are not known.
  void expect(llvm::ArrayRef<CostKey> keys);

  int64_t numProbes() const { return numMade; }
  /// The probes that are expected and not made yet.
  int64_t numExpected() const { return std::max<int64_t>(expected - numMade, 0); }
  /// The layers of the model; 0 where they do not repeat.
  int64_t numLayers() const { return shortened.prefix.empty() ? 0 : shortened.layers; }
  /// The prefix of the names of layers that repeat: "h.".
  const std::string &layerPrefix() const { return shortened.prefix; }
  bool mixesSamples() const { return setting.mixesSamples; }
  /// The model that is probed.
  ReducedModel &shortModel() { return shortened; }

private:
  struct Worker;
  /// The worker that has split the program for a key, else the first.
  size_t workerOf(const CostKey &key) const;
  /// Adds `count` workers, if the model can be copied.
  void addWorkers(size_t count);
  bool mayGoOn();
  /// What a worker finds, or an error where the probes are at their end.
  Expected<std::vector<ModelCosts>> probeWith(size_t worker, const CostKey &key);

  ReducedModel shortened;
  ProbeSetting setting;
  std::vector<std::unique_ptr<Worker>> workers; ///< the first in the context of the model
  std::map<ModelProber::PartitionKey, size_t> partitionedBy;
  std::map<CostKey, Expected<std::vector<ModelCosts>>> known;
  std::atomic<int64_t> numMade = 0;
  int64_t expected = 0; ///< the probes made once the announced ones are done
  std::atomic<bool> isEnded = false;
};

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_COSTPROBE_H
