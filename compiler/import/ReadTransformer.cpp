//===- ReadTransformer.cpp - The fields that families share -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/RotaryConfig.h"

#include <cmath>

using namespace dtc;
using nlohmann::json;

/// `embed` / `heads`; an error unless that is an integer.
static int64_t checkHeadSize(ConfigReader &reader, const Fields &fields,
                             const TransformerConfig &config) {
  int64_t embed = config.embed.size, heads = config.heads.size;
  if (embed % heads == 0)
    return embed / heads;
  reader.error(reader.quote(fields.hiddenSize) + " is " + std::to_string(embed) +
               ", which is not a multiple of " + reader.quote(fields.heads) + " (" +
               std::to_string(heads) + "); every head has the same size");
  return 2;
}

static Activation readActivation(ConfigReader &reader, llvm::StringRef field,
                                 llvm::StringRef fallback) {
  return reader.getChoice<Activation>(field, fallback,
                                      {{"gelu_new", Activation::GeluTanh},
                                       {"gelu_pytorch_tanh", Activation::GeluTanh},
                                       {"gelu_fast", Activation::GeluTanh},
                                       {"gelu_accurate", Activation::GeluTanh},
                                       {"gelu_python_tanh", Activation::GeluTanh},
                                       {"gelu", Activation::Gelu},
                                       {"gelu_python", Activation::Gelu},
                                       {"relu", Activation::Relu},
                                       {"silu", Activation::Silu},
                                       {"swish", Activation::Silu},
                                       {"tanh", Activation::Tanh},
                                       {"sigmoid", Activation::Sigmoid}});
}

/// The sizes of heads with latent keys and values, and of the latents.
static void readLatentAttention(ConfigReader &reader, TransformerConfig &config) {
  int64_t heads = config.heads.size, most = ConfigReader::kMaxSize / heads / 2;
  LatentAttention &latent = config.latent.emplace();
  latent.keySize = reader.getSize("kv_lora_rank", 512);
  latent.queryLatent = reader.getOptionalSize("q_lora_rank");
  if (!reader.has("q_lora_rank"))
    latent.queryLatent = 1536;
  latent.plainSize = reader.getSize("qk_nope_head_dim", 128, most);
  latent.rotatedSize = reader.getSize("qk_rope_head_dim", 64, most);
  config.valueSize.size = reader.getSize("v_head_dim", 128, most);
  config.headSize.size = latent.plainSize + latent.rotatedSize;
  config.kvHeads = config.heads;
  if (latent.rotatedSize % 2 != 0)
    reader.error("'qk_rope_head_dim' is " + std::to_string(latent.rotatedSize) +
                 ", expected an even number; rotary positions rotate pairs");
  reader.requireOneOf("num_key_value_heads", {heads});
  // transformers writes these two, which follow from other fields.
  reader.requireOneOf("head_dim", {latent.rotatedSize});
  reader.requireOneOf("qk_head_dim", {config.headSize.size});
  config.attentionScale = 1 / std::sqrt(double(config.headSize.size));
}

/// How many key-value heads and elements of a head there are.
static void readHeads(ConfigReader &reader, const Family &family, TransformerConfig &config) {
  const Fields &fields = family.fields;
  const Defaults &defaults = family.defaults;
  config.heads.size = reader.getSize(fields.heads, defaults.heads);
  if (family.queries == QueryForm::Latent)
    return readLatentAttention(reader, config);
  config.kvHeads.size = config.heads.size;
  if (!fields.kvHeads.empty()) {
    config.kvHeads.axis = "kv_heads";
    // Null, for transformers, is as many as heads; absence is the family's number.
    int64_t fallback =
        defaults.kvHeads && !reader.has(fields.kvHeads) ? defaults.kvHeads : config.heads.size;
    config.kvHeads.size = reader.getOptionalSize(fields.kvHeads).value_or(fallback);
    if (config.heads.size % config.kvHeads.size != 0)
      reader.error(reader.quote(fields.heads) + " is " + std::to_string(config.heads.size) +
                   ", which is not a multiple of " + reader.quote(fields.kvHeads) + " (" +
                   std::to_string(config.kvHeads.size) +
                   "); every key-value head serves the same number of query heads");
  }
  std::optional<int64_t> size;
  if (!fields.headSize.empty()) {
    size = reader.getOptionalSize(fields.headSize, ConfigReader::kMaxSize / config.heads.size);
    if (!size && defaults.headSize && !reader.has(fields.headSize))
      size = defaults.headSize;
  }
  config.headSize.size = size ? *size : checkHeadSize(reader, fields, config);
  if (!fields.ropeTheta.empty() && config.headSize.size % 2 != 0)
    reader.error("the size of a head is " + std::to_string(config.headSize.size) + " (" +
                 (size ? reader.quote(fields.headSize)
                       : reader.quote(fields.hiddenSize) + " / " + reader.quote(fields.heads)) +
                 "), expected an even number; rotary positions rotate pairs");
  config.attentionScale = 1 / std::sqrt(double(config.headSize.size));
  config.valueSize = config.headSize;
}

