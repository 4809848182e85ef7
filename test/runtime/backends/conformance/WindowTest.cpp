//===- WindowTest.cpp - Tests of convolutions and poolings ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace dtc::runtime::test::windowTest {
namespace {

/// Windows of the last dimensions, `in`.
struct Geometry {
  Shape in, size, strides, padding, dilations;

  AttributeMap attributes() const {
    return {{"strides", strides}, {"padding", padding}, {"dilations", dilations}};
  }
  Shape out() const {
    Shape counts;
    for (size_t i = 0; i < in.size(); ++i)
      counts.push_back((in[i] + 2 * padding[i] - (size[i] - 1) * dilations[i] - 1) / strides[i] +
                       1);
    return counts;
  }
};

/// The index along each dimension of element `i` of a tensor.
Shape split(int64_t i, const Shape &shape) {
  Shape index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0; i /= shape[dim])
    index[dim] = i % shape[dim];
  return index;
}

/// Calls body(x, k, y) for each element of each window that is no padding: its place in x, in the
/// window and in y.
template <typename Body> void forElements(const Geometry &g, const Body &body) {
  Shape out = g.out();
  for (int64_t y = 0; y < count(out); ++y)
    for (int64_t k = 0; k < count(g.size); ++k) {
      Shape window = split(y, out), element = split(k, g.size);
      int64_t x = 0;
      bool isInside = true;
      for (size_t i = 0; i < out.size(); ++i) {
        int64_t place = window[i] * g.strides[i] - g.padding[i] + element[i] * g.dilations[i];
        isInside = isInside && place >= 0 && place < g.in[i];
        x = x * g.in[i] + place;
      }
      if (isInside)
        body(static_cast<size_t>(x), static_cast<size_t>(k), static_cast<size_t>(y));
    }
}

Shape joined(Shape leading, const Shape &spatial) {
  leading.insert(leading.end(), spatial.begin(), spatial.end());
  return leading;
}

struct ConvCase {
  int64_t batch, groups, in, out; ///< 0 groups: no such dimension
  Geometry g;

  Shape x() const { return joined(shape(batch, groups, in), g.in); }
  Shape y() const { return joined(shape(batch, groups, out), g.out()); }
  Shape w() const { return joined(groups == 0 ? Shape{out, in} : Shape{groups, out, in}, g.size); }

private:
  static Shape shape(int64_t batch, int64_t groups, int64_t channels) {
    return groups == 0 ? Shape{batch, channels} : Shape{batch, groups, channels};
  }
};

const ConvCase kConvs[] = {
    {1, 0, 1, 1, {{1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}}},
    {2, 0, 3, 4, {{7, 6}, {3, 2}, {2, 1}, {1, 2}, {1, 2}}},
    {2, 0, 16, 16, {{5, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}},
    {1, 0, 3, 8, {{9, 9}, {7, 7}, {2, 2}, {3, 3}, {1, 1}}},
    {2, 3, 2, 5, {{6, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}},
    {3, 17, 1, 1, {{8, 9}, {7, 7}, {1, 1}, {3, 3}, {1, 1}}}, // depthwise
    {2, 1, 3, 2, {{5, 5}, {2, 2}, {2, 2}, {0, 0}, {2, 2}}},
    {5, 0, 4, 6, {{20}, {3}, {2}, {1}, {1}}},
    {2, 2, 4, 6, {{5, 4, 6}, {2, 3, 3}, {1, 2, 1}, {1, 0, 1}, {2, 1, 1}}},
    {2, 0, 3, 2, {{4, 3}, {2, 2}, {1, 3}, {4, 5}, {1, 1}}}, // windows of padding alone
    {0, 0, 3, 2, {{4, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}}},
    {2, 0, 0, 2, {{4, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}}},
};

/// The convolution y of x and w, and the gradients of sum(dy y) by both: one loop over all terms.
struct ConvReference {
  Values y, dx, dw;

  ConvReference(const ConvCase &c, const Values &x, const Values &w, const Values &dy)
      : y(dy.size(), 0.0), dx(x.size(), 0.0), dw(w.size(), 0.0) {
    int64_t groups = std::max<int64_t>(c.groups, 1), in = count(c.g.in), out = count(c.g.out());
    int64_t window = count(c.g.size);
    for (int64_t n = 0; n < c.batch; ++n)
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t o = 0; o < c.out; ++o)
          for (int64_t i = 0; i < c.in; ++i) {
            auto xAt = static_cast<size_t>(((n * groups + g) * c.in + i) * in);
            auto yAt = static_cast<size_t>(((n * groups + g) * c.out + o) * out);
            auto wAt = static_cast<size_t>(((g * c.out + o) * c.in + i) * window);
            forElements(c.g, [&](size_t place, size_t k, size_t result) {
              y[yAt + result] += w[wAt + k] * x[xAt + place];
              dx[xAt + place] += w[wAt + k] * dy[yAt + result];
              dw[wAt + k] += x[xAt + place] * dy[yAt + result];
            });
          }
  }
};

/// For 16-bit operands, whose sums are f32, and whose result may be rounded.
void expectClose(const KernelCall &call, const Values &expected) {
  double largest = 1;
  for (double value : expected)
    largest = std::max(largest, std::abs(value));
  DType out = call.outputs[0].dtype;
  double part = out == DType::BF16 ? 0x1p-8 : out == DType::F16 ? 0x1p-11 : 1e-5;
  Values found = valuesOf(runInAllWays(call)[0]);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], part * largest) << "element " << i;
}

