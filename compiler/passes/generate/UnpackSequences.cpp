//===- UnpackSequences.cpp - One document in each sequence ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/generate/UnpackSequences.h"

#include "dialects/dtc/DtcOps.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;

/// The rows of a table by the positions of all samples, by a broadcast of its first rows; null
/// where the table has too few.
static Value firstRows(EmbeddingOp lookup) {
  OpBuilder builder(lookup);
  auto type = cast<RankedTensorType>(lookup.getType());
  auto table = cast<RankedTensorType>(lookup.getTable().getType());
  int64_t count = type.getDimSize(1), width = table.getDimSize(1);
  if (count > table.getDimSize(0))
    return {};
  Value rows = lookup.getTable();
  if (count < table.getDimSize(0))
    rows = SliceOp::create(builder, lookup.getLoc(), rows, ArrayRef<int64_t>{0, 0},
                           ArrayRef<int64_t>{count, width});
  return BroadcastOp::create(builder, lookup.getLoc(), type, rows, ArrayRef<int64_t>{1, 2});
}

static void unpackPositions(Value positions) {
  for (OpOperand &use : llvm::make_early_inc_range(positions.getUses())) {
    if (auto rotary = dyn_cast<RotaryOp>(use.getOwner())) {
      rotary.getPositionsMutable().clear();
    } else if (auto lookup = dyn_cast<EmbeddingOp>(use.getOwner())) {
      if (Value rows = firstRows(lookup)) {
        lookup.replaceAllUsesWith(rows);
        lookup.erase();
      }
    }
  }
}

void dtc::unpackSequences(func::FuncOp function) {
  for (BlockArgument arg : function.getArguments()) {
    auto name =
        function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), DtcDialect::kInputAttrName);
    if (!name || cast<RankedTensorType>(arg.getType()).getRank() != 2)
      continue;
    if (name == "positions")
      unpackPositions(arg);
    if (name == "segments")
      for (Operation *user : llvm::make_early_inc_range(arg.getUsers()))
        if (auto attention = dyn_cast<AttentionOp>(user))
          attention.getSegmentsMutable().clear();
  }
}
