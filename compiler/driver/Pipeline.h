//===- Pipeline.h - The whole road ----------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_PIPELINE_H
#define DTC_COMPILER_DRIVER_PIPELINE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dtc {

namespace plan {
class Plan;
} // namespace plan

struct RecomputeActivationsPassOptions;

/// What dtc-compile is asked for; the defaults are its defaults.
struct CompileOptions {
  enum class Mode {
    Train,     ///< a train step of the loss
    Gradients, ///< the loss and its gradients
    Forward,   ///< the function as it is
    Generate,  ///< the next token, with an entry point "decode" for those after it
  } mode = Mode::Train;
  /// Set by compile(): of generation, the program for one position, and where the program for whole
  /// sequences was cut into stages (see dtc-partition-stages).
  bool decodes = false;
  std::vector<int64_t> stageStarts;
  /// Names and sizes of the spatial axes. Empty: the module's own mesh, or one device.
  std::vector<std::pair<std::string, int64_t>> mesh;
  int64_t microbatches = 1;
  /// Gradients can be summed over several batches, also with one microbatch; with more they can.
  bool accumulates = false;
  /// "logical=axis+axis", or "argument#dimension=axis+axis" (see dtc-name-dimensions); what they do
  /// not name follows defaultShardings.
  std::vector<std::string> shard;
  /// Bytes a second and seconds before the first byte, by axis of the mesh.
  std::map<std::string, std::pair<double, double>> links;
  /// The stage of ZeRO (Rajbhandari et al. 2020), 0 to 3, and the axes over which it splits. Empty:
  /// fsdp where the mesh has it, else dp.
  int64_t zero = 0;
  std::vector<std::string> zeroAxes;
  /// Split what lies between the blocks of a layer along the sequence over tp (Korthikanti et al.
  /// 2022).
  bool sequenceParallel = false;
  /// Collectives smaller than this move together; 0: each by itself.
  int64_t bucketBytes = int64_t(25) << 20;
  /// How many layers ahead ZeRO stage 3 gathers parameters.
  int64_t prefetch = 1;
  /// How a pipeline (the axis pp of the mesh) works: the rule, the stages of each device, and the
  /// layers of each stage where the user says them (see dtc-partition-stages).
  std::string schedule = "1f1b"; ///< or "auto": the fastest that fits
  int64_t chunks = 0;            ///< 0: as few as the rule has
  std::string stages;
  /// Set by compile(): the model declares a mesh, which may have a pipeline axis, and a temporal
  /// axis of size 1.
  bool modelHasMesh = false, modelHasPipeline = false;
  std::string modelMicrobatchAxis;
  /// What is computed again instead of being kept for the backward pass: none, selective, full or
  /// auto, the least with which a device needs at most `memoryLimit` bytes (0: no limit).
  std::string recompute = "none";
  int64_t memoryLimit = 0;
  /// What a device is taken to do, for estimates: floating point operations and bytes of memory a
  /// second; 0: the default of the mesh.
  double deviceFlops = 0, deviceBandwidth = 0;
  /// The type that the model computes in: f32, bf16 or f16, the latter with a scaled loss. And that
  /// in which gradients are summed between devices: f32 or `dtype`.
  std::string dtype = "f32", gradReduceDtype = "f32";
  /// Patterns of parameters that do not train, and "pattern:weight_decay=W,lr_scale=S" for those
  /// that train in another way (see dtc-build-train-step).
  std::vector<std::string> freeze, paramGroups;
  std::string optimizer = "adamw";
  double clip = 1.0;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weightDecay = 0.1, momentum = 0.9;
};

/// The axis name that --microbatches makes.
inline constexpr const char *kMicrobatchAxis = "micro";

/// The axis of the mesh over which the stages of a model are laid.
inline constexpr const char *kPipelineAxis = "pp";

/// The logical axes that are split over tp without a map that says otherwise.
inline constexpr const char *kTensorAxisNames[] = {"heads", "kv_heads", "mlp", "vocab"};

/// Registers every dialect that a module may contain on the road.
void registerDialects(mlir::DialectRegistry &registry);

/// The map of logical axes that holds without --shard, for the axes that the mesh has: Megatron's
/// (Shoeybi et al. 2019, section 3). The batch is split over dp and fsdp, heads, the MLP's inner
/// dimension and the vocabulary over tp.
std::vector<std::string> defaultShardings(const CompileOptions &options);

/// Declares the mesh of the options in a module that has none. Emits an error where both have one.
mlir::LogicalResult declareMesh(mlir::ModuleOp module, const CompileOptions &options);

/// The stages of each device of a pipeline: what the options say, or as few as the schedule has.
int64_t chunksOf(const CompileOptions &options);

/// Adds the passes from a model to the local view of the whole program.
void buildPartitioning(mlir::OpPassManager &manager, const CompileOptions &options);

/// What dtc-recompute-activations, the first of the passes from there, is asked for.
RecomputeActivationsPassOptions recomputeOptions(const CompileOptions &options,
                                                 llvm::ArrayRef<int64_t> keepBytes);

/// Adds the passes from there to exec IR with planned memory. The schedule is not "auto".
/// `keepBytes`: see dtc-recompute-activations.
void buildLowering(mlir::OpPassManager &manager, const CompileOptions &options,
                   llvm::ArrayRef<int64_t> keepBytes = {});

/// Takes a module the whole road and writes the plan. Where the options leave the schedule or what
/// is computed again to be chosen, all candidates are compiled, and the fastest by simulation among
/// those that fit the memory limit is taken. Where none fits, the error says what needs the memory
/// and which changes would help. Diagnostics go to the context.
mlir::LogicalResult compile(mlir::ModuleOp module, const CompileOptions &options,
                            llvm::StringRef modelName, plan::Plan &plan);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_PIPELINE_H
