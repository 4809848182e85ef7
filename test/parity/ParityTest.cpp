//===- ParityTest.cpp - Parity tests with PyTorch -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Reference values that Hugging Face transformers and PyTorch computed lie in data/; README.md
// there says how. Here the same models are imported with the same settings and compiled for one
// device and for dp=2,tp=2 with two microbatches, start from the same weights file, and see the
// same samples.
//
//===----------------------------------------------------------------------===//

#include "plan/FileTensors.h"
#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"
#include "test/lib/compile/CompileAndRun.h"
#include "test/lib/plans/TrainStep.h"
#include "test/parity/Reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <iostream>

namespace parityTest {

using namespace dtc;
using namespace dtc::test;

namespace {

class Parity : public testing::TestWithParam<std::tuple<std::string, std::string>> {
protected:
  void SetUp() override {
    module = compiler.import(reference.path("config.json"), reference.expected["batch"],
                             reference.sequence(), reference.importOptions());
    ASSERT_TRUE(module) << compiler.diagnostics();
  }

  /// Compiles for the mode and starts from the file's weights; null if that fails.
  std::unique_ptr<runtime::Session> open(CompileMode mode,
                                         const std::string &weights = "weights.safetensors") {
    CompileOptions options = reference.compileOptions(std::get<1>(GetParam()));
    options.mode = mode;
    auto session = compiler.open(*module, options);
    EXPECT_TRUE(session) << compiler.diagnostics();
    if (session)
      reference.setWeights(*session, weights);
    return session;
  }

  /// Expects an output, a scalar, to be the number.
  void expectOutput(runtime::Session &session, const std::string &name, double number) {
    auto value = session.getOutput(name);
    ASSERT_TRUE(bool(value)) << value.error().message;
    EXPECT_NEAR(element(*value), number, kTolerance * number) << name;
  }

