//===- QuantizedBlocksTest.cpp - Blocks of integers with a scale ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace dtc::runtime::test::quantizedBlocksTest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

AttributeMap attributes(int64_t bits, int64_t block, int64_t dim = 0, int64_t parts = 1) {
  return {{"bits", bits}, {"block", block}, {"dim", dim}, {"parts", parts}};
}

int64_t wordsOf(int64_t bits, int64_t block) { return 1 + (block * bits + 31) / 32; }

/// The block of these integers, each written where docs/kernels.md says.
std::vector<uint32_t> blockOf(float scale, int64_t bits, int64_t block,
                              const std::vector<int> &integers) {
  std::vector<uint32_t> words(static_cast<size_t>(wordsOf(bits, block)), 0);
  std::memcpy(words.data(), &scale, sizeof(scale));
  uint32_t mask = bits == 8 ? 0xFF : 0xF;
  for (size_t i = 0; i < integers.size(); ++i) {
    size_t bit = i * static_cast<size_t>(bits);
    words[1 + bit / 32] |= (static_cast<uint32_t>(integers[i]) & mask) << bit % 32;
  }
  return words;
}

HostTensor wordsTensor(const std::vector<std::vector<uint32_t>> &blocks) {
  HostTensor tensor(
      {DType::I32,
       {static_cast<int64_t>(blocks.size()), static_cast<int64_t>(blocks.at(0).size())}});
  auto *to = tensor.as<uint32_t>();
  for (const std::vector<uint32_t> &block : blocks)
    to = std::copy(block.begin(), block.end(), to);
  return tensor;
}

KernelCall quantize(const HostTensor &x, const AttributeMap &how, int64_t rows, int64_t words) {
  return {"quantize_blocks", {x}, {TensorType{DType::I32, {rows, words}}}, how};
}

KernelCall dequantize(const HostTensor &blocks, const AttributeMap &how, const TensorType &type) {
  return {"dequantize_blocks", {blocks}, {type}, how};
}

void expectBlocks(const HostTensor &x, const AttributeMap &how,
                  const std::vector<std::vector<uint32_t>> &blocks) {
  HostTensor expected = wordsTensor(blocks);
  expectSame(runInAllWays(quantize(x, how, expected.type.shape[0], expected.type.shape[1]))[0],
             expected, "blocks");
}

/// The values of quantized elements, element by element, from their indices alone.
Values roundTrip(const HostTensor &x, int64_t bits, int64_t block, size_t dim, int64_t parts) {
  const Shape &shape = x.type.shape;
  int64_t inner = 1, limit = bits == 8 ? 127 : 7;
  for (size_t d = dim + 1; d < shape.size(); ++d)
    inner *= shape[d];
  std::vector<std::vector<int64_t>> places(static_cast<size_t>(parts));
  for (int64_t i = 0; i < count(shape); ++i)
    places[static_cast<size_t>(i / inner % shape[dim] / (shape[dim] / parts))].push_back(i);
  Values values = valuesOf(x), result(values.size());
  for (const std::vector<int64_t> &part : places)
    for (size_t begin = 0; begin < part.size(); begin += static_cast<size_t>(block)) {
      size_t end = std::min(part.size(), begin + static_cast<size_t>(block));
      double largest = 0;
      for (size_t i = begin; i < end; ++i)
        largest = std::max(largest, std::abs(values[static_cast<size_t>(part[i])]));
      // The quotient is rounded to the type of the elements before it is to f32.
      auto scale = x.type.dtype == DType::F32
                       ? static_cast<float>(largest) / static_cast<float>(limit)
                       : static_cast<float>(largest / static_cast<double>(limit));
      for (size_t i = begin; i < end; ++i) {
        double value = values[static_cast<size_t>(part[i])];
        double quotient = x.type.dtype == DType::F32 ? static_cast<float>(value) / scale
                                                     : value / static_cast<double>(scale);
        double integer = std::nearbyint(quotient) + 0.0; // an integer has no sign of zero
        integer = std::clamp(integer, -static_cast<double>(limit), static_cast<double>(limit));
        result[static_cast<size_t>(part[i])] = x.type.dtype == DType::F32
                                                   ? static_cast<float>(integer) * scale
                                                   : integer * static_cast<double>(scale);
      }
    }
  return result;
}

} // namespace

