//===- CacheTest.cpp - Attention over caches of keys and values -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <cmath>

namespace dtc::runtime::test::cacheTest {
namespace {

/// The dimensions of a call of cached_attention, and the keys of each sample before its queries.
struct Case {
  int64_t s, t, h, g, d;
  Values earlier;
  int64_t window = 0; // 0: none
  double softcap = 0; // 0: none

  AttributeMap attributes() const {
    AttributeMap result{{"scale", 0.3}};
    if (window)
      result["window"] = window;
    if (softcap != 0)
      result["softcap"] = softcap;
    return result;
  }
  int64_t samples() const { return static_cast<int64_t>(earlier.size()); }
  Shape query() const { return {samples(), s, h, d}; }
  Shape key() const { return {samples(), t, g, d}; }
};

/// Without `sinks`, queries have the scores of keys alone.
Values reference(const Case &c, double scale, const Values &q, const Values &k, const Values &v,
                 const Values &sinks = {}) {
  Values out(q.size(), 0.0);
  for (int64_t n = 0; n < c.samples(); ++n)
    for (int64_t i = 0; i < c.s; ++i)
      for (int64_t h = 0; h < c.h; ++h) {
        auto query = static_cast<size_t>(((n * c.s + i) * c.h + h) * c.d);
        auto key = [&](int64_t j) {
          return static_cast<size_t>(((n * c.t + j) * c.g + h / (c.h / c.g)) * c.d);
        };
        auto visible = static_cast<int64_t>(c.earlier[static_cast<size_t>(n)]) + i + 1;
        Values weights;
        double total = sinks.empty() ? 0 : std::exp(sinks[static_cast<size_t>(h)]);
        int64_t first = c.window ? std::max<int64_t>(0, visible - c.window) : 0;
        for (int64_t j = first; j < std::min(visible, c.t); ++j) {
          double score = 0;
          for (size_t d = 0; d < static_cast<size_t>(c.d); ++d)
            score += q[query + d] * k[key(j) + d];
          score *= scale;
          if (c.softcap != 0)
            score = c.softcap * std::tanh(score / c.softcap);
          weights.push_back(std::exp(score));
          total += weights.back();
        }
        for (size_t j = 0; j < weights.size(); ++j)
          for (size_t d = 0; d < static_cast<size_t>(c.d); ++d)
            out[query + d] += weights[j] / total * v[key(first + static_cast<int64_t>(j)) + d];
      }
  return out;
}

TEST(Cache, Attention) {
  for (const Case &c :
       {Case{1, 9, 4, 2, 6, {0, 3, 8}}, Case{3, 7, 2, 1, 5, {2, 4}}, Case{1, 1, 1, 1, 1, {0}},
        // Places that do not exist: queries before the first key and after the last.
        Case{4, 6, 2, 2, 3, {-2, 5, -9}}, Case{70, 200, 2, 1, 16, {100, 7}},
        Case{1, 150, 8, 1, 130, {149, 20}}, Case{1, 9, 4, 2, 6, {0, 3, 8}, 3},
        Case{3, 7, 2, 1, 5, {2, 4}, 2, 0.5}, Case{70, 200, 2, 1, 16, {100, 7}, 33},
        Case{4, 6, 2, 2, 3, {-2, 5, 90}, 4}, Case{1, 9, 4, 2, 6, {0, 3, 8}, 0, 0.9}})
    for (DType dtype : kFloatTypes) {
      Random random(30);
      HostTensor q = random.floats(dtype, c.query(), -2, 2);
      HostTensor k = random.floats(dtype, c.key(), -2, 2), v = random.floats(dtype, c.key());
      HostTensor earlier = makeTensor(DType::I32, {c.samples()}, c.earlier);
      expectKernel({"cached_attention", {q, k, v, earlier}, {q.type}, c.attributes()},
                   {reference(c, 0.3, valuesOf(q), valuesOf(k), valuesOf(v))}, 5e-15);
    }
}

/// A sink may be the largest score by far, or the smallest; a query that sees no key gives zeros.
TEST(Cache, AttentionWithSinks) {
  for (const Case &c : {Case{1, 9, 4, 2, 6, {0, 3, 8}}, Case{3, 7, 2, 1, 5, {2, 4}, 2, 0.5},
                        Case{4, 6, 2, 2, 3, {-2, 5, -9}}, Case{70, 200, 2, 1, 16, {100, 7}, 33},
                        Case{1, 150, 8, 1, 130, {149, 20}}})
    for (DType dtype : kFloatTypes) {
      Random random(35);
      HostTensor q = random.floats(dtype, c.query(), -2, 2);
      HostTensor k = random.floats(dtype, c.key(), -2, 2), v = random.floats(dtype, c.key());
      HostTensor sinks = random.floats(dtype, {c.h}, -20, 20);
      HostTensor earlier = makeTensor(DType::I32, {c.samples()}, c.earlier);
      expectKernel({"cached_attention", {q, k, v, earlier, sinks}, {q.type}, c.attributes()},
                   {reference(c, 0.3, valuesOf(q), valuesOf(k), valuesOf(v), valuesOf(sinks))},
                   5e-15);
    }
}

/// The part of a cache after the last key that a query sees is not read.
TEST(Cache, AttentionReadsNoFurther) {
  Case c{2, 100, 2, 1, 8, {40, 10}};
  Random random(31);
  HostTensor q = random.floats(DType::F32, c.query());
  Values k = valuesOf(random.floats(DType::F32, c.key())), v = k;
  HostTensor earlier = makeTensor(DType::I32, {2}, c.earlier);
  Values expected = reference(c, 0.3, valuesOf(q), k, v);
  for (int64_t n = 0; n < 2; ++n)
    for (auto j = static_cast<int64_t>(c.earlier[static_cast<size_t>(n)]) + 2; j < c.t; ++j)
      for (int64_t d = 0; d < c.d; ++d)
        k[static_cast<size_t>((n * c.t + j) * c.d + d)] =
            v[static_cast<size_t>((n * c.t + j) * c.d + d)] = std::nan("");
  expectKernel(
      {"cached_attention",
       {q, makeTensor(DType::F32, c.key(), k), makeTensor(DType::F32, c.key(), v), earlier},
       {q.type},
       {{"scale", 0.3}}},
      {expected}, 2e-15);
}

TEST(Cache, AttentionOnHalves) {
  for (const Case &c : {Case{1, 9, 4, 2, 6, {0, 3, 8}}, Case{3, 130, 2, 1, 40, {2, 120}},
                        Case{3, 130, 2, 1, 40, {2, 120}, 9, 1.5}})
    for (DType dtype : kHalfTypes) {
      Random random(32);
      HostTensor q = random.floats(dtype, c.query(), -2, 2);
      HostTensor k = random.floats(dtype, c.key(), -2, 2), v = random.floats(dtype, c.key());
      HostTensor earlier = makeTensor(DType::I32, {c.samples()}, c.earlier);
      expectRounded({"cached_attention", {q, k, v, earlier}, {q.type}, c.attributes()});
      HostTensor sinks = random.floats(dtype, {c.h}, -4, 4);
      expectRounded({"cached_attention", {q, k, v, earlier, sinks}, {q.type}, c.attributes()});
    }
}

TEST(Cache, AttentionRefuses) {
  TensorType q{DType::F32, {2, 1, 4, 8}}, k{DType::F32, {2, 6, 2, 8}}, n{DType::I32, {2}};
  expectRefused({"cached_attention", {q, k, k, q}, {q}, {{"scale", 0.5}}, {}},
                "input 3 is f32[2,1,4,8], expected i32[2]");
  expectRefused({"cached_attention", {q, k, k}, {q}, {{"scale", 0.5}}, {}},
                "has 3 inputs, expected 4");
  expectRefused({"cached_attention", {q, k, k, n, n}, {q}, {{"scale", 0.5}}, {}},
                "input 4 is i32[2], expected f32[4]");
  expectRefused({"cached_attention", {q, k, k, n}, {q}, {{"scale", 0.5}, {"causal", true}}, {}},
                "causal");
}

/// Rows of every number of bytes that is moved differently.
TEST(Cache, Update) {
  for (const Shape &rest : {Shape{}, Shape{3}, Shape{2, 4}, Shape{5, 8}, Shape{0}})
    for (DType dtype : {DType::F32, DType::F64, DType::BF16}) {
      Random random(33);
      auto shape = [&](int64_t rows) {
        Shape result{4, rows};
        result.insert(result.end(), rest.begin(), rest.end());
        return result;
      };
      HostTensor cache = random.floats(dtype, shape(6)), rows = random.floats(dtype, shape(2));
      Values positions{0, 3, 5, -1}, expected = valuesOf(cache), from = valuesOf(rows);
      auto width = static_cast<int64_t>(expected.size()) / 24;
      for (int64_t n = 0; n < 4; ++n)
        for (int64_t i = 0; i < 2; ++i) {
          auto place = static_cast<int64_t>(positions[static_cast<size_t>(n)]) + i;
          if (place < 0 || place >= 6)
            continue;
          for (int64_t c = 0; c < width; ++c)
            expected[static_cast<size_t>((n * 6 + place) * width + c)] =
                from[static_cast<size_t>((n * 2 + i) * width + c)];
        }
      expectKernel({"cache_update",
                    {cache, rows, makeTensor(DType::I32, {4}, positions)},
                    {cache.type},
                    {},
                    {},
                    {{0, 0}}},
                   {expected}, 0);
    }
}

TEST(Cache, SelectRow) {
  for (const Shape &rest : {Shape{}, Shape{3}, Shape{2, 4}, Shape{0}})
    for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::I32}) {
      Random random(34);
      Shape shape{5, 3}, out{5, 1};
      shape.insert(shape.end(), rest.begin(), rest.end());
      out.insert(out.end(), rest.begin(), rest.end());
      HostTensor x =
          dtype == DType::I32 ? random.integers(dtype, shape, -9, 9) : random.floats(dtype, shape);
      Values rows{2, 0, 3, -1, 1}, expected, from = valuesOf(x);
      size_t width = from.size() / 15;
      for (size_t n = 0; n < 5; ++n)
        for (size_t c = 0; c < width; ++c)
          expected.push_back(rows[n] < 0 || rows[n] > 2
                                 ? 0
                                 : from[(n * 3 + static_cast<size_t>(rows[n])) * width + c]);
      expectKernel({"select_row", {x, makeTensor(DType::I32, {5}, rows)}, {TensorType{dtype, out}}},
                   {expected}, 0);
    }
}

TEST(Cache, Refuses) {
  TensorType cache{DType::F32, {2, 6, 3}}, rows{DType::F32, {2, 1, 3}}, n{DType::I32, {2}};
  expectRefused({"cache_update", {cache, n, n}, {cache}, {}, {}}, "input 1 is i32[2]");
  expectRefused({"cache_update", {cache, rows, rows}, {cache}, {}, {}},
                "input 2 is f32[2,1,3], expected i32[2]");
  expectRefused({"select_row", {cache, n}, {cache}, {}, {}},
                "output 0 is f32[2,6,3], expected f32[2,1,3]");
  expectRefused({"select_row", {n, n}, {n}, {}, {}}, "expected at least 2 dimensions");
}

} // namespace
} // namespace dtc::runtime::test::cacheTest
