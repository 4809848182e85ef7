//===- IndexingTest.cpp - Tests of kernels with indices -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace dtc::runtime::test::indexingTest {
namespace {

/// Indices. Some of them lie outside of [0, size), and some of these far outside.
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

/// A call with a table of `size` rows of `width` for each sample. Indices have the dimensions
/// `before` those of samples, and `perSample` indices of each sample.
struct SampledCase {
  Shape before, samples;
  int64_t perSample, size, width;
};
const SampledCase kSampledCases[] = {
    {{}, {3}, 4, 5, 3},  {{2}, {3}, 4, 5, 2},  {{2, 3}, {2, 2}, 5, 4, 8},
    {{3}, {1}, 6, 4, 5}, {{}, {4}, 1, 3, 301}, {{2}, {300}, 3, 7, 4},
    {{2}, {3}, 0, 4, 2}, {{0}, {3}, 4, 5, 2},  {{}, {0}, 4, 5, 2},
    {{2}, {3}, 4, 0, 2}, {{2}, {3}, 4, 5, 0},  {{5}, {2, 1, 3}, 90, 11, 16},
};

Shape joinedShape(const std::vector<Shape> &parts) {
  Shape shape;
  for (const Shape &part : parts)
    shape.insert(shape.end(), part.begin(), part.end());
  return shape;
}

/// The rows of the tables of all samples that indices name: calls function(i, row).
void forSampledIds(const SampledCase &c, const HostTensor &ids,
                   const std::function<void(size_t i, size_t row)> &function) {
  Values values = valuesOf(ids);
  size_t i = 0;
  for (int64_t before = 0; before < count(c.before); ++before)
    for (int64_t sample = 0; sample < count(c.samples); ++sample)
      for (int64_t place = 0; place < c.perSample; ++place, ++i)
        if (values[i] >= 0 && values[i] < static_cast<double>(c.size))
          function(i, static_cast<size_t>(sample * c.size + static_cast<int64_t>(values[i])));
}

TEST(Indexing, EmbeddingOfSamples) {
  for (const SampledCase &c : kSampledCases)
    for (DType dtype : kFloatTypes) {
      Random random(63);
      Shape places = joinedShape({c.before, c.samples, {c.perSample}});
      HostTensor ids = someIds(random, places, c.size);
      HostTensor table = random.floats(dtype, joinedShape({c.samples, {c.size, c.width}}));
      HostTensor dy = random.floats(dtype, withDim(places, c.width));
      Values rows = valuesOf(table), dys = valuesOf(dy);
      Values gathered(dys.size(), 0.0), scattered(rows.size(), 0.0);
      size_t width = static_cast<size_t>(c.width);
      forSampledIds(c, ids, [&](size_t i, size_t row) {
        for (size_t d = 0; d < width; ++d) {
          gathered[i * width + d] = rows[row * width + d];
          scattered[row * width + d] += dys[i * width + d];
        }
      });
      expectKernel({"embedding", {table, ids}, {dy.type}}, {gathered}, 0);
      expectKernel({"embedding_grad", {ids, dy}, {table.type}}, {scattered}, 1e-14);
    }
}

TEST(Indexing, EmbeddingGradientOfFrequentIndicesOfSamples) {
  // In each of three samples another row has most of the places, which the CUDA backend does not
  // list; each row is in several tiles of places, between those of the other samples.
  Random random(64);
  SampledCase c{{4}, {3}, 700, 9, 0};
  HostTensor ids = random.integers(DType::I32, {4, 3, 700}, -3, 40);
  HostTensor isFrequent = random.integers(DType::Bool, {4, 3, 700}, 0, 1);
  for (size_t i = 0; i < 4 * 3 * 700; ++i)
    if (isFrequent.as<uint8_t>()[i] != 0)
      ids.as<int32_t>()[i] = static_cast<int32_t>(2 + i / 700 % 3);
  for (int64_t width : {3, 12, 260})
    for (DType dtype : kFloatTypes) {
      c.width = width;
      HostTensor dy = random.floats(dtype, {4, 3, 700, width});
      Values dys = valuesOf(dy), sums(static_cast<size_t>(3 * c.size * width), 0.0);
      size_t columns = static_cast<size_t>(width);
      forSampledIds(c, ids, [&](size_t i, size_t row) {
        for (size_t d = 0; d < columns; ++d)
          sums[row * columns + d] += dys[i * columns + d];
      });
      expectKernel({"embedding_grad", {ids, dy}, {{dtype, {3, c.size, width}}}}, {sums}, 1e-14);
    }
}

//===----------------------------------------------------------------------===//
// top_k and nonzero
//===----------------------------------------------------------------------===//

/// By sorting: NaN first, then larger numbers, then smaller indices.
Values topKOf(const Values &x, int64_t width, int64_t k) {
  Values isTaken(x.size(), 0.0);
  std::vector<size_t> order(static_cast<size_t>(width));
  for (size_t row = 0; row < x.size(); row += order.size()) {
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      double left = x[row + a], right = x[row + b];
      return std::isnan(left) ? !std::isnan(right) : left > right;
    });
    for (size_t n = 0; n < static_cast<size_t>(k); ++n)
      isTaken[row + order[n]] = 1;
  }
  return isTaken;
}

