//===- AttentionTest.cpp - Attention and its gradient ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/cpu/KernelTest.h"

#include <cmath>
#include <limits>

namespace dtc::runtime::test {
namespace {

struct Case {
  int64_t b, s, t, h, g, d;
  bool causal;
  double scale;

  Shape query() const { return {b, s, h, d}; }
  Shape key() const { return {b, t, g, d}; }
  AttributeMap attributes() const { return {{"causal", causal}, {"scale", scale}}; }
};

/// out and lse, one element of a score at a time.
std::pair<Values, Values> reference(const Case &c, const Values &q, const Values &k,
                                    const Values &v) {
  Values out(static_cast<size_t>(count(c.query())), 0.0);
  Values lse(static_cast<size_t>(c.b * c.h * c.s), -std::numeric_limits<double>::infinity());
  auto query = [&](int64_t b, int64_t i, int64_t h, int64_t d) {
    return static_cast<size_t>(((b * c.s + i) * c.h + h) * c.d + d);
  };
  auto key = [&](int64_t b, int64_t j, int64_t h, int64_t d) {
    return static_cast<size_t>(((b * c.t + j) * c.g + h / (c.h / c.g)) * c.d + d);
  };
  for (int64_t b = 0; b < c.b; ++b)
    for (int64_t h = 0; h < c.h; ++h)
      for (int64_t i = 0; i < c.s; ++i) {
        Values weights;
        double total = 0;
        for (int64_t j = 0; j < c.t; ++j) {
          double score = 0;
          for (int64_t d = 0; d < c.d; ++d)
            score += q[query(b, i, h, d)] * k[key(b, j, h, d)];
          bool seen = !c.causal || j <= i + (c.t - c.s);
          weights.push_back(seen ? std::exp(c.scale * score) : 0);
          total += weights.back();
        }
        if (total == 0)
          continue;
        lse[static_cast<size_t>((b * c.h + h) * c.s + i)] = std::log(total);
        for (int64_t j = 0; j < c.t; ++j)
          for (int64_t d = 0; d < c.d; ++d)
            out[query(b, i, h, d)] += weights[static_cast<size_t>(j)] / total * v[key(b, j, h, d)];
      }
  return {out, lse};
}

std::vector<Case> cases() {
  return {{2, 5, 5, 2, 2, 4, false, 0.5}, {2, 5, 5, 2, 2, 4, true, 0.5},
          {1, 3, 7, 4, 2, 3, true, 0.7},  {1, 3, 7, 4, 1, 3, false, 0.7},
          {2, 7, 3, 3, 3, 5, true, 0.4},  {1, 1, 1, 1, 1, 1, true, 1},
          {2, 1, 9, 6, 3, 2, true, -0.3}, {3, 4, 4, 1, 1, 6, true, 0.2}};
}

TEST(Attention, Forward) {
  std::vector<Case> all = cases();
  all.push_back({2, 150, 150, 2, 1, 8, true, 0.3});
  all.push_back({1, 131, 200, 3, 3, 16, true, 0.25});
  all.push_back({1, 300, 140, 1, 1, 8, true, 0.25});
  all.push_back({2, 130, 33, 4, 2, 8, false, 0.3});
  for (const Case &c : all)
    for (DType dtype : floatTypes) {
      Random random(20);
      HostTensor q = random.floats(dtype, c.query(), -2, 2);
      HostTensor k = random.floats(dtype, c.key(), -2, 2), v = random.floats(dtype, c.key());
      auto [out, lse] = reference(c, valuesOf(q), valuesOf(k), valuesOf(v));
      expectKernel(
          {"attention", {q, k, v}, {q.type, TensorType{dtype, {c.b, c.h, c.s}}}, c.attributes()},
          {out, lse}, 2e-15);
    }
}

/// attention_grad on the results of attention.
KernelCall gradCall(const Case &c, const HostTensor &q, const HostTensor &k, const HostTensor &v,
                    const HostTensor &dout) {
  KernelCall forward{
      "attention", {q, k, v}, {q.type, TensorType{q.type.dtype, {c.b, c.h, c.s}}}, c.attributes()};
  std::vector<HostTensor> results = forward.run(1);
  return {"attention_grad",
          {q, k, v, results[0], results[1], dout},
          {q.type, k.type, k.type},
          c.attributes()};
}

TEST(Attention, Gradient) {
  for (const Case &c : cases())
    for (DType dtype : floatTypes) {
      Random random(21);
      HostTensor q = random.floats(dtype, c.query(), -2, 2), dout = random.floats(dtype, c.query());
      HostTensor k = random.floats(dtype, c.key(), -2, 2), v = random.floats(dtype, c.key());
      Values qs = valuesOf(q), ks = valuesOf(k), vs = valuesOf(v), douts = valuesOf(dout);
      expectKernel(gradCall(c, q, k, v, dout),
                   {numericGradient([&](const Values &x) { return reference(c, x, ks, vs).first; },
                                    qs, douts),
                    numericGradient([&](const Values &x) { return reference(c, qs, x, vs).first; },
                                    ks, douts),
                    numericGradient([&](const Values &x) { return reference(c, qs, ks, x).first; },
                                    vs, douts)},
                   dtype == DType::F32 ? 5e-15 : 1e-9);
    }
}

TEST(Attention, LargeGradient) {
  // More than one block of rows and several tasks a thread; f64 is the reference.
  for (const Case &c :
       {Case{2, 150, 150, 4, 2, 16, true, 0.25}, Case{1, 140, 160, 2, 2, 8, true, 0.3},
        Case{1, 160, 20, 2, 1, 8, true, 0.3}}) {
    Random random(22);
    HostTensor q = random.floats(DType::F32, c.query()),
               dout = random.floats(DType::F32, c.query());
    HostTensor k = random.floats(DType::F32, c.key()), v = random.floats(DType::F32, c.key());
    auto wide = [](const HostTensor &x) {
      return makeTensor(DType::F64, x.type.shape, valuesOf(x));
    };
    std::vector<Values> expected;
    for (const HostTensor &result : gradCall(c, wide(q), wide(k), wide(v), wide(dout)).run(1))
      expected.push_back(valuesOf(result));
    expectKernel(gradCall(c, q, k, v, dout), expected, 5e-15);
  }
}

TEST(Attention, Empty) {
  for (const Case &c : {Case{0, 4, 4, 2, 2, 3, true, 1}, Case{2, 0, 4, 2, 2, 3, true, 1},
                        Case{2, 4, 0, 2, 2, 3, true, 1}, Case{2, 3, 4, 0, 2, 3, true, 1}}) {
    HostTensor q(TensorType{DType::F32, c.query()}), k(TensorType{DType::F32, c.key()});
    auto [out, lse] = reference(c, valuesOf(q), valuesOf(k), valuesOf(k));
    expectKernel(
        {"attention", {q, k, k}, {q.type, TensorType{DType::F32, {c.b, c.h, c.s}}}, c.attributes()},
        {out, lse});
    expectKernel(gradCall(c, q, k, k, q), {valuesOf(q), valuesOf(k), valuesOf(k)});
  }
}

TEST(Attention, Refuses) {
  TensorType q{DType::F32, {2, 5, 4, 8}}, k{DType::F32, {2, 6, 2, 8}}, lse{DType::F32, {2, 4, 5}};
  AttributeMap attributes{{"causal", true}, {"scale", 0.5}};
  expectRefused({"attention", {q, k, q}, {q, lse}, attributes, {}},
                "input 2 is f32[2,5,4,8], expected f32[2,6,2,8]");
  expectRefused({"attention", {q, k, k}, {q, q}, attributes, {}}, "expected f32[2,4,5]");
  expectRefused({"attention", {q, k, k}, {q, lse}, {{"causal", true}}, {}},
                "attribute 'scale' is missing, expected a float");
  expectRefused({"attention", {q, k, k}, {q, lse}, {{"causal", 1.0}, {"scale", 0.5}}, {}},
                "attribute 'causal' is a float, expected a boolean");
  expectRefused({"attention", {q, k, k}, {q, lse}, {{"causal", true}, {"scale", std::nan("")}}, {}},
                "attribute 'scale' is nan, expected a finite number");
  for (int64_t heads : {3, 0, 8}) {
    TensorType bad{DType::F32, {2, 6, heads, 8}};
    expectRefused({"attention", {q, bad, bad}, {q, lse}, attributes, {}},
                  "expected heads that divide the 4 of input 0");
  }
  TensorType empty{DType::F32, {2, 5, 4, 0}}, emptyKey{DType::F32, {2, int64_t(1) << 60, 2, 0}};
  expectRefused({"attention", {empty, emptyKey, emptyKey}, {empty, lse}, attributes, {}},
                "of at least 1 element");
  TensorType flat{DType::F32, {2, 5, 32}};
  expectRefused({"attention", {flat, flat, flat}, {flat, lse}, attributes, {}},
                "input 0 is f32[2,5,32], expected 4 dimensions");
  expectRefused({"attention_grad", {q, k, k, q, lse}, {q, k, k}, attributes, {}},
                "has 5 inputs, expected 6");
  expectRefused({"attention_grad", {q, k, k, q, lse, k}, {q, k, k}, attributes, {}},
                "input 5 is f32[2,6,2,8], expected f32[2,5,4,8]");
  expectRefused({"attention_grad", {q, k, k, q, lse, q}, {q, k, q}, attributes, {}},
                "output 2 is f32[2,5,4,8]");
}

} // namespace
} // namespace dtc::runtime::test
