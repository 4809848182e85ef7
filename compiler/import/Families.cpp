//===- Families.cpp - The table of families -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/FamilyFields.h"

using namespace dtc;

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
static const ParameterNames kVitNames = {.model = "vit",
                                         .layers = "encoder.layer",
                                         .embedding = "embeddings.patch_embeddings.projection",
                                         .classToken = "embeddings.cls_token",
                                         .positions = "embeddings.position_embeddings",
                                         .attention = "attention",
                                         .queries = "attention.query",
                                         .keys = "attention.key",
                                         .values = "attention.value",
                                         .output = "output.dense",
                                         .mlp = "",
                                         .up = "intermediate.dense",
                                         .down = "output.dense",
                                         .beforeAttention = "layernorm_before",
                                         .beforeMlp = "layernorm_after",
                                         .finalNorm = "layernorm",
                                         .head = "classifier"};
static const ParameterNames kNormsAfter = {.beforeAttention = "",
                                           .afterAttention = "post_attention_layernorm",
                                           .beforeMlp = "",
                                           .afterMlp = "post_feedforward_layernorm"};
static const ParameterNames kNormsAround = {.afterAttention = "post_attention_layernorm",
                                            .beforeMlp = "pre_feedforward_layernorm",
                                            .afterMlp = "post_feedforward_layernorm"};
static const ParameterNames kPhi3Names = {.queries = "qkv_proj", .gate = "gate_up_proj"};

static const ParameterNames kMixtralNames = {
    .mixture = "block_sparse_moe", .expertGate = "w1", .expertUp = "w3", .expertDown = "w2"};

static const Fields kMixtralFields = {.experts = "num_local_experts",
                                      .expertSize = "intermediate_size"};
static const Fields kOlmoeFields = {.expertSize = "intermediate_size"};
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
static const Fields kVitFields = {
    .vocab = "", .kvHeads = "", .positions = "", .eps = "layer_norm_eps", .ropeTheta = ""};
static const Fields kPhi3Fields = {.rotaryPart = "partial_rotary_factor"};
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

// NOLINTNEXTLINE(readability-function-size): a table
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
      {.modelType = "mixtral",
       .architectures = {"MixtralForCausalLM", "MixtralModel"},
       .names = kMixtralNames,
       .fields = kMixtralFields,
       .defaults = {.kvHeads = 8,
                    .mlpSize = 14336,
                    .positions = 131072,
                    .eps = 1e-5,
                    .ropeTheta = 1e6,
                    .experts = 8,
                    .selectedExperts = 2},
       .aliases = {{"num_local_experts", "num_experts"}},
       .readMore = readMixtral},
      {.modelType = "olmo2",
       .architectures = {"Olmo2ForCausalLM", "Olmo2Model"},
       .names = kNormsAfter,
       .defaults = {.vocab = 50304, .mlpSize = 11008, .eps = 1e-5},
       .queryNorm = QueryNorm::Width,
       .readMore = readOlmo2},
      {.modelType = "olmoe",
       .architectures = {"OlmoeForCausalLM", "OlmoeModel"},
       .fields = kOlmoeFields,
       .defaults = {.vocab = 50304,
                    .hiddenSize = 2048,
                    .heads = 16,
                    .mlpSize = 2048,
                    .positions = 4096,
                    .layers = 16,
                    .eps = 1e-5,
                    .experts = 64,
                    .selectedExperts = 8,
                    .balanceFactor = 0.01},
       .queryNorm = QueryNorm::Width,
       .aliases = {{"num_experts", "num_local_experts"}},
       .readMore = readOlmoe},
      {.modelType = "phi3",
       .architectures = {"Phi3ForCausalLM", "Phi3Model"},
       .names = kPhi3Names,
       .fields = kPhi3Fields,
       .defaults = {.vocab = 32064,
                    .hiddenSize = 3072,
                    .mlpSize = 8192,
                    .positions = 4096,
                    .eps = 1e-5,
                    .originalPositions = 4096},
       .queries = QueryForm::Rows,
       .mlp = MlpForm::GatedFused,
       // The first files say "su", and some say "yarn" of what has lists of factors.
       .ropeTypes = {{"default", "default"},
                     {"longrope", "longrope"},
                     {"su", "longrope"},
                     {"yarn", "longrope"}},
       .readMore = readPhi3},
      {.modelType = "qwen2",
       .architectures = {"Qwen2ForCausalLM", "Qwen2Model"},
       .defaults = {.vocab = 151936, .kvHeads = 32, .mlpSize = 22016, .positions = 32768},
       .readMore = readQwen2},
      {.modelType = "qwen2_moe",
       .architectures = {"Qwen2MoeForCausalLM", "Qwen2MoeModel"},
       .defaults = {.vocab = 151936,
                    .hiddenSize = 2048,
                    .heads = 16,
                    .kvHeads = 16,
                    .mlpSize = 5632,
                    .positions = 32768,
                    .layers = 24,
                    .experts = 60,
                    .selectedExperts = 4,
                    .expertSize = 1408},
       .readMore = readQwen2Moe},
      {.modelType = "qwen3",
       .architectures = {"Qwen3ForCausalLM", "Qwen3Model"},
       .defaults =
           {.vocab = 151936, .kvHeads = 32, .headSize = 128, .mlpSize = 22016, .positions = 32768},
       .queryNorm = QueryNorm::Heads,
       .readMore = readQwen3},
      {.modelType = "qwen3_moe",
       .architectures = {"Qwen3MoeForCausalLM", "Qwen3MoeModel"},
       .defaults = {.vocab = 151936,
                    .hiddenSize = 2048,
                    .kvHeads = 4,
                    .mlpSize = 6144,
                    .positions = 32768,
                    .layers = 24,
                    .experts = 128,
                    .selectedExperts = 8,
                    .expertSize = 768},
       .queryNorm = QueryNorm::Heads,
       .aliases = {{"num_experts", "num_local_experts"}},
       .readMore = readQwen3Moe},
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
      {.modelType = "vit",
       .architectures = {"ViTForImageClassification", "ViTModel"},
       .names = kVitNames,
       .fields = kVitFields,
       .defaults = {.hiddenSize = 768,
                    .heads = 12,
                    .mlpSize = 3072,
                    .layers = 12,
                    .activation = "gelu",
                    .eps = 1e-12},
       .norm = NormKind::Layer,
       .mlp = MlpForm::Plain,
       .input = InputKind::Images,
       .head = HeadKind::ClassToken,
       .isEncoder = true,
       .readMore = readVit},
  };
  return families;
}
