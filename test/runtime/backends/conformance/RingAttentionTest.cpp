//===- RingAttentionTest.cpp - Attention to the keys of one device --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A tile is attention of a device's queries to the keys of one device. All tiles of a device,
// merged, are the rows of attention on the whole sequence, and so are the sums of their gradients.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/SequenceLayout.h"

#include <limits>

namespace dtc::runtime::test::ringAttentionTest {
namespace {

using namespace sequence;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// The device that has the keys of a tile.
int64_t sourceOf(const Layout &layout, int64_t device, int64_t shift) {
  return (device + layout.count() - shift % layout.count()) % layout.count();
}

/// Changes a call on all keys to one on the keys of a device. The contents of their padding have no
/// meaning.
void shiftKeys(KernelCall &call, const Case &c, const Layout &layout, int64_t device, int64_t shift,
               double padding) {
  Places places = layout.places(sourceOf(layout, device, shift), c.s);
  for (size_t i : {size_t{1}, size_t{2}})
    call.inputs[i] = take(call.inputs[i], 1, places, layout.room(c.s), padding);
  call.attributes["key_shift"] = shift;
}

KernelCall tileOn(const Case &c, const Operands &x, const Layout &layout, int64_t device,
                  int64_t shift, double padding) {
  KernelCall call = attentionOn(c, x, layout, device, padding);
  shiftKeys(call, c, layout, device, shift, padding);
  return call;
}

/// Its gradient, given the results on the whole sequence.
KernelCall tileGradientOn(const Case &c, const Operands &x, const std::vector<HostTensor> &results,
                          const Layout &layout, int64_t device, int64_t shift, double padding) {
  KernelCall call = gradientOn(c, x, results, layout, device);
  shiftKeys(call, c, layout, device, shift, padding);
  for (size_t i : {size_t{1}, size_t{2}})
    call.outputs[i] = call.inputs[i].type;
  return call;
}

/// The same elements in another type.
HostTensor converted(const HostTensor &x, DType dtype) {
  return makeTensor(dtype, x.type.shape, valuesOf(x));
}
HostTensor widened(const HostTensor &x) { return converted(x, wideType(x.type.dtype)); }

KernelCall mergeOf(const HostTensor &out, const HostTensor &lse, const HostTensor &part,
                   const HostTensor &partLse) {
  return {"merge_attention", {out, lse, part, partLse}, {out.type, lse.type}, {}, {}, {{0, 0}}};
}

/// Which keys of the whole sequence its queries see.
class Sight {
public:
  explicit Sight(const Case &c) : c(c), runs(static_cast<size_t>(c.b * c.s)) {
    if (c.lengths.empty())
      return;
    Values numbers = valuesOf(c.segments());
    for (size_t i = 1; i < runs.size(); ++i)
      runs[i] = runs[i - 1] + (numbers[i] != numbers[i - 1] ? 1 : 0);
  }

