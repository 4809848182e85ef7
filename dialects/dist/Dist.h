//===- Dist.h - The dist dialect ------------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DIST_DIST_H
#define DTC_DIALECTS_DIST_DIST_H

#include "dialects/dtc/DtcOps.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/dist/DistDialect.h.inc"
#include "dialects/dist/DistEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.h.inc"

namespace dtc::dist {

/// The name of the attribute that holds a value's sharding.
inline constexpr llvm::StringLiteral kShardingAttrName = "dist.sharding";

/// The sharding that `value` carries, or null.
ShardingAttr getSharding(mlir::Value value);

/// Records the sharding of an op's result or a function's argument.
void setSharding(mlir::Value value, ShardingAttr sharding);

/// The mesh called `name` that `at` sees: in the nearest enclosing symbol table that has it. Null if there is none.
MeshOp lookupMesh(mlir::Operation *at, mlir::FlatSymbolRefAttr name);

/// Checks `sharding` against the mesh and the type it is meant for: known axes, each at most once, the rank, and that
/// the axes divide each dimension. `what` names the value in the diagnostic ("argument 3", "result").
mlir::LogicalResult verifySharding(mlir::Operation *at, ShardingAttr sharding, mlir::Type type,
                                   const llvm::Twine &what);

} // namespace dtc::dist

#endif // DTC_DIALECTS_DIST_DIST_H
