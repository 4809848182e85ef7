//===- Training.cpp - Small models, trained with any strategy -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/equivalence/Training.h"
#include "test/lib/plans/TrainStep.h"

#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <tuple>

using namespace dtc;
using namespace dtc::test;

void dtc::test::PrintTo(const Model &model, std::ostream *os) { *os << model.name; }

/// Labels below 32. About i / batch of those of sample i count.
static HostTensor unevenLabels(const Model &model, int step) {
  TensorType type{DType::I32, {model.batch, model.seq}};
  HostTensor labels = randomTensor(type, step, "labels", 32);
  HostTensor chances = randomTensor(type, step, "counts", model.batch);
  for (int64_t i = 0; i < type.numElements(); ++i)
    if (chances.as<int32_t>()[i] >= i / model.seq)
      labels.as<int32_t>()[i] = -100;
  return labels;
}

MaybeError dtc::test::setPackedInputs(runtime::Session &session, const Model &model,
                                      uint64_t seed) {
  TensorType type{DType::I32, {model.batch, model.seq}};
  HostTensor labels = randomTensor(type, seed, "labels", 32), segments(type), positions(type);
  HostTensor lengths = randomTensor(type, seed, "lengths", model.seq / 2);
  HostTensor padding = randomTensor({DType::I32, {model.batch}}, seed, "padding", model.seq / 3);
  for (int64_t row = 0; row < model.batch; ++row) {
    int64_t end = model.seq - (row % 3 ? 1 + padding.as<int32_t>()[row] : 0);
    int64_t begin = 0, length = 0;
    for (int32_t number = 0; begin < model.seq; begin += length, ++number) {
      length = 1 + lengths.as<int32_t>()[row * model.seq + number];
      length = begin < end ? std::min(length, end - begin) : model.seq - begin;
      for (int64_t i = 0; i < length; ++i) {
        int64_t at = row * model.seq + begin + i;
        segments.as<int32_t>()[at] = begin < end ? number : -1;
        positions.as<int32_t>()[at] = static_cast<int32_t>(i);
        if (begin >= end || i < length / 2 || i == length - 1)
          labels.as<int32_t>()[at] = -100;
      }
    }
  }
  if (auto problem = session.setInput("labels", std::move(labels)))
    return problem;
  if (auto problem = session.setInput("segments", std::move(segments)))
    return problem;
  return session.setInput("positions", std::move(positions));
}

TrainingRun dtc::test::train(const Model &model, const CompileOptions &strategy) {
  TrainingRun run;
  Compiler compiler;
  CompileOptions options = strategy;
  options.eps = model.eps;
  options.freeze = model.freeze;
  ImportOptions import;
  import.lora = model.lora;
  import.attention = model.attention;
  import.packed = model.packed;
  if (model.losses) {
    import.labelSmoothing = 0.1;
    import.zLoss = 1e-2;
    import.ignoreIndex = -100;
  }
  auto module = compiler.importText(model.config, "config.json", model.batch, model.seq, import);
  EXPECT_TRUE(module) << compiler.diagnostics();
  if (!module)
    return run;
  if (model.f64)
    toDouble(*module);
  auto session = compiler.open(*module, options);
  EXPECT_TRUE(session) << compiler.diagnostics();
  if (!session)
    return run;
  EXPECT_EQ(session->numDevices(), devicesOf(options));
  EXPECT_FALSE(session->initializeStates(/*seed=*/7));
  // The step counts on from there.
  EXPECT_FALSE(setStepState(*session, plan::State::RANDOM_KEY, {7, 1}));
  EXPECT_FALSE(setLossScale(*session, 1024));
  for (int step = 1; step <= kSteps; ++step) {
    auto problem = setRandomInputs(*session, /*seed=*/step);
    if (!problem && model.losses)
      problem = session->setInput("labels", unevenLabels(model, step));
    if (!problem && model.packed)
      problem = setPackedInputs(*session, model, step);
    if (!problem)
      problem = trainStep(*session, 1e-2);
    EXPECT_FALSE(problem) << problem->message;
    if (problem)
      return run;
    run.losses.push_back(element(*session->getOutput("loss")));
    run.norms.push_back(element(*session->getOutput("grad_norm")));
  }
  for (const plan::State *state : distinctStates(session->plan()))
    if (state->kind() == plan::State::PARAMETER)
      run.parameters.emplace(state->name(), *session->getState(state->name()));
  return run;
}

