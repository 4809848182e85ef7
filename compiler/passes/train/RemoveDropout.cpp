//===- RemoveDropout.cpp - Removal of dropout for inference ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/train/RemoveDropout.h"

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"

namespace dtc {
#define GEN_PASS_DEF_REMOVEDROPOUTPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

void dtc::removeDropout(func::FuncOp function) {
  SmallVector<DropoutOp> dropouts;
  function.walk([&](Operation *op) {
    if (auto dropout = dyn_cast<DropoutOp>(op)) {
      dropouts.push_back(dropout);
    } else if (auto attention = dyn_cast<AttentionOp>(op)) {
      Builder builder(function.getContext());
      attention.getKeyMutable().clear();
      attention.setDropoutAttr(builder.getF64FloatAttr(0.0));
      attention.setNumberAttr(builder.getI64IntegerAttr(0));
      attention.removeShapeAttr();
      attention.removeShardingAttr();
    }
  });
  for (DropoutOp dropout : dropouts) {
    dropout.replaceAllUsesWith(dropout.getOperand());
    dropout.erase();
  }
}

void dtc::eraseUnusedInputs(func::FuncOp function) {
  llvm::BitVector unused(function.getNumArguments());
  for (BlockArgument arg : function.getArguments()) {
    unsigned index = arg.getArgNumber();
    unused[index] =
        arg.use_empty() && (!isStateArgument(function, index) || isStepState(function, index));
  }
  eraseArguments(function, unused);
}

/// Erases the random key if nothing draws from it.
static void eraseUnusedKey(func::FuncOp function) {
  llvm::BitVector unused(function.getNumArguments());
  for (BlockArgument arg : function.getArguments()) {
    auto scalar = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), "dtc.scalar");
    unused[arg.getArgNumber()] = scalar && scalar.getValue() == "random_key" && arg.use_empty();
  }
  eraseArguments(function, unused);
}

namespace {
struct RemoveDropoutPass : dtc::impl::RemoveDropoutPassBase<RemoveDropoutPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      removeDropout(function);
      eraseUnusedKey(function);
    }
  }
};
} // namespace
