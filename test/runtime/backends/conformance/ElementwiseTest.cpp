//===- ElementwiseTest.cpp - Elementwise kernels --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <cmath>
#include <limits>

namespace dtc::runtime::test::elementwiseTest {
namespace {

struct UnaryCase {
  std::string kernel;
  std::function<double(double)> function;
  double low = -6, high = 6;
  AttributeMap attributes = {};
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
double geluTanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double geluNone(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2))); }
double silu(double x) { return x * sigmoid(x); }

std::vector<UnaryCase> unaryCases() {
  return {{"neg", [](double x) { return -x; }},
          {"abs", [](double x) { return std::fabs(x); }},
          {"exp", [](double x) { return std::exp(x); }},
          {"log", [](double x) { return std::log(x); }, 0.01, 20},
          {"sqrt", [](double x) { return std::sqrt(x); }, 0, 20},
          {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.1, 20},
          {"tanh", [](double x) { return std::tanh(x); }},
          {"sigmoid", sigmoid},
          {"softplus", softplus},
          {"relu", [](double x) { return x > 0 ? x : 0; }},
          {"silu", silu},
          {"gelu", geluTanh, -8, 8, {{"approximate", "tanh"}}},
          {"gelu", geluNone, -8, 8, {{"approximate", "none"}}}};
}

TEST(Elementwise, Unary) {
  for (const UnaryCase &unary : unaryCases())
    for (DType dtype : kFloatTypes)
      for (const Shape &shape : {Shape{}, Shape{1}, Shape{3, 5, 7}, Shape{70001}, Shape{0, 4}}) {
        Random random(1);
        HostTensor x = random.floats(dtype, shape, unary.low, unary.high);
        Values expected;
        for (double value : valuesOf(x))
          expected.push_back(unary.function(value));
        expectKernel({unary.kernel, {x}, {x.type}, unary.attributes, {}, {{0, 0}}}, {expected},
                     1e-15);
      }
}

TEST(Elementwise, UnaryGradients) {
  std::vector<UnaryCase> cases = {{"gelu_grad", geluTanh, -6, 6, {{"approximate", "tanh"}}},
                                  {"gelu_grad", geluNone, -6, 6, {{"approximate", "none"}}},
                                  {"silu_grad", silu, -6, 6}};
  for (const UnaryCase &unary : cases)
    for (DType dtype : kFloatTypes) {
      Random random(2);
      HostTensor x = random.floats(dtype, {70, 301}, -6, 6);
      HostTensor dy = random.floats(dtype, {70, 301});
      Values xs = valuesOf(x), dys = valuesOf(dy), expected(xs.size());
      for (size_t i = 0; i < xs.size(); ++i)
        expected[i] = dys[i] * (unary.function(xs[i] + 1e-5) - unary.function(xs[i] - 1e-5)) / 2e-5;
      expectKernel({unary.kernel, {x, dy}, {x.type}, unary.attributes, {}, {{0, 0}, {1, 0}}},
                   {expected}, dtype == DType::F32 ? 1e-15 : 1e-9);
    }
}

TEST(Elementwise, UnarySpecialValues) {
  double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (DType dtype : kFloatTypes) {
    auto run = [&](const std::string &kernel, const Values &x, const Values &expected) {
      Shape shape{static_cast<int64_t>(x.size())};
      expectKernel({kernel, {makeTensor(dtype, shape, x)}, {TensorType{dtype, shape}}}, {expected});
    };
    run("exp", {infinity, -infinity, nan, 0, 1000, -1000}, {infinity, 0, nan, 1, infinity, 0});
    run("log", {infinity, 0, nan, 1, -1}, {infinity, -infinity, nan, 0, nan});
    run("tanh", {infinity, -infinity, nan, 0, 1000, -1000}, {1, -1, nan, 0, 1, -1});
    run("sigmoid", {infinity, -infinity, nan, 0, 1000, -1000}, {1, 0, nan, 0.5, 1, 0});
    run("softplus", {infinity, -infinity, nan, 0, 1000, -1000},
        {infinity, 0, nan, std::log(2.0), 1000, 0});
    run("relu", {infinity, -infinity, nan, -0.5}, {infinity, 0, nan, 0});
  }
}

