//===- Gpt2.cpp - model_type "gpt2" ---------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The model is transformers' GPT2LMHeadModel: learned positions, layer norms before attention and
// MLP, biases everywhere. Its projections are "Conv1D": weights are [in, out].
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ModelTypes.h"

#include <cmath>

using namespace dtc;
using mlir::Value;

namespace {

struct Gpt2Config {
  Dim vocab{50257, "vocab"};
  Dim embed{768, "embed"};
  Dim heads{12, "heads"};
  Dim headSize{64};
  Dim mlp{3072, "mlp"};
  Dim positions{1024};
  int64_t layers = 12;
  Activation activation = Activation::GeluTanh;
  double eps = 1e-5;
  double initializerRange = 0.02;
  double residualDropout = 0.1, embeddingDropout = 0.1, attentionDropout = 0.1;
  bool scaleByHeadSize = true;
  bool scaleByLayer = false;
  bool tied = true;
};

} // namespace

static Gpt2Config readConfig(ConfigReader &reader, const ImportOptions &options) {
  reader.addAlias("n_embd", "hidden_size");
  reader.addAlias("n_head", "num_attention_heads");
  reader.addAlias("n_layer", "num_hidden_layers");
  reader.addAlias("n_positions", "max_position_embeddings");

  Gpt2Config config;
  config.vocab.size = reader.getSize("vocab_size", config.vocab.size, ConfigReader::kMaxVocab);
  config.embed.size = reader.getSize("n_embd", config.embed.size);
  config.heads.size = reader.getSize("n_head", config.heads.size);
  config.headSize.size =
      checkHeadSize(reader, "n_embd", config.embed.size, "n_head", config.heads.size);
  config.mlp.size = reader.getOptionalSize("n_inner").value_or(4 * config.embed.size);
  config.positions.size = reader.getSize("n_positions", config.positions.size);
  checkSequence(reader, "n_positions", config.positions.size, options);
  config.layers = reader.getSize("n_layer", config.layers, ConfigReader::kMaxLayers);
  config.activation = readActivation(reader, "activation_function", "gelu_new");
  config.eps = reader.getPositive("layer_norm_epsilon", config.eps);
  config.initializerRange = reader.getNonNegative("initializer_range", config.initializerRange);
  config.scaleByHeadSize = reader.getBool("scale_attn_weights", config.scaleByHeadSize);
  config.scaleByLayer = reader.getBool("scale_attn_by_inverse_layer_idx", config.scaleByLayer);
  config.tied = reader.getBool("tie_word_embeddings", config.tied);
  // Changes the order of operations, and the result only where activations are f16.
  reader.getBool("reorder_and_upcast_attn", false);

  checkCommonFields(reader, {"GPT2LMHeadModel", "GPT2Model"});
  config.residualDropout = reader.getDropoutRate("resid_pdrop", config.residualDropout);
  config.embeddingDropout = reader.getDropoutRate("embd_pdrop", config.embeddingDropout);
  config.attentionDropout = reader.getDropoutRate("attn_pdrop", config.attentionDropout);
  return config;
}