void expectConv(const ConvCase &c, DType dtype) {
  Random random(91);
  HostTensor x = random.floats(dtype, c.x()), w = random.floats(dtype, c.w());
  HostTensor dy = random.floats(dtype, c.y());
  ConvReference expected(c, valuesOf(x), valuesOf(w), valuesOf(dy));
  KernelCall calls[] = {
      {"conv", {x, w}, {{dtype, c.y()}}, c.g.attributes()},
      {"conv_input_grad", {dy, w}, {{dtype, c.x()}}, c.g.attributes()},
      {"conv_weight_grad", {x, dy}, {{wideType(dtype), c.w()}}, c.g.attributes()}};
  const Values *results[] = {&expected.y, &expected.dx, &expected.dw};
  for (size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(calls[i].kernel);
    if (is16Bits(dtype))
      expectClose(calls[i], *results[i]);
    else
      expectKernel(calls[i], {*results[i]}, 1e-13);
  }
}

TEST(Conv, IsASumOfProductsWithItsGradients) {
  for (const ConvCase &c : kConvs)
    for (DType dtype : {DType::F64, DType::F32, DType::BF16, DType::F16}) {
      TensorType x{dtype, c.x()}, w{dtype, c.w()};
      SCOPED_TRACE(testing::Message() << x.str() << " " << w.str());
      expectConv(c, dtype);
    }
}

TEST(Conv, OfRandomSizes) {
  std::mt19937_64 engine(92);
  auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
  };
  for (int i = 0; i < 60; ++i) {
    ConvCase c{pick(1, 4), pick(0, 3), pick(1, 9), pick(1, 9), {}};
    for (int64_t dims = pick(1, 3); dims > 0; --dims) {
      c.g.in.push_back(pick(1, 7));
      c.g.padding.push_back(pick(0, 2));
      c.g.dilations.push_back(pick(1, 2));
      c.g.strides.push_back(pick(1, 3));
      int64_t padded = c.g.in.back() + 2 * c.g.padding.back();
      c.g.size.push_back(pick(1, std::min<int64_t>(4, (padded - 1) / c.g.dilations.back() + 1)));
    }
    SCOPED_TRACE(testing::Message() << "seed 92, case " << i);
    expectConv(c, i % 2 == 0 ? DType::F32 : DType::F64);
  }
}

TEST(Conv, Refuses) {
  TensorType x{DType::F32, {2, 3, 7, 6}}, w{DType::F32, {4, 3, 3, 2}}, y{DType::F32, {2, 4, 5, 5}};
  AttributeMap attributes{
      {"strides", Shape{1, 1}}, {"padding", Shape{0, 0}}, {"dilations", Shape{1, 1}}};
  auto with = [&](const char *name, Shape numbers) {
    AttributeMap changed = attributes;
    changed[name] = std::move(numbers);
    return changed;
  };
  expectRefused({"conv", {x, w}, {y}, with("strides", {0, 1}), {}},
                "strides is [0, 1], expected numbers from 1 to 2147483647");
  expectRefused({"conv", {x, w}, {y}, with("padding", {1}), {}},
                "padding has 1 entries, expected 2 as strides has");
  expectRefused(
      {"conv", {x, w}, {y}, with("dilations", {1, 6}), {}},
      "the input of the convolution has 6 elements along spatial dimension 1 and a padding "
      "of 0 on both sides, expected the extent of a window, 7, or more");
  expectRefused({"conv", {x, w}, {x}, attributes, {}},
                "the result of the convolution is f32[2,3,7,6], expected f32[2,4,5,5]");
  expectRefused(
      {"conv", {x, {DType::F32, {4, 2, 3, 2}}}, {y}, attributes, {}},
      "the weight of the convolution is f32[4,2,3,2], expected 1 groups, 3 input channels");
  expectRefused({"conv", {x, {DType::F64, {4, 3, 3, 2}}}, {y}, attributes, {}},
                "input 1 is f64[4,3,3,2], expected f32[4,3,3,2]");
  expectRefused({"conv", {{DType::F32, {7, 6}}, w}, {y}, attributes, {}},
                "expected 4 dimensions of both, or 5 with groups");
  expectRefused(
      {"conv_input_grad", {y, w}, {y}, attributes, {}},
      "the weight of the convolution is f32[4,3,3,2], expected 1 groups, 4 input channels");
  expectRefused({"conv_weight_grad", {x, y}, {{DType::F64, w.shape}}, attributes, {}},
                "output 0 is f64[4,3,3,2], expected f32[4,3,3,2]");
  expectRefused({"conv", {x}, {y}, attributes, {}}, "has 1 inputs, expected 2");
}

