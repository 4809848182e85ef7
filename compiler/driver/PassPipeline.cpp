//===- PassPipeline.cpp - Pass pipelines of a compilation -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PassPipeline.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/driver/GradientCompression.h"
#include "compiler/driver/OffloadOption.h"
#include "compiler/driver/SampleClipping.h"
#include "compiler/export/ExportPlan.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/float8/Float8Passes.h"
#include "compiler/passes/offload/OffloadPasses.h"
#include "compiler/passes/outer/OuterPasses.h"
#include "compiler/passes/parts/PartsPasses.h"
#include "compiler/passes/privacy/PrivacyPasses.h"
#include "compiler/passes/sharding/LogicalAxes.h"

#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dtc;

void dtc::registerDialects(DialectRegistry &registry) {
  registry.insert<DtcDialect, dist::DistDialect, exec::ExecDialect, func::FuncDialect,
                  memref::MemRefDialect>();
}

bool dtc::hasPipeline(const ResolvedOptions &options) {
  return options.hasAxis(kPipelineAxis) || options.modelHasPipeline;
}

/// Whether activations are kept in the memory of the host.
static bool offloadsActivations(const ResolvedOptions &options) {
  return offloadOf(options.offload).activations > 0 && !options.isOfOuterStep();
}

/// Whether some pass needs the stage and the forward or backward pass of each op.
static bool marksStages(const ResolvedOptions &options) {
  return hasPipeline(options) || options.recompute != Recompute::None ||
         offloadOf(options.offload).activations > 0;
}

/// Whether the command line's mesh has an axis of microbatches. A pipeline works on them, also on
/// one, and so does what decides about recomputation.
static bool hasMicrobatchAxis(const ResolvedOptions &options) {
  return !options.modelHasMesh &&
         (options.microbatches > 1 || options.accumulates || marksStages(options));
}

/// The axis of microbatches over which every batch is split, empty if there is none. Over one of
/// the model's own mesh only its own shardings split, unless it has one microbatch, which is all.
static std::string microbatchAxis(const ResolvedOptions &options) {
  if (hasMicrobatchAxis(options))
    return kMicrobatchAxis;
  return marksStages(options) || options.accumulates ? options.modelMicrobatchAxis : "";
}

/// Whether there is a loop over a single microbatch.
static bool hasSingleMicrobatch(const ResolvedOptions &options) {
  return !microbatchAxis(options).empty() && (options.modelHasMesh || options.microbatches == 1);
}

std::vector<std::string> dtc::defaultAxisMap(const ResolvedOptions &options) {
  std::vector<std::string> map, batch, batchOutsideExperts;
  for (const MeshAxisInfo &axis : meshAxes()) {
    if (!options.hasAxis(axis.name))
      continue;
    if (axis.name == kExpertAxis && hasExpertGroups(options)) {
      // Experts are split over groups first, the batch over the devices of a group first: so a
      // device can have the experts of its group, and the samples of those with its place in
      // theirs.
      batchOutsideExperts.emplace_back(kInExpertGroupAxis);
      batchOutsideExperts.emplace_back(kExpertGroupsAxis);
    } else if (axis.splitsBatch) {
      (axis.splitsBatchOfExperts ? batch : batchOutsideExperts).emplace_back(axis.name);
    }
    for (const char *logical : axis.splits)
      map.push_back(std::string(logical) + "=" + std::string(axis.name));
  }
  if (std::string micro = microbatchAxis(options); !micro.empty())
    batch.push_back(micro);
  if (!batch.empty() && !batchOutsideExperts.empty())
    map.push_back("expert_batch=" + llvm::join(batch, "+"));
  if (hasExpertGroups(options)) {
    std::vector<std::string> inGroup = batch;
    inGroup.emplace_back(kInExpertGroupAxis);
    map.push_back(std::string(kExpertGroupAxisName) + "=" + kExpertGroupsAxis);
    map.push_back(std::string(kGroupBatchAxisName) + "=" + llvm::join(inGroup, "+"));
  }
  // Last, as the minor ones: the parts that they split are whole inside experts, and the rest is as
  // before.
  llvm::append_range(batch, batchOutsideExperts);
  if (!batch.empty())
    map.insert(map.begin(), "batch=" + llvm::join(batch, "+"));
  // After the others: inside attention and the MLP, heads and the inner dimension are split.
  bool splitsContext = options.hasAxis(kContextAxis);
  if (options.sequenceParallel && options.hasAxis(kTensorAxis))
    map.push_back(std::string("residual_seq=") +
                  (splitsContext ? std::string(kContextAxis) + "+" : "") + kTensorAxis + "@1");
  return map;
}

