//===- ScaledProductsTest.cpp - Products of numbers of 8 bits -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Float8.h"
#include "test/runtime/backends/conformance/KernelTest.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace dtc::runtime::test::scaledProductsTest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DType kFloat8Types[] = {DType::F8E4M3, DType::F8E5M2};

HostTensor scalar(double value) { return makeTensor(DType::F32, {}, {value}); }

/// The numbers of a format, by bits, from the definition: sign, exponent and fraction.
double numberOf(DType dtype, int bits) {
  bool isWide = dtype == DType::F8E5M2;
  int fractionBits = isWide ? 2 : 3, bias = isWide ? 15 : 7;
  int exponent = (bits & 0x7F) >> fractionBits, fraction = bits & ((1 << fractionBits) - 1);
  double sign = bits & 0x80 ? -1 : 1;
  if (isWide ? exponent == 31 : (bits & 0x7F) == 0x7F)
    return isWide && fraction == 0 ? sign * kInfinity : kNaN;
  if (exponent == 0)
    return sign * std::ldexp(fraction, 1 - bias - fractionBits);
  return sign * std::ldexp((1 << fractionBits) + fraction, exponent - bias - fractionBits);
}

double largestOf(DType dtype) { return dtype == DType::F8E5M2 ? 57344 : 448; }

/// The bits of the nearest finite number, by a search among all of them; ties have an even
/// fraction.
int nearestBits(DType dtype, double value) {
  if (std::isnan(value))
    return 0x7F;
  int best = 0;
  double magnitude = std::min(std::abs(value), largestOf(dtype));
  for (int bits = 1; bits < 0x7F; ++bits) {
    double number = numberOf(dtype, bits);
    if (!std::isfinite(number))
      break;
    double distance = std::abs(number - magnitude),
           known = std::abs(numberOf(dtype, best) - magnitude);
    if (distance < known || (distance == known && bits % 2 == 0))
      best = bits;
  }
  return best | (std::signbit(value) ? 0x80 : 0);
}

/// The scale from its definition.
double scaleOf(DType dtype, double largest) {
  if (!std::isfinite(largest))
    return kNaN;
  if (largest == 0)
    return 1;
  int exponent = 126;
  while (std::ldexp(largest, exponent) > largestOf(dtype))
    --exponent;
  return std::ldexp(1, exponent);
}

KernelCall quantize(const HostTensor &x, double largest, DType to) {
  return {"quantize_f8",
          {x, scalar(largest)},
          {TensorType{to, x.type.shape}, TensorType{DType::F32, {}}},
          {}};
}

KernelCall largestMagnitude(const HostTensor &x) {
  return {"largest_magnitude", {x}, {TensorType{DType::F32, {}}}, {}};
}

uint8_t byteOf(const HostTensor &tensor, size_t index) {
  return std::to_integer<uint8_t>(tensor.bytes[index]);
}

/// Expects the bits and the inverse scale that the definitions give.
void expectQuantized(const HostTensor &x, double largest, DType to) {
  std::vector<HostTensor> out = runInAllWays(quantize(x, largest, to));
  double scale = scaleOf(to, largest);
  Values values = valuesOf(x);
  double inverse = valuesOf(out[1])[0];
  if (std::isnan(scale))
    EXPECT_TRUE(std::isnan(inverse));
  else
    EXPECT_EQ(inverse, 1 / scale);
  for (size_t i = 0; i < values.size(); ++i) {
    int expected = nearestBits(to, values[i] * scale), found = byteOf(out[0], i);
    if (std::isnan(values[i] * scale))
      found &= 0x7F; // a NaN has any sign
    EXPECT_EQ(found, expected) << values[i] << " times " << scale << " as " << name(to);
  }
}

} // namespace

TEST(ScaledProducts, NumbersAreThoseOfTheFormats) {
  for (DType dtype : kFloat8Types) {
    HostTensor all({dtype, {256}});
    for (int bits = 0; bits < 256; ++bits) {
      all.bytes[static_cast<size_t>(bits)] = static_cast<std::byte>(bits);
      double expected = numberOf(dtype, bits), found = elementAt(all, bits);
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(found)) << bits;
      else
        EXPECT_EQ(found, expected) << bits;
    }
  }
}

TEST(ScaledProducts, RoundsToTheNearest) {
  // All numbers, what lies between neighbours, and the numbers of f32 next to that.
  for (DType to : kFloat8Types) {
    Values values = {kInfinity, -kInfinity, kNaN, 1e30, -1e30, 0, -0.0, 1e-30};
    for (int bits = 0; bits < 0x7B; ++bits) {
      double low = numberOf(to, bits), high = numberOf(to, bits + 1);
      if (!std::isfinite(high))
        break;
      auto middle = static_cast<float>((low + high) / 2);
      for (float value : {static_cast<float>(low), middle, std::nextafter(middle, 0.0F),
                          std::nextafter(middle, 1e30F)}) {
        values.push_back(value);
        values.push_back(-value);
      }
    }
    expectQuantized(makeTensor(DType::F32, {static_cast<int64_t>(values.size())}, values),
                    largestOf(to), to);
  }
}

