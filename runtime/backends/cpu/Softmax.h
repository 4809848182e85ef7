//===- Softmax.h - Exponentials of a row ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_SOFTMAX_H
#define DTC_RUNTIME_BACKENDS_CPU_SOFTMAX_H

#include "runtime/backends/cpu/Accumulate.h"
#include "runtime/backends/cpu/VectorMath.h"

#include <cmath>

namespace dtc::runtime::cpu {

// Functions of one row. They are meant to be called in simd().

/// y = exp(scale * x - shift); the result is the sum of y. y may be x.
template <typename F> inline F exponentials(const F *x, F *y, int64_t width, F scale, F shift) {
  F sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < width; ++i) {
    F e = vmath::exp(scale * x[i] - shift);
    y[i] = e;
    sum += e;
  }
  return sum;
}

/// y = softmax(scale * x); y may be x.
template <typename F> inline void softmaxRow(const F *x, F *y, int64_t width, F scale) {
  F shift = scale * (scale < 0 ? minOf(x, width) : maxOf(x, width));
  F inverse = F(1) / exponentials(x, y, width, scale, shift);
#pragma omp simd
  for (int64_t i = 0; i < width; ++i)
    y[i] *= inverse;
}

/// log(sum(exp(x))).
template <typename F> inline F logSumExp(const F *x, int64_t width) {
  F largest = maxOf(x, width);
  double sum = sumInBlocks(0, width, [=](int64_t first, int64_t count) {
    F block = 0;
#pragma omp simd reduction(+ : block)
    for (int64_t i = first; i < first + count; ++i)
      block += vmath::exp(x[i] - largest);
    return block;
  });
  return largest + static_cast<F>(std::log(sum));
}

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_SOFTMAX_H
