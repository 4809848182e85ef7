//===- BuildTransformer.cpp - The model of a family ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/Family.h"
#include "dialects/dtc/DtcDialect.h"

#include <cmath>

using namespace dtc;
using mlir::Value;

/// The options with those that follow from the family.
static ImportOptions optionsFor(const Family &family, ImportOptions options) {
  if (family.isEncoder && family.head == HeadKind::Tokens && !options.ignoreIndex)
    options.ignoreIndex = -100; // of the tokens that are not masked, as transformers has it
  return options;
}

/// "q_proj.weight"; "weight" where the current layer is meant.
static std::string parameterName(llvm::StringRef layer, llvm::StringRef name) {
  return layer.empty() ? name.str() : (layer + "." + name).str();
}

namespace {

class TransformerBuilder {
public:
  TransformerBuilder(mlir::MLIRContext &context, const Family &family,
                     const TransformerConfig &config, const ImportOptions &options)
      : model(context, optionsFor(family, options), family.names.model, family.names.head),
        family(family), names(family.names), config(config), options(options),
        normal(model.normal(config.initializerRange)),
        residual(family.scalesResidualInit
                     ? model.normal(config.initializerRange /
                                    std::sqrt(2.0 * double(config.layers.size())))
                     : normal) {}

  mlir::OwningOpRef<mlir::ModuleOp> run(ConfigReader &reader);

private:
  /// A side of a linear layer: dimensions, and a letter for each in einsums.
  struct Side {
    std::vector<Dim> dims;
    llvm::StringRef letters;
  };
  struct Heads {
    Value q, k, v;
  };

  Value weightOf(llvm::StringRef name, const Side &in, const Side &out, mlir::Attribute init);
  /// The equation of a linear layer of x [B, S, in...] or [B, in...]: "bs<in>,<weight>->bs<out>".
  std::string equation(Value x, const Side &in, const Side &out) const;
  Value linear(llvm::StringRef name, Value x, const Side &in, const Side &out, bool hasBias,
               mlir::Attribute init);
  Value norm(Value x);
  Value normUnder(const std::string &layer, Value x);
  Value addToStream(Value x, Value part, const std::string &normAfter);
  Value normHeads(Value x, llvm::StringRef name);
  Heads separateHeads(Value x);
  Heads heads(const TransformerLayer &layer, Value x);
  Heads headsOfThirds(Value x);
  Heads headsOfRows(Value x);
  Heads headsOfLatents(const Rotary &rotary, Value x);
  Value attention(const TransformerLayer &layer, int64_t number, Value x);
  std::pair<Value, Value> gateAndUp(Value x);
  Value mlp(Value x);
  void beginBalance();
  void addToBalance(const Routing &routing);
  Value experts(const std::string &layer, Value x);
  Value expertLinear(llvm::StringRef name, Value rows, const Side &in, const Side &out,
                     mlir::Attribute init, const Routing &routing);
  Value gatedExperts(Value rows, const Routing &routing);
  Value clampedExperts(Value rows, const Routing &routing);
  Value sharedExpert(Value x);
  Value embedTokens();
  Value parameterOf(llvm::StringRef name, const std::vector<std::vector<Dim>> &shape);
  Value embedPatches();
  Value embedding();
  Value layer(int64_t number, Value x);
  Value tokenHead(Value x);
  Value head(Value x);

  ModelBuilder model;
  const Family &family;
  const ParameterNames &names;
  const TransformerConfig &config;
  const ImportOptions &options;
  mlir::Attribute normal, residual;
  const Side stream{{config.embed}, "d"}, queries{{config.heads, config.headSize}, "he"},
      keys{{config.kvHeads, config.headSize}, "he"}, values{{config.heads, config.valueSize}, "he"},
      inner{{config.mlp}, "f"};
  Value table; ///< the embedding
  /// The loads of the layers so far, where the balance loss compares the tokens of all layers; none
  /// where each layer has a loss of its own.
  std::optional<ExpertLoads> loads;
  Value balance; ///< the balance loss, or that of the layers so far where each has its own
};

} // namespace

//===----------------------------------------------------------------------===//
// Parts of layers
//===----------------------------------------------------------------------===//

Value TransformerBuilder::weightOf(llvm::StringRef name, const Side &in, const Side &out,
                                   mlir::Attribute init) {
  std::string weight = parameterName(name, "weight");
  if (family.isTransposed)
    return model.addParameter(weight, {in.dims, out.dims}, init);
  return model.addParameter(weight, {out.dims, in.dims}, init);
}