  bool sees(int64_t element, int64_t query, int64_t key) const {
    return (!c.causal || key <= query) && (c.window == 0 || key > query - c.window) &&
           runs[static_cast<size_t>(element * c.s + query)] ==
               runs[static_cast<size_t>(element * c.s + key)];
  }
  bool seesAny(int64_t element, int64_t query, const Places &keys) const {
    return std::any_of(keys.begin(), keys.end(),
                       [&](int64_t key) { return sees(element, query, key); });
  }
  bool isSeen(int64_t element, int64_t key, const Places &queries) const {
    return std::any_of(queries.begin(), queries.end(),
                       [&](int64_t query) { return sees(element, query, key); });
  }

private:
  const Case &c;
  std::vector<int64_t> runs;
};

/// Expects zeros in the heads of a query or key.
void expectZeros(const HostTensor &x, int64_t element, int64_t row) {
  int64_t size = x.type.shape[2] * x.type.shape[3];
  int64_t begin = (element * x.type.shape[1] + row) * size;
  for (int64_t i = begin; i < begin + size; ++i)
    ASSERT_EQ(elementAt(x, i), 0) << "element " << i << " of " << x.type.str();
}

/// Expects of the queries that see no key of a tile that they have no result.
void expectUnseen(const Case &c, const Places &queries, const Places &keys,
                  const std::vector<HostTensor> &tile, const std::vector<HostTensor> &gradients) {
  Sight sight(c);
  for (int64_t element = 0; element < c.b; ++element) {
    for (size_t i = 0; i < queries.size(); ++i) {
      if (sight.seesAny(element, queries[i], keys))
        continue;
      auto row = static_cast<int64_t>(i);
      expectZeros(tile[0], element, row);
      expectZeros(gradients[0], element, row);
      int64_t room = tile[1].type.shape[2];
      for (int64_t head = 0; head < c.h; ++head)
        ASSERT_EQ(elementAt(tile[1], (element * c.h + head) * room + row), -kInfinity);
    }
    for (size_t j = 0; j < keys.size(); ++j)
      if (!sight.isSeen(element, keys[j], queries))
        for (size_t gradient : {size_t{1}, size_t{2}})
          expectZeros(gradients[gradient], element, static_cast<int64_t>(j));
  }
}

/// Adds the rows of a shard, [b,s,h,d], to those of the whole at these places.
void addPlaces(Values &whole, int64_t size, const HostTensor &shard, const Places &places) {
  const Shape &shape = shard.type.shape;
  int64_t width = shape[2] * shape[3];
  for (int64_t element = 0; element < shape[0]; ++element)
    for (size_t row = 0; row < places.size(); ++row)
      for (int64_t i = 0; i < width; ++i)
        whole[static_cast<size_t>((element * size + places[row]) * width + i)] +=
            elementAt(shard, (element * shape[1] + static_cast<int64_t>(row)) * width + i);
}

/// The tolerance of comparisons with results in f32: elements of 16 bits are rounded in each tile.
double toleranceOf(DType dtype, double exact) {
  if (dtype == DType::BF16)
    return 0x1p-5 / 0x1p29;
  return dtype == DType::F16 ? 0x1p-8 / 0x1p29 : exact;
}

/// Expects the results on the whole sequence of the tiles of all devices. Each device runs with
/// another number of threads.
void expectRing(const Case &c, const Layout &layout, DType dtype) {
  SCOPED_TRACE(layout.str() + " of " + std::to_string(c.s) + " elements, " +
               std::string(name(dtype)));
  Random random(95);
  Operands x(c, dtype, random), wide = x;
  for (HostTensor *each : {&wide.q, &wide.k, &wide.v, &wide.dout})
    *each = widened(*each);
  std::vector<HostTensor> results = attentionOn(c, wide, {}, 0, 0).run(1);
  std::vector<HostTensor> gradients = gradientOn(c, wide, results, {}, 0).run(1);
  const std::vector<HostTensor> given = {converted(results[0], dtype), results[1]};
  Values dq(valuesOf(x.q).size()), dk(valuesOf(x.k).size()), dv = dk;
  for (int64_t device = 0; device < layout.count(); ++device) {
    int threads = 1 + static_cast<int>(device % 3);
    Places places = layout.places(device, c.s);
    std::vector<HostTensor> merged;
    for (int64_t shift = 0; shift < layout.count(); ++shift) {
      SCOPED_TRACE("device " + std::to_string(device) + ", shift " + std::to_string(shift));
      Places keys = layout.places(sourceOf(layout, device, shift), c.s);
      std::vector<HostTensor> tile = tileOn(c, x, layout, device, shift, kNan).run(threads);
      std::vector<HostTensor> backward =
          tileGradientOn(c, x, given, layout, device, shift, kNan).run(threads);
      expectUnseen(c, places, keys, tile, backward);
      addPlaces(dq, c.s, backward[0], places);
      addPlaces(dk, c.s, backward[1], keys);
      addPlaces(dv, c.s, backward[2], keys);
      if (shift == 0)
        merged = {widened(tile[0]), tile[1]};
      else
        merged = mergeOf(merged[0], merged[1], tile[0], tile[1]).run(threads, {{0, 0}});
    }
    SCOPED_TRACE("device " + std::to_string(device));
    expectPlaces(merged[0], results[0], 1, places, toleranceOf(dtype, 4e-14));
    expectPlaces(merged[1], results[1], 2, places, toleranceOf(dtype, 4e-14));
  }
  DType wideDType = wideType(dtype);
  double tolerance = toleranceOf(dtype, 2e-13);
  expectNear(dq, valuesOf(gradients[0]), wideDType, tolerance);
  expectNear(dk, valuesOf(gradients[1]), wideDType, tolerance);
  expectNear(dv, valuesOf(gradients[2]), wideDType, tolerance);
}

std::vector<Case> casesOf(int64_t size) {
  return {{2, size, size, 4, 2, 4, true},
          {2, size, size, 2, 2, 3, false},
          {2, size, size, 2, 1, 4, true, 3},
          {2, size, size, 2, 1, 4, true, 5, 1.3},
          {1, size, size, 2, 2, 4, false, 0, 0.9},
          {2, size, size, 4, 2, 4, true, 0, 0, {5, 3}},
          {2, size, size, 4, 2, 4, false, 0, 0, {5, 3}},
          {2, size, size, 2, 2, 4, true, 4, 0.8, {7, 2}}};
}

const std::vector<Layout> kInOrder = {{{2}}, {{3}}, {{4}}, {{2, 2}}};

/// One device has all keys.
TEST(AttentionRing, OneDevice) {
  for (const Case &c : casesOf(12))
    for (const Layout &layout : {Layout{}, Layout{{}, 1}, Layout{{1}}})
      for (DType dtype : kFloatTypes)
        expectRing(c, layout, dtype);
}

TEST(AttentionRing, InOrder) {
  size_t next = 0;
  for (const Case &c : casesOf(12))
    for (const Layout &layout : kInOrder) {
      // Each case and each layout with both types.
      expectRing(c, layout, kFloatTypes[(next + next / kInOrder.size()) % 2]);
      ++next;
    }
}

/// A part for each device.
TEST(AttentionRing, Zigzag) {
  size_t next = 0;
  for (const Case &c : casesOf(24)) {
    for (const Layout &layout : {Layout{{2}, 2}, Layout{{3}, 3}, Layout{{4}, 4}, Layout{{2, 2}, 4}})
      expectRing(c, layout, kFloatTypes[next++ % 2]);
    ++next;
  }
}

/// Chunks of parts, and blocks that end in the middle of a chunk.
TEST(AttentionRing, PartsOfZigzagParts) {
  size_t next = 0;
  for (const Case &c : casesOf(12))
    for (const Layout &layout : {Layout{{2}, 1}, Layout{{4}, 2}, Layout{{3}, 1}, Layout{{2, 2}, 2}})
      expectRing(c, layout, kFloatTypes[next++ % 2]);
}

/// Chunks of fewer and of more queries than a block has, and more than a tile of keys.
TEST(AttentionRing, LongSequences) {
  for (const Case &c : {Case{1, 320, 320, 2, 1, 8, true}, Case{1, 320, 320, 1, 1, 16, true, 90},
                        Case{1, 320, 320, 2, 2, 8, false, 0, 0, {130, 1, 64, 70}},
                        Case{1, 320, 320, 1, 1, 8, true, 100, 2.0, {130, 1, 64, 70}}})
    for (const Layout &layout :
         {Layout{{2}}, Layout{{4}}, Layout{{2}, 2}, Layout{{4}, 4}, Layout{{2, 2}, 4}})
      expectRing(c, layout, DType::F32);
}

/// 7 elements over 2 devices are 4 and 3; 10 over 4 are 3, 3, 3 and 1; with 5 over 4 the last
/// device has none.
TEST(AttentionRing, PaddedShards) {
  size_t next = 0;
  for (const Case &c : casesOf(7))
    for (const Layout &layout : {Layout{{2}}, Layout{{2, 2}}})
      expectRing(c, layout, kFloatTypes[next++ / 2 % 2]);
  for (const Case &c : casesOf(10))
    expectRing(c, Layout{{4}}, kFloatTypes[next++ % 2]);
  for (const Case &c : casesOf(5))
    expectRing(c, Layout{{4}}, kFloatTypes[next++ % 2]);
}

/// 10 elements over two axes are {0, 1, 2}, {3, 4, -}, {5, 6, 7}, {8, 9, -}: what comes after the
/// second device's elements is not the fifth.
TEST(AttentionRing, PaddingBetweenShards) {
  for (const Case &c : casesOf(10))
    for (DType dtype : kFloatTypes)
      expectRing(c, Layout{{2, 2}}, dtype);
}

TEST(AttentionRing, Halves) {
  for (const Case &c :
       {Case{1, 96, 96, 2, 1, 16, true}, Case{2, 24, 24, 2, 2, 8, true, 4, 0.8, {7, 2}},
        Case{1, 24, 24, 4, 2, 8, false, 0, 0, {5, 3}}, Case{1, 24, 24, 2, 1, 3, true, 5}})
    for (const Layout &layout : {Layout{{2}}, Layout{{3}, 3}, Layout{{4}, 4}, Layout{{2, 2}, 4}})
      for (DType dtype : kHalfTypes)
        expectRing(c, layout, dtype);
  for (DType dtype : kHalfTypes)
    for (const Case &c : {Case{1, 7, 7, 2, 1, 8, true}, Case{1, 35, 35, 2, 1, 16, false}})
      expectRing(c, Layout{{2}}, dtype);
}

/// Covers tiles whose keys are all seen, partly seen and not seen, with every number of threads.
TEST(AttentionRing, AllWays) {
  Case c{2, 24, 24, 4, 2, 8, true, 9};
  for (const Layout &layout : {Layout{{3}}, Layout{{3}, 3}})
    for (DType dtype : {DType::F32, DType::F64, DType::BF16}) {
      SCOPED_TRACE(layout.str());
      Random random(96);
      Operands x(c, dtype, random);
      std::vector<HostTensor> results = attentionOn(c, x, {}, 0, 0).run(1);
      for (int64_t device = 0; device < 3; ++device)
        for (int64_t shift = 0; shift < 3; ++shift)
          for (const KernelCall &call : {tileOn(c, x, layout, device, shift, 0),
                                         tileGradientOn(c, x, results, layout, device, shift, 0)}) {
            runInAllWays(call);
            if (is16Bits(dtype))
              expectRounded(call);
          }
    }
}

/// A shift is modulo the number of devices.
TEST(AttentionRing, LargeShifts) {
  Case c{1, 24, 24, 2, 1, 4, true};
  constexpr int64_t huge = std::numeric_limits<int64_t>::max();
  for (const Layout &layout : {Layout{{4}}, Layout{{2, 2}}, Layout{{2, 2}, 4}, Layout{{3}, 3}}) {
    Random random(97);
    Operands x(c, DType::F64, random);
    std::vector<HostTensor> results = attentionOn(c, x, {}, 0, 0).run(1);
    for (int64_t device = 0; device < layout.count(); ++device)
      for (int64_t shift : {layout.count(), layout.count() + 1, int64_t{1} << 40, huge}) {
        std::string how = layout.str() + ", shift " + std::to_string(shift);
        int64_t small = shift % layout.count();
        std::vector<HostTensor> found = tileOn(c, x, layout, device, shift, 0).run(1),
                                expected = tileOn(c, x, layout, device, small, 0).run(1);
        for (size_t i = 0; i < expected.size(); ++i)
          expectSame(found[i], expected[i], how);
        found = tileGradientOn(c, x, results, layout, device, shift, 0).run(1);
        expected = tileGradientOn(c, x, results, layout, device, small, 0).run(1);
        for (size_t i = 0; i < expected.size(); ++i)
          expectSame(found[i], expected[i], how);
      }
  }
}

TEST(AttentionRing, Empty) {
  for (const auto &[q, k] : {std::pair{Shape{0, 4, 2, 4}, Shape{0, 4, 2, 4}},
                             std::pair{Shape{1, 4, 0, 4}, Shape{1, 4, 2, 4}}})
    for (int64_t shift : {0, 1}) {
      TensorType lse{DType::F32, {q[0], q[2], q[1]}};
      HostTensor queries(TensorType{DType::F32, q}), keys(TensorType{DType::F32, k});
      AttributeMap attributes{{"causal", true}, {"scale", 0.5}, {"key_shift", shift}};
      Layout layout{{2}};
      layout.addTo(attributes, 8);
      KernelCall call{
          "attention", {queries, keys, keys}, {queries.type, lse}, attributes, layout.position(0)};
      expectKernel(call, {{}, {}});
    }
}

const std::vector<AxisCoordinate> kMesh = {
    {"cp", 2, 0, false}, {"three", 3, 0, false}, {"five", 5, 0, false}};

/// Calls of 4 queries and as many keys on a device.
struct Refusal {
  int64_t keys = 4;
  std::vector<TensorType> optional = {};

