//===- LoraParityTest.cpp - Parity tests of adapters ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Reference values that Hugging Face's PEFT and PyTorch computed lie in data/lora_*; lora.md there
// says how. Here the same adapters are trained beside the same frozen weights.
//
//===----------------------------------------------------------------------===//

#include "plan/AdapterNames.h"
#include "plan/FileTensors.h"
#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"
#include "runtime/data/Safetensors.h"
#include "runtime/train/Adapters.h"
#include "runtime/train/Weights.h"
#include "test/lib/compile/CompileAndRun.h"
#include "test/lib/plans/TrainStep.h"
#include "test/parity/Reference.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <unistd.h>

namespace loraParityTest {

using namespace dtc;
using namespace dtc::test;

namespace {

class LoraParity : public testing::TestWithParam<std::tuple<std::string, std::string>> {
protected:
  std::unique_ptr<runtime::Session> open(CompileMode mode, bool doublePrecision = false) {
    CompileOptions options = adapters.compileOptions(std::get<1>(GetParam()));
    options.mode = mode;
    if (mode == CompileMode::Gradients)
      options.zero = 0; // it splits the states of an optimizer
    ImportOptions import;
    import.doublePrecision = doublePrecision;
    if (adapters.expected.contains("routing_margin")) // of a mixture of experts
      import.balanceLoss = BalanceLoss::None;
    const auto &lora = adapters.expected["lora"];
    import.lora = LoraOptions{lora["r"], lora["lora_alpha"], 0, lora["target_modules"]};
    for (const auto &tensor : lora.value("target_parameters", nlohmann::json::array()))
      import.lora->targets.push_back(tensor);
    auto module = compiler.import(base.path("config.json"), adapters.expected["batch"],
                                  adapters.sequence(), import);
    auto session = module ? compiler.open(*module, options) : nullptr;
    EXPECT_TRUE(session) << compiler.diagnostics();
    if (!session)
      return nullptr;
    auto notes = runtime::loadWeights(
        *session, {base.path("weights.safetensors"), adapters.path("adapters.safetensors")});
    EXPECT_TRUE(bool(notes)) << notes.error().message;
    if (notes)
      EXPECT_TRUE(notes->empty()) << notes->front();
    return session;
  }

  /// Trains for the steps of the reference, and compares what each gives.
  void train(runtime::Session &session, double tolerance = kTolerance) {
    const nlohmann::json &expected = adapters.expected;
    for (int step = 1; step <= expected["steps"]; ++step) {
      base.setBatch(session, "samples.safetensors", step - 1);
      ASSERT_FALSE(trainStep(session, expected["optimizer"]["lr"]));
      for (const char *name : {"loss", "grad_norm"}) {
        double wanted = expected[name][step - 1];
        EXPECT_NEAR(element(*session.getOutput(name)), wanted, tolerance * wanted)
            << name << " of step " << step;
      }
    }
  }

  /// Compares the gradients of the first step: those of the adapters, and there are no others.
  void compareGradients(runtime::Session &session, DType dtype, double tolerance) {
    base.setBatch(session, "samples.safetensors", 0);
    ASSERT_FALSE(trainStep(session, 0));
    size_t count = 0;
    double worst = 0;
    for (const plan::State *state : distinctStates(session.plan())) {
      auto gradient = session.getOutput("grad:" + state->name());
      ASSERT_EQ(bool(gradient), isAdapterName(state->name())) << state->name();
      if (!gradient)
        continue;
      gradient->type.shape = toVector(state->file_shape());
      double difference = relativeDifference(
          adapters.tensor("gradients.safetensors", *state, dtype), *gradient, 1e-6);
      EXPECT_LT(difference, tolerance) << state->name();
      worst = std::max(worst, difference);
      count += fileTensorNames(state->name()).size();
    }
    std::cout << "largest relative difference of a gradient: " << worst << "\n";
    auto reference = runtime::SafetensorsFile::open(adapters.path("gradients.safetensors"));
    ASSERT_TRUE(bool(reference));
    EXPECT_EQ(count, reference->tensors().size());
  }