/// The approximations as the host runs them, vectorised.
TEST(Elementwise, ApproximationsAreAccurate) {
  for (const UnaryCase &unary : unaryCases()) {
    if (unary.kernel != "exp" && unary.kernel != "tanh" && unary.kernel != "sigmoid" &&
        unary.kernel != "softplus")
      continue;
    Random random(7);
    HostTensor x = random.floats(DType::F32, {100000}, -20, 20);
    Values xs = valuesOf(x), ys = valuesOf(KernelCall{unary.kernel, {x}, {x.type}}.run(1)[0]);
    for (size_t i = 0; i < xs.size(); ++i)
      ASSERT_NEAR(ys[i] / unary.function(xs[i]), 1, 3e-7) << unary.kernel << " of " << xs[i];
  }
}

struct BinaryCase {
  std::string kernel;
  std::function<double(double, double)> function;
};

std::vector<BinaryCase> binaryCases() {
  return {{"add", [](double a, double b) { return a + b; }},
          {"sub", [](double a, double b) { return a - b; }},
          {"mul", [](double a, double b) { return a * b; }},
          {"maximum", [](double a, double b) { return std::fmax(a, b); }},
          {"minimum", [](double a, double b) { return std::fmin(a, b); }},
          {"div", [](double a, double b) { return a / b; }}};
}

/// The element of an operand with dims at each element of the result.
Values spread(const HostTensor &operand, const Shape &dims, const Shape &result) {
  Values values = valuesOf(operand), out;
  for (int64_t linear = 0; linear < count(result); ++linear) {
    Shape index(result.size());
    int64_t rest = linear;
    for (size_t d = result.size(); d-- > 0; rest /= result[d])
      index[d] = rest % result[d];
    int64_t position = 0;
    for (size_t i = 0; i < dims.size(); ++i)
      position = position * operand.type.shape[i] + index[static_cast<size_t>(dims[i])];
    out.push_back(values[static_cast<size_t>(position)]);
  }
  return out;
}

TEST(Elementwise, Binary) {
  struct Dims {
    Shape result, lhs, rhs;
  };
  std::vector<Dims> allDims = {{{2, 3, 5}, {0, 1, 2}, {0, 1, 2}},
                               {{}, {}, {}},
                               {{2, 3, 5}, {0, 1, 2}, {2}},
                               {{2, 3, 5}, {0, 1}, {0, 1, 2}},
                               {{2, 3, 5}, {0}, {2}},
                               {{2, 3, 5}, {1}, {0, 2}},
                               {{2, 3, 5}, {}, {0, 1, 2}},
                               {{2, 3, 5}, {0, 1, 2}, {}},
                               {{3, 4}, {}, {}},
                               {{1, 7, 1, 6}, {1, 2}, {0, 3}},
                               {{401, 77}, {0, 1}, {1}},
                               {{401, 77}, {0, 1}, {0}},
                               {{401, 77}, {0}, {1}},
                               {{0, 3}, {0, 1}, {1}}};
  for (const BinaryCase &binary : binaryCases())
    for (DType dtype : {DType::F32, DType::F64, DType::I32})
      for (const Dims &dims : allDims) {
        if (dtype == DType::I32 && binary.kernel == "div")
          continue;
        Random random(3);
        auto operand = [&](const Shape &operandDims) {
          Shape shape;
          for (int64_t dim : operandDims)
            shape.push_back(dims.result[static_cast<size_t>(dim)]);
          return dtype == DType::I32 ? random.integers(dtype, shape, -99, 99)
                                     : random.floats(dtype, shape, 0.5, 2);
        };
        HostTensor lhs = operand(dims.lhs), rhs = operand(dims.rhs);
        Values a = spread(lhs, dims.lhs, dims.result), b = spread(rhs, dims.rhs, dims.result);
        Values expected;
        for (size_t i = 0; i < a.size(); ++i)
          expected.push_back(binary.function(a[i], b[i]));
        KernelCall call{binary.kernel,
                        {lhs, rhs},
                        {TensorType{dtype, dims.result}},
                        {{"lhs_dims", dims.lhs}, {"rhs_dims", dims.rhs}}};
        for (size_t i = 0; i < 2; ++i)
          if (call.inputs[i].type == call.outputs[0]) {
            call.inPlace.push_back({i, 0});
            call.attributes.erase(i == 0 ? "lhs_dims" : "rhs_dims"); // absent means all
          }
        expectKernel(call, {expected}, 1e-15);
      }
}

