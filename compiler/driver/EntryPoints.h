//===- EntryPoints.h - The functions that a plan offers -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each is made from the model by the same steps: partitioning to a local view, lowering to exec
// IR. Then the memory of all is planned together, because they share their states.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_ENTRYPOINTS_H
#define DTC_COMPILER_DRIVER_ENTRYPOINTS_H

#include "compiler/driver/CompileOptions.h"
#include "support/Error.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace dtc {

struct EntryPoint {
  std::string name;          ///< empty: the first, whose decisions the others follow
  ResolvedOptions options;   ///< of its local view
  bool isEvaluation = false; ///< of that, the loss alone is computed
  bool isOptional = false;   ///< the plan is of use without it
};

/// Those of a plan with these options, the first one first.
std::vector<EntryPoint> entryPointsOf(const ResolvedOptions &options);

/// Moves the programs of one module to the end of another, as those of an entry point.
void addPrograms(mlir::ModuleOp module, mlir::ModuleOp from, llvm::StringRef entryPoint);

/// Why the programs of an entry point cannot share the states of a train step's; empty if they can.
/// A state that the step updates on some devices of a pipeline would be stale where only the other
/// entry point, which may place what runs once a step elsewhere, has it.
MaybeError findStaleState(mlir::ModuleOp train, mlir::ModuleOp other);

/// The stages at which dtc-partition-stages has cut the function of a local view; empty if it has
/// not.
std::vector<int64_t> stageStartsOf(mlir::ModuleOp module);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_ENTRYPOINTS_H
