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
#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"
#include "runtime/data/Safetensors.h"
#include "runtime/train/Adapters.h"
#include "runtime/train/Weights.h"
#include "test/lib/compile/CompileAndRun.h"
#include "test/lib/files/SourcePath.h"
#include "test/lib/plans/TrainStep.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace dtc;
using namespace dtc::test;

namespace {

/// The bound that the project guarantees, relative to a tensor's largest element.
constexpr double kTolerance = 1e-4;

class LoraParity : public testing::TestWithParam<std::tuple<std::string, std::string>> {
protected:
  void SetUp() override {
    std::string data = dtc::test::sourcePath("test/parity/data/");
    folder = data + std::get<0>(GetParam()) + "/";
    std::ifstream(folder + "expected.json") >> expected;
    base = data + std::string(expected["base"]) + "/";
    options = strategy(std::get<1>(GetParam()));
    const auto &optimizer = expected["optimizer"];
    options.beta1 = optimizer["beta1"];
    options.beta2 = optimizer["beta2"].get<double>();
    options.eps = optimizer["eps"];
    options.weightDecay = optimizer["weight_decay"];
    options.clip = optimizer["clip_norm"];
  }

  std::unique_ptr<runtime::Session> open() {
    std::stringstream config;
    config << std::ifstream(base + "config.json").rdbuf();
    ImportOptions import;
    const auto &lora = expected["lora"];
    import.lora = LoraOptions{lora["r"], lora["lora_alpha"], 0, lora["target_modules"]};
    auto session =
        compiler.importAndOpen(config.str(), expected["batch"], expected["seq"], options, import);
    EXPECT_TRUE(session) << compiler.diagnostics();
    if (!session)
      return nullptr;
    auto notes = runtime::loadWeights(
        *session, {base + "weights.safetensors", folder + "adapters.safetensors"});
    EXPECT_TRUE(bool(notes)) << notes.error().message;
    if (notes)
      EXPECT_TRUE(notes->empty()) << notes->front();
    return session;
  }

  HostTensor load(const std::string &path, const std::string &name, DType dtype = DType::F32) {
    auto opened = runtime::SafetensorsFile::open(path);
    EXPECT_TRUE(bool(opened)) << opened.error().message;
    auto tensor = opened->read(name, dtype);
    EXPECT_TRUE(bool(tensor)) << tensor.error().message;
    return std::move(*tensor);
  }

  /// The rows of step `step`, 1 for the first.
  void setBatch(runtime::Session &session, int step) {
    int64_t batch = expected["batch"], seq = expected["seq"];
    for (const char *name : {"tokens", "labels"}) {
      auto all = load(base + "samples.safetensors", name, DType::I32);
      HostTensor rows(TensorType{DType::I32, {batch, seq}});
      std::memcpy(rows.bytes.data(), all.as<int32_t>() + (step - 1) * batch * seq,
                  rows.bytes.size());
      auto problem = session.setInput(name, rows);
      EXPECT_FALSE(problem) << problem->message;
    }
  }

  /// Trains for the steps of the reference, and compares what each gives.
  void train(runtime::Session &session) {
    for (int step = 1; step <= expected["steps"]; ++step) {
      setBatch(session, step);
      ASSERT_FALSE(trainStep(session, expected["optimizer"]["lr"]));
      double loss = expected["loss"][step - 1], norm = expected["grad_norm"][step - 1];
      EXPECT_NEAR(element(*session.getOutput("loss")), loss, kTolerance * loss) << "step " << step;
      EXPECT_NEAR(element(*session.getOutput("grad_norm")), norm, kTolerance * norm)
          << "step " << step;
    }
  }

  std::string folder, base;
  nlohmann::json expected;
  Compiler compiler;
  CompileOptions options;
};

} // namespace

TEST_P(LoraParity, Gradients) {
  options.mode = CompileMode::Gradients;
  auto session = open();
  ASSERT_TRUE(session);
  setBatch(*session, 1);
  ASSERT_FALSE(trainStep(*session, 0));
  auto reference = runtime::SafetensorsFile::open(folder + "gradients.safetensors");
  ASSERT_TRUE(bool(reference));
  size_t count = 0;
  for (const plan::Output *output : distinctOutputs(session->plan())) {
    if (!output->name().starts_with("grad:"))
      continue;
    std::string name = output->name().substr(5);
    auto gradient = session->getOutput(output->name());
    ASSERT_TRUE(bool(gradient)) << name;
    auto expectedGradient = load(folder + "gradients.safetensors", name);
    gradient->type.shape = expectedGradient.type.shape;
    EXPECT_LT(relativeDifference(expectedGradient, *gradient, 1e-6), kTolerance) << name;
    ++count;
  }
  // Of the adapters, and of nothing else.
  EXPECT_EQ(count, reference->tensors().size());
}

TEST_P(LoraParity, ThreeStepsOfAdamw) {
  auto session = open();
  ASSERT_TRUE(session);
  train(*session);
  for (const plan::State *state : distinctStates(session->plan())) {
    if (state->kind() != plan::State::PARAMETER)
      continue;
    const std::string &name = state->name();
    auto actual = *session->getState(name);
    if (isAdapterName(name))
      EXPECT_LT(relativeDifference(load(folder + "parameters.safetensors", name), actual),
                kTolerance)
          << name;
    else
      EXPECT_TRUE(load(base + "weights.safetensors", name).bytes == actual.bytes) << name;
  }
}

/// What is saved has PEFT's names and shapes, and its configuration PEFT's fields.
TEST_P(LoraParity, FilesAreThoseOfPeft) {
  auto session = open();
  ASSERT_TRUE(session);
  train(*session);
  std::filesystem::path saved =
      std::filesystem::path(testing::TempDir()) /
      (std::string("lora_") + std::to_string(getpid()) + "_" + std::get<0>(GetParam()));
  std::filesystem::create_directories(saved);
  auto adapters = runtime::AdapterFolder::create(session->plan(), saved);
  ASSERT_TRUE(adapters) << adapters.error().message;
  auto problem = adapters->save(*session);
  ASSERT_FALSE(problem) << problem->message;
  auto ours = runtime::SafetensorsFile::open(saved / "adapter_model.safetensors");
  auto theirs = runtime::SafetensorsFile::open(folder + "parameters.safetensors");
  ASSERT_TRUE(ours && theirs);
  ASSERT_EQ(ours->tensors().size(), theirs->tensors().size());
  for (const auto &[name, entry] : theirs->tensors()) {
    ASSERT_TRUE(ours->tensors().count(name)) << name;
    EXPECT_EQ(ours->tensors().at(name).str(), entry.str()) << name;
    EXPECT_TRUE(ours->read(name, DType::F32)->bytes == session->getState(name)->bytes);
  }
  nlohmann::json config;
  std::ifstream(saved / "adapter_config.json") >> config;
  EXPECT_EQ(config["peft_type"], "LORA");
  for (const char *field : {"r", "lora_alpha", "target_modules"})
    EXPECT_EQ(config[field], expected["lora"][field]);
  std::filesystem::remove_all(saved);
}

static std::string nameOf(const testing::TestParamInfo<LoraParity::ParamType> &info) {
  return std::get<0>(info.param) +
         (std::get<1>(info.param).empty() ? "_one_device" : "_four_devices");
}

INSTANTIATE_TEST_SUITE_P(Models, LoraParity,
                         testing::Combine(testing::Values("lora_gpt2", "lora_llama"),
                                          testing::Values("", "dp=2,tp=2 m=2")),
                         nameOf);
