//===- DecidedAxes.h - Axes that propagation chose for an op --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_SHARDING_DECIDEDAXES_H
#define DTC_COMPILER_PASSES_SHARDING_DECIDEDAXES_H

#include "compiler/analysis/Layout.h"

#include "mlir/IR/Operation.h"

namespace dtc {

/// The axes of each factor of an op that its dist.factors names; nullopt where that is absent or
/// does not fit the rule or the mesh.
std::optional<FactorAxes> decidedAxes(mlir::Operation *op, const LinkedMesh &mesh,
                                      const ShardingRule &rule);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_SHARDING_DECIDEDAXES_H
