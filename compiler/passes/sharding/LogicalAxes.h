//===- LogicalAxes.h - Axis maps ------------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_SHARDING_LOGICALAXES_H
#define DTC_COMPILER_PASSES_SHARDING_LOGICALAXES_H

#include "compiler/analysis/Layout.h"

#include "llvm/ADT/StringMap.h"

namespace dtc {

/// The entry of the axis map for one logical axis.
struct LogicalAxis {
  AxisList axes;
  int64_t priority = 0;   ///< 0 is the most urgent
  bool asked = false;     ///< by the user: it is an error where it cannot be done
  bool mustSplit = false; ///< an axis of more devices than elements are left for it is an error
  bool isBatch = false;   ///< the samples of inputs, see completeBatch()
};

/// The logical axis of the samples.
inline constexpr llvm::StringLiteral kBatchAxisName = "batch";
/// The logical axes of the rows that tokens become in their group of devices, where the devices
/// that split experts form groups: experts over the groups, and samples over all other data axes.
inline constexpr llvm::StringLiteral kExpertGroupAxisName = "expert_group";
inline constexpr llvm::StringLiteral kGroupBatchAxisName = "group_batch";

/// By logical axis, or by the key of a dimension (see ArgumentDims.h), which is one once
/// dtc-name-dimensions has run.
using LogicalAxisMap = llvm::StringMap<LogicalAxis>;

/// Parses entries of the form "logical=axis+axis" or "logical=axis@priority" into `map`. A name
/// that stands for several axes of the mesh (see dtc-split-mesh-axes) is all of them. With `asked`
/// a logical axis that is in the axis map is an error; without it, the entries of the axis map
/// stay.
mlir::LogicalResult parseLogicalAxes(mlir::Location loc, const LinkedMesh &mesh,
                                     llvm::ArrayRef<std::string> entries, bool asked,
                                     LogicalAxisMap &map);

/// Marks the dimensions of the batch: the logical axis of that name, and first dimensions of inputs
/// that the axis map names by their arguments. It is split over `axes` of the mesh as well, after
/// those of the axis map; `map` has the user's requests.
mlir::LogicalResult completeBatch(mlir::ModuleOp module, mlir::Location loc, const LinkedMesh &mesh,
                                  llvm::ArrayRef<std::string> axes, LogicalAxisMap &map);

/// Emits an error where the user maps a logical axis that no tensor of the module has: it would do
/// nothing.
mlir::LogicalResult checkLogicalAxesExist(mlir::ModuleOp module, mlir::Location loc,
                                          const LogicalAxisMap &map);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_SHARDING_LOGICALAXES_H
