//===- SegmentsTest.cpp - Attention within segments -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Attention with segments is attention to each segment by itself: the reference is the kernel
// without segments, called once for each.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"
#include "test/runtime/backends/conformance/MaskReference.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace dtc::runtime::test::segmentsTest {
namespace {

struct Case {
  int64_t b, s, t, h, g, d;
  bool causal;
  std::vector<int64_t> lengths; ///< of segments; over and over, as far as there are keys
  int64_t window = 0;
  double softcap = 0;

  Shape query() const { return {b, s, h, d}; }
  Shape key() const { return {b, t, g, d}; }
  AttributeMap attributes() const {
    AttributeMap result{{"causal", causal}, {"scale", 0.6}};
    if (window)
      result["window"] = window;
    if (softcap != 0)
      result["softcap"] = softcap;
    return result;
  }
  /// Where segments of a batch element begin, and the number of keys; each element begins with
  /// another of the lengths.
  std::vector<int64_t> bounds(int64_t element) const {
    std::vector<int64_t> result{0};
    for (size_t i = static_cast<size_t>(element); result.back() < t; ++i)
      result.push_back(std::min(t, result.back() + lengths[i % lengths.size()]));
    return result;
  }
  /// Numbers that come back after other ones, as those of padding on both sides do.
  HostTensor segments() const {
    HostTensor result(TensorType{DType::I32, {b, t}});
    for (int64_t element = 0; element < b; ++element) {
      std::vector<int64_t> begins = bounds(element);
      for (size_t i = 0; i + 1 < begins.size(); ++i)
        for (int64_t j = begins[i]; j < begins[i + 1]; ++j)
          result.as<int32_t>()[element * t + j] = static_cast<int32_t>(i % 3) - 1;
    }
    return result;
  }
};

std::vector<Case> cases() {
  return {{2, 6, 6, 2, 2, 4, true, {2, 3, 1}},
          {2, 6, 6, 4, 2, 4, false, {2, 3, 1}},
          {2, 5, 9, 4, 1, 3, true, {4, 3}},
          {2, 5, 9, 4, 1, 3, false, {4, 3}},
          {1, 1, 7, 2, 2, 2, true, {3, 2}},
          {2, 5, 5, 2, 1, 4, true, {100}},
          {1, 5, 5, 2, 1, 4, false, {1}},
          {2, 12, 12, 2, 1, 4, true, {7, 5}, 3},
          {2, 12, 12, 2, 2, 4, true, {7, 2}, 4, 1.3},
          {2, 9, 12, 2, 2, 4, false, {5, 3}, 0, 0.9},
          // More than a block of rows and a tile of keys; segments begin in the middle of them.
          {2, 300, 300, 2, 1, 8, true, {130, 1, 64, 70}},
          {2, 300, 300, 2, 1, 8, false, {130, 1, 64, 70}},
          {1, 150, 330, 4, 2, 16, true, {90, 75, 3}, 40},
          {1, 200, 330, 2, 2, 16, false, {33}, 0, 2.0},
          {1, 70, 70, 2, 1, 100, true, {20, 33}}};
}

/// Rows [begin, end) of a batch element of x [b, rows, heads, size], or of lse [b, heads, rows].
HostTensor rowsOf(const HostTensor &x, int64_t b, int64_t begin, int64_t end) {
  Shape shape = x.type.shape;
  bool isLse = shape.size() == 3;
  int64_t rows = isLse ? shape[2] : shape[1];
  int64_t outer = isLse ? shape[1] : 1, inner = isLse ? 1 : shape[2] * shape[3];
  (isLse ? shape[2] : shape[1]) = end - begin;
  shape[0] = 1;
  HostTensor part(TensorType{x.type.dtype, shape});
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < (end - begin) * inner; ++i)
      setElement(part, o * (end - begin) * inner + i,
                 elementAt(x, ((b * outer + o) * rows + begin) * inner + i));
  return part;
}
void setRows(HostTensor &x, int64_t b, int64_t begin, int64_t end, const HostTensor &part) {
  const Shape &shape = x.type.shape;
  bool isLse = shape.size() == 3;
  int64_t rows = isLse ? shape[2] : shape[1];
  int64_t outer = isLse ? shape[1] : 1, inner = isLse ? 1 : shape[2] * shape[3];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < (end - begin) * inner; ++i)
      setElement(x, ((b * outer + o) * rows + begin) * inner + i,
                 elementAt(part, o * (end - begin) * inner + i));
}

