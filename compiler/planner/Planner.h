//===- Planner.h - Search for a strategy on a cluster ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_PLANNER_H
#define DTC_COMPILER_PLANNER_PLANNER_H

#include "compiler/driver/CandidateSearch.h"
#include "compiler/planner/AxisMaps.h"
#include "compiler/planner/CostProbe.h"
#include "compiler/planner/LowerEstimates.h"
#include "compiler/planner/SearchProgress.h"
#include "compiler/planner/SearchSpace.h"
#include "compiler/planner/StepEstimate.h"
#include "plan/plan.pb.h"
#include "simulator/Simulation.h"
#include "support/Error.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// A strategy that was looked at.
struct EstimatedStrategy {
  ParallelStrategy strategy;
  StepEstimate estimate;
  /// The simulated step, if the strategy was compiled.
  std::optional<Simulation> simulation;
  /// The arena of the device that needs most of its memory, and what plans may use there.
  int64_t arenaBytes = 0;
  double memoryBytes = 0;
  bool fits = true;      ///< as far as is known
  bool isOfHost = false; ///< these bytes are those of the host of a node, where less is left

  /// How many times its estimate a strategy of its kind takes, as far as is known.
  double correction = 1;
  /// Simulated without recomputation, which it cannot do without: it takes longer. 0: not known.
  double leastSeconds = 0;

  double seconds() const {
    return simulation ? simulation->stepSeconds
                      : std::max(leastSeconds, correction * estimate.seconds());
  }
  /// The bytes that are needed and usable on the device that needs most of its memory: simulated,
  /// or else estimated.
  double neededBytes() const { return simulation ? double(arenaBytes) : estimate.bytes; }
  double usableBytes() const { return simulation ? memoryBytes : estimate.memoryBytes; }
  double memoryShare() const { return neededBytes() / usableBytes(); }
};

/// A strategy that does not compile or cannot be simulated, and why, in a line.
struct FailedStrategy {
  ParallelStrategy strategy;
  std::string reason;
};

/// The options that compile a strategy, with what is fixed and the speeds of the cluster.
CompileOptions optionsOf(const ParallelStrategy &strategy, const PlannerOptions &options);

/// The result of a search.
struct PlannerResult {
  /// Those that were simulated and fit, the fastest first, then others that should fit by their
  /// estimates and are slower.
  std::vector<EstimatedStrategy> best;
  int64_t unknown = 0; ///< strategies that by their estimates may be as good and were not simulated
  /// The strategy that needs least among those that do not fit.
  std::optional<EstimatedStrategy> closest;
  /// The first strategy that failed to compile.
  std::optional<FailedStrategy> failed;
  plan::Plan plan;        ///< of the first, without evaluation
  CompileOptions options; ///< that compile it
  std::string offload;    ///< CompileOptions::offload of all that was considered, never "auto"
  /// The first as it was compiled, for finishCompile(). Does not outlive the model's context.
  std::unique_ptr<CandidateSearch> search;
  std::optional<Candidate> compiled;
  PlannerProgress progress;
  double memoryBytes = 0;        ///< that a plan may use on the smallest device
  bool recomputesPartly = false; ///< strategies may recompute as little as that asks for
  /// No plan takes less: the products of the model at the best rate that products reach on the
  /// devices.
  double lowerBound = 0;
};

/// Searches. Every strategy is estimated in closed form, from the costs of the parts of the model;
/// in the order of their estimates strategies are then compiled and simulated, until none of the
/// others can be faster than the best by more than estimates err, or the work that a search may do
/// is done, which depends on the model alone. So the result is the same every time. With the
/// offload "auto" and no strategy that fits, there are further searches, in which more and more
/// lies in the memory of the hosts (kOffloadsOfAuto), until a strategy fits. An error if no
/// strategy divides the devices and the batch, or if the callback ends the search; where none fits,
/// `best` is empty.
class Planner {
public:
  Planner(mlir::ModuleOp model, llvm::StringRef name, const PlannerOptions &options);

  Expected<PlannerResult> run(const ProgressCallback &report = [](const PlannerProgress &) {
    return true;
  });

private:
  /// Keeps the first strategy that failed.
  void recordFailure(const ParallelStrategy &strategy, std::string reason) {
    if (!failedFirst)
      failedFirst = FailedStrategy{strategy, std::move(reason)};
  }
  /// Adds the strategies with the axis maps that are chosen for sizes of tp.
  void chooseAxisMaps(LowerEstimates &lower);
  /// The sizes of tp for which an axis map is chosen.
  std::vector<int64_t> findMappedSizes(LowerEstimates &lower) const;
  /// The entry of the list that stands for all strategies of a size of tp; nullopt without any.
  static std::optional<size_t> findExample(LowerEstimates &lower, int64_t tp);
  /// The entries of the axis map for strategies of one size of tp, as far as `example` stands for
  /// them.
  std::vector<std::string> axisMapFor(LowerEstimates &lower, const ParallelStrategy &example);
  void estimateAll(PlannerResult &choice);

  mlir::ModuleOp model;
  std::string name;
  PlannerOptions options;
  bool mayOffload = false; ///< where nothing fits
  ModelProperties traits;
  CostProbe probe;
  StepEstimator estimator;
  std::vector<AxisDecision> decisions;
  std::optional<FailedStrategy> failedFirst; ///< of those that were probed
  bool splitsByDefault = false;              ///< tp splits something without any of these
  bool isCostly = false;                     ///< probes take long, and names say what to split
};

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_PLANNER_H
