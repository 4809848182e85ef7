//===- VerifyPrecision.cpp - Verification of element types ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/precision/GradientSums.h"

#include "llvm/ADT/SetVector.h"

namespace dtc {
#define GEN_PASS_DEF_VERIFYPRECISIONPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

/// Whether the value is a tensor of 16-bit floats.
static bool isLow(Value value) {
  return isFloatTensor(value.getType()) && !isWideTensor(value.getType());
}

/// Adds the sums between devices that lead to the values of `worklist`, each once.
static void collectSums(SmallVector<Value> worklist, llvm::SetVector<Operation *> &found) {
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(value).second)
      continue;
    // Where gradients are split (ZeRO stage 2), those of each microbatch are summed within the
    // loop over them.
    if (Value yielded = dist::getYieldedValue(value)) {
      worklist.push_back(yielded);
      continue;
    }
    if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op))
      if (auto reduction = collective.getReduction();
          reduction && reduction.getValue() == ReductionKind::Sum)
        found.insert(op);
    if (op->hasTrait<dtc::OpTrait::CarriesSums>())
      llvm::append_range(worklist, op->getOperands());
  }
}

SmallVector<Operation *> dtc::findGradientSums(OptimizerOpInterface optimizer) {
  llvm::SetVector<Operation *> found;
  collectSums({optimizer.getGradientMutable().get()}, found);
  return found.takeVector();
}

SmallVector<Operation *> dtc::findGradientSums(func::FuncOp function) {
  llvm::SetVector<Operation *> found;
  SmallVector<Value> gradients;
  function.walk([&](OptimizerOpInterface optimizer) {
    gradients.push_back(optimizer.getGradientMutable().get());
  });
  collectSums(std::move(gradients), found);
  SmallVector<Operation *> ordered;
  function.walk([&](Operation *op) {
    if (found.contains(op))
      ordered.push_back(op);
  });
  return ordered;
}

namespace {
struct VerifyPrecisionPass : dtc::impl::VerifyPrecisionPassBase<VerifyPrecisionPass> {
  using Base::Base;

  void runOnOperation() override {
    bool failed = false;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      function.walk([&](Operation *op) {
        if (auto precision = dyn_cast<PrecisionOpInterface>(op))
          if (precision.getPrecisionClass() == PrecisionClass::Wide &&
              llvm::any_of(op->getOperands(), isLow)) {
            op->emitOpError() << "computes on 16-bit floats, in which it loses too much; convert "
                                 "its operand to f32 first";
            failed = true;
          }
      });
      if (allowNarrowReductions)
        continue;
      for (Operation *sum : findGradientSums(function))
        if (isLow(sum->getOperand(0))) {
          sum->emitError() << "a gradient of type " << sum->getOperand(0).getType()
                           << " is summed between devices, which needs f32; say so if 16 bits will "
                              "do (--grad-reduce-dtype)";
          failed = true;
        }
    }
    if (failed)
      signalPassFailure();
  }
};
} // namespace
