//===- SimulatedSearch.h - Simulating the best of estimated strategies ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_SIMULATEDSEARCH_H
#define DTC_COMPILER_PLANNER_SIMULATEDSEARCH_H

#include "compiler/planner/AlikeStrategies.h"
#include "compiler/planner/Planner.h"
#include "compiler/planner/StrategyTrials.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// How many strategies may be compiled: the work that this takes grows with the ops of the model.
int64_t mostSimulations(mlir::ModuleOp model);

/// If at least this many strategies can be simulated, the search is thorough; else it takes those
/// with a lower estimate of at most a multiple of the best.
inline constexpr int64_t kManySimulations = 10;

/// Compiles and simulates strategies that have been estimated, and learns on the way by how much
/// estimates err.
class SimulatedSearch {
public:
  /// `choice.best` has the estimated strategies, the fastest first, and `choice.memoryBytes` the
  /// memory for a plan. `goesOn` is asked now and then, and reports `choice.progress`.
  SimulatedSearch(mlir::ModuleOp model, llvm::StringRef name, const PlannerOptions &options,
                  PlannerResult &choice, llvm::function_ref<bool()> goesOn);

  /// Leaves in `choice` the best plan, and the strategies to list in the order of their times;
  /// nothing of use once `goesOn` was false.
  void run();

private:
  /// Keeps the first strategy that failed.
  void recordFailure(const ParallelStrategy &strategy, std::string reason);
  /// Notes in `entry` what its trial said. Whether it was compiled and simulated.
  bool take(EstimatedStrategy &entry, const StrategyTrial &trial);
  /// Notes by how much the estimate of a strategy errs that takes `seconds`, or more.
  void noteTime(size_t index, double seconds);
  /// Ends the search among strategies like one that is slower than the best without recomputation.
  void noteSlower(size_t index);
  /// The trial of a strategy of `choice.best`: that of one that lies on the devices in the same
  /// way, without its candidate, if there was one, and else one of its own.
  StrategyTrial trialOf(size_t index);
  /// The first strategy of `choice.best` that differs from one at most in the order of the devices,
  /// where strategies are tried for the list alone: which of them is asked for depends on what is
  /// known by then, and trials ahead of that shall be of use.
  size_t firstInNodes(size_t index) const;
  /// Simulates a strategy of `choice.best`, and chooses it if it is the fastest so far.
  void simulateOne(size_t index);
  /// Whether a strategy with one recomputation is hardly faster, if at all, than one with the other
  /// that fits and is otherwise the same.
  bool isSlower(Recompute candidate, Recompute simulated) const;
  /// Ends the search among strategies that differ from a simulated one only in what they recompute,
  /// or also in the numbers of nodes, where that fits and none of them is faster. Where it does not
  /// fit, or is the best so far, adds one that recomputes in part if that may be faster with the
  /// memory that was found to be needed.
  void settleAlike(size_t index);
  /// Ends the search among strategies that are too large as one is that does not fit: by their
  /// estimates, which err for all of them as for that one.
  void settleTooLarge(size_t index);
  /// How many times its estimate a strategy takes, as far as is known.
  double correctionOf(size_t index) const;
  /// The seconds of a strategy by its estimate: one of a kind that nothing is known of errs as that
  /// which errs least.
  double likelySeconds(size_t index) const;
  /// The strategies that run() would simulate next if the trial of one were to say nothing new.
  std::vector<ParallelStrategy> findUpcoming(size_t index);
  /// Whether the estimate of a strategy is nearly that of one that was simulated.
  bool isLikeSimulated(size_t index) const;
  /// The strategy with the least lower estimate, if that is less than the best: one with another
  /// estimate than those that were simulated, where there is one.
  std::optional<size_t> findFastest() const;
  /// The strategy that needs the least memory among those that have not been simulated.
  std::optional<size_t> findSmallest() const;
  /// Whether simulations are left that are not for the list.
  bool mayGoOn() const;
  /// Takes a simulation of a strategy from those that are left.
  void countWork(size_t index);
  /// The strategy to simulate next; nullopt where the search is at its end.
  std::optional<size_t> findNext();
  /// Whether a strategy was not simulated and by its estimate is about as fast as the chosen one.
  bool isNear(size_t index) const;
  /// The fastest by its estimate among those near the chosen one.
  std::optional<size_t> findNear() const;
  /// Sorts `choice.best` by times, simulated ones first, and removes what does not fit.
  void sortResults();

  const PlannerOptions &options;
  PlannerResult &choice;
  llvm::function_ref<bool()> goesOn;

  const int64_t most; ///< simulations
  const bool isThorough;
  /// The simulations that may still be made.
  struct Work {
    int64_t left;
    int64_t leftToList;     ///< of strategies that are to be listed beside the choice
    bool isListing = false; ///< only those are simulated
  };
  Work work;
  double best = std::numeric_limits<double>::infinity();
  std::optional<size_t> chosen; ///< that the best is of
  StrategyTrial chosenTrial;    ///< its trial
  /// How many times its estimate a kind of strategy takes at least, as far as is known.
  std::map<std::string, double> errors;
  /// How many times its estimate a strategy holds: at least, where there is time to find out, and
  /// else at most.
  double memoryError = 1;
  double mostMemoryError = 1;             ///< at most, in any case
  std::vector<double> simulatedEstimates; ///< seconds
  // For each of `choice.best`:
  std::vector<std::string> kinds;
  AlikeStrategies alikes;
  std::vector<bool> isDone;
  std::vector<bool> isTimed; ///< simulated
  /// What was found of the strategies that were tried, but for their candidates, by
  /// standardOrder().
  std::map<ParallelStrategy, StrategyTrial> tried;

  StrategyTrials trials;
};

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_SIMULATEDSEARCH_H