  void expect(AttributeMap attributes, const std::string &message) const {
    attributes["causal"] = true;
    attributes["scale"] = 0.5;
    TensorType q{DType::F32, {2, 4, 4, 8}}, k{DType::F32, {2, keys, 2, 8}},
        lse{DType::F32, {2, 4, 4}};
    KernelSignature forward{"attention", {q, k, k}, {q, lse}, attributes, kMesh};
    KernelSignature backward{"attention_grad", {q, k, k, q, lse, q}, {q, k, k}, attributes, kMesh};
    for (KernelSignature *call : {&forward, &backward}) {
      call->inputs.insert(call->inputs.end(), optional.begin(), optional.end());
      expectRefused(*call, message);
    }
  }
};

AttributeMap shardOf(int64_t size, const std::string &axis, int64_t shift) {
  return {{"sequence", size}, {"sequence_axes", Axes{axis}}, {"key_shift", shift}};
}

TEST(AttentionRing, Refuses) {
  Refusal call;
  for (int64_t shift : {int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    std::string message =
        "attribute 'key_shift' is " + std::to_string(shift) + ", expected 0 or more";
    call.expect({{"key_shift", shift}}, message);
    call.expect(shardOf(8, "cp", shift), message);
  }
  call.expect({{"key_shift", 1.0}}, "attribute 'key_shift' is a float");
  call.expect({{"key_shift", Axes{"cp"}}}, "attribute 'key_shift' is a list of strings");

  Refusal dropout{4, {{DType::I32, {2}}}};
  AttributeMap masked = shardOf(8, "cp", 1);
  masked["dropout"] = 0.5;
  masked["op"] = int64_t{3};
  masked["shape"] = Shape{2, 4, 8, 4};
  masked["sharding"] = std::vector<std::string>{"", "", "cp", ""};
  dropout.expect(masked, "has dropout, expected none with zigzag or key_shift");
}

/// Queries that come after cached keys have all of these.
TEST(AttentionRing, RefusesCaches) {
  TensorType q{DType::F32, {2, 4, 4, 8}}, k{DType::F32, {2, 4, 2, 8}}, positions{DType::I32, {2}};
  expectRefused({"cached_attention",
                 {q, k, k, positions},
                 {q},
                 {{"scale", 0.5}, {"key_shift", int64_t{0}}},
                 kMesh},
                "attribute 'key_shift' is unknown to this kernel");
}

TEST(AttentionRing, RefusesOtherKeys) {
  for (int64_t keys : {3, 5, 8}) {
    std::string message = "has 4 queries, " + std::to_string(keys) +
                          " keys and a key_shift, expected as many keys as queries";
    Refusal call{keys, {}};
    call.expect({{"key_shift", int64_t{0}}}, message);
    call.expect(shardOf(8, "cp", 0), message);
  }
}

/// Segments are those of the whole sequence.
TEST(AttentionRing, RefusesOtherSegments) {
  for (int64_t size : {4, 7, 9})
    Refusal{4, {{DType::I32, {2, size}}}}.expect(shardOf(8, "cp", 1), "expected i32[2,8]");
  Refusal{4, {{DType::I32, {2, 8}}}}.expect({{"key_shift", int64_t{0}}}, "expected i32[2,4]");
}

/// In zigzag order, neighbouring keys may be of one part alone.
TEST(AttentionRing, RefusesKeysOfSeveralParts) {
  auto refuse = [](AttributeMap attributes, int64_t parts) {
    attributes["zigzag"] = parts;
    Refusal{}.expect(attributes, "expected none, for keys of more than one of " +
                                     std::to_string(parts) + " zigzag parts");
  };
  refuse({{"key_shift", int64_t{0}}}, 2);
  for (int64_t shift : {0, 1}) {
    refuse(shardOf(8, "cp", shift), 4);
    // 12 elements are two parts of 6: the second of 3 devices has the end of one and the beginning
    // of the other.
    refuse(shardOf(12, "three", shift), 2);
    // 20 elements are two parts of 10, between the third device's.
    refuse(shardOf(20, "five", shift), 2);
  }
}

//===----------------------------------------------------------------------===//
// Merging
//===----------------------------------------------------------------------===//

/// The weights of two results, from the logs of their sums.
struct Weights {
  double first = 0, second = 0, lse = -kInfinity;

  Weights(double firstLse, double secondLse) {
    double largest = std::max(firstLse, secondLse);
    if (largest == -kInfinity)
      return;
    lse = largest + std::log1p(std::exp(std::min(firstLse, secondLse) - largest));
    first = std::exp(firstLse - lse);
    second = std::exp(secondLse - lse);
  }
};

/// The results of merge_attention, by the formula.
std::vector<Values> mergedBy(const KernelCall &call) {
  const Shape &shape = call.inputs[0].type.shape;
  int64_t b = shape[0], s = shape[1], h = shape[2], d = shape[3];
  Values out = valuesOf(call.inputs[0]), lse = valuesOf(call.inputs[1]);
  Values part = valuesOf(call.inputs[2]), partLse = valuesOf(call.inputs[3]);
  for (int64_t element = 0; element < b; ++element)
    for (int64_t head = 0; head < h; ++head)
      for (int64_t query = 0; query < s; ++query) {
        auto row = static_cast<size_t>((element * h + head) * s + query);
        auto begin = static_cast<size_t>(((element * s + query) * h + head) * d);
        Weights weights(lse[row], partLse[row]);
        for (size_t i = begin; i < begin + static_cast<size_t>(d); ++i)
          out[i] = weights.first * out[i] + weights.second * part[i];
        lse[row] = weights.lse;
      }
  return {out, lse};
}

KernelCall randomMerge(DType dtype, const Shape &shape, Random &random, double low, double high) {
  DType wide = wideType(dtype);
  Shape rows = {shape[0], shape[2], shape[1]};
  HostTensor out = random.floats(wide, shape, -2, 2), lse = random.floats(wide, rows, low, high);
  HostTensor part = random.floats(dtype, shape, -2, 2);
  return mergeOf(out, lse, part, random.floats(wide, rows, low, high));
}

TEST(AttentionMerge, IsThatOfAllKeys) {
  Random random(98);
  for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16})
    for (const Shape &shape : {Shape{1, 1, 1, 1}, Shape{2, 5, 3, 4}, Shape{3, 2, 4, 64},
                               Shape{1, 70, 2, 33}, Shape{2, 130, 4, 128}}) {
      KernelCall call = randomMerge(dtype, shape, random, -3, 6);
      expectKernel(call, mergedBy(call));
    }
}

/// A row without keys on one side, on the other and on both has the other's result, or none.
TEST(AttentionMerge, WithoutKeys) {
  Random random(99);
  for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16}) {
    Shape shape{2, 9, 3, 8};
    KernelCall call = randomMerge(dtype, shape, random, -3, 6);
    for (int64_t row = 0; row < call.inputs[1].type.numElements(); ++row)
      for (size_t side : {size_t{0}, size_t{1}}) {
        // All of the four ways in turns.
        if ((row >> side) % 2 == 0)
          continue;
        setElement(call.inputs[2 * side + 1], row, -kInfinity);
        int64_t element = row / (3 * 9), head = row / 9 % 3, query = row % 9;
        for (int64_t i = 0; i < 8; ++i)
          setElement(call.inputs[2 * side], ((element * 9 + query) * 3 + head) * 8 + i, 0);
      }
    std::vector<Values> expected = mergedBy(call);
    expectKernel(call, expected);
    std::vector<HostTensor> found = call.run(1);
    for (int64_t row = 0; row < found[1].type.numElements(); ++row) {
      int64_t element = row / (3 * 9), head = row / 9 % 3, query = row % 9;
      int64_t begin = ((element * 9 + query) * 3 + head) * 8;
      if (row % 4 == 0)
        continue;
      // A result that is merged with none stays, bit for bit.
      size_t side = row % 4 == 1 ? 1 : 0;
      ASSERT_EQ(elementAt(found[1], row), elementAt(call.inputs[2 * side + 1], row));
      for (int64_t i = begin; i < begin + 8; ++i)
        ASSERT_EQ(elementAt(found[0], i), elementAt(call.inputs[2 * side], i));
    }
  }
}

