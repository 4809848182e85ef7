//===- OptimizerTest.cpp - Updates of parameters --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <cmath>

namespace dtc::runtime::test::optimizerTest {
namespace {

HostTensor scalar(DType dtype, double value) { return makeTensor(dtype, {}, {value}); }
HostTensor flag(bool value) { return makeTensor(DType::Bool, {}, {value ? 1.0 : 0.0}); }

constexpr double kB1 = 0.9, kB2 = 0.95, kEps = 1e-6, kWeightDecay = 0.1, kMomentum = 0.8;
const Shape kShapes[] = {{}, {7}, {101, 701}, {0}};

/// The operands of one step.
struct Step {
  Step(DType dtype, const Shape &shape, uint64_t seed) : dtype(dtype) {
    Random random(seed);
    p = random.floats(dtype, shape);
    g = random.floats(dtype, shape, -3, 3);
    m = random.floats(dtype, shape);
    v = random.floats(dtype, shape, 0, 2);
  }

  /// A call of an optimizer with two moments and the number of the step.
  KernelCall adam(const std::string &kernel, double number, bool apply = true) const {
    return {
        kernel,
        {p, g, m, v, scalar(dtype, lr), scalar(dtype, number), scalar(dtype, scale), flag(apply)},
        {p.type, p.type, p.type},
        {{"beta1", kB1}, {"beta2", kB2}, {"eps", kEps}, {"weight_decay", kWeightDecay}},
        {},
        {{0, 0}, {2, 1}, {3, 2}}};
  }
  /// A call of one with one moment.
  KernelCall oneMoment(const std::string &kernel, AttributeMap attributes,
                       bool apply = true) const {
    return {kernel,
            {p, g, m, scalar(dtype, lr), scalar(dtype, scale), flag(apply)},
            {p.type, p.type},
            std::move(attributes),
            {},
            {{0, 0}, {2, 1}}};
  }

