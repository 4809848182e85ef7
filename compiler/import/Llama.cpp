//===- Llama.cpp - model_type "llama" -------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The model is transformers' LlamaForCausalLM: rotary positions, root mean square norms before
// attention and MLP, grouped queries, a gated MLP. Its projections are torch's Linear: weights are
// [out, in].
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ModelTypes.h"

#include <cmath>

using namespace dtc;
using mlir::Value;
using nlohmann::json;

namespace {

struct LlamaConfig {
  Dim vocab{32000, "vocab"};
  Dim embed{4096, "embed"};
  Dim heads{32, "heads"};
  Dim kvHeads{32, "kv_heads"};
  Dim headSize{128};
  Dim mlp{11008, "mlp"};
  int64_t layers = 32;
  Activation activation = Activation::Silu;
  double eps = 1e-6;
  double initializerRange = 0.02;
  double ropeTheta = 10000;
  double attentionDropout = 0;
  bool attentionBias = false;
  bool mlpBias = false;
  bool tied = false;
};

} // namespace

/// Reports the entries of a dictionary of rotary parameters that ask for more than plain rotary
/// positions.
static void checkRope(ConfigReader &reader, llvm::StringRef field) {
  const json *rope = reader.find(field);
  if (!rope || rope->is_null())
    return;
  if (!rope->is_object()) {
    reader.error(reader.quote(field) + " is " + ConfigReader::show(*rope) +
                 ", expected an object or null");
    return;
  }
  for (const char *key : {"rope_type", "type"})
    if (auto type = rope->find(key); type != rope->end() && *type != "default")
      reader.error(reader.quote(field) + " has '" + key + "' " + ConfigReader::show(*type) +
                   ", which is not supported; expected \"default\": positions that are not scaled");
  if (auto factor = rope->find("partial_rotary_factor"); factor != rope->end() && *factor != 1)
    reader.error(reader.quote(field) + " has 'partial_rotary_factor' " +
                 ConfigReader::show(*factor) + ", which is not supported; expected 1.0");
}

/// The base of the rotary frequencies: a field of its own, or, since transformers 5, an entry of
/// 'rope_parameters'.
static double readRopeTheta(ConfigReader &reader, double fallback) {
  checkRope(reader, "rope_scaling");
  checkRope(reader, "rope_parameters");
  reader.requireOneOf("partial_rotary_factor", {1.0});
  double theta = reader.getPositive("rope_theta", fallback);
  const json *rope = reader.find("rope_parameters");
  if (!rope || !rope->is_object() || !rope->contains("rope_theta"))
    return theta;
  const json &entry = rope->at("rope_theta");
  if (!entry.is_number() || !(entry.get<double>() > 0)) {
    reader.error("'rope_parameters' has 'rope_theta' " + ConfigReader::show(entry) +
                 ", expected a number greater than 0");
    return theta;
  }
  if (reader.has("rope_theta") && theta != entry.get<double>())
    reader.error("'rope_theta' is " + ConfigReader::show(theta) +
                 " but 'rope_parameters' has 'rope_theta' " + ConfigReader::show(entry) +
                 "; remove one");
  return entry.get<double>();
}

static LlamaConfig readConfig(ConfigReader &reader, const ImportOptions &options) {
  LlamaConfig config;
  config.vocab.size = reader.getSize("vocab_size", config.vocab.size, ConfigReader::kMaxVocab);
  config.embed.size = reader.getSize("hidden_size", config.embed.size);
  config.heads.size = reader.getSize("num_attention_heads", config.heads.size);
  config.kvHeads.size = reader.getOptionalSize("num_key_value_heads").value_or(config.heads.size);
  if (config.heads.size % config.kvHeads.size != 0)
    reader.error("'num_attention_heads' is " + std::to_string(config.heads.size) +
                 ", which is not a multiple of 'num_key_value_heads' (" +
                 std::to_string(config.kvHeads.size) +
                 "); every key-value head serves the same number of query heads");
  auto headSize = reader.getOptionalSize("head_dim", ConfigReader::kMaxSize / config.heads.size);
  config.headSize.size = headSize ? *headSize
                                  : checkHeadSize(reader, "hidden_size", config.embed.size,
                                                  "num_attention_heads", config.heads.size);
  if (config.headSize.size % 2 != 0)
    reader.error("the size of a head is " + std::to_string(config.headSize.size) + " (" +
                 (headSize ? "'head_dim'" : "'hidden_size' / 'num_attention_heads'") +
                 "), expected an even number; rotary positions rotate pairs");
  config.mlp.size = reader.getSize("intermediate_size", config.mlp.size);
  checkSequence(reader, "max_position_embeddings", reader.getSize("max_position_embeddings", 2048),
                options);
  config.layers = reader.getSize("num_hidden_layers", config.layers, ConfigReader::kMaxLayers);
  config.activation = readActivation(reader, "hidden_act", "silu");
  config.eps = reader.getPositive("rms_norm_eps", config.eps);
  config.initializerRange = reader.getNonNegative("initializer_range", config.initializerRange);
  config.ropeTheta = readRopeTheta(reader, config.ropeTheta);
  config.attentionBias = reader.getBool("attention_bias", config.attentionBias);
  config.mlpBias = reader.getBool("mlp_bias", config.mlpBias);
  config.tied = reader.getBool("tie_word_embeddings", config.tied);

  checkCommonFields(reader, {"LlamaForCausalLM", "LlamaModel"});
  if (!reader.getBool("use_sliding_window", true))
    reader.find("sliding_window"); // there, but unused
  else
    reader.requireOneOf("sliding_window", {});
  config.attentionDropout = reader.getDropoutRate("attention_dropout", config.attentionDropout);
  if (const json *pad = reader.find("pad_token_id"); pad && !pad->is_null())
    reader.warning("'pad_token_id' is " + ConfigReader::show(*pad) +
                   ": transformers does not train the embedding of that token, dtc does");
  return config;
}

