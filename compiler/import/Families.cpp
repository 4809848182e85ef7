//===- Families.cpp - The table of families -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/Family.h"

#include <cmath>
#include <functional>

using namespace dtc;
using nlohmann::json;

//===----------------------------------------------------------------------===//
// Layers with windows
//===----------------------------------------------------------------------===//

/// Sets the windows of sliding layers; one that all keys of a sequence fit in is none.
static void setWindows(const ImportOptions &options, DecoderConfig &config, int64_t window) {
  for (DecoderLayer &layer : config.layers)
    if (layer.isSliding && window < options.seq)
      layer.window = window;
}

/// Which layers are sliding: 'layer_types' says so, or `isSliding` for those that it is absent of.
static void readLayerTypes(ConfigReader &reader, DecoderConfig &config,
                           llvm::function_ref<bool(int64_t)> isSliding) {
  const json *types = reader.find("layer_types");
  bool isThere = types && !types->is_null();
  if (isThere && (!types->is_array() || types->size() != config.layers.size())) {
    reader.error("'layer_types' is " + ConfigReader::show(*types) + ", expected a list of " +
                 std::to_string(config.layers.size()) + " words, one for each layer");
    return;
  }
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (!isThere) {
      config.layers[i].isSliding = isSliding(int64_t(i));
      continue;
    }
    const json &type = types->at(i);
    if (type != "full_attention" && type != "sliding_attention")
      reader.error("'layer_types' has " + ConfigReader::show(type) + " for layer " +
                   std::to_string(i) +
                   ", which is not supported; supported are full_attention, sliding_attention");
    config.layers[i].isSliding = type == "sliding_attention";
  }
}

/// Of families whose layers all see all keys.
static void expectNoWindows(ConfigReader &reader, DecoderConfig &config) {
  if (!reader.getBool("use_sliding_window", true))
    reader.find("sliding_window"); // there, but unused
  else
    reader.requireOneOf("sliding_window", {});
  readLayerTypes(reader, config, [](int64_t) { return false; });
  for (DecoderLayer &layer : config.layers)
    if (layer.isSliding) {
      reader.error(
          "'layer_types' has \"sliding_attention\", which models of this type do not have");
      return;
    }
}

/// 'sliding_window' of all layers, as Mistral has it; null is none.
static void readWindowOfAll(ConfigReader &reader, const ImportOptions &options,
                            DecoderConfig &config, std::optional<int64_t> fallback) {
  std::optional<int64_t> window = reader.getOptionalSize("sliding_window", INT64_MAX);
  if (!reader.has("sliding_window"))
    window = fallback;
  if (!window)
    return;
  for (DecoderLayer &layer : config.layers)
    layer.isSliding = true;
  setWindows(options, config, *window);
}

/// Qwen's: only where 'use_sliding_window' says so, from layer 'max_window_layers' on.
static void readQwenWindows(ConfigReader &reader, const ImportOptions &options,
                            DecoderConfig &config) {
  bool uses = reader.getBool("use_sliding_window", false);
  std::optional<int64_t> window = reader.getOptionalSize("sliding_window", INT64_MAX);
  if (!reader.has("sliding_window"))
    window = 4096;
  // 0 is a number of layers as well: all slide.
  double first = reader.getNonNegative("max_window_layers", 28);
  readLayerTypes(reader, config,
                 [&](int64_t layer) { return uses && window && double(layer) >= first; });
  if (uses && window)
    setWindows(options, config, *window);
}

/// Gemma's: `period` - 1 layers with windows, then one without.
static void readGemmaWindows(ConfigReader &reader, const ImportOptions &options,
                             DecoderConfig &config, int64_t period) {
  readLayerTypes(reader, config, [=](int64_t layer) { return (layer + 1) % period != 0; });
  setWindows(options, config, reader.getSize("sliding_window", 4096, INT64_MAX));
}

//===----------------------------------------------------------------------===//
// What families read beside the common fields
//===----------------------------------------------------------------------===//

static void readAttentionBias(ConfigReader &reader, DecoderConfig &config) {
  config.queryBias = config.outputBias = reader.getBool("attention_bias", false);
}

static void readAttentionDropout(ConfigReader &reader, DecoderConfig &config) {
  config.attentionDropout = reader.getDropoutRate("attention_dropout", 0);
}