/// Exponentials of these would overflow, or be 0.
TEST(AttentionMerge, FarApart) {
  Random random(100);
  for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16})
    for (double size : {50.0, 1e3, 1e5}) {
      KernelCall call = randomMerge(dtype, {2, 9, 3, 5}, random, -size, size);
      expectKernel(call, mergedBy(call), size > 100 ? 1e-12 : 1e-13);
    }
  for (DType dtype : kFloatTypes)
    for (double lse : {1e4, -1e4, 1e30, -1e30}) {
      // As many keys of the same scores on both sides: the mean.
      KernelCall call = randomMerge(dtype, {1, 3, 2, 4}, random, 0, 1);
      for (int64_t row = 0; row < 6; ++row)
        for (size_t i : {size_t{1}, size_t{3}})
          setElement(call.inputs[i], row, lse);
      Values mean = valuesOf(call.inputs[0]), part = valuesOf(call.inputs[2]);
      for (size_t i = 0; i < mean.size(); ++i)
        mean[i] = (mean[i] + part[i]) / 2;
      expectKernel(call, {mean, mergedBy(call)[1]});
    }
}

/// The order of merges of three results changes roundings alone.
TEST(AttentionMerge, OrderOfMerges) {
  Random random(101);
  Shape shape{2, 6, 3, 8};
  KernelCall first = randomMerge(DType::F64, shape, random, -3, 6);
  KernelCall other = randomMerge(DType::F64, shape, random, -3, 6);
  const HostTensor &third = other.inputs[2], &thirdLse = other.inputs[3];
  std::vector<HostTensor> two = first.run(1);
  std::vector<HostTensor> all = mergeOf(two[0], two[1], third, thirdLse).run(1);
  two = mergeOf(third, thirdLse, first.inputs[2], first.inputs[3]).run(1);
  expectKernel(mergeOf(two[0], two[1], first.inputs[0], first.inputs[1]),
               {valuesOf(all[0]), valuesOf(all[1])});
}

