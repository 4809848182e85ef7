//===- CompileOptions.h - Options of a compilation ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A member here and its row in OptionTable.cpp are all that an option is declared by: the flag, the
// field of strategy files, --set, the checks, and the documentation come from the row.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_COMPILEOPTIONS_H
#define DTC_COMPILER_DRIVER_COMPILEOPTIONS_H

#include "support/MeshAxes.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dtc {

/// The program that is compiled from the model's function.
enum class CompileMode {
  Train,     ///< a train step of the loss
  Gradients, ///< the loss and its gradients
  Forward,   ///< the function, without dropout unless `keepDropout`
  Generate,  ///< the next token, with an entry point "decode" for those after it
};

/// Which activations are recomputed instead of being saved for the backward pass. Auto: the fewest
/// with which a device needs at most `memoryLimit` bytes.
enum class Recompute { None, Gathers, Elementwise, Selective, Full, Auto };

/// The data that devices with parts of one sequence exchange in attention: keys and values, heads
/// for positions, or keys and values in turn while they work; Auto is the one that is estimated to
/// take least (see dtc-parallelize-context).
enum class ContextExchange { Auto, AllGather, AllToAll, Ring };

/// The element type of parameters and activations. With F16 the loss is scaled; with F8 they are
/// BF16, and the products of layers have operands of 8 bits.
enum class ComputeType { F32, BF16, F16, F8 };

enum class Optimizer { AdamW, Adam, SGD, Lion };

/// The words for the values of an enum of options, in the order of the values.
template <typename Enum> llvm::ArrayRef<llvm::StringRef> wordsOf();
template <> llvm::ArrayRef<llvm::StringRef> wordsOf<CompileMode>();
template <> llvm::ArrayRef<llvm::StringRef> wordsOf<Recompute>();
template <> llvm::ArrayRef<llvm::StringRef> wordsOf<ContextExchange>();
template <> llvm::ArrayRef<llvm::StringRef> wordsOf<ComputeType>();
template <> llvm::ArrayRef<llvm::StringRef> wordsOf<Optimizer>();

/// The word for a value: "selective".
template <typename Enum> std::string wordOf(Enum value) {
  return wordsOf<Enum>()[static_cast<size_t>(value)].str();
}

/// The element type in which parameters and activations are stored.
inline ComputeType storageType(ComputeType type) {
  return type == ComputeType::F8 ? ComputeType::BF16 : type;
}

/// The value that a word stands for; none where it stands for none.
template <typename Enum> std::optional<Enum> valueOf(llvm::StringRef word) {
  llvm::ArrayRef<llvm::StringRef> words = wordsOf<Enum>();
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i] == word)
      return static_cast<Enum>(i);
  return std::nullopt;
}

/// Names and sizes of spatial mesh axes, from the outermost.
using MeshSizes = std::vector<std::pair<std::string, int64_t>>;

/// By axis of the mesh: bytes a second in each direction, and seconds before the first byte.
using LinkSpeeds = std::map<std::string, std::pair<double, double>>;

/// The options of the user; the defaults are those of dtc-compile.
struct CompileOptions {
  CompileMode mode = CompileMode::Train;
  bool keepDropout = false; ///< of mode Forward

  /// Empty: the module's own mesh, or one device.
  MeshSizes mesh;
  /// "logical=axis+axis", or "argument#dimension=axis+axis" (see dtc-name-dimensions); what they do
  /// not name follows defaultAxisMap.
  std::vector<std::string> shard;
  int64_t microbatches = 1;
  /// Gradients can be accumulated over several batches, also with a single microbatch; a model for
  /// which they cannot is an error. With several microbatches they can wherever that is possible.
  bool accumulates = false;
  /// The ZeRO stage (Rajbhandari et al. 2020), 0 to 3, and the axes over which it splits. Empty:
  /// fsdp where the mesh has it, else dp, ep and cp.
  int64_t zero = 0;
  std::vector<std::string> zeroAxes;
  /// Sequence parallelism: what is between the tensor-parallel ops of a layer is split along the
  /// sequence over tp (Korthikanti et al. 2022).
  bool sequenceParallel = false;
  /// The exchange of context parallelism (the axis cp of the mesh).
  ContextExchange contextExchange = ContextExchange::Auto;
  /// Nested: groups of this many neighbours along cp split heads, and exchange keys and values
  /// between the groups. A divisor of cp; 1: not nested.
  int64_t contextHeads = 1;
  /// Groups of this many neighbours along ep exchange the rows of experts; a token may be sent once
  /// to each group. A divisor of ep; 1: no groups.
  int64_t expertGroup = 1;
  /// Smaller collectives are put into buckets of up to this size; 0: no buckets.
  int64_t bucketBytes = int64_t(25) << 20;
  /// The ops between collectives are computed in chunks, so that both overlap: "off", "auto" where
  /// that is estimated to be faster, or the number of chunks (see dtc-chunk-collectives).
  std::string chunkCollectives = "off";
  /// Every collective runs alone, where its op is, with nothing beside it.
  bool noOverlap = false;
  /// Products of one tensor with the parts of one weight stay apart (see dtc-join-products).
  bool noJoin = false;
  /// The number of layers by which ZeRO stage 3 gathers parameters ahead.
  int64_t prefetch = 1;
  /// The schedule of a pipeline (the axis pp of the mesh): the name of a rule (getScheduleRules) or
  /// "auto", the fastest that fits; the stages of each device (0: as few as the rule has); and the
  /// layers of each stage where the user says them (see dtc-partition-stages).
  std::string schedule = "1f1b";
  int64_t chunks = 0;
  std::string stages;
  Recompute recompute = Recompute::None;
  /// The loss is computed in this many chunks of tokens, one after the other (dtc-chunk-loss).
  int64_t lossChunks = 1;
  int64_t memoryLimit = 0; ///< bytes a device; 0: no limit
  ComputeType dtype = ComputeType::F32;
  /// The element type in which gradients are reduced between devices: F32 or `dtype`.
  ComputeType gradReduceDtype = ComputeType::F32;
  /// "axis=method", then perhaps ":setting=value" parts: sums of gradients over the axis, or what
  /// replicas send in an outer step, travel compressed (see CompressionMethod.h). Empty: as they
  /// are.
  std::string compress;
  /// What lies in the memory of the host (see OffloadOption.h, dtc-offload-states and
  /// dtc-offload-activations). Empty: nothing. "auto": all states of the optimizer, if no plan fits
  /// the memory otherwise.
  std::string offload;
  /// For estimates: links; floating point operations and bytes of memory a second of a device.
  /// Absent: the default of the mesh.
  LinkSpeeds links;
  std::optional<double> deviceFlops, deviceBandwidth;

