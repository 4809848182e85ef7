//===- VectorMath.h - Functions that the compiler can vectorise -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// For float: straight-line approximations, within 2e-7 of the exact value (relative, where the
// result is a normal number), that follow the C library for infinities and NaN. For double: the C
// library.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_VECTORMATH_H
#define DTC_RUNTIME_BACKENDS_CPU_VECTORMATH_H

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace dtc::runtime::cpu::vmath {

namespace detail {

/// 2^n for n in [-126, 127].
inline float powerOfTwo(int32_t n) { return std::bit_cast<float>((n + 127) << 23); }

/// Splits x = n * log(2) + r with |r| <= log(2) / 2 and gives exp(r) - 1 - r.
inline float reduceExp(float x, int32_t &n, float &r) {
  // Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
  float shifted = x * 1.44269504f + 12582912.0f;
  n = std::bit_cast<int32_t>(shifted) - 0x4B400000;
  float rounded = shifted - 12582912.0f;
  // log(2) in two parts; the first has few bits, so its product with n is exact.
  r = x - rounded * 0.693359375f;
  r = r + rounded * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * (r * r);
}

} // namespace detail

inline double exp(double x) { return std::exp(x); }
inline float exp(float x) {
  // Beyond these bounds the result is infinity or zero all the same. A NaN passes both comparisons.
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  int32_t n;
  float r;
  float tail = detail::reduceExp(x, n, r);
  float result = tail + r + 1.0f;
  // In two factors, since 2^n itself may lie outside the normal numbers.
  int32_t half = n >> 1;
  return result * detail::powerOfTwo(half) * detail::powerOfTwo(n - half);
}

/// exp(x) for x in [-87, 88], whose results are normal numbers; beyond, that of the bound. Half of
/// the instructions of exp. A NaN stays one.
inline double expInBounds(double x) { return std::exp(x); }
inline float expInBounds(float x) {
  x = 88.0f < x ? 88.0f : x;
  x = -87.0f > x ? -87.0f : x;
  float shifted = x * 1.44269504f + 12582912.0f;
  float rounded = shifted - 12582912.0f;
  float r = x - rounded * 0.693359375f;
  r = r + rounded * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // The low bits of `shifted` are the exponent.
  uint32_t bits = (std::bit_cast<uint32_t>(shifted) << 23) + (127u << 23);
  return p * std::bit_cast<float>(bits);
}

inline double log(double x) { return std::log(x); }
inline float log(float x) {
  // Numbers below the normal ones are scaled up first.
  bool tiny = x < 1.17549435e-38f;
  float scaled = tiny ? x * 33554432.0f : x;
  auto bits = std::bit_cast<uint32_t>(scaled); // unsigned: those of negative numbers wrap around
  // scaled = 2^exponent * m with m in [sqrt(1/2), sqrt(2)).
  int32_t exponent = static_cast<int32_t>(bits - 0x3F3504F3u) >> 23;
  float m = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23)) - 1.0f;
  float e = static_cast<float>(exponent) - (tiny ? 25.0f : 0.0f);
  float square = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  float tail = p * m * square - e * 2.12194440e-4f - 0.5f * square;
  float result = m + tail + e * 0.693359375f;
  result = x == 0.0f ? -std::numeric_limits<float>::infinity() : result;
  result = x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : result;
  // Infinity and NaN are their own logarithms.
  return x < std::numeric_limits<float>::infinity() ? result : x;
}

/// ln(1 + x) for x in [0, 1], accurate for small x too: the logarithm of the rounded sum, corrected
/// for the rounding. Source: Goldberg, "What Every Computer Scientist Should Know About
/// Floating-Point Arithmetic" (ACM Computing Surveys 23(1), 1991), theorem 4.
inline double log1p(double x) { return std::log1p(x); }
inline float log1p(float x) {
  float sum = 1.0f + x;
  float rounded = sum - 1.0f;
  float corrected = log(sum) * (x / rounded);
  return rounded == 0.0f ? x : corrected;
}

inline double tanh(double x) { return std::tanh(x); }
inline float tanh(float x) {
  // tanh(|x|) = e / (e + 2) with e = exp(2|x|) - 1, which keeps its accuracy near zero.
  float y = 2.0f * std::fabs(x);
  y = y > 20.0f ? 20.0f : y;
  int32_t n;
  float r;
  float tail = detail::reduceExp(y, n, r);
  float scale = detail::powerOfTwo(n);
  float e = (tail + r) * scale + (scale - 1.0f);
  return std::copysign(e / (e + 2.0f), x);
}

template <typename F> inline F sigmoid(F x) { return F(1) / (F(1) + exp(-x)); }

/// ln(1 + e^x).
template <typename F> inline F softplus(F x) {
  return (x < F(0) ? F(0) : x) + log1p(exp(-std::fabs(x)));
}

/// The sigmoid and its derivative, which 1 - sigmoid(x) would cost its accuracy for large x.
template <typename F> inline F sigmoidAndSlope(F x, F &slope) {
  F e = exp(-std::fabs(x));
  F inverse = F(1) / (F(1) + e);
  slope = e * inverse * inverse;
  return x < F(0) ? e * inverse : inverse;
}

inline double erf(double x) { return std::erf(x); }
inline float erf(float x) {
  // Two polynomials by N. Juffa: erf itself near zero, the logarithm of 1 - erf beyond.
  float t = std::fabs(x);
  float s = x * x;
  float r = -1.72853470e-5f * t + 3.83197126e-4f;
  float u = -3.88396438e-3f * t + 2.42546219e-2f;
  r = r * s + u;
  r = r * t - 1.06777877e-1f;
  r = r * t - 6.34846687e-1f;
  r = r * t - 1.28717512e-1f;
  r = r * t - t;
  float far = std::copysign(1.0f - exp(r), x);
  float p = -5.96761703e-4f;
  p = p * s + 4.99119423e-3f;
  p = p * s - 2.67681349e-2f;
  p = p * s + 1.12819925e-1f;
  p = p * s - 3.76125336e-1f;
  p = p * s + 1.28379166e-1f;
  float near = p * x + x;
  // The polynomial of the far part grows without bound beyond 4, where erf is 1.
  far = t > 4.0f ? std::copysign(1.0f, x) : far;
  return t > 0.927734375f ? far : near;
}

} // namespace dtc::runtime::cpu::vmath

#endif // DTC_RUNTIME_BACKENDS_CPU_VECTORMATH_H
