//===- IndexingTest.cpp - Tests of kernels with indices -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/cpu/KernelTest.h"

#include <limits>

namespace dtc::runtime::test::indexingTest {
namespace {

/// Indices of which some lie outside of [0, size), some far.
HostTensor someIds(Random &random, const Shape &shape, int64_t size) {
  HostTensor ids = random.integers(DType::I32, shape, -2, size + 1);
  if (ids.type.numElements() > 2) {
    ids.as<int32_t>()[0] = std::numeric_limits<int32_t>::min();
    ids.as<int32_t>()[1] = std::numeric_limits<int32_t>::max();
  }
  return ids;
}

/// A call with a vocabulary or row of `size` elements, indices of shape `ids`, rows of `width`.
struct Case {
  Shape ids;
  int64_t size, width;
};
const Case kCases[] = {{{}, 5, 3},        {{7}, 5, 3}, {{2, 3}, 4, 1},     {{0}, 4, 2},
                       {{2, 90}, 7, 301}, {{9}, 0, 2}, {{300, 5}, 801, 9}, {{3}, 2, 0}};

Shape withDim(Shape shape, int64_t dim) {
  shape.push_back(dim);
  return shape;
}

/// Calls function(i, id) for the indices inside of [0, size).
void forIds(const HostTensor &ids, int64_t size,
            const std::function<void(size_t i, size_t id)> &function) {
  Values values = valuesOf(ids);
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] >= 0 && values[i] < static_cast<double>(size))
      function(i, static_cast<size_t>(values[i]));
}

TEST(Indexing, Embedding) {
  for (const Case &c : kCases)
    for (DType dtype : kFloatTypes) {
      Random random(60);
      HostTensor ids = someIds(random, c.ids, c.size);
      HostTensor table = random.floats(dtype, {c.size, c.width});
      HostTensor dy = random.floats(dtype, withDim(c.ids, c.width));
      Values rows = valuesOf(table), dys = valuesOf(dy);
      Values gathered(dys.size(), 0.0), scattered(rows.size(), 0.0);
      size_t width = static_cast<size_t>(c.width);
      forIds(ids, c.size, [&](size_t i, size_t id) {
        for (size_t d = 0; d < width; ++d) {
          gathered[i * width + d] = rows[id * width + d];
          scattered[id * width + d] += dys[i * width + d];
        }
      });
      expectKernel({"embedding", {table, ids}, {dy.type}}, {gathered}, 0);
      expectKernel({"embedding_grad", {ids, dy}, {table.type}}, {scattered}, 1e-14);
    }
}

TEST(Indexing, EmbeddingGradientOfFrequentIndices) {
  // A row with most of the places, which are several tiles of the CUDA backend, rows with about as
  // many as it lists, and rows with none; columns for whole vectors, and not.
  Random random(62);
  constexpr int64_t count = 9001, size = 70;
  HostTensor ids = random.integers(DType::I32, {count}, -40, 39);
  HostTensor isFrequent = random.integers(DType::Bool, {count}, 0, 1);
  for (size_t i = 0; i < count; ++i)
    if (isFrequent.as<uint8_t>()[i] != 0)
      ids.as<int32_t>()[i] = 5;
    else if (i % 5 != 0)
      ids.as<int32_t>()[i] += 100 * static_cast<int32_t>(i % 5);
  for (int64_t width : {3, 12, 260})
    for (DType dtype : kFloatTypes) {
      HostTensor dy = random.floats(dtype, {count, width});
      Values dys = valuesOf(dy), sums(static_cast<size_t>(size * width), 0.0);
      size_t columns = static_cast<size_t>(width);
      forIds(ids, size, [&](size_t i, size_t id) {
        for (size_t d = 0; d < columns; ++d)
          sums[id * columns + d] += dys[i * columns + d];
      });
      expectKernel({"embedding_grad", {ids, dy}, {{dtype, {size, width}}}}, {sums}, 1e-14);
    }
}

TEST(Indexing, Pick) {
  for (const Case &c : kCases)
    for (DType dtype : kFloatTypes) {
      Random random(61);
      HostTensor ids = someIds(random, c.ids, c.size);
      HostTensor x = random.floats(dtype, withDim(c.ids, c.size));
      HostTensor dy = random.floats(dtype, c.ids);
      Values xs = valuesOf(x), dys = valuesOf(dy);
      Values picked(dys.size(), 0.0), spread(xs.size(), 0.0);
      size_t width = static_cast<size_t>(c.size);
      forIds(ids, c.size, [&](size_t i, size_t id) {
        picked[i] = xs[i * width + id];
        spread[i * width + id] = dys[i];
      });
      expectKernel({"pick", {x, ids}, {dy.type}}, {picked}, 0);
      expectKernel({"pick_grad", {ids, dy}, {x.type}}, {spread}, 0);
    }
}

TEST(Indexing, Refuses) {
  TensorType table{DType::F32, {7, 3}}, ids{DType::I32, {2, 5}}, rows{DType::F32, {2, 5, 3}};
  TensorType flat{DType::F32, {2, 5}}, wide{DType::I32, {2, 5, 3}}, scalar{DType::F32, {}};
  expectRefused({"embedding", {rows, ids}, {rows}, {}, {}},
                "input 0 is f32[2,5,3], expected 2 dimensions");
  expectRefused({"embedding", {table, flat}, {rows}, {}, {}},
                "input 1 is f32[2,5], expected elements of i32");
  expectRefused({"embedding", {table, ids}, {flat}, {}, {}},
                "output 0 is f32[2,5], expected f32[2,5,3]");
  expectRefused({"embedding_grad", {ids, rows}, {{DType::F64, {7, 3}}}, {}, {}},
                "output 0 is f64[7,3], expected 2 dimensions of f32");
  expectRefused({"embedding_grad", {ids, rows}, {{DType::F32, {7, 4}}}, {}, {}},
                "input 1 is f32[2,5,3], expected f32[2,5,4]");
  expectRefused({"pick", {rows, wide}, {flat}, {}, {}}, "input 1 is i32[2,5,3], expected i32[2,5]");
  expectRefused({"pick", {scalar, ids}, {flat}, {}, {}},
                "input 0 is f32[], expected at least 1 dimensions");
  expectRefused({"pick_grad", {ids, flat}, {scalar}, {}, {}}, "output 0 is f32[]");
  expectRefused({"pick_grad", {ids, flat}, {table}, {}, {}},
                "output 0 is f32[7,3], expected f32[2,5,3]");
}

} // namespace
} // namespace dtc::runtime::test::indexingTest