TEST(Elementwise, BinarySpecialValues) {
  double nan = std::nan("");
  for (DType dtype : kFloatTypes) {
    HostTensor lhs = makeTensor(dtype, {3}, {nan, 1, 1}), rhs = makeTensor(dtype, {3}, {1, nan, 2});
    expectKernel({"maximum", {lhs, rhs}, {lhs.type}}, {{nan, nan, 2}});
    expectKernel({"minimum", {lhs, rhs}, {lhs.type}}, {{nan, nan, 1}});
  }
  HostTensor extremes = makeTensor(DType::I32, {2}, {2147483647, -2147483648.0});
  HostTensor ones = makeTensor(DType::I32, {2}, {1, -1});
  expectKernel({"add", {extremes, ones}, {ones.type}}, {{-2147483648.0, 2147483647}});
  expectKernel({"mul", {extremes, ones}, {ones.type}}, {{2147483647, -2147483648.0}});
}

TEST(Elementwise, Compare) {
  std::vector<BinaryCase> predicates = {
      {"eq", std::equal_to<double>()}, {"ne", std::not_equal_to<double>()},
      {"lt", std::less<double>()},     {"le", std::less_equal<double>()},
      {"gt", std::greater<double>()},  {"ge", std::greater_equal<double>()}};
  for (const BinaryCase &predicate : predicates)
    for (DType dtype : {DType::F32, DType::F64, DType::I32}) {
      Random random(4);
      Values a = valuesOf(random.integers(DType::I32, {111, 307}, -2, 2));
      Values b = valuesOf(random.integers(DType::I32, {111, 307}, -2, 2));
      if (dtype != DType::I32)
        a[0] = std::nan("");
      Values expected;
      for (size_t i = 0; i < a.size(); ++i)
        expected.push_back(predicate.function(a[i], b[i]));
      expectKernel({"compare",
                    {makeTensor(dtype, {111, 307}, a), makeTensor(dtype, {111, 307}, b)},
                    {TensorType{DType::Bool, {111, 307}}},
                    {{"predicate", predicate.kernel}}},
                   {expected});
    }
}

TEST(Elementwise, Select) {
  for (DType dtype : kFloatTypes) {
    Random random(5);
    HostTensor condition = random.integers(DType::Bool, {57, 601}, 0, 1);
    HostTensor a = random.floats(dtype, {57, 601}), b = random.floats(dtype, {57, 601});
    Values c = valuesOf(condition), expected = valuesOf(b), as = valuesOf(a);
    for (size_t i = 0; i < c.size(); ++i)
      if (c[i] != 0)
        expected[i] = as[i];
    expectKernel({"select", {condition, a, b}, {a.type}, {}, {}, {{1, 0}, {2, 0}}}, {expected});
  }
}

