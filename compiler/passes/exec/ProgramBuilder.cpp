//===- ProgramBuilder.cpp - The declarations and tasks of a program --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/exec/ProgramBuilder.h"

using namespace mlir;
using namespace dtc;

ProgramBuilder::ProgramBuilder(func::FuncOp function, StringRef mesh, StringRef firstTask)
    : loc(function.getLoc()), builder(function.getContext()), declare(function.getContext()) {
  declare.setInsertionPoint(function);
  theProgram = exec::ProgramOp::create(
      declare, loc, builder.getStringAttr(function.getSymName()),
      FlatSymbolRefAttr::get(function.getContext(), mesh), IntegerAttr(), IntegerAttr(),
      DictionaryAttr(), function->getAttrOfType<DictionaryAttr>(dist::kPipelineAttrName),
      StringAttr(), IntegerAttr(), DictionaryAttr());
  declare.createBlock(&theProgram.getBody());
  addRun(beginTask(firstTask), 0, /*inLoop=*/false);
  declare.setInsertionPoint(task);
}

exec::TaskOp ProgramBuilder::beginTask(const Twine &name) {
  endTask();
  builder.setInsertionPointToEnd(&theProgram.getBody().front());
  task = exec::TaskOp::create(builder, loc, builder.getStringAttr(name), dist::StagePassAttr(),
                              IntegerAttr(), FloatAttr());
  builder.createBlock(&task.getBody());
  return task;
}

void ProgramBuilder::endTask() {
  if (task)
    task.setSecondsAttr(builder.getF64FloatAttr(seconds));
  seconds = 0;
}

void ProgramBuilder::kernel(Location loc, StringRef name, ValueRange inputs, ValueRange outputs,
                            DictionaryAttr attributes, double flops) {
  exec::KernelOp::create(builder, loc, Type(), builder.getStringAttr(name), inputs, outputs,
                         attributes, builder.getF64FloatAttr(flops), ValueRange());
}

void ProgramBuilder::start(exec::TransferOp transfer) {
  exec::StartOp::create(builder, transfer.getLoc(), transfer.getSymName());
}

void ProgramBuilder::startIn(exec::TaskOp earlier, exec::TransferOp transfer) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&earlier.getBody().front());
  start(transfer);
}

void ProgramBuilder::finish(exec::TransferOp transfer) {
  exec::FinishOp::create(builder, transfer.getLoc(), transfer.getSymName());
}

void ProgramBuilder::addRun(exec::TaskOp task, int64_t microbatch, bool inLoop) {
  runs.push_back({task, microbatch, inLoop});
}

void ProgramBuilder::finish() {
  endTask();
  builder.setInsertionPointToEnd(&theProgram.getBody().front());
  for (Run &run : runs)
    if (!run.task.getBody().front().empty())
      exec::RunOp::create(builder, loc, run.task.getSymName(), run.microbatch, run.inLoop);
  for (auto task : llvm::make_early_inc_range(theProgram.getOps<exec::TaskOp>()))
    if (task.getBody().front().empty())
      task.erase();
}
