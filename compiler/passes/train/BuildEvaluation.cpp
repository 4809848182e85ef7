//===- BuildEvaluation.cpp - Evaluation function from a train step --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/DeadOps.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/train/RemoveDropout.h"

namespace dtc {
#define GEN_PASS_DEF_BUILDEVALUATIONPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

/// Replaces the loop by one that yields only used values.
static void dropUnusedSums(dist::MicrobatchLoopOp loop) {
  Operation *yield = loop.getBody().front().getTerminator();
  SmallVector<Value> values;
  SmallVector<Type> types;
  SmallVector<OpResult> used;
  for (auto [result, value] : llvm::zip_equal(loop->getResults(), yield->getOperands()))
    if (!result.use_empty()) {
      used.push_back(result);
      values.push_back(value);
      types.push_back(value.getType());
    }
  yield->setOperands(values);
  OpBuilder builder(loop);
  auto fewer = dist::MicrobatchLoopOp::create(builder, loop.getLoc(), types, loop.getMeshAttr(),
                                              loop.getAxisAttr(), loop.getScheduleAttr());
  fewer.getBody().takeBody(loop.getBody());
  for (auto [from, to] : llvm::zip_equal(used, fewer.getResults()))
    from.replaceAllUsesWith(to);
  loop.erase();
  eraseDeadOps(fewer.getBody().front());
}

static LogicalResult keepLossAndChecks(func::FuncOp function, const LinkedMesh &mesh) {
  if (failed(checkProgram(function, mesh.name)))
    return failure();
  bool hasLoss = false;
  SmallVector<unsigned> kept;
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    auto name = function.getResultAttrOfType<StringAttr>(index, "dtc.output");
    bool isLoss = name && name.getValue() == "loss";
    hasLoss |= isLoss;
    if (isLoss || function.getResultAttr(index, DtcDialect::kMustBeZeroAttrName))
      kept.push_back(index);
  }
  if (!hasLoss)
    return function.emitOpError() << "returns no output named 'loss'; run dtc-build-train-step";
  removeDropout(function);
  Block &block = function.front();
  auto ret = cast<func::ReturnOp>(block.getTerminator());
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> attributes;
  for (unsigned index : kept) {
    values.push_back(ret.getOperand(index));
    attributes.push_back(function.getResultAttrDict(index));
  }
  ret->setOperands(values);
  function.setType(FunctionType::get(function.getContext(), function.getArgumentTypes(),
                                     TypeRange(ret->getOperandTypes())));
  function.setAllResultAttrs(attributes);
  eraseDeadOps(block);
  for (auto loop : llvm::make_early_inc_range(block.getOps<dist::MicrobatchLoopOp>()))
    dropUnusedSums(loop);
  eraseDeadOps(block);
  eraseUnusedInputs(function);
  function.setSymName("evaluate");
  return success();
}

namespace {
struct BuildEvaluationPass : dtc::impl::BuildEvaluationPassBase<BuildEvaluationPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(forEachFunction(getOperation(), keepLossAndChecks)))
      signalPassFailure();
  }
};
} // namespace
