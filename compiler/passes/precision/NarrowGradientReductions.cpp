//===- NarrowGradientReductions.cpp - Sum gradients in 16 bits ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/precision/GradientSums.h"

#include "mlir/IR/Builders.h"

namespace dtc {
#define GEN_PASS_DEF_NARROWGRADIENTREDUCTIONSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

/// Has the sum take and give elements of that type.
static void narrow(Operation *sum, Type element) {
  OpBuilder builder(sum);
  Value input = sum->getOperand(0), result = sum->getResult(0);
  Type wide = cast<RankedTensorType>(input.getType()).getElementType();
  // Between two sums nothing is rounded again.
  auto widened = input.getDefiningOp<ConvertOp>();
  if (widened && cast<RankedTensorType>(widened.getOperand().getType()).getElementType() == element)
    sum->setOperand(0, widened.getOperand());
  else
    sum->setOperand(0, ConvertOp::create(builder, input.getLoc(), input, element));
  result.setType(cast<RankedTensorType>(result.getType()).clone(element));
  builder.setInsertionPointAfter(sum);
  auto back = ConvertOp::create(builder, result.getLoc(), result, wide);
  result.replaceAllUsesExcept(back, back);
  if (widened && widened.use_empty())
    widened.erase();
}

namespace {
struct NarrowGradientReductionsPass
    : dtc::impl::NarrowGradientReductionsPassBase<NarrowGradientReductionsPass> {
  using Base::Base;

  void runOnOperation() override {
    Type element;
    if (dtype == "bf16")
      element = BFloat16Type::get(&getContext());
    else if (dtype == "f16")
      element = Float16Type::get(&getContext());
    if (!element) {
      getOperation().emitError() << "unknown dtype '" << dtype << "'; known are bf16 and f16";
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Operation *sum : findGradientSums(function))
        if (isWideTensor(sum->getResult(0).getType()))
          narrow(sum, element);
  }
};
} // namespace