/// x [B, S, D] -> [B, S, D]
static Value buildAttention(ModelBuilder &model, const LlamaConfig &config, Value x) {
  Init normal = Init::normal(config.initializerRange);
  auto project = [&](llvm::StringRef name, Dim heads) {
    Value weight =
        model.addParameter(name + ".weight", {{heads, config.headSize}, {config.embed}}, normal);
    Value y = model.einsum("bsd,hed->bshe", x, weight);
    if (config.attentionBias)
      y = model.addBias(
          y, model.addParameter(name + ".bias", {{heads, config.headSize}}, Init::zeros()));
    return model.adapt(y, model.addAdapter(name, x, {config.embed}, {heads, config.headSize}));
  };
  Value q = project("q_proj", config.heads);
  Value k = project("k_proj", config.kvHeads);
  Value v = project("v_proj", config.kvHeads);
  q = model.rotary(q, config.ropeTheta);
  k = model.rotary(k, config.ropeTheta);
  double scale = 1 / std::sqrt(double(config.headSize.size));
  Value attended = model.causalAttention(q, k, v, scale, config.attentionDropout);
  Value out =
      model.einsum("bshe,dhe->bsd", attended,
                   model.addParameter("o_proj.weight",
                                      {{config.embed}, {config.heads, config.headSize}}, normal));
  if (config.attentionBias)
    out = model.addBias(out, model.addParameter("o_proj.bias", {{config.embed}}, Init::zeros()));
  return model.adapt(
      out, model.addAdapter("o_proj", attended, {config.heads, config.headSize}, {config.embed}));
}

/// x [B, S, D] -> [B, S, D]
static Value buildMlp(ModelBuilder &model, const LlamaConfig &config, Value x) {
  auto project = [&](llvm::StringRef name, llvm::StringRef equation, Value input, Dim from,
                     Dim to) {
    Value weight =
        model.addParameter(name + ".weight", {{to}, {from}}, Init::normal(config.initializerRange));
    Value y = model.einsum(equation, input, weight);
    if (config.mlpBias)
      y = model.addBias(y, model.addParameter(name + ".bias", {{to}}, Init::zeros()));
    return model.adapt(y, model.addAdapter(name, input, {from}, {to}));
  };
  Value gate = project("gate_proj", "bsd,fd->bsf", x, config.embed, config.mlp);
  Value up = project("up_proj", "bsd,fd->bsf", x, config.embed, config.mlp);
  Value h = model.mul(model.activation(config.activation, gate), up);
  return project("down_proj", "bsf,df->bsd", h, config.mlp, config.embed);
}

mlir::OwningOpRef<mlir::ModuleOp> dtc::importLlama(mlir::MLIRContext &context, ConfigReader &reader,
                                                   const ImportOptions &options) {
  LlamaConfig config = readConfig(reader, options);
  if (reader.hasErrors())
    return nullptr;

  ModelBuilder model(context, options, "model");
  Init normal = Init::normal(config.initializerRange);

  model.beginLayer("embed_tokens");
  Value table = model.addParameter("weight", {{config.vocab}, {config.embed}}, normal);
  Value x = model.residual(model.embed(table));

  for (int64_t layer = 0; layer < config.layers; ++layer) {
    std::string name = "layers." + std::to_string(layer);
    model.beginLayer(name + ".input_layernorm");
    Value normed = model.rmsNorm(x, config.eps);
    model.beginLayer(name + ".self_attn");
    x = model.residual(model.add(x, buildAttention(model, config, normed)));
    model.beginLayer(name + ".post_attention_layernorm");
    normed = model.rmsNorm(x, config.eps);
    model.beginLayer(name + ".mlp");
    x = model.residual(model.add(x, buildMlp(model, config, normed)));
  }

  model.beginLayer("norm");
  x = model.rmsNorm(x, config.eps);
  model.beginTopLevelLayer("lm_head");
  Value head =
      config.tied ? table : model.addParameter("weight", {{config.vocab}, {config.embed}}, normal);
  Value logits = model.einsum("bsd,vd->bsv", x, head);
  logits = model.adapt(logits, model.addAdapter("", x, {config.embed}, {config.vocab}));
  model.beginTopLevelLayer("loss");
  return model.finish(model.meanLoss(logits), reader);
}
