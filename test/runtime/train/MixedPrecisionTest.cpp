//===- MixedPrecisionTest.cpp - Loss scales and master weights ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/data/Safetensors.h"
#include "runtime/executor/Session.h"
#include "runtime/train/SavedWeights.h"
#include "runtime/train/TrainLoop.h"
#include "runtime/train/Weights.h"
#include "support/Float16.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/StepStatePlan.h"
#include "test/lib/plans/TempDir.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

namespace mixedPrecisionTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

/// The parameter "w", f16[4,6] (f16[24] in files), with f32 master weights "w.master" in halves
/// over dp = 2. loss = 100 sum(w), so that each element's gradient, an f16, is 100 times the loss
/// scale, beyond what f16 holds from a scale of 656 on. Plain SGD follows it.
std::shared_ptr<plan::Plan> mixedPlan() {
  PlanBuilder b;
  auto fill = [&](double value) {
    uint32_t scalar = b.buffer(DType::F32, {}, plan::Buffer::CONSTANT);
    (*b.kernel("fill", {}, {scalar}).mutable_attributes())["value"] = floatAttribute(value);
    return scalar;
  };
  auto call = [&](const char *kernel, const std::vector<uint32_t> &inputs, const Shape &shape,
                  DType dtype = DType::F32) {
    uint32_t out = b.buffer(dtype, shape);
    b.kernel(kernel, inputs, {out});
    return out;
  };
  auto sum = [&](uint32_t from) {
    uint32_t out = b.buffer(DType::F32, {});
    plan::KernelCall &reduce = b.kernel("reduce", {from}, {out});
    (*reduce.mutable_attributes())["kind"] = stringAttribute("sum");
    (*reduce.mutable_attributes())["dims"] = intsAttribute({0, 1});
    return out;
  };
  b.axis("dp", 2);
  auto addState = [&](const char *name, DType dtype, const DimAxes &sharding) -> plan::State & {
    plan::State &state = b.state(name, dtype, {4, 6}, sharding);
    state.clear_file_shape();
    state.add_file_shape(24);
    return state;
  };
  plan::State &parameter = addState("w", DType::F16, {{}, {}});
  parameter.mutable_init()->set_kind(plan::Init::NORMAL);
  parameter.mutable_init()->set_scale(0.3);
  uint32_t w = parameter.buffer();
  plan::State &master = addState("w.master", DType::F32, {{"dp"}, {}});
  master.set_parameter("w");
  master.set_kind(plan::State::MASTER_WEIGHTS);
  uint32_t m = master.buffer();
  plan::State &slot = b.state("w.momentum", DType::F32, {4, 6}, {{"dp"}, {}});
  slot.set_parameter("w");
  slot.set_kind(plan::State::OPTIMIZER);
  uint32_t momentum = slot.buffer();
  StepStatePlan stepState(b, /*scalesLoss=*/true);
  uint32_t scale = stepState.lossScale();

  b.task("step");
  b.schedule(0);
  uint32_t hundred = fill(100);
  uint32_t loss = call("mul", {hundred, sum(call("convert", {w}, {4, 6}))}, {});
  uint32_t scaled = call("mul", {hundred, scale}, {});
  uint32_t rounded = call("convert", {scaled}, {}, DType::F16);
  uint32_t gradient = b.buffer(DType::F32, {2, 6}, plan::Buffer::GRADIENT);
  plan::KernelCall &broadcast = b.kernel("broadcast", {call("convert", {rounded}, {})}, {gradient});
  (*broadcast.mutable_attributes())["dims"] = intsAttribute({});
  uint32_t inverse = call("div", {fill(1), scale}, {});
  uint32_t squares = sum(call("mul", {gradient, gradient}, {2, 6}));
  b.collective(plan::Collective::ALL_REDUCE, {"dp"}, squares, squares);
  uint32_t norm = call("mul", {call("sqrt", {squares}, {}), inverse}, {});
  uint32_t apply = b.buffer(DType::Bool, {});
  (*b.kernel("compare", {norm, fill(std::numeric_limits<float>::max())}, {apply})
        .mutable_attributes())["predicate"] = stringAttribute("le");
  stepState.computeScalars();
  plan::KernelCall &sgd = b.kernel(
      "sgd", {m, gradient, momentum, stepState.learningRate(), inverse, apply}, {m, momentum});
  (*sgd.mutable_attributes())["momentum"] = floatAttribute(0);
  (*sgd.mutable_attributes())["weight_decay"] = floatAttribute(0);
  uint32_t half = call("convert", {m}, {2, 6}, DType::F16);
  b.collective(plan::Collective::ALL_GATHER, {"dp"}, half, w);
  stepState.update(apply);
  b.output("loss", DType::F32, {}, {}, loss);
  b.output("grad_norm", DType::F32, {}, {}, norm);
  return b.build();
}

std::unique_ptr<Session> makeSession() {
  auto session = Session::create(mixedPlan(), createCpuBackend());
  EXPECT_OK(session);
  return std::move(*session);
}

std::vector<double> valuesOf(const Expected<HostTensor> &tensor) {
  EXPECT_OK(tensor);
  std::vector<double> values;
  for (int64_t i = 0; tensor && i < tensor->type.numElements(); ++i)
    values.push_back(elementAt(*tensor, i));
  return values;
}

/// The values of a parameter of f16 for these master weights.
std::vector<double> inHalf(std::vector<double> values) {
  for (double &value : values)
    value = Float16(static_cast<float>(value));
  return values;
}

