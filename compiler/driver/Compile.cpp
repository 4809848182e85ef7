//===- Compile.cpp - Compilation of a model to a plan ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/CandidateSearch.h"
#include "compiler/driver/ExplainMemory.h"
#include "compiler/driver/OffloadOption.h"
#include "compiler/driver/PassPipeline.h"
#include "compiler/driver/SampleClipping.h"
#include "compiler/export/ExportPlan.h"
#include "compiler/passes/CheckProgram.h"
#include "dialects/dist/Dist.h"
#include "plan/PlanVerifier.h"
#include "plan/plan.pb.h"
#include "support/Format.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace dtc;

static_assert(kMaxRank == kMaxTensorRank);

static LogicalResult checkModel(ModuleOp model) {
  auto functions = llvm::to_vector(model.getOps<func::FuncOp>());
  if (functions.size() != 1)
    return model.emitError() << "the model has " << functions.size()
                             << " functions, expected one, func.func @loss";
  if (functions.front().isExternal())
    return functions.front().emitOpError() << "has no body, expected one that computes the loss";
  return success();
}

/// The options with what the driver takes from the model, and without what means nothing in their
/// mode.
static ResolvedOptions resolveOptions(ModuleOp model, const CompileOptions &options) {
  ResolvedOptions resolved = options;
  if (options.mode == CompileMode::Forward || options.mode == CompileMode::Generate)
    resolved.recompute = Recompute::None; // nothing is kept
  // There is one microbatch, which goes through the stages in any schedule alike.
  if (options.mode == CompileMode::Generate && options.schedule == kAutoSchedule)
    resolved.schedule = CompileOptions().schedule;
  // The model's own mesh decides where the options have none.
  for (auto mesh : model.getOps<dist::MeshOp>()) {
    resolved.modelHasMesh = true;
    for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>()) {
      resolved.modelHasPipeline |= axis.getPipeline();
      if (axis.getTemporal() && axis.getSize() == 1)
        resolved.modelMicrobatchAxis = axis.getName().str();
      resolved.modelHasMicrobatches |= axis.getTemporal() && axis.getSize() > 1;
      if (options.zero > 0 && options.zeroAxes.empty() && options.mesh.empty() &&
          axis.getName() == kShardedDataAxis)
        resolved.zeroAxes = {kShardedDataAxis};
    }
  }
  // The rules of several batches hold, as each sample is a batch of its own.
  if (sampleClippingOf(options)) {
    resolved.accumulates = true;
    if (options.microbatches == 1)
      resolved.microbatches = microbatchesOfSamples(model, options);
  }
  return resolved;
}

/// Chooses the best candidate; nullopt after an error.
static std::optional<Candidate> chooseCandidate(ModuleOp model, CandidateSearch &search,
                                                const ResolvedOptions &options, StringRef name,
                                                bool hasCluster) {
  std::optional<Candidate> best = search.choose(options);
  if (!best && search.closest) {
    if (std::optional<Candidate> closest = search.withModule(std::move(*search.closest)))
      explainMemory(model, name, options, *closest);
    else
      search.emitFailure();
  } else if (!best) {
    search.emitFailure();
  }
  if (best && options.offload == kAutoOffload && !best->options.offload.empty())
    emitRemark(model.getLoc())
        << describeOffload(offloadOf(best->options.offload))
        << " lie in the memory of the host: without that a device needs more than the limit of "
        << formatBytes(options.memoryLimit);
  if (best && options.schedule == kAutoSchedule) {
    emitRemark(model.getLoc()) << "the schedule is " << best->options.schedule << ": "
                               << llvm::formatv("{0:f1}", best->seconds * 1e6).str()
                               << " us a step "
                               << (hasCluster ? "on the cluster, " : "by estimate, ")
                               << formatBytes(best->peak());
  }
  return best;
}

/// Puts the programs of all entry points in the place of the model.
static LogicalResult replaceModel(ModuleOp module, CandidateSearch &search, Candidate &candidate) {
  if (failed(search.complete(candidate)))
    return failure();
  module.getBodyRegion().takeBody(candidate.module->getBodyRegion());
  if (Attribute reason = (*candidate.module)->getAttr(dist::kOneBatchAttrName))
    module->setAttr(dist::kOneBatchAttrName, reason);
  return success();
}

LogicalResult dtc::compileToExec(ModuleOp module, const CompileOptions &options, StringRef name,
                                 const cluster::Cluster *cluster) {
  if (failed(checkModel(module)))
    return failure();
  CandidateSearch search(module, name, cluster);
  std::optional<Candidate> best =
      chooseCandidate(module, search, resolveOptions(module, options), name, cluster != nullptr);
  return success(best && succeeded(replaceModel(module, search, *best)));
}

/// Replaces the model by what `makeExec` makes of it, and writes that as a plan.
static LogicalResult writePlanOf(ModuleOp module, const CompileOptions &options, StringRef name,
                                 plan::Plan &plan, llvm::function_ref<LogicalResult()> makeExec) {
  // The model's own description is gone afterwards.
  plan::Plan described;
  describeModel(module, options, described);
  if (failed(makeExec()) || failed(exportPlan(module, name, plan)))
    return failure();
  plan.MergeFrom(described);
  return success();
}

LogicalResult dtc::compile(ModuleOp module, const CompileOptions &options, StringRef modelName,
                           plan::Plan &plan, const cluster::Cluster *cluster) {
  return writePlanOf(module, options, modelName, plan,
                     [&] { return compileToExec(module, options, modelName, cluster); });
}

LogicalResult dtc::finishCompile(ModuleOp module, CandidateSearch &search, Candidate &candidate,
                                 StringRef modelName, plan::Plan &plan) {
  return writePlanOf(module, candidate.options, modelName, plan,
                     [&] { return replaceModel(module, search, candidate); });
}
