//===- AttentionRules.cpp - Attention and rotary positions ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// PyTorch has heads before positions, [B, H, S, E], dtc after them, [B, S, H, E]. The transposes
// cancel those of the model.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

/// Less than any score: nothing is left of it after a softmax, and no gradient is a NaN.
static constexpr double kHidden = -1e30;

namespace {
struct Attention {
  Value q, k, v, mask, sinks, segments;
  double scale = 1, dropout = 0;
  bool causal = false;
  std::optional<int64_t> window;
  std::optional<double> softcap;
};
} // namespace

/// Attention by its parts, for masks that dtc.attention does not have. q [B, H, S, E].
static Value attendByParts(AtenOp &op, const Attention &attention) {
  auto [q, k, v, mask] = std::tuple(attention.q, attention.k, attention.v, attention.mask);
  if (shapeOf(q)[1] != shapeOf(k)[1])
    return op.fail(
        "has fewer heads of keys than of queries with a mask of its own, for which there "
        "is no rule; repeat the keys and values");
  Value scores = op.scale(op.einsum("bhse,bhte->bhst", q, k), attention.scale);
  if (!scores)
    return {};
  ArrayRef<int64_t> shape = shapeOf(scores);
  Type element = typeOf(scores).getElementType();
  bool isMask = isMaskTensor(mask.getType());
  mask = op.broadcastTo(isMask ? mask : op.convert(mask, element), shape);
  if (!mask)
    return {};
  Value seen = mask;
  if (isMask) {
    scores =
        SelectOp::create(op.rewriter, op.loc, mask, scores, op.constant(shape, element, kHidden));
  } else {
    double infinity = std::numeric_limits<double>::infinity();
    seen = CompareOp::create(op.rewriter, op.loc, mask, op.constant(shape, element, -infinity),
                             ComparePredicate::NotEqual);
    scores = op.elementwise<AddOp>(
        {scores, op.elementwise<MaximumOp>({mask, op.constant(shape, element, kHidden)})});
  }
  Value weights = SoftmaxOp::create(op.rewriter, op.loc, scores.getType(), scores);
  // A query that sees no key gives zeros.
  weights = SelectOp::create(op.rewriter, op.loc, seen, weights, op.constant(shape, element, 0));
  return op.einsum("bhst,bhte->bhse", op.dropout(weights, attention.dropout), v);
}

static Value attend(AtenOp &op, const Attention &attention) {
  int64_t size = shapeOf(attention.q).back(), valueSize = shapeOf(attention.v).back();
  // dtc.attention has one size for queries, keys and values. Zeros add nothing to its products.
  auto prepare = [&](Value x) {
    x = op.swapDims(x, 1, 2);
    return op.pad(x, 3, std::max(size, valueSize) - shapeOf(x).back());
  };
  bool drops = attention.dropout != 0;
  IntegerAttr window =
      attention.window ? op.rewriter.getI64IntegerAttr(*attention.window) : IntegerAttr();
  FloatAttr softcap =
      attention.softcap ? op.rewriter.getF64FloatAttr(*attention.softcap) : FloatAttr();
  Value q = prepare(attention.q), k = prepare(attention.k), v = prepare(attention.v);
  Value out = AttentionOp::create(op.rewriter, op.loc, q, k, v, attention.segments,
                                  drops ? op.conversion.randomKey : Value(), attention.sinks,
                                  attention.causal, attention.scale, window, softcap,
                                  /*key_shift=*/IntegerAttr(), /*zigzag=*/IntegerAttr(),
                                  /*sequence=*/IntegerAttr(), /*sequence_axes=*/ArrayAttr(),
                                  attention.dropout, drops ? op.conversion.numRandomOps++ : 0,
                                  /*shape=*/DenseI64ArrayAttr(), /*sharding=*/ArrayAttr())
                  .getOut();
  return op.swapDims(op.slice(out, 3, 0, valueSize), 1, 2);
}

/// The same without leading dimensions, or with several: [..., H, S, E] as [B, H, S, E].
static Value asRank4(AtenOp &op, Value x) {
  if (!x || shapeOf(x).size() == 4)
    return x;
  ArrayRef<int64_t> shape = shapeOf(x);
  if (shape.size() < 2)
    return op.fail("has an operand of less than 2 dimensions");
  SmallVector<int64_t> wanted(shape.take_back(std::min<size_t>(3, shape.size())));
  if (wanted.size() == 2)
    wanted.insert(wanted.begin(), 1);
  int64_t rest = 1;
  for (int64_t each : shape.drop_back(std::min<size_t>(3, shape.size())))
    rest *= each;
  wanted.insert(wanted.begin(), rest);
  return op.reshape(x, wanted);
}

static bool isCausalWithoutMask(AtenOp &op) {
  return op.flag("is_causal") && !op.operand("attn_mask");
}

