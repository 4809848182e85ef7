//===- TransformerAttention.cpp - The attention of a layer ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/TransformerBuilder.h"

using namespace dtc;
using mlir::Value;

/// x [B, S, H, E] -> [B, S, H, E]
Value TransformerBuilder::normHeads(Value x, llvm::StringRef name) {
  bool plusOne = family.norm == NormKind::RmsPlusOne;
  std::string weight = (name + ".weight").str();
  if (family.queryNorm == QueryNorm::None)
    return x;
  if (family.queryNorm == QueryNorm::Heads)
    return model.rmsNorm(x, config.eps, plusOne, weight, /*axis=*/"");
  auto shape = mlir::cast<mlir::RankedTensorType>(x.getType()).getShape();
  Value merged = model.reshape(x, {shape[0], shape[1], shape[2] * shape[3]});
  return model.reshape(model.rmsNorm(merged, config.eps, plusOne, weight, /*axis=*/""), shape);
}

TransformerBuilder::Heads TransformerBuilder::separateHeads(Value x) {
  Value q = linear(names.queries, x, stream, queries, config.queryBias, normal);
  Value k = linear(names.keys, x, stream, keys, config.queryBias, normal);
  Value v = linear(names.values, x, stream, keys, config.queryBias, normal);
  return {q, k, v};
}

/// The queries, keys and values share a weight. It is the weight that is split, not what
/// comes out of it: the weight is the smaller of the two as soon as there are more tokens than D,
/// the three parts are the same for all microbatches, and q, k and v come out of their einsums
/// dense, as attention wants them.
TransformerBuilder::Heads TransformerBuilder::headsOfThirds(Value x) {
  Dim three{3};
  bool perHead = family.queries == QueryForm::HeadThirds;
  Side all = perHead ? Side{{config.heads, three, config.headSize}, ""}
                     : Side{{three, config.heads, config.headSize}, ""};
  int64_t third = perHead ? 1 : 0;
  Value weight = weightOf(names.queries, stream, all, normal), bias;
  if (config.queryBias)
    bias = model.addParameter(names.queries + ".bias", {all.dims}, model.zeros());
  Adapter adapter = model.addAdapter(names.queries, x, stream.dims, all.dims);
  auto project = [&](int64_t which) {
    Value part = model.select(weight, third + (family.isTransposed ? 1 : 0), which);
    Value y = model.einsum(equation(x, stream, queries), x, part);
    if (bias)
      y = model.addBias(y, model.select(bias, third, which));
    return model.adapt(y, adapter, which, third);
  };
  Value q = project(0);
  Value k = project(1);
  Value v = project(2);
  return {q, k, v};
}

/// Queries, keys and values are rows of one tensor of weights files, and parameters of their own
/// here: so each is split by its heads, which may be fewer for keys and values.
TransformerBuilder::Heads TransformerBuilder::headsOfRows(Value x) {
  const std::vector<Dim> parts[] = {queries.dims, keys.dims, keys.dims};
  std::vector<Value> weights = model.addRows(names.queries + ".weight", parts, stream.dims, normal);
  std::vector<Adapter> adapters = model.addAdapters(names.queries, x, stream.dims, parts);
  auto project = [&](size_t part, const Side &side) {
    return model.adapt(model.einsum(equation(x, stream, side), x, weights[part]), adapters[part]);
  };
  Value q = project(0, queries);
  Value k = project(1, keys);
  Value v = project(2, keys);
  return {q, k, v};
}