struct PoolCase {
  Shape leading;
  Geometry g;
};
const PoolCase kPools[] = {
    {{2, 3}, {{7, 6}, {3, 3}, {2, 2}, {1, 1}, {1, 1}}},
    {{}, {{5, 4}, {2, 3}, {1, 2}, {0, 1}, {2, 1}}},
    {{4}, {{9}, {3}, {3}, {0}, {1}}},
    {{2}, {{4, 5, 6}, {2, 2, 2}, {2, 1, 2}, {1, 0, 0}, {1, 2, 1}}},
    {{30, 5}, {{8, 7}, {3, 3}, {2, 2}, {1, 1}, {1, 1}}},
    {{1}, {{3, 3}, {2, 2}, {3, 3}, {3, 3}, {1, 1}}}, // windows of padding alone
    {{0, 2}, {{4, 4}, {2, 2}, {2, 2}, {0, 0}, {1, 1}}},
};

/// Of equal elements the first is the largest; a NaN is larger than all numbers.
void poolPlane(const Geometry &g, const double *x, double *y, const double *dy, double *dx) {
  std::vector<std::optional<size_t>> best(static_cast<size_t>(count(g.out())));
  forElements(g, [&](size_t place, size_t, size_t window) {
    std::optional<size_t> &found = best[window];
    if (!found || (!std::isnan(x[*found]) && (x[place] > x[*found] || std::isnan(x[place]))))
      found = place;
  });
  for (size_t window = 0; window < best.size(); ++window) {
    y[window] = best[window] ? x[*best[window]] : -std::numeric_limits<double>::infinity();
    if (best[window])
      dx[*best[window]] += dy[window];
  }
}

void expectPool(const PoolCase &c, const HostTensor &x, const HostTensor &dy) {
  Values y(dy.type.numElements()), dx(x.type.numElements(), 0.0), xs = valuesOf(x);
  Values dys = valuesOf(dy);
  auto in = static_cast<size_t>(count(c.g.in)), out = static_cast<size_t>(count(c.g.out()));
  for (size_t plane = 0; plane * in < xs.size(); ++plane)
    poolPlane(c.g, &xs[plane * in], &y[plane * out], &dys[plane * out], &dx[plane * in]);
  AttributeMap attributes = c.g.attributes();
  attributes["window"] = c.g.size;
  KernelCall pool{"max_pool", {x}, {dy.type}, attributes};
  KernelCall grad{"max_pool_grad", {x, dy}, {x.type}, attributes};
  if (!is16Bits(x.type.dtype)) {
    expectKernel(pool, {y});
    expectKernel(grad, {dx});
  } else {
    expectRounded(pool);
    expectRounded(grad);
  }
}

TEST(MaxPool, TakesTheLargestElement) {
  for (const PoolCase &c : kPools)
    for (DType dtype : {DType::F64, DType::F32, DType::BF16, DType::F16}) {
      TensorType type{dtype, joined(c.leading, c.g.in)};
      SCOPED_TRACE(testing::Message() << type.str());
      Random random(93);
      // Few numbers, so that some are equal.
      HostTensor x = random.integers(DType::I32, type.shape, -3, 3);
      expectPool(c, makeTensor(dtype, type.shape, valuesOf(x)),
                 random.floats(dtype, joined(c.leading, c.g.out())));
    }
}

TEST(MaxPool, TakesTheFirstNan) {
  Random random(94);
  PoolCase c{{2}, {{4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}};
  Values x = valuesOf(random.floats(DType::F64, {2, 4, 4}));
  x[5] = x[6] = std::nan("");
  expectPool(c, makeTensor(DType::F64, {2, 4, 4}, x), random.floats(DType::F64, {2, 4, 4}));
}

TEST(MaxPool, Refuses) {
  TensorType x{DType::F32, {2, 7, 6}}, y{DType::F32, {2, 3, 3}};
  AttributeMap attributes{{"window", Shape{3, 2}},
                          {"strides", Shape{2, 2}},
                          {"padding", Shape{0, 0}},
                          {"dilations", Shape{1, 1}}};
  expectRefused({"max_pool", {x}, {x}, attributes, {}},
                "the maxima of f32[2,7,6] are f32[2,7,6], expected f32[2,3,3]");
  expectRefused({"max_pool_grad", {x, y}, {y}, attributes, {}},
                "output 0 is f32[2,3,3], expected f32[2,7,6]");
  attributes["window"] = Shape{3, 0};
  expectRefused({"max_pool", {x}, {y}, attributes, {}},
                "window is [3, 0], expected numbers from 1 to 2147483647");
  attributes["window"] = Shape{9, 2};
  expectRefused(
      {"max_pool", {x}, {y}, attributes, {}},
      "input 0 has 7 elements along spatial dimension 0 and a padding of 0 on both sides, "
      "expected the extent of a window, 9, or more");
  expectRefused({"max_pool", {{DType::F32, {6}}}, {y}, attributes, {}},
                "input 0 is f32[6], expected at least 2 dimensions");
}

} // namespace
} // namespace dtc::runtime::test::windowTest
