//===- RemoveDropout.cpp - Removal of dropout for inference ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/train/RemoveDropout.h"

#include "compiler/passes/CheckProgram.h"

#include "llvm/ADT/BitVector.h"

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
  SmallVector<int64_t> numbers;
  int64_t next = 0;
  for (BlockArgument arg : function.getArguments()) {
    unsigned index = arg.getArgNumber();
    unused[index] =
        arg.use_empty() && (!isStateArgument(function, index) || isStepState(function, index));
    numbers.push_back(next);
    next += !unused[index];
  }
  (void)function.eraseArguments(unused);
  Builder builder(function.getContext());
  for (unsigned result = 0; result < function.getNumResults(); ++result)
    if (auto updates = function.getResultAttrOfType<IntegerAttr>(result, "dtc.updates"))
      function.setResultAttr(result, "dtc.updates",
                             builder.getI64IntegerAttr(numbers[updates.getInt()]));
}