TEST(QuantizedBlocks, WordsAreThoseOfTheDocument) {
  for (DType dtype : kFloatTypes) {
    // A scale of 1 and of 0.5; ties go to the even integer; the last block has two elements.
    expectBlocks(makeTensor(dtype, {6}, {127, 0.5, 1.5, -2.5, -63.5, 31.25}), attributes(8, 4),
                 {blockOf(1, 8, 4, {127, 0, 2, -2}), blockOf(0.5, 8, 4, {-127, 62})});
    expectBlocks(makeTensor(dtype, {6}, {7, -0.5, 1.5, -2.5, -3.5, 1.75}), attributes(4, 3),
                 {blockOf(1, 4, 3, {7, 0, 2}), blockOf(0.5, 4, 3, {-5, -7, 4})});
    // Nine integers of four bits take a second word.
    expectBlocks(makeTensor(dtype, {9}, {7, 1, 2, 3, 4, 5, 6, -7, -1}), attributes(4, 9),
                 {blockOf(1, 4, 9, {7, 1, 2, 3, 4, 5, 6, -7, -1})});
  }
}

TEST(QuantizedBlocks, PartsOfADimension) {
  // Columns 0 and 1 of both rows are the first part.
  HostTensor x = makeTensor(DType::F32, {2, 4}, {1, 2, 30, 40, 5, 127, 70, 127});
  expectBlocks(x, attributes(8, 4, 1, 2),
               {blockOf(1, 8, 4, {1, 2, 5, 127}), blockOf(1, 8, 4, {30, 40, 70, 127})});
}

TEST(QuantizedBlocks, ZerosAndTinyNumbers) {
  expectBlocks(makeTensor(DType::F32, {4}, {0, -0.0, 1e-38, -1e-38}), attributes(8, 2),
               {blockOf(0, 8, 2, {}), blockOf(0, 8, 2, {})});
  expectBlocks(makeTensor(DType::F64, {2}, {1e-300, 0}), attributes(4, 2), {blockOf(0, 4, 2, {})});
}

TEST(QuantizedBlocks, WhatIsNotFiniteStaysNoticed) {
  for (DType dtype : kFloatTypes)
    for (double bad : {kInfinity, -kInfinity, kNaN})
      for (int64_t bits : {4, 8}) {
        HostTensor x = makeTensor(dtype, {6}, {1, bad, 3, 4, 5, 6});
        HostTensor blocks = runInAllWays(quantize(x, attributes(bits, 3), 2, 2))[0];
        Values back = valuesOf(runInAllWays(dequantize(blocks, attributes(bits, 3), x.type))[0]);
        for (size_t i = 0; i < 6; ++i)
          EXPECT_EQ(std::isnan(back[i]), i < 3) << i;
      }
  // A number that f32 does not have as a scale is not finite either.
  HostTensor large = makeTensor(DType::F64, {2}, {1e300, 1});
  HostTensor blocks = runInAllWays(quantize(large, attributes(8, 2), 1, 2))[0];
  EXPECT_TRUE(
      std::isnan(valuesOf(runInAllWays(dequantize(blocks, attributes(8, 2), large.type))[0])[1]));
}

TEST(QuantizedBlocks, RoundTrip) {
  struct Case {
    Shape shape;
    int64_t block;
    size_t dim;
    int64_t parts;
  };
  const Case cases[] = {{{1}, 1, 0, 1},       {{1000}, 256, 0, 2},    {{7, 30}, 16, 1, 3},
                        {{4, 6, 5}, 7, 1, 2}, {{3, 64, 2}, 64, 1, 4}, {{2, 3}, 100, 0, 2}};
  Random random(11);
  for (const Case &c : cases)
    for (DType dtype : kFloatTypes)
      for (int64_t bits : {4, 8}) {
        HostTensor x = random.floats(dtype, c.shape, -3, 3);
        AttributeMap how = attributes(bits, c.block, static_cast<int64_t>(c.dim), c.parts);
        int64_t part = count(c.shape) / c.parts;
        int64_t rows = c.parts * ((part + c.block - 1) / c.block);
        HostTensor blocks = runInAllWays(quantize(x, how, rows, wordsOf(bits, c.block)))[0];
        expectSame(runInAllWays(dequantize(blocks, how, x.type))[0],
                   makeTensor(dtype, c.shape, roundTrip(x, bits, c.block, c.dim, c.parts)),
                   "round trip");
      }
}