void expectTopK(const HostTensor &x, int64_t k) {
  expectKernel({"top_k", {x}, {{DType::Bool, x.type.shape}}, {{"k", k}}},
               {topKOf(valuesOf(x), x.type.shape.back(), k)}, 0);
}

constexpr DType kOrderedTypes[] = {DType::F32, DType::F64, DType::BF16, DType::F16};

TEST(Indexing, TopK) {
  for (const Shape &shape : {Shape{1}, Shape{8}, Shape{5, 1}, Shape{0, 3}, Shape{2, 3, 7},
                             Shape{40, 64}, Shape{3, 1100}})
    for (DType dtype : kOrderedTypes) {
      Random random(65);
      HostTensor x = random.floats(dtype, shape);
      int64_t width = shape.back();
      for (int64_t k : {int64_t{1}, std::min<int64_t>(2, width), (width + 1) / 2, width})
        expectTopK(x, k);
    }
}

TEST(Indexing, TopKTakesTheFirstOfEqualElements) {
  double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (DType dtype : kOrderedTypes) {
    HostTensor x =
        makeTensor(dtype, {6, 5}, {1,         3,         3,         3,    2,   //
                                   0.0,       -0.0,      0.0,       -0.0, -1,  // zeros are equal
                                   -infinity, -infinity, 7,         -8,   9,   //
                                   infinity,  nan,       infinity,  nan,  1,   //
                                   nan,       nan,       nan,       nan,  nan, //
                                   -infinity, nan,       -infinity, -9,   nan});
    for (int64_t k = 1; k <= 5; ++k)
      expectTopK(x, k);
    expectKernel({"top_k", {x}, {{DType::Bool, {6, 5}}}, {{"k", int64_t{2}}}}, {{0, 1, 1, 0, 0, //
                                                                                 1, 1, 0, 0, 0, //
                                                                                 0, 0, 1, 0, 1, //
                                                                                 0, 1, 0, 1, 0, //
                                                                                 1, 1, 0, 0, 0, //
                                                                                 0, 1, 0, 0, 1}},
                 0);
    // Most elements have several equal ones.
    Random random(66);
    HostTensor few(TensorType{dtype, {30, 40}});
    HostTensor numbers = random.integers(DType::I32, {30, 40}, -2, 2);
    for (int64_t i = 0; i < few.type.numElements(); ++i)
      setElement(few, i, numbers.as<int32_t>()[i]);
    for (int64_t k : {1, 8, 20, 39, 40})
      expectTopK(few, k);
  }
}

