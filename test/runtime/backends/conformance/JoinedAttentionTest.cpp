//===- JoinedAttentionTest.cpp - Attention to parts of one tensor ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A joined call has the bits of the call on queries, keys and values apart.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

namespace dtc::runtime::test::joinedAttentionTest {
namespace {

struct Case {
  int64_t b, s, h, g, d;
  bool causal;
  bool hasSegments = false, drops = false;
  AttributeMap more = {};

  Shape rows(int64_t heads) const { return {b, s, heads, d}; }
  AttributeMap attributes() const {
    AttributeMap result = more;
    result["causal"] = causal;
    result["scale"] = 0.4;
    if (drops) {
      result["dropout"] = 0.25;
      result["op"] = int64_t{3};
      result["shape"] = std::vector<int64_t>{b, h, s, s};
      result["sharding"] = std::vector<std::string>{"", "", "", ""};
    }
    return result;
  }
};

std::vector<Case> cases() {
  std::vector<Case> all = {{2, 5, 2, 2, 4, true},   {1, 7, 4, 2, 3, false},
                           {2, 6, 6, 1, 8, true},   {1, 1, 1, 1, 1, true},
                           {2, 70, 4, 2, 16, true}, {1, 130, 2, 2, 64, true},
                           {2, 66, 4, 1, 64, false}};
  all.push_back({2, 9, 4, 2, 8, true, true});
  all.push_back({2, 9, 4, 2, 8, true, false, true});
  all.push_back({1, 9, 2, 2, 8, false, true, true});
  all.push_back({1, 20, 2, 1, 8, true, false, false, {{"window", int64_t{4}}, {"softcap", 1.5}}});
  return all;
}

/// The rows of several tensors, one after the other in each row of the result.
HostTensor joinHeads(const std::vector<HostTensor> &parts) {
  Shape shape = parts[0].type.shape;
  shape[2] = 0;
  for (const HostTensor &part : parts)
    shape[2] += part.type.shape[2];
  Values all;
  for (int64_t row = 0; row < shape[0] * shape[1]; ++row)
    for (const HostTensor &part : parts) {
      Values values = valuesOf(part);
      int64_t size = part.type.shape[2] * shape[3];
      all.insert(all.end(), values.begin() + row * size, values.begin() + (row + 1) * size);
    }
  return makeTensor(parts[0].type.dtype, shape, all);
}

struct Operands {
  Operands(const Case &c, DType dtype, uint64_t seed)
      : random(seed), q(random.floats(dtype, c.rows(c.h), -2, 2)),
        k(random.floats(dtype, c.rows(c.g), -2, 2)), v(random.floats(dtype, c.rows(c.g))),
        dout(random.floats(dtype, c.rows(c.h))), lse{wideType(dtype), {c.b, c.h, c.s}} {
    if (c.hasSegments) {
      Values numbers;
      for (int64_t i = 0; i < c.b * c.s; ++i)
        numbers.push_back(static_cast<double>(i % c.s / 4));
      more.push_back(makeTensor(DType::I32, {c.b, c.s}, numbers));
    }
    if (c.drops)
      more.push_back(makeTensor(DType::I32, {2}, {7, 5}));
  }
  std::vector<HostTensor> with(std::vector<HostTensor> first) const {
    first.insert(first.end(), more.begin(), more.end());
    return first;
  }

  Random random;
  HostTensor q, k, v, dout;
  TensorType lse;
  std::vector<HostTensor> more;
};

void expectBits(const Case &c, DType dtype, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << name(dtype) << " " << c.b << "x" << c.s << "x" << c.h << "/"
                                  << c.g << "x" << c.d << ", seed " << seed);
  Operands at(c, dtype, seed);
  HostTensor qkv = joinHeads({at.q, at.k, at.v});
  std::vector<HostTensor> apart =
      KernelCall{"attention", at.with({at.q, at.k, at.v}), {at.q.type, at.lse}, c.attributes()}.run(
          1);
  std::vector<HostTensor> joined =
      runInAllWays({"joined_attention", at.with({qkv}), {at.q.type, at.lse}, c.attributes()});
  expectSame(joined[0], apart[0], "out");
  expectSame(joined[1], apart[1], "lse");
  std::vector<HostTensor> grads =
      KernelCall{"attention_grad",
                 at.with({at.q, at.k, at.v, apart[0], apart[1], at.dout}),
                 {at.q.type, at.k.type, at.k.type},
                 c.attributes()}
          .run(1);
  std::vector<HostTensor> joinedGrads = runInAllWays({"joined_attention_grad",
                                                      at.with({qkv, apart[0], apart[1], at.dout}),
                                                      {qkv.type},
                                                      c.attributes()});
  expectSame(joinedGrads[0], joinHeads(grads), "dqkv");
}

TEST(JoinedAttention, HasTheBitsOfTheCallApart) {
  for (const Case &c : cases())
    for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16})
      expectBits(c, dtype, 41);
}

TEST(JoinedAttention, RefusesWrongHeads) {
  AttributeMap attributes{{"causal", true}, {"scale", 0.5}};
  TensorType out{DType::F32, {2, 3, 4, 8}}, lse{DType::F32, {2, 4, 3}};
  auto all = [](int64_t heads) { return TensorType{DType::F32, {2, 3, heads, 8}}; };
  expectRefused({"joined_attention", {all(4)}, {out, lse}, attributes, {}},
                "expected rows of the 4 heads of the queries");
  expectRefused({"joined_attention", {all(7)}, {out, lse}, attributes, {}},
                "as many heads of keys as of values");
  // Three heads of keys do not divide the four of the queries.
  expectRefused({"joined_attention", {all(10)}, {out, lse}, attributes, {}}, "joined_attention");
  expectRefused({"joined_attention", {all(12), all(12), all(12)}, {out, lse}, attributes, {}},
                "input");
  expectRefused({"joined_attention_grad", {all(12), out, lse, out}, {out}, attributes, {}},
                "output 0");
  expectRefused({"joined_attention_grad", {all(12), lse, lse, out}, {all(12)}, attributes, {}},
                "input 1");
  TensorType wrong{DType::F64, {2, 4, 3}};
  expectRefused({"joined_attention_grad", {all(12), out, wrong, out}, {all(12)}, attributes, {}},
                "joined_attention_grad");
}

} // namespace
} // namespace dtc::runtime::test::joinedAttentionTest
