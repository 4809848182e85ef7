//===- DropoutTest.cpp - Tests of dropout and random numbers --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Float16.h"
#include "support/Philox.h"
#include "test/runtime/backends/conformance/KernelTest.h"

#include <cmath>
#include <limits>

namespace dtc::runtime::test::dropoutTest {
namespace {

constexpr DType kAllFloatTypes[] = {DType::F32, DType::F64, DType::BF16, DType::F16};
constexpr int32_t kSeed = -77, kIteration = 12, kOp = 9;

/// Whether the mask keeps the element with that index in the whole tensor, as docs/kernels.md
/// defines it.
bool keeps(double rate, int64_t element) {
  auto block = static_cast<uint64_t>(element) / 4;
  PhiloxCounter counter = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                           static_cast<uint32_t>(kIteration), 0};
  PhiloxKey key = {static_cast<uint32_t>(kSeed), static_cast<uint32_t>(kOp)};
  return philox4x32(counter, key)[static_cast<size_t>(element % 4)] >=
         static_cast<uint64_t>(std::llround(rate * 0x1p32));
}

/// The key of a step in which the loop over microbatches has run `repetition` times before.
HostTensor key(int64_t repetition = 0) {
  return makeTensor(DType::I32, {2}, {kSeed, static_cast<double>(kIteration - repetition)});
}

HostTensor randomTensor(DType dtype, const Shape &shape) {
  Values values = valuesOf(Random(130).floats(DType::F64, shape, -4, 4));
  HostTensor tensor(TensorType{dtype, shape});
  for (size_t i = 0; i < values.size(); ++i)
    setElement(tensor, static_cast<int64_t>(i), values[i]);
  return tensor;
}

AttributeMap attributes(double rate, const Shape &whole, std::vector<std::string> sharding) {
  return {
      {"rate", rate}, {"op", int64_t{kOp}}, {"shape", whole}, {"sharding", std::move(sharding)}};
}

/// x / (1 - rate), rounded as a kernel for the type does.
double scaled(DType dtype, double x, double rate) {
  if (dtype == DType::F64)
    return x * (1 / (1 - rate));
  float product = static_cast<float>(x) * static_cast<float>(1 / (1 - rate));
  return dtype == DType::BF16  ? BFloat16(product)
         : dtype == DType::F16 ? Float16(product)
                               : product;
}

TEST(Dropout, KeepsWhatTheMaskKeepsOnEveryDevice) {
  // Rows over a, columns over b and the microbatches: 5 rows in blocks of 3, the last one short.
  const Shape whole{5, 24};
  for (double rate : {0.0, 0.1, 0.75})
    for (DType dtype : kAllFloatTypes)
      for (int64_t a = 0; a < 2; ++a)
        for (int64_t b = 0; b < 2; ++b)
          for (int64_t micro = 0; micro < 3; ++micro) {
            HostTensor x = randomTensor(dtype, {3, 4});
            // More than the iteration at times: the number of the first one wraps around.
            int64_t repetition = 10 * a + 3 * b;
            KernelCall call{
                "dropout",
                {x, key(repetition)},
                {x.type},
                attributes(rate, whole, {"a", "b,micro"}),
                {{"a", 2, a, false}, {"b", 2, b, false}, {"micro", 3, micro, true, repetition}},
                {{0, 0}}};
            std::vector<std::vector<std::pair<size_t, size_t>>> ways{{}, call.inPlace};
            for (const auto &shared : ways)
              for (int threads : {1, 3}) {
                HostTensor result = call.run(threads, shared).front();
                for (int64_t row = 0; row < 3 && a * 3 + row < 5; ++row)
                  for (int64_t column = 0; column < 4; ++column) {
                    int64_t at = row * 4 + column;
                    int64_t element = (a * 3 + row) * 24 + b * 12 + micro * 4 + column;
                    double expected =
                        keeps(rate, element) ? scaled(dtype, elementAt(x, at), rate) : 0;
                    EXPECT_EQ(elementAt(result, at), expected)
                        << name(dtype) << " element " << element;
                  }
              }
          }
}

TEST(Dropout, DoesNotDependOnThreads) {
  for (const Shape &shape : {Shape{}, Shape{0}, Shape{1}, Shape{123, 457}})
    for (DType dtype : kAllFloatTypes) {
      HostTensor x = randomTensor(dtype, shape);
      KernelCall call{"dropout",
                      {x, key()},
                      {x.type},
                      attributes(0.4, shape, std::vector<std::string>(shape.size()))};
      HostTensor one = call.run(1).front();
      for (int64_t i = 0; i < x.type.numElements(); ++i)
        ASSERT_EQ(elementAt(one, i), keeps(0.4, i) ? scaled(dtype, elementAt(x, i), 0.4) : 0);
      for (int threads : {2, 3, 8})
        EXPECT_EQ(call.run(threads).front().bytes, one.bytes);
    }
}

TEST(Dropout, WhatIsLeftOutIsZeroWhateverItWas) {
  for (DType dtype : kAllFloatTypes) {
    HostTensor x(TensorType{dtype, {64}});
    for (int64_t i = 0; i < 64; ++i)
      setElement(x, i, i % 2 ? std::numeric_limits<double>::quiet_NaN() : -INFINITY);
    HostTensor result =
        KernelCall{"dropout", {x, key()}, {x.type}, attributes(0.5, {64}, {""})}.run(1).front();
    for (int64_t i = 0; i < 64; ++i) {
      double value = elementAt(result, i);
      EXPECT_EQ(keeps(0.5, i), !std::isfinite(value)) << i;
      if (!keeps(0.5, i)) {
        EXPECT_EQ(value, 0);
        EXPECT_FALSE(std::signbit(value));
      }
    }
  }
}

TEST(Dropout, Refuses) {
  TensorType x{DType::F32, {4}}, k{DType::I32, {2}}, ints{DType::I32, {4}}, wide{DType::F64, {4}};
  expectRefused({"dropout", {x}, {x}, attributes(0.5, {4}, {""}), {}}, "has 1 inputs, expected 2");
  expectRefused({"dropout", {ints, k}, {ints}, attributes(0.5, {4}, {""}), {}},
                "input 0 is i32[4], expected elements of f32, f64, bf16 or f16");
  expectRefused({"dropout", {x, k}, {wide}, attributes(0.5, {4}, {""}), {}},
                "output 0 is f64[4], expected f32[4]");
  expectRefused({"dropout", {x, ints}, {x}, attributes(0.5, {4}, {""}), {}},
                "input 1 is i32[4], expected i32[2]");
  expectRefused({"dropout", {x, k}, {x}, attributes(1, {4}, {""}), {}},
                "attribute 'rate' is 1, expected a number from 0 to less than 1");
  expectRefused({"dropout", {x, k}, {x}, attributes(0.5, {8}, {""}), {}}, "attribute 'shape'");
}

/// The number of the element with that index in the whole tensor.
double numberOf(int64_t element) {
  auto block = static_cast<uint64_t>(element) / 4;
  PhiloxCounter counter = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                           static_cast<uint32_t>(kIteration), 0};
  PhiloxKey key = {static_cast<uint32_t>(kSeed), static_cast<uint32_t>(kOp)};
  return (philox4x32(counter, key)[static_cast<size_t>(element % 4)] >> 8) * 0x1p-24;
}

