//===- Dist.h - The dist dialect ------------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DIST_DIST_H
#define DTC_DIALECTS_DIST_DIST_H

#include "dialects/dtc/Constraint.h"
#include "dialects/dtc/DtcOps.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/dist/DistDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.h.inc"
#include "dialects/dist/DistInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.h.inc"

namespace dtc::dist {

/// The name of the attribute that holds a value's sharding.
inline constexpr llvm::StringLiteral kShardingAttrName = "dist.sharding";

/// The most devices of a mesh, and microbatches; the runtime reads no plan with more.
inline constexpr int64_t kMaxMeshSize = int64_t(1) << 20;

/// The sharding that `value` carries, or null.
ShardingAttr getSharding(mlir::Value value);

/// Records the sharding of an op's result or a function's argument.
void setSharding(mlir::Value value, ShardingAttr sharding);

/// The mesh called `name` in the innermost module around `at` that has it. Null if there is none.
MeshOp lookupMesh(mlir::Operation *at, mlir::FlatSymbolRefAttr name);

/// The name of the attribute of a collective that says why it is there: a dictionary of strings
/// `value`, `from`, `to`, `producer`, `consumer` and `remedy` (see Reason in plan.proto).
inline constexpr llvm::StringLiteral kReasonAttrName = "dist.reason";

/// The name of the attribute in which propagation stores how it splits an op: for each factor of
/// the op's sharding rule a list of mesh axes.
inline constexpr llvm::StringLiteral kFactorsAttrName = "dist.factors";

/// The name of the attribute that says where in a pipeline an op runs: a #dist.stage.
inline constexpr llvm::StringLiteral kStageAttrName = "dist.stage";

/// The name of the attribute of a device's function in a pipeline: a dictionary of `schedule`, the
/// name of the rule, and `stages`, how many the model has.
inline constexpr llvm::StringLiteral kPipelineAttrName = "dist.pipeline";

/// The name of the attribute of a function that was cut into stages: the numbers of the first op of
/// each stage but the first.
inline constexpr llvm::StringLiteral kStageStartsAttrName = "dist.stage_starts";

/// The name of the attribute of what lies in the memory of the host, or is computed by its cores.
inline constexpr llvm::StringLiteral kHostAttrName = "dist.host";

/// On a module, why its loop over microbatches must not run again for further batches.
inline constexpr llvm::StringLiteral kOneBatchAttrName = "dist.one_batch";

/// The op's #dist.stage, or null.
StageAttr getStage(mlir::Operation *op);

/// The value inside a loop, a fragment or a bucket that it yields for this result of it; null for
/// any other value.
mlir::Value getYieldedValue(mlir::Value value);

/// Whether two collectives may be in one dist.bucket: same kind, reduction, axes, element type
/// and stage.
bool canShareBucket(mlir::Operation *a, mlir::Operation *b);

/// Checks `sharding` against the mesh and the type it is meant for: known axes and the rank. Passes
/// check that the axes divide the dimensions, because they know a better message. `what` names the
/// value in the diagnostic ("argument 3", "result").
mlir::LogicalResult verifySharding(mlir::Operation *at, ShardingAttr sharding, mlir::Type type,
                                   const llvm::Twine &what);

} // namespace dtc::dist

#endif // DTC_DIALECTS_DIST_DIST_H
