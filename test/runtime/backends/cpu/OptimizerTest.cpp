//===- OptimizerTest.cpp - Updates of parameters --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/cpu/KernelTest.h"

#include <cmath>

namespace dtc::runtime::test {
namespace {

HostTensor scalar(DType dtype, double value) { return makeTensor(dtype, {}, {value}); }

TEST(Optimizer, AdamW) {
  const double b1 = 0.9, b2 = 0.95, eps = 1e-6, weightDecay = 0.1;
  for (const Shape &shape : {Shape{}, Shape{7}, Shape{101, 701}, Shape{0}})
    for (double step : {1.0, 2.0, 1000.0})
      for (DType dtype : floatTypes) {
        Random random(110);
        HostTensor p = random.floats(dtype, shape), g = random.floats(dtype, shape, -3, 3);
        HostTensor m = random.floats(dtype, shape), v = random.floats(dtype, shape, 0, 2);
        double lr = 0.125, scale = 0.5;
        Values ps = valuesOf(p), gs = valuesOf(g), ms = valuesOf(m), vs = valuesOf(v);
        for (size_t i = 0; i < ps.size(); ++i) {
          double gradient = gs[i] * scale;
          ms[i] = b1 * ms[i] + (1 - b1) * gradient;
          vs[i] = b2 * vs[i] + (1 - b2) * gradient * gradient;
          double mHat = ms[i] / (1 - std::pow(b1, step)), vHat = vs[i] / (1 - std::pow(b2, step));
          ps[i] = ps[i] - lr * weightDecay * ps[i] - lr * mHat / (std::sqrt(vHat) + eps);
        }
        expectKernel({"adamw",
                      {p, g, m, v, scalar(dtype, lr), scalar(dtype, step), scalar(dtype, scale)},
                      {p.type, p.type, p.type},
                      {{"beta1", b1}, {"beta2", b2}, {"eps", eps}, {"weight_decay", weightDecay}},
                      {},
                      {{0, 0}, {2, 1}, {3, 2}}},
                     {ps, ms, vs}, 1e-15);
      }
}

TEST(Optimizer, Sgd) {
  for (const Shape &shape : {Shape{}, Shape{7}, Shape{101, 701}, Shape{0}})
    for (DType dtype : floatTypes) {
      Random random(111);
      HostTensor p = random.floats(dtype, shape), g = random.floats(dtype, shape, -3, 3);
      HostTensor m = random.floats(dtype, shape);
      Values ps = valuesOf(p), gs = valuesOf(g), ms = valuesOf(m);
      for (size_t i = 0; i < ps.size(); ++i) {
        ms[i] = 0.9 * ms[i] + (gs[i] * 0.25 + 0.01 * ps[i]);
        ps[i] -= 0.5 * ms[i];
      }
      expectKernel({"sgd",
                    {p, g, m, scalar(dtype, 0.5), scalar(dtype, 0.25)},
                    {p.type, p.type},
                    {{"momentum", 0.9}, {"weight_decay", 0.01}},
                    {},
                    {{0, 0}, {2, 1}}},
                   {ps, ms}, 1e-15);
    }
}

TEST(Optimizer, Refuses) {
  TensorType p{DType::F32, {4}}, s{DType::F32, {}}, wide{DType::F64, {}};
  AttributeMap attributes{{"beta1", 0.9}, {"beta2", 0.99}, {"eps", 1e-8}, {"weight_decay", 0.0}};
  expectRefused({"adamw", {p, p, p, p, s, s}, {p, p, p}, attributes, {}},
                "has 6 inputs, expected 7");
  expectRefused({"adamw", {p, p, p, p, s, wide, s}, {p, p, p}, attributes, {}},
                "input 5 is f64[], expected f32[]");
  expectRefused({"adamw", {p, p, p, s, s, s, s}, {p, p, p}, attributes, {}},
                "input 3 is f32[], expected f32[4]");
  expectRefused({"adamw", {p, p, p, p, s, s, s}, {p, p, s}, attributes, {}}, "output 2 is f32[]");
  attributes["beta2"] = 1.5;
  expectRefused({"adamw", {p, p, p, p, s, s, s}, {p, p, p}, attributes, {}},
                "attribute 'beta2' is 1.5, expected a number from 0 to 1");
  attributes.erase("beta2");
  expectRefused({"adamw", {p, p, p, p, s, s, s}, {p, p, p}, attributes, {}},
                "attribute 'beta2' is missing");
  expectRefused({"sgd", {p, p, p, s, s}, {p, p}, {{"momentum", 0.9}}, {}},
                "attribute 'weight_decay' is missing");
  expectRefused({"sgd", {p, p, p, s, p}, {p, p}, {{"momentum", 0.9}, {"weight_decay", 0.0}}, {}},
                "input 4 is f32[4], expected f32[]");
}

} // namespace
} // namespace dtc::runtime::test