  DType dtype;
  HostTensor p, g, m, v;
  double lr = 0.125, scale = 0.5;
};

const AttributeMap kSgdAttributes{{"momentum", kMomentum}, {"weight_decay", kWeightDecay}};
const AttributeMap kLionAttributes{{"beta1", kB1}, {"beta2", kB2}, {"weight_decay", kWeightDecay}};

TEST(Optimizer, AdamWAndAdam) {
  for (const Shape &shape : kShapes)
    for (double number : {1.0, 2.0, 1000.0})
      for (bool decoupled : {true, false})
        for (DType dtype : kFloatTypes) {
          Step step(dtype, shape, 110);
          Values ps = valuesOf(step.p), gs = valuesOf(step.g);
          Values ms = valuesOf(step.m), vs = valuesOf(step.v);
          for (size_t i = 0; i < ps.size(); ++i) {
            double gradient = gs[i] * step.scale + (decoupled ? 0 : kWeightDecay * ps[i]);
            ms[i] = kB1 * ms[i] + (1 - kB1) * gradient;
            vs[i] = kB2 * vs[i] + (1 - kB2) * gradient * gradient;
            double mHat = ms[i] / (1 - std::pow(kB1, number));
            double vHat = vs[i] / (1 - std::pow(kB2, number));
            if (decoupled)
              ps[i] -= step.lr * kWeightDecay * ps[i];
            ps[i] -= step.lr * mHat / (std::sqrt(vHat) + kEps);
          }
          expectKernel(step.adam(decoupled ? "adamw" : "adam", number), {ps, ms, vs}, 1e-15);
        }
}

TEST(Optimizer, Sgd) {
  for (const Shape &shape : kShapes)
    for (DType dtype : kFloatTypes) {
      Step step(dtype, shape, 111);
      Values ps = valuesOf(step.p), gs = valuesOf(step.g), ms = valuesOf(step.m);
      for (size_t i = 0; i < ps.size(); ++i) {
        ms[i] = kMomentum * ms[i] + (gs[i] * step.scale + kWeightDecay * ps[i]);
        ps[i] -= step.lr * ms[i];
      }
      expectKernel(step.oneMoment("sgd", kSgdAttributes), {ps, ms}, 1e-15);
    }
}

TEST(Optimizer, Lion) {
  for (const Shape &shape : kShapes)
    for (DType dtype : kFloatTypes) {
      Step step(dtype, shape, 112);
      Values ps = valuesOf(step.p), gs = valuesOf(step.g), ms = valuesOf(step.m);
      for (size_t i = 0; i < ps.size(); ++i) {
        double gradient = gs[i] * step.scale, direction = kB1 * ms[i] + (1 - kB1) * gradient;
        ps[i] -= step.lr * ((direction > 0 ? 1 : -1) + kWeightDecay * ps[i]);
        ms[i] = kB2 * ms[i] + (1 - kB2) * gradient;
      }
      expectKernel(step.oneMoment("lion", kLionAttributes), {ps, ms}, 1e-15);
    }
}

TEST(Optimizer, LionTakesZeroForTheSignOfZero) {
  for (DType dtype : kFloatTypes) {
    Step step(dtype, {3}, 0);
    step.p = makeTensor(dtype, {3}, {4, 4, 4});
    step.g = makeTensor(dtype, {3}, {0, -0.0, NAN});
    step.m = makeTensor(dtype, {3}, {0, 0, 0});
    expectKernel(step.oneMoment("lion", {{"beta1", kB1}, {"beta2", kB2}, {"weight_decay", 0.0}}),
                 {{4, 4, NAN}, {0, 0, NAN}});
  }
}

TEST(Optimizer, AStepThatIsNotAppliedKeepsEveryBit) {
  for (const Shape &shape : kShapes)
    for (DType dtype : kFloatTypes) {
      Step step(dtype, shape, 113);
      // Values that arithmetic would not preserve: a gradient that spoils everything, a signed zero
      // and a NaN.
      Values gs(valuesOf(step.g).size(), INFINITY), ps = valuesOf(step.p);
      if (shape == Shape{7}) {
        ps[1] = -0.0;
        ps[2] = -NAN;
      }
      step.g = makeTensor(dtype, shape, gs);
      step.p = makeTensor(dtype, shape, ps);
      for (const KernelCall &call : {step.adam("adamw", 3, false), step.adam("adam", 3, false),
                                     step.oneMoment("sgd", kSgdAttributes, false),
                                     step.oneMoment("lion", kLionAttributes, false)}) {
        std::vector<std::vector<std::pair<size_t, size_t>>> ways{{}, call.inPlace};
        for (const auto &pair : call.inPlace)
          ways.push_back({pair});
        for (const auto &shared : ways)
          for (int threads : {1, 3}) {
            std::vector<HostTensor> results = call.run(threads, shared);
            for (size_t i = 0; i < results.size(); ++i)
              EXPECT_EQ(results[i].bytes, call.inputs[i == 0 ? 0 : i + 1].bytes)
                  << call.kernel << " output " << i;
          }
      }
    }
}

TEST(Optimizer, Refuses) {
  TensorType p{DType::F32, {4}}, s{DType::F32, {}}, wide{DType::F64, {}}, b{DType::Bool, {}};
  TensorType half{DType::BF16, {4}}, halfScalar{DType::BF16, {}};
  AttributeMap attributes{{"beta1", 0.9}, {"beta2", 0.99}, {"eps", 1e-8}, {"weight_decay", 0.0}};
  for (const char *kernel : {"adamw", "adam"}) {
    expectRefused({kernel, {p, p, p, p, s, s, s}, {p, p, p}, attributes, {}},
                  "has 7 inputs, expected 8");
    expectRefused({kernel, {p, p, p, p, s, wide, s, b}, {p, p, p}, attributes, {}},
                  "input 5 is f64[], expected f32[]");
    expectRefused({kernel, {p, p, p, s, s, s, s, b}, {p, p, p}, attributes, {}},
                  "input 3 is f32[], expected f32[4]");
    expectRefused({kernel, {p, p, p, p, s, s, s, s}, {p, p, p}, attributes, {}},
                  "input 7 is f32[], expected bool[]");
    expectRefused({kernel, {p, p, p, p, s, s, s, b}, {p, p, s}, attributes, {}},
                  "output 2 is f32[]");
    expectRefused({kernel,
                   {half, half, half, half, halfScalar, halfScalar, halfScalar, b},
                   {half, half, half},
                   attributes,
                   {}},
                  "input 0 is bf16[4], expected elements of f32 or f64");
  }
  attributes["beta2"] = 1.5;
  expectRefused({"adamw", {p, p, p, p, s, s, s, b}, {p, p, p}, attributes, {}},
                "attribute 'beta2' is 1.5, expected a number from 0 to 1");
  attributes.erase("beta2");
  expectRefused({"adamw", {p, p, p, p, s, s, s, b}, {p, p, p}, attributes, {}},
                "attribute 'beta2' is missing");
  expectRefused({"sgd", {p, p, p, s, s, b}, {p, p}, {{"momentum", 0.9}}, {}},
                "attribute 'weight_decay' is missing");
  expectRefused({"sgd", {p, p, p, s, p, b}, {p, p}, kSgdAttributes, {}},
                "input 4 is f32[4], expected f32[]");
  expectRefused({"sgd", {p, p, p, s, s, s}, {p, p}, kSgdAttributes, {}},
                "input 5 is f32[], expected bool[]");
  expectRefused({"lion", {p, p, p, s, s, b}, {p, p}, kSgdAttributes, {}},
                "attribute 'beta1' is missing");
  AttributeMap lion = kLionAttributes;
  lion["beta1"] = -1.0;
  expectRefused({"lion", {p, p, p, s, s, b}, {p, p}, lion, {}},
                "attribute 'beta1' is -1, expected a number from 0 to 1");
}

} // namespace
} // namespace dtc::runtime::test::optimizerTest