std::string TransformerBuilder::equation(Value x, const Side &in, const Side &out) const {
  auto rank = size_t(mlir::cast<mlir::RankedTensorType>(x.getType()).getRank());
  llvm::StringRef first = llvm::StringRef("bs").take_front(rank - in.dims.size());
  std::string weight =
      family.isTransposed ? (in.letters + out.letters).str() : (out.letters + in.letters).str();
  return (first + in.letters + "," + weight + "->" + first + out.letters).str();
}

Value TransformerBuilder::linear(llvm::StringRef name, Value x, const Side &in, const Side &out,
                                 bool hasBias, mlir::Attribute init) {
  Value weight = weightOf(name, in, out, init);
  Value y = model.einsum(equation(x, in, out), x, weight);
  if (hasBias)
    y = model.addBias(y,
                      model.addParameter(parameterName(name, "bias"), {out.dims}, model.zeros()));
  return model.adapt(y, model.addAdapter(name, x, in.dims, out.dims));
}

Value TransformerBuilder::norm(Value x) {
  if (family.norm == NormKind::Layer)
    return model.layerNorm(x, config.eps);
  return model.rmsNorm(x, config.eps, family.norm == NormKind::RmsPlusOne);
}

/// `x` if the layer has no name.
Value TransformerBuilder::normUnder(const std::string &layer, Value x) {
  if (layer.back() == '.')
    return x;
  model.beginLayer(layer);
  return norm(x);
}

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

/// x [B, S, D] -> twice [B, S, F]
std::pair<Value, Value> TransformerBuilder::gateAndUp(Value x) {
  if (family.mlp == MlpForm::Gated) {
    Value gate = linear(names.gate, x, stream, inner, config.mlpBias, normal);
    return {gate, linear(names.up, x, stream, inner, config.mlpBias, normal)};
  }
  Side both{{Dim{2}, config.mlp}, ""};
  Value weight = weightOf(names.gate, stream, both, normal);
  Adapter adapter = model.addAdapter(names.gate, x, stream.dims, both.dims);
  auto project = [&](int64_t which) {
    Value y = model.einsum(equation(x, stream, inner), x, model.select(weight, 0, which));
    return model.adapt(y, adapter, which);
  };
  Value gate = project(0);
  return {gate, project(1)};
}

/// x [B, S, D] -> [B, S, D]
Value TransformerBuilder::mlp(Value x) {
  Value h;
  if (family.mlp == MlpForm::Plain) {
    h = model.activation(config.activation,
                         linear(names.up, x, stream, inner, config.mlpBias, normal));
  } else {
    auto [gate, up] = gateAndUp(x);
    h = model.mul(model.activation(config.activation, gate), up);
  }
  Value y = linear(names.down, h, inner, stream, config.mlpBias, residual);
  return model.dropout(y, config.residualDropout);
}

/// A MLP of its own inner size for all tokens, x [B, S, D] -> [B, S, D], times the sigmoid of a
/// gate if the family has one.
Value TransformerBuilder::sharedExpert(Value x) {
  const Side shared{{config.experts->sharedMlp}, "f"};
  std::string prefix = names.sharedExpert.str() + ".";
  Value gate = linear(prefix + names.expertGate.str(), x, stream, shared, config.mlpBias, normal);
  Value up = linear(prefix + names.expertUp.str(), x, stream, shared, config.mlpBias, normal);
  Value h = model.mul(model.activation(config.activation, gate), up);
  Value y = linear(prefix + names.expertDown.str(), h, shared, stream, config.mlpBias, residual);
  if (names.sharedGate.empty())
    return y;
  Value factor = linear(names.sharedGate, x, stream, {{Dim{1}}, "f"}, false, normal);
  return model.mulRows(y, model.activation(Activation::Sigmoid, factor));
}

/// The linear layer `name` of each expert: rows [X, B, C, in] -> [X, B, C, out].
Value TransformerBuilder::expertLinear(llvm::StringRef name, Value rows, const Side &in,
                                       const Side &out, mlir::Attribute init,
                                       const Routing &routing) {
  const Dim &number = config.experts->number, &from = in.dims.front(), &to = out.dims.front();
  FileStack layers{names.experts.str(), 0, number.size, name.str()}, weights = layers;
  weights.after += ".weight";
  Value weight = model.addParameter(weights.name(), {{number}, {to}, {from}}, init);
  std::string equation =
      ("xbc" + in.letters + ",x" + out.letters + in.letters + "->xbc" + out.letters).str();
  Value y = model.expertProduct(equation, rows, weight, routing);
  return model.adaptExperts(y, layers, rows, number, from, to, routing);
}