HostTensor floats(DType dtype, const std::vector<double> &values) {
  HostTensor tensor(TensorType{dtype, {static_cast<int64_t>(values.size())}});
  for (size_t i = 0; i < values.size(); ++i)
    setElement(tensor, static_cast<int64_t>(i), values[i]);
  return tensor;
}

} // namespace

TEST(MixedPrecision, MasterWeightsStartAsTheirParameter) {
  auto session = makeSession();
  ASSERT_OK(session->initializeStates(11));
  std::vector<double> master = valuesOf(session->getState("w.master"));
  EXPECT_EQ(valuesOf(session->getState("w")), inHalf(master));
  EXPECT_NE(master, inHalf(master));

  // As a parameter of that name in f32.
  PlanBuilder builder;
  plan::State &plain = builder.state("w", DType::F32, {4, 6}, {{}, {}});
  plain.mutable_init()->set_kind(plan::Init::NORMAL);
  plain.mutable_init()->set_scale(0.3);
  auto other = Session::create(builder.build(), createCpuBackend());
  ASSERT_OK(other);
  ASSERT_OK((*other)->initializeStates(11));
  EXPECT_EQ(valuesOf((*other)->getState("w")), master);
}

TEST(MixedPrecision, MasterWeightsComeBackFromFiles) {
  TempDir dir;
  auto first = makeSession();
  ASSERT_OK(first->initializeStates(3));
  ASSERT_OK(saveWeights(*first, dir.path("w.safetensors")));
  auto file = SafetensorsFile::open(dir.path("w.safetensors"));
  ASSERT_OK(file);
  ASSERT_EQ(file->tensors().size(), 1u);
  EXPECT_EQ(file->tensors().at("w").str(), "F32[24]");
  auto second = makeSession();
  auto notes = loadWeights(*second, dir.path("w.safetensors"));
  ASSERT_OK(notes);
  EXPECT_TRUE(notes->empty());
  EXPECT_EQ(valuesOf(second->getState("w.master")), valuesOf(first->getState("w.master")));
  EXPECT_EQ(valuesOf(second->getState("w")), valuesOf(first->getState("w")));
}

TEST(MixedPrecision, FilesOfAnyFloatTypeAreRoundedTwice) {
  TempDir dir;
  std::vector<double> values;
  for (int i = 0; i < 24; ++i)
    values.push_back(std::sin(i) * std::exp2(i - 12));
  // Near a tie of f16: f32 rounds it to the tie, which goes to the even neighbour, below.
  values[0] = 1 + std::exp2(-11) + std::exp2(-40);
  for (DType dtype : {DType::F64, DType::F32, DType::F16}) {
    HostTensor tensor = floats(dtype, values);
    ASSERT_OK(writeSafetensors(dir.path("w.safetensors"), {{"w", tensor}}));
    auto session = makeSession();
    ASSERT_OK(loadWeights(*session, dir.path("w.safetensors")));
    std::vector<double> master;
    for (int64_t i = 0; i < 24; ++i)
      master.push_back(static_cast<float>(elementAt(tensor, i)));
    EXPECT_EQ(valuesOf(session->getState("w.master")), master);
    EXPECT_EQ(valuesOf(session->getState("w")), inHalf(master));
    EXPECT_EQ(valuesOf(session->getState("w"))[0], dtype == DType::F16 ? 1 + std::exp2(-10) : 1);
  }
}

TEST(MixedPrecision, AnOverflowSkipsTheStepAndLowersTheScale) {
  TempDir dir;
  TrainOptions options;
  options.planPath = dir.path("m.plan");
  options.metricsPath = dir.path("m.jsonl");
  options.savePath = dir.path("w.safetensors");
  options.steps = 8;
  options.warmupSteps = 0;
  options.decay = LearningRateDecay::Constant;
  options.learningRate = 1e-6;
  options.lossScale = 4096;
  options.lossScaleGrowthInterval = 4;
  options.seed = 3;
  ASSERT_OK(writePlan(*mixedPlan(), options.planPath));
  std::FILE *out = std::fopen(dir.path("out.log").c_str(), "w");
  auto result = train(options, createCpuBackend(), out, out, false);
  std::fclose(out);
  ASSERT_OK(result);
  // Too large, too large, too large, four that fit, too large.
  EXPECT_EQ(result->stepsSkipped, 4);
  std::vector<double> scales;
  std::istringstream stream(dir.read("m.jsonl"));
  for (std::string line; std::getline(stream, line);) {
    nlohmann::json metrics = nlohmann::json::parse(line);
    scales.push_back(metrics["loss_scale"]);
    if (!metrics["grad_norm"].is_null()) {
      EXPECT_NEAR(metrics["grad_norm"].get<double>(), 100 * std::sqrt(24.0), 1e-3);
    }
  }
  EXPECT_EQ(scales, (std::vector<double>{4096, 2048, 1024, 512, 512, 512, 512, 1024}));

  // Four steps of 1e-4, most of them below what the parameter's f16 could follow.
  auto session = makeSession();
  ASSERT_OK(session->initializeStates(3));
  std::vector<double> start = valuesOf(session->getState("w.master"));
  ASSERT_OK(loadWeights(*session, options.savePath));
  std::vector<double> end = valuesOf(session->getState("w.master"));
  ASSERT_EQ(end.size(), start.size());
  for (size_t i = 0; i < end.size(); ++i)
    EXPECT_NEAR(end[i], start[i] - 4e-4, 1e-7);
}

} // namespace mixedPrecisionTest
