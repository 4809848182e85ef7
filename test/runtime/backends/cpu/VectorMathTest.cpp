//===- VectorMathTest.cpp - Functions that the compiler can vectorise -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/VectorMath.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace dtc::runtime::cpu::vectorMathTest {
namespace {

using Approximation = float (*)(float);
using Exact = double (*)(double);

/// The largest relative error on a grid of [low, high].
double relativeError(Approximation approximation, Exact exact, float low, float high) {
  double worst = 0;
  constexpr int steps = 400000;
  for (int i = 0; i <= steps; ++i) {
    float x = low + (high - low) * (static_cast<float>(i) / steps);
    double want = exact(x);
    if (want != 0)
      worst = std::max(worst, std::fabs(approximation(x) - want) / std::fabs(want));
  }
  return worst;
}

constexpr double kBound = 2e-7;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(VectorMath, Exp) {
  Exact exact = [](double x) { return std::exp(x); };
  EXPECT_LT(relativeError(vmath::exp, exact, -87, 88.7f), kBound);
  EXPECT_LT(relativeError(vmath::exp, exact, -1, 1), kBound);
  // Between the smallest normal number and zero the absolute error counts.
  for (int hundredths = -11000; hundredths < -8700; ++hundredths) {
    float x = static_cast<float>(hundredths) / 100;
    EXPECT_NEAR(vmath::exp(x), std::exp(static_cast<double>(x)), 2e-45);
  }
  EXPECT_EQ(vmath::exp(0.0f), 1.0f);
  EXPECT_EQ(vmath::exp(kInfinity), kInfinity);
  EXPECT_EQ(vmath::exp(89.0f), kInfinity);
  EXPECT_EQ(vmath::exp(-kInfinity), 0.0f);
  EXPECT_TRUE(std::isnan(vmath::exp(std::nanf(""))));
}

TEST(VectorMath, ExpInBounds) {
  Exact exact = [](double x) { return std::exp(x); };
  EXPECT_LT(relativeError(vmath::expInBounds, exact, -87, 88), kBound);
  EXPECT_LT(relativeError(vmath::expInBounds, exact, -1, 1), kBound);
  EXPECT_EQ(vmath::expInBounds(0.0f), 1.0f);
  EXPECT_EQ(vmath::expInBounds(kInfinity), vmath::expInBounds(88.0f));
  EXPECT_EQ(vmath::expInBounds(-kInfinity), vmath::expInBounds(-87.0f));
  EXPECT_GT(vmath::expInBounds(-87.0f), 0.0f);
  EXPECT_TRUE(std::isnan(vmath::expInBounds(std::nanf("1"))));
}

TEST(VectorMath, Log) {
  Exact exact = [](double x) { return std::log(x); };
  EXPECT_LT(relativeError(vmath::log, exact, 1e-30f, 10), kBound);
  EXPECT_LT(relativeError(vmath::log, exact, 0.5f, 1.5f), kBound);
  EXPECT_LT(relativeError(vmath::log, exact, 0.999f, 1.001f), kBound);
  EXPECT_LT(relativeError(vmath::log, exact, 1e-44f, 1e-37f), kBound);
  EXPECT_LT(relativeError(vmath::log, exact, 1e30f, 3e38f), kBound);
  EXPECT_EQ(vmath::log(1.0f), 0.0f);
  EXPECT_EQ(vmath::log(0.0f), -kInfinity);
  EXPECT_EQ(vmath::log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(vmath::log(-1.0f)));
  EXPECT_TRUE(std::isnan(vmath::log(-kInfinity)));
  EXPECT_TRUE(std::isnan(vmath::log(std::nanf(""))));
}

TEST(VectorMath, Tanh) {
  Exact exact = [](double x) { return std::tanh(x); };
  EXPECT_LT(relativeError(vmath::tanh, exact, -20, 20), kBound);
  EXPECT_LT(relativeError(vmath::tanh, exact, -1, 1), kBound);
  EXPECT_LT(relativeError(vmath::tanh, exact, -1e-3f, 1e-3f), kBound);
  EXPECT_LT(relativeError(vmath::tanh, exact, -1e-30f, 1e-30f), kBound);
  EXPECT_EQ(vmath::tanh(kInfinity), 1.0f);
  EXPECT_EQ(vmath::tanh(-kInfinity), -1.0f);
  EXPECT_TRUE(std::signbit(vmath::tanh(-0.0f)));
  EXPECT_TRUE(std::isnan(vmath::tanh(std::nanf(""))));
}

TEST(VectorMath, Erf) {
  Exact exact = [](double x) { return std::erf(x); };
  EXPECT_LT(relativeError(vmath::erf, exact, -6, 6), kBound);
  EXPECT_LT(relativeError(vmath::erf, exact, -1e-3f, 1e-3f), kBound);
  EXPECT_EQ(vmath::erf(kInfinity), 1.0f);
  EXPECT_EQ(vmath::erf(-100.0f), -1.0f);
  EXPECT_TRUE(std::isnan(vmath::erf(std::nanf(""))));
}

TEST(VectorMath, Sigmoid) {
  Exact exact = [](double x) { return 1 / (1 + std::exp(-x)); };
  // The error of the sum below adds to that of exp.
  EXPECT_LT(relativeError(vmath::sigmoid<float>, exact, -80, 80), 1.5 * kBound);
  for (double x : {-30.0, -1.0, 0.0, 0.5, 3.0, 30.0}) {
    double s = exact(x), slope;
    EXPECT_NEAR(vmath::sigmoidAndSlope(x, slope) / s, 1, 1e-14);
    EXPECT_NEAR(slope / (s * exact(-x)), 1, 1e-14);
  }
  float slope;
  EXPECT_EQ(vmath::sigmoidAndSlope(kInfinity, slope), 1.0f);
  EXPECT_EQ(slope, 0.0f);
  EXPECT_EQ(vmath::sigmoidAndSlope(-kInfinity, slope), 0.0f);
  EXPECT_EQ(slope, 0.0f);
}

TEST(VectorMath, Softplus) {
  Exact exact = [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); };
  // The errors of exp, of the logarithm and of the sum add.
  EXPECT_LT(relativeError(vmath::softplus<float>, exact, -80, 80), 2.5 * kBound);
  EXPECT_LT(relativeError(vmath::softplus<float>, exact, -1, 1), 2.5 * kBound);
  EXPECT_EQ(vmath::softplus(kInfinity), kInfinity);
  EXPECT_EQ(vmath::softplus(-kInfinity), 0.0f);
  EXPECT_TRUE(std::isnan(vmath::softplus(std::nanf(""))));
}

} // namespace
} // namespace dtc::runtime::cpu::vectorMathTest
