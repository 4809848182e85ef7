//===- ModelLayers.cpp - Layers of imported models ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Letters as in ModelBuilder.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ModelBuilder.h"
#include "dialects/dtc/DtcOps.h"
#include "plan/AdapterNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/SaveAndRestore.h"

#include <cmath>

using namespace mlir;
using namespace dtc;

/// The letters of einsums for the dimensions of `x` before its `last` ones: those of the batch and,
/// if there is one, the sequence.
static std::string firstLetters(Value x, size_t last) {
  return StringRef("bs")
      .take_front(cast<RankedTensorType>(x.getType()).getShape().size() - last)
      .str();
}

Value ModelBuilder::adapterInput(StringRef name, Value x, const std::vector<Dim> &in,
                                 llvm::function_ref<void(Dim rank)> addUp) {
  std::string module = layerPrefix + name.str();
  if (name.empty())
    module.pop_back(); // the dot
  if (!loraTargets.match(module))
    return {};
  const LoraOptions &lora = *options.lora;
  Dim rank{lora.rank};
  llvm::SaveAndRestore prefixed(layerPrefix, std::string(kAdapterPrefix) + module + ".");
  // PEFT draws lora_A by torch's kaiming_uniform_ with a = sqrt(5), which comes to this bound.
  Value a = addParameter("lora_A.weight", {{rank}, in},
                         uniform(1 / std::sqrt(static_cast<double>(numElements(in)))));
  addUp(rank);
  // The input's dimensions after batch and sequence, as an einsum names them.
  std::string letters = StringRef("ijk").take_front(in.size()).str();
  std::string first = firstLetters(x, in.size());
  return scaleAdapter(
      einsum(first + letters + ",r" + letters + "->" + first + "r", dropout(x, lora.dropout), a));
}

Value ModelBuilder::scaleAdapter(Value down) {
  // In the model's own type, so that the scale is not rounded where a plan computes in 16 bits: a
  // conversion is not narrowed.
  down = ConvertOp::create(builder, loc, down, elementType);
  Value scale = constant({}, options.lora->alpha / static_cast<double>(options.lora->rank));
  return mul(down, BroadcastOp::create(builder, loc, down.getType(), scale, ArrayRef<int64_t>()));
}

Adapter ModelBuilder::addAdapter(StringRef name, Value x, const std::vector<Dim> &in,
                                 const std::vector<Dim> &out) {
  Adapter adapter;
  adapter.down = adapterInput(name, x, in, [&](Dim rank) {
    adapter.up = addParameter("lora_B.weight", {out, {rank}}, zeros());
  });
  return adapter;
}

std::vector<Adapter> ModelBuilder::addAdapters(StringRef name, Value x, const std::vector<Dim> &in,
                                               ArrayRef<std::vector<Dim>> parts) {
  std::vector<Adapter> adapters(parts.size());
  Value down = adapterInput(name, x, in, [&](Dim rank) {
    std::vector<Value> rows = addRows("lora_B.weight", parts, {rank}, zeros());
    for (auto [adapter, up] : llvm::zip_equal(adapters, rows))
      adapter.up = up;
  });
  for (Adapter &adapter : adapters)
    adapter.down = down;
  return adapters;
}

Value ModelBuilder::adapt(Value y, const Adapter &adapter, std::optional<int64_t> index,
                          int64_t dim) {
  if (!adapter.down)
    return y;
  Value up = index ? select(adapter.up, dim, *index) : adapter.up;
  std::string letters = StringRef("ijk").take_front(shapeOf(up).size() - 1).str();
  std::string first = firstLetters(adapter.down, 1);
  return add(y, einsum(first + "r," + letters + "r->" + first + letters, adapter.down, up));
}

Value ModelBuilder::cutPatches(Value images, int64_t height, int64_t width) {
  ArrayRef<int64_t> shape = shapeOf(images);
  int64_t rows = shape[2] / height, columns = shape[3] / width;
  Value cut = reshape(images, {shape[0], shape[1], rows, height, columns, width});
  Value patches = TransposeOp::create(builder, loc, cut, ArrayRef<int64_t>{0, 2, 4, 1, 3, 5});
  return reshape(patches, {shape[0], rows * columns, shape[1], height, width});
}

Value ModelBuilder::prependRow(Value row, Value x) {
  ArrayRef<int64_t> shape = shapeOf(x);
  Value flat = reshape(row, {1, shape[2]});
  Value rows = BroadcastOp::create(builder, loc, getType({shape[0], 1, shape[2]}), flat,
                                   ArrayRef<int64_t>{1, 2});
  return concat(rows, x, 1);
}

Value ModelBuilder::embed(Value table) { return EmbeddingOp::create(builder, loc, table, tokens); }

Value ModelBuilder::addPositions(Value x, Value table, int64_t first) {
  if (!positions)
    return addBias(x, take(table, 0, first, options.seq));
  if (first != 0)
    table = take(table, 0, first, shapeOf(table)[0] - first);
  return add(x, EmbeddingOp::create(builder, loc, table, positions));
}

Value ModelBuilder::layerNorm(Value x, double eps) {
  Dim width{shapeOf(x).back(), "embed"};
  Value gamma = addParameter("weight", {{width}}, ones());
  Value beta = addParameter("bias", {{width}}, zeros());
  return LayerNormOp::create(builder, loc, x, gamma, beta, eps).getY();
}

Value ModelBuilder::rmsNorm(Value x, double eps, bool plusOne, StringRef name, StringRef axis) {
  Dim width{shapeOf(x).back(), axis};
  Value gamma = addParameter(name, {{width}}, plusOne ? zeros() : ones());
  if (plusOne)
    gamma = add(gamma, constant({width.size}, 1));
  return RmsNormOp::create(builder, loc, x, gamma, eps).getY();
}