/// Numbers from [0, 1) as the kernel `random_uniform` gives them.
HostTensor noiseOf(Random &random, const Shape &shape) {
  Values values = valuesOf(random.floats(DType::F64, shape, 0, 1));
  for (double &value : values)
    value = std::min(std::floor(value * 0x1p24) * 0x1p-24, 1 - 0x1p-24);
  return makeTensor(DType::F32, shape, values);
}

TEST(QuantizedBlocks, NoiseIsAddedBeforeRoundingDown) {
  for (DType dtype : kFloatTypes) {
    HostTensor x = makeTensor(dtype, {6}, {127, 0.5, 0.5, -2.25, -2.25, 0});
    HostTensor noise = makeTensor(DType::F32, {6}, {0.875, 0.5, 0.4375, 0.25, 0.1875, 0.9375});
    KernelCall call{"quantize_blocks",
                    {x, noise},
                    {TensorType{DType::I32, {1, wordsOf(8, 6)}}},
                    attributes(8, 6)};
    expectSame(runInAllWays(call)[0], wordsTensor({blockOf(1, 8, 6, {127, 1, 0, -2, -3, 0})}),
               "blocks");
  }
}

TEST(QuantizedBlocks, NoiseKeepsTheMean) {
  constexpr int64_t rounds = 4000;
  Random random(12);
  for (DType dtype : kFloatTypes)
    for (int64_t bits : {4, 8}) {
      HostTensor x = random.floats(dtype, {3, 10}, -3, 3);
      Values values = valuesOf(x), sums(values.size());
      double step = 0; // of the integers of the block with the largest scale
      for (double value : values)
        step = std::max(step, std::abs(value) / (bits == 8 ? 127 : 7));
      for (int64_t round = 0; round < rounds; ++round) {
        KernelCall call{"quantize_blocks",
                        {x, noiseOf(random, {3, 10})},
                        {TensorType{DType::I32, {4, wordsOf(bits, 8)}}},
                        attributes(bits, 8, 1, 2)};
        // Each part has 15 elements: blocks of 8 and of 7.
        HostTensor blocks = call.run(1).front();
        Values back =
            valuesOf(dequantize(blocks, attributes(bits, 8, 1, 2), x.type).run(1).front());
        for (size_t i = 0; i < sums.size(); ++i)
          sums[i] += back[i];
      }
      // Six standard deviations of the mean, of numbers that lie at most a step apart.
      for (size_t i = 0; i < sums.size(); ++i)
        EXPECT_NEAR(sums[i] / rounds, values[i], 6 * step / 2 / std::sqrt(rounds)) << i;
    }
}

TEST(QuantizedBlocks, Refuses) {
  TensorType x{DType::F32, {4, 6}}, words{DType::I32, {6, 2}};
  auto refused = [&](const TensorType &in, const TensorType &out, const AttributeMap &how,
                     const std::string &message) {
    expectRefused({"quantize_blocks", {in}, {out}, how, {}}, message);
    expectRefused({"dequantize_blocks", {out}, {in}, how, {}}, message);
  };
  refused(x, words, attributes(5, 4), "attribute 'bits'");
  refused(x, words, attributes(8, 0), "attribute 'block'");
  refused(x, words, attributes(8, (int64_t{1} << 20) + 1), "attribute 'block'");
  refused(x, words, attributes(8, 4, 2), "attribute 'dim'");
  refused(x, words, attributes(8, 4, 1, 4), "attribute 'parts'");
  refused(x, words, attributes(8, 4, 1, 0), "attribute 'parts'");
  refused(x, {DType::I32, {6, 3}}, attributes(8, 4), "i32[6,2]");
  refused(x, {DType::I32, {7, 2}}, attributes(8, 4), "i32[6,2]");
  refused({DType::BF16, {4, 6}}, words, attributes(8, 4), "f32");
  refused({DType::F32, {}}, words, attributes(8, 4), "dimension");
  expectRefused({"quantize_blocks", {x, {DType::F32, {24}}}, {words}, attributes(8, 4), {}},
                "input 1 is f32[24], expected f32[4,6]");
  expectRefused({"quantize_blocks", {x, {DType::F64, {4, 6}}}, {words}, attributes(8, 4), {}},
                "input 1 is f64[4,6], expected f32[4,6]");
}

} // namespace dtc::runtime::test::quantizedBlocksTest