/// The rows of experts [X, B, C, D] -> [X, B, C, D], times their weights.
Value TransformerBuilder::gatedExperts(Value rows, const Routing &routing) {
  const Side ofExpert{{config.experts->mlp}, "f"};
  Value gated = model.activation(
      config.activation, expertLinear(names.expertGate, rows, stream, ofExpert, normal, routing));
  Value up = expertLinear(names.expertUp, rows, stream, ofExpert, normal, routing);
  Value h = model.mul(gated, up);
  // Before the last product, which is linear: there the rows are narrower than after it.
  h = model.weightRows(h, routing);
  return expertLinear(names.expertDown, h, ofExpert, stream, residual, routing);
}

/// Experts in the form Clamped. Rows without a token have a weight of 0, and so do their biases.
Value TransformerBuilder::clampedExperts(Value rows, const Routing &routing) {
  const ExpertsConfig &experts = *config.experts;
  std::string prefix = names.experts.str() + ".";
  Dim both{2};
  Value weights = model.addParameter(
      prefix + "gate_up_proj", {{experts.number}, {config.embed}, {experts.mlp, both}}, normal);
  Value biases = model.addParameter(prefix + "gate_up_proj_bias",
                                    {{experts.number}, {experts.mlp, both}}, model.zeros());
  Value down = model.addParameter(prefix + "down_proj",
                                  {{experts.number}, {experts.mlp}, {config.embed}}, residual);
  Value downBias = model.addParameter(prefix + "down_proj_bias", {{experts.number}, {config.embed}},
                                      model.zeros());
  // PEFT wraps the module once for each of its tensors that has an adapter, and names the adapter
  // of the first one as that of the base layer of the other wrapper.
  const bool adaptsSides = model.adaptsTensor(prefix + "gate_up_proj"),
             adaptsDown = model.adaptsTensor(prefix + "down_proj");
  Adapter ofSides;
  if (adaptsSides)
    ofSides = model.addTensorAdapter(names.experts.str() + (adaptsDown ? ".base_layer" : ""), rows,
                                     experts.number, config.embed, {experts.mlp, both}, routing);
  auto project = [&](int64_t which) {
    Value y = model.expertProduct("xbcd,xdf->xbcf", rows, model.select(weights, 3, which), routing);
    if (ofSides.down)
      y = model.addTensorAdapterTo(y, ofSides.down, model.select(ofSides.up, 1, which), routing);
    return model.addExpertBias(y, model.select(biases, 2, which));
  };
  Value gate = model.clipAbove(project(0), experts.clampLimit);
  Value up = model.clip(project(1), experts.clampLimit);
  Value gated =
      model.mul(gate, model.activation(Activation::Sigmoid, model.scale(gate, experts.clampAlpha)));
  Value h = model.weightRows(model.mul(model.shift(up, 1), gated), routing);
  Value y = model.expertProduct("xbcf,xfd->xbcd", h, down, routing);
  if (adaptsDown) {
    Adapter ofDown = model.addTensorAdapter(names.experts, h, experts.number, experts.mlp,
                                            {config.embed}, routing);
    y = model.addTensorAdapterTo(y, ofDown.down, ofDown.up, routing);
  }
  return model.addWeightedBias(y, downBias, routing);
}

/// Begins the sums of the balance loss with zeros, so that the first layer adds to them as the
/// others do.
void TransformerBuilder::beginBalance() {
  if (!config.experts || config.experts->balanceLoss == BalanceLoss::None)
    return;
  model.beginTopLevelLayer("balance_loss");
  loads = model.noLoads(config.experts->number.size,
                        config.experts->balanceLoss == BalanceLoss::Sequence);
  if (config.experts->balancesEachLayer)
    balance = model.zero();
}

/// Each layer adds its part to the results of the layers before it, so that a layer has values of
/// the one before it alone.
void TransformerBuilder::addToBalance(const Routing &routing) {
  if (!loads)
    return;
  if (balance)
    balance = model.add(balance, model.balanceLoss(model.addLoads(*loads, routing)));
  else
    loads = model.addLoads(*loads, routing);
}

