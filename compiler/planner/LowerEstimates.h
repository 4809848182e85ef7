//===- LowerEstimates.h - Lower estimates of strategies, in order ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_LOWERESTIMATES_H
#define DTC_COMPILER_PLANNER_LOWERESTIMATES_H

#include "compiler/planner/CostProbe.h"
#include "compiler/planner/SearchSpace.h"
#include "compiler/planner/StepEstimate.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace dtc {

/// The estimate of a strategy without what takes long to find out: without recomputation, and with
/// the residual stream split along the sequence where that can be.
struct LowerEstimate {
  double seconds = 0;
  double excessBytes = 0; ///< that a device needs beyond those that it has
  size_t strategy = 0;    ///< its number
  /// It is a bound from the costs of a larger microbatch, as the strategy's are not known.
  bool isBound = false;

  bool operator<(const LowerEstimate &other) const {
    return std::tie(seconds, strategy) < std::tie(other.seconds, other.strategy);
  }
};

/// The lower estimates of strategies, the least first. Where probes are costly, only the largest
/// microbatch of each kind is probed at first; estimates with smaller ones are bounded by its costs
/// until they come first.
class LowerEstimates {
public:
  struct Setting {
    bool boundsSamples = false;  ///< probes are costly
    bool splitsByDefault = true; ///< tp splits something also without entries of its own
    /// Told of strategies whose model does not compile, with the first error.
    std::function<void(const ParallelStrategy &, const std::string &reason)> noteFailure;
  };

  /// All outlive the estimates.
  LowerEstimates(CostProbe &probe, StepEstimator &estimator, const ModelProperties &traits,
                 Setting setting)
      : probe(probe), estimator(estimator), traits(traits), setting(std::move(setting)) {}

  /// Adds strategies, after probing what they need.
  void add(llvm::ArrayRef<ParallelStrategy> more);
  /// All that were added, by number.
  const std::vector<ParallelStrategy> &strategies() const { return all; }

  /// In order, those that compile.
  const std::vector<LowerEstimate> &list() const { return ordered; }
  /// Replaces bounds by estimates: that of an entry of the list, and those that are known with it.
  void resolve(size_t index);
  void drop(llvm::function_ref<bool(const ParallelStrategy &)> isDropped);

  /// Takes the number of the strategy with the least estimate from the list, if that is at most
  /// `slowest` seconds. Its own costs are probed, with others that are likely to be next.
  std::optional<size_t> takeNext(double slowest);

  /// The costs that a strategy needs.
  CostKey keyOf(const ParallelStrategy &strategy) const;
  /// The estimate of any strategy; nullopt where it does not compile.
  std::optional<LowerEstimate> find(const ParallelStrategy &strategy, size_t number = 0);

private:
  LowerEstimate estimate(const ParallelStrategy &strategy, size_t number,
                         llvm::ArrayRef<ModelCosts> costs);
  /// The estimate, or a bound of it where only the costs of a larger microbatch are known.
  std::optional<LowerEstimate> bound(size_t number);
  /// What keyOf() says of the strategy of an estimate in the list.
  const CostKey &knownKeyOf(const LowerEstimate &listed) const {
    return distinctKeys[keyNumberOf[listed.strategy]];
  }
  /// A key but for its samples.
  static CostKey familyOf(CostKey key);
  /// Probes the next few unknown keys of estimates, in order: the keys that the estimate needs for
  /// a bound, otherwise those that the strategy needs.
  template <typename Estimates> void probeNext(const Estimates &next, double slowest);

  CostProbe &probe;
  StepEstimator &estimator;
  const ModelProperties &traits;
  Setting setting;
  std::vector<ParallelStrategy> all;
  std::vector<size_t> keyNumberOf; ///< for each strategy: the number of its key
  std::vector<CostKey> distinctKeys;
  std::map<CostKey, size_t> keyNumbers; ///< of those
  std::vector<LowerEstimate> ordered;
  std::optional<std::set<LowerEstimate>> left; ///< once some were taken: those that were not
  std::map<CostKey, int64_t> largestSamples;   ///< that are probed, by family
  std::map<CostKey, std::vector<ModelCosts>> scaledCosts; ///< of fewer samples, as bounds
};

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_LOWERESTIMATES_H