/// The part is widened when it is read.
TEST(AttentionMerge, Halves) {
  Random random(102);
  for (DType dtype : kHalfTypes)
    for (const Shape &shape : {Shape{2, 5, 3, 4}, Shape{1, 40, 2, 64}})
      expectRounded(randomMerge(dtype, shape, random, -3, 6));
}

TEST(AttentionMerge, Empty) {
  for (const Shape &shape : {Shape{0, 2, 3, 4}, Shape{2, 0, 3, 4}, Shape{2, 3, 0, 4}}) {
    HostTensor x(TensorType{DType::F32, shape});
    HostTensor lse(TensorType{DType::F32, {shape[0], shape[2], shape[1]}});
    expectKernel(mergeOf(x, lse, x, lse), {{}, {}});
  }
}

TEST(AttentionMerge, Refuses) {
  TensorType x{DType::F32, {2, 5, 3, 4}}, lse{DType::F32, {2, 3, 5}}, half = x;
  half.dtype = DType::BF16;
  const KernelSignature valid{"merge_attention", {x, lse, half, lse}, {x, lse}, {}, {}};
  auto refuse = [&](size_t operand, const TensorType &type, const std::string &message) {
    KernelSignature call = valid;
    (operand < 4 ? call.inputs[operand] : call.outputs[operand - 4]) = type;
    expectRefused(call, message);
  };
  const std::string wanted = ", expected f32[2,5,3,4]", wantedLse = ", expected f32[2,3,5]";
  TensorType wide{DType::F64, x.shape}, wideLse{DType::F64, lse.shape};
  TensorType longer{DType::F32, {2, 6, 3, 4}}, swapped{DType::F32, {2, 5, 3}};
  refuse(0, half, "input 0 is bf16[2,5,3,4]" + wanted);
  refuse(0, wide, "input 0 is f64[2,5,3,4]" + wanted);
  refuse(0, longer, "input 0 is f32[2,6,3,4]" + wanted);
  refuse(1, swapped, "input 1 is f32[2,5,3]" + wantedLse);
  refuse(1, wideLse, "input 1 is f64[2,3,5]" + wantedLse);
  refuse(2, {DType::F32, {2, 5, 12}}, "input 2 is f32[2,5,12], expected 4 dimensions");
  refuse(2, {DType::I32, x.shape},
         "input 2 is i32[2,5,3,4], expected elements of f32, f64, bf16 or f16");
  refuse(2, wide, "expected f64[2,5,3,4]");
  refuse(3, swapped, "input 3 is f32[2,5,3]" + wantedLse);
  refuse(4, half, "output 0 is bf16[2,5,3,4]" + wanted);
  refuse(4, longer, "output 0 is f32[2,6,3,4]" + wanted);
  refuse(5, swapped, "output 1 is f32[2,5,3]" + wantedLse);

  KernelSignature call = valid;
  call.inputs.pop_back();
  expectRefused(call, "has 3 inputs, expected 4");
  call = valid;
  call.outputs.pop_back();
  expectRefused(call, "has 1 outputs, expected 2");
  call = valid;
  call.attributes["scale"] = 0.5;
  expectRefused(call, "scale");
}

} // namespace
} // namespace dtc::runtime::test::ringAttentionTest
