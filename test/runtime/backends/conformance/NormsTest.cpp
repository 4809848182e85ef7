//===- NormsTest.cpp - Layer norm and RMS norm ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <cmath>

namespace dtc::runtime::test::normsTest {
namespace {

constexpr double kEps = 1e-3;

struct LayerNormResult {
  Values y, mean, rstd;
};

LayerNormResult layerNorm(const Values &x, const Values &gamma, const Values &beta) {
  size_t width = gamma.size();
  LayerNormResult result{Values(x.size()), {}, {}};
  for (size_t row = 0; row < x.size(); row += width) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < width; ++i) {
      sum += x[row + i];
      squares += x[row + i] * x[row + i];
    }
    double n = static_cast<double>(width), mean = sum / n;
    double rstd = 1 / std::sqrt(squares / n - mean * mean + kEps);
    result.mean.push_back(mean);
    result.rstd.push_back(rstd);
    for (size_t i = 0; i < width; ++i)
      result.y[row + i] = (x[row + i] - mean) * rstd * gamma[i] + beta[i];
  }
  return result;
}

LayerNormResult rmsNorm(const Values &x, const Values &gamma) {
  size_t width = gamma.size();
  LayerNormResult result{Values(x.size()), {}, {}};
  for (size_t row = 0; row < x.size(); row += width) {
    long double squares = 0; // of wide rows a sum of doubles is less exact than the kernels'
    for (size_t i = 0; i < width; ++i)
      squares += x[row + i] * x[row + i];
    auto rstd = static_cast<double>(1 / std::sqrt(squares / static_cast<double>(width) + kEps));
    result.rstd.push_back(rstd);
    for (size_t i = 0; i < width; ++i)
      result.y[row + i] = x[row + i] * rstd * gamma[i];
  }
  return result;
}

Shape rowsOf(const Shape &shape) { return Shape(shape.begin(), shape.end() - 1); }

TEST(Norms, LayerNorm) {
  for (const Shape &shape : {Shape{1}, Shape{9}, Shape{3, 7}, Shape{2, 45, 769}, Shape{2, 772},
                             Shape{3, 4092}, Shape{2, 8191}, Shape{1, 9000}, Shape{0, 4}})
    for (DType dtype : kFloatTypes) {
      Random random(90);
      HostTensor x = random.floats(dtype, shape, -2, 3);
      HostTensor gamma = random.floats(dtype, {shape.back()}),
                 beta = random.floats(dtype, {shape.back()});
      LayerNormResult expected = layerNorm(valuesOf(x), valuesOf(gamma), valuesOf(beta));
      TensorType rows{dtype, rowsOf(shape)};
      expectKernel({"layer_norm", {x, gamma, beta}, {x.type, rows, rows}, {{"eps", kEps}}},
                   {expected.y, expected.mean, expected.rstd}, 5e-15);
    }
}

TEST(Norms, LayerNormGradient) {
  for (const Shape &shape : {Shape{5}, Shape{3, 7}, Shape{4, 2, 33}, Shape{0, 4}})
    for (DType dtype : kFloatTypes) {
      Random random(91);
      HostTensor x = random.floats(dtype, shape, -2, 3), dy = random.floats(dtype, shape);
      HostTensor gamma = random.floats(dtype, {shape.back()});
      Values xs = valuesOf(x), gammas = valuesOf(gamma), betas(gammas.size()), dys = valuesOf(dy);
      LayerNormResult forward = layerNorm(xs, gammas, betas);
      auto gradient = [&](const std::function<Values(const Values &)> &f, const Values &at) {
        return numericGradient(f, at, dys);
      };
      expectKernel({"layer_norm_grad",
                    {x, gamma, makeTensor(dtype, rowsOf(shape), forward.mean),
                     makeTensor(dtype, rowsOf(shape), forward.rstd), dy},
                    {x.type, gamma.type, gamma.type}},
                   {gradient([&](const Values &v) { return layerNorm(v, gammas, betas).y; }, xs),
                    gradient([&](const Values &v) { return layerNorm(xs, v, betas).y; }, gammas),
                    gradient([&](const Values &v) { return layerNorm(xs, gammas, v).y; }, betas)},
                   dtype == DType::F32 ? 5e-15 : 1e-9);
    }
}

TEST(Norms, RmsNorm) {
  for (const Shape &shape : {Shape{1}, Shape{9}, Shape{3, 7}, Shape{2, 45, 769}, Shape{2, 772},
                             Shape{3, 4092}, Shape{2, 8191}, Shape{1, 9000}, Shape{0, 4}})
    for (DType dtype : kFloatTypes) {
      Random random(92);
      HostTensor x = random.floats(dtype, shape, -2, 3),
                 gamma = random.floats(dtype, {shape.back()});
      LayerNormResult expected = rmsNorm(valuesOf(x), valuesOf(gamma));
      expectKernel(
          {"rms_norm", {x, gamma}, {x.type, TensorType{dtype, rowsOf(shape)}}, {{"eps", kEps}}},
          {expected.y, expected.rstd}, 2e-15);
    }
}

