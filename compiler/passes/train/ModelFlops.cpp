//===- ModelFlops.cpp - FLOPs of a model's matrix products ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/train/ModelFlops.h"

#include "compiler/passes/train/ParameterSettings.h"
#include "dialects/dtc/DtcOps.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dtc;

/// The values that a parameter which trains reaches.
static llvm::DenseSet<Value> findTrained(func::FuncOp function, ArrayRef<std::string> freeze) {
  llvm::DenseSet<Value> trained;
  // The pass that builds the train step reports errors in the patterns.
  ScopedDiagnosticHandler quiet(function.getContext(), [](Diagnostic &) { return success(); });
  FailureOr<ParameterSettings> settings = ParameterSettings::read(function, freeze, {});
  if (failed(settings))
    return trained;
  for (BlockArgument argument : function.getArguments())
    if (function.getArgAttr(argument.getArgNumber(), "dtc.param") && !settings->isFrozen(argument))
      trained.insert(argument);
  function.walk([&](Operation *op) {
    if (llvm::any_of(op->getOperands(), [&](Value value) { return trained.contains(value); }))
      trained.insert(op->result_begin(), op->result_end());
  });
  return trained;
}

ModelFlops dtc::countModelFlops(func::FuncOp function, bool isTrained,
                                ArrayRef<std::string> freeze) {
  llvm::DenseSet<Value> trained;
  if (isTrained)
    trained = findTrained(function, freeze);
  ModelFlops flops;
  function.walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case<EinsumOp, GroupedProductOp>([&](auto product) {
          double passes = 1;
          for (Value operand : {product.getLhs(), product.getRhs()})
            passes += trained.contains(operand);
          flops.all += passes * product.getFlops();
        })
        .Case([&](ConvOp conv) {
          double passes = 1;
          for (Value operand : {conv.getX(), conv.getW()})
            passes += trained.contains(operand);
          flops.all += passes * conv.getFlops();
        })
        .Case([&](AttentionOp attention) {
          bool isReached = llvm::any_of(attention->getOperands(),
                                        [&](Value operand) { return trained.contains(operand); });
          // The op itself counts what a causal mask and a window leave.
          double passes = isReached ? 3 : 1, all = attention.getUnmaskedFlops();
          flops.all += passes * all;
          flops.masked += passes * (all - attention.getFlops());
        });
  });
  return flops;
}