/// Latent attention. A head of weights files has its rotated elements last, and may have the two of
/// a pair side by side; dtc.rotary wants them first, and the first of each pair before the second.
/// Products of queries and keys do not depend on the order, so the rows of weights are reordered,
/// which are fewer than the activations.
TransformerBuilder::Heads TransformerBuilder::headsOfLatents(const Rotary &rotary, Value x) {
  const LatentAttention &latent = *config.latent;
  constexpr double kEps = 1e-6; // `rms_norm_eps` is for the other norms
  auto halves = [&](Value rows, int64_t dim) {
    return latent.rotatesPairs ? model.halvesOfPairs(rows, dim) : rows;
  };
  Value input = x;
  Side from = stream;
  llvm::StringRef name = names.queries;
  if (latent.queryLatent) {
    from = {{Dim{*latent.queryLatent}}, "r"};
    input = linear(names.queryDown, x, stream, from, latent.hasBias, normal);
    input = model.rmsNorm(input, kEps, /*plusOne=*/false, (names.queryNorm + ".weight").str(),
                          /*axis=*/"");
    name = names.queryUp;
  }
  auto rotatedFirst = [&](Value rows) { // [H, plain + rotated, ...]
    Value rotated = model.take(rows, 1, latent.plainSize, latent.rotatedSize);
    return model.concat(halves(rotated, 1), model.take(rows, 1, 0, latent.plainSize), 1);
  };
  Value q = model.einsum(equation(input, from, queries), input,
                         rotatedFirst(weightOf(name, from, queries, normal)));
  Adapter ofQueries = model.addAdapter(name, input, from.dims, queries.dims);
  if (ofQueries.up)
    ofQueries.up = rotatedFirst(ofQueries.up);
  q = model.rotary(model.adapt(q, ofQueries), rotary);

  const Side narrow{{Dim{latent.keySize}}, "r"}, rotated{{Dim{latent.rotatedSize}}, "e"};
  const std::vector<Dim> parts[] = {narrow.dims, rotated.dims};
  std::string down = names.keyValueDown.str();
  std::vector<Value> weights = model.addRows(down + ".weight", parts, stream.dims, normal), biases;
  if (latent.hasBias)
    biases = model.addRows(down + ".bias", parts, {}, model.zeros());
  std::vector<Adapter> adapters = model.addAdapters(down, x, stream.dims, parts);
  auto project = [&](size_t part, const Side &side) {
    auto order = [&](Value rows) { return rows && part == 1 ? halves(rows, 0) : rows; };
    Value y = model.einsum(equation(x, stream, side), x, order(weights[part]));
    if (latent.hasBias)
      y = model.addBias(y, order(biases[part]));
    return model.adapt(y, {adapters[part].down, order(adapters[part].up)});
  };
  Value kv = model.rmsNorm(project(0, narrow), kEps, /*plusOne=*/false,
                           (names.keyValueNorm + ".weight").str(), /*axis=*/"");
  Value shared = project(1, rotated);
  auto shape = mlir::cast<mlir::RankedTensorType>(shared.getType()).getShape();
  shared = model.rotary(model.reshape(shared, {shape[0], shape[1], 1, shape[2]}), rotary);
  shared = model.forEachHead(model.reshape(shared, shape), config.heads);

  Side both{{config.heads, Dim{latent.plainSize + config.valueSize.size}}, "he"};
  Value up = weightOf(names.keyValueUp, narrow, both, normal);
  Adapter ofBoth = model.addAdapter(names.keyValueUp, kv, narrow.dims, both.dims);
  auto expand = [&](int64_t begin, int64_t size) {
    Side part{{config.heads, Dim{size}}, "he"};
    Value y = model.einsum(equation(kv, narrow, part), kv, model.take(up, 1, begin, size));
    return model.adapt(y,
                       {ofBoth.down, ofBoth.up ? model.take(ofBoth.up, 1, begin, size) : Value()});
  };
  Value k = model.concat(shared, expand(0, latent.plainSize), 3);
  Value v = expand(latent.plainSize, config.valueSize.size);
  return {q, k, v};
}

TransformerBuilder::Heads TransformerBuilder::heads(const TransformerLayer &layer, Value x) {
  switch (family.queries) {
  case QueryForm::Separate:
    return separateHeads(x);
  case QueryForm::Thirds:
  case QueryForm::HeadThirds:
    return headsOfThirds(x);
  case QueryForm::Rows:
    return headsOfRows(x);
  case QueryForm::Latent:
    return headsOfLatents(*layer.rotary, x);
  }
  llvm_unreachable("all forms are handled");
}

/// x [B, S, D] -> [B, S, D]
Value TransformerBuilder::attention(const TransformerLayer &layer, int64_t number, Value x) {
  Heads split = heads(layer, x);
  Value q = split.q, k = split.k, v = split.v;
  q = normHeads(q, "q_norm");
  k = normHeads(k, "k_norm");
  if (config.attentionClip != 0)
    for (Value *value : {&q, &k, &v})
      *value = model.clip(*value, config.attentionClip);
  if (layer.rotary && !config.latent) {
    q = model.rotary(q, *layer.rotary);
    k = model.rotary(k, *layer.rotary);
  }
  AttentionScores scores{config.attentionScale, config.attentionSoftcap, layer.window,
                         /*causal=*/!family.isEncoder};
  if (config.scaleByLayer)
    scores.scale /= double(number + 1);
  Value sinks;
  if (config.hasSinks)
    sinks = model.addParameter("sinks", {{config.heads}}, normal);
  Value out = model.attention(q, k, v, scores, config.attentionDropout, sinks);
  out = linear(names.output, out, values, stream, config.outputBias, residual);
  return model.dropout(out, config.residualDropout);
}
