//===- Accumulate.h - Sums and extremes of many elements ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Long sums are cut into blocks: a block is summed in the element type, with one accumulator for
// each SIMD lane, and the blocks are added in double. The error then does not grow with the length,
// and the order depends on the length alone.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_ACCUMULATE_H
#define DTC_RUNTIME_BACKENDS_CPU_ACCUMULATE_H

#include "runtime/backends/cpu/Parallel.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace dtc::runtime::cpu {

/// Elements that are summed without going to double.
inline constexpr int64_t kSumBlock = 1024;

// Functions of contiguous elements. They are meant to be called in simd().

template <typename F> inline F sumOf(const F *x, int64_t count) {
  F sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i)
    sum += x[i];
  return sum;
}

template <typename F> inline F dotOf(const F *x, const F *y, int64_t count) {
  F sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i)
    sum += x[i] * y[i];
  return sum;
}

/// The largest element, NaN if one is NaN, minus infinity if there are none.
template <typename F> inline F maxOf(const F *x, int64_t count) {
  F largest = -std::numeric_limits<F>::infinity();
  int nan = 0;
#pragma omp simd reduction(max : largest) reduction(| : nan)
  for (int64_t i = 0; i < count; ++i) {
    largest = x[i] > largest ? x[i] : largest;
    nan |= x[i] != x[i];
  }
  return nan ? std::numeric_limits<F>::quiet_NaN() : largest;
}

template <typename F> inline F minOf(const F *x, int64_t count) {
  F smallest = std::numeric_limits<F>::infinity();
  int nan = 0;
#pragma omp simd reduction(min : smallest) reduction(| : nan)
  for (int64_t i = 0; i < count; ++i) {
    smallest = x[i] < smallest ? x[i] : smallest;
    nan |= x[i] != x[i];
  }
  return nan ? std::numeric_limits<F>::quiet_NaN() : smallest;
}

/// The sum over [begin, end) of block(first, count), each at most kSumBlock elements long.
template <typename Block>
inline double sumInBlocks(int64_t begin, int64_t end, const Block &block) {
  double sum = 0;
  for (int64_t first = begin; first < end; first += kSumBlock)
    sum += static_cast<double>(block(first, std::min(kSumBlock, end - first)));
  return sum;
}

/// Elements whose partial result one thread computes at a time in reduceInTiles.
inline constexpr int64_t kReduceTile = 16 * kSumBlock;
inline int64_t numReduceTiles(int64_t count) { return (count + kReduceTile - 1) / kReduceTile; }

/// Combines chunk(begin, end) over [0, count) in order, the chunks computed in parallel. `partials`
/// has room for numReduceTiles(count) results.
template <typename R, typename Chunk, typename Combine>
R reduceInTiles(int threads, int64_t count, R identity, R *partials, const Chunk &chunk,
                const Combine &combine) {
  int64_t chunks = numReduceTiles(count);
  parallelFor(threads, chunks, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      partials[i] = chunk(i * kReduceTile, std::min((i + 1) * kReduceTile, count));
  });
  R result = identity;
  for (int64_t i = 0; i < chunks; ++i)
    result = combine(result, partials[i]);
  return result;
}

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_ACCUMULATE_H
