//===- AdvanceRandomKey.cpp - The key of random masks as a state ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"

#include "mlir/IR/Builders.h"

namespace dtc {
#define GEN_PASS_DEF_ADVANCERANDOMKEYPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

/// The argument with that `dtc.scalar`; null if there is none.
static BlockArgument findScalar(func::FuncOp function, StringRef role) {
  for (BlockArgument arg : function.getArguments())
    if (auto scalar = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), "dtc.scalar");
        scalar && scalar.getValue() == role)
      return arg;
  return {};
}

/// A new argument with that `dtc.scalar`.
static FailureOr<BlockArgument> addScalar(func::FuncOp function, StringRef role,
                                          RankedTensorType type) {
  Builder builder(function.getContext());
  unsigned end = function.getNumArguments();
  auto attributes =
      builder.getDictionaryAttr(builder.getNamedAttr("dtc.scalar", builder.getStringAttr(role)));
  if (failed(function.insertArgument(end, type, attributes,
                                     NameLoc::get(builder.getStringAttr(role)))))
    return failure();
  return function.getArgument(end);
}

static LogicalResult advanceKey(func::FuncOp function, bool always) {
  if (failed(checkProgram(function)))
    return failure();
  OpBuilder builder(function.front().getTerminator());
  BlockArgument key = findScalar(function, "random_key");
  if (!key && !always)
    return success();
  if (!key) {
    FailureOr<BlockArgument> added =
        addScalar(function, "random_key", RankedTensorType::get({2}, builder.getI32Type()));
    if (failed(added))
      return failure();
    key = *added;
  }
  auto loc = NameLoc::get(builder.getStringAttr("step_state"));
  auto keyType = RankedTensorType::get({2}, builder.getI32Type());
  if (key.getType() != keyType)
    return function.emitOpError() << "argument " << key.getArgNumber() << ", the random key, is "
                                  << key.getType() << ", expected " << keyType;
  unsigned index = key.getArgNumber();
  function.removeArgAttr(index, "dtc.scalar");
  function.setArgAttr(index, DtcDialect::kStepStateAttrName, builder.getStringAttr("random_key"));
  BlockArgument batches = findScalar(function, "batches");
  if (!batches) {
    FailureOr<BlockArgument> added =
        addScalar(function, "batches", RankedTensorType::get({}, builder.getF32Type()));
    if (failed(added))
      return failure();
    batches = *added;
  }
  // The first word stays, the second is the number of the first batch.
  Value count = ConvertOp::create(builder, loc, batches, builder.getI32Type());
  Value counts = BroadcastOp::create(builder, loc, keyType, count, ArrayRef<int64_t>());
  Value second =
      ConstantOp::create(builder, loc, DenseElementsAttr::get(keyType, ArrayRef<int32_t>{0, 1}));
  Value step = MulOp::create(builder, loc, counts, second);
  Value next = AddOp::create(builder, loc, key, step);
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  NamedAttribute updates = builder.getNamedAttr("dtc.updates", builder.getI64IntegerAttr(index));
  if (failed(
          function.insertResult(ret.getNumOperands(), keyType, builder.getDictionaryAttr(updates))))
    return failure();
  ret.getOperandsMutable().append(next);
  return success();
}

namespace {
struct AdvanceRandomKeyPass : dtc::impl::AdvanceRandomKeyPassBase<AdvanceRandomKeyPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(advanceKey(function, always)))
        return signalPassFailure();
  }
};
} // namespace
