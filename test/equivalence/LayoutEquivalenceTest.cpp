//===- LayoutEquivalenceTest.cpp - Any layout gives one device's result ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Trains small models on one device and on meshes of virtual devices, from the same seed and on the
// same tokens, and compares every loss and the final parameters.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/plan.pb.h"
#include "test/support/CompileAndRun.h"

#include "llvm/ADT/StringRef.h"

#include <gtest/gtest.h>

#include <fstream>

using namespace dtc;
using namespace dtc::test;

namespace {

constexpr int kSteps = 10;
constexpr double kTolerance = 1e-4;

struct TrainingRun {
  std::vector<double> losses;
  std::map<std::string, runtime::HostTensor> parameters;
};

const char *kGpt2 =
    R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 32, "n_embd": 32, "n_layer": 2,
  "n_head": 8, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})";
const char *kLlama =
    R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48,
  "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 32,
  "rms_norm_eps": 1e-5, "tie_word_embeddings": false})";

class LayoutEquivalence : public testing::TestWithParam<std::tuple<const char *, const char *>> {
protected:
  static TrainingRun train(const std::string &config, const CompileOptions &options) {
    TrainingRun run;
    std::string path = testing::TempDir() + "/config.json";
    std::ofstream(path) << config;
    Compiler compiler;
    auto module = compiler.import(path, /*batch=*/16, /*seq=*/16);
    EXPECT_TRUE(module) << compiler.diagnostics();
    if (!module)
      return run;
    auto session = compiler.open(*module, options);
    EXPECT_TRUE(session) << compiler.diagnostics();
    if (!session)
      return run;
    EXPECT_FALSE(session->initializeStates(/*seed=*/7));
    for (int step = 1; step <= kSteps; ++step) {
      auto problem = setRandomInputs(*session, /*seed=*/step);
      if (!problem)
        problem = session->step(/*learningRate=*/1e-2, step);
      EXPECT_FALSE(problem) << problem->message;
      if (problem)
        return run;
      run.losses.push_back(element(*session->getOutput("loss")));
    }
    for (const plan::State &state : session->plan().programs(0).states())
      if (state.parameter().empty())
        run.parameters.emplace(state.name(), *session->getState(state.name()));
    return run;
  }

  /// One device's result, computed once for each model.
  static const TrainingRun &reference(const std::string &config) {
    static std::map<std::string, TrainingRun> runs;
    auto it = runs.find(config);
    if (it == runs.end())
      it = runs.emplace(config, train(config, CompileOptions())).first;
    return it->second;
  }
};

} // namespace

TEST_P(LayoutEquivalence, EqualsOneDevice) {
  auto [config, mesh] = GetParam();
  const TrainingRun &expected = reference(config);
  ASSERT_EQ(expected.losses.size(), size_t(kSteps));
  EXPECT_LT(expected.losses.back(), expected.losses.front() + 0.5) << "training diverged";
  TrainingRun actual = train(config, layout(mesh));
  ASSERT_EQ(actual.losses.size(), expected.losses.size());
  for (int step = 0; step < kSteps; ++step)
    EXPECT_NEAR(actual.losses[step], expected.losses[step], kTolerance * expected.losses[step])
        << "at step " << step + 1;
  ASSERT_EQ(actual.parameters.size(), expected.parameters.size());
  // AdamW divides by the root of the second moment, which makes much of little where a gradient is
  // all rounding: the bound is on the tensor's largest difference against its largest element.
  for (const auto &[name, tensor] : expected.parameters) {
    runtime::HostTensor a = tensor, b = actual.parameters.at(name);
    // The softmax does not see the key bias: its gradient is rounding and nothing else, and AdamW
    // makes full steps of it.
    if (llvm::StringRef(name).ends_with("attn.c_attn.bias"))
      for (int64_t third = a.type.numElements() / 3, i = third; i < 2 * third; ++i) {
        setElement(a, i, 0);
        setElement(b, i, 0);
      }
    EXPECT_LT(relativeDifference(a, b), kTolerance) << name;
  }
}

static const char *kMeshes[] = {
    "m=2",       "m=4",           "dp=2",      "dp=4",          "dp=8",     "tp=2",
    "tp=4",      "dp=2 m=2",      "dp=2,tp=2", "dp=2,tp=2 m=2", "tp=2 m=4", "dp=4,tp=2",
    "dp=2,tp=4", "tp=2,dp=2 m=4", "dp=4 m=4",  "tp=8",
};

/// "dp=2,tp=2 m=2" -> "dp2_tp2_m2".
static std::string nameOf(const testing::TestParamInfo<LayoutEquivalence::ParamType> &info) {
  std::string name;
  for (char c : std::string(std::get<1>(info.param)))
    if (c != '=')
      name += c == ',' || c == ' ' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Gpt2, LayoutEquivalence,
                         testing::Combine(testing::Values(kGpt2), testing::ValuesIn(kMeshes)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Llama, LayoutEquivalence,
                         testing::Combine(testing::Values(kLlama), testing::ValuesIn(kMeshes)),
                         nameOf);