Values nonzeroOf(const Values &x, int64_t width, int64_t size) {
  Values places;
  for (size_t row = 0; row < x.size(); row += static_cast<size_t>(width)) {
    size_t end = places.size() + static_cast<size_t>(size);
    for (int64_t c = 0; c < width && places.size() < end; ++c)
      if (x[row + static_cast<size_t>(c)] != 0)
        places.push_back(static_cast<double>(c));
    places.resize(end, -1);
  }
  return places;
}

void expectNonzero(const HostTensor &x, int64_t size) {
  Shape shape(x.type.shape.begin(), x.type.shape.end() - 1);
  expectKernel({"nonzero", {x}, {{DType::I32, withDim(shape, size)}}},
               {nonzeroOf(valuesOf(x), x.type.shape.back(), size)}, 0);
}

TEST(Indexing, Nonzero) {
  expectKernel({"nonzero",
                {makeTensor(DType::Bool, {4, 5}, {0, 0, 0, 0, 0, //
                                                  0, 1, 0, 1, 0, //
                                                  1, 1, 0, 1, 1, //
                                                  0, 0, 0, 0, 1})},
                {{DType::I32, {4, 3}}}},
               {{-1, -1, -1, 1, 3, -1, 0, 1, 3, 4, -1, -1}}, 0);
  for (const Shape &shape : {Shape{1}, Shape{7}, Shape{5, 1}, Shape{0, 4}, Shape{2, 3, 32},
                             Shape{20, 33}, Shape{300, 70}, Shape{3, 1025}}) {
    Random random(67);
    int64_t width = shape.back();
    for (int64_t size : {int64_t{1}, (width + 2) / 3, width}) {
      expectNonzero(random.integers(DType::Bool, shape, 0, 1), size);
      expectNonzero(random.integers(DType::Bool, shape, 0, 0), size);
      expectNonzero(random.integers(DType::Bool, shape, 1, 1), size);
    }
    // Few true elements, far apart.
    HostTensor sparse = random.integers(DType::Bool, shape, 0, 0);
    for (int64_t i = 0; i < sparse.type.numElements(); i += 37)
      sparse.as<uint8_t>()[i] = 1;
    for (int64_t size : {int64_t{1}, width})
      expectNonzero(sparse, size);
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
  expectRefused({"embedding", {{DType::F32, {7}}, ids}, {rows}, {}, {}},
                "input 0 is f32[7], expected at least 2 dimensions");
  expectRefused({"embedding", {table, flat}, {rows}, {}, {}},
                "input 1 is f32[2,5], expected elements of i32");
  expectRefused({"embedding", {table, ids}, {flat}, {}, {}},
                "output 0 is f32[2,5], expected f32[2,5,3]");
  expectRefused({"embedding_grad", {ids, rows}, {{DType::F64, {7, 3}}}, {}, {}},
                "output 0 is f64[7,3], expected at least 2 dimensions of f32");
  expectRefused({"embedding_grad", {ids, rows}, {{DType::F32, {3}}}, {}, {}},
                "output 0 is f32[3], expected at least 2 dimensions of f32");
  expectRefused({"embedding_grad", {ids, rows}, {{DType::F32, {7, 4}}}, {}, {}},
                "input 1 is f32[2,5,3], expected f32[2,5,4]");
  expectRefused({"pick", {rows, wide}, {flat}, {}, {}}, "input 1 is i32[2,5,3], expected i32[2,5]");
  expectRefused({"pick", {scalar, ids}, {flat}, {}, {}},
                "input 0 is f32[], expected at least 1 dimensions");
  expectRefused({"pick_grad", {ids, flat}, {scalar}, {}, {}}, "output 0 is f32[]");
  expectRefused({"pick_grad", {ids, flat}, {table}, {}, {}},
                "output 0 is f32[7,3], expected f32[2,5,3]");
}

TEST(Indexing, RefusesOtherSamples) {
  TensorType tables{DType::F32, {2, 7, 3}}, ids{DType::I32, {4, 2, 5}};
  TensorType rows{DType::F32, {4, 2, 5, 3}};
  TensorType others{DType::I32, {2, 4, 5}}, ofOthers{DType::F32, {2, 4, 5, 3}};
  TensorType row{DType::I32, {2}}, ofRow{DType::F32, {2, 3}};
  TensorType nested{DType::F32, {9, 4, 2, 7, 3}};
  expectRefused({"embedding", {tables, others}, {ofOthers}, {}, {}},
                "input 0 is f32[2,7,3], expected its dimensions before the last two in i32[2,4,5] "
                "before the last one");
  expectRefused({"embedding", {tables, row}, {ofRow}, {}, {}},
                "expected its dimensions before the last two in i32[2] before the last one");
  expectRefused({"embedding", {nested, ids}, {rows}, {}, {}},
                "expected its dimensions before the last two in i32[4,2,5] before the last one");
  expectRefused({"embedding", {tables, ids}, {{DType::F32, {4, 2, 5, 7}}}, {}, {}},
                "output 0 is f32[4,2,5,7], expected f32[4,2,5,3]");
  expectRefused({"embedding_grad", {others, ofOthers}, {tables}, {}, {}},
                "output 0 is f32[2,7,3], expected its dimensions before the last two in "
                "i32[2,4,5] before the last one");
  expectRefused({"embedding_grad", {row, ofRow}, {tables}, {}, {}},
                "expected its dimensions before the last two in i32[2] before the last one");
  expectRefused({"embedding_grad", {{DType::I32, {}}, {DType::F32, {3}}}, {tables}, {}, {}},
                "expected its dimensions before the last two in i32[] before the last one");
}

TEST(Indexing, RefusesRows) {
  TensorType x{DType::F32, {2, 5}}, mask{DType::Bool, {2, 5}}, places{DType::I32, {2, 3}};
  TensorType scalar{DType::F32, {}}, flag{DType::Bool, {}}, place{DType::I32, {}};
  auto topK = [&](const TensorType &in, const TensorType &out, int64_t k) {
    return KernelSignature{"top_k", {in}, {out}, {{"k", k}}, {}};
  };
  expectRefused(topK(scalar, flag, 1), "input 0 is f32[], expected at least 1 dimensions");
  expectRefused(topK(mask, mask, 1), "input 0 is bool[2,5]");
  expectRefused(topK(x, x, 1), "output 0 is f32[2,5], expected bool[2,5]");
  expectRefused(topK(x, {DType::Bool, {2, 1}}, 1), "output 0 is bool[2,1], expected bool[2,5]");
  expectRefused(topK(x, mask, 0), "attribute 'k' is 0, expected at least 1 and at most 5");
  expectRefused(topK(x, mask, 6), "attribute 'k' is 6, expected at least 1 and at most 5");
  expectRefused({"top_k", {x}, {mask}, {}, {}}, "attribute 'k' is missing, expected an integer");
  expectRefused({"nonzero", {flag}, {places}, {}, {}},
                "input 0 is bool[], expected at least 1 dimensions");
  expectRefused({"nonzero", {mask}, {place}, {}, {}},
                "output 0 is i32[], expected at least 1 dimensions");
  expectRefused({"nonzero", {x}, {places}, {}, {}}, "input 0 is f32[2,5], expected bool[2,5]");
  expectRefused({"nonzero", {mask}, {mask}, {}, {}}, "output 0 is bool[2,5], expected i32[2,5]");
  expectRefused({"nonzero", {mask}, {{DType::I32, {3, 3}}}, {}, {}},
                "output 0 is i32[3,3], expected i32[2,3]");
  expectRefused({"nonzero", {mask}, {{DType::I32, {2, 6}}}, {}, {}},
                "output 0 is i32[2,6], expected rows of at most 5");
}

} // namespace
} // namespace dtc::runtime::test::indexingTest
