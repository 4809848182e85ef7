//===- ModelSizes.cpp - Model sizes for published formulas ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/traffic/ModelSizes.h"
#include "test/lib/plans/TrainStep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <sstream>

using namespace dtc;
using namespace dtc::test;

int64_t ParameterSize::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

int64_t ParameterSize::paddedElements(int64_t n) const {
  if (std::any_of(shape.begin(), shape.end(), [&](int64_t size) { return size % n == 0; }))
    return elements();
  int64_t largest = *std::max_element(shape.begin(), shape.end());
  return elements() / largest * ((largest + n - 1) / n * n);
}

int64_t ModelSizes::psi() const {
  int64_t sum = 0;
  for (const ParameterSize &parameter : parameters)
    sum += parameter.elements();
  return sum;
}

int64_t ModelSizes::layerPsi() const {
  int64_t sum = 0;
  for (int64_t i = 0; i < parametersOfLayer; ++i)
    sum += parameters[firstOfLayers + i].elements();
  return sum;
}

ModelSizes dtc::test::gpt2Sizes() {
  ModelSizes model;
  model.vocab = 96;
  model.positions = 48;
  model.embed = 32;
  model.layers = 2;
  model.heads = model.kvHeads = 4;
  model.mlp = 4 * model.embed;
  model.batch = 24;
  model.seq = 16;
  std::ostringstream config;
  config << R"({"model_type": "gpt2", "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0, )"
         << R"("vocab_size": )" << model.vocab << R"(, "n_positions": )" << model.positions
         << R"(, "n_embd": )" << model.embed << R"(, "n_layer": )" << model.layers
         << R"(, "n_head": )" << model.heads << "}";
  model.config = config.str();

  int64_t d = model.embed, h = model.heads, e = d / h, f = model.mlp;
  using P = ParameterSize;
  // Read by the embedding, and by the projection to logits, whose backward use follows at once: two
  // gathers, as the formula has it.
  model.parameters.push_back({{model.vocab, d}, P::Twice, true});
  model.parameters.push_back({{model.positions, d}, P::ForwardOnly, false, true});
  model.firstOfLayers = 2;
  model.parametersOfLayer = 12;
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    model.parameters.push_back({{d}, P::Twice});                   // ln_1.weight
    model.parameters.push_back({{d}, P::ForwardOnly});             // ln_1.bias
    model.parameters.push_back({{d, 3, h, e}, P::Twice, true});    // attn.c_attn.weight
    model.parameters.push_back({{3, h, e}, P::ForwardOnly, true}); // attn.c_attn.bias
    model.parameters.push_back({{h, e, d}, P::Twice, true});       // attn.c_proj.weight
    model.parameters.push_back({{d}, P::ForwardOnly});             // attn.c_proj.bias
    model.parameters.push_back({{d}, P::Twice});                   // ln_2.weight
    model.parameters.push_back({{d}, P::ForwardOnly});             // ln_2.bias
    model.parameters.push_back({{d, f}, P::Twice, true});          // mlp.c_fc.weight
    model.parameters.push_back({{f}, P::ForwardOnly, true});       // mlp.c_fc.bias
    model.parameters.push_back({{f, d}, P::Twice, true});          // mlp.c_proj.weight
    model.parameters.push_back({{d}, P::ForwardOnly});             // mlp.c_proj.bias
  }
  model.parameters.push_back({{d}, P::Twice});       // ln_f.weight
  model.parameters.push_back({{d}, P::ForwardOnly}); // ln_f.bias
  return model;
}

/// Fills in the configuration and the parameters of a Llama with the sizes in `model`.
static ModelSizes finishLlama(ModelSizes model) {
  std::ostringstream config;
  config << R"({"model_type": "llama", "rms_norm_eps": 1e-5, "tie_word_embeddings": false, )"
         << R"("max_position_embeddings": 64, "vocab_size": )" << model.vocab
         << R"(, "hidden_size": )" << model.embed << R"(, "intermediate_size": )" << model.mlp
         << R"(, "num_hidden_layers": )" << model.layers << R"(, "num_attention_heads": )"
         << model.heads << R"(, "num_key_value_heads": )" << model.kvHeads << "}";
  model.config = config.str();

  int64_t d = model.embed, h = model.heads, k = model.kvHeads, e = d / h, f = model.mlp;
  using P = ParameterSize;
  model.parameters.push_back({{model.vocab, d}, P::ForwardOnly, true}); // embed_tokens
  model.firstOfLayers = 1;
  model.parametersOfLayer = 9;
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    model.parameters.push_back({{d}, P::Twice});                          // input_layernorm
    model.parameters.push_back({{h, e, d}, P::Twice, true});              // q_proj
    model.parameters.push_back({{k, e, d}, P::Twice, true, false, true}); // k_proj
    model.parameters.push_back({{k, e, d}, P::Twice, true, false, true}); // v_proj
    model.parameters.push_back({{d, h, e}, P::Twice, true});              // o_proj
    model.parameters.push_back({{d}, P::Twice});          // post_attention_layernorm
    model.parameters.push_back({{f, d}, P::Twice, true}); // gate_proj
    model.parameters.push_back({{f, d}, P::Twice, true}); // up_proj
    model.parameters.push_back({{d, f}, P::Twice, true}); // down_proj
  }
  model.parameters.push_back({{d}, P::Twice});                       // norm
  model.parameters.push_back({{model.vocab, d}, P::Adjacent, true}); // lm_head
  return model;
}

ModelSizes dtc::test::llamaSizes(int64_t kvHeads) {
  ModelSizes model;
  model.vocab = 96;
  model.embed = 32;
  model.layers = 2;
  model.heads = 8;
  model.kvHeads = kvHeads;
  model.mlp = 80;
  model.batch = 24;
  model.seq = 16;
  return finishLlama(std::move(model));
}

ModelSizes dtc::test::wideLlamaSizes() {
  ModelSizes model;
  model.vocab = 64;
  model.embed = 128;
  model.layers = 10;
  model.heads = model.kvHeads = 8;
  model.mlp = 384;
  model.batch = 16;
  model.seq = 1;
  return finishLlama(std::move(model));
}

std::unique_ptr<runtime::Session> dtc::test::openSession(const ModelSizes &model,
                                                         const CompileOptions &options) {
  Compiler compiler;
  auto session = compiler.importAndOpen(model.config, model.batch, model.seq, options);
  EXPECT_TRUE(session) << compiler.diagnostics();
  return session;
}

bool dtc::test::runStep(runtime::Session &session) {
  auto problem = session.initializeStates(/*seed=*/1);
  if (!problem)
    problem = setRandomInputs(session, /*seed=*/1);
  if (!problem)
    problem = trainStep(session, 1e-3);
  EXPECT_FALSE(problem) << problem->message;
  return !problem;
}