const TrainingRun &dtc::test::trainOnce(const Model &model, const std::string &text) {
  // Tests of one program may give different models one name.
  using Key = std::tuple<std::string, std::string, int64_t, int64_t, std::string, double, bool>;
  static std::map<Key, TrainingRun> runs;
  auto [it, fresh] = runs.try_emplace(
      {model.name, model.config, model.batch, model.seq, text, model.eps, model.f64});
  if (fresh)
    it->second = train(model, strategy(text));
  return it->second;
}

std::vector<Model> dtc::test::inBothPrecisions(Model model) {
  Model wide = model;
  wide.eps = CompileOptions().eps;
  wide.f64 = true;
  model.eps = std::max(model.eps, 1e-4);
  return {wide, model};
}

void dtc::test::expectClose(const TrainingRun &expected, const TrainingRun &actual) {
  ASSERT_EQ(expected.losses.size(), size_t(kSteps));
  EXPECT_LT(expected.losses.back(), expected.losses.front() + 0.5) << "training diverged";
  ASSERT_EQ(actual.losses.size(), expected.losses.size());
  ASSERT_EQ(actual.parameters.size(), expected.parameters.size());
  ASSERT_FALSE(expected.parameters.empty());
  bool f64 = expected.parameters.begin()->second.type.dtype == DType::F64;
  double tolerance = f64 ? kF64Tolerance : kTolerance;
  for (int step = 0; step < kSteps; ++step)
    EXPECT_NEAR(actual.losses[step], expected.losses[step], tolerance * expected.losses[step])
        << "at step " << step + 1;
  // The bound is on the tensor's largest difference against its largest element.
  for (const auto &[name, tensor] : expected.parameters) {
    ASSERT_TRUE(actual.parameters.count(name)) << name;
    EXPECT_LT(relativeDifference(tensor, actual.parameters.at(name)), tolerance) << name;
  }
}

void dtc::test::expectEqualsOneDevice(const Model &model, const std::string &mesh,
                                      const std::string &settings) {
  for (const Model &each : inBothPrecisions(model)) {
    SCOPED_TRACE(each.f64 ? "f64" : "f32");
    expectClose(trainOnce(each, settings), train(each, strategy(mesh + settings)));
  }
}

void dtc::test::expectLossesNear(const TrainingRun &expected, const TrainingRun &actual,
                                 double tolerance) {
  ASSERT_EQ(expected.losses.size(), size_t(kSteps));
  ASSERT_EQ(actual.losses.size(), size_t(kSteps));
  for (int step = 0; step < kSteps; ++step)
    EXPECT_NEAR(actual.losses[step], expected.losses[step], tolerance * expected.losses[step])
        << "at step " << step + 1;
  EXPECT_NEAR(actual.norms.front(), expected.norms.front(), tolerance * expected.norms.front());
}

void dtc::test::expectSameBits(const TrainingRun &expected, const TrainingRun &actual) {
  ASSERT_EQ(expected.losses.size(), size_t(kSteps));
  EXPECT_EQ(expected.losses, actual.losses);
  EXPECT_EQ(expected.norms, actual.norms);
  ASSERT_EQ(actual.parameters.size(), expected.parameters.size());
  for (const auto &[name, tensor] : expected.parameters) {
    ASSERT_TRUE(actual.parameters.count(name)) << name;
    const HostTensor &other = actual.parameters.at(name);
    EXPECT_TRUE(tensor.bytes == other.bytes)
        << name << ": relative difference " << relativeDifference(tensor, other);
  }
}

std::string dtc::test::strategyName(const std::string &text) {
  std::string name;
  for (char c : text)
    if (llvm::isAlnum(c))
      name += c;
    else if (c != '=' && c != ':')
      name += '_';
  return name;
}