static void readGpt2(ConfigReader &reader, const ImportOptions &options, DecoderConfig &config) {
  config.queryBias = config.outputBias = config.mlpBias = true;
  if (!reader.getBool("scale_attn_weights", true))
    config.attentionScale = 1;
  config.scaleByLayer = reader.getBool("scale_attn_by_inverse_layer_idx", false);
  // Changes the order of operations, and the result only where activations are f16.
  reader.getBool("reorder_and_upcast_attn", false);
  config.residualDropout = reader.getDropoutRate("resid_pdrop", 0.1);
  config.embeddingDropout = reader.getDropoutRate("embd_pdrop", 0.1);
  config.attentionDropout = reader.getDropoutRate("attn_pdrop", 0.1);
}

static void readLlama(ConfigReader &reader, const ImportOptions &options, DecoderConfig &config) {
  readAttentionBias(reader, config);
  config.mlpBias = reader.getBool("mlp_bias", false);
  expectNoWindows(reader, config);
  readAttentionDropout(reader, config);
}

static void readMistral(ConfigReader &reader, const ImportOptions &options, DecoderConfig &config) {
  readWindowOfAll(reader, options, config, /*fallback=*/4096);
  readAttentionDropout(reader, config);
}

static void readQwen2(ConfigReader &reader, const ImportOptions &options, DecoderConfig &config) {
  config.queryBias = true;
  readQwenWindows(reader, options, config);
  readAttentionDropout(reader, config);
}

static void readQwen3(ConfigReader &reader, const ImportOptions &options, DecoderConfig &config) {
  readAttentionBias(reader, config);
  readQwenWindows(reader, options, config);
  readAttentionDropout(reader, config);
}

/// Layers without rotary positions: 'no_rope_layers' has a 0 for each.
static void readNoRopeLayers(ConfigReader &reader, DecoderConfig &config) {
  int64_t interval = reader.getSize("no_rope_layer_interval", 4);
  const json *list = reader.find("no_rope_layers");
  bool isThere = list && !list->is_null();
  if (isThere && (!list->is_array() || list->size() != config.layers.size())) {
    reader.error("'no_rope_layers' is " + ConfigReader::show(*list) + ", expected a list of " +
                 std::to_string(config.layers.size()) +
                 " numbers, 0 for each layer without rotary positions and 1 for the others");
    return;
  }
  for (size_t i = 0; i < config.layers.size(); ++i)
    if (isThere ? list->at(i) == 0 : (int64_t(i) + 1) % interval == 0)
      config.layers[i].rotary.reset();
}

static void readSmolLm3(ConfigReader &reader, const ImportOptions &options, DecoderConfig &config) {
  readAttentionBias(reader, config);
  config.mlpBias = reader.getBool("mlp_bias", false);
  readNoRopeLayers(reader, config);
  bool uses = reader.getBool("use_sliding_window", false);
  std::optional<int64_t> window = reader.getOptionalSize("sliding_window", INT64_MAX);
  readLayerTypes(reader, config, [&](int64_t layer) {
    return uses && window && !config.layers[size_t(layer)].rotary;
  });
  if (uses && window)
    setWindows(options, config, *window);
  readAttentionDropout(reader, config);
}

static void readOlmo2(ConfigReader &reader, const ImportOptions &options, DecoderConfig &config) {
  readAttentionBias(reader, config);
  expectNoWindows(reader, config);
  readAttentionDropout(reader, config);
}

static void readGemma(ConfigReader &reader, const ImportOptions &options, DecoderConfig &config) {
  config.embeddingScale = std::sqrt(double(config.embed.size));
  readAttentionBias(reader, config);
  readAttentionDropout(reader, config);
  // Of transformers that read it instead of 'hidden_act'.
  reader.requireOneOf("hidden_activation", {"gelu_pytorch_tanh"});
  expectNoWindows(reader, config);
}

/// What Gemma 2 and later have in common.
static void readLaterGemma(ConfigReader &reader, DecoderConfig &config, double attentionCap,
                           double logitCap) {
  config.embeddingScale = std::sqrt(double(config.embed.size));
  readAttentionBias(reader, config);
  readAttentionDropout(reader, config);
  config.attentionScale = 1 / std::sqrt(reader.getPositive("query_pre_attn_scalar", 256));
  auto cap = [&](llvm::StringRef field, double fallback) {
    const json *value = reader.find(field);
    return value && value->is_null() ? 0 : value ? reader.getPositive(field, 1) : fallback;
  };
  config.attentionSoftcap = cap("attn_logit_softcapping", attentionCap);
  config.logitSoftcap = cap("final_logit_softcapping", logitCap);
  // Checkpoints carry the name of the old field as well.
  reader.requireOneOf("hidden_act", {"gelu_pytorch_tanh"});
  reader.requireOneOf("use_bidirectional_attention", {false});
}

