//===- AttentionTest.cpp - Attention and its gradient ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"
#include "test/runtime/backends/conformance/MaskReference.h"

#include <cmath>
#include <functional>
#include <limits>

namespace dtc::runtime::test::attentionTest {
namespace {

struct Case {
  int64_t b, s, t, h, g, d;
  bool causal;
  double scale;
  int64_t window = 0; // 0: none
  double softcap = 0; // 0: none

  Shape query() const { return {b, s, h, d}; }
  Shape key() const { return {b, t, g, d}; }
  AttributeMap attributes() const {
    AttributeMap result{{"causal", causal}, {"scale", scale}};
    if (window)
      result["window"] = window;
    if (softcap != 0)
      result["softcap"] = softcap;
    return result;
  }
  bool sees(int64_t query, int64_t key) const {
    int64_t own = query + (t - s);
    return !causal || (key <= own && (!window || key > own - window));
  }
};

/// The factor of the weight of query i of head h and key j.
using Factor = std::function<double(int64_t b, int64_t h, int64_t i, int64_t j)>;
double noDropout(int64_t, int64_t, int64_t, int64_t) { return 1; }

/// out and lse, one element of a score at a time.
std::pair<Values, Values> reference(const Case &c, const Values &q, const Values &k,
                                    const Values &v, const Factor &factor = noDropout) {
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
          score *= c.scale;
          if (c.softcap != 0)
            score = c.softcap * std::tanh(score / c.softcap);
          weights.push_back(c.sees(i, j) ? std::exp(score) : 0);
          total += weights.back();
        }
        if (total == 0)
          continue;
        lse[static_cast<size_t>((b * c.h + h) * c.s + i)] = std::log(total);
        for (int64_t j = 0; j < c.t; ++j)
          for (int64_t d = 0; d < c.d; ++d)
            out[query(b, i, h, d)] +=
                weights[static_cast<size_t>(j)] / total * factor(b, h, i, j) * v[key(b, j, h, d)];
      }
  return {out, lse};
}

std::vector<Case> cases() {
  return {{2, 5, 5, 2, 2, 4, false, 0.5},        {2, 5, 5, 2, 2, 4, true, 0.5},
          {1, 3, 7, 4, 2, 3, true, 0.7},         {1, 3, 7, 4, 1, 3, false, 0.7},
          {2, 7, 3, 3, 3, 5, true, 0.4},         {1, 1, 1, 1, 1, 1, true, 1},
          {2, 1, 9, 6, 3, 2, true, -0.3},        {3, 4, 4, 1, 1, 6, true, 0.2},
          {2, 6, 6, 4, 2, 4, true, 0.5, 1},      {2, 6, 6, 2, 2, 4, true, 0.5, 3},
          {1, 3, 7, 4, 2, 3, true, 0.7, 4},      {1, 5, 5, 2, 1, 3, true, 0.7, 9},
          {2, 7, 3, 3, 3, 5, true, 0.4, 2},      {2, 5, 5, 2, 2, 4, false, 0.5, 0, 1.5},
          {2, 5, 6, 4, 2, 4, true, 0.5, 0, 0.7}, {2, 6, 6, 4, 2, 4, true, 0.5, 2, 1.2}};
}

