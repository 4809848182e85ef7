//===- LocalOpTest.cpp - Tests of ops on shards ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/DtcOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"

#include "gtest/gtest.h"

namespace localOpTest {

using namespace mlir;
using namespace dtc;

namespace {

class LocalOp : public testing::Test {
protected:
  void SetUp() override {
    context.allowUnregisteredDialects();
    context.loadDialect<DtcDialect>();
    module = ModuleOp::create(loc);
    builder.setInsertionPointToEnd(module->getBody());
  }

  RankedTensorType getType(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, builder.getF32Type());
  }
  Value makeValue(ArrayRef<int64_t> shape) {
    return ConstantOp::create(builder, loc, getType(shape), 1.0);
  }
  template <typename OpT>
  OpT makeLocal(OpT op, ValueRange operands, ArrayRef<int64_t> resultShape) {
    Operation *local = op.buildLocal(builder, operands, getType(resultShape));
    EXPECT_TRUE(succeeded(verify(module.get())));
    EXPECT_EQ(local->getLoc(), op.getLoc());
    EXPECT_TRUE(succeeded(checkShardingRule(local, cast<OpT>(local).getShardingRule(),
                                            [&] { return local->emitError(); })));
    return cast<OpT>(local);
  }

  MLIRContext context;
  OpBuilder builder = OpBuilder(&context);
  Location loc = NameLoc::get(StringAttr::get(&context, "h.3.attn"));
  OwningOpRef<ModuleOp> module;
};

} // namespace

TEST_F(LocalOp, KeepsAttributesButTheSharding) {
  auto op = EinsumOp::create(builder, loc, makeValue({8, 4}), makeValue({4, 6}), "ab,bc->ac");
  op->setAttr("dist.sharding", builder.getUnitAttr());
  op->setAttr("other.note", builder.getStringAttr("kept"));
  auto local = makeLocal(op, {makeValue({2, 4}), makeValue({4, 6})}, {2, 6});
  EXPECT_EQ(local.getEquation(), "ab,bc->ac");
  EXPECT_FALSE(local->hasAttr("dist.sharding"));
  EXPECT_EQ(local->getAttr("other.note"), builder.getStringAttr("kept"));
  EXPECT_EQ(op.getFlops(), 2.0 * 8 * 4 * 6);
  EXPECT_EQ(local.getFlops(), 2.0 * 2 * 4 * 6);
}

TEST_F(LocalOp, SliceSizes) {
  auto op = SliceOp::create(builder, loc, makeValue({8, 6}), {0, 2}, {8, 3});
  auto local = makeLocal(op, {makeValue({2, 6})}, {2, 3});
  EXPECT_EQ(local.getSizes(), ArrayRef<int64_t>({2, 3}));
  EXPECT_EQ(local.getOffsets(), ArrayRef<int64_t>({0, 2}));
}

TEST_F(LocalOp, Pad) {
  auto op = PadOp::create(builder, loc, makeValue({8, 6}), {0, 2}, {0, 1}, 0.0);
  auto local = makeLocal(op, {makeValue({4, 6})}, {4, 9});
  EXPECT_EQ(local.getLow(), ArrayRef<int64_t>({0, 2}));
}

TEST_F(LocalOp, SplatConstant) {
  auto op = ConstantOp::create(builder, loc, getType({8, 6}), 2.5);
  auto local = makeLocal(op, {}, {4, 6});
  EXPECT_EQ(local.getValue().getType(), getType({4, 6}));
  EXPECT_EQ(local.getValue().getSplatValue<float>(), 2.5f);
}

TEST_F(LocalOp, DenseConstant) {
  auto value = DenseElementsAttr::get(getType({2}), ArrayRef<float>{1, 2});
  auto op = ConstantOp::create(builder, loc, value);
  EXPECT_EQ(makeLocal(op, {}, {2}).getValue(), value);
}

TEST_F(LocalOp, BroadcastAndReshape) {
  auto broadcast = BroadcastOp::create(builder, loc, getType({8, 4, 6}), makeValue({8, 6}),
                                       ArrayRef<int64_t>{0, 2});
  makeLocal(broadcast, {makeValue({2, 6})}, {2, 1, 6});
  auto reshape = ReshapeOp::create(builder, loc, makeValue({8, 12}), ArrayRef<int64_t>{8, 4, 3});
  makeLocal(reshape, {makeValue({8, 6})}, {8, 2, 3});
}

} // namespace localOpTest