int64_t dtc::chunksOf(const ResolvedOptions &options) {
  auto rule = findScheduleRule(options.schedule);
  return options.chunks > 0 || !rule ? std::max<int64_t>(options.chunks, 1) : rule->minChunks;
}

LogicalResult dtc::declareMesh(ModuleOp module, const ResolvedOptions &options) {
  auto existing = module.getOps<dist::MeshOp>();
  if (!existing.empty()) {
    if (options.mesh.empty() && options.microbatches == 1) {
      auto mesh = *existing.begin();
      if (!options.accumulates ||
          llvm::any_of(mesh.getAxes().getAsRange<dist::AxisAttr>(),
                       [](dist::AxisAttr axis) { return axis.getTemporal(); }))
        return success();
      return mesh.emitError() << "--accumulate sums over microbatches, and the model's mesh has no "
                                 "temporal axis; add one, such as \"micro\"=1 temporal";
    }
    return (*existing.begin()).emitError()
           << "the model declares a mesh and the command line gives one; keep one of the two";
  }
  module.getContext()->loadDialect<dist::DistDialect>();
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  // Errors of the mesh or the axis map have no place in the model.
  auto loc = FileLineColLoc::get(module.getContext(), "<command line>", 1, 1);
  SmallVector<Attribute> axes;
  auto emitError = [&] { return mlir::emitError(loc); };
  auto add = [&](StringRef name, int64_t size, bool temporal, StringAttr whole = {}) {
    FloatAttr bandwidth, latency;
    auto link = options.links.find(name.str());
    if (link == options.links.end() && whole)
      link = options.links.find(whole.str());
    if (link != options.links.end()) {
      bandwidth = builder.getF64FloatAttr(link->second.first);
      latency = builder.getF64FloatAttr(link->second.second);
    }
    auto axis = dist::AxisAttr::getChecked(
        emitError, module.getContext(), builder.getStringAttr(name), size, temporal,
        /*pipeline=*/name == kPipelineAxis, whole, bandwidth, latency);
    if (axis)
      axes.push_back(axis);
    return bool(axis);
  };
  for (const auto &[name, size] : meshWithExpertGroups(options)) {
    if (name == kContextAxis && options.contextHeads > 1) {
      // The groups of neighbours, and the devices of a group.
      StringAttr whole = builder.getStringAttr(name);
      if (!add(name + ".0", size / options.contextHeads, false, whole) ||
          !add(name + ".1", options.contextHeads, false, whole))
        return failure();
    } else {
      bool isPart = name == kExpertGroupsAxis || name == kInExpertGroupAxis;
      if (!add(name, size, false, isPart ? builder.getStringAttr(kExpertAxis) : StringAttr()))
        return failure();
    }
  }
  if (hasMicrobatchAxis(options) && !add(kMicrobatchAxis, options.microbatches, true))
    return failure();
  auto speed = [&](std::optional<double> value) {
    return value ? builder.getF64FloatAttr(*value) : FloatAttr();
  };
  auto mesh =
      dist::MeshOp::create(builder, loc, builder.getStringAttr("mesh"), builder.getArrayAttr(axes),
                           speed(options.deviceFlops), speed(options.deviceBandwidth));
  return mesh.verify();
}