Value ModelBuilder::rotary(Value x, const Rotary &kind) {
  bool hasTable = !kind.frequencies.empty();
  return RotaryOp::create(
      builder, loc, x, positions, hasTable ? FloatAttr() : builder.getF64FloatAttr(kind.theta),
      hasTable ? builder.getDenseF64ArrayAttr(kind.frequencies) : DenseF64ArrayAttr(),
      kind.factor == 1 ? FloatAttr() : builder.getF64FloatAttr(kind.factor),
      /*inverse=*/false, /*zigzag=*/IntegerAttr(), /*sequence=*/IntegerAttr(),
      /*sequence_axes=*/ArrayAttr());
}

/// The argument that says, together with an op's number, which elements drop out.
Value ModelBuilder::randomKey() {
  if (key)
    return key;
  auto type = RankedTensorType::get({2}, builder.getI32Type());
  argumentAttrs.push_back(builder.getDictionaryAttr(
      builder.getNamedAttr("dtc.scalar", builder.getStringAttr("random_key"))));
  key = block->addArgument(type, NameLoc::get(builder.getStringAttr("random_key")));
  return key;
}

Value ModelBuilder::dropout(Value x, double rate) {
  if (rate == 0 || !options.dropout)
    return x;
  Value random = randomKey();
  return DropoutOp::create(builder, loc, x, random, rate, numRandomOps++, DenseI64ArrayAttr(),
                           ArrayAttr());
}

Value ModelBuilder::maskScores(Value scores) {
  SmallVector<int64_t> shape(shapeOf(scores));
  int64_t rank = shape.size();
  auto type = RankedTensorType::get(shape, builder.getI32Type());
  Value ofQuery = BroadcastOp::create(builder, loc, type, segments, ArrayRef<int64_t>{0, rank - 2});
  Value ofKey = BroadcastOp::create(builder, loc, type, segments, ArrayRef<int64_t>{0, rank - 1});
  Value isOne = CompareOp::create(builder, loc, ofQuery, ofKey, ComparePredicate::Equal);
  Value hidden = constant(shape, -1e30);
  return SelectOp::create(builder, loc, isOne, scores, hidden);
}

/// Attention as it was written before it was fused, and is in Megatron-LM: with scores, and what
/// the softmax makes of them, [B, H, S, S].
Value ModelBuilder::decomposedAttention(Value q, Value k, Value v, const AttentionScores &kind,
                                        double dropout) {
  SmallVector<int64_t> shape(shapeOf(q));
  int64_t heads = shape[2], kvHeads = shapeOf(k)[2];
  bool grouped = heads != kvHeads;
  // Query head i belongs to key-value head i / (H / G): [B, S, H, E] is [B, S, G, H / G, E].
  if (grouped)
    q = ReshapeOp::create(builder, loc,
                          getType({shape[0], shape[1], kvHeads, heads / kvHeads, shape[3]}), q);
  Value scores = einsum(grouped ? "bsgre,btge->bgrst" : "bshe,bthe->bhst", q, k);
  double scale = kind.scale;
  if (kind.softcap != 0 || segments) {
    scores = this->scale(scores, scale);
    scale = 1;
  }
  if (kind.softcap != 0)
    scores = softcap(scores, kind.softcap);
  if (segments)
    scores = maskScores(scores);
  Value weights = SoftmaxOp::create(builder, loc, scores, kind.causal, scale);
  weights = this->dropout(weights, dropout);
  Value out = einsum(grouped ? "bgrst,btge->bsgre" : "bhst,bthe->bshe", weights, v);
  return grouped ? Value(ReshapeOp::create(builder, loc, getType(shape), out)) : out;
}

Value ModelBuilder::attention(Value q, Value k, Value v, const AttentionScores &scores,
                              double dropout, Value sinks) {
  if (options.attention == AttentionKind::Decomposed)
    return decomposedAttention(q, k, v, scores, dropout);
  // dtc.attention has one size for queries, keys and values. Zeros add nothing to its products.
  int64_t size = shapeOf(q).back(), valueSize = shapeOf(v).back();
  auto widen = [&](Value x) -> Value {
    int64_t missing = std::max(size, valueSize) - shapeOf(x).back();
    if (missing == 0)
      return x;
    return PadOp::create(builder, loc, x, ArrayRef<int64_t>{0, 0, 0, 0},
                         ArrayRef<int64_t>{0, 0, 0, missing}, 0.0);
  };
  q = widen(q);
  k = widen(k);
  v = widen(v);
  bool drops = dropout != 0 && options.dropout;
  Value random = drops ? randomKey() : Value();
  IntegerAttr window = scores.window ? builder.getI64IntegerAttr(*scores.window) : IntegerAttr();
  FloatAttr softcap = scores.softcap != 0 ? builder.getF64FloatAttr(scores.softcap) : FloatAttr();
  Value out = AttentionOp::create(builder, loc, q, k, v, segments, random, sinks, scores.causal,
                                  scores.scale, window, softcap, /*key_shift=*/IntegerAttr(),
                                  /*zigzag=*/IntegerAttr(),
                                  /*sequence=*/IntegerAttr(),
                                  /*sequence_axes=*/ArrayAttr(), drops ? dropout : 0,
                                  drops ? numRandomOps++ : 0, /*shape=*/DenseI64ArrayAttr(),
                                  /*sharding=*/ArrayAttr())
                  .getOut();
  return take(out, 3, 0, valueSize);
}