TEST(Elementwise, Convert) {
  DType all[] = {DType::F32, DType::F64, DType::I32, DType::Bool};
  for (DType from : all)
    for (DType to : all) {
      Random random(6);
      HostTensor x = from == DType::F32 || from == DType::F64
                         ? random.floats(from, {40011}, -3, 3)
                         : random.integers(from, {40011}, from == DType::Bool ? 0 : -3,
                                           from == DType::Bool ? 1 : 3);
      Values expected = valuesOf(x);
      for (double &value : expected) {
        if (to == DType::Bool)
          value = value != 0;
        if (to == DType::I32)
          value = std::trunc(value);
        if (to == DType::F32)
          value = static_cast<float>(value);
      }
      expectKernel({"convert", {x}, {TensorType{to, {40011}}}}, {expected}, 0);
    }
  HostTensor extremes = makeTensor(DType::F32, {4}, {1e20, -1e20, std::nan(""), -1.9});
  expectKernel({"convert", {extremes}, {TensorType{DType::I32, {4}}}},
               {{2147483647, -2147483648.0, 0, -1}});
}

TEST(Elementwise, Refuses) {
  TensorType f{DType::F32, {2, 3}}, g{DType::F64, {2, 3}}, i{DType::I32, {2, 3}};
  TensorType row{DType::F32, {3}}, b{DType::Bool, {2, 3}};
  expectRefused({"exp", {f, f}, {f}, {}, {}}, "kernel 'exp': has 2 inputs, expected 1");
  expectRefused({"exp", {f}, {}, {}, {}}, "kernel 'exp': has 0 outputs, expected 1");
  expectRefused({"exp", {i}, {i}, {}, {}},
                "kernel 'exp': input 0 is i32[2,3], expected elements of f32, f64, bf16 or f16");
  expectRefused({"exp", {f}, {row}, {}, {}}, "kernel 'exp': output 0 is f32[3], expected f32[2,3]");
  expectRefused({"exp", {f}, {f}, {{"eps", 1.0}}, {}}, "attribute 'eps' is unknown");
  expectRefused({"gelu", {f}, {f}, {}, {}}, "attribute 'approximate' is missing");
  expectRefused({"gelu", {f}, {f}, {{"approximate", "erf"}}, {}},
                "attribute 'approximate' is \"erf\", expected one of \"none\", \"tanh\"");
  expectRefused({"gelu", {f}, {f}, {{"approximate", int64_t{1}}}, {}},
                "attribute 'approximate' is an integer, expected a string");
  expectRefused({"gelu_grad", {f, g}, {f}, {{"approximate", "tanh"}}, {}}, "input 1 is f64[2,3]");
  expectRefused({"div", {i, i}, {i}, {}, {}}, "expected elements of f32, f64, bf16 or f16");
  expectRefused({"add", {b, b}, {b}, {}, {}}, "expected elements of f32, f64, bf16 or f16");
  expectRefused({"add", {f, row}, {f}, {}, {}}, "input 1 is f32[3], expected f32[2,3]");
  expectRefused({"add", {f, g}, {f}, {}, {}}, "input 1 is f64[2,3], expected f32[2,3]");
  for (const Shape &dims : {Shape{2}, Shape{-1}, Shape{0}, Shape{1, 1}, Shape{int64_t(1) << 62}})
    expectRefused({"add", {f, row}, {f}, {{"rhs_dims", dims}}, {}}, "kernel 'add': ");
  expectRefused({"add", {f, f}, {f}, {{"rhs_dims", Shape{1, 0}}}, {}},
                "attribute 'rhs_dims' is [1, 0], expected increasing dimensions of a tensor of "
                "rank 2");
  expectRefused({"compare", {f, f}, {b}, {{"predicate", "is"}}, {}}, "attribute 'predicate'");
  expectRefused({"compare", {f, f}, {f}, {{"predicate", "eq"}}, {}}, "expected bool[2,3]");
  expectRefused({"select", {f, f, f}, {f}, {}, {}}, "input 0 is f32[2,3], expected bool[2,3]");
  expectRefused({"convert", {f}, {row}, {}, {}}, "output 0 is f32[3], expected f32[2,3]");
}

} // namespace
} // namespace dtc::runtime::test::elementwiseTest