static void readGemma2(ConfigReader &reader, const ImportOptions &options, DecoderConfig &config) {
  readLaterGemma(reader, config, /*attentionCap=*/50, /*logitCap=*/30);
  readGemmaWindows(reader, options, config, /*period=*/2);
}

static void readGemma3(ConfigReader &reader, const ImportOptions &options, DecoderConfig &config) {
  readLaterGemma(reader, config, /*attentionCap=*/0, /*logitCap=*/0);
  readGemmaWindows(reader, options, config, reader.getSize("sliding_window_pattern", 6));
}

static void readPhi3(ConfigReader &reader, const ImportOptions &options, DecoderConfig &config) {
  readWindowOfAll(reader, options, config, /*fallback=*/std::nullopt);
  readAttentionDropout(reader, config);
  config.residualDropout = reader.getDropoutRate("resid_pdrop", 0);
  reader.getDropoutRate("embd_pdrop", 0); // transformers does not apply it
}

/// What BERT and its like have in common.
static void readEncoder(ConfigReader &reader, DecoderConfig &config) {
  config.queryBias = config.outputBias = config.mlpBias = true;
  config.residualDropout = config.embeddingDropout =
      reader.getDropoutRate("hidden_dropout_prob", 0.1);
  config.attentionDropout = reader.getDropoutRate("attention_probs_dropout_prob", 0.1);
  reader.requireOneOf("position_embedding_type", {"absolute"});
  reader.requireOneOf("is_decoder", {false});
}

static void readBert(ConfigReader &reader, const ImportOptions &options, DecoderConfig &config) {
  readEncoder(reader, config);
}

/// Positions are numbered from that of padding on, which is the token's number.
static void readRoberta(ConfigReader &reader, const ImportOptions &options, DecoderConfig &config) {
  readEncoder(reader, config);
  // transformers applies it before the head whatever the field says.
  reader.requireOneOf("hidden_act", {"gelu"});
  config.firstPosition = int64_t(reader.getNonNegative("pad_token_id", 1)) + 1;
}