/// x [B, S, D] -> [B, S, D]
Value TransformerBuilder::experts(const std::string &layer, Value x) {
  const ExpertsConfig &experts = *config.experts;
  model.beginLayer(layer);
  const Side choices{{Dim{experts.number.size}}, "f"};
  Value logits = model.einsum(equation(x, stream, choices), x,
                              weightOf(names.router, stream, choices, normal));
  if (experts.form == ExpertForm::Clamped)
    logits =
        model.addBias(logits, model.addParameter(names.router + ".bias", {choices.dims}, normal));
  // PEFT adapts linear layers, and some routers of transformers are of other classes.
  if (experts.hasLinearRouter)
    logits = model.adapt(logits, model.addAdapter(names.router, x, stream.dims, choices.dims));
  RoutingKind kind = experts.routing;
  kind.capacity = options.expertCapacity(experts.number.size, kind.selected);
  Value bias;
  if (experts.hasBias)
    bias = model.addFrozenParameter(names.router + ".e_score_correction_bias",
                                    {experts.number.size}, model.zeros());
  Routing routing = model.route(logits, kind, bias);
  addToBalance(routing);
  bool mayDrop = routing.capacity < options.seq;
  if (options.expertMetrics)
    model.addMetric("expert_tokens", model.tokensOfExperts(routing));
  if (options.mustFit && mayDrop)
    model.addMetric("tokens_without_rows", model.droppedTokens(routing),
                    DtcDialect::kMustBeZeroAttrName);
  else if (options.expertMetrics && mayDrop)
    model.addMetric("dropped_tokens", model.droppedTokens(routing));
  Value rows = model.dispatch(x, routing);
  rows = experts.form == ExpertForm::Clamped ? clampedExperts(rows, routing)
                                             : gatedExperts(rows, routing);
  Value y = model.combine(rows, routing, x);
  if (experts.sharedMlp.size != 0)
    y = model.add(y, sharedExpert(x));
  return model.dropout(y, config.residualDropout);
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

/// tokens [B, S] -> [B, S, D]
Value TransformerBuilder::embedTokens() {
  model.addTextInputs();
  model.beginLayer(names.embedding);
  table = model.addParameter("weight", {{config.vocab}, {config.embed}}, normal);
  Value x = model.embed(table);
  if (config.embeddingScale != 1)
    x = model.scale(x, config.embeddingScale);
  if (!names.positions.empty()) {
    model.beginLayer(names.positions);
    Value rows = model.addParameter("weight", {{config.positions}, {config.embed}}, normal);
    x = model.addPositions(x, rows, config.firstPosition);
  }
  if (!names.tokenTypes.empty()) {
    model.beginLayer(names.tokenTypes);
    Value types = model.addParameter("weight", {{config.tokenTypes}, {config.embed}}, normal);
    x = model.addBias(x, model.select(types, 0, 0)); // all tokens are of type 0
  }
  return x;
}

/// A parameter that is no layer's "weight" or "bias" ("embeddings.cls_token").
Value TransformerBuilder::parameterOf(llvm::StringRef name,
                                      const std::vector<std::vector<Dim>> &shape) {
  auto [layer, parameter] = name.rsplit('.');
  model.beginLayer(layer);
  return model.addParameter(parameter, shape, normal);
}

/// images [B, C, H, W] -> [B, S, D]: the class token, and then the patches. Patches do not overlap,
/// so that the convolution of transformers is a linear layer of each of them.
Value TransformerBuilder::embedPatches() {
  const ImageConfig &images = *config.images;
  Value pixels = model.addImageInputs(images.channels, images.height, images.width);
  model.beginLayer(names.embedding);
  Value x = model.cutPatches(pixels, images.patchHeight, images.patchWidth);
  Value weight = model.addParameter(
      "weight",
      {{config.embed}, {{images.channels}}, {{images.patchHeight}}, {{images.patchWidth}}}, normal);
  Value bias = model.addParameter("bias", {{config.embed}}, model.zeros());
  x = model.addBias(model.einsum("bschw,dchw->bsd", x, weight), bias);
  Value classToken = parameterOf(names.classToken, {{{1}}, {{1}}, {config.embed}});
  x = model.prependRow(classToken, x);
  Value rows = parameterOf(names.positions, {{{1}}, {config.positions}, {config.embed}});
  return model.addBias(x, model.select(rows, 0, 0));
}

Value TransformerBuilder::embedding() {
  Value x = family.input == InputKind::Images ? embedPatches() : embedTokens();
  if (!names.embeddingNorm.empty()) {
    x = normUnder(names.embeddingNorm.str(), model.residual(x));
    return model.dropout(x, config.embeddingDropout);
  }
  return model.residual(model.dropout(x, config.embeddingDropout));
}

/// Adds the result of attention or the MLP to the residual stream, with the norm that follows the
/// part or the sum.
Value TransformerBuilder::addToStream(Value x, Value part, const std::string &normAfter) {
  if (family.normAfter == NormAfter::Sum)
    return normUnder(normAfter, model.residual(model.add(x, part)));
  return model.residual(model.add(x, normUnder(normAfter, part)));
}

Value TransformerBuilder::layer(int64_t number, Value x) {
  std::string name = (names.layers + "." + llvm::Twine(number)).str();
  auto layerName = [&](llvm::StringRef part) { return name + "." + part.str(); };
  Value normed = normUnder(layerName(names.beforeAttention), x);
  model.beginLayer(layerName(names.attention));
  Value attended = attention(config.layers[number], number, normed);
  if (config.parallelResidual)
    normed = normUnder(layerName(names.beforeMlp), x);
  x = addToStream(x, attended, layerName(names.afterAttention));
  if (!config.parallelResidual)
    normed = normUnder(layerName(names.beforeMlp), x);
  if (config.layers[number].hasExperts)
    return addToStream(x, experts(layerName(names.mixture), normed), layerName(names.afterMlp));
  model.beginLayer(names.mlp.empty() ? name : layerName(names.mlp));
  return addToStream(x, mlp(normed), layerName(names.afterMlp));
}

/// x [B, S, D] -> [B, S, V]
Value TransformerBuilder::tokenHead(Value x) {
  if (!names.headTransform.empty()) {
    model.beginTopLevelLayer(names.headTransform);
    const Side transformed{{Dim{config.embed.size}}, "f"};
    x = model.activation(config.headActivation, linear("", x, stream, transformed, true, normal));
    model.beginTopLevelLayer(names.headNorm);
    x = norm(x);
  }
  model.beginTopLevelLayer(names.head);
  Value weight =
      config.tied ? table : model.addParameter("weight", {{config.vocab}, {config.embed}}, normal);
  Value logits = model.einsum("bsd,vd->bsv", x, weight);
  logits = model.adapt(logits, model.addAdapter("", x, stream.dims, {config.vocab}));
  if (!config.headBias.empty()) {
    model.beginTopLevelLayer(config.headBias);
    logits = model.addBias(logits, model.addParameter("bias", {{config.vocab}}, model.zeros()));
  }
  if (config.logitSoftcap != 0)
    logits = model.softcap(logits, config.logitSoftcap);
  return logits;
}

/// The logits of the final norm of x [B, S, D], or of the class token's row of it.
Value TransformerBuilder::head(Value x) {
  bool ofClassToken = family.head == HeadKind::ClassToken;
  if (ofClassToken) {
    model.beginLayer(names.finalNorm);
    x = model.select(x, 1, 0); // each row is normalized by itself
  }
  if (!names.finalNorm.empty())
    x = normUnder(names.finalNorm.str(), x);
  if (!ofClassToken)
    return tokenHead(x);
  model.beginTopLevelLayer(names.head);
  return linear("", x, stream, {{config.classes}, "v"}, /*hasBias=*/true, normal);
}

mlir::OwningOpRef<mlir::ModuleOp> TransformerBuilder::run(ConfigReader &reader) {
  Value x = embedding();
  beginBalance();
  for (size_t number = 0; number < config.layers.size(); ++number)
    x = layer(int64_t(number), x);
  Value logits = head(x);
  model.beginTopLevelLayer("loss");
  Value loss = model.meanLoss(logits);
  if (loads && loads->tokens > 0)
    balance = model.balanceLoss(*loads);
  if (balance) {
    if (options.expertMetrics)
      model.addMetric("balance_loss", balance, DtcDialect::kMeanAttrName, /*ofModel=*/true);
    loss = model.add(loss, model.scale(balance, config.experts->balanceFactor));
  }
  return model.finish(loss, reader);
}

mlir::OwningOpRef<mlir::ModuleOp> dtc::buildTransformer(mlir::MLIRContext &context,
                                                        ConfigReader &reader, const Family &family,
                                                        const TransformerConfig &config,
                                                        const ImportOptions &options) {
  return TransformerBuilder(context, family, config, options).run(reader);
}
