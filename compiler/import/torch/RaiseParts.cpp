//===- RaiseParts.cpp - Fused ops from their parts ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

/// The number that all elements of a constant are.
static std::optional<double> splatOf(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant || !constant.getValue().isSplat() || !torch::isFloat(value))
    return std::nullopt;
  return constant.getValue().getSplatValue<APFloat>().convertToDouble();
}

/// Whether two numbers are equal when they are rounded to f32.
static bool isNear(double value, double wanted) {
  return std::abs(value - wanted) <= 1e-7 * std::abs(wanted);
}

/// x, where the value is an `Op` of x and a number in any order; and the number.
template <typename Op> static std::optional<std::pair<Value, double>> withNumber(Value value) {
  auto op = value.getDefiningOp<Op>();
  if (!op)
    return std::nullopt;
  for (auto [x, number] :
       {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())})
    if (std::optional<double> found = splatOf(number))
      return std::pair(Value(x), *found);
  return std::nullopt;
}

/// The value before reshapes, which only add or remove dimensions of size 1 here.
static Value skipReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getOperand();
  return value;
}

static bool isSquareOf(Value value, Value x) {
  auto mul = value.getDefiningOp<MulOp>();
  return mul && mul.getLhs() == x && mul.getRhs() == x;
}

/// The eps of mean(x x over the last dimension) + eps.
static std::optional<double> epsOfMeanSquare(Value value, Value x) {
  auto sum = withNumber<AddOp>(value);
  auto mean = sum ? withNumber<MulOp>(sum->first) : std::nullopt;
  if (!mean || !isNear(mean->second, 1 / double(shapeOf(x).back())))
    return std::nullopt;
  auto reduce = skipReshapes(mean->first).getDefiningOp<ReduceOp>();
  int64_t last = int64_t(shapeOf(x).size()) - 1;
  if (!reduce || reduce.getKind() != ReductionKind::Sum ||
      reduce.getDims() != ArrayRef<int64_t>{last} || !isSquareOf(reduce.getOperand(), x) ||
      !(sum->second >= 0) || !std::isfinite(sum->second))
    return std::nullopt;
  return sum->second;
}

/// The value before it is repeated along the last dimension of x, without dimensions of size 1.
static Value beforeRows(Value value, Value x) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  int64_t last = int64_t(shapeOf(x).size()) - 1;
  if (!broadcast || llvm::is_contained(broadcast.getDims(), last) ||
      shapeOf(broadcast.getOperand()) != shapeOf(x).drop_back())
    return {};
  return skipReshapes(broadcast.getOperand());
}

/// The x of 0.5 x (1 + tanh(y)) with the factors in any order, and y.
static std::optional<std::pair<Value, Value>> halfOfTanh(MulOp op) {
  auto tanhOf = [](Value sum) {
    auto one = withNumber<AddOp>(sum);
    auto tanh = one && one->second == 1 ? one->first.getDefiningOp<TanhOp>() : TanhOp();
    return tanh ? tanh.getOperand() : Value();
  };
  for (auto [first, second] :
       {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
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

/// Replaces x rsqrt(mean(x x) + eps), or x / sqrt(...), by an RMS norm whose scale is 1.
template <typename Product, typename Root> struct RaiseRmsNorm : OpRewritePattern<Product> {
  RaiseRmsNorm(MLIRContext *context, Conversion &conversion)
      : OpRewritePattern<Product>(context), conversion(conversion) {}

  LogicalResult matchAndRewrite(Product op, PatternRewriter &rewriter) const override {
    for (bool isSecond : {false, true}) {
      if (isSecond && std::is_same_v<Product, DivOp>)
        break;
      Value x = isSecond ? op.getRhs() : op.getLhs(), rows = isSecond ? op.getLhs() : op.getRhs();
      if (shapeOf(x).empty())
        break;
      Value before = beforeRows(rows, x);
      auto root = before ? before.template getDefiningOp<Root>() : Root();
      std::optional<double> eps =
          root ? epsOfMeanSquare(root.getOperand(), x) : std::optional<double>();
      if (!eps)
        continue;
      auto row = RankedTensorType::get({shapeOf(x).back()}, typeOf(x).getElementType());
      Value ones = ConstantOp::create(rewriter, op.getLoc(), row, 1.0);
      conversion.raised("RMS norms by their parts, now dtc.rms_norm", op.getLoc());
      rewriter.replaceOp(op, RmsNormOp::create(rewriter, op.getLoc(), x, ones, *eps).getY());
      return success();
    }
    return failure();
  }

  Conversion &conversion;
};

/// Moves what an RMS norm of scale 1 is multiplied by into its scale.
struct AbsorbScale : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    for (auto [y, rows] :
         {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
      auto norm = y.getDefiningOp<RmsNormOp>();
      auto broadcast = rows.getDefiningOp<BroadcastOp>();
      int64_t last = int64_t(shapeOf(y).size()) - 1;
      if (!norm || !broadcast || y != norm.getY() || !norm.getY().hasOneUse() ||
          splatOf(norm.getGamma()) != 1.0 || broadcast.getDims() != ArrayRef<int64_t>{last})
        continue;
      rewriter.replaceOp(op, RmsNormOp::create(rewriter, norm.getLoc(), norm.getX(),
                                               broadcast.getOperand(), norm.getEps())
                                 .getY());
      return success();
    }
    return failure();
  }
};

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
    for (auto [first, second] :
         {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())}) {
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
  patterns.add<RaiseRmsNorm<MulOp, RsqrtOp>, RaiseRmsNorm<DivOp, SqrtOp>, RaiseGelu, ShareHeads>(
      context, conversion);
  patterns.add<AbsorbScale>(context);
  // If the rewriting reaches no end, the function stays as it is then: all states are the same
  // model.
  (void)applyPatternsGreedily(function, std::move(patterns),
                              GreedyRewriteConfig().setUseTopDownTraversal());
}
