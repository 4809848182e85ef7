//===- RaiseNorms.cpp - Norms of the last dimension from their parts ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/Parts.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

static int64_t lastDimOf(Value x) { return int64_t(shapeOf(x).size()) - 1; }

/// The value before reshapes, which only add or remove dimensions of size 1 here.
static Value skipReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getOperand();
  return value;
}

/// The operand of a mean over the last dimension, with one mean for each row of x; null for other
/// values.
static Value meanOperand(Value value, Value x) {
  auto mean = withNumber<MulOp>(skipReshapes(value));
  if (!mean || !isNear(mean->second, 1 / double(shapeOf(x).back())))
    return {};
  auto reduce = skipReshapes(mean->first).getDefiningOp<ReduceOp>();
  bool isOfRows = reduce && reduce.getKind() == ReductionKind::Sum &&
                  reduce.getDims() == ArrayRef<int64_t>{lastDimOf(x)} &&
                  shapeOf(reduce.getOperand()) == shapeOf(x);
  return isOfRows ? reduce.getOperand() : Value();
}

/// The value before it is repeated along the last dimension of x, without dimensions of size 1.
static Value beforeRows(Value value, Value x) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast || llvm::is_contained(broadcast.getDims(), lastDimOf(x)) ||
      shapeOf(broadcast.getOperand()) != shapeOf(x).drop_back())
    return {};
  return skipReshapes(broadcast.getOperand());
}

/// The row [n] that is repeated for all other dimensions of x [..., n].
static Value rowOf(Value value, Value x) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  return broadcast && broadcast.getDims() == ArrayRef<int64_t>{lastDimOf(x)}
             ? broadcast.getOperand()
             : Value();
}

/// The x of x - mean(x), for each row.
static Value centeredOperand(Value value) {
  auto sub = value.getDefiningOp<SubOp>();
  if (!sub || shapeOf(value).empty())
    return {};
  Value x = sub.getLhs(), mean = beforeRows(sub.getRhs(), x);
  return mean && meanOperand(mean, x) == x ? x : Value();
}

/// x, where the value is the larger one of x and 0, as a maximum or as a limit chooses it; else the
/// value itself.
static Value beforeLimit(Value value) {
  if (auto atLeast = withNumber<MaximumOp>(value); atLeast && atLeast->second == 0)
    return skipReshapes(atLeast->first);
  auto select = value.getDefiningOp<SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<CompareOp>() : CompareOp();
  bool isLimit = compare && compare.getPredicate() == ComparePredicate::LessOrEqual &&
                 splatOf(compare.getRhs()) == 0.0 && splatOf(select.getOnTrue()) == 0.0 &&
                 compare.getLhs() == select.getOnFalse();
  return isLimit ? skipReshapes(select.getOnFalse()) : value;
}

/// Whether the value is the variance of each row of x: the mean of squared distances from the mean,
/// or the mean of squares less the square of the mean, which models keep from being below 0.
static bool isVariance(Value value, Value x) {
  value = beforeLimit(skipReshapes(value));
  if (Value squares = meanOperand(value, x)) {
    auto square = squares.getDefiningOp<MulOp>();
    return square && square.getLhs() == square.getRhs() && centeredOperand(square.getLhs()) == x;
  }
  auto sub = value.getDefiningOp<SubOp>();
  Value squares = sub ? meanOperand(sub.getLhs(), x) : Value();
  auto ofMean = sub ? skipReshapes(sub.getRhs()).getDefiningOp<MulOp>() : MulOp();
  return squares && isSquareOf(squares, x) && ofMean && ofMean.getLhs() == ofMean.getRhs() &&
         meanOperand(ofMean.getLhs(), x) == x;
}

namespace {

/// What a value is divided by, for each row: the value before it is rooted, without eps.
struct Deviation {
  Value square;
  double eps;
};

} // namespace

/// The deviation of rows that the value is the reciprocal of, or, of a divisor, that it is.
template <typename Root> static std::optional<Deviation> deviationOf(Value value, Value x) {
  Value before = beforeRows(value, x);
  auto root = before ? before.template getDefiningOp<Root>() : Root();
  auto sum = root ? withNumber<AddOp>(skipReshapes(root.getOperand())) : std::nullopt;
  if (!sum || !(sum->second >= 0) || !std::isfinite(sum->second))
    return std::nullopt;
  return Deviation{sum->first, sum->second};
}

static Value constantRow(PatternRewriter &rewriter, Location loc, Value x, double number) {
  auto row = RankedTensorType::get({shapeOf(x).back()}, typeOf(x).getElementType());
  return ConstantOp::create(rewriter, loc, row, number);
}

