//===- RecomputeActivations.cpp - Recomputation of activations ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/recompute/RecomputeActivations.h"

#include "compiler/analysis/PipelineSimulation.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/InlineLoop.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/recompute/DeviceRecompute.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

namespace dtc {
#define GEN_PASS_DEF_RECOMPUTEACTIVATIONSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

static FailureOr<std::vector<DeviceSavedBytes>>
recompute(func::FuncOp function, const LinkedMesh &mesh, RecomputeMode mode,
          const ScheduleRule &rule, const RecomputeActivationsPassOptions &options,
          KnownRecomputeChoices &known) {
  FailureOr<dist::MicrobatchLoopOp> found =
      findMicrobatchLoop(function, mesh, "dtc-partition-stages and dtc-spmd-partition");
  if (failed(found))
    return failure();
  dist::MicrobatchLoopOp loop = *found;
  StageAssignment assignment(loop, /*splitWeights=*/false);
  std::optional<unsigned> axis = mesh.pipelineAxis();
  std::optional<unsigned> time = mesh.find(loop.getAxis());
  PipelineShape shape{axis ? int(mesh.axes[*axis].size) : 1, int(options.chunks),
                      int(mesh.axes[*time].size)};
  std::vector<int> inFlight(std::max<int64_t>(assignment.numStages(), 1), 1);
  PipelineSchedule schedule;
  if (axis) {
    if (auto error = checkShape(shape, rule))
      return function.emitError() << error->message;
    if (assignment.numStages() != shape.stages()) {
      loop.emitOpError() << "has " << assignment.numStages() << " stages, expected "
                         << shape.stages() << "; run dtc-partition-stages with as many chunks";
      return failure();
    }
    schedule = buildSchedule(shape, rule);
    inFlight = countInFlight(schedule).stageInFlight;
  }
  auto deviceOf = [&](int64_t stage) { return axis ? schedule.device(int(stage)) : 0; };
  std::vector<SmallVector<Operation *>> opsOf(shape.devices);
  for (Operation &op : loop.getBody().front().without_terminator())
    if (dist::StageAttr stage = assignment.of(&op))
      opsOf[deviceOf(stage.getIndex())].push_back(&op);
  std::vector<DeviceSavedBytes> keeps;
  for (int device = 0; device < shape.devices; ++device) {
    llvm::DenseSet<int64_t> stages;
    for (int64_t stage = 0; stage < assignment.numStages(); ++stage)
      if (deviceOf(stage) == device)
        stages.insert(stage);
    DeviceRecompute work(loop, mesh, assignment, inFlight, stages, opsOf[device]);
    const auto &bounds = options.keepBytes;
    int64_t limit = bounds.empty() ? std::numeric_limits<int64_t>::max()
                                   : bounds[std::min<size_t>(device, bounds.size() - 1)];
    auto [entry, isNew] = known.try_emplace({device, limit});
    if (isNew)
      entry->second = work.choose(mode, limit);
    const RecomputeChoice &choice = entry->second;
    RecomputeChoice none = work.choose(RecomputeMode::None, 0);
    emitRemark(function.getLoc())
        << (axis ? "device " + std::to_string(device) + " of the pipeline keeps "
                 : std::string("a device keeps "))
        << choice.keptBytes << " of " << none.keptBytes
        << " bytes for the backward pass and recomputes " << llvm::count(choice.recompute, true)
        << " ops, which is estimated to take "
        << llvm::formatv("{0:f1} us for each microbatch", choice.seconds * 1e6).str();
    work.apply(choice);
    keeps.push_back({choice.keptBytes, choice.seconds, work.forwardSeconds()});
  }
  if (!axis && shape.microbatches == 1 && !options.keepLoop)
    inlineLoop(loop);
  return keeps;
}

FailureOr<std::vector<DeviceSavedBytes>>
dtc::recomputeActivations(ModuleOp module, const RecomputeActivationsPassOptions &options,
                          KnownRecomputeChoices *known) {
  auto mode = llvm::StringSwitch<std::optional<RecomputeMode>>(options.mode)
                  .Case("none", RecomputeMode::None)
                  .Case("gathers", RecomputeMode::Gathers)
                  .Case("elementwise", RecomputeMode::Elementwise)
                  .Case("selective", RecomputeMode::Selective)
                  .Case("full", RecomputeMode::Full)
                  .Case("auto", RecomputeMode::Auto)
                  .Default(std::nullopt);
  if (!mode) {
    module.emitError() << "there is no mode '" << options.mode
                       << "'; there are none, gathers, elementwise, selective, full and auto";
    return failure();
  }
  std::optional<ScheduleRule> rule = findScheduleRule(options.schedule);
  if (!rule) {
    module.emitError() << "there is no schedule '" << options.schedule << "'; there are "
                       << listScheduleNames();
    return failure();
  }
  if (failed(checkOption(module, "chunks", options.chunks, std::numeric_limits<int64_t>::min(),
                         kMaxChunks)))
    return failure();
  for (int64_t bytes : options.keepBytes)
    if (failed(checkOption(module, "keep-bytes", bytes, 0)))
      return failure();
  std::vector<DeviceSavedBytes> all;
  auto work = [&](func::FuncOp function, const LinkedMesh &mesh) -> LogicalResult {
    KnownRecomputeChoices ofFunction;
    auto keeps = recompute(function, mesh, *mode, *rule, options, known ? *known : ofFunction);
    if (succeeded(keeps))
      llvm::append_range(all, *keeps);
    return keeps;
  };
  if (failed(forEachFunction(module, work)))
    return failure();
  return all;
}

namespace {
struct RecomputeActivationsPass
    : dtc::impl::RecomputeActivationsPassBase<RecomputeActivationsPass> {
  using Base::Base;

  void runOnOperation() override {
    RecomputeActivationsPassOptions options;
    options.mode = mode;
    options.keepBytes.assign(keepBytes.begin(), keepBytes.end());
    options.schedule = schedule;
    options.chunks = chunks;
    options.keepLoop = keepLoop;
    if (failed(recomputeActivations(getOperation(), options)))
      signalPassFailure();
  }
};
} // namespace
