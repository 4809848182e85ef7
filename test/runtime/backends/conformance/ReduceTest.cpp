//===- ReduceTest.cpp - Sums and extremes over dimensions -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dtc::runtime::test::reduceTest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Shape keptShape(const Shape &shape, const Shape &dims) {
  Shape kept;
  for (size_t i = 0; i < shape.size(); ++i)
    if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(i)) == dims.end())
      kept.push_back(shape[i]);
  return kept;
}

Values reference(const std::string &kind, const HostTensor &x, const Shape &dims) {
  const Shape &shape = x.type.shape;
  double identity = kind == "sum" ? 0 : kind == "max" ? -kInfinity : kInfinity;
  Values result(static_cast<size_t>(count(keptShape(shape, dims))), identity), in = valuesOf(x);
  for (size_t linear = 0; linear < in.size(); ++linear) {
    int64_t rest = static_cast<int64_t>(linear), position = 0, scale = 1;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
      if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) == dims.end()) {
        position += rest % shape[d] * scale;
        scale *= shape[d];
      }
    double &to = result[static_cast<size_t>(position)];
    to = kind == "sum"   ? to + in[linear]
         : kind == "max" ? std::max(to, in[linear])
                         : std::min(to, in[linear]);
  }
  return result;
}

struct Case {
  Shape shape, dims;
};

TEST(Reduce, AllKinds) {
  for (const Case &c : {Case{{}, {}},
                        Case{{5}, {0}},
                        Case{{5}, {}},
                        Case{{3, 5}, {0}},
                        Case{{3, 5}, {1}},
                        Case{{3, 5}, {0, 1}},
                        Case{{3, 5}, {}},
                        Case{{3, 4, 5}, {1}},
                        Case{{3, 4, 5}, {0, 2}},
                        Case{{2, 3, 4, 5}, {0, 2}},
                        Case{{2, 3, 4, 5}, {1, 3}},
                        Case{{2, 1, 4, 1}, {1, 3}},
                        Case{{256, 771}, {0}},
                        Case{{256, 771}, {1}},
                        Case{{256, 771}, {0, 1}},
                        Case{{2, 130, 601}, {0, 1}},
                        Case{{3, 70000}, {1}},
                        Case{{2, 70000}, {1}},
                        Case{{0, 4}, {0}},
                        Case{{0, 4}, {1}},
                        Case{{4, 0}, {1}},
                        Case{{0}, {0}}})
    for (const char *kind : {"sum", "max", "min"})
      for (DType dtype : kFloatTypes) {
        Random random(40);
        HostTensor x = random.floats(dtype, c.shape);
        expectKernel({"reduce",
                      {x},
                      {TensorType{dtype, keptShape(c.shape, c.dims)}},
                      {{"kind", kind}, {"dims", c.dims}}},
                     {reference(kind, x, c.dims)}, 2e-14);
      }
}

TEST(Reduce, ExtremesKeepNaN) {
  double nan = std::nan("");
  for (DType dtype : kFloatTypes)
    for (const char *kind : {"max", "min"})
      for (size_t position : {0, 3, 40}) {
        Values values(41, 1.0);
        values[position] = nan;
        expectKernel({"reduce",
                      {makeTensor(dtype, {41}, values)},
                      {TensorType{dtype, {}}},
                      {{"kind", kind}, {"dims", Shape{0}}}},
                     {{nan}});
        expectKernel({"reduce",
                      {makeTensor(dtype, {41, 1}, values)},
                      {TensorType{dtype, {1}}},
                      {{"kind", kind}, {"dims", Shape{0}}}},
                     {{nan}});
      }
}

TEST(Reduce, LongSumsAreAccurate) {
  Random random(41);
  HostTensor x = random.floats(DType::F32, {1 << 20}, 0.5, 1);
  double sum = 0;
  for (double value : valuesOf(x))
    sum += value;
  auto relativeError = [&](const Shape &shape, const Shape &dims) {
    x.type.shape = shape;
    KernelCall call{"reduce",
                    {x},
                    {TensorType{DType::F32, keptShape(shape, dims)}},
                    {{"kind", "sum"}, {"dims", dims}}};
    double total = 0;
    for (double value : valuesOf(call.run(2)[0]))
      total += value;
    return total / sum - 1;
  };
  EXPECT_NEAR(relativeError({1 << 20}, {0}), 0, 1e-6);
  EXPECT_NEAR(relativeError({1 << 18, 4}, {0}), 0, 1e-6);
  EXPECT_NEAR(relativeError({4, 1 << 18}, {1}), 0, 1e-6);
}

TEST(Reduce, Refuses) {
  TensorType f{DType::F32, {2, 3}}, row{DType::F32, {3}}, i{DType::I32, {2, 3}};
  auto refuse = [&](const AttributeMap &attributes, const std::string &message) {
    expectRefused({"reduce", {f}, {row}, attributes, {}}, message);
  };
  refuse({{"kind", "sum"}}, "attribute 'dims' is missing, expected a list of integers");
  refuse({{"dims", Shape{0}}}, "attribute 'kind' is missing");
  refuse({{"kind", "mean"}, {"dims", Shape{0}}}, "attribute 'kind' is \"mean\"");
  refuse({{"kind", "sum"}, {"dims", Shape{1}}}, "output 0 is f32[3], expected f32[2]");
  for (const Shape &dims : {Shape{0, 0}, Shape{1, 0}, Shape{2}, Shape{-1}})
    refuse({{"kind", "sum"}, {"dims", dims}}, "attribute 'dims'");
  expectRefused({"reduce", {i}, {i}, {{"kind", "sum"}, {"dims", Shape{}}}, {}},
                "expected elements of f32, f64, bf16 or f16");
}

} // namespace
} // namespace dtc::runtime::test::reduceTest