TEST(Attention, Forward) {
  std::vector<Case> all = cases();
  all.push_back({2, 150, 150, 2, 1, 8, true, 0.3});
  all.push_back({1, 131, 200, 3, 3, 16, true, 0.25});
  all.push_back({1, 300, 140, 1, 1, 8, true, 0.25});
  all.push_back({2, 130, 33, 4, 2, 8, false, 0.3});
  all.push_back({1, 70, 90, 2, 1, 100, true, 0.05});
  all.push_back({1, 20, 70, 2, 1, 300, false, 0.02});
  // Windows of less and of more than a block of rows, that begin anywhere in tiles.
  all.push_back({2, 300, 300, 2, 1, 8, true, 0.3, 20});
  all.push_back({1, 200, 330, 3, 3, 16, true, 0.25, 150, 2.0});
  all.push_back({1, 300, 140, 1, 1, 8, true, 0.25, 65});
  for (const Case &c : all)
    for (DType dtype : kFloatTypes) {
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
    for (DType dtype : kFloatTypes) {
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
        Case{1, 160, 20, 2, 1, 8, true, 0.3}, Case{1, 70, 90, 2, 1, 100, true, 0.05},
        Case{1, 40, 70, 2, 1, 260, true, 0.03}, Case{2, 300, 300, 4, 2, 16, true, 0.25, 33},
        Case{1, 200, 330, 2, 2, 8, true, 0.3, 140, 1.5},
        Case{1, 160, 20, 2, 1, 8, true, 0.3, 7, 0.8}}) {
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

/// Attention of 16-bit elements and its gradient, against their results in more precision.
void expectRoundedPasses(const std::vector<Case> &all, uint64_t seed) {
  for (const Case &c : all)
    for (DType dtype : kHalfTypes) {
      Random random(seed);
      HostTensor q = random.floats(dtype, c.query(), -2, 2), dout = random.floats(dtype, c.query());
      HostTensor k = random.floats(dtype, c.key(), -2, 2), v = random.floats(dtype, c.key());
      TensorType lse{DType::F32, {c.b, c.h, c.s}};
      KernelCall forward{"attention", {q, k, v}, {q.type, lse}, c.attributes()};
      expectRounded(forward);
      std::vector<HostTensor> results = forward.run(1);
      expectRounded({"attention_grad",
                     {q, k, v, results[0], results[1], dout},
                     {q.type, k.type, k.type},
                     c.attributes()});
    }
}

TEST(Attention, Halves) {
  std::vector<Case> all = cases();
  all.push_back({2, 150, 150, 4, 2, 16, true, 0.3});
  all.push_back({1, 131, 200, 3, 3, 24, false, 0.25});
  all.push_back({1, 160, 20, 2, 1, 8, true, 0.3});
  // Heads whose rows are no whole words, and that several blocks of a GPU share.
  all.push_back({1, 40, 70, 2, 2, 65, false, 0.05});
  all.push_back({1, 70, 90, 2, 1, 72, true, 0.05});
  all.push_back({1, 20, 70, 2, 1, 136, true, 0.03});
  all.push_back({2, 150, 150, 4, 2, 16, true, 0.3, 40, 1.5});
  all.push_back({1, 131, 200, 3, 3, 24, true, 0.25, 7});
  expectRoundedPasses(all, 23);
}

/// Heads of the size that tiles of warpgroups have: whole tiles and parts of some, fewer queries
/// than keys and more, heads that share keys.
TEST(Attention, HeadsOf64) {
  const std::vector<Case> all = {
      {1, 128, 128, 2, 2, 64, true, 0.125}, {2, 150, 150, 4, 2, 64, true, 0.1},
      {1, 131, 200, 3, 3, 64, false, 0.05}, {1, 70, 200, 2, 1, 64, true, -0.1},
      {1, 200, 70, 4, 1, 64, false, 0.05},  {2, 3, 5, 2, 2, 64, true, 0.125}};
  expectRoundedPasses(all, 29);
}

/// A case with dropout, on a device of a mesh or alone.
struct DropoutCase {
  Case shape;
  double rate;
  Shape whole; // b, h, s, t
  std::vector<std::string> sharding;
  std::vector<AxisCoordinate> mesh;
  Shape offset; // of the device's block

  static constexpr int32_t seed = -77, iteration = 5;
  static constexpr uint32_t op = 9;

  AttributeMap attributes() const {
    AttributeMap result = shape.attributes();
    result["dropout"] = rate;
    result["op"] = int64_t{op};
    result["shape"] = whole;
    result["sharding"] = sharding;
    return result;
  }
  double factor(int64_t b, int64_t h, int64_t i, int64_t j) const {
    int64_t element =
        (((b + offset[0]) * whole[1] + h + offset[1]) * whole[2] + i + offset[2]) * whole[3] + j +
        offset[3];
    bool kept =
        maskKeeps(rate, static_cast<uint32_t>(seed), op, iteration, static_cast<uint64_t>(element));
    return kept ? 1 / (1 - rate) : 0;
  }
  HostTensor key() const { return makeTensor(DType::I32, {2}, {seed, iteration}); }
};

std::vector<DropoutCase> dropoutCases() {
  std::vector<DropoutCase> all;
  for (const Case &c : cases())
    all.push_back({c, 0.3, {c.b, c.h, c.s, c.t}, {"", "", "", ""}, {}, {0, 0, 0, 0}});
  // A block of a batch of 5 over "dp" and "micro", and of 8 heads over "tp".
  std::vector<AxisCoordinate> mesh = {
      {"dp", 2, 1, false}, {"tp", 2, 1, false}, {"micro", 2, 0, true}};
  all.push_back({{2, 5, 7, 4, 2, 3, true, 0.6},
                 0.5,
                 {5, 8, 5, 7},
                 {"dp,micro", "tp", "", ""},
                 mesh,
                 {3, 4, 0, 0}});
  return all;
}

TEST(Attention, Dropout) {
  std::vector<DropoutCase> all = dropoutCases();
  // Rows of more than one stretch of a mask, and blocks of rows.
  all.push_back({{1, 140, 1100, 2, 1, 4, true, 0.3},
                 0.2,
                 {1, 2, 140, 1100},
                 {"", "", "", ""},
                 {},
                 {0, 0, 0, 0}});
  for (const DropoutCase &d : all)
    for (DType dtype : kFloatTypes) {
      const Case &c = d.shape;
      Random random(24);
      HostTensor q = random.floats(dtype, c.query(), -2, 2);
      HostTensor k = random.floats(dtype, c.key(), -2, 2), v = random.floats(dtype, c.key());
      auto [out, lse] =
          reference(c, valuesOf(q), valuesOf(k), valuesOf(v),
                    [&](auto b, auto h, auto i, auto j) { return d.factor(b, h, i, j); });
      expectKernel({"attention",
                    {q, k, v, d.key()},
                    {q.type, TensorType{dtype, {c.b, c.h, c.s}}},
                    d.attributes(),
                    d.mesh},
                   {out, lse}, 2e-15);
    }
}

TEST(Attention, DropoutGradient) {
  for (const DropoutCase &d : dropoutCases()) {
    const Case &c = d.shape;
    Random random(25);
    DType dtype = DType::F64;
    HostTensor q = random.floats(dtype, c.query(), -2, 2), dout = random.floats(dtype, c.query());
    HostTensor k = random.floats(dtype, c.key(), -2, 2), v = random.floats(dtype, c.key());
    Values qs = valuesOf(q), ks = valuesOf(k), vs = valuesOf(v), douts = valuesOf(dout);
    auto out = [&](const Values &a, const Values &b, const Values &c2) {
      return reference(c, a, b, c2, [&](auto... at) { return d.factor(at...); }).first;
    };
    std::vector<Values> expected = {
        numericGradient([&](const Values &x) { return out(x, ks, vs); }, qs, douts),
        numericGradient([&](const Values &x) { return out(qs, x, vs); }, ks, douts),
        numericGradient([&](const Values &x) { return out(qs, ks, x); }, vs, douts)};
    KernelCall forward{"attention",
                       {q, k, v, d.key()},
                       {q.type, TensorType{dtype, {c.b, c.h, c.s}}},
                       d.attributes(),
                       d.mesh};
    std::vector<HostTensor> results = forward.run(1);
    KernelCall backward{"attention_grad",
                        {q, k, v, results[0], results[1], dout, d.key()},
                        {q.type, k.type, k.type},
                        d.attributes(),
                        d.mesh};
    expectKernel(backward, expected, 1e-9);
    // f32 against f64, and 16 bits against f32.
    for (DType half : kHalfTypes) {
      KernelCall narrow = backward;
      for (HostTensor &input : narrow.inputs)
        if (input.type.dtype == DType::F64)
          input = makeTensor(input.type.rank() == 3 ? DType::F32 : half, input.type.shape,
                             valuesOf(input));
      for (TensorType &type : narrow.outputs)
        type.dtype = half;
      expectRounded(narrow);
      KernelCall single = narrow;
      std::vector<Values> wide;
      for (HostTensor &input : single.inputs)
        if (input.type.dtype == half)
          input = makeTensor(DType::F32, input.type.shape, valuesOf(input));
      KernelCall twice = single;
      for (HostTensor &input : twice.inputs)
        if (input.type.dtype == DType::F32)
          input = makeTensor(DType::F64, input.type.shape, valuesOf(input));
      for (size_t i = 0; i < 3; ++i) {
        single.outputs[i].dtype = DType::F32;
        twice.outputs[i].dtype = DType::F64;
      }
      for (const HostTensor &result : twice.run(1))
        wide.push_back(valuesOf(result));
      expectKernel(single, wide, 1e-14);
    }
  }
}

TEST(Attention, NoDropoutIsTheSame) {
  Case c{2, 20, 20, 4, 2, 8, true, 0.4};
  Random random(26);
  HostTensor q = random.floats(DType::F32, c.query()), k = random.floats(DType::F32, c.key());
  KernelCall call{
      "attention", {q, k, k}, {q.type, TensorType{DType::F32, {c.b, c.h, c.s}}}, c.attributes()};
  std::vector<HostTensor> without = call.run(2);
  // A rate of 0 has no key.
  call.attributes["dropout"] = 0.0;
  call.attributes["op"] = int64_t{1};
  std::vector<HostTensor> zero = call.run(2);
  EXPECT_EQ(without[0].bytes, zero[0].bytes);
  EXPECT_EQ(without[1].bytes, zero[1].bytes);
}

/// Keys outside of the window are not read, whatever lies there.
TEST(Attention, WindowHidesKeys) {
  Case c{1, 40, 40, 2, 1, 8, true, 0.4, 5};
  Random random(27);
  HostTensor q = random.floats(DType::F32, c.query()), k = random.floats(DType::F32, c.key());
  TensorType lse{DType::F32, {c.b, c.h, c.s}};
  std::vector<HostTensor> before =
      KernelCall{"attention", {q, k, k}, {q.type, lse}, c.attributes()}.run(2);
  HostTensor other = k;
  for (int64_t i = 0; i < 20 * c.g * c.d; ++i)
    setElement(other, i, 7);
  std::vector<HostTensor> after =
      KernelCall{"attention", {q, other, other}, {q.type, lse}, c.attributes()}.run(2);
  // The last query that sees one of the keys that changed is the one before these.
  for (int64_t at = (20 + c.window - 1) * c.h * c.d; at < q.type.numElements(); ++at)
    EXPECT_EQ(elementAt(before[0], at), elementAt(after[0], at)) << at;
  EXPECT_NE(elementAt(before[0], 23 * c.h * c.d), elementAt(after[0], 23 * c.h * c.d));
}

/// No matrix of scores is held: what a thread needs grows with the keys alone. Of cuDNN's gradients
/// those with the same bits in each run hold one.
TEST(Attention, WorkspaceGrowsWithKeys) {
  auto backend = createBackendOfOwnKernels();
  auto bytesOf = [&](const char *kernel, DType dtype, int64_t positions) {
    TensorType x{dtype, {1, positions, 2, 64}}, lse{wideType(dtype), {1, 2, positions}};
    bool grad = std::string(kernel) == "attention_grad";
    KernelSignature signature{kernel, {x, x, x}, {x, lse}, {{"causal", true}, {"scale", 0.1}}, {}};
    if (grad) {
      signature.inputs.insert(signature.inputs.end(), {x, lse, x});
      signature.outputs = {x, x, x};
    }
    auto prepared = backend->prepare(signature);
    EXPECT_TRUE(prepared);
    return prepared ? (*prepared)->workspaceBytes() : 0;
  };
  for (const char *kernel : {"attention", "attention_grad"})
    for (DType dtype : {DType::F32, DType::BF16}) {
      size_t some = bytesOf(kernel, dtype, 1 << 12), twice = bytesOf(kernel, dtype, 1 << 13);
      EXPECT_LE(twice, 2 * some) << kernel;
      // Six arrays of the keys in f32, and as much again.
      EXPECT_LE(twice, size_t{12} * (1 << 13) * 64 * sizeof(float)) << kernel;
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
  for (int64_t window : {0, -1}) {
    AttributeMap windowed = attributes;
    windowed["window"] = window;
    expectRefused({"attention", {q, k, k}, {q, lse}, windowed, {}},
                  "expected at least 1 key, of attention that is causal");
  }
  expectRefused({"attention",
                 {q, k, k},
                 {q, lse},
                 {{"causal", false}, {"scale", 0.5}, {"window", int64_t{3}}},
                 {}},
                "attribute 'window' is 3, expected at least 1 key, of attention that is causal");
  for (double softcap : {0.0, -2.0, std::nan("")}) {
    AttributeMap capped = attributes;
    capped["softcap"] = softcap;
    expectRefused({"attention", {q, k, k}, {q, lse}, capped, {}}, "attribute 'softcap'");
  }
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
  AttributeMap dropout = attributes;
  dropout["dropout"] = 0.5;
  TensorType key{DType::I32, {2}};
  expectRefused({"attention", {q, k, k}, {q, lse}, dropout, {}}, "has 3 inputs, expected 4");
  expectRefused({"attention", {q, k, k, key}, {q, lse}, dropout, {}},
                "attribute 'op' is missing, expected an integer");
  dropout["op"] = int64_t{1};
  dropout["shape"] = Shape{2, 4, 5, 7};
  dropout["sharding"] = std::vector<std::string>(4);
  expectRefused({"attention", {q, k, k, key}, {q, lse}, dropout, {}},
                "attribute 'shape' is [2, 4, 5, 7], expected a shape whose dimension 3");
  expectRefused({"attention_grad", {q, k, k, q, lse, q, q}, {q, k, k}, dropout, {}},
                "input 6 is f32[2,5,4,8], expected i32[2]");
  expectRefused({"attention", {q, k, k, key}, {q, lse}, attributes, {}},
                "input 3 is i32[2], expected i32[2,6]");
  expectRefused({"attention_grad", {q, k, k, q, lse}, {q, k, k}, attributes, {}},
                "has 5 inputs, expected 6");
  expectRefused({"attention_grad", {q, k, k, q, lse, k}, {q, k, k}, attributes, {}},
                "input 5 is f32[2,6,2,8], expected f32[2,5,4,8]");
  expectRefused({"attention_grad", {q, k, k, q, lse, q}, {q, k, q}, attributes, {}},
                "output 2 is f32[2,5,4,8]");
}

} // namespace
} // namespace dtc::runtime::test::attentionTest