/// The results of a call, segment by segment; `ofQueries` says of inputs and outputs whether they
/// have rows of queries.
std::vector<Values> bySegments(const Case &c, const KernelCall &call,
                               const std::vector<bool> &inputs, const std::vector<bool> &outputs) {
  std::vector<HostTensor> results;
  for (const TensorType &type : call.outputs)
    results.emplace_back(type); // zeros: of keys that no query sees
  int64_t earlier = c.t - c.s;
  for (int64_t b = 0; b < c.b; ++b) {
    std::vector<int64_t> bounds = c.bounds(b);
    for (size_t i = 0; i + 1 < bounds.size(); ++i) {
      int64_t begin = bounds[i], end = bounds[i + 1];
      int64_t first = std::max<int64_t>(0, begin - earlier), last = end - earlier;
      if (last <= 0)
        continue;
      auto range = [&](bool ofQueries) {
        return ofQueries ? std::pair(first, last) : std::pair(begin, end);
      };
      KernelCall part{call.kernel, {}, {}, call.attributes};
      for (size_t n = 0; n < inputs.size(); ++n) {
        auto [from, to] = range(inputs[n]);
        part.inputs.push_back(rowsOf(call.inputs[n], b, from, to));
      }
      for (size_t n = 0; n < outputs.size(); ++n) {
        auto [from, to] = range(outputs[n]);
        part.outputs.push_back(rowsOf(results[n], b, from, to).type);
      }
      std::vector<HostTensor> found = part.run(1);
      for (size_t n = 0; n < outputs.size(); ++n) {
        auto [from, to] = range(outputs[n]);
        setRows(results[n], b, from, to, found[n]);
      }
    }
  }
  std::vector<Values> values;
  for (const HostTensor &result : results)
    values.push_back(valuesOf(result));
  return values;
}

/// attention, and attention_grad on its results; both with segments.
std::pair<KernelCall, KernelCall> callsOf(const Case &c, DType dtype, Random &random) {
  HostTensor q = random.floats(dtype, c.query(), -2, 2), dout = random.floats(dtype, c.query());
  HostTensor k = random.floats(dtype, c.key(), -2, 2), v = random.floats(dtype, c.key());
  DType wide = is16Bits(dtype) ? DType::F32 : dtype;
  KernelCall forward{"attention",
                     {q, k, v, c.segments()},
                     {q.type, TensorType{wide, {c.b, c.h, c.s}}},
                     c.attributes()};
  std::vector<HostTensor> results = forward.run(1);
  return {forward,
          {"attention_grad",
           {q, k, v, results[0], results[1], dout, c.segments()},
           {q.type, k.type, k.type},
           c.attributes()}};
}

TEST(AttentionSegments, AreAttendedToOneByOne) {
  for (const Case &c : cases())
    for (DType dtype : kFloatTypes) {
      Random random(30);
      auto [forward, backward] = callsOf(c, dtype, random);
      expectKernel(forward, bySegments(c, forward, {true, false, false}, {true, true}), 5e-15);
      expectKernel(
          backward,
          bySegments(c, backward, {true, false, false, true, true, true}, {true, false, false}),
          1e-14);
    }
}

TEST(AttentionSegments, Halves) {
  for (const Case &c : cases())
    for (DType dtype : kHalfTypes) {
      Random random(31);
      auto [forward, backward] = callsOf(c, dtype, random);
      expectRounded(forward);
      expectRounded(backward);
    }
}

/// One segment is none.
TEST(AttentionSegments, OneIsTheWholeSequence) {
  for (bool causal : {true, false}) {
    Case c{2, 20, 30, 2, 1, 8, causal, {30}};
    Random random(32);
    auto [forward, backward] = callsOf(c, DType::F64, random);
    for (KernelCall call : {forward, backward}) {
      std::vector<HostTensor> with = call.run(2);
      call.inputs.pop_back();
      std::vector<Values> without;
      for (const HostTensor &result : call.run(2))
        without.push_back(valuesOf(result));
      for (size_t i = 0; i < with.size(); ++i)
        for (size_t e = 0; e < without[i].size(); ++e)
          EXPECT_NEAR(elementAt(with[i], static_cast<int64_t>(e)), without[i][e], 1e-14);
    }
  }
}