  Reference reference{std::get<0>(GetParam())};
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// References that have gradients of their own.
class GradientParity : public Parity {};

/// References that have losses of samples which are not trained on.
class EvaluationParity : public Parity {};

} // namespace

/// The largest absolute value.
static double largest(const HostTensor &tensor) {
  double result = 0;
  for (int64_t i = 0; i < tensor.type.numElements(); ++i)
    result = std::max(result, std::abs(element(tensor, i)));
  return result;
}

TEST_P(GradientParity, Gradients) {
  auto session = open(CompileMode::Gradients);
  ASSERT_TRUE(session);
  reference.setBatch(*session, "samples.safetensors", 0);
  ASSERT_FALSE(trainStep(*session, 0));
  expectOutput(*session, "loss", reference.expected["loss"][0]);
  int trained = 0, frozen = 0;
  for (const plan::State *state : distinctStates(session->plan())) {
    const std::string &name = state->name(), output = "grad:" + name;
    if (!reference.hasTensor("gradients.safetensors", fileTensorNames(state->name()).front())) {
      EXPECT_FALSE(session->findOutput(output)) << name << " should not train";
      ++frozen;
      continue;
    }
    auto gradient = session->getOutput(output);
    ASSERT_TRUE(bool(gradient)) << gradient.error().message;
    gradient->type.shape.assign(state->file_shape().begin(), state->file_shape().end());
    ++trained;
    HostTensor wanted = reference.tensor("gradients.safetensors", *state);
    // A softmax does not change with the bias of keys: all of its gradient is rounding.
    if (name.ends_with("key.bias") && largest(wanted) < reference.expected["rounding"]) {
      EXPECT_LT(largest(*gradient), 1e-6) << name;
      continue;
    }
    EXPECT_LT(relativeDifference(wanted, *gradient, 1e-6), kTolerance) << name;
  }
  EXPECT_GT(trained, 7);
  EXPECT_EQ(frozen > 0, reference.expected.contains("freeze"));
}

TEST_P(Parity, Training) {
  auto session = open(CompileMode::Train);
  ASSERT_TRUE(session);
  const nlohmann::json &expected = reference.expected;
  for (int step = 1; step <= expected["steps"]; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    reference.setBatch(*session, "samples.safetensors", step - 1);
    ASSERT_FALSE(trainStep(*session, expected["optimizer"]["lr"]));
    expectOutput(*session, "loss", expected["loss"][step - 1]);
    expectOutput(*session, "grad_norm", expected["grad_norm"][step - 1]);
  }
  for (const plan::State *each : distinctStates(session->plan())) {
    const plan::State &state = *each;
    if (state.kind() != plan::State::PARAMETER)
      continue;
    HostTensor wanted = reference.tensor("parameters.safetensors", state);
    HostTensor actual = *session->getState(state.name());
    // AdamW moves elements whose gradient is rounding alone (GPT-2's key biases) by that rounding.
    if (reference.hasTensor("gradients.safetensors", fileTensorNames(state.name()).front())) {
      HostTensor gradient = reference.tensor("gradients.safetensors", state);
      for (int64_t i = 0; i < gradient.type.numElements(); ++i)
        if (double g = std::abs(element(gradient, i)); g > 0 && g < expected["rounding"]) {
          setElement(wanted, i, 0);
          setElement(actual, i, 0);
        }
    }
    EXPECT_LT(relativeDifference(wanted, actual), kTolerance) << state.name();
  }
}

/// In f64, against losses and gradients that are stored in f64.
class ExactParity : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

/// Whether a reference compares how often experts are chosen over the whole batch, which
/// microbatches do not see.
static bool balancesOverBatch(const Reference &reference) {
  return reference.json("config.json").value("output_router_logits", false);
}

TEST_P(ExactParity, GradientsAndTraining) {
  constexpr double kExact = 1e-9;
  const auto &[model, strategy] = GetParam();
  Reference reference(model);
  Compiler compiler;
  ImportOptions import = reference.importOptions();
  import.doublePrecision = true;
  const nlohmann::json &expected = reference.expected;
  auto module = compiler.import(reference.path("config.json"), expected["batch"],
                                reference.sequence(), import);
  ASSERT_TRUE(module) << compiler.diagnostics();
  if (balancesOverBatch(reference) && reference.compileOptions(strategy).microbatches > 1) {
    EXPECT_FALSE(compiler.open(*module, reference.compileOptions(strategy)));
    EXPECT_NE(compiler.diagnostics().find("needs a sum over all microbatches"), std::string::npos)
        << compiler.diagnostics();
    return;
  }
  auto open = [&](CompileMode mode) {
    CompileOptions options = reference.compileOptions(strategy);
    options.mode = mode;
    if (mode != CompileMode::Train)
      options.zero = 0; // there is no optimizer
    auto session = compiler.open(*module, options);
    EXPECT_TRUE(session) << compiler.diagnostics();
    if (session)
      reference.setWeights(*session, "weights.safetensors");
    return session;
  };
  auto expectOutput = [&](runtime::Session &session, const std::string &name, double number) {
    auto value = session.getOutput(name);
    ASSERT_TRUE(bool(value)) << value.error().message;
    EXPECT_NEAR(element(*value), number, kExact * number) << name;
  };

  auto session = open(CompileMode::Gradients);
  ASSERT_TRUE(session);
  reference.setBatch(*session, "samples.safetensors", 0);
  ASSERT_FALSE(trainStep(*session, 0));
  expectOutput(*session, "loss", expected["loss"][0]);
  double worst = 0;
  for (const plan::State *state : distinctStates(session->plan())) {
    auto gradient = session->getOutput("grad:" + state->name());
    // A buffer of transformers has no gradient, and training does not change it.
    bool isBuffer = state->name().ends_with("e_score_correction_bias");
    ASSERT_EQ(bool(gradient), !isBuffer) << state->name();
    if (isBuffer)
      continue;
    gradient->type.shape.assign(state->file_shape().begin(), state->file_shape().end());
    double difference = relativeDifference(
        reference.tensor("gradients.safetensors", *state, DType::F64), *gradient, 1e-6);
    EXPECT_LT(difference, kExact) << state->name();
    worst = std::max(worst, difference);
  }
  std::cout << "largest relative difference of a gradient: " << worst << "\n";

  session = open(CompileMode::Train);
  ASSERT_TRUE(session);
  for (int step = 1; step <= expected["steps"]; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    reference.setBatch(*session, "samples.safetensors", step - 1);
    ASSERT_FALSE(trainStep(*session, expected["optimizer"]["lr"]));
    expectOutput(*session, "loss", expected["loss"][step - 1]);
    expectOutput(*session, "grad_norm", expected["grad_norm"][step - 1]);
  }
  for (const plan::State *state : distinctStates(session->plan())) {
    if (!state->name().ends_with("e_score_correction_bias"))
      continue;
    HostTensor before = reference.tensor("weights.safetensors", *state, DType::F64);
    EXPECT_EQ(session->getState(state->name())->bytes, before.bytes) << state->name();
  }
}

/// By the entry point of the train step, before training and after it.
TEST_P(EvaluationParity, Loss) {
  nlohmann::json expected = reference.json("evaluation.json");
  auto session = open(CompileMode::Train);
  ASSERT_TRUE(session);
  runtime::Session *evaluate = session->findEntry("evaluate");
  ASSERT_TRUE(evaluate);
  auto expectLosses = [&](const char *moment) {
    SCOPED_TRACE(moment);
    double total = 0, counted = 0;
    const nlohmann::json &batches = expected[moment]["batches"];
    for (size_t i = 0; i < batches.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "batch " << i);
      reference.setBatch(*evaluate, "held_out.safetensors", int64_t(i));
      ASSERT_FALSE(trainStep(*evaluate, 0));
      expectOutput(*evaluate, "loss", batches[i]["loss"]);
      double count = batches[i]["counted"];
      total += count * element(*evaluate->getOutput("loss"));
      counted += count;
    }
    double mean = expected[moment]["mean"];
    EXPECT_NEAR(total / counted, mean, kTolerance * mean);
  };
  expectLosses("before");
  for (int step = 1; step <= reference.expected["steps"]; ++step) {
    reference.setBatch(*session, "samples.safetensors", step - 1);
    ASSERT_FALSE(trainStep(*session, reference.expected["optimizer"]["lr"]));
  }
  expectLosses("after");
}

static std::string nameOf(const testing::TestParamInfo<Parity::ParamType> &info) {
  const auto &[model, strategy] = info.param;
  std::string name = model + "_" + (strategy.empty() ? "one_device" : strategy);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

/// On one device and on four, each reference that has the file itself.
static auto eachWith(const std::string &file) {
  return testing::Combine(testing::ValuesIn(findReferences(file)),
                          testing::Values("", "dp=2,tp=2 m=2"));
}

/// References that have gradients of their own and parameters to compare in f32.
static std::vector<std::string> findGradients() {
  std::vector<std::string> names = findReferences("gradients.safetensors");
  std::erase_if(names, [](const std::string &name) {
    return !Reference(name).hasOwn("parameters.safetensors");
  });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, Parity, eachWith("parameters.safetensors"), nameOf);
INSTANTIATE_TEST_SUITE_P(Models, GradientParity,
                         testing::Combine(testing::ValuesIn(findGradients()),
                                          testing::Values("", "dp=2,tp=2 m=2")),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Models, EvaluationParity, eachWith("evaluation.json"), nameOf);

/// References whose losses and gradients are exact: those of the families of models.
static std::vector<std::string> findExactReferences() {
  std::vector<std::string> names = findReferences("expected.json");
  std::erase_if(names, [](const std::string &name) {
    return !Reference(name).expected.value("exact", false);
  });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, ExactParity,
                         testing::Combine(testing::ValuesIn(findExactReferences()),
                                          testing::Values("", "dp=2,tp=2 m=2",
                                                          "tp=2,pp=2 m=2 sp recompute=full",
                                                          "dp=2 zero=3 recompute=selective")),
                         nameOf);

/// Those with experts.
static std::vector<std::string> findMixtures() {
  std::vector<std::string> names = findExactReferences();
  std::erase_if(names, [](const std::string &name) {
    return !Reference(name).json("config.json").contains("num_experts_per_tok");
  });
  return names;
}

INSTANTIATE_TEST_SUITE_P(
    Mixtures, ExactParity,
    testing::Combine(
        testing::ValuesIn(findMixtures()),
        testing::Values("ep=2 zero=1", "dp=2,ep=2 zero=3", "dp=2,ep=2,tp=2 sp",
                        "ep=4 recompute=full", "pp=2,ep=2 m=2 zero=1",
                        "ep=4 expert_group=2 link=ep.0=1MB/s,1us",
                        "ep=4 expert_group=2 link=ep.0=1MB/s,1us recompute=full zero=1",
                        "ep=4,tp=2 expert_group=2 link=ep.0=1MB/s,1us sp zero=3")),
    nameOf);

TEST(References, AreFound) {
  EXPECT_GE(findExactReferences().size(), 62u);
  EXPECT_GE(findMixtures().size(), 8u);
  EXPECT_GE(findReferences("parameters.safetensors").size(), 38u);
  EXPECT_GE(findGradients().size(), 32u);
  EXPECT_GE(findReferences("evaluation.json").size(), 7u);
}

} // namespace parityTest
