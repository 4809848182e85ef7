//===- FusedKernelCases.cpp - Calls of fused kernels as plans have them ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/KernelCases.h"

#include "runtime/calibrate/OperandTypes.h"

#include <algorithm>

namespace dtc::runtime {

using Calls = std::vector<KernelSignature>;

/// Tokens of a vocabulary of bytes: as many as there are different integers in operands.
static constexpr int64_t kVocabulary = 256;

static TensorType parameterOf(const TensorType &x) { return like(x, {widthOf(x)}); }
/// Sums and statistics of the rows, of the columns, and numbers of tokens.
static TensorType wideRows(const TensorType &x) { return {wideType(x.dtype), {rowsOf(x)}}; }
static TensorType wideColumns(const TensorType &x) { return {wideType(x.dtype), {widthOf(x)}}; }
static TensorType tokensOf(const TensorType &x) { return {DType::I32, {rowsOf(x)}}; }

static Calls softmax(const char *name, const TensorType &x) { return {{name, {x}, {x}, {}, {}}}; }

static Calls softmaxGrad(const char *name, const TensorType &x) {
  return {{name, {x, x}, {x}, {}, {}}};
}

static Calls layerNorm(const char *name, const TensorType &x) {
  return {{name,
           {x, parameterOf(x), parameterOf(x)},
           {x, wideRows(x), wideRows(x)},
           {{"eps", 1e-5}},
           {}}};
}

static Calls layerNormGrad(const char *name, const TensorType &x) {
  return {{name,
           {x, parameterOf(x), wideRows(x), wideRows(x), x},
           {x, wideColumns(x), wideColumns(x)},
           {},
           {}}};
}

static Calls rmsNorm(const char *name, const TensorType &x) {
  return {{name, {x, parameterOf(x)}, {x, wideRows(x)}, {{"eps", 1e-5}}, {}}};
}

static Calls rmsNormGrad(const char *name, const TensorType &x) {
  return {{name, {x, parameterOf(x), wideRows(x), x}, {x, wideColumns(x)}, {}, {}}};
}

/// Sequences of 128 tokens at most, heads of 64 elements at most.
static Calls rotary(const char *name, const TensorType &x) {
  int64_t positions = std::min<int64_t>(rowsOf(x), 128), size = std::min<int64_t>(widthOf(x), 64);
  TensorType heads =
      like(x, {std::max<int64_t>(1, rowsOf(x) / positions), positions, widthOf(x) / size, size});
  return {{name, {heads}, {heads}, {{"theta", 1e4}, {"inverse", false}}, {}}};
}

static Calls embedding(const char *name, const TensorType &x) {
  return {{name, {like(x, {kVocabulary, widthOf(x)}), tokensOf(x)}, {x}, {}, {}}};
}

static Calls embeddingGrad(const char *name, const TensorType &x) {
  return {{name, {tokensOf(x), x}, {{wideType(x.dtype), {kVocabulary, widthOf(x)}}}, {}, {}}};
}

static Calls pick(const char *name, const TensorType &x) {
  return {{name, {x, tokensOf(x)}, {like(x, {rowsOf(x)})}, {}, {}}};
}

static Calls pickGrad(const char *name, const TensorType &x) {
  return {{name, {tokensOf(x), like(x, {rowsOf(x)})}, {x}, {}, {}}};
}

/// The type of the scores of tokens for up to 64 experts.
static TensorType scoresOf(const TensorType &x) {
  int64_t experts = std::min<int64_t>(widthOf(x), 64);
  return like(x, {rowsOf(x) * widthOf(x) / experts, experts});
}

static Calls topK(const char *name, const TensorType &x) {
  TensorType scores = scoresOf(x);
  return {{name,
           {scores},
           {{DType::Bool, scores.shape}},
           {{"k", std::min<int64_t>(widthOf(scores), 8)}},
           {}}};
}

/// The places of an expert for a quarter of the tokens.
static Calls nonzero(const char *name, const TensorType &x) {
  return {
      {name, {{DType::Bool, x.shape}}, {{DType::I32, {rowsOf(x), (widthOf(x) + 3) / 4}}}, {}, {}}};
}

static Calls crossEntropy(const char *name, const TensorType &x) {
  return {{name, {x, tokensOf(x)}, {wideRows(x), wideRows(x)}, {{"label_smoothing", 0.0}}, {}}};
}

static Calls crossEntropyGrad(const char *name, const TensorType &x) {
  return {{name, {x, tokensOf(x), wideRows(x), wideRows(x)}, {x}, {{"label_smoothing", 0.0}}, {}}};
}

/// The positions of sequences that are generated.
static constexpr int64_t kCachedPositions = 128;

/// The next token of each sequence.
static Calls cachedAttention(const char *name, const TensorType &x) {
  int64_t size = std::min<int64_t>(widthOf(x), 64), heads = widthOf(x) / size;
  TensorType q = like(x, {rowsOf(x), 1, heads, size}),
             k = like(x, {rowsOf(x), kCachedPositions, heads, size});
  return {{name, {q, k, k, {DType::I32, {rowsOf(x)}}}, {q}, {{"scale", 0.125}}, {}}};
}

/// One sequence with heads of up to 64 elements.
static Calls mergeAttention(const char *name, const TensorType &x) {
  int64_t size = std::min<int64_t>(widthOf(x), 64), heads = widthOf(x) / size;
  TensorType part = like(x, {1, rowsOf(x), heads, size}), out{wideType(x.dtype), part.shape};
  TensorType lse{out.dtype, {1, heads, rowsOf(x)}};
  return {{name, {out, lse, part, lse}, {out, lse}, {}, {}}};
}

/// Windows of 3 x 3 with a stride of 2 of as many planes as there are rows.
static TensorType planesOf(const TensorType &x) {
  int64_t height = widthOf(x) % 8 == 0 ? 8 : 1;
  return like(x, {rowsOf(x), height, widthOf(x) / height});
}
static TensorType maximaOf(const TensorType &planes) {
  auto half = [](int64_t size) { return (size + 1) / 2; };
  return like(planes, {planes.shape[0], half(planes.shape[1]), half(planes.shape[2])});
}
static AttributeMap poolWindows() {
  using Numbers = std::vector<int64_t>;
  return {{"window", Numbers{3, 3}},
          {"strides", Numbers{2, 2}},
          {"padding", Numbers{1, 1}},
          {"dilations", Numbers{1, 1}}};
}

static Calls maxPool(const char *name, const TensorType &x) {
  TensorType planes = planesOf(x);
  return {{name, {planes}, {maximaOf(planes)}, poolWindows(), {}}};
}

static Calls maxPoolGrad(const char *name, const TensorType &x) {
  TensorType planes = planesOf(x);
  return {{name, {planes, maximaOf(planes)}, {planes}, poolWindows(), {}}};
}

std::span<const KernelCase> fusedCases() {
  static constexpr KernelCase cases[] = {
      {"softmax", softmax, true},
      {"softmax_grad", softmaxGrad, true},
      {"layer_norm", layerNorm, true},
      {"layer_norm_grad", layerNormGrad, true},
      {"rms_norm", rmsNorm, true},
      {"rms_norm_grad", rmsNormGrad, true},
      {"rotary", rotary, true},
      {"embedding", embedding, true},
      {"embedding_grad", embeddingGrad, true},
      {"pick", pick},
      {"pick_grad", pickGrad},
      {"top_k", topK, true},
      {"nonzero", nonzero},
      {"cross_entropy", crossEntropy, true},
      {"cross_entropy_grad", crossEntropyGrad, true},
      {"cached_attention", cachedAttention, false, true, kCachedPositions},
      {"merge_attention", mergeAttention, true},
      {"max_pool", maxPool, true},
      {"max_pool_grad", maxPoolGrad, true},
  };
  return cases;
}

KernelSignature attentionCall(bool grad, DType dtype, const AttentionCase &shape) {
  TensorType x{dtype, {shape.batch, shape.positions, shape.heads, shape.headSize}};
  TensorType lse{wideType(dtype), {shape.batch, shape.heads, shape.positions}};
  KernelSignature call{"attention", {x, x, x}, {x, lse}, {{"causal", true}, {"scale", 0.125}}, {}};
  if (grad) {
    call.kernel = "attention_grad";
    call.inputs = {x, x, x, x, lse, x};
    call.outputs = {x, x, x};
  }
  return call;
}

double attentionFlops(bool grad, const AttentionCase &shape) {
  auto scores = static_cast<double>(shape.batch * shape.heads * shape.positions * shape.positions);
  return (grad ? 5 : 2) * 2 * scores * static_cast<double>(shape.headSize) / 2;
}

} // namespace dtc::runtime