TEST(ScaledProducts, ScalesByPowersOfTwo) {
  Random random(31);
  for (DType from : {DType::F32, DType::BF16, DType::F16})
    for (DType to : kFloat8Types)
      for (double largest : {0.0, 1e-3, 1.0, 1.75, 1.7500001, 447.0, 448.0, 449.0, 57344.0, 6e4,
                             1e20, 3e38, 1e-38, 1e-44, kInfinity, kNaN})
        expectQuantized(random.floats(from, {3, 7}, -2, 2), static_cast<float>(largest), to);
}

TEST(ScaledProducts, LargestMagnitude) {
  Random random(32);
  for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16})
    for (const Shape &shape : {Shape{}, Shape{1}, Shape{7, 5}, Shape{70000}}) {
      HostTensor x = random.floats(dtype, shape, -3, 2);
      double expected = 0;
      for (double value : valuesOf(x))
        expected = std::max(expected, std::abs(value));
      EXPECT_EQ(valuesOf(runInAllWays(largestMagnitude(x))[0])[0], static_cast<float>(expected));
    }
  for (double bad : {kNaN, kInfinity, -kInfinity}) {
    HostTensor x = random.floats(DType::F32, {3000}, -1, 1);
    setElement(x, 1234, bad);
    double found = valuesOf(runInAllWays(largestMagnitude(x))[0])[0];
    EXPECT_TRUE(std::isnan(bad) ? std::isnan(found) : found == kInfinity) << bad;
  }
}

TEST(ScaledProducts, ProductsOfAllTypes) {
  struct Case {
    std::string equation;
    Shape lhs, rhs, result;
  };
  // Forward, the gradient of the left operand, that of the right one, and dimensions that are
  // several letters.
  const Case cases[] = {{"mk,kn->mn", {16, 48}, {48, 32}, {16, 32}},
                        {"mn,kn->mk", {16, 32}, {48, 32}, {16, 48}},
                        {"mk,mn->kn", {16, 48}, {16, 32}, {48, 32}},
                        {"bsd,dahe->bsahe", {2, 16, 32}, {32, 3, 2, 16}, {2, 16, 3, 2, 16}},
                        {"bsahe,dahe->bsd", {2, 16, 3, 2, 16}, {32, 3, 2, 16}, {2, 16, 32}},
                        {"bsd,bsahe->dahe", {2, 16, 32}, {2, 16, 3, 2, 16}, {32, 3, 2, 16}}};
  Random random(33);
  for (const Case &c : cases)
    for (DType left : kFloat8Types)
      for (DType right : kFloat8Types)
        for (DType out : {DType::BF16, DType::F32}) {
          if (left == DType::F8E5M2 && right == DType::F8E5M2)
            continue;
          HostTensor lhs = random.floats(left, c.lhs, -4, 4),
                     rhs = random.floats(right, c.rhs, -4, 4);
          KernelCall call{"scaled_product",
                          {lhs, rhs, scalar(0.25), scalar(0x1p-20)},
                          {TensorType{out, c.result}},
                          {{"equation", c.equation}}};
          // The same einsum in f64.
          KernelCall wide{"einsum",
                          {makeTensor(DType::F64, c.lhs, valuesOf(lhs)),
                           makeTensor(DType::F64, c.rhs, valuesOf(rhs))},
                          {TensorType{DType::F64, c.result}},
                          {{"equation", c.equation}}};
          Values expected = valuesOf(wide.run(1)[0]), found = valuesOf(runInAllWays(call)[0]);
          double tolerance = out == DType::BF16 ? 0x1p-8 : 1e-5, most = 0;
          for (double value : expected)
            most = std::max(most, std::abs(value));
          for (size_t i = 0; i < expected.size(); ++i)
            EXPECT_NEAR(found[i], expected[i] * 0x1p-22,
                        (tolerance * std::abs(expected[i]) + 1e-5 * most) * 0x1p-22)
                << c.equation << " at " << i;
        }
}

TEST(ScaledProducts, Refuses) {
  TensorType q{DType::F8E4M3, {16, 16}}, g{DType::F8E5M2, {16, 16}}, s{DType::F32, {}},
      y{DType::BF16, {16, 16}};
  AttributeMap equation = {{"equation", std::string("mk,kn->mn")}};
  expectRefused({"scaled_product", {g, g, s, s}, {y}, equation, {}}, "expected at most one");
  expectRefused({"scaled_product", {y, q, s, s}, {y}, equation, {}}, "f8e4m3 or f8e5m2");
  expectRefused({"scaled_product", {q, q, s, s}, {{DType::F16, {16, 16}}}, equation, {}}, "bf16");
  expectRefused({"scaled_product", {q, q, s, y}, {y}, equation, {}}, "input 3");
  expectRefused({"quantize_f8", {y, s}, {y, s}, {}, {}}, "f8e4m3 or f8e5m2");
  expectRefused({"quantize_f8", {q, s}, {q, s}, {}, {}}, "f32, f64, bf16 or f16");
  expectRefused({"quantize_f8", {y, s}, {{DType::F8E4M3, {256}}, s}, {}, {}}, "output 0");
  expectRefused({"largest_magnitude", {y}, {y}, {}, {}}, "output 0");
  expectRefused({"largest_magnitude", {q}, {s}, {}, {}}, "f32, f64, bf16 or f16");
  // No other kernel takes numbers of 8 bits for those that it computes with.
  expectRefused({"add", {q, q}, {q}, {}, {}}, "f8e4m3");
  expectRefused({"einsum", {q, q}, {q}, equation, {}}, "f8e4m3");
}

} // namespace dtc::runtime::test::scaledProductsTest
