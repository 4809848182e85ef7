//===- AxisMaps.h - Search for the axis map of tensor parallelism ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The choices that an axis map has for a model, as few independent ones: a class of dimensions
// that want to be split together (see DimensionClasses.h) is split over tp or is not, and classes
// of repeated layers that differ in the layer's number alone are chosen together. So a model has
// about as many choices as a layer has names, and needs no names to have them.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_AXISMAPS_H
#define DTC_COMPILER_PLANNER_AXISMAPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dtc {

/// Dimensions that tp splits all or none of.
struct AxisDecision {
  /// The logical axes that the default axis map splits over tp, in order. Where there are none, the
  /// dimensions of arguments are what an axis map speaks of.
  std::vector<std::string> names;
  /// Dimensions of arguments, as an axis map has them (see ArgumentDims.h), in order.
  std::vector<std::string> dims;
  std::set<unsigned> arguments; ///< that have such a dimension
  int64_t size = 0;             ///< elements of the smallest of them
  double bytes = 0;             ///< of the parameters that have them

  /// Whether the default axis map splits it.
  bool isDefault() const { return !names.empty(); }
  /// The entries of an axis map that make it split, or not split: none where that is the default.
  std::vector<std::string> entries(bool isSplit) const;
};

/// The decisions that a model leaves, those about most bytes of parameters first. Left out are
/// dimensions that `fixed`, the user's entries, speaks of, that have a name which the default axis
/// map gives no axis, that a value has twice, and that hardly any parameters have. `layerPrefix` is
/// that of the repeated layers (RepeatedLayers.h). The function has `keptLayers` of them, and the
/// model has `layers`.
std::vector<AxisDecision> findAxisDecisions(mlir::func::FuncOp function,
                                            llvm::ArrayRef<std::string> fixed,
                                            llvm::StringRef layerPrefix, int64_t keptLayers,
                                            int64_t layers);

/// The first dimensions of all inputs, as an axis map has them, if these are the samples of a
/// batch: of one size, and no dimension that is split with them is a parameter's.
std::vector<std::string> findBatchDims(mlir::func::FuncOp function);

/// The entries of an axis map that split these over the data axes that a mesh has.
std::vector<std::string> batchEntries(llvm::ArrayRef<std::string> batchDims,
                                      llvm::ArrayRef<std::pair<std::string, int64_t>> mesh);

/// The cost of an axis map.
struct AxisMapCost {
  double seconds = 0;
  double excessBytes = 0; ///< that a device needs beyond those that it has
};

/// nullopt where the axis map does not compile. Entries of decisions, in the order of these.
using AxisMapCosts =
    llvm::function_ref<std::optional<AxisMapCost>(llvm::ArrayRef<std::string> entries)>;

/// Told of the maps that are likely to be asked for next, so that their costs can be found at once.
using AxisMapsAhead = llvm::function_ref<void(llvm::ArrayRef<std::vector<std::string>> maps)>;

/// Coordinate descent over the decisions, for an axis tp of `tp` devices: from the default axis
/// map, and where that splits nothing from each decision by itself, one decision after the other is
/// changed, and stays so if that helps, until none does or `mostCosts` maps were looked at. A gain
/// of less than a hundredth over the default axis map does not count. Two decisions that would
/// split two dimensions of an argument are not tried together, and no step goes to nothing that is
/// split. Returns the entries of the best axis map.
std::vector<std::string> chooseAxisMap(
    llvm::ArrayRef<AxisDecision> decisions, int64_t tp, int64_t mostCosts, AxisMapCosts costs,
    AxisMapsAhead ahead = [](auto) {});

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_AXISMAPS_H
