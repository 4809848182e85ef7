//===- SchedulePipeline.cpp - A function for each pipeline coordinate -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/pipeline/FragmentSchedule.h"
#include "compiler/passes/pipeline/StageFunctions.h"

namespace dtc {
#define GEN_PASS_DEF_SCHEDULEPIPELINEPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

static LogicalResult schedulePipeline(func::FuncOp function, const LinkedMesh &mesh,
                                      const PipelineShape &shape, const ScheduleRule &rule) {
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
  buildStageFunctions(function, loop, *program, placement,
                      scheduleFragments(mesh, *program, schedule));
  return success();
}

namespace {
struct SchedulePipelinePass : dtc::impl::SchedulePipelinePassBase<SchedulePipelinePass> {
  using Base::Base;

  void runOnOperation() override {
    auto error = [&] {
      signalPassFailure();
      return getOperation().emitError();
    };
    std::optional<ScheduleRule> rule = findScheduleRule(schedule);
    if (!rule) {
      error() << "there is no schedule '" << schedule << "'; there are " << listScheduleNames();
      return;
    }
    if (failed(checkOption(getOperation(), "chunks", chunks, std::numeric_limits<int64_t>::min(),
                           kMaxChunks)))
      return signalPassFailure();
    if (failed(forEachFunction(
            getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) -> LogicalResult {
              std::optional<unsigned> axis = mesh.pipelineAxis(), time = mesh.temporalAxis();
              if (!axis)
                return success();
              if (!time)
                return function.emitError() << "a pipeline works on microbatches, and the mesh has "
                                               "no temporal axis";
              PipelineShape shape{int(mesh.axes[*axis].size), int(chunks),
                                  int(mesh.axes[*time].size)};
              if (auto error = checkShape(shape, *rule))
                return function.emitError() << error->message;
              return schedulePipeline(function, mesh, shape, *rule);
            })))
      signalPassFailure();
  }
};
} // namespace