/// With the unit vectors as values, out has the weights, which the mask drops as without segments.
TEST(AttentionSegments, Dropout) {
  constexpr double rate = 0.3;
  constexpr int32_t seed = -5, iteration = 4;
  for (bool causal : {true, false}) {
    Case c{1, 4, 6, 2, 1, 6, causal, {3, 2}};
    Random random(33);
    HostTensor q = random.floats(DType::F64, c.query()), k = random.floats(DType::F64, c.key());
    HostTensor v(TensorType{DType::F64, c.key()});
    for (int64_t row = 0; row < c.b * c.t * c.g; ++row)
      setElement(v, row * c.d + row / c.g % c.t, 1);
    TensorType lse{DType::F64, {c.b, c.h, c.s}};
    KernelCall call{"attention", {q, k, v, c.segments()}, {q.type, lse}, c.attributes()};
    std::vector<HostTensor> plain = call.run(1);
    call.inputs.push_back(makeTensor(DType::I32, {2}, {seed, iteration}));
    call.attributes["dropout"] = rate;
    call.attributes["op"] = int64_t{3};
    call.attributes["shape"] = Shape{c.b, c.h, c.s, c.t};
    call.attributes["sharding"] = std::vector<std::string>(4);
    Values expected(static_cast<size_t>(count(c.query())));
    for (int64_t row = 0; row < c.b * c.s * c.h; ++row)
      for (int64_t key = 0; key < c.t; ++key) {
        int64_t b = row / c.h / c.s, i = row / c.h % c.s, h = row % c.h;
        int64_t number = ((b * c.h + h) * c.s + i) * c.t + key;
        bool kept = maskKeeps(rate, static_cast<uint32_t>(seed), 3, iteration,
                              static_cast<uint64_t>(number));
        expected[static_cast<size_t>(row * c.d + key)] =
            kept ? elementAt(plain[0], row * c.d + key) / (1 - rate) : 0;
      }
    expectKernel(call, {expected, valuesOf(plain[1])});

    HostTensor dout = random.floats(DType::F64, c.query());
    std::vector<HostTensor> results = call.run(1);
    KernelCall backward{"attention_grad",
                        {q, k, v, results[0], results[1], dout, call.inputs[3], call.inputs[4]},
                        {q.type, k.type, k.type},
                        call.attributes};
    std::vector<Values> gradients;
    for (size_t input = 0; input < 3; ++input)
      gradients.push_back(numericGradient(
          [&](const Values &x) {
            KernelCall moved = call;
            moved.inputs[input] = makeTensor(DType::F64, call.inputs[input].type.shape, x);
            return valuesOf(moved.run(1)[0]);
          },
          valuesOf(call.inputs[input]), valuesOf(dout)));
    expectKernel(backward, gradients, 1e-9);
  }
}

TEST(AttentionSegments, Empty) {
  for (const Case &c : {Case{0, 4, 4, 2, 2, 3, true, {2}}, Case{2, 0, 4, 2, 2, 3, false, {2}},
                        Case{2, 3, 4, 0, 2, 3, true, {2}}}) {
    HostTensor q(TensorType{DType::F32, c.query()}), k(TensorType{DType::F32, c.key()});
    HostTensor lse(TensorType{DType::F32, {c.b, c.h, c.s}});
    expectKernel({"attention", {q, k, k, c.segments()}, {q.type, lse.type}, c.attributes()},
                 {valuesOf(q), valuesOf(lse)});
    expectKernel({"attention_grad",
                  {q, k, k, q, lse, q, c.segments()},
                  {q.type, k.type, k.type},
                  c.attributes()},
                 {valuesOf(q), valuesOf(k), valuesOf(k)});
  }
}

TEST(AttentionSegments, Refuses) {
  TensorType q{DType::F32, {2, 5, 4, 8}}, k{DType::F32, {2, 6, 2, 8}}, lse{DType::F32, {2, 4, 5}};
  TensorType few{DType::F32, {2, 3, 2, 8}}, key{DType::I32, {2}};
  AttributeMap attributes{{"causal", false}, {"scale", 0.5}};
  for (const TensorType &bad : {TensorType{DType::I32, {2, 5}}, TensorType{DType::F32, {2, 6}},
                                TensorType{DType::I32, {6}}}) {
    expectRefused({"attention", {q, k, k, bad}, {q, lse}, attributes, {}},
                  "input 3 is " + bad.str() + ", expected i32[2,6]");
    expectRefused({"attention_grad", {q, k, k, q, lse, q, bad}, {q, k, k}, attributes, {}},
                  "input 6 is " + bad.str() + ", expected i32[2,6]");
  }
  expectRefused({"attention", {q, few, few, {DType::I32, {2, 3}}}, {q, lse}, attributes, {}},
                "has 5 queries and 3 keys with segments, expected no more queries than keys");
  // With segments and without dropout there is no key.
  TensorType segments{DType::I32, {2, 6}};
  expectRefused({"attention", {q, k, k, segments, key}, {q, lse}, attributes, {}},
                "has 5 inputs, expected 3");
  // With dropout the last input is the key.
  attributes["dropout"] = 0.5;
  expectRefused({"attention", {q, k, k, segments}, {q, lse}, attributes, {}},
                "input 3 is i32[2,6], expected i32[2]");
}

} // namespace
} // namespace dtc::runtime::test::segmentsTest