static BuildTrainStepPassOptions trainStepOptions(const ResolvedOptions &options) {
  BuildTrainStepPassOptions train;
  train.optimizer = options.mode == CompileMode::Train ? wordOf(options.optimizer) : "none";
  train.clip = options.clip;
  train.beta1 = options.beta1;
  train.beta2 = options.beta2.value_or(options.optimizer == Optimizer::Lion ? 0.99 : 0.95);
  train.eps = options.eps;
  train.weightDecay = options.weightDecay;
  train.momentum = options.momentum;
  train.proximal = options.proximal;
  train.clients = options.clients;
  if (std::optional<SampleClipping> clipping = sampleClippingOf(options)) {
    train.clip = 0;
    train.sampleClip = clipping->clip;
    train.sampleNoise = clipping->noise;
  }
  train.freeze.assign(options.freeze.begin(), options.freeze.end());
  train.paramGroup.assign(options.paramGroups.begin(), options.paramGroups.end());
  // Gradients in bf16 have the range of those in f32.
  train.lossScale = options.dtype == ComputeType::F16 && train.optimizer != "none";
  train.numberOps = marksStages(options);
  train.accumulates =
      train.optimizer != "none" &&
      (options.accumulates || options.microbatches > 1 || options.modelHasMicrobatches);
  // Without marks, the gradients of several microbatches are sums over batches where that is
  // possible: see CandidateSearch::partitioned().
  train.separateBatches =
      train.optimizer != "none" && (hasSingleMicrobatch(options) || options.accumulates);
  return train;
}

/// Splits the sequences of the model over the axis `cp`. `defaults` are the default shardings.
static void buildContextParallelism(OpPassManager &manager, const ResolvedOptions &options,
                                    const std::vector<std::string> &defaults) {
  bool generates = options.mode == CompileMode::Generate;
  // Dropout that is left out later asks for nothing.
  if (generates || (options.mode == CompileMode::Forward && !options.keepDropout))
    manager.addPass(createRemoveDropoutPass());
  ParallelizeContextPassOptions context;
  context.axis = kContextAxis;
  // In generation each device has its heads of the cache, both for a prompt and for what follows
  // it.
  context.exchange = wordOf(generates && options.contextExchange == ContextExchange::Auto
                                ? ContextExchange::AllGather
                                : options.contextExchange);
  context.headDevices = options.contextHeads;
  // Entry points other than losses have positions in their order.
  context.zigzag = options.mode == CompileMode::Train || options.mode == CompileMode::Gradients;
  if (std::string micro = microbatchAxis(options); !micro.empty())
    context.batchAxes = {micro};
  context.shard.assign(options.shard.begin(), options.shard.end());
  context.defaultShard.assign(defaults.begin(), defaults.end());
  manager.addPass(createParallelizeContextPass(context));
}

static void addCompression(OpPassManager &manager, const CompressionSettings &compression) {
  CompressGradientsPassOptions compress;
  compress.axis = compression.axis;
  compress.method = name(compression.method);
  compress.rounding = name(compression.rounding);
  compress.block = compression.block;
  compress.share = compression.share;
  compress.rank = compression.rank;
  compress.feedback = compression.feedback;
  manager.addPass(createCompressGradientsPass(compress));
}

/// How gradients are summed between devices, in the local view.
static void buildGradientSums(OpPassManager &manager, const ResolvedOptions &options) {
  if (std::optional<SampleClipping> clipping = sampleClippingOf(options))
    manager.addPass(createClipSamplesPass({clipping->clip, clipping->noise, options.outer}));
  if (!options.outer.empty())
    manager.addPass(createSeparateReplicasPass({options.outer, options.clients}));
  if (options.gradReduceDtype != ComputeType::F32) {
    NarrowGradientReductionsPassOptions narrow;
    narrow.dtype = wordOf(options.gradReduceDtype);
    manager.addPass(createNarrowGradientReductionsPass(narrow));
  }
  VerifyPrecisionPassOptions verify;
  verify.allowNarrowReductions = options.gradReduceDtype != ComputeType::F32;
  manager.addPass(createVerifyPrecisionPass(verify));
  if (options.dtype == ComputeType::F8)
    manager.addPass(createScaleProductsPass({options.outer}));
  if (auto compression = parseGradientCompression(options.compress);
      compression && compression->axis != options.outer)
    addCompression(manager, *compression);
}

/// Generation follows sequences through ops, and the rings of context parallelism hand keys on:
/// both want queries, keys and values by themselves.
static bool joinsProducts(const ResolvedOptions &options) {
  return !options.noJoin && options.mode != CompileMode::Generate && !options.hasAxis(kContextAxis);
}

