//===- FmaTiles.h - Products of tiles by fused multiply-adds --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_FMATILES_H
#define DTC_RUNTIME_BACKENDS_CUDA_FMATILES_H

#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/HeadRows.h"

#include <cstdint>

namespace dtc::runtime::cuda {

/// Products of tiles in W by fused multiply-adds. The threads are 16 rows of 16; of a tile of
/// scores, thread (ty, tx) has `rows` neighbouring rows and as many neighbouring columns.
template <typename F> struct FmaTiles {
  using Element = F;
  using W = Wide<F>;
  static constexpr int threads = 256;
  static constexpr int rows = 16 / sizeof(W);          // of a thread: what is read at a time
  static constexpr int scoreColumns = rows;            // of a thread
  static constexpr int size = 16 * rows, width = size; // of a tile of scores
  static constexpr int pitch = size + rows;            // between rows in shared memory
  static constexpr int depth = 32;                     // elements of heads there at a time
  /// Columns of a thread in a result of D columns; number c is columnOf(c).
  template <int D> static constexpr int columns = D / 16;

  using Scores = W[rows][scoreColumns];
  using Group = Vector<W, rows>;

  struct alignas(16) Memory {
    W stage[2 * depth * pitch];
    W weights[size * pitch]; // column by column
  };
  /// The weights lie in shared memory.
  struct Weights {};

  static __device__ __forceinline__ int tx() { return static_cast<int>(threadIdx.x % 16); }
  static __device__ __forceinline__ int ty() { return static_cast<int>(threadIdx.x / 16); }
  /// The row of a tile or a result that is number i of a thread, and the column that is number c.
  static __device__ __forceinline__ int rowOf(int i) { return ty() * rows + i; }
  static __device__ __forceinline__ int columnOf(int c) {
    return c / rows * size + tx() * rows + c % rows;
  }

  static __device__ __forceinline__ bool isFirstOfRow() { return tx() == 0; }

  /// The sum or maximum over the threads that share rows; they all get it.
  template <typename Op> static __device__ __forceinline__ W reduceRow(W value) {
#pragma unroll
    for (int distance = 8; distance > 0; distance /= 2)
      value = Op::combine(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
    return value;
  }

  /// scores += a b^T. All threads of the block call it.
  static __device__ __forceinline__ void addProduct(const HeadRows<F> &a, const HeadRows<F> &b,
                                                    Scores &scores, Memory &memory) {
    W *as = memory.stage, *bs = memory.stage + depth * pitch;
    for (int first = 0; first < a.width; first += depth) {
      __syncthreads(); // the earlier contents were read
      loadColumns(a, first, as);
      loadColumns(b, first, bs);
      __syncthreads();
#pragma unroll 8
      for (int d = 0; d < depth; ++d) {
        Group x = *reinterpret_cast<const Group *>(as + d * pitch + rowOf(0));
        Group y = *reinterpret_cast<const Group *>(bs + d * pitch + columnOf(0));
#pragma unroll
        for (int i = 0; i < rows; ++i)
#pragma unroll
          for (int j = 0; j < rows; ++j)
            scores[i][j] += x.at[i] * y.at[j];
      }
    }
  }

  /// The tile as addWeighted() takes it.
  static __device__ __forceinline__ Weights pack(const Scores &tile, Memory &memory) {
    __syncthreads(); // the tile before has been read
#pragma unroll
    for (int j = 0; j < rows; ++j) {
      Group column;
#pragma unroll
      for (int i = 0; i < rows; ++i)
        column.at[i] = tile[i][j];
      *reinterpret_cast<Group *>(memory.weights + columnOf(j) * pitch + rowOf(0)) = column;
    }
    return {};
  }

  /// sums += weights * values, for the weights of the last pack() and a row of `values` for each of
  /// their columns.
  template <int D>
  static __device__ __forceinline__ void addWeighted(const Weights &, const HeadRows<F> &values,
                                                     W (&sums)[rows][columns<D>], Memory &memory) {
    constexpr int chunk = size * 64 / D;
    static_assert(chunk * D <= 2 * depth * pitch && D % size == 0);
    for (int first = 0; first < values.rows; first += chunk) {
      __syncthreads(); // the earlier contents have been read; the weights are complete
#pragma unroll 4
      for (int step = 0; step < chunk * D / threads; ++step) {
        int i = step * threads + static_cast<int>(threadIdx.x);
        int row = first + i / D, d = i % D;
        memory.stage[i] = row < values.rows && d < values.width
                              ? widen(values.data[row * values.stride + d])
                              : W(0);
      }
      __syncthreads();
#pragma unroll 4
      for (int k = 0; k < chunk; ++k) {
        Group x = *reinterpret_cast<const Group *>(memory.weights + (first + k) * pitch + rowOf(0));
#pragma unroll
        for (int c = 0; c < columns<D>; c += rows) {
          Group y = *reinterpret_cast<const Group *>(memory.stage + k * D + columnOf(c));
#pragma unroll
          for (int i = 0; i < rows; ++i)
#pragma unroll
            for (int j = 0; j < rows; ++j)
              sums[i][c + j] += x.at[i] * y.at[j];
        }
      }
    }
  }

private:
  /// Elements [first, first + depth) of all rows, an element of all rows after the other.
  static __device__ __forceinline__ void loadColumns(const HeadRows<F> &from, int first, W *to) {
#pragma unroll
    for (int step = 0; step < depth * size / threads; ++step) {
      int i = step * threads + static_cast<int>(threadIdx.x);
      int row = i / depth, d = i % depth;
      to[d * pitch + row] = row < from.rows && first + d < from.width
                                ? widen(from.data[row * from.stride + first + d])
                                : W(0);
    }
  }
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_FMATILES_H