/// The sequence of a model that reads images, whose length the configuration says.
static void setSequenceOfImages(ConfigReader &reader, const TransformerConfig &config,
                                ImportOptions &options) {
  int64_t positions = config.positions.size;
  const ImageConfig &images = *config.images;
  auto shape = [](int64_t height, int64_t width) {
    return std::to_string(height) + " x " + std::to_string(width);
  };
  if (options.seq != 0 && options.seq != positions)
    reader.error("images of " + shape(images.height, images.width) + " in patches of " +
                 shape(images.patchHeight, images.patchWidth) + " are sequences of " +
                 std::to_string(positions) +
                 " positions, one of them that of the class token, and " + "--seq is " +
                 std::to_string(options.seq) + "; leave --seq out");
  options.seq = positions;
  if (options.packed)
    reader.error("--packed is for documents of tokens that share a sequence, and this model reads "
                 "images, each of which is a sequence; leave --packed out");
}

static void checkSequence(ConfigReader &reader, llvm::StringRef field, int64_t positions,
                          const TransformerConfig &config, const ImportOptions &options) {
  if (options.seq > positions - config.firstPosition)
    reader.error(reader.quote(field) + " is " + std::to_string(positions) +
                 (config.firstPosition
                      ? ", and texts begin at position " + std::to_string(config.firstPosition)
                      : "") +
                 ", less than the sequence length " + std::to_string(options.seq) +
                 "; choose a shorter one with --seq");
}

/// Models whose weights are published in 8 or 4 bits were trained with more bits, and are built so.
static void checkQuantization(ConfigReader &reader) {
  const json *quantization = reader.find("quantization_config");
  if (!quantization || !quantization->is_object() || !quantization->contains("quant_method"))
    return reader.requireOneOf("quantization_config", {});
  json method = quantization->at("quant_method");
  if (method != "fp8" && method != "mxfp4")
    return reader.error("'quantization_config' has 'quant_method' " + ConfigReader::show(method) +
                        ", which is not supported; remove the field for the model that is not "
                        "quantized");
  reader.warning(
      "the weights are published in " + method.get<std::string>() +
      " ('quantization_config'); dtc trains the model that is not quantized, and reads "
      "weights of 16 bits or more: write such a folder with transformers (from_pretrained "
      "with quantization_config=" +
      (method == "fp8" ? "FineGrainedFP8Config" : "Mxfp4Config") +
      "(dequantize=True), then save_pretrained)");
}

/// Reports fields of any transformers configuration that make another model of it than is built.
static void checkCommonFields(ConfigReader &reader, const Family &family) {
  reader.requireAnyOf("architectures", family.architectures);
  reader.requireOneOf("add_cross_attention", {false});
  reader.requireOneOf("is_encoder_decoder", {false});
  reader.requireOneOf("pruned_heads", {json::object()});
  checkQuantization(reader);
  reader.requireOneOf("per_layer_config", {json::object()});
  if (!family.isEncoder)
    reader.requireOneOf("is_causal", {true});
}

/// Whether a version of transformers before 5 wrote the file, as it says.
static bool isOfTransformers4(ConfigReader &reader) {
  const json *version = reader.find("transformers_version");
  if (!version || !version->is_string())
    return false;
  int major = 0;
  llvm::StringRef text = version->get_ref<const std::string &>();
  return !text.consumeInteger(10, major) && major < 5;
}

