//===- KnownTrials.h - Results that the trials of a search share ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_KNOWNTRIALS_H
#define DTC_COMPILER_DRIVER_KNOWNTRIALS_H

#include "compiler/passes/recompute/RecomputeActivations.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace dtc {

/// Keeps the arenas and the choices that earlier trials of a search have found. A trial changes a
/// few coordinates of the pipeline; the others have the same functions as before, and are not
/// lowered again, nor built where isNew() is asked. All functions are lowered with the same
/// options.
class KnownTrials {
public:
  /// Whether no trial has built the function of a coordinate with this schedule and the choice for
  /// this bound, which is one of `choices`. Asked for all coordinates in their order, before
  /// eraseKnown() sees those that are new.
  bool isNew(int coordinate, int64_t bound, llvm::ArrayRef<int64_t> schedule);

  /// Erases the functions whose arenas are known, and returns these in the order of all functions:
  /// bytes, nothing where it is not known.
  std::vector<std::optional<int64_t>> eraseKnown(mlir::ModuleOp module);

  /// Fills in what eraseKnown() has not known, from the arenas of the functions that it has left,
  /// in their order, and notes these. Returns all arenas, those of coordinates that were not new
  /// among them.
  std::vector<int64_t> complete(llvm::ArrayRef<std::optional<int64_t>> known,
                                llvm::ArrayRef<int64_t> lowered);

  KnownRecomputeChoices choices; ///< what was chosen to be recomputed, see recomputeActivations()

private:
  using Fingerprint = std::pair<uint64_t, uint64_t>;
  std::map<Fingerprint, int64_t> arenas;
  std::map<Fingerprint, int64_t> arenasByChoice; ///< by what isNew() is asked for
  std::vector<Fingerprint> left;                 ///< of the functions that eraseKnown() has left
  std::vector<Fingerprint> asked;                ///< of the coordinates of this trial
};

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_KNOWNTRIALS_H
