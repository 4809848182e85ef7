//===- FamilyFields.cpp - Fields that not all families have ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/FamilyFields.h"

#include <cmath>
#include <functional>
#include <set>

using namespace dtc;
using nlohmann::json;

//===----------------------------------------------------------------------===//
// Layers with windows
//===----------------------------------------------------------------------===//

/// Sets the windows of sliding layers; one that all keys of a sequence fit in is none.
static void setWindows(const ImportOptions &options, TransformerConfig &config, int64_t window) {
  for (TransformerLayer &layer : config.layers)
    if (layer.isSliding && window < options.seq)
      layer.window = window;
}

/// Reads which layers are sliding, from 'layer_types', or from `isSliding` where that is absent.
static void readLayerTypes(ConfigReader &reader, TransformerConfig &config,
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

/// 'sliding_window' of all layers, as Mistral has it; null is none.
static void readWindowOfAll(ConfigReader &reader, const ImportOptions &options,
                            TransformerConfig &config, std::optional<int64_t> fallback) {
  std::optional<int64_t> window = reader.getOptionalSize("sliding_window", INT64_MAX);
  if (!reader.has("sliding_window"))
    window = fallback;
  if (!window)
    return;
  for (TransformerLayer &layer : config.layers)
    layer.isSliding = true;
  setWindows(options, config, *window);
}

/// Qwen's: only where 'use_sliding_window' says so, from layer 'max_window_layers' on.
static void readQwenWindows(ConfigReader &reader, const ImportOptions &options,
                            TransformerConfig &config) {
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
                             TransformerConfig &config, int64_t period) {
  readLayerTypes(reader, config, [=](int64_t layer) { return (layer + 1) % period != 0; });
  setWindows(options, config, reader.getSize("sliding_window", 4096, INT64_MAX));
}

//===----------------------------------------------------------------------===//
// Fields of families beside the common ones
//===----------------------------------------------------------------------===//

static void readAttentionBias(ConfigReader &reader, TransformerConfig &config) {
  config.queryBias = config.outputBias = reader.getBool("attention_bias", false);
}

static void readAttentionDropout(ConfigReader &reader, TransformerConfig &config) {
  config.attentionDropout = reader.getDropoutRate("attention_dropout", 0);
}

void dtc::readGpt2(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config) {
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

void dtc::readLlama(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config) {
  readAttentionBias(reader, config);
  config.mlpBias = reader.getBool("mlp_bias", false);
  readAttentionDropout(reader, config);
}

void dtc::readMistral(ConfigReader &reader, const ImportOptions &options,
                      TransformerConfig &config) {
  readWindowOfAll(reader, options, config, /*fallback=*/4096);
  readAttentionDropout(reader, config);
}

void dtc::readQwen2(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config) {
  config.queryBias = true;
  readQwenWindows(reader, options, config);
  readAttentionDropout(reader, config);
}

void dtc::readQwen3(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config) {
  readAttentionBias(reader, config);
  readQwenWindows(reader, options, config);
  readAttentionDropout(reader, config);
}

/// Layers without rotary positions: 'no_rope_layers' has a 0 for each.
static void readNoRopeLayers(ConfigReader &reader, TransformerConfig &config) {
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

void dtc::readSmolLm3(ConfigReader &reader, const ImportOptions &options,
                      TransformerConfig &config) {
  readAttentionBias(reader, config);
  config.mlpBias = reader.getBool("mlp_bias", false);
  readNoRopeLayers(reader, config);
  bool uses = reader.getBool("use_sliding_window", false);
  std::optional<int64_t> window = reader.getOptionalSize("sliding_window", INT64_MAX);
  readLayerTypes(reader, config, [&](int64_t layer) {
    return uses && window && !config.layers[size_t(layer)].rotary;
  });
  // The layers to which 'layer_types' gives windows have this one, whatever 'use_sliding_window'
  // says.
  if (window)
    setWindows(options, config, *window);
  readAttentionDropout(reader, config);
}

void dtc::readOlmo2(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config) {
  readAttentionBias(reader, config);
  readAttentionDropout(reader, config);
}

void dtc::readGemma(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config) {
  config.embeddingScale = std::sqrt(double(config.embed.size));
  readAttentionBias(reader, config);
  readAttentionDropout(reader, config);
  // The published files say "gelu" of models that were trained with the approximation by tanh.
  if (const json *activation = reader.find("hidden_act"); activation && *activation == "gelu")
    config.activation = Activation::GeluTanh;
  reader.requireOneOf("use_bidirectional_attention", {false});
}

/// A number that caps something; null is none.
static double readCap(ConfigReader &reader, llvm::StringRef field, double fallback) {
  const json *value = reader.find(field);
  return value && value->is_null() ? 0 : value ? reader.getPositive(field, 1) : fallback;
}

/// The common fields of Gemma 2 and later.
static void readLaterGemma(ConfigReader &reader, TransformerConfig &config, double logitCap) {
  config.embeddingScale = std::sqrt(double(config.embed.size));
  readAttentionBias(reader, config);
  readAttentionDropout(reader, config);
  config.attentionScale = 1 / std::sqrt(reader.getPositive("query_pre_attn_scalar", 256));
  config.logitSoftcap = readCap(reader, "final_logit_softcapping", logitCap);
  // Published files have the name of the old field as well.
  reader.acceptUnread("hidden_act", "gelu_pytorch_tanh");
  reader.requireOneOf("use_bidirectional_attention", {false});
}

void dtc::readGemma2(ConfigReader &reader, const ImportOptions &options,
                     TransformerConfig &config) {
  readLaterGemma(reader, config, /*logitCap=*/30);
  config.attentionSoftcap = readCap(reader, "attn_logit_softcapping", 50);
  readGemmaWindows(reader, options, config, /*period=*/2);
}

void dtc::readGemma3(ConfigReader &reader, const ImportOptions &options,
                     TransformerConfig &config) {
  readLaterGemma(reader, config, /*logitCap=*/0);
  readGemmaWindows(reader, options, config, reader.getSize("sliding_window_pattern", 6));
}

void dtc::readPhi3(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config) {
  readWindowOfAll(reader, options, config, /*fallback=*/std::nullopt);
  readAttentionDropout(reader, config);
  config.residualDropout = reader.getDropoutRate("resid_pdrop", 0);
  reader.getDropoutRate("embd_pdrop", 0); // transformers does not apply it
}

/// The common fields of BERT and similar encoders.
static void readEncoder(ConfigReader &reader, TransformerConfig &config) {
  config.queryBias = config.outputBias = config.mlpBias = true;
  config.residualDropout = config.embeddingDropout =
      reader.getDropoutRate("hidden_dropout_prob", 0.1);
  config.attentionDropout = reader.getDropoutRate("attention_probs_dropout_prob", 0.1);
  reader.acceptUnread("position_embedding_type", "absolute");
  reader.requireOneOf("is_decoder", {false});
}

void dtc::readBert(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config) {
  readEncoder(reader, config);
}

/// Positions are numbered from that of padding on, which is the token's number.
void dtc::readRoberta(ConfigReader &reader, const ImportOptions &options,
                      TransformerConfig &config) {
  readEncoder(reader, config);
  config.headActivation = Activation::Gelu; // with any 'hidden_act'
  config.firstPosition = int64_t(reader.getNonNegative("pad_token_id", 1)) + 1;
}

void dtc::readGptNeoX(ConfigReader &reader, const ImportOptions &options,
                      TransformerConfig &config) {
  config.mlpBias = true;
  config.queryBias = config.outputBias = reader.getBool("attention_bias", true);
  // transformers takes it for the frequencies, and the quotient of the others for attention.
  reader.requireOneOf("head_dim", {config.headSize.size});
  config.parallelResidual = reader.getBool("use_parallel_residual", true);
  readAttentionDropout(reader, config);
  config.residualDropout = config.embeddingDropout = reader.getDropoutRate("hidden_dropout", 0);
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

/// The fields of experts that all families with experts have. `isSparse` says which layers have
/// them.
static ExpertsConfig &readExperts(ConfigReader &reader, const ImportOptions &options,
                                  TransformerConfig &config,
                                  llvm::function_ref<bool(int64_t)> isSparse) {
  const Fields &fields = config.family->fields;
  const Defaults &defaults = config.family->defaults;
  ExpertsConfig &experts = config.experts.emplace();
  experts.number.size = reader.getSize(fields.experts, defaults.experts);
  int64_t &selected = experts.routing.selected;
  selected = reader.getSize("num_experts_per_tok", defaults.selectedExperts);
  if (selected > experts.number.size)
    reader.error("'num_experts_per_tok' is " + std::to_string(selected) + ", more than " +
                 reader.quote(fields.experts) + ", which is " +
                 std::to_string(experts.number.size));
  experts.mlp.size = fields.expertSize == fields.mlpSize
                         ? config.mlp.size
                         : reader.getSize(fields.expertSize, defaults.expertSize);
  experts.balanceFactor = reader.getNonNegative("router_aux_loss_coef", defaults.balanceFactor);
  bool isOn = reader.getBool("output_router_logits", false);
  experts.balanceLoss = options.balanceLoss.value_or(isOn ? BalanceLoss::Batch : BalanceLoss::None);
  for (size_t i = 0; i < config.layers.size(); ++i)
    config.layers[i].hasExperts = isSparse(int64_t(i));
  return experts;
}

/// Qwen's: every 'decoder_sparse_step'-th layer that is not in 'mlp_only_layers'.
static ExpertsConfig &readQwenExperts(ConfigReader &reader, const ImportOptions &options,
                                      TransformerConfig &config) {
  int64_t step = reader.getSize("decoder_sparse_step", 1);
  const json *list = reader.find("mlp_only_layers");
  std::set<int64_t> dense;
  if (list && !list->is_null()) {
    auto isLayer = [&](const json &layer) {
      return layer.is_number_integer() && layer >= 0 && layer < config.layers.size();
    };
    if (!list->is_array() || !llvm::all_of(*list, isLayer))
      reader.error("'mlp_only_layers' is " + ConfigReader::show(*list) +
                   ", expected a list of numbers of layers, from 0 to " +
                   std::to_string(config.layers.size() - 1));
    else
      dense = list->get<std::set<int64_t>>();
  }
  ExpertsConfig &experts = readExperts(reader, options, config, [&](int64_t layer) {
    return !dense.contains(layer) && (layer + 1) % step == 0;
  });
  experts.routing.normalizes = reader.getBool("norm_topk_prob", false);
  return experts;
}

/// The window of Qwen's families with experts, if 'use_sliding_window' says so.
static std::optional<int64_t> readUsedWindow(ConfigReader &reader) {
  bool uses = reader.getBool("use_sliding_window", false);
  const json *window = reader.find("sliding_window");
  // transformers 5 writes 0 where windows are not used.
  if (!uses && window && *window == 0)
    return std::nullopt;
  std::optional<int64_t> size = reader.getOptionalSize("sliding_window", INT64_MAX);
  if (!reader.has("sliding_window"))
    size = 4096;
  return uses ? size : std::nullopt;
}

void dtc::readMixtral(ConfigReader &reader, const ImportOptions &options,
                      TransformerConfig &config) {
  readWindowOfAll(reader, options, config, /*fallback=*/std::nullopt);
  readAttentionDropout(reader, config);
  readExperts(reader, options, config, [](int64_t) { return true; }).routing.normalizes = true;
  reader.requireOneOf("router_jitter_noise", {0.0});
}

void dtc::readOlmoe(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config) {
  readAttentionBias(reader, config);
  readAttentionDropout(reader, config);
  readExperts(reader, options, config, [](int64_t) { return true; }).routing.normalizes =
      reader.getBool("norm_topk_prob", false);
  if (const json *clip = reader.find("clip_qkv"); clip && !clip->is_null())
    config.attentionClip = reader.getPositive("clip_qkv", 1);
}

void dtc::readQwen2Moe(ConfigReader &reader, const ImportOptions &options,
                       TransformerConfig &config) {
  config.queryBias = reader.getBool("qkv_bias", true);
  std::optional<int64_t> window = readUsedWindow(reader);
  // 0 is a number of layers as well: none slides.
  double last = reader.getNonNegative("max_window_layers", 28);
  readLayerTypes(reader, config,
                 [&](int64_t layer) { return window && layer % 2 == 0 && double(layer) < last; });
  if (window)
    setWindows(options, config, *window);
  readAttentionDropout(reader, config);
  readQwenExperts(reader, options, config).sharedMlp.size =
      reader.getSize("shared_expert_intermediate_size", 5632);
}

void dtc::readQwen3Moe(ConfigReader &reader, const ImportOptions &options,
                       TransformerConfig &config) {
  readAttentionBias(reader, config);
  if (std::optional<int64_t> window = readUsedWindow(reader)) {
    for (TransformerLayer &layer : config.layers)
      layer.isSliding = true;
    setWindows(options, config, *window);
  } else {
    reader.getNonNegative("max_window_layers", 0); // without windows it says nothing
  }
  readAttentionDropout(reader, config);
  readQwenExperts(reader, options, config);
}

void dtc::readGptOss(ConfigReader &reader, const ImportOptions &options,
                     TransformerConfig &config) {
  config.queryBias = config.outputBias = reader.getBool("attention_bias", true);
  config.hasSinks = true;
  readAttentionDropout(reader, config);
  readLayerTypes(reader, config, [](int64_t layer) { return layer % 2 == 0; });
  setWindows(options, config, reader.getSize("sliding_window", 128, INT64_MAX));
  ExpertsConfig &experts = readExperts(reader, options, config, [](int64_t) { return true; });
  experts.form = ExpertForm::Clamped;
  experts.hasLinearRouter = false;
  experts.routing.scores = RouterScores::SoftmaxOfSelected;
  experts.clampAlpha = reader.getPositive("swiglu_alpha", 1.702);
  experts.clampLimit = reader.getPositive("swiglu_limit", 7);
  // Published files say the same twice.
  reader.requireOneOf("experts_per_token", {experts.routing.selected});
  reader.find("initial_context_length");
}

/// The groups of experts that DeepSeek's routers choose from.
static void readGroups(ConfigReader &reader, ExpertsConfig &experts, int64_t groups,
                       int64_t selected) {
  RoutingKind &routing = experts.routing;
  routing.groups = reader.getOptionalSize("n_group").value_or(groups);
  routing.selectedGroups = reader.getOptionalSize("topk_group").value_or(selected);
  std::string ofGroups = "'n_group' is " + std::to_string(routing.groups);
  int64_t number = experts.number.size, size = number / routing.groups;
  if (routing.selected > number)
    return; // readExperts() has reported it
  if (number % routing.groups != 0) {
    reader.error(ofGroups + ", which does not divide the number of experts (" +
                 std::to_string(number) + "); all groups have the same size");
    return;
  }
  if (routing.selectedGroups > routing.groups)
    reader.error("'topk_group' is " + std::to_string(routing.selectedGroups) + ", and " + ofGroups +
                 "; no more groups can be chosen than there are");
  else if (routing.selected > routing.selectedGroups * size)
    reader.error("'num_experts_per_tok' is " + std::to_string(routing.selected) +
                 ", more than the " + std::to_string(routing.selectedGroups * size) +
                 " experts of the groups that a token may choose from ('topk_group' is " +
                 std::to_string(routing.selectedGroups) + ", a group has " + std::to_string(size) +
                 ")");
  else if (routing.groupScore == GroupScore::TwoBest && routing.groups > 1 && size < 2)
    reader.error(ofGroups + ", so that a group has one expert; groups are compared by their two "
                            "best experts");
}

/// The fields that DeepSeek's families have in common. The layers from 'first_k_dense_replace' on
/// have experts.
static ExpertsConfig &readDeepseek(ConfigReader &reader, const ImportOptions &options,
                                   TransformerConfig &config, int64_t sharedExperts, double dense) {
  config.latent->hasBias = config.outputBias = reader.getBool("attention_bias", false);
  readAttentionDropout(reader, config);
  double first = reader.getNonNegative("first_k_dense_replace", dense);
  ExpertsConfig &experts =
      readExperts(reader, options, config, [&](int64_t layer) { return double(layer) >= first; });
  experts.hasLinearRouter = false;
  // transformers adds no balance loss to DeepSeek's, whatever 'output_router_logits' says.
  experts.balanceLoss = options.balanceLoss.value_or(BalanceLoss::None);
  // The authors' loss is 1 where experts are used evenly, and there is one for each layer.
  experts.balanceFactor = reader.getNonNegative("aux_loss_alpha", experts.balanceFactor) /
                          double(experts.routing.selected);
  experts.balancesEachLayer = true;
  const json *shared = reader.find("n_shared_experts");
  if (!shared || !(shared->is_null() || *shared == 0))
    experts.sharedMlp.size =
        reader.getSize("n_shared_experts", sharedExperts,
                       std::max<int64_t>(ConfigReader::kMaxSize / experts.mlp.size, 1)) *
        experts.mlp.size;
  experts.routing.factor = reader.getPositive("routed_scaling_factor", 1);
  reader.requireOneOf("moe_layer_freq", {1});
  for (llvm::StringRef field : {"seq_aux", "ep_size", "pretraining_tp"})
    reader.find(field); // describes the authors' training, not the model
  return experts;
}

void dtc::readDeepseekV2(ConfigReader &reader, const ImportOptions &options,
                         TransformerConfig &config) {
  if (!reader.has("num_experts_per_tok"))
    reader.error("there is no 'num_experts_per_tok', expected the number of experts of a token");
  config.latent->rotatesPairs = true;
  config.mlpBias = reader.getBool("mlp_bias", false);
  ExpertsConfig &experts = readDeepseek(reader, options, config, /*sharedExperts=*/2, /*dense=*/0);
  reader.requireOneOf("scoring_func", {"softmax"});
  reader.requireOneOf("norm_topk_prob", {false});
  bool hasGroups = reader.getChoice<bool>("topk_method", "greedy",
                                          {{"greedy", false}, {"group_limited_greedy", true}});
  if (hasGroups) {
    readGroups(reader, experts, 1, 1);
  } else {
    reader.find("n_group");
    reader.find("topk_group");
  }
}

void dtc::readDeepseekV3(ConfigReader &reader, const ImportOptions &options,
                         TransformerConfig &config) {
  const json *interleaves = reader.find("rope_interleave");
  config.latent->rotatesPairs =
      (!interleaves || !interleaves->is_null()) && reader.getBool("rope_interleave", true);
  ExpertsConfig &experts = readDeepseek(reader, options, config, /*sharedExperts=*/1, /*dense=*/3);
  experts.hasBias = true;
  experts.routing.scores = RouterScores::Sigmoid;
  experts.routing.groupScore = GroupScore::TwoBest;
  experts.routing.normalizes = reader.getBool("norm_topk_prob", true);
  experts.routing.epsilon = 1e-20;
  if (!reader.has("routed_scaling_factor"))
    experts.routing.factor = 2.5;
  readGroups(reader, experts, 8, 4);
  reader.requireOneOf("scoring_func", {"sigmoid"});
  reader.requireOneOf("topk_method", {"noaux_tc"});
  const json *further = reader.find("num_nextn_predict_layers");
  if (further && !further->is_null() && reader.getNonNegative("num_nextn_predict_layers", 0) > 0)
    reader.warning(reader.quote("num_nextn_predict_layers") + " is " +
                   ConfigReader::show(*further) +
                   ": dtc, as transformers, leaves out the layers that predict further tokens");
}

//===----------------------------------------------------------------------===//
// Images
//===----------------------------------------------------------------------===//

/// A height and a width: one number for both, or a list of two.
static std::pair<int64_t, int64_t> readHeightAndWidth(ConfigReader &reader, llvm::StringRef field,
                                                      int64_t fallback) {
  const json *value = reader.find(field);
  if (!value || !value->is_array()) {
    int64_t size = reader.getSize(field, fallback);
    return {size, size};
  }
  auto isSize = [](const json &size) {
    return size.is_number_integer() && size >= 1 && size <= ConfigReader::kMaxSize;
  };
  if (value->size() == 2 && llvm::all_of(*value, isSize))
    return {value->at(0), value->at(1)};
  reader.error(reader.quote(field) + " is " + ConfigReader::show(*value) +
               ", expected an integer from 1 to " + std::to_string(ConfigReader::kMaxSize) +
               ", or a list of two, the height and the width");
  return {fallback, fallback};
}

static ImageConfig readImages(ConfigReader &reader) {
  ImageConfig images;
  images.channels = reader.getSize("num_channels", 3);
  std::tie(images.height, images.width) = readHeightAndWidth(reader, "image_size", 224);
  std::tie(images.patchHeight, images.patchWidth) = readHeightAndWidth(reader, "patch_size", 16);
  auto checkSide = [&](llvm::StringRef side, int64_t image, int64_t patch) {
    if (image % patch != 0)
      reader.error(("the " + side + " of images is ").str() + std::to_string(image) +
                   " ('image_size'), which is not a multiple of that of patches, " +
                   std::to_string(patch) +
                   " ('patch_size'): the rest would be cut off; resize the images");
  };
  checkSide("height", images.height, images.patchHeight);
  checkSide("width", images.width, images.patchWidth);
  if (images.patchHeight > ConfigReader::kMaxSize / images.channels / images.patchWidth)
    reader.error("a patch has " + std::to_string(images.channels) + " x " +
                 std::to_string(images.patchHeight) + " x " + std::to_string(images.patchWidth) +
                 " values ('num_channels', 'patch_size'), expected at most " +
                 std::to_string(ConfigReader::kMaxSize));
  return images;
}

/// How many classes there are: 'id2label' names them, or 'num_labels' is their number.
static int64_t readClasses(ConfigReader &reader) {
  std::optional<int64_t> number = reader.getOptionalSize("num_labels");
  int64_t classes = number.value_or(2);
  if (const json *names = reader.find("id2label"); names && !names->is_null()) {
    if (!names->is_object() || names->empty() || names->size() > size_t(ConfigReader::kMaxSize)) {
      reader.error("'id2label' is " + ConfigReader::show(*names) +
                   ", expected an object that names each class by its number");
      return classes;
    }
    classes = int64_t(names->size());
    if (number && *number != classes)
      reader.error("'id2label' names " + std::to_string(classes) +
                   " classes, and 'num_labels' is " + std::to_string(*number) +
                   "; leave one of them out");
  }
  if (classes == 1)
    reader.error("there is 1 class ('id2label' or 'num_labels'), and transformers makes a "
                 "regression of that, which is not supported; expected at least 2");
  reader.requireOneOf("problem_type", {"single_label_classification"});
  return classes;
}

void dtc::readVit(ConfigReader &reader, const ImportOptions &options, TransformerConfig &config) {
  config.images = readImages(reader);
  config.positions.size = config.images->patches() + 1; // and the class token
  config.classes.size = readClasses(reader);
  config.queryBias = reader.getBool("qkv_bias", true);
  config.outputBias = config.mlpBias = true;
  config.residualDropout = config.embeddingDropout =
      reader.getDropoutRate("hidden_dropout_prob", 0);
  config.attentionDropout = reader.getDropoutRate("attention_probs_dropout_prob", 0);
  // These fields belong to masked image modeling, and to a layer that classification does not have.
  for (llvm::StringRef unused : {"encoder_stride", "pooler_output_size", "pooler_act"})
    reader.find(unused);
}