namespace {

/// Replaces x rsqrt(mean(x x) + eps), or x / sqrt(...), by an RMS norm whose scale is 1, and
/// (x - mean(x)) rsqrt(variance(x) + eps) by a layer norm whose bias is 0. A scale may be a factor
/// of either side already.
template <typename Product, typename Root> struct RaiseNorm : OpRewritePattern<Product> {
  RaiseNorm(MLIRContext *context, Conversion &conversion)
      : OpRewritePattern<Product>(context), conversion(conversion) {}

  LogicalResult matchAndRewrite(Product op, PatternRewriter &rewriter) const override {
    for (auto [x, rows] : bothOrders(op)) {
      if (shapeOf(x).empty() || (std::is_same_v<Product, DivOp> && x != op.getLhs()))
        continue;
      if (succeeded(raise(op, x, rows, Value(), rewriter)))
        return success();
      if (auto scaled = x.template getDefiningOp<MulOp>())
        for (auto [part, scale] : bothOrders(scaled))
          if (Value row = rowOf(scale, x); row && succeeded(raise(op, part, rows, row, rewriter)))
            return success();
      auto scaled = std::is_same_v<Product, MulOp> ? rows.template getDefiningOp<MulOp>() : MulOp();
      if (scaled)
        for (auto [root, scale] : bothOrders(scaled))
          if (Value row = rowOf(scale, x); row && succeeded(raise(op, x, root, row, rewriter)))
            return success();
    }
    return failure();
  }

  LogicalResult raise(Product op, Value x, Value rows, Value scale,
                      PatternRewriter &rewriter) const {
    std::optional<Deviation> deviation = deviationOf<Root>(rows, x);
    if (!deviation)
      return failure();
    Location loc = op.getLoc();
    if (Value squares = meanOperand(deviation->square, x); squares && isSquareOf(squares, x)) {
      // Of centered values it is a layer norm, whose parts are all here.
      if (Value whole = centeredOperand(x))
        return replaceByLayerNorm(op, whole, scale, deviation->eps, rewriter);
      conversion.raised("RMS norms by their parts, now dtc.rms_norm", loc);
      Value gamma = scale ? scale : constantRow(rewriter, loc, x, 1);
      rewriter.replaceOp(op, RmsNormOp::create(rewriter, loc, x, gamma, deviation->eps).getY());
      return success();
    }
    Value whole = centeredOperand(x);
    if (!whole || !isVariance(deviation->square, whole))
      return failure();
    return replaceByLayerNorm(op, whole, scale, deviation->eps, rewriter);
  }

  LogicalResult replaceByLayerNorm(Product op, Value x, Value scale, double eps,
                                   PatternRewriter &rewriter) const {
    Location loc = op.getLoc();
    conversion.raised("layer norms by their parts, now dtc.layer_norm", loc);
    Value gamma = scale ? scale : constantRow(rewriter, loc, x, 1);
    Value beta = constantRow(rewriter, loc, x, 0);
    rewriter.replaceOp(op, LayerNormOp::create(rewriter, loc, x, gamma, beta, eps).getY());
    return success();
  }

  Conversion &conversion;
};

/// Moves what a norm of scale 1, and of bias 0, is multiplied by into its scale.
template <typename Norm> struct AbsorbScale : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    for (auto [y, rows] : bothOrders(op)) {
      auto norm = dyn_cast_or_null<Norm>(y.getDefiningOp());
      Value row = rowOf(rows, y);
      if (!norm || !row || y != norm.getY() || !norm.getY().hasOneUse() ||
          splatOf(norm.getGamma()) != 1.0)
        continue;
      if constexpr (std::is_same_v<Norm, LayerNormOp>) {
        if (splatOf(norm.getBeta()) != 0.0)
          continue;
        rewriter.replaceOp(op, LayerNormOp::create(rewriter, norm.getLoc(), norm.getX(), row,
                                                   norm.getBeta(), norm.getEps())
                                   .getY());
      } else {
        rewriter.replaceOp(
            op, RmsNormOp::create(rewriter, norm.getLoc(), norm.getX(), row, norm.getEps()).getY());
      }
      return success();
    }
    return failure();
  }
};

/// Moves what is added to a layer norm of bias 0 into its bias.
struct AbsorbBias : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    for (auto [y, rows] : bothOrders(op)) {
      auto norm = y.getDefiningOp<LayerNormOp>();
      Value row = rowOf(rows, y);
      if (!norm || !row || y != norm.getY() || !norm.getY().hasOneUse() ||
          splatOf(norm.getBeta()) != 0.0)
        continue;
      rewriter.replaceOp(op, LayerNormOp::create(rewriter, norm.getLoc(), norm.getX(),
                                                 norm.getGamma(), row, norm.getEps())
                                 .getY());
      return success();
    }
    return failure();
  }
};

} // namespace

void dtc::torch::addNormPatterns(RewritePatternSet &patterns, Conversion &conversion) {
  MLIRContext *context = patterns.getContext();
  patterns.add<RaiseNorm<MulOp, RsqrtOp>, RaiseNorm<DivOp, SqrtOp>>(context, conversion);
  patterns.add<AbsorbScale<RmsNormOp>, AbsorbScale<LayerNormOp>, AbsorbBias>(context);
}