static Results convertAttention(AtenOp &op) {
  Attention attention{.q = asRank4(op, op.required("query")),
                      .k = asRank4(op, op.required("key")),
                      .v = asRank4(op, op.required("value")),
                      .mask = op.operand("attn_mask"),
                      .sinks = op.operand("sinks"),
                      .segments = op.operand("segments")};
  if (!attention.q || !attention.k || !attention.v)
    return {};
  ArrayRef<int64_t> q = shapeOf(attention.q), k = shapeOf(attention.k), v = shapeOf(attention.v);
  if (!torch::isFloat(attention.q) ||
      typeOf(attention.k).getElementType() != typeOf(attention.q).getElementType() ||
      typeOf(attention.v).getElementType() != typeOf(attention.q).getElementType() ||
      k.take_front(3) != v.take_front(3) || q[0] != k[0] || q[3] != k[3] || q[1] % k[1] != 0)
    return {op.fail("has queries, keys and values whose shapes or types do not fit")};
  attention.scale = op.number("scale").value_or(1 / std::sqrt(double(q[3])));
  attention.dropout = op.number("dropout_p").value_or(0);
  // Set where a mask or parts were recognized (FoldConstants.cpp).
  attention.window = op.integer("window");
  attention.softcap = op.number("softcap");
  attention.causal = op.flag("is_causal");
  if (isCausalWithoutMask(op) && !op.flag("recognized") && q[2] != k[2])
    return {op.fail("is causal with another number of keys than of queries, for which there is no "
                    "rule")};
  if (attention.causal && attention.mask)
    return {op.fail("is causal and has a mask; give one of both")};
  if (attention.causal && q[2] > k[2])
    return {op.fail("is causal with more queries than keys, for which there is no rule")};
  if (!std::isfinite(attention.scale) || !(attention.dropout >= 0 && attention.dropout < 1) ||
      (attention.window && (*attention.window < 1 || !attention.causal)))
    return {op.fail("has a scale, dropout or window out of range")};
  if (attention.softcap &&
      (attention.mask || !(*attention.softcap > 0) || !std::isfinite(*attention.softcap)))
    return {op.fail("has a soft cap out of range, or beside a mask")};
  if (attention.sinks &&
      (attention.mask || attention.softcap ||
       attention.sinks.getType() != typeOf(attention.q).clone(ArrayRef<int64_t>{q[1]})))
    return {op.fail("has sinks that are not one number for each head, or beside a mask or a cap")};
  auto perToken = RankedTensorType::get({k[0], k[2]}, op.rewriter.getI32Type());
  // Positions may be the same in all samples.
  if (attention.segments && shapeOf(attention.segments) == ArrayRef<int64_t>{1, k[2]})
    attention.segments = op.broadcastTo(attention.segments, perToken.getShape());
  if (attention.segments && (attention.mask || attention.segments.getType() != perToken))
    return {op.fail("has segments that are not one integer for each token, or beside a mask")};
  Value out = attention.mask ? attendByParts(op, attention) : attend(op, attention);
  return {op.reshape(out, op.resultType().getShape())};
}

/// x [B, H, S, E], or [B, S, H, E] where positions are dimension 1, with frequencies of pairs: the
/// form that foldConstants() recognizes.
static Results convertRotary(AtenOp &op) {
  Value x = op.required("x"), positions = op.operand("positions");
  auto frequencies = op.op->getAttrOfType<DenseF64ArrayAttr>("frequencies");
  double factor = op.number("factor").value_or(1);
  if (!x || shapeOf(x).size() != 4 || !torch::isFloat(x) || shapeOf(x)[3] % 2 != 0 ||
      !frequencies || frequencies.empty() || frequencies.size() > shapeOf(x)[3] / 2 ||
      !(factor > 0) || !std::isfinite(factor) ||
      (positions && !isIndexTensor(positions.getType())) ||
      !llvm::all_of(frequencies.asArrayRef(),
                    [](double each) { return std::isfinite(each) && each >= 0; }))
    return {op.fail("has frequencies that do not fit the heads")};
  bool swaps = op.integer("position_dim").value_or(2) == 2;
  Value heads = swaps ? op.swapDims(x, 1, 2) : x;
  if (positions) {
    positions = op.broadcastTo(positions, shapeOf(heads).take_front(2));
    if (!positions)
      return {};
  }
  heads =
      RotaryOp::create(op.rewriter, op.loc, heads, positions, /*theta=*/FloatAttr(), frequencies,
                       factor == 1 ? FloatAttr() : op.rewriter.getF64FloatAttr(factor),
                       op.rewriter.getBoolAttr(false), /*zigzag=*/IntegerAttr(),
                       /*sequence=*/IntegerAttr(), /*sequence_axes=*/ArrayAttr());
  return {swaps ? op.swapDims(heads, 1, 2) : heads};
}

ArrayRef<Rule> dtc::torch::attentionRules() {
  static const Rule rules[] = {
      {"aten.scaled_dot_product_attention", convertAttention},
      {"torch.rotary", convertRotary},
  };
  return rules;
}
