//===- PassPipeline.h - Pass pipelines of a compilation -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_PASSPIPELINE_H
#define DTC_COMPILER_DRIVER_PASSPIPELINE_H

#include "compiler/driver/CompileOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

namespace dtc {

namespace plan {
class Plan;
} // namespace plan

namespace cluster {
class Cluster;
} // namespace cluster

struct RecomputeActivationsPassOptions;

/// Registers every dialect that a module may contain between the passes.
void registerDialects(mlir::DialectRegistry &registry);

/// The axis map that holds without --shard, for the axes that the mesh has: Megatron's
/// (Shoeybi et al. 2019, section 3). The batch is split over dp and fsdp, heads, the MLP's inner
/// dimension and the vocabulary over tp. Experts are split over ep (support/MeshAxes.h).
std::vector<std::string> defaultAxisMap(const ResolvedOptions &options);

/// Declares the mesh of the options in a module that has none. Emits an error where both have one.
mlir::LogicalResult declareMesh(mlir::ModuleOp module, const ResolvedOptions &options);

/// The stages of each device of a pipeline: as many as the options ask for, or as few as the
/// schedule has.
int64_t chunksOf(const ResolvedOptions &options);

/// Whether the devices are those of a pipeline, by the options or by the mesh of the model.
bool hasPipeline(const ResolvedOptions &options);

/// Adds dtc-offload-activations where the options ask for it: after recomputation.
void buildOffloadedActivations(mlir::OpPassManager &manager, const ResolvedOptions &options);

/// Adds the passes from a model to the local view of the whole function.
void buildPartitioning(mlir::OpPassManager &manager, const ResolvedOptions &options);

/// The options of dtc-recompute-activations, the first of the passes from there.
RecomputeActivationsPassOptions recomputeOptions(const ResolvedOptions &options,
                                                 llvm::ArrayRef<int64_t> keepBytes);

/// Adds the passes from there to a function for each coordinate of a pipeline. The schedule is not
/// "auto". `keepBytes`: see dtc-recompute-activations.
void buildDeviceFunctions(mlir::OpPassManager &manager, const ResolvedOptions &options,
                          llvm::ArrayRef<int64_t> keepBytes = {});

/// Adds the passes from there to exec IR, which see one function at a time. dtc-plan-memory is not
/// among them: it plans the memory of all entry points together.
void buildPrograms(mlir::OpPassManager &manager, const ResolvedOptions &options);

/// Adds the passes of both.
void buildLowering(mlir::OpPassManager &manager, const ResolvedOptions &options,
                   llvm::ArrayRef<int64_t> keepBytes = {});

/// Takes a model to exec IR with planned memory: the programs of all entry points of the mode.
/// Where the options leave the schedule or what is recomputed to be chosen, all candidates are
/// compiled, and the fastest by simulation among those that fit the memory limit is taken: on
/// `cluster`, or without one by the estimates of the plans. Where none fits, the error says what
/// needs the memory and which changes would help. Diagnostics go to the context.
mlir::LogicalResult compileToExec(mlir::ModuleOp module, const CompileOptions &options,
                                  llvm::StringRef modelName,
                                  const cluster::Cluster *cluster = nullptr);

/// The same, and writes the plan.
mlir::LogicalResult compile(mlir::ModuleOp module, const CompileOptions &options,
                            llvm::StringRef modelName, plan::Plan &plan,
                            const cluster::Cluster *cluster = nullptr);

/// Registers compileToExec() as the pass pipeline "dtc-compile", whose options are those of
/// OptionTable.h.
void registerCompilePipeline();

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_PASSPIPELINE_H