/// Gives layers their rotary positions. Entries of a kind that no layer has are not looked at, as
/// in transformers. Returns how many positions the model is made for.
static int64_t readRotary(ConfigReader &reader, const Family &family, const ImportOptions &options,
                          TransformerConfig &config) {
  int64_t rotated = config.latent ? config.latent->rotatedSize : config.headSize.size;
  RotaryConfig rotary(reader, family, rotated, config.positions.size, options.seq);
  const bool hasKinds = !family.fields.localTheta.empty();
  std::optional<Rotary> full, sliding;
  for (TransformerLayer &layer : config.layers) {
    bool isOfWindow = hasKinds && layer.isSliding;
    std::optional<Rotary> &kind = isOfWindow ? sliding : full;
    if (!kind)
      kind = isOfWindow ? rotary.sliding() : rotary.full();
    layer.rotary = kind;
  }
  if (config.latent)
    config.attentionScale *= rotary.scaleOfScores();
  int64_t positions = rotary.reach();
  rotary.listUnread();
  return positions;
}

TransformerConfig dtc::readTransformer(ConfigReader &reader, const Family &family,
                                       ImportOptions &options) {
  const Fields &fields = family.fields;
  const Defaults &defaults = family.defaults;
  for (auto [field, alias] : family.aliases)
    reader.addAlias(field, alias);
  TransformerConfig config;
  config.family = &family;
  if (!fields.vocab.empty())
    config.vocab.size = reader.getSize(fields.vocab, defaults.vocab, ConfigReader::kMaxVocab);
  config.embed.size = reader.getSize(fields.hiddenSize, defaults.hiddenSize);
  readHeads(reader, family, config);
  // Where a family has a size of its own, null is no value.
  int64_t mlpSize = defaults.mlpSize ? defaults.mlpSize : 4 * config.embed.size;
  config.mlp.size = defaults.mlpSize ? reader.getSize(fields.mlpSize, mlpSize)
                                     : reader.getOptionalSize(fields.mlpSize).value_or(mlpSize);
  if (!fields.positions.empty())
    config.positions.size = reader.getSize(fields.positions, defaults.positions);
  if (!fields.tokenTypes.empty())
    config.tokenTypes.size = reader.getSize(fields.tokenTypes, defaults.tokenTypes);
  config.layers.resize(reader.getSize(fields.layers, defaults.layers, ConfigReader::kMaxLayers));
  config.activation = readActivation(reader, fields.activation, defaults.activation);
  config.headActivation = config.activation;
  config.eps = reader.getPositive(fields.eps, defaults.eps);
  config.initializerRange = reader.getNonNegative("initializer_range", config.initializerRange);
  config.tied = reader.getBool("tie_word_embeddings", defaults.isTied);
  if (!family.names.headBias.empty()) {
    bool isTied = isOfTransformers4(reader) || config.tied;
    config.headBias = (isTied ? family.names.headBias : family.names.head).str();
  }

  int64_t positions = config.positions.size;
  const bool hasKinds = !fields.localTheta.empty();
  if (!fields.ropeTheta.empty() && !hasKinds)
    positions = readRotary(reader, family, options, config);
  checkCommonFields(reader, family);
  family.readMore(reader, options, config);
  if (hasKinds) // of layers, which are known now
    positions = readRotary(reader, family, options, config);
  if (family.input == InputKind::Images)
    setSequenceOfImages(reader, config, options);
  else
    checkSequence(reader, fields.positions, positions, config, options);
  if (options.attention == AttentionKind::Decomposed)
    for (const TransformerLayer &layer : config.layers)
      if (layer.window) {
        reader.error("a query sees the last " + std::to_string(*layer.window) + " of " +
                     std::to_string(options.seq) +
                     " keys, and decomposed attention has no windows; import with --attention "
                     "fused");
        break;
      }
  if (options.attention == AttentionKind::Decomposed && config.hasSinks)
    reader.error("attention has sinks in models of type \"" + family.modelType.str() +
                 "\", and decomposed attention has none; import with --attention fused");
  if (const json *pad = reader.find("pad_token_id");
      pad && !pad->is_null() && !fields.ropeTheta.empty())
    reader.warning("'pad_token_id' is " + ConfigReader::show(*pad) +
                   ": transformers does not train the embedding of that token, dtc does");
  return config;
}