AttributeMap attributesOfNumbers(const Shape &whole, std::vector<std::string> sharding) {
  return {{"op", int64_t{kOp}}, {"shape", whole}, {"sharding", std::move(sharding)}};
}

TEST(Uniform, NumbersAreThoseOfTheWholeTensorOnEveryDevice) {
  // A whole row for each device along r; columns in blocks of 3, the last one short.
  for (int64_t r = 0; r < 2; ++r)
    for (int64_t b = 0; b < 3; ++b)
      for (int threads : {1, 3}) {
        KernelCall call{"random_uniform",
                        {key()},
                        {TensorType{DType::F32, {1, 5, 3}}},
                        attributesOfNumbers({2, 5, 8}, {"r", "", "b"}),
                        {{"r", 2, r, false}, {"b", 3, b, false}}};
        HostTensor result = call.run(threads).front();
        for (int64_t row = 0; row < 5; ++row)
          for (int64_t column = 0; column < 3 && b * 3 + column < 8; ++column)
            EXPECT_EQ(elementAt(result, row * 3 + column),
                      numberOf((r * 5 + row) * 8 + b * 3 + column));
      }
}

TEST(Uniform, IsEvenOnTheUnitInterval) {
  constexpr int64_t count = 100000;
  KernelCall call{"random_uniform",
                  {key()},
                  {TensorType{DType::F32, {count}}},
                  attributesOfNumbers({count}, {""})};
  HostTensor one = call.run(1).front();
  EXPECT_EQ(call.run(4).front().bytes, one.bytes);
  std::vector<int64_t> tenths(10);
  for (int64_t i = 0; i < count; ++i) {
    double number = elementAt(one, i);
    ASSERT_TRUE(number >= 0 && number < 1) << number;
    ++tenths[static_cast<size_t>(number * 10)];
  }
  // The standard deviation of a tenth's count is 95.
  for (int64_t inTenth : tenths)
    EXPECT_NEAR(static_cast<double>(inTenth), 10000, 500);
}

TEST(Uniform, Refuses) {
  TensorType out{DType::F32, {4}}, k{DType::I32, {2}}, wide{DType::F64, {4}};
  expectRefused({"random_uniform", {}, {out}, attributesOfNumbers({4}, {""}), {}},
                "has 0 inputs, expected 1");
  expectRefused({"random_uniform", {out}, {out}, attributesOfNumbers({4}, {""}), {}},
                "input 0 is f32[4], expected i32[2]");
  expectRefused({"random_uniform", {k}, {wide}, attributesOfNumbers({4}, {""}), {}},
                "output 0 is f64[4], expected f32");
  expectRefused({"random_uniform", {k}, {out}, attributesOfNumbers({8}, {""}), {}},
                "attribute 'shape'");
}

} // namespace
} // namespace dtc::runtime::test::dropoutTest