/// x [B, S, D] -> [B, S, D]
static Value buildAttention(ModelBuilder &model, const Gpt2Config &config, int64_t layer, Value x) {
  Dim three{3};
  Init normal = Init::normal(config.initializerRange);
  Init residual = Init::normal(config.initializerRange / std::sqrt(2.0 * config.layers));

  // The queries, keys and values share a weight. It is the weight that is split, not what
  // comes out of it: the weight is the smaller of the two as soon as there are more tokens than D,
  // the three parts are the same for all microbatches, and q, k and v come out of their einsums
  // dense, as attention wants them.
  Value weight = model.addParameter(
      "c_attn.weight", {{config.embed}, {three, config.heads, config.headSize}}, normal);
  Value bias =
      model.addParameter("c_attn.bias", {{three, config.heads, config.headSize}}, Init::zeros());
  Adapter adapter =
      model.addAdapter("c_attn", x, {config.embed}, {three, config.heads, config.headSize});
  auto project = [&](int64_t which) {
    Value y = model.einsum("bsd,dhe->bshe", x, model.select(weight, /*dim=*/1, which));
    y = model.addBias(y, model.select(bias, /*dim=*/0, which));
    return model.adapt(y, adapter, which);
  };
  Value q = project(0);
  Value k = project(1);
  Value v = project(2);

  double scale = config.scaleByHeadSize ? 1 / std::sqrt(double(config.headSize.size)) : 1.0;
  if (config.scaleByLayer)
    scale /= double(layer + 1);
  Value out = model.causalAttention(q, k, v, scale, config.attentionDropout);

  weight = model.addParameter("c_proj.weight", {{config.heads, config.headSize}, {config.embed}},
                              residual);
  bias = model.addParameter("c_proj.bias", {{config.embed}}, Init::zeros());
  adapter = model.addAdapter("c_proj", out, {config.heads, config.headSize}, {config.embed});
  out = model.addBias(model.einsum("bshe,hed->bsd", out, weight), bias);
  return model.dropout(model.adapt(out, adapter), config.residualDropout);
}

/// x [B, S, D] -> [B, S, D]
static Value buildMlp(ModelBuilder &model, const Gpt2Config &config, Value x) {
  Init normal = Init::normal(config.initializerRange);
  Init residual = Init::normal(config.initializerRange / std::sqrt(2.0 * config.layers));
  Value h = model.einsum("bsd,df->bsf", x,
                         model.addParameter("c_fc.weight", {{config.embed}, {config.mlp}}, normal));
  h = model.addBias(h, model.addParameter("c_fc.bias", {{config.mlp}}, Init::zeros()));
  h = model.adapt(h, model.addAdapter("c_fc", x, {config.embed}, {config.mlp}));
  h = model.activation(config.activation, h);
  Value y =
      model.einsum("bsf,fd->bsd", h,
                   model.addParameter("c_proj.weight", {{config.mlp}, {config.embed}}, residual));
  y = model.addBias(y, model.addParameter("c_proj.bias", {{config.embed}}, Init::zeros()));
  y = model.adapt(y, model.addAdapter("c_proj", h, {config.mlp}, {config.embed}));
  return model.dropout(y, config.residualDropout);
}

mlir::OwningOpRef<mlir::ModuleOp> dtc::importGpt2(mlir::MLIRContext &context, ConfigReader &reader,
                                                  const ImportOptions &options) {
  Gpt2Config config = readConfig(reader, options);
  if (reader.hasErrors())
    return nullptr;

  ModelBuilder model(context, options, "transformer");
  Init normal = Init::normal(config.initializerRange);

  model.beginLayer("wte");
  Value wte = model.addParameter("weight", {{config.vocab}, {config.embed}}, normal);
  Value x = model.embed(wte);
  model.beginLayer("wpe");
  Value wpe = model.addParameter("weight", {{config.positions}, {config.embed}}, normal);
  x = model.addBias(x, model.takeFirst(wpe, options.seq));
  x = model.residual(model.dropout(x, config.embeddingDropout));

  for (int64_t layer = 0; layer < config.layers; ++layer) {
    std::string name = "h." + std::to_string(layer);
    model.beginLayer(name + ".ln_1");
    Value normed = model.layerNorm(x, config.eps);
    model.beginLayer(name + ".attn");
    x = model.residual(model.add(x, buildAttention(model, config, layer, normed)));
    model.beginLayer(name + ".ln_2");
    normed = model.layerNorm(x, config.eps);
    model.beginLayer(name + ".mlp");
    x = model.residual(model.add(x, buildMlp(model, config, normed)));
  }

  model.beginLayer("ln_f");
  x = model.layerNorm(x, config.eps);
  model.beginTopLevelLayer("lm_head");
  Value head =
      config.tied ? wte : model.addParameter("weight", {{config.vocab}, {config.embed}}, normal);
  Value logits = model.einsum("bsd,vd->bsv", x, head);
  logits = model.adapt(logits, model.addAdapter("", x, {config.embed}, {config.vocab}));
  model.beginTopLevelLayer("loss");
  return model.finish(model.meanLoss(logits), reader);
}