/// The function of the mode: a step of generation, a forward pass, or a train step.
static void buildEntryPoint(OpPassManager &manager, const ResolvedOptions &options) {
  if (options.mode == CompileMode::Generate) {
    BuildGenerationPassOptions generate;
    generate.phase = options.decodes ? "decode" : "prefill";
    manager.addPass(createBuildGenerationPass(generate));
  } else if (options.mode == CompileMode::Forward) {
    if (!options.keepDropout)
      manager.addPass(createRemoveDropoutPass());
  } else {
    ChunkLossPassOptions chunk;
    chunk.chunks = options.lossChunks;
    manager.addPass(createChunkLossPass(chunk));
    manager.addPass(createBuildTrainStepPass(trainStepOptions(options)));
    manager.addPass(createDelayLossChunksPass());
  }
}

void dtc::buildPartitioning(OpPassManager &manager, const ResolvedOptions &options) {
  manager.addPass(createFoldParameterReshapesPass());
  if (joinsProducts(options))
    manager.addPass(createJoinProductsPass());
  NameDimensionsPassOptions nameDimensions;
  nameDimensions.shard.assign(options.shard.begin(), options.shard.end());
  manager.addPass(createNameDimensionsPass(nameDimensions));
  // These passes see the model, which all entry points of a plan share: so states lie in the same
  // way in all of them.
  std::vector<std::string> defaults = defaultAxisMap(options);
  if (options.hasAxis(kContextAxis))
    buildContextParallelism(manager, options, defaults);
  // Generation has one token a step, and forward passes alone are not trained for it: both keep 16
  // bits.
  if (options.dtype == ComputeType::F8 &&
      (options.mode == CompileMode::Train || options.mode == CompileMode::Gradients))
    manager.addPass(createMarkLayerProductsPass());
  SplitMeshAxesPassOptions split;
  split.shard.assign(options.shard.begin(), options.shard.end());
  split.defaultShard.assign(defaults.begin(), defaults.end());
  split.whole = {"batch"};
  if (options.zero > 0) {
    std::vector<std::string> zero = zeroAxesOf(options);
    split.zeroAxes.assign(zero.begin(), zero.end());
  }
  manager.addPass(createSplitMeshAxesPass(split));
  buildEntryPoint(manager, options);
  auto compression = parseGradientCompression(options.compress);
  AdvanceRandomKeyPassOptions advance;
  auto clipping = sampleClippingOf(options);
  advance.always = options.mode == CompileMode::Train &&
                   ((compression && compression->rounding == Rounding::Stochastic) ||
                    (clipping && clipping->noise > 0));
  manager.addPass(createAdvanceRandomKeyPass(advance));
  if (options.dtype != ComputeType::F32) {
    MixedPrecisionPassOptions precision;
    precision.dtype = wordOf(storageType(options.dtype));
    manager.addPass(createMixedPrecisionPass(precision));
  }
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());

  PropagateShardingsPassOptions propagate;
  propagate.shard.assign(options.shard.begin(), options.shard.end());
  // A batch that the user maps to devices is split into microbatches as well.
  if (std::string micro = microbatchAxis(options); !micro.empty())
    propagate.batchAxes = {micro};
  propagate.defaultShard.assign(defaults.begin(), defaults.end());
  // With a replicated batch every device along dp would compute the same.
  propagate.mustSplit = {"batch"};
  propagate.zeroStage = options.zero;
  std::vector<std::string> zero = zeroAxesOf(options);
  propagate.zeroAxes.assign(zero.begin(), zero.end());
  manager.addPass(createCloneConstantsPerUsePass());
  manager.addPass(createPropagateShardingsPass(propagate));
  manager.addPass(createCSEPass());
  if (marksStages(options)) {
    PartitionStagesPassOptions partition;
    partition.chunks = chunksOf(options);
    partition.stages = options.stages;
    partition.starts.assign(options.stageStarts.begin(), options.stageStarts.end());
    manager.addPass(createPartitionStagesPass(partition));
  }
  manager.addPass(createInsertReshardsPass());
  SpmdPartitionPassOptions spmd;
  spmd.accumulates = options.accumulates && options.mode == CompileMode::Train;
  manager.addPass(createSpmdPartitionPass(spmd));
  buildGradientSums(manager, options);
  manager.addPass(createCSEPass());
  manager.addPass(createExpandAttentionSinksPass());
  if (options.hasAxis(kContextAxis))
    manager.addPass(createExpandRingAttentionPass());
}

