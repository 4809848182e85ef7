//===- ExpandAttentionSinks.cpp - Sinks of attention ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Passes.h"

#include "dialects/dist/Dist.h"
#include "dialects/dtc/DtcOps.h"

#include "llvm/ADT/STLExtras.h"

namespace dtc {
#define GEN_PASS_DEF_EXPANDATTENTIONSINKSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

/// With l the lse of the keys alone and z a sink: the lse is z + log(1 + exp(l - z)), and the
/// output of the keys is multiplied by exp(l - lse), the sigmoid of l - z. Both are right for a
/// query that sees no key, as padding may, whose l is -inf.
static void expand(AttentionOp op) {
  Operation *placed = op;
  OpBuilder builder(op);
  builder.setInsertionPointAfter(op);
  Location loc = op.getLoc();
  auto place = [&](Operation *made) -> Value {
    if (Attribute stage = placed->getAttr(dist::kStageAttrName))
      made->setAttr(dist::kStageAttrName, stage);
    return made->getResult(0);
  };
  auto convert = [&](Value value, Type element) {
    auto type = cast<RankedTensorType>(value.getType());
    return type.getElementType() == element
               ? value
               : place(ConvertOp::create(builder, loc, type.clone(element), value));
  };
  auto lseType = cast<RankedTensorType>(op.getLse().getType());
  auto outType = cast<RankedTensorType>(op.getOut().getType());
  Type wide = lseType.getElementType();
  Value sinks = convert(op.getSinks(), wide);
  op.getSinksMutable().clear();
  Value ofRows = place(BroadcastOp::create(builder, loc, lseType, sinks, ArrayRef<int64_t>{1}));
  Value more = place(SubOp::create(builder, loc, op.getLse(), ofRows));
  Value log = place(SoftplusOp::create(builder, loc, more));
  Value lse = place(AddOp::create(builder, loc, ofRows, log));
  Value share = place(SigmoidOp::create(builder, loc, more));
  // [b,h,s] for [b,s,h,d].
  Value factors = place(BroadcastOp::create(
      builder, loc, outType.clone(wide),
      place(TransposeOp::create(builder, loc, share, ArrayRef<int64_t>{0, 2, 1})),
      ArrayRef<int64_t>{0, 1, 2}));
  Value scaled = place(MulOp::create(builder, loc, convert(op.getOut(), wide), factors));
  Value out = convert(scaled, outType.getElementType());
  // The ops made here go on reading the results of attention without sinks.
  auto isLater = [&](Value by) {
    return [&, by](OpOperand &use) {
      Operation *user = use.getOwner();
      return user->getBlock() != by.getDefiningOp()->getBlock() ||
             by.getDefiningOp()->isBeforeInBlock(user);
    };
  };
  op.getLse().replaceUsesWithIf(lse, isLater(out));
  op.getOut().replaceUsesWithIf(out, isLater(out));
}

namespace {

class ExpandAttentionSinksPass
    : public dtc::impl::ExpandAttentionSinksPassBase<ExpandAttentionSinksPass> {
  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation()->walk([&](AttentionOp op) {
      if (op.getSinks())
        ops.push_back(op);
    });
    llvm::for_each(ops, expand);
  }
};

} // namespace