  Reference adapters{std::get<0>(GetParam())};
  Reference base{adapters.expected["base"]};
  Compiler compiler;
};

/// References in f64, in which nothing was computed in f32.
class ExactLoraParity : public LoraParity {};

} // namespace

TEST_P(LoraParity, Gradients) {
  auto session = open(CompileMode::Gradients);
  ASSERT_TRUE(session);
  compareGradients(*session, DType::F32, kTolerance);
}

TEST_P(ExactLoraParity, GradientsAndTraining) {
  constexpr double kExact = 1e-9;
  auto session = open(CompileMode::Gradients, /*doublePrecision=*/true);
  ASSERT_TRUE(session);
  compareGradients(*session, DType::F64, kExact);
  session = open(CompileMode::Train, /*doublePrecision=*/true);
  ASSERT_TRUE(session);
  train(*session, kExact);
}

TEST_P(LoraParity, ThreeStepsOfAdamw) {
  auto session = open(CompileMode::Train);
  ASSERT_TRUE(session);
  train(*session);
  for (const plan::State *state : distinctStates(session->plan())) {
    if (state->kind() != plan::State::PARAMETER)
      continue;
    const std::string &name = state->name();
    auto actual = *session->getState(name);
    if (isAdapterName(name))
      EXPECT_LT(relativeDifference(adapters.tensor("parameters.safetensors", *state), actual),
                kTolerance)
          << name;
    else
      EXPECT_TRUE(base.tensor("weights.safetensors", *state).bytes == actual.bytes) << name;
  }
}

/// Saved files have PEFT's names and shapes, and the configuration has PEFT's fields.
TEST_P(LoraParity, FilesAreThoseOfPeft) {
  auto session = open(CompileMode::Train);
  ASSERT_TRUE(session);
  train(*session);
  std::filesystem::path saved =
      std::filesystem::path(testing::TempDir()) /
      (std::string("lora_") + std::to_string(getpid()) + "_" + std::get<0>(GetParam()));
  std::filesystem::create_directories(saved);
  auto folder = runtime::AdapterFolder::create(session->plan(), saved);
  ASSERT_TRUE(folder) << folder.error().message;
  auto problem = folder->save(*session);
  ASSERT_FALSE(problem) << problem->message;
  auto ours = runtime::SafetensorsFile::open(saved / "adapter_model.safetensors");
  auto theirs = runtime::SafetensorsFile::open(adapters.path("parameters.safetensors"));
  ASSERT_TRUE(ours && theirs);
  ASSERT_EQ(ours->tensors().size(), theirs->tensors().size());
  for (const auto &[name, entry] : theirs->tensors()) {
    ASSERT_TRUE(ours->tensors().count(name)) << name;
    EXPECT_EQ(ours->tensors().at(name).str(), entry.str()) << name;
  }
  for (const plan::State *state : distinctStates(session->plan())) {
    if (state->kind() != plan::State::PARAMETER || !isAdapterName(state->name()))
      continue;
    std::vector<std::byte> bytes;
    for (const std::string &name : fileTensorNames(state->name())) {
      HostTensor tensor = *ours->read(name, DType::F32);
      bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
    }
    EXPECT_TRUE(bytes == session->getState(state->name())->bytes) << state->name();
  }
  nlohmann::json config;
  std::ifstream(saved / "adapter_config.json") >> config;
  EXPECT_EQ(config["peft_type"], "LORA");
  for (const char *field : {"r", "lora_alpha", "target_modules"})
    EXPECT_EQ(config[field], adapters.expected["lora"][field]);
  EXPECT_EQ(config.value("target_parameters", nlohmann::json()),
            adapters.expected["lora"].value("target_parameters", nlohmann::json()));
  std::filesystem::remove_all(saved);
}

static std::string nameOf(const testing::TestParamInfo<LoraParity::ParamType> &info) {
  return std::get<0>(info.param) +
         (std::get<1>(info.param).empty() ? "_one_device" : "_four_devices");
}

static std::string strategyNameOf(const testing::TestParamInfo<LoraParity::ParamType> &info) {
  std::string name = std::get<0>(info.param) + "_";
  for (char c : std::get<1>(info.param))
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += c;
  return name;
}

using testing::Combine;
using testing::Values;

INSTANTIATE_TEST_SUITE_P(Models, LoraParity,
                         Combine(Values("lora_gpt2", "lora_llama"), Values("", "dp=2,tp=2 m=2")),
                         nameOf);

static const auto kMixtures =
    Combine(Values("lora_mixtral_narrow", "lora_qwen3_moe_narrow", "lora_deepseek_v3_narrow",
                   "lora_olmoe_narrow", "lora_gpt_oss_narrow", "lora_gpt_oss_uneven"),
            Values("", "ep=2,tp=2 m=2"));
INSTANTIATE_TEST_SUITE_P(Mixtures, LoraParity, kMixtures, nameOf);
INSTANTIATE_TEST_SUITE_P(Mixtures, ExactLoraParity, kMixtures, nameOf);

/// Adapters of tensors of all experts.
INSTANTIATE_TEST_SUITE_P(TensorLayouts, ExactLoraParity,
                         Combine(Values("lora_gpt_oss_narrow", "lora_gpt_oss_uneven"),
                                 Values("dp=4 zero=3", "tp=2 sp", "ep=2 m=2", "dp=2,ep=2 zero=1",
                                        "ep=4 expert_group=2 link=ep.0=1MB/s,1us", "ep=2,pp=2",
                                        "cp=2")),
                         strategyNameOf);

/// Adapters of routers, wherever the tokens and the experts are.
INSTANTIATE_TEST_SUITE_P(RouterLayouts, ExactLoraParity,
                         Combine(Values("lora_mixtral_narrow", "lora_olmoe_narrow"),
                                 Values("dp=4 zero=3", "tp=2 sp", "ep=4", "dp=2,ep=2", "ep=2,pp=2",
                                        "cp=2")),
                         strategyNameOf);

} // namespace loraParityTest