RecomputeActivationsPassOptions dtc::recomputeOptions(const ResolvedOptions &options,
                                                      ArrayRef<int64_t> keepBytes) {
  RecomputeActivationsPassOptions recompute;
  recompute.mode = wordOf(options.recompute);
  recompute.keepBytes.assign(keepBytes.begin(), keepBytes.end());
  recompute.schedule = options.schedule;
  recompute.chunks = chunksOf(options);
  recompute.keepLoop = options.accumulates || offloadsActivations(options);
  return recompute;
}

void dtc::buildOffloadedActivations(OpPassManager &manager, const ResolvedOptions &options) {
  if (offloadsActivations(options))
    manager.addPass(createOffloadActivationsPass(
        {offloadOf(options.offload).activations, options.prefetch, options.accumulates}));
}

void dtc::buildDeviceFunctions(OpPassManager &manager, const ResolvedOptions &options,
                               ArrayRef<int64_t> keepBytes) {
  if (options.recompute != Recompute::None)
    manager.addPass(createRecomputeActivationsPass(recomputeOptions(options, keepBytes)));
  buildOffloadedActivations(manager, options);
  std::vector<std::string> zero = zeroAxesOf(options);
  if (options.zero == 3) {
    GatherParametersPerUsePassOptions gathers;
    gathers.axes.assign(zero.begin(), zero.end());
    gathers.bucketBytes = options.bucketBytes;
    gathers.prefetch = options.prefetch;
    manager.addPass(createGatherParametersPerUsePass(gathers));
  }
  if (hasPipeline(options)) {
    SchedulePipelinePassOptions schedule;
    schedule.schedule = options.schedule;
    schedule.chunks = chunksOf(options);
    manager.addPass(createSchedulePipelinePass(schedule));
  }
}

void dtc::buildPrograms(OpPassManager &manager, const ResolvedOptions &options) {
  if (options.isOfOuterStep()) {
    std::optional<CompressionSettings> compression = outerCompressionOf(options);
    BuildOuterStepPassOptions outer;
    outer.axis = options.outer;
    outer.step = options.outerStep;
    outer.learningRate = outerLearningRateOf(options);
    outer.momentum = options.outerMomentum;
    outer.beta2 = options.outerBeta2;
    outer.tau = options.outerTau;
    outer.compressed = compression.has_value();
    outer.clients = options.clients;
    outer.noise = options.clientNoise;
    outer.begins = options.isOuterBegin;
    outer.checks = options.isOuterCheck;
    if (streamsOuterSteps(options)) {
      outer.fragments = options.outerFragments;
      outer.fragment = options.outerFragment.value_or(0);
      outer.blend = options.outerBlend;
      outer.part = options.outerPart;
    }
    manager.addPass(createBuildOuterStepPass(outer));
    if (compression && options.isOuterStep && options.outerPart != "take" &&
        options.outerPart != "apply")
      addCompression(manager, *compression);
    // Each parameter has collectives of its own, over a link that may be slow.
    manager.addPass(createAlignCollectivesPass({options.bucketBytes}));
  }
  if (int64_t chunks = collectiveChunksOf(options).value_or(1); chunks != 1)
    manager.addPass(createChunkCollectivesPass({chunks}));
  OptimizeCollectivesPassOptions optimize;
  optimize.bucketBytes = options.bucketBytes;
  manager.addPass(createOptimizeCollectivesPass(optimize));
  if (!options.noOverlap)
    manager.addPass(createHideCollectivesPass());
  if (double states = offloadOf(options.offload).optimizer; states > 0)
    manager.addPass(createOffloadStatesPass({states}));
  LowerToExecPassOptions lower;
  lower.keepSums = options.accumulates;
  manager.addPass(createLowerToExecPass(lower));
  manager.addPass(createFoldSlicesPass());
  if (!options.noOverlap)
    manager.addPass(createOverlapCollectivesPass());
}

void dtc::buildLowering(OpPassManager &manager, const ResolvedOptions &options,
                        ArrayRef<int64_t> keepBytes) {
  buildDeviceFunctions(manager, options, keepBytes);
  buildPrograms(manager, options);
}
