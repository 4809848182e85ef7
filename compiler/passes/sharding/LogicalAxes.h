//===- LogicalAxes.h - The map from logical to mesh axes ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_SHARDING_LOGICALAXES_H
#define DTC_COMPILER_PASSES_SHARDING_LOGICALAXES_H

#include "compiler/analysis/Layout.h"

#include "llvm/ADT/StringMap.h"

namespace dtc {

/// What the map says of one logical axis.
struct LogicalAxis {
  AxisList axes;
  int64_t priority = 0;   ///< 0 is the most urgent
  bool asked = false;     ///< by the user: it is an error where it cannot be done
  bool mustSplit = false; ///< an axis of more devices than elements are left for it is an error
};

using LogicalAxisMap = llvm::StringMap<LogicalAxis>;

/// Parses entries of the form "logical=axis+axis" or "logical=axis@priority" into `map`. A name
/// that stands for several axes of the mesh (see dtc-split-mesh-axes) is all of them. With `asked`
/// a logical axis that is in the map is an error; without, what the map has stays.
mlir::LogicalResult parseLogicalAxes(mlir::Location loc, const Mesh &mesh,
                                     llvm::ArrayRef<std::string> entries, bool asked,
                                     LogicalAxisMap &map);

/// Emits an error where the user maps a logical axis that no tensor of the module has: it would do
/// nothing.
mlir::LogicalResult checkLogicalAxesExist(mlir::ModuleOp module, mlir::Location loc,
                                          const LogicalAxisMap &map);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_SHARDING_LOGICALAXES_H