TEST(Norms, RmsNormGradient) {
  for (const Shape &shape : {Shape{5}, Shape{3, 7}, Shape{4, 2, 33}, Shape{0, 4}})
    for (DType dtype : kFloatTypes) {
      Random random(93);
      HostTensor x = random.floats(dtype, shape, -2, 3), dy = random.floats(dtype, shape);
      HostTensor gamma = random.floats(dtype, {shape.back()});
      Values xs = valuesOf(x), gammas = valuesOf(gamma), dys = valuesOf(dy);
      expectKernel(
          {"rms_norm_grad",
           {x, gamma, makeTensor(dtype, rowsOf(shape), rmsNorm(xs, gammas).rstd), dy},
           {x.type, gamma.type}},
          {numericGradient([&](const Values &v) { return rmsNorm(v, gammas).y; }, xs, dys),
           numericGradient([&](const Values &v) { return rmsNorm(xs, v).y; }, gammas, dys)},
          dtype == DType::F32 ? 5e-15 : 1e-9);
    }
}

TEST(Norms, LargeGradients) {
  // Several parts of the rows, and rows of one, two and too many vectors of a thread of a GPU; f64
  // is the reference.
  for (const Shape &shape :
       {Shape{150, 513}, Shape{150, 768}, Shape{40, 2312}, Shape{20, 2313}, Shape{6, 8200}}) {
    Random random(94);
    Shape rows{shape[0]}, columns{shape[1]};
    HostTensor x = random.floats(DType::F32, shape), dy = random.floats(DType::F32, shape);
    HostTensor gamma = random.floats(DType::F32, columns), mean = random.floats(DType::F32, rows);
    HostTensor rstd = random.floats(DType::F32, rows, 0.5, 2);
    auto as = [](DType dtype, const HostTensor &t) {
      return makeTensor(dtype, t.type.shape, valuesOf(t));
    };
    auto check = [&](const std::function<KernelCall(DType)> &call) {
      std::vector<Values> expected;
      for (const HostTensor &result : call(DType::F64).run(1))
        expected.push_back(valuesOf(result));
      expectKernel(call(DType::F32), expected, 3e-15);
    };
    check([&](DType t) {
      TensorType parameter{t, columns};
      return KernelCall{"layer_norm_grad",
                        {as(t, x), as(t, gamma), as(t, mean), as(t, rstd), as(t, dy)},
                        {TensorType{t, shape}, parameter, parameter}};
    });
    check([&](DType t) {
      return KernelCall{"rms_norm_grad",
                        {as(t, x), as(t, gamma), as(t, rstd), as(t, dy)},
                        {TensorType{t, shape}, TensorType{t, columns}}};
    });
  }
}

TEST(Norms, Refuses) {
  TensorType x{DType::F32, {2, 3}}, gamma{DType::F32, {3}}, rows{DType::F32, {2}};
  TensorType scalar{DType::F32, {}};
  AttributeMap attributes{{"eps", 1e-5}};
  expectRefused({"layer_norm", {x, gamma, gamma}, {x, rows, rows}, {}, {}},
                "attribute 'eps' is missing");
  expectRefused({"layer_norm", {x, rows, gamma}, {x, rows, rows}, attributes, {}},
                "input 1 is f32[2], expected f32[3]");
  expectRefused({"layer_norm", {x, gamma, gamma}, {x, rows, gamma}, attributes, {}},
                "output 2 is f32[3], expected f32[2]");
  expectRefused({"layer_norm", {scalar, gamma, gamma}, {x, rows, rows}, attributes, {}},
                "input 0 is f32[], expected at least 1 dimensions");
  expectRefused({"layer_norm_grad", {x, gamma, rows, rows, x}, {x, gamma, gamma}, attributes, {}},
                "attribute 'eps' is unknown");
  expectRefused({"layer_norm_grad", {x, gamma, rows, rows, rows}, {x, gamma, gamma}, {}, {}},
                "input 4 is f32[2], expected f32[2,3]");
  expectRefused({"layer_norm_grad", {scalar, gamma, rows, rows, x}, {x, gamma, gamma}, {}, {}},
                "input 0 is f32[]");
  expectRefused({"rms_norm", {x, gamma}, {x, x}, attributes, {}}, "output 1 is f32[2,3]");
  expectRefused({"rms_norm_grad", {x, gamma, rows, x}, {x, rows}, {}, {}},
                "output 1 is f32[2], expected f32[3]");
}

} // namespace
} // namespace dtc::runtime::test::normsTest
