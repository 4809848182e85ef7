//===- ParityTest.cpp - The same numbers as PyTorch -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Reference values that Hugging Face transformers and PyTorch computed lie in data/; README.md
// there says how. Here the same models are imported and compiled for one device and for dp=2,tp=2
// with two microbatches, start from the same weights file, and see the same tokens.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Safetensors.h"
#include "runtime/plan/PlanTypes.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/train/Weights.h"
#include "test/support/CompileAndRun.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <fstream>

using namespace dtc;
using namespace dtc::test;

namespace {

/// The bound that the project promises, relative to a tensor's largest element.
constexpr double kTolerance = 1e-4;

class Parity : public testing::TestWithParam<std::tuple<std::string, std::string>> {
protected:
  void SetUp() override {
    folder = std::string(DTC_SOURCE_DIR) + "/test/parity/data/" + std::get<0>(GetParam()) + "/";
    std::ifstream(folder + "expected.json") >> expected;
    module = compiler.import(folder + "config.json", expected["batch"], expected["seq"]);
    ASSERT_TRUE(module) << compiler.diagnostics();
    options = layout(std::get<1>(GetParam()));
    const auto &optimizer = expected["optimizer"];
    options.beta1 = optimizer["beta1"];
    options.beta2 = optimizer["beta2"];
    options.eps = optimizer["eps"];
    options.weightDecay = optimizer["weight_decay"];
    options.clip = optimizer["clip_norm"];
  }

  std::unique_ptr<runtime::Session> open() {
    auto session = compiler.open(*module, options);
    EXPECT_TRUE(session) << compiler.diagnostics();
    if (session) {
      auto extra = runtime::loadWeights(*session, folder + "weights.safetensors");
      EXPECT_TRUE(bool(extra)) << extra.error().message;
      if (extra)
        EXPECT_TRUE(extra->empty())
            << "the file has a tensor that the model lacks: " << extra->front();
    }
    return session;
  }

  runtime::HostTensor load(const std::string &file, const std::string &name,
                           runtime::DType dtype = runtime::DType::F32) {
    auto opened = runtime::SafetensorsFile::open(folder + file);
    EXPECT_TRUE(bool(opened)) << opened.error().message;
    auto tensor = opened->read(name, dtype);
    EXPECT_TRUE(bool(tensor)) << tensor.error().message;
    return std::move(*tensor);
  }

  /// The rows of step `step`, 1 for the first.
  void setBatch(runtime::Session &session, int step) {
    int64_t batch = expected["batch"], seq = expected["seq"];
    for (const char *name : {"tokens", "labels"}) {
      runtime::HostTensor all = load("samples.safetensors", name, runtime::DType::I32);
      runtime::HostTensor rows(runtime::TensorType{runtime::DType::I32, {batch, seq}});
      std::memcpy(rows.bytes.data(), all.as<int32_t>() + (step - 1) * batch * seq,
                  rows.bytes.size());
      auto problem = session.setInput(name, rows);
      EXPECT_FALSE(problem) << problem->message;
    }
  }

  std::string folder;
  nlohmann::json expected;
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  CompileOptions options;
};

} // namespace

TEST_P(Parity, Gradients) {
  options.mode = CompileOptions::Mode::Gradients;
  auto session = open();
  ASSERT_TRUE(session);
  setBatch(*session, 1);
  ASSERT_FALSE(session->step(0, 1));
  double loss = expected["loss"][0];
  EXPECT_NEAR(element(*session->getOutput("loss")), loss, kTolerance * loss);
  int count = 0;
  for (const plan::State *each : runtime::distinctStates(session->plan())) {
    const plan::State &state = *each;
    auto gradient = session->getOutput("grad:" + state.name());
    ASSERT_TRUE(bool(gradient)) << state.name();
    gradient->type.shape.assign(state.file_shape().begin(), state.file_shape().end());
    EXPECT_LT(relativeDifference(load("gradients.safetensors", state.name()), *gradient, 1e-6),
              kTolerance)
        << state.name();
    ++count;
  }
  EXPECT_GT(count, 10);
}

TEST_P(Parity, ThreeStepsOfAdamw) {
  auto session = open();
  ASSERT_TRUE(session);
  for (int step = 1; step <= expected["steps"]; ++step) {
    setBatch(*session, step);
    ASSERT_FALSE(session->step(expected["optimizer"]["lr"], step));
    double loss = expected["loss"][step - 1], norm = expected["grad_norm"][step - 1];
    EXPECT_NEAR(element(*session->getOutput("loss")), loss, kTolerance * loss) << "step " << step;
    EXPECT_NEAR(element(*session->getOutput("grad_norm")), norm, kTolerance * norm)
        << "step " << step;
  }
  for (const plan::State *each : runtime::distinctStates(session->plan())) {
    const plan::State &state = *each;
    if (!state.parameter().empty())
      continue;
    runtime::HostTensor reference = load("parameters.safetensors", state.name());
    runtime::HostTensor actual = *session->getState(state.name());
    // What has no gradient but rounding (GPT-2's key biases) moves by AdamW as the rounding has it.
    runtime::HostTensor gradient = load("gradients.safetensors", state.name());
    for (int64_t i = 0; i < gradient.type.numElements(); ++i)
      if (double g = std::abs(element(gradient, i)); g > 0 && g < expected["rounding"]) {
        setElement(reference, i, 0);
        setElement(actual, i, 0);
      }
    EXPECT_LT(relativeDifference(reference, actual), kTolerance) << state.name();
  }
}

static std::string nameOf(const testing::TestParamInfo<Parity::ParamType> &info) {
  return std::get<0>(info.param) +
         (std::get<1>(info.param).empty() ? "_one_device" : "_four_devices");
}

INSTANTIATE_TEST_SUITE_P(Models, Parity,
                         testing::Combine(testing::Values("gpt2", "llama", "llama_tied"),
                                          testing::Values("", "dp=2,tp=2 m=2")),
                         nameOf);
