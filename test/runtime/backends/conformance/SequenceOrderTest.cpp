//===- SequenceOrderTest.cpp - Shards and orders of a sequence ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Queries that are a shard of a sequence, or in zigzag order, see the keys that they see in the
// whole sequence, and are rotated by their places in it. The reference is the call on the whole
// sequence, in its order.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/SequenceLayout.h"

#include <limits>

namespace dtc::runtime::test::sequenceOrderTest {
namespace {

using namespace sequence;

/// Expects of each device its part of the results on the whole sequence. Each runs with another
/// number of threads.
void expectParts(const Case &c, const Layout &layout, DType dtype) {
  SCOPED_TRACE(layout.str() + " of " + std::to_string(c.s) + " queries, " + std::to_string(c.t) +
               " keys, " + std::string(name(dtype)));
  Random random(90);
  Operands x(c, dtype, random);
  std::vector<HostTensor> results = attentionOn(c, x, {}, 0, 0).run(1);
  std::vector<HostTensor> gradients = gradientOn(c, x, results, {}, 0).run(1);
  Values dk(valuesOf(x.k).size()), dv = dk;
  double nan = std::numeric_limits<double>::quiet_NaN();
  for (int64_t device = 0; device < layout.count(); ++device) {
    SCOPED_TRACE("device " + std::to_string(device));
    int threads = 1 + static_cast<int>(device % 3);
    Places places = layout.places(device, c.s);
    std::vector<HostTensor> forward = attentionOn(c, x, layout, device, nan).run(threads);
    expectPlaces(forward[0], results[0], 1, places, 2e-14);
    expectPlaces(forward[1], results[1], 2, places, 2e-14);
    std::vector<HostTensor> backward = gradientOn(c, x, results, layout, device).run(threads);
    expectPlaces(backward[0], gradients[0], 1, places, 1e-13);
    add(dk, backward[1]);
    add(dv, backward[2]);
  }
  expectNear(dk, valuesOf(gradients[1]), dtype, 1e-13);
  expectNear(dv, valuesOf(gradients[2]), dtype, 1e-13);
}

/// Cases of sequences of `size` queries that zigzag parts may have.
std::vector<Case> casesOf(int64_t size) {
  return {{2, size, size, 4, 2, 4, true},
          {1, size, size + 8, 4, 1, 3, true},
          {2, size, size, 2, 2, 4, false},
          {2, size, size, 2, 1, 4, true, 3},
          {2, size, size, 2, 1, 4, true, 5, 1.3},
          {1, size, size, 2, 2, 4, false, 0, 0.9},
          {2, size, size, 4, 2, 4, true, 0, 0, {5, 3}},
          {2, size, size + 3, 4, 2, 4, false, 0, 0, {5, 3}},
          {2, size, size + 3, 2, 2, 4, true, 4, 0.8, {7, 2}}};
}

/// Cases of more than a block of rows and a tile of keys.
std::vector<Case> longCasesOf(int64_t size) {
  return {{1, size, size, 2, 1, 8, true},
          {1, size, size + 10, 1, 1, 16, true, 90},
          {1, size, size, 2, 2, 8, false, 0, 0, {130, 1, 64, 70}},
          {1, size, size, 1, 1, 8, true, 100, 2.0, {130, 1, 64, 70}}};
}

const std::vector<Layout> kShards = {{{2}}, {{3}}, {{4}}, {{2, 2}}, {{2, 3}}, {{5}}};

TEST(AttentionOrder, ShardsAreRowsOfTheWhole) {
  std::vector<Case> cases = casesOf(12);
  cases.push_back({1, 12, 5, 2, 1, 4, false}); // more queries than keys
  size_t next = 0;
  for (const Case &c : cases)
    for (const Layout &layout : kShards)
      expectParts(c, layout, kFloatTypes[next++ % 7 % 2]);
  for (const Case &c : longCasesOf(210))
    for (const Layout &layout : {Layout{{2}}, Layout{{4}}})
      expectParts(c, layout, DType::F32);
}

/// 7 elements over 2 devices are 4 and 3, over 5 devices the last one has none.
TEST(AttentionOrder, PaddedShards) {
  size_t next = 0;
  for (const Case &c : casesOf(7))
    for (const Layout &layout : kShards)
      expectParts(c, layout, kFloatTypes[next++ / 2 % 2]);
}

/// The mask is over the whole scores.
TEST(AttentionOrder, DropoutOfShards) {
  for (const Case &c : {Case{2, 12, 12, 4, 2, 4, true, 0, 0, {}, 0.3},
                        Case{2, 12, 12, 2, 1, 4, true, 5, 1.3, {}, 0.3},
                        Case{2, 7, 9, 2, 1, 4, false, 0, 0, {3, 2}, 0.25}})
    for (const Layout &layout : kShards)
      for (DType dtype : kFloatTypes)
        expectParts(c, layout, dtype);
}

/// Parts, halves of parts and more than one part on a device; shards that end in the middle of
/// chunks; padding; one device with all parts. With each element type in turns.
TEST(AttentionOrder, Zigzag) {
  size_t next = 0;
  const std::vector<Layout> of12 = {{{}, 1},     {{}, 2},     {{}, 3},  {{}, 6},  {{2}, 2},
                                    {{3}, 3},    {{4}, 2},    {{6}, 3}, {{2}, 3}, {{3}, 1},
                                    {{2, 2}, 2}, {{2, 3}, 6}, {{5}, 3}, {{12}, 3}};
  for (const Case &c : casesOf(12))
    for (const Layout &layout : of12)
      expectParts(c, layout, kFloatTypes[next++ % 2]);
  const std::vector<Layout> of24 = {{{4}, 4}, {{8}, 4}, {{2}, 4}, {{4}, 2}, {{8}, 2}};
  for (const Case &c : casesOf(24))
    for (const Layout &layout : of24)
      expectParts(c, layout, kFloatTypes[next++ % 2]);
}

/// Chunks of fewer and of more queries than a block has.
TEST(AttentionOrder, ZigzagOfLongSequences) {
  for (const Case &c : longCasesOf(320))
    for (const Layout &layout :
         {Layout{{2}, 2}, Layout{{4}, 2}, Layout{{4}, 4}, Layout{{2}, 4}, Layout{{}, 4}})
      expectParts(c, layout, DType::F32);
  for (const Case &c : longCasesOf(520))
    for (const Layout &layout : {Layout{{2}, 2}, Layout{{}, 2}})
      expectParts(c, layout, DType::F32);
}

TEST(AttentionOrder, Halves) {
  for (const Case &c :
       {Case{1, 96, 96, 2, 1, 16, true}, Case{2, 12, 15, 2, 2, 4, true, 4, 0.8, {7, 2}},
        Case{1, 12, 12, 4, 2, 8, false, 0, 0, {5, 3}}})
    for (const Layout &layout : {Layout{{2}}, Layout{{5}}, Layout{{2}, 2}, Layout{{4}, 2}})
      for (DType dtype : kHalfTypes) {
        SCOPED_TRACE(layout.str());
        Random random(91);
        Operands x(c, dtype, random);
        std::vector<HostTensor> results = attentionOn(c, x, {}, 0, 0).run(1);
        for (int64_t device : {int64_t{0}, layout.count() - 1}) {
          expectRounded(attentionOn(c, x, layout, device, 0));
          expectRounded(gradientOn(c, x, results, layout, device));
        }
      }
}

/// The expected result of `zigzag`.
HostTensor zigzag(const HostTensor &x, int64_t dim, int64_t parts) {
  return KernelCall{"zigzag", {x}, {x.type}, {{"dim", dim}, {"parts", parts}, {"inverse", false}}}
      .run(1)
      .front();
}

TEST(AttentionOrder, IsThatOfTheKernel) {
  constexpr int64_t parts = 3;
  for (const Case &c : casesOf(12))
    for (DType dtype : kFloatTypes) {
      Random random(92);
      Operands x(c, dtype, random);
      std::vector<HostTensor> results = attentionOn(c, x, {}, 0, 0).run(1);
      std::vector<HostTensor> gradients = gradientOn(c, x, results, {}, 0).run(1);
      HostTensor q = zigzag(x.q, 1, parts), out = zigzag(results[0], 1, parts);
      HostTensor lse = zigzag(results[1], 2, parts);
      KernelCall forward{
          "attention", {q, x.k, x.v}, {out.type, lse.type}, c.attributes(Layout{{}, parts})};
      KernelCall backward{"attention_grad",
                          {q, x.k, x.v, out, lse, zigzag(x.dout, 1, parts)},
                          {q.type, x.k.type, x.v.type},
                          forward.attributes};
      for (KernelCall *call : {&forward, &backward})
        call->inputs.insert(call->inputs.end(), x.optional.begin(), x.optional.end());
      expectKernel(forward, {valuesOf(out), valuesOf(lse)}, 2e-14);
      expectKernel(backward,
                   {valuesOf(zigzag(gradients[0], 1, parts)), valuesOf(gradients[1]),
                    valuesOf(gradients[2])},
                   1e-13);
    }
}

const std::vector<AxisCoordinate> kMesh = {{"cp", 2, 0, false}, {"micro", 3, 0, true}};

/// Calls refuse(attributes, message) with attributes that are wrong where kMesh splits a sequence
/// and a device has 4 elements.
void forBadOrders(const std::function<void(const AttributeMap &, const std::string &)> &refuse) {
  int64_t huge = std::numeric_limits<int64_t>::max();
  for (int64_t size : {int64_t{0}, int64_t{-1}, int64_t{4}, int64_t{6}, int64_t{9}, huge})
    refuse({{"sequence", size}, {"sequence_axes", Axes{"cp"}}},
           "attribute 'sequence' is " + std::to_string(size) +
               ", expected a size whose 2 blocks have 4 elements each, rounded up");
  refuse({{"sequence", int64_t{8}}, {"sequence_axes", Axes{}}},
         "attribute 'sequence' is 8, expected a size whose 1 blocks have 4 elements each");
  refuse({{"sequence", int64_t{8}}, {"sequence_axes", Axes{"pp"}}},
         "attribute 'sequence_axes' is \"pp\", expected distinct axes of the mesh");
  refuse({{"sequence", int64_t{8}}, {"sequence_axes", Axes{"cp", "cp"}}},
         "expected distinct axes of the mesh");
  refuse({{"sequence", int64_t{8}}}, "attribute 'sequence_axes' is missing");
  refuse({{"sequence_axes", Axes{"cp"}}}, "attribute 'sequence' is missing");
  refuse({{"sequence", 8.0}, {"sequence_axes", Axes{"cp"}}}, "attribute 'sequence' is a float");
  for (int64_t parts : {int64_t{0}, int64_t{-1}, int64_t{3}, int64_t{4}, huge})
    refuse({{"zigzag", parts}}, "attribute 'zigzag' is " + std::to_string(parts) +
                                    ", expected parts of two equal chunks of a sequence of 4");
  refuse({{"zigzag", true}}, "attribute 'zigzag' is a boolean");
  refuse({{"sequence", int64_t{7}}, {"sequence_axes", Axes{"cp"}}, {"zigzag", int64_t{1}}},
         "attribute 'zigzag' is 1, expected parts of two equal chunks of a sequence of 7");
}

TEST(AttentionOrder, Refuses) {
  TensorType q{DType::F32, {2, 4, 4, 8}}, k{DType::F32, {2, 7, 2, 8}}, lse{DType::F32, {2, 4, 4}};
  TensorType segments{DType::I32, {2, 7}}, key{DType::I32, {2}};
  auto refuse = [&](AttributeMap attributes, const std::string &message,
                    const std::vector<TensorType> &optional) {
    attributes["causal"] = true;
    attributes["scale"] = 0.5;
    KernelSignature forward{"attention", {q, k, k}, {q, lse}, attributes, kMesh};
    KernelSignature backward{"attention_grad", {q, k, k, q, lse, q}, {q, k, k}, attributes, kMesh};
    for (KernelSignature *call : {&forward, &backward}) {
      call->inputs.insert(call->inputs.end(), optional.begin(), optional.end());
      expectRefused(*call, message);
    }
  };
  forBadOrders([&](const AttributeMap &attributes, const std::string &message) {
    refuse(attributes, message, {});
  });
  refuse({{"sequence", int64_t{8}}, {"sequence_axes", Axes{"cp"}}},
         "has 8 queries and 7 keys with segments, expected no more queries than keys", {segments});
  refuse({{"zigzag", int64_t{2}},
          {"dropout", 0.5},
          {"op", int64_t{3}},
          {"shape", Shape{2, 4, 4, 7}},
          {"sharding", std::vector<std::string>(4)}},
         "has dropout, expected none with zigzag", {key});
}

/// The angles are those of the places, counted from 0 or from the position of the first row, or
/// those of the rows' own positions.
TEST(RotaryOrder, ShardsAreRowsOfTheWhole) {
  enum class From { Zero, First, Each };
  const std::vector<Layout> layouts = {{{2}},       {{3}},    {{5}},    {{2, 2}}, {{}, 1}, {{}, 3},
                                       {{2, 3}, 6}, {{2}, 2}, {{4}, 2}, {{5}, 3}, {{2}, 3}};
  for (const Shape &shape : {Shape{2, 12, 3, 4}, Shape{2, 12, 2, 64}, Shape{2, 12, 1, 6}})
    for (const Layout &layout : layouts)
      for (From from : {From::Zero, From::First, From::Each})
        for (bool inverse : {false, true})
          for (DType dtype : kFloatTypes) {
            SCOPED_TRACE(layout.str());
            Random random(93);
            HostTensor x = random.floats(dtype, shape);
            HostTensor positions = from == From::First
                                       ? makeTensor(DType::I32, {2}, {40, -3})
                                       : random.integers(DType::I32, {2, 12}, -9, 99);
            AttributeMap attributes{{"theta", 100.0}, {"inverse", inverse}};
            KernelCall whole{"rotary", {x}, {x.type}, attributes};
            if (from != From::Zero)
              whole.inputs.push_back(positions);
            HostTensor expected = whole.run(1).front();
            layout.addTo(attributes, 12);
            for (int64_t device = 0; device < layout.count(); ++device) {
              Places places = layout.places(device, 12);
              HostTensor part = take(x, 1, places, layout.room(12), 0);
              KernelCall call{"rotary", {part}, {part.type}, attributes, layout.position(device),
                              {{0, 0}}};
              if (from == From::First)
                call.inputs.push_back(positions);
              if (from == From::Each)
                call.inputs.push_back(take(positions, 1, places, layout.room(12), 0));
              expectPlaces(runInAllWays(call).front(), expected, 1, places, 1e-14);
            }
          }
}

TEST(RotaryOrder, Halves) {
  Layout layout{{4}, 2};
  for (DType dtype : kHalfTypes)
    for (int64_t device = 0; device < 4; ++device) {
      Random random(94);
      HostTensor x = random.floats(dtype, {2, 3, 2, 8});
      AttributeMap attributes{{"theta", 100.0}, {"inverse", false}};
      layout.addTo(attributes, 12);
      expectRounded({"rotary", {x}, {x.type}, attributes, layout.position(device)});
    }
}

TEST(RotaryOrder, Refuses) {
  TensorType x{DType::F32, {1, 4, 3, 4}};
  forBadOrders([&](AttributeMap attributes, const std::string &message) {
    attributes["theta"] = 100.0;
    attributes["inverse"] = false;
    expectRefused({"rotary", {x}, {x}, attributes, kMesh}, message);
  });
}

} // namespace
} // namespace dtc::runtime::test::sequenceOrderTest
