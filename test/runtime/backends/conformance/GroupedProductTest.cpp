//===- GroupedProductTest.cpp - Products of groups of rows ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <algorithm>
#include <cmath>

namespace dtc::runtime::test::groupedProductTest {
namespace {

struct Sizes {
  int64_t x, b, c, k, n;
};
const Sizes kSizes[] = {{1, 1, 1, 1, 1},    {2, 3, 5, 4, 7},    {3, 2, 130, 33, 9},
                        {4, 1, 64, 16, 40}, {2, 2, 200, 3, 64}, {2, 3, 400, 6, 5}};

/// A random number of rows of each group has an index; none and all of them occur too.
HostTensor someRows(Random &random, const Sizes &s) {
  HostTensor rows = random.integers(DType::I32, {s.x, s.b, s.c}, 0, 9);
  HostTensor counts = random.integers(DType::I32, {s.x, s.b}, 0, static_cast<int>(s.c));
  counts.as<int32_t>()[0] = 0;
  if (s.x * s.b > 1)
    counts.as<int32_t>()[1] = static_cast<int32_t>(s.c);
  for (int64_t group = 0; group < s.x * s.b; ++group)
    for (int64_t row = counts.as<int32_t>()[group]; row < s.c; ++row)
      rows.as<int32_t>()[group * s.c + row] = -1 - static_cast<int32_t>(row % 3);
  return rows;
}

/// Numbers that are zeros in the rows without an index.
HostTensor someValues(Random &random, DType dtype, const HostTensor &rows, int64_t width) {
  Shape shape = rows.type.shape;
  shape.push_back(width);
  HostTensor values = random.floats(dtype, shape);
  for (int64_t row = 0; row < rows.type.numElements(); ++row)
    if (rows.as<int32_t>()[row] < 0)
      for (int64_t i = 0; i < width; ++i)
        setElement(values, row * width + i, 0);
  return values;
}

struct Case {
  std::string equation;
  bool keepsRows, isTransposed;
};
const Case kCases[] = {{"xbck,xkn->xbcn", true, false},
                       {"xbck,xnk->xbcn", true, true},
                       {"abcd,abce->ade", false, false},
                       {"abcd,abce->aed", false, true}};

/// One loop over all letters at once.
Values reference(const Case &c, const Sizes &s, const Values &lhs, const Values &rhs) {
  Values out(static_cast<size_t>(c.keepsRows ? s.x * s.b * s.c * s.n : s.x * s.k * s.n), 0.0);
  for (int64_t x = 0; x < s.x; ++x)
    for (int64_t row = x * s.b * s.c; row < (x + 1) * s.b * s.c; ++row)
      for (int64_t k = 0; k < s.k; ++k)
        for (int64_t n = 0; n < s.n; ++n) {
          int64_t inMatrix = c.isTransposed ? (x * s.n + n) * s.k + k : (x * s.k + k) * s.n + n;
          auto left = static_cast<size_t>(row * s.k + k);
          auto rowN = static_cast<size_t>(row * s.n + n), matrix = static_cast<size_t>(inMatrix);
          out[c.keepsRows ? rowN : matrix] += lhs[left] * rhs[c.keepsRows ? matrix : rowN];
        }
  return out;
}

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

TEST(GroupedProduct, IsAnEinsumOfRowsWithAnIndex) {
  for (const Sizes &s : kSizes)
    for (const Case &c : kCases)
      for (DType dtype : {DType::F64, DType::F32, DType::BF16, DType::F16}) {
        SCOPED_TRACE(testing::Message() << c.equation << " " << name(dtype) << " " << s.c);
        Random random(71);
        HostTensor rows = someRows(random, s);
        HostTensor lhs = someValues(random, dtype, rows, s.k);
        Shape matrix = c.isTransposed ? Shape{s.x, s.n, s.k} : Shape{s.x, s.k, s.n};
        HostTensor rhs =
            c.keepsRows ? random.floats(dtype, matrix) : someValues(random, dtype, rows, s.n);
        Shape shape = c.keepsRows ? Shape{s.x, s.b, s.c, s.n} : matrix;
        AttributeMap equation{{"equation", c.equation}};
        if (dtype == wideType(dtype))
          expectKernel({"grouped_product", {lhs, rhs, rows}, {{dtype, shape}}, equation},
                       {reference(c, s, valuesOf(lhs), valuesOf(rhs))}, 1e-13);
        else
          for (DType out : {dtype, DType::F32})
            expectClose({"grouped_product", {lhs, rhs, rows}, {{out, shape}}, equation},
                        reference(c, s, valuesOf(lhs), valuesOf(rhs)));
      }
}

TEST(GroupedProduct, OfNothingIsZeros) {
  Random random(72);
  HostTensor rows = random.integers(DType::I32, {2, 3, 0}, 0, 1);
  expectKernel(
      {"grouped_product",
       {random.floats(DType::F32, {2, 3, 0, 4}), random.floats(DType::F32, {2, 3, 0, 5}), rows},
       {{DType::F32, {2, 4, 5}}},
       {{"equation", "xbck,xbcn->xkn"}}},
      {Values(40, 0.0)}, 0);
}

TEST(GroupedProduct, Refuses) {
  TensorType lhs{DType::F32, {2, 3, 5, 4}}, w{DType::F32, {2, 4, 7}}, rows{DType::I32, {2, 3, 5}};
  TensorType out{DType::F32, {2, 3, 5, 7}};
  AttributeMap equation{{"equation", "xbck,xkn->xbcn"}};
  expectRefused({"grouped_product", {lhs, w, rows}, {out}, {{"equation", "xbck,kn->xbcn"}}, {}},
                "expected a form of \"xbck,xkn->xbcn\"");
  expectRefused({"grouped_product", {w, w, rows}, {out}, equation, {}},
                "input 0 is f32[2,4,7], expected 4 dimensions");
  expectRefused({"grouped_product", {lhs, {DType::F32, {2, 5, 7}}, rows}, {out}, equation, {}},
                "input 1 is f32[2,5,7], expected f32[2,4,7]");
  expectRefused({"grouped_product", {lhs, w, {DType::I32, {2, 5, 3}}}, {out}, equation, {}},
                "input 2 is i32[2,5,3], expected i32[2,3,5]");
  expectRefused({"grouped_product", {lhs, w, rows}, {{DType::F32, {2, 3, 5, 6}}}, equation, {}},
                "output 0 is f32[2,3,5,6], expected f32[2,3,5,7]");
}

} // namespace
} // namespace dtc::runtime::test::groupedProductTest
