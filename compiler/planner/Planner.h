//===- Planner.h - Search for a strategy on a cluster ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_PLANNER_H
#define DTC_COMPILER_PLANNER_PLANNER_H

#include "compiler/driver/CandidateSearch.h"
#include "compiler/planner/AxisMaps.h"
#include "compiler/planner/SearchSpace.h"
#include "compiler/planner/StepEstimate.h"
#include "plan/plan.pb.h"
#include "simulator/Simulation.h"
#include "support/Error.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// A layout that was looked at.
struct RankedStrategy {
  ParallelStrategy layout;
  StepEstimate estimate;
  /// Of those that were compiled: the simulated step.
  std::optional<Simulation> simulation;
  /// Of the device that needs most of its memory, and what plans may use there.
  int64_t arenaBytes = 0;
  double memoryBytes = 0;
  bool fits = true; ///< as far as is known

  /// How many times its estimate a layout of its kind takes, as far as is known.
  double correction = 1;

  double seconds() const {
    return simulation ? simulation->stepSeconds : correction * estimate.seconds();
  }
  /// That a device needs, of the one that needs most of its memory, and what it has: simulated or
  /// else estimated.
  double neededBytes() const { return simulation ? double(arenaBytes) : estimate.bytes; }
  double usableBytes() const { return simulation ? memoryBytes : estimate.memoryBytes; }
  double memoryShare() const { return neededBytes() / usableBytes(); }
};

/// A layout that does not compile or cannot be simulated, and why, in a line.
struct FailedStrategy {
  ParallelStrategy layout;
  std::string reason;
};

/// The options that compile a layout, with what is fixed and the speeds of the cluster.
CompileOptions optionsOf(const ParallelStrategy &layout, const PlannerOptions &options);

/// How far a search has come.
struct PlannerProgress {
  int64_t layouts = 0, estimated = 0, probes = 0, simulated = 0;
  double bestSeconds = 0; ///< simulated; 0: none yet
};

/// What a search has found.
struct PlannerResult {
  /// Those that were simulated and fit, the fastest first, then others that should fit by their
  /// estimates and are slower.
  std::vector<RankedStrategy> ranked;
  int64_t unknown = 0; ///< layouts that by their estimates may be as good and were not simulated
  /// Of those that do not fit, the one that needs least.
  std::optional<RankedStrategy> closest;
  /// Of those that were compiled, the first that failed.
  std::optional<FailedStrategy> failed;
  plan::Plan plan;        ///< of the first, without evaluation
  CompileOptions options; ///< that compile it
  /// The first as it was compiled, for finishCompile(). Does not outlive the model's context.
  std::unique_ptr<CandidateSearch> search;
  std::optional<Candidate> compiled;
  PlannerProgress progress;
  double memoryBytes = 0; ///< that a plan may use on the smallest device
  /// No plan takes less: the products of the model at the best rate that products reach on the
  /// devices.
  double lowerBound = 0;
};

/// Searches. Every layout is estimated in closed form, from the costs of the parts of the model; in
/// the order of their estimates layouts are then compiled and simulated, until none of the others
/// can be faster than the best by more than estimates err, or the work that a search may do is
/// done, which depends on the model alone. So the result is the same every time. An error if no
/// layout divides the devices and the batch; where none fits, `ranked` is empty.
class Planner {
public:
  Planner(mlir::ModuleOp model, llvm::StringRef name, const PlannerOptions &options);

  Expected<PlannerResult> run(llvm::function_ref<void(const PlannerProgress &)> report =
                                  [](const PlannerProgress &) {});

private:
  /// A layout without what takes long to find out: without recomputation, and with sequences split
  /// between blocks where that can be.
  struct LowerEstimate {
    double seconds = 0;
    double excessBytes = 0; ///< that a device needs beyond those that it has
    size_t layout = 0;      ///< its number
  };
  std::optional<LowerEstimate> lowerEstimateOf(const ParallelStrategy &layout, size_t number);
  /// Keeps the first layout that failed.
  void recordFailure(const ParallelStrategy &layout, std::string reason) {
    if (!failedFirst)
      failedFirst = FailedStrategy{layout, std::move(reason)};
  }
  /// The lower estimates of all layouts, the best first, for which the map of each size of tp is
  /// chosen.
  std::vector<LowerEstimate> chooseMaps(std::vector<ParallelStrategy> &layouts,
                                        PlannerResult &choice,
                                        llvm::function_ref<void(const PlannerProgress &)> report);
  /// The entries of the map for layouts of one size of tp, as far as `example` stands for them.
  std::vector<std::string> mapFor(const ParallelStrategy &example);
  void estimateAll(PlannerResult &choice, llvm::function_ref<void(const PlannerProgress &)> report);
  void simulateBest(PlannerResult &choice,
                    llvm::function_ref<void(const PlannerProgress &)> report);
  /// What of a layout finishCompile() takes.
  struct Compiled {
    std::unique_ptr<CandidateSearch> search;
    std::optional<Candidate> candidate;
  };
  bool simulate(RankedStrategy &entry, Compiled &compiled);

  mlir::ModuleOp model;
  std::string name;
  PlannerOptions options;
  ModelProperties traits;
  CostProbe probe;
  StepEstimator estimator;
  std::vector<AxisDecision> decisions;
  std::optional<FailedStrategy> failedFirst; ///< of those that are looked at now
  bool splitsByDefault = false;              ///< tp splits something without any of these
};

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_PLANNER_H
