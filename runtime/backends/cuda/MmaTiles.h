//===- MmaTiles.h - Products of tiles by tensor cores ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_MMATILES_H
#define DTC_RUNTIME_BACKENDS_CUDA_MMATILES_H

#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/HeadRows.h"
#include "runtime/backends/cuda/MatrixUnits.h"

#include <cstdint>

namespace dtc::runtime::cuda {

/// Products of tiles of 16-bit elements, summed in f32. Weights are rounded to 16 bits on their way
/// to the second product. A tile of scores has `size` rows, 16 of each of the four warps, and N
/// columns. In a warp, lane l has the rows l / 4 and l / 4 + 8 and of each 8 columns the pair
/// 2 (l mod 4), as the instructions have it (MatrixUnits.h).
template <typename F, int N> struct MmaTiles {
  using Element = F;
  using W = float;
  static constexpr int threads = 128;
  static constexpr int size = 64, width = N;           // of a tile of scores
  static constexpr int rows = 2, scoreColumns = N / 4; // of a thread
  template <int D> static constexpr int columns = D / 4;
  static constexpr int depth = 64;              // elements of heads in shared memory at a time
  static constexpr int pitch = (depth + 8) / 2; // words between rows there; banks do not conflict

  using Scores = W[rows][scoreColumns];

  struct alignas(16) Memory {
    uint32_t left[size * pitch], right[N * pitch];
  };
  /// The weights of a thread as left operands, for each 16 columns.
  struct Weights {
    uint32_t words[N / 16][4];
  };

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x % 32); }
  static __device__ __forceinline__ int rowOf(int i) {
    return static_cast<int>(threadIdx.x / 32) * 16 + lane() / 4 + 8 * i;
  }
  static __device__ __forceinline__ int columnOf(int c) {
    return c / 2 * 8 + lane() % 4 * 2 + c % 2;
  }
  static __device__ __forceinline__ bool isFirstOfRow() { return lane() % 4 == 0; }

  template <typename Op> static __device__ __forceinline__ W reduceRow(W value) {
    value = Op::combine(value, __shfl_xor_sync(0xFFFFFFFFu, value, 2));
    return Op::combine(value, __shfl_xor_sync(0xFFFFFFFFu, value, 1));
  }

  static __device__ __forceinline__ void addProduct(const HeadRows<F> &a, const HeadRows<F> &b,
                                                    Scores &scores, Memory &memory) {
    for (int first = 0; first < a.width; first += depth) {
      __syncthreads(); // the earlier contents were read
      load<size>(a, first, memory.left);
      load<N>(b, first, memory.right);
      __syncthreads();
#pragma unroll
      for (int d = 0; d < depth; d += 16) {
        if (first + d >= a.width)
          break;
        const uint32_t *x = memory.left + rowOf(0) * pitch + d / 2 + lane() % 4;
        uint32_t left[4] = {x[0], x[8 * pitch], x[4], x[8 * pitch + 4]}, right[N / 8][2];
#pragma unroll
        for (int n = 0; n < N / 8; ++n) {
          const uint32_t *y = memory.right + (n * 8 + lane() / 4) * pitch + d / 2 + lane() % 4;
          right[n][0] = y[0];
          right[n][1] = y[4];
        }
        multiplyAdd<F>(scores, 0, left, right);
      }
    }
  }

  /// Rows and columns of results of the instructions are those of their left operands.
  static __device__ __forceinline__ Weights pack(const Scores &tile, Memory &) {
    Weights weights;
#pragma unroll
    for (int k = 0; k < N / 16; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        weights.words[k][i] = packPair(narrow<F>(tile[i % 2][4 * k + i / 2 * 2]),
                                       narrow<F>(tile[i % 2][4 * k + i / 2 * 2 + 1]));
    return weights;
  }

  template <int D>
  static __device__ __forceinline__ void addWeighted(const Weights &weights,
                                                     const HeadRows<F> &values,
                                                     W (&sums)[rows][columns<D>], Memory &memory) {
#pragma unroll
    for (int first = 0; first < D; first += depth) {
      if (first >= values.width)
        break;
      __syncthreads(); // the earlier contents were read
      load<N>(values, first, memory.right);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < N / 16; ++k) {
        uint32_t right[depth / 8][2];
#pragma unroll
        for (int n = 0; n < depth / 8; n += 2)
          loadTransposed(memory.right + 16 * k * pitch + 4 * n, pitch, right[n], right[n + 1]);
        multiplyAdd<F>(sums, first / 4, weights.words[k], right);
      }
    }
  }

private:
  /// Elements [first, first + depth) of `Count` rows.
  template <int Count>
  static __device__ __forceinline__ void load(const HeadRows<F> &from, int first, uint32_t *to) {
    using Words = Vector<uint32_t, 4>;
    constexpr int perWords = 8; // elements
    bool isAligned = (reinterpret_cast<uintptr_t>(from.data) % sizeof(Words) == 0) &&
                     from.stride % perWords == 0 && from.width % perWords == 0;
#pragma unroll
    for (int step = 0; step < Count * depth / perWords / threads; ++step) {
      int i = step * threads + static_cast<int>(threadIdx.x);
      int row = i / (depth / perWords), column = i % (depth / perWords) * perWords;
      const F *at = from.data + row * from.stride + first + column;
      int left = row < from.rows ? from.width - first - column : 0; // in the row, from here on
      Words words = {};
      if (isAligned && left > 0) {
        words = *reinterpret_cast<const Words *>(at);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
          words.at[e] = packPair(2 * e < left ? at[2 * e] : F(0.0f),
                                 2 * e + 1 < left ? at[2 * e + 1] : F(0.0f));
      }
      *reinterpret_cast<Words *>(to + row * pitch + column / 2) = words;
    }
  }
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_MMATILES_H
