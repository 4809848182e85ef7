//===- TilesTest.cpp - Products and attention in tiles --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Tiles.h"
#include "runtime/backends/cpu/Bf16Unit.h"
#include "runtime/backends/cpu/Transpose.h"
#include "test/runtime/backends/conformance/KernelTest.h"
#include "test/runtime/backends/conformance/SequenceLayout.h"
#include "test/runtime/backends/cpu/EmulatedTiles.h"

#include <algorithm>
#include <cmath>

namespace dtc::runtime::test::tilesTest {
namespace {

/// Random elements between -1 and 1.
std::vector<BFloat16> randomHalves(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> numbers(-1, 1);
  std::vector<BFloat16> result;
  for (int64_t i = 0; i < count; ++i)
    result.emplace_back(numbers(random));
  return result;
}

void expectProducts(cpu::Bf16Unit unit) {
  AssumedUnit assumed(unit);
  for (auto [m, n, k] : {std::array<int64_t, 3>{16, 16, 32}, {48, 32, 64}, {32, 48, 96}})
    for (bool transposed : {false, true}) {
      int64_t stride = std::max(n, k) + 8;
      std::vector<BFloat16> a = randomHalves(m * k, 1), b = randomHalves(stride * stride, 2);
      std::vector<uint32_t> words(static_cast<size_t>(cpu::tileWords(k, n)));
      if (transposed)
        cpu::packTilesTransposed(b.data(), stride, k, n, words.data());
      else
        cpu::packTileRows(b.data(), stride, k, n, k, words.data());
      std::vector<float> c(static_cast<size_t>(m * n), 3.0f);
      for (bool accumulate : {false, true}) {
        {
          cpu::TileScope scope;
          cpu::multiplyTiles(m, n, k, a.data(), k, {words.data(), k / 2 * cpu::kTileRows},
                             accumulate, c.data(), n);
        }
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t l = 0; l < k; ++l)
              sum += double(float(a[static_cast<size_t>(i * k + l)])) *
                     double(float(
                         b[static_cast<size_t>(transposed ? j * stride + l : l * stride + j)]));
            EXPECT_NEAR(c[static_cast<size_t>(i * n + j)], accumulate ? 2 * sum : sum, 1e-4);
          }
      }
    }
}

TEST(Tiles, Products) {
  long before = emulatedInstructions();
  expectProducts(cpu::Bf16Unit::Tiles);
  EXPECT_TRUE(emulatedInstructions() > before || __builtin_cpu_supports("amx-bf16"));
}

TEST(Tiles, ProductsByDotProducts) {
  long before = emulatedInstructions();
  expectProducts(cpu::Bf16Unit::DotProducts);
  EXPECT_EQ(emulatedInstructions(), before);
}

TEST(Tiles, PacksWhatIsNoWholeTile) {
  constexpr int64_t depth = 24, columns = 21, stride = 40;
  std::vector<BFloat16> rows = randomHalves(columns * stride, 3);
  std::vector<uint32_t> words(static_cast<size_t>(cpu::tileWords(depth, columns)), 7);
  cpu::packTilesTransposed(rows.data(), stride, depth, columns, words.data());
  for (int64_t j = 0; j < 32; ++j)
    for (int64_t l = 0; l < 32; ++l) {
      uint32_t word = words[static_cast<size_t>((j / 16 * 16 + l / 2) * 16 + j % 16)];
      uint32_t expected =
          j < columns && l < depth ? rows[static_cast<size_t>(j * stride + l)].bits : 0;
      EXPECT_EQ(l % 2 ? word >> 16 : word & 0xFFFF, expected) << j << " " << l;
    }
  // Rows of an odd number, of columns that are multiples of 8.
  std::vector<uint32_t> byRow(static_cast<size_t>(cpu::tileWords(32, 24)), 7);
  cpu::packTileRows(rows.data(), stride, columns, 24, 32, byRow.data());
  for (int64_t j = 0; j < 32; ++j)
    for (int64_t l = 0; l < 32; ++l) {
      uint32_t word = byRow[static_cast<size_t>((j / 16 * 16 + l / 2) * 16 + j % 16)];
      uint32_t expected =
          l < columns && j < 24 ? rows[static_cast<size_t>(l * stride + j)].bits : 0;
      EXPECT_EQ(l % 2 ? word >> 16 : word & 0xFFFF, expected) << j << " " << l;
    }
  std::vector<BFloat16> turned(24 * 32);
  cpu::transpose(rows.data(), stride, columns, 24, 32, turned.data());
  for (int64_t j = 0; j < 24; ++j)
    for (int64_t l = 0; l < 32; ++l)
      EXPECT_EQ(turned[static_cast<size_t>(j * 32 + l)].bits,
                l < columns ? rows[static_cast<size_t>(l * stride + j)].bits : 0);
}

/// The largest element of `expected`, times 2^-7: the weights and the gradients of scores are
/// rounded to 8 bits, and so are the results.
void expectClose(const HostTensor &found, const HostTensor &expected, const std::string &how) {
  Values values = valuesOf(found), wanted = valuesOf(expected);
  double largest = 0, error = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isinf(wanted[i])) {
      EXPECT_EQ(values[i], wanted[i]) << how;
      continue;
    }
    largest = std::max(largest, std::fabs(wanted[i]));
    error = std::max(error, std::fabs(values[i] - wanted[i]));
  }
  EXPECT_LE(error, std::ldexp(largest, -7)) << how;
}

struct TileCase {
  int64_t b, s, t, h, g, d;
  AttributeMap attributes;
};

