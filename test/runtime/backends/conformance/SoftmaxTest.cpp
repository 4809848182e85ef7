//===- SoftmaxTest.cpp - Softmax over the last dimension ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <cmath>
#include <limits>

namespace dtc::runtime::test::softmaxTest {
namespace {

Values reference(const Values &x, size_t width) {
  Values y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double sum = 0;
    for (size_t i = row; i < row + width; ++i)
      sum += std::exp(x[i]);
    for (size_t i = row; i < row + width; ++i)
      y[i] = std::exp(x[i]) / sum;
  }
  return y;
}

TEST(Softmax, Forward) {
  for (const Shape &shape :
       {Shape{1}, Shape{3, 7}, Shape{2, 3, 100}, Shape{40, 2003}, Shape{0, 3}, Shape{3, 0}})
    for (DType dtype : kFloatTypes) {
      Random random(70);
      HostTensor x = random.floats(dtype, shape, -10, 10);
      size_t width = std::max<size_t>(1, static_cast<size_t>(shape.back()));
      expectKernel({"softmax", {x}, {x.type}, {}, {}, {{0, 0}}}, {reference(valuesOf(x), width)},
                   2e-15);
    }
}

/// The softmax of each matrix of `rows` x `width`, by definition; masked columns have weight 0.
Values causalReference(const Values &x, size_t rows, size_t width, double scale) {
  Values y(x.size(), 0.0);
  for (size_t row = 0; row < x.size() / width; ++row) {
    size_t begin = row * width, visible = row % rows + 1 + width - rows;
    double sum = 0;
    for (size_t i = begin; i < begin + visible; ++i)
      sum += std::exp(scale * x[i]);
    for (size_t i = begin; i < begin + visible; ++i)
      y[i] = std::exp(scale * x[i]) / sum;
  }
  return y;
}

TEST(Softmax, Causal) {
  for (const Shape &shape :
       {Shape{1, 1}, Shape{3, 3}, Shape{2, 3, 7}, Shape{2, 2, 40, 40}, Shape{300, 301}})
    for (DType dtype : kFloatTypes)
      for (double scale : {1.0, 0.125, -2.0}) {
        Random random(73);
        HostTensor x = random.floats(dtype, shape, -10, 10);
        AttributeMap attributes{{"causal", true}};
        if (scale != 1)
          attributes["scale"] = scale;
        Values expected = causalReference(valuesOf(x), static_cast<size_t>(shape.end()[-2]),
                                          static_cast<size_t>(shape.back()), scale);
        expectKernel({"softmax", {x}, {x.type}, attributes, {}, {{0, 0}}}, {expected}, 2e-15);
      }
}

TEST(Softmax, WhatIsMaskedDoesNotMatter) {
  double nan = std::numeric_limits<double>::quiet_NaN(),
         inf = std::numeric_limits<double>::infinity();
  for (DType dtype : kFloatTypes) {
    HostTensor x = makeTensor(dtype, {3, 3}, {5, nan, inf, 1, 1, 1e30, 2, 2, 2});
    expectKernel({"softmax", {x}, {x.type}, {{"causal", true}}, {}, {{0, 0}}},
                 {{1, 0, 0, 0.5, 0.5, 0, 1. / 3, 1. / 3, 1. / 3}});
  }
}

TEST(Softmax, Scaled) {
  for (DType dtype : kFloatTypes) {
    Random random(74);
    HostTensor x = random.floats(dtype, {5, 100}, -10, 10);
    Values scaled = valuesOf(x);
    for (double &value : scaled)
      value *= -0.25;
    expectKernel({"softmax", {x}, {x.type}, {{"scale", -0.25}, {"causal", false}}, {}, {{0, 0}}},
                 {reference(scaled, 100)}, 2e-15);
  }
}

TEST(Softmax, LargeInputsDoNotOverflow) {
  for (DType dtype : kFloatTypes) {
    HostTensor x = makeTensor(dtype, {3}, {1e4, 1e4, -1e4});
    expectKernel({"softmax", {x}, {x.type}}, {{0.5, 0.5, 0}});
  }
}

TEST(Softmax, Gradient) {
  for (const Shape &shape : {Shape{1}, Shape{3, 7}, Shape{2, 2, 19}})
    for (DType dtype : kFloatTypes) {
      Random random(71);
      Values x = valuesOf(random.floats(DType::F64, shape, -3, 3));
      HostTensor dy = random.floats(dtype, shape);
      size_t width = static_cast<size_t>(shape.back());
      HostTensor y = makeTensor(dtype, shape, reference(x, width));
      Values expected =
          numericGradient([&](const Values &v) { return reference(v, width); }, x, valuesOf(dy));
      expectKernel({"softmax_grad", {y, dy}, {y.type}, {}, {}, {{1, 0}}}, {expected},
                   dtype == DType::F32 ? 1e-15 : 1e-10);
    }
}

TEST(Softmax, GradientOfCausal) {
  for (DType dtype : kFloatTypes) {
    Random random(75);
    Shape shape{2, 4, 6};
    Values x = valuesOf(random.floats(DType::F64, shape, -3, 3));
    HostTensor dy = random.floats(dtype, shape);
    HostTensor y = makeTensor(dtype, shape, causalReference(x, 4, 6, 0.5));
    Values expected = numericGradient(
        [&](const Values &v) { return causalReference(v, 4, 6, 0.5); }, x, valuesOf(dy));
    expectKernel({"softmax_grad", {y, dy}, {y.type}, {{"scale", 0.5}}, {}, {{1, 0}}}, {expected},
                 dtype == DType::F32 ? 1e-15 : 1e-10);
  }
}

TEST(Softmax, LargeGradient) {
  for (DType dtype : kFloatTypes) {
    Random random(72);
    HostTensor y = random.floats(dtype, {60, 1501}, 0, 0.01), dy = random.floats(dtype, {60, 1501});
    Values ys = valuesOf(y), dys = valuesOf(dy), expected(ys.size());
    for (size_t row = 0; row < 60; ++row) {
      double sum = 0;
      for (size_t i = row * 1501; i < (row + 1) * 1501; ++i)
        sum += ys[i] * dys[i];
      for (size_t i = row * 1501; i < (row + 1) * 1501; ++i)
        expected[i] = ys[i] * (dys[i] - sum);
    }
    expectKernel({"softmax_grad", {y, dy}, {y.type}, {}, {}, {{1, 0}}}, {expected});
  }
}

TEST(Softmax, Refuses) {
  TensorType x{DType::F32, {2, 4}}, other{DType::F32, {2, 3}}, scalar{DType::F32, {}};
  expectRefused({"softmax", {x}, {other}, {}, {}},
                "kernel 'softmax': output 0 is f32[2,3], expected f32[2,4]");
  expectRefused({"softmax", {scalar}, {scalar}, {}, {}}, "expected at least 1 dimensions");
  expectRefused({"softmax", {x}, {x}, {{"dim", int64_t{1}}}, {}}, "attribute 'dim' is unknown");
  expectRefused({"softmax_grad", {x, other}, {x}, {}, {}}, "input 1 is f32[2,3]");
  TensorType row{DType::F32, {4}}, tall{DType::F32, {2, 5, 4}};
  AttributeMap causal{{"causal", true}};
  expectRefused({"softmax", {row}, {row}, causal, {}}, "expected at least 2 dimensions");
  expectRefused({"softmax", {tall}, {tall}, causal, {}},
                "input 0 is f32[2,5,4], expected no more rows than columns, as 'causal' is true");
  expectRefused({"softmax", {x}, {x}, {{"causal", int64_t{1}}}, {}}, "attribute 'causal'");
  expectRefused({"softmax", {x}, {x}, {{"scale", std::numeric_limits<double>::infinity()}}, {}},
                "attribute 'scale'");
  expectRefused({"softmax_grad", {x, x}, {x}, causal, {}}, "attribute 'causal' is unknown");
}

} // namespace
} // namespace dtc::runtime::test::softmaxTest