  /// Patterns of parameters that do not train, and "pattern:weight_decay=W,lr_scale=S" for those
  /// that train in another way (see dtc-build-train-step).
  std::vector<std::string> freeze, paramGroups;
  Optimizer optimizer = Optimizer::AdamW;
  double clip = 1.0;
  double weightDecay = 0.1;
  double beta1 = 0.9;
  /// Absent: 0.99 for Lion and 0.95 for the others.
  std::optional<double> beta2;
  double eps = 1e-8;
  double momentum = 0.9;
  /// "clip=C,noise=S": the gradient of each sample is clipped, and their sum gets noise (see
  /// SampleClipping.h). Empty: neither.
  std::string dpSgd;
  /// The factor of the proximal term, which draws parameters to their values after the last outer
  /// step, or before the first step (see dtc-build-train-step). 0: none.
  double proximal = 0;

  /// The data axis along which replicas train on their own between outer steps; empty: none. By the
  /// outer step "mean" the parameters become their mean, by the others an outer optimizer updates
  /// them, with their change since the last outer step as the gradient (see dtc-build-outer-step).
  std::string outer;
  std::string outerStep = "nesterov";
  /// Absent: 0.7 for nesterov and 0.01 for the others.
  std::optional<double> outerLearningRate;
  double outerMomentum = 0.9;
  double outerBeta2 = 0.99;
  double outerTau = 1e-3;
  /// Streaming: the layers are divided into this many fragments, whose outer steps take turns, this
  /// many steps after a fragment was sent, and leave this part of the replica's own parameters.
  int64_t outerFragments = 1;
  int64_t outerDelay = 0;
  double outerBlend = 0;
  /// Whether the replicas train for the clients of a run, from the outer parameters in each round.
  bool clients = false;
  /// Whether the outer step adds noise to what clients have changed.
  bool clientNoise = false;

  bool hasAxis(llvm::StringRef axis) const;
};

/// The two parts of the axis of experts that CompileOptions::expertGroup makes: groups, from the
/// outermost, and the devices of a group.
inline constexpr const char *kExpertGroupsAxis = "ep.0", *kInExpertGroupAxis = "ep.1";
/// Whether CompileOptions::expertGroup divides ep into several groups of several devices.
bool hasExpertGroups(const CompileOptions &options);
/// The mesh with the parts of ep in place of ep where there are groups.
MeshSizes meshWithExpertGroups(const CompileOptions &options);

/// The learning rate of the outer step.
double outerLearningRateOf(const CompileOptions &options);
/// Whether outer steps are of fragments, in three parts: what takes, sends and applies.
bool streamsOuterSteps(const CompileOptions &options);
/// Whether the outer step is one of Reddi et al. 2021, which divide by the root of a second moment.
bool hasSecondMoment(const CompileOptions &options);

/// The axes over which ZeRO splits.
std::vector<std::string> zeroAxesOf(const CompileOptions &options);

/// The options with the driver's findings about the model.
struct ResolvedOptions : CompileOptions {
  ResolvedOptions() = default;
  ResolvedOptions(const CompileOptions &options) : CompileOptions(options) {}

  /// The model declares a mesh, which may have a pipeline axis, and a temporal axis, of a size
  /// above 1 or of size 1.
  bool modelHasMesh = false, modelHasPipeline = false, modelHasMicrobatches = false;
  std::string modelMicrobatchAxis;
  /// For generation: whether this is the program for one position, and where the program for whole
  /// sequences was cut into stages (see dtc-partition-stages).
  bool decodes = false;
  std::vector<int64_t> stageStarts;
  /// Of a train step with replicas: whether this is the outer step, what comes before the first
  /// step, or what measures the updates of clients before an outer step.
  bool isOuterStep = false, isOuterBegin = false, isOuterCheck = false;
  bool isOfOuterStep() const { return isOuterStep || isOuterBegin || isOuterCheck; }
  /// Of an outer step: the fragment, and the part of its outer step; none: all parameters at once.
  std::optional<int64_t> outerFragment;
  std::string outerPart = "whole"; ///< as of dtc-build-outer-step
};

/// The number of chunks that `chunkCollectives` says: 0 for "auto", 1 for "off"; none where it is
/// neither these nor a number from 2 to 64 (kMaxCollectiveChunks).
std::optional<int64_t> collectiveChunksOf(const CompileOptions &options);

/// The schedule by which the fastest is chosen.
inline constexpr const char *kAutoSchedule = "auto";

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_COMPILEOPTIONS_H
