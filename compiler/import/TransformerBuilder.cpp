//===- TransformerBuilder.cpp - The model of a family ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/TransformerBuilder.h"
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

TransformerBuilder::TransformerBuilder(mlir::MLIRContext &context, const Family &family,
                                       const TransformerConfig &config,
                                       const ImportOptions &options)
    : model(context, optionsFor(family, options), family.names.model, family.names.head),
      family(family), names(family.names), config(config), options(options),
      normal(model.normal(config.initializerRange)),
      residual(family.scalesResidualInit
                   ? model.normal(config.initializerRange /
                                  std::sqrt(2.0 * double(config.layers.size())))
                   : normal) {}

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
