//===- StrategyTrials.h - Strategies compiled and simulated on all cores --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_STRATEGYTRIALS_H
#define DTC_COMPILER_PLANNER_STRATEGYTRIALS_H

#include "compiler/driver/CandidateSearch.h"
#include "compiler/planner/SearchSpace.h"
#include "simulator/Simulation.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace dtc {

/// The facts about a strategy that was compiled and simulated.
struct StrategyTrial {
  /// The first error, where the strategy does not compile or cannot be simulated.
  std::string failure;
  /// The least seconds of a step of a strategy with `recompute=auto` that needs more memory than
  /// there is if it recomputes nothing. Where a step may not take as long, there is nothing below.
  std::optional<double> boundSeconds;
  /// The arena of the candidate that needs least, where none fits: bytes.
  std::optional<int64_t> closestBytes;
  std::optional<Simulation> simulation; ///< without a timeline
  /// The candidate that was simulated, with its plan, which nothing has proved to be one that a
  /// runtime takes, and no simulation. Its module is not verified before complete().
  std::optional<Candidate> candidate;
  /// The search that made the candidate. Null where a copy of the model was compiled: then the
  /// candidate has no module.
  std::unique_ptr<CandidateSearch> search;
};

/// Compiles and simulates strategies of a model, several at a time: the one that is asked for on
/// the thread that asks, and those that may be next on other threads. Each thread has a copy of the
/// model in an MLIR context of its own. The result for a strategy depends neither on the other
/// strategies nor on the number of threads.
class StrategyTrials {
public:
  /// `model`, `name` and `options` outlive the trials.
  StrategyTrials(mlir::ModuleOp model, llvm::StringRef name, const PlannerOptions &options);
  ~StrategyTrials(); ///< Ends trials that still run.

  /// The trial of a strategy, which is not asked for again. `next` are strategies that may be asked
  /// for next, the most likely first. Steps of `slowest` seconds or more are of no use, in this
  /// trial and in all that follow. `goesOn` is asked now and then; where it is false, the result is
  /// an empty one.
  StrategyTrial take(const ParallelStrategy &strategy, llvm::ArrayRef<ParallelStrategy> next,
                     double slowest, llvm::function_ref<bool()> goesOn);

  /// The candidate of a trial with its module, which belongs to the context of the model, and the
  /// search that made it. The error says why it is none that can be used.
  MaybeError complete(StrategyTrial &trial) const;

private:
  StrategyTrial run(mlir::ModuleOp ofThread, const ParallelStrategy &strategy);
  /// Takes strategies from `wanted` until there are no more, on a thread of its own.
  void work();
  void startThreads(size_t count);
  /// Runs a trial without the lock and notes its result.
  void runUnlocked(std::unique_lock<std::mutex> &lock, mlir::ModuleOp ofThread,
                   const ParallelStrategy &strategy);
  /// Takes the next wanted strategy, if there is one.
  std::optional<ParallelStrategy> nextWanted();

  mlir::ModuleOp model;
  llvm::StringRef name;
  const PlannerOptions &options;
  std::string bytes; ///< the model as bytecode, for copies
  std::atomic<double> slowest;
  std::atomic<bool> isEnding = false;

  std::mutex mutex; ///< of what follows
  std::condition_variable changed;
  std::deque<ParallelStrategy> wanted;
  /// By strategy; nothing while the trial runs.
  std::map<ParallelStrategy, std::optional<StrategyTrial>> trials;
  std::vector<std::jthread> threads;
};

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_STRATEGYTRIALS_H
