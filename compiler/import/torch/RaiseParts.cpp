//===- RaiseParts.cpp - Fused ops from their parts ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/Parts.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

/// The x of 0.5 x (1 + tanh(y)) with the factors in any order, and y.
static std::optional<std::pair<Value, Value>> halfOfTanh(MulOp op) {
  auto tanhOf = [](Value sum) {
    auto one = withNumber<AddOp>(sum);
    auto tanh = one && one->second == 1 ? one->first.getDefiningOp<TanhOp>() : TanhOp();
    return tanh ? tanh.getOperand() : Value();
  };
  for (auto [first, second] : bothOrders(op)) {
    auto half = withNumber<MulOp>(first);
    if (!half || half->second != 0.5)
      continue;
    if (Value y = tanhOf(second))
      return std::pair(half->first, y);
    if (Value y = tanhOf(half->first))
      return std::pair(Value(second), y);
  }
  return std::nullopt;
}

namespace {

/// Replaces 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) by dtc.gelu.
struct RaiseGelu : OpRewritePattern<MulOp> {
  RaiseGelu(MLIRContext *context, Conversion &conversion)
      : OpRewritePattern(context), conversion(conversion) {}

  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    auto parts = halfOfTanh(op);
    if (!parts || !isCubic(parts->second, parts->first))
      return failure();
    conversion.raised("GELU by its parts, now dtc.gelu", op.getLoc());
    rewriter.replaceOpWithNewOp<GeluOp>(op, parts->first, GeluApproximation::Tanh);
    return success();
  }

  static bool isCubic(Value value, Value x) {
    auto scaled = withNumber<MulOp>(value);
    auto sum = scaled ? scaled->first.getDefiningOp<AddOp>() : AddOp();
    if (!sum || !isNear(scaled->second, std::sqrt(2 / M_PI)))
      return false;
    for (auto [first, second] : bothOrders(sum)) {
      auto cubic = withNumber<MulOp>(second);
      auto product = cubic ? cubic->first.getDefiningOp<MulOp>() : MulOp();
      if (first == x && product && isNear(cubic->second, 0.044715) &&
          ((isSquareOf(product.getLhs(), x) && product.getRhs() == x) ||
           (isSquareOf(product.getRhs(), x) && product.getLhs() == x)))
        return true;
    }
    return false;
  }

  Conversion &conversion;
};

/// Attention whose keys and values are repeated for groups of query heads takes the heads there
/// are.
struct ShareHeads : OpRewritePattern<AttentionOp> {
  ShareHeads(MLIRContext *context, Conversion &conversion)
      : OpRewritePattern(context), conversion(conversion) {}

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    Value k = beforeRepeat(op.getK()), v = beforeRepeat(op.getV());
    if (!k || !v || shapeOf(k)[1] != shapeOf(v)[1] || k.getType() != v.getType())
      return failure();
    SmallVector<int64_t> order{0, 2, 1, 3};
    Value keys = TransposeOp::create(rewriter, op.getLoc(), k, order);
    Value values = TransposeOp::create(rewriter, op.getLoc(), v, order);
    conversion.raised("keys and values repeated for groups of queries, now shared by dtc.attention",
                      op.getLoc());
    rewriter.modifyOpInPlace(op, [&] {
      op.getKMutable().assign(keys);
      op.getVMutable().assign(values);
    });
    return success();
  }

  /// [B, G, T, E] of a value [B, T, G * R, E] that has each head R times.
  static Value beforeRepeat(Value value) {
    auto transpose = value.getDefiningOp<TransposeOp>();
    auto reshape = transpose ? transpose.getOperand().getDefiningOp<ReshapeOp>() : ReshapeOp();
    auto broadcast = reshape ? reshape.getOperand().getDefiningOp<BroadcastOp>() : BroadcastOp();
    if (!broadcast || transpose.getPermutation() != ArrayRef<int64_t>{0, 2, 1, 3} ||
        broadcast.getDims() != ArrayRef<int64_t>{0, 1, 3, 4})
      return {};
    ArrayRef<int64_t> wide = broadcast.getType().getShape(), narrow = reshape.getType().getShape();
    if (wide.size() != 5 || narrow.size() != 4 || narrow[1] != wide[1] * wide[2] ||
        narrow[0] != wide[0] || narrow[2] != wide[3] || narrow[3] != wide[4])
      return {};
    return broadcast.getOperand();
  }

  Conversion &conversion;
};

} // namespace

void dtc::torch::raiseParts(func::FuncOp function, Conversion &conversion) {
  MLIRContext *context = function.getContext();
  RewritePatternSet patterns(context);
  patterns.add<RaiseGelu, ShareHeads>(context, conversion);
  addNormPatterns(patterns, conversion);
  // If the rewriting reaches no end, the function stays as it is then: all states are the same
  // model.
  NameKeeper keeper(conversion);
  (void)applyPatternsGreedily(function, std::move(patterns),
                              GreedyRewriteConfig().setUseTopDownTraversal().setListener(&keeper));
}