static void readGptNeoX(ConfigReader &reader, const ImportOptions &options, DecoderConfig &config) {
  config.mlpBias = true;
  config.queryBias = config.outputBias = reader.getBool("attention_bias", true);
  config.parallelResidual = reader.getBool("use_parallel_residual", true);
  readAttentionDropout(reader, config);
  config.residualDropout = config.embeddingDropout = reader.getDropoutRate("hidden_dropout", 0);
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static const ParameterNames kGpt2Names = {.model = "transformer",
                                          .layers = "h",
                                          .embedding = "wte",
                                          .positions = "wpe",
                                          .attention = "attn",
                                          .queries = "c_attn",
                                          .output = "c_proj",
                                          .up = "c_fc",
                                          .down = "c_proj",
                                          .beforeAttention = "ln_1",
                                          .beforeMlp = "ln_2",
                                          .finalNorm = "ln_f"};
static const ParameterNames kGptNeoXNames = {.model = "gpt_neox",
                                             .embedding = "embed_in",
                                             .attention = "attention",
                                             .queries = "query_key_value",
                                             .output = "dense",
                                             .up = "dense_h_to_4h",
                                             .down = "dense_4h_to_h",
                                             .finalNorm = "final_layer_norm",
                                             .head = "embed_out"};
static ParameterNames encoderNames(ParameterNames names) {
  names.layers = "encoder.layer";
  names.embedding = "embeddings.word_embeddings";
  names.positions = "embeddings.position_embeddings";
  names.tokenTypes = "embeddings.token_type_embeddings";
  names.embeddingNorm = "embeddings.LayerNorm";
  names.attention = "attention";
  names.queries = "self.query";
  names.keys = "self.key";
  names.values = "self.value";
  names.output = "output.dense";
  names.mlp = "";
  names.up = "intermediate.dense";
  names.down = "output.dense";
  names.beforeAttention = names.beforeMlp = names.finalNorm = "";
  names.afterAttention = "attention.output.LayerNorm";
  names.afterMlp = "output.LayerNorm";
  return names;
}
static const ParameterNames kBertNames =
    encoderNames({.model = "bert",
                  .headTransform = "cls.predictions.transform.dense",
                  .headNorm = "cls.predictions.transform.LayerNorm",
                  .head = "cls.predictions.decoder",
                  .headBias = "cls.predictions"});
static const ParameterNames kRobertaNames = encoderNames({.model = "roberta",
                                                          .headTransform = "lm_head.dense",
                                                          .headNorm = "lm_head.layer_norm",
                                                          .head = "lm_head.decoder",
                                                          .headBias = "lm_head"});
static const ParameterNames kNormsAfter = {.beforeAttention = "",
                                           .afterAttention = "post_attention_layernorm",
                                           .beforeMlp = "",
                                           .afterMlp = "post_feedforward_layernorm"};
static const ParameterNames kNormsAround = {.afterAttention = "post_attention_layernorm",
                                            .beforeMlp = "pre_feedforward_layernorm",
                                            .afterMlp = "post_feedforward_layernorm"};
static const ParameterNames kPhi3Names = {.queries = "qkv_proj", .gate = "gate_up_proj"};

static const Fields kGpt2Fields = {.hiddenSize = "n_embd",
                                   .heads = "n_head",
                                   .kvHeads = "",
                                   .headSize = "",
                                   .mlpSize = "n_inner",
                                   .positions = "n_positions",
                                   .layers = "n_layer",
                                   .activation = "activation_function",
                                   .eps = "layer_norm_epsilon",
                                   .ropeTheta = ""};
static const Fields kGptNeoXFields = {.kvHeads = "",
                                      .headSize = "",
                                      .eps = "layer_norm_eps",
                                      .ropeTheta = "rotary_emb_base",
                                      .rotaryPart = "rotary_pct"};
static const Fields kEncoderFields = {.kvHeads = "",
                                      .headSize = "",
                                      .eps = "layer_norm_eps",
                                      .ropeTheta = "",
                                      .tokenTypes = "type_vocab_size"};
static const Fields kLaterGemmaFields = {.activation = "hidden_activation"};
static const Fields kGemma3Fields = {.activation = "hidden_activation",
                                     .localTheta = "rope_local_base_freq"};

static Family encoder(Family family) {
  family.fields = kEncoderFields;
  family.norm = NormKind::Layer;
  family.mlp = MlpForm::Plain;
  family.normAfter = NormAfter::Sum;
  family.isEncoder = true;
  return family;
}
static constexpr Defaults kBertDefaults = {.vocab = 30522,
                                           .hiddenSize = 768,
                                           .heads = 12,
                                           .mlpSize = 3072,
                                           .positions = 512,
                                           .layers = 12,
                                           .activation = "gelu",
                                           .eps = 1e-12,
                                           .isTied = true};
static Defaults robertaDefaults() {
  Defaults defaults = kBertDefaults;
  defaults.vocab = 50265;
  return defaults;
}

llvm::ArrayRef<Family> dtc::allFamilies() {
  static const Family families[] = {
      encoder({.modelType = "bert",
               .architectures = {"BertForMaskedLM", "BertForPreTraining", "BertModel"},
               .names = kBertNames,
               .defaults = kBertDefaults,
               .readMore = readBert}),
      {.modelType = "gemma",
       .architectures = {"GemmaForCausalLM", "GemmaModel"},
       .defaults = {.vocab = 256000,
                    .hiddenSize = 3072,
                    .heads = 16,
                    .kvHeads = 16,
                    .headSize = 256,
                    .mlpSize = 24576,
                    .positions = 8192,
                    .layers = 28,
                    .activation = "gelu_pytorch_tanh",
                    .isTied = true},
       .norm = NormKind::RmsPlusOne,
       .readMore = readGemma},
      {.modelType = "gemma2",
       .architectures = {"Gemma2ForCausalLM", "Gemma2Model"},
       .names = kNormsAround,
       .fields = kLaterGemmaFields,
       .defaults = {.vocab = 256000,
                    .hiddenSize = 2304,
                    .heads = 8,
                    .kvHeads = 4,
                    .headSize = 256,
                    .mlpSize = 9216,
                    .positions = 8192,
                    .layers = 26,
                    .activation = "gelu_pytorch_tanh",
                    .isTied = true},
       .norm = NormKind::RmsPlusOne,
       .readMore = readGemma2},
      {.modelType = "gemma3_text",
       .architectures = {"Gemma3ForCausalLM", "Gemma3TextModel"},
       .names = kNormsAround,
       .fields = kGemma3Fields,
       .defaults = {.vocab = 262208,
                    .hiddenSize = 2304,
                    .heads = 8,
                    .kvHeads = 4,
                    .headSize = 256,
                    .mlpSize = 9216,
                    .positions = 131072,
                    .layers = 26,
                    .activation = "gelu_pytorch_tanh",
                    .ropeTheta = 1e6,
                    .isTied = true},
       .norm = NormKind::RmsPlusOne,
       .queryNorm = QueryNorm::Heads,
       .readMore = readGemma3},
      {.modelType = "gpt2",
       .architectures = {"GPT2LMHeadModel", "GPT2Model"},
       .names = kGpt2Names,
       .fields = kGpt2Fields,
       .defaults = {.vocab = 50257,
                    .hiddenSize = 768,
                    .heads = 12,
                    .positions = 1024,
                    .layers = 12,
                    .activation = "gelu_new",
                    .eps = 1e-5,
                    .isTied = true},
       .norm = NormKind::Layer,
       .queries = QueryForm::Thirds,
       .mlp = MlpForm::Plain,
       .isTransposed = true,
       .scalesResidualInit = true,
       .aliases = {{"n_embd", "hidden_size"},
                   {"n_head", "num_attention_heads"},
                   {"n_layer", "num_hidden_layers"},
                   {"n_positions", "max_position_embeddings"}},
       .readMore = readGpt2},
      {.modelType = "gpt_neox",
       .architectures = {"GPTNeoXForCausalLM", "GPTNeoXModel"},
       .names = kGptNeoXNames,
       .fields = kGptNeoXFields,
       .defaults = {.vocab = 50432,
                    .hiddenSize = 6144,
                    .heads = 64,
                    .mlpSize = 24576,
                    .layers = 44,
                    .activation = "gelu",
                    .eps = 1e-5,
                    .rotaryPart = 0.25},
       .norm = NormKind::Layer,
       .queries = QueryForm::HeadThirds,
       .mlp = MlpForm::Plain,
       .readMore = readGptNeoX},
      {.modelType = "llama",
       .architectures = {"LlamaForCausalLM", "LlamaModel"},
       .defaults = {.mlpSize = 11008},
       .readMore = readLlama},
      {.modelType = "mistral",
       .architectures = {"MistralForCausalLM", "MistralModel"},
       .defaults = {.kvHeads = 8, .mlpSize = 14336, .positions = 131072},
       .readMore = readMistral},
      {.modelType = "olmo2",
       .architectures = {"Olmo2ForCausalLM", "Olmo2Model"},
       .names = kNormsAfter,
       .defaults = {.vocab = 50304, .mlpSize = 11008, .eps = 1e-5},
       .queryNorm = QueryNorm::Width,
       .readMore = readOlmo2},
      {.modelType = "phi3",
       .architectures = {"Phi3ForCausalLM", "Phi3Model"},
       .names = kPhi3Names,
       .defaults = {.vocab = 32064,
                    .hiddenSize = 3072,
                    .mlpSize = 8192,
                    .positions = 4096,
                    .eps = 1e-5,
                    .originalPositions = 4096},
       .queries = QueryForm::Rows,
       .mlp = MlpForm::GatedFused,
       .readMore = readPhi3},
      {.modelType = "qwen2",
       .architectures = {"Qwen2ForCausalLM", "Qwen2Model"},
       .defaults = {.vocab = 151936, .kvHeads = 32, .mlpSize = 22016, .positions = 32768},
       .readMore = readQwen2},
      {.modelType = "qwen3",
       .architectures = {"Qwen3ForCausalLM", "Qwen3Model"},
       .defaults =
           {.vocab = 151936, .kvHeads = 32, .headSize = 128, .mlpSize = 22016, .positions = 32768},
       .queryNorm = QueryNorm::Heads,
       .readMore = readQwen3},
      encoder({.modelType = "roberta",
               .architectures = {"RobertaForMaskedLM", "RobertaModel"},
               .names = kRobertaNames,
               .defaults = robertaDefaults(),
               .readMore = readRoberta}),
      {.modelType = "smollm3",
       .architectures = {"SmolLM3ForCausalLM", "SmolLM3Model"},
       .defaults = {.vocab = 128256,
                    .hiddenSize = 2048,
                    .heads = 16,
                    .kvHeads = 4,
                    .mlpSize = 11008,
                    .positions = 32768,
                    .layers = 36,
                    .ropeTheta = 2e6,
                    .isTied = true},
       .readMore = readSmolLm3},
  };
  return families;
}
