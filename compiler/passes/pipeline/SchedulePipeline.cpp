//===- SchedulePipeline.cpp - A function for each pipeline coordinate -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/pipeline/SchedulePipeline.h"

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/pipeline/FragmentSchedule.h"
#include "compiler/passes/pipeline/StageFunctions.h"

#include <limits>
#include <optional>

namespace dtc {
#define GEN_PASS_DEF_SCHEDULEPIPELINEPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

static LogicalResult scheduleFunction(func::FuncOp function, const LinkedMesh &mesh,
                                      const PipelineShape &shape, const ScheduleRule &rule,
                                      IsDeviceNeeded isNeeded) {
  FailureOr<dist::MicrobatchLoopOp> found =
      findMicrobatchLoop(function, mesh, "dtc-spmd-partition");
  if (failed(found))
    return failure();
  dist::MicrobatchLoopOp loop = *found;
  StageAssignment assignment(loop, rule.splitsWeight);
  if (assignment.numStages() != shape.stages())
    return loop.emitOpError() << "has " << assignment.numStages() << " stages, expected "
                              << shape.stages() << " for " << shape.devices << " devices of "
                              << shape.chunks << "; run dtc-partition-stages with as many chunks";
  PipelineSchedule schedule = buildSchedule(shape, rule);
  FailureOr<PipelineProgram> program =
      cutLoop(loop, assignment, [&](int64_t stage) { return schedule.device(int(stage)); });
  if (failed(program))
    return failure();
  Builder b(function.getContext());
  function->setAttr(
      dist::kPipelineAttrName,
      b.getDictionaryAttr({b.getNamedAttr("schedule", b.getStringAttr(rule.name)),
                           b.getNamedAttr("stages", b.getI64IntegerAttr(shape.stages()))}));
  OpPlacement placement(function, loop, *program, shape.devices);
  std::vector<std::vector<int64_t>> orders = scheduleFragments(mesh, *program, schedule);
  SmallVector<int64_t> needed;
  for (int64_t device = 0; device < shape.devices; ++device)
    if (isNeeded(device, orders[device]))
      needed.push_back(device);
  buildStageFunctions(function, loop, *program, placement, orders, needed);
  return success();
}

LogicalResult dtc::schedulePipeline(ModuleOp module, const SchedulePipelinePassOptions &options,
                                    IsDeviceNeeded isNeeded) {
  std::optional<ScheduleRule> rule = findScheduleRule(options.schedule);
  if (!rule)
    return module.emitError() << "there is no schedule '" << options.schedule << "'; there are "
                              << listScheduleNames();
  if (failed(checkOption(module, "chunks", options.chunks, std::numeric_limits<int64_t>::min(),
                         kMaxChunks)))
    return failure();
  return forEachFunction(
      module, [&](func::FuncOp function, const LinkedMesh &mesh) -> LogicalResult {
        std::optional<unsigned> axis = mesh.pipelineAxis(), time = mesh.temporalAxis();
        if (!axis)
          return success();
        if (!time)
          return function.emitError() << "a pipeline works on microbatches, and the mesh has "
                                         "no temporal axis";
        PipelineShape shape{int(mesh.axes[*axis].size), int(options.chunks),
                            int(mesh.axes[*time].size)};
        if (auto error = checkShape(shape, *rule))
          return function.emitError() << error->message;
        return scheduleFunction(function, mesh, shape, *rule, isNeeded);
      });
}

namespace {
struct SchedulePipelinePass : dtc::impl::SchedulePipelinePassBase<SchedulePipelinePass> {
  using Base::Base;

  void runOnOperation() override {
    SchedulePipelinePassOptions options;
    options.schedule = schedule;
    options.chunks = chunks;
    auto all = [](int64_t, ArrayRef<int64_t>) { return true; };
    if (failed(schedulePipeline(getOperation(), options, all)))
      signalPassFailure();
  }
};
} // namespace
