//===- CheckProgram.h - Checks of the preconditions of passes -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_CHECKPROGRAM_H
#define DTC_COMPILER_PASSES_CHECKPROGRAM_H

#include "compiler/analysis/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"

#include <limits>

namespace dtc {

/// Calls `body` for each function of the module that has a body, with the module's mesh, up to the
/// first failure. The body may erase the function. Fails with a diagnostic where there is not one
/// mesh.
mlir::LogicalResult forEachFunction(
    mlir::ModuleOp module,
    llvm::function_ref<mlir::LogicalResult(mlir::func::FuncOp, const LinkedMesh &)> body);

/// The most dimensions that a tensor of a plan may have.
inline constexpr int64_t kMaxRank = 16;

/// The most stages that one device of a pipeline may have.
inline constexpr int64_t kMaxChunks = 1 << 16;

/// Checks that a pass's option is in its range.
mlir::LogicalResult checkOption(mlir::ModuleOp module, llvm::StringRef name, int64_t value,
                                int64_t least, int64_t most = std::numeric_limits<int64_t>::max());

/// Checks that the mesh has the axis, one of devices that is neither a pipeline nor cut into parts.
/// `what` is what the error says cannot be, such as "sums of gradients cannot be compressed over".
mlir::LogicalResult checkDataAxis(mlir::ModuleOp module, const LinkedMesh &mesh,
                                  llvm::StringRef axis, llvm::StringRef what);

/// Checks that `function`, which has a body, is one block that ends in a return, that its values
/// are tensors of the dtc dialect, and that results that update arguments have their types. Passes
/// call it first: the IR may be anyone's.
mlir::LogicalResult checkProgram(mlir::func::FuncOp function);

/// Checks as well that all shardings are on `mesh`, the one of the module.
mlir::LogicalResult checkProgram(mlir::func::FuncOp function, llvm::StringRef mesh);

/// Checks the same of a program whose microbatches are to be scheduled, and returns its one loop
/// over them, which has no schedule yet. `before` names the passes that make it so.
mlir::FailureOr<dist::MicrobatchLoopOp>
findMicrobatchLoop(mlir::func::FuncOp function, const LinkedMesh &mesh, llvm::StringRef before);

/// Whether the argument lives across steps: a parameter, a part of the optimizer's state, a cache
/// or a step state.
bool isStateArgument(mlir::func::FuncOp function, unsigned index);

/// Erases arguments that nothing reads. Results keep the arguments that they update, which are not
/// among them.
void eraseArguments(mlir::func::FuncOp function, const llvm::BitVector &unused);

/// Whether the argument is a part of the step state (dtc.step_state).
bool isStepState(mlir::func::FuncOp function, unsigned index);

/// Checks that every argument and every op's result has a sharding, and that every op has a
/// sharding rule or is one of the global view's own.
mlir::LogicalResult checkShardings(mlir::func::FuncOp function);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_CHECKPROGRAM_H