std::vector<TileCase> tileCases() {
  AttributeMap causal{{"causal", true}, {"scale", 0.3}};
  auto with = [&](const char *name, auto value) {
    AttributeMap result = causal;
    result[name] = value;
    return result;
  };
  AttributeMap open{{"causal", false}, {"scale", 0.3}}, negative{{"causal", true}, {"scale", -0.2}};
  return {{1, 8, 8, 1, 1, 8, open},
          {1, 70, 70, 2, 1, 64, causal},
          {2, 65, 33, 2, 2, 40, open},
          {1, 130, 300, 1, 1, 16, causal},
          {1, 9, 290, 2, 1, 8, causal},
          {1, 90, 20, 1, 1, 32, causal},
          {1, 100, 340, 1, 1, 16, with("window", int64_t{37})},
          {1, 300, 300, 1, 1, 8, with("window", int64_t{20})},
          {1, 40, 60, 2, 1, 24, with("softcap", 1.5)},
          {1, 40, 60, 1, 1, 8, negative}};
}

/// Attention and its gradient by the assumed unit, beside those of products in f32.
void expectAttention(const KernelCall &forward, const KernelCall &backward,
                     const std::vector<HostTensor> &wide, const std::vector<HostTensor> &wideGrads,
                     const std::string &where) {
  bool emulates = cpu::bf16Unit() == cpu::Bf16Unit::Tiles && !__builtin_cpu_supports("amx-bf16");
  std::string how =
      where + (cpu::bf16Unit() == cpu::Bf16Unit::Tiles ? ", tiles" : ", dot products");
  long before = emulatedInstructions();
  std::vector<HostTensor> results = forward.run(1);
  EXPECT_EQ(emulatedInstructions() > before, emulates) << how;
  for (size_t i = 0; i < 2; ++i)
    expectClose(results[i], wide[i], how + ", output " + std::to_string(i));
  std::vector<HostTensor> grads = backward.run(1);
  for (size_t i = 0; i < 3; ++i)
    expectClose(grads[i], wideGrads[i], how + ", gradient " + std::to_string(i));
  // Neither another run nor another number of threads changes a bit.
  std::vector<HostTensor> again = backward.run(2), forwardAgain = forward.run(2);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(grads[i].bytes, again[i].bytes) << how;
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(results[i].bytes, forwardAgain[i].bytes) << how;
}

TEST(Tiles, Attention) {
  for (const TileCase &c : tileCases())
    for (bool dropout : {false, true}) {
      std::vector<int64_t> query{c.b, c.s, c.h, c.d}, key{c.b, c.t, c.g, c.d};
      Random random(31);
      HostTensor q = random.floats(DType::BF16, query), dout = random.floats(DType::BF16, query);
      HostTensor k = random.floats(DType::BF16, key), v = random.floats(DType::BF16, key);
      KernelCall forward{
          "attention", {q, k, v}, {q.type, TensorType{DType::F32, {c.b, c.h, c.s}}}, c.attributes};
      HostTensor seed = makeTensor(DType::I32, {2}, {5, 6});
      if (dropout) {
        forward.inputs.push_back(seed);
        forward.attributes["dropout"] = 0.25;
        forward.attributes["op"] = int64_t{3};
        forward.attributes["shape"] = std::vector<int64_t>{c.b, c.h, c.s, c.t};
        forward.attributes["sharding"] = std::vector<std::string>(4);
      }
      std::vector<HostTensor> wide, wideGrads;
      cpu::assumeBf16Unit(cpu::Bf16Unit::None);
      wide = forward.run(1);
      KernelCall backward{"attention_grad",
                          {q, k, v, wide[0], wide[1], dout},
                          {q.type, k.type, k.type},
                          forward.attributes};
      if (dropout)
        backward.inputs.push_back(seed);
      wideGrads = backward.run(1);

      std::string how = std::to_string(c.s) + " queries, " + std::to_string(c.t) + " keys of " +
                        std::to_string(c.d) + (dropout ? ", dropout" : "");
      for (cpu::Bf16Unit unit : kBf16Units) {
        AssumedUnit assumed(unit);
        expectAttention(forward, backward, wide, wideGrads, how);
      }
    }
}

/// A device's shard of 9 keys has room for 10. What pads it has no meaning.
TEST(Tiles, AttentionIgnoresPaddingOfKeys) {
  const sequence::Case c{1, 19, 19, 2, 1, 16, false};
  const sequence::Layout layout{{2}};
  Random random(32);
  sequence::Operands x(c, DType::BF16, random);
  sequence::Places places = layout.places(1, c.s);
  ASSERT_EQ(places.size(), 9u);
  auto run = [&](double padding) {
    KernelCall forward = sequence::attentionOn(c, x, layout, 1, 0);
    for (size_t i : {size_t{1}, size_t{2}})
      forward.inputs[i] = sequence::take(forward.inputs[i], 1, places, layout.room(c.s), padding);
    forward.attributes["key_shift"] = int64_t{0};
    std::vector<HostTensor> results = forward.run(1);
    KernelCall backward{"attention_grad",
                        {forward.inputs[0], forward.inputs[1], forward.inputs[2], results[0],
                         results[1], forward.inputs[0]},
                        {forward.inputs[0].type, forward.inputs[1].type, forward.inputs[2].type},
                        forward.attributes,
                        layout.position(1)};
    for (HostTensor &each : backward.run(1))
      results.push_back(std::move(each));
    return results;
  };
  for (cpu::Bf16Unit unit : kBf16Units) {
    AssumedUnit assumed(unit);
    std::vector<HostTensor> zeros = run(0), nans = run(std::nan(""));
    for (size_t i = 0; i < zeros.size(); ++i)
      EXPECT_EQ(zeros[i].bytes, nans[i].bytes) << "result " << i;
  }
}

} // namespace
} // namespace dtc::runtime::test::tilesTest
