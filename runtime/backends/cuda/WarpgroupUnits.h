//===- WarpgroupUnits.h - Products of tiles by four warps together --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The instructions wgmma of Hopper: a warpgroup, four warps, multiplies matrices of 16-bit elements
// that lie in shared memory, the left one also in registers, and goes on while it is done. They
// need code for sm_90a, which is what DTC_HAS_WARPGROUPS says; compiled as C++ for the tests, the
// stand-in of CUDA multiplies.
//
// A tile has 64 rows of 64 elements, 128 bytes each. So that neither its rows nor its columns share
// banks, the piece p of 16 bytes of row r lies at place p ^ (r mod 8): the instructions call it a
// swizzle of 128 bytes.
//
// Results and left operands in registers are as those of mma.m16n8k16 (MatrixUnits.h) for the 16
// rows of each warp: of each 8 columns, lane l has the pair 2 (l mod 4) of the rows l / 4 and
// l / 4 + 8.
//
// Source: NVIDIA, "Parallel Thread Execution ISA", "Asynchronous Warpgroup Level Matrix
// Multiply-Accumulate Instructions".
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_WARPGROUPUNITS_H
#define DTC_RUNTIME_BACKENDS_CUDA_WARPGROUPUNITS_H

#include "runtime/backends/cuda/HeadRows.h"
#include "runtime/backends/cuda/MatrixUnits.h"

#include <cstdint>
#include <type_traits>

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || !defined(__CUDACC__)
#define DTC_HAS_WARPGROUPS 1
#else
#define DTC_HAS_WARPGROUPS 0
#endif

namespace dtc::runtime::cuda {

inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kTileSize = 64; // rows, and elements of a row

/// In shared memory. The instructions want the beginning at a multiple of 1024 bytes.
struct alignas(1024) SwizzledTile {
  static constexpr int kRowWords = kTileSize / 2;
  uint32_t words[kTileSize * kRowWords];

  /// Where word `word` of a row lies.
  static __device__ __forceinline__ int placeOf(int row, int word) {
    return row * kRowWords + ((word / 4) ^ (row % 8)) * 4 + word % 4;
  }
};

/// A 64 x 64 result in f32, of a thread: element 4 j + 2 i + e is that of row rowOf(i) and column
/// columnOf(j) + e.
struct WarpgroupResult {
  float at[kTileSize / 2];

  static constexpr int kRows = 2, kPairs = kTileSize / 8;
  static __device__ __forceinline__ int rowOf(int i) {
    return static_cast<int>(threadIdx.x % kWarpgroupThreads / 32 * 16 + threadIdx.x % 32 / 4) +
           8 * i;
  }
  static __device__ __forceinline__ int columnOf(int j) {
    return 8 * j + static_cast<int>(threadIdx.x % 4) * 2;
  }
};

/// A result rounded to 16 bits, as a left operand.
struct WarpgroupOperand {
  uint32_t words[kTileSize / 16][4];
};

template <typename F> __device__ __forceinline__ uint32_t packNarrow(float first, float second) {
#ifdef __CUDACC__
  uint32_t word;
  if constexpr (std::is_same_v<F, __half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
#else
  return packPair(narrow<F>(first), narrow<F>(second));
#endif
}

template <typename F>
__device__ __forceinline__ WarpgroupOperand packOperand(const WarpgroupResult &result) {
  WarpgroupOperand operand;
#pragma unroll
  for (int k = 0; k < kTileSize / 16; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      operand.words[k][i] = packNarrow<F>(result.at[8 * k + 2 * i], result.at[8 * k + 2 * i + 1]);
  return operand;
}

#ifdef __CUDACC__

/// Begins to copy rows of 64 elements, whose address and stride are multiples of 16 bytes, with
/// zeros after the last, by all threads of a warpgroup.
template <typename F>
__device__ __forceinline__ void beginCopy(const HeadRows<F> &from, SwizzledTile &to) {
  constexpr int kPieces = kTileSize / 8; // of a row
  constexpr int kStepRows = kWarpgroupThreads / kPieces;
  int thread = static_cast<int>(threadIdx.x % kWarpgroupThreads);
  int row = thread / kPieces, piece = thread % kPieces;
  size_t at = __cvta_generic_to_global(from.data + row * from.stride + piece * 8);
  auto place = static_cast<uint32_t>(
      __cvta_generic_to_shared(to.words + SwizzledTile::placeOf(row, piece * 4)));
#pragma unroll
  for (int first = 0; first < kTileSize; first += kStepRows) {
    // Nothing is read where no byte is to be copied.
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(place), "l"(at), "r"(row + first < from.rows ? 16 : 0)
                 : "memory");
    at += static_cast<size_t>(kStepRows * from.stride) * sizeof(F);
    // The place within a row is that of the row 16 above.
    place += kStepRows * SwizzledTile::kRowWords * sizeof(uint32_t);
  }
}
/// Waits for all copies of the thread. The instructions see what all threads have copied after a
/// barrier. The fence for that waits for all accesses to memory, so that no copy should be under
/// way that is needed later.
__device__ __forceinline__ void waitForCopies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// The compiler does not move the instructions that compute a result, or use it, across this point.
__device__ __forceinline__ void keepOrder(WarpgroupResult &result) {
#pragma unroll
  for (float &value : result.at)
    asm volatile("" : "+f"(value) : : "memory");
}
__device__ __forceinline__ void keepOrder(WarpgroupOperand &operand) {
#pragma unroll
  for (auto &words : operand.words)
#pragma unroll
    for (uint32_t &word : words)
      asm volatile("" : "+r"(word) : : "memory");
}

#if DTC_HAS_WARPGROUPS

/// The description of a tile for the instructions: its address and the distance between groups of 8
/// rows, both in units of 16 bytes, and the swizzle of 128 bytes. The distance at bit 16 is of no
/// importance to a single tile.
__device__ __forceinline__ uint64_t descriptorOf(const SwizzledTile &tile) {
  auto address = static_cast<uint32_t>(__cvta_generic_to_shared(tile.words));
  return uint64_t{(address & 0x3FFFF) >> 4} | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 |
         uint64_t{1} << 62;
}

// clang-format off
#define DTC_EIGHT(c, i)                                                                            \
  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]),      \
      "+f"(c[i + 6]), "+f"(c[i + 7])
#define DTC_RESULT(c) DTC_EIGHT(c, 0), DTC_EIGHT(c, 8), DTC_EIGHT(c, 16), DTC_EIGHT(c, 24)
#define DTC_RESULT_NAMES                                                                           \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                        \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
/// c = a b^T, or with `adds` not 0 c += a b^T, for 16 elements of the rows of both.
#define DTC_MULTIPLY_ROWS(type)                                                                    \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                        \
               "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " " DTC_RESULT_NAMES    \
               "%32, %33, p, 1, 1, 0, 0;\n}"                                                       \
               : DTC_RESULT(c) : "l"(a), "l"(b), "r"(adds) : "memory")
/// c += a b, for 16 columns of a, in registers, and as many rows of b.
#define DTC_MULTIPLY_COLUMNS(type)                                                                 \
  asm volatile("{\n.reg .pred p;\nsetp.eq.b32 p, 0, 0;\n"                                         \
               "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " " DTC_RESULT_NAMES    \
               "{%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}"                                         \
               : DTC_RESULT(c) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b) : "memory")
// clang-format on

template <typename F>
__device__ __forceinline__ void multiplyRows(float (&c)[32], uint64_t a, uint64_t b, int adds) {
  if constexpr (std::is_same_v<F, __half>)
    DTC_MULTIPLY_ROWS("f16");
  else
    DTC_MULTIPLY_ROWS("bf16");
}
template <typename F>
__device__ __forceinline__ void multiplyColumns(float (&c)[32], const uint32_t (&a)[4],
                                                uint64_t b) {
  if constexpr (std::is_same_v<F, __half>)
    DTC_MULTIPLY_COLUMNS("f16");
  else
    DTC_MULTIPLY_COLUMNS("bf16");
}

#undef DTC_EIGHT
#undef DTC_RESULT
#undef DTC_RESULT_NAMES
#undef DTC_MULTIPLY_ROWS
#undef DTC_MULTIPLY_COLUMNS

/// Comes before the first product that uses registers which were written since the last.
__device__ __forceinline__ void beginProducts() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
/// The products begun since the last call become one group.
__device__ __forceinline__ void endProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits for all groups but the last `Left`; the registers of the others must not be touched.
template <int Left> __device__ __forceinline__ void waitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(Left) : "memory");
}

/// Begins result = a b^T.
template <typename F>
__device__ __forceinline__ void beginProduct(WarpgroupResult &result, const SwizzledTile &a,
                                             const SwizzledTile &b) {
  uint64_t left = descriptorOf(a), right = descriptorOf(b);
#pragma unroll
  for (int k = 0; k < kTileSize / 16; ++k)
    multiplyRows<F>(result.at, left + 2 * k, right + 2 * k, k);
}

/// Begins result += a b.
template <typename F>
__device__ __forceinline__ void beginAdding(WarpgroupResult &result, const WarpgroupOperand &a,
                                            const SwizzledTile &b) {
  uint64_t right = descriptorOf(b);
#pragma unroll
  for (int k = 0; k < kTileSize / 16; ++k)
    multiplyColumns<F>(result.at, a.words[k], right + 128 * k);
}

#endif

#else

template <typename F> void beginCopy(const HeadRows<F> &from, SwizzledTile &to) {
  for (int i = static_cast<int>(threadIdx.x); i < kTileSize * SwizzledTile::kRowWords;
       i += kWarpgroupThreads) {
    int row = i / SwizzledTile::kRowWords, word = i % SwizzledTile::kRowWords;
    const F *at = from.data + row * from.stride + 2 * word;
    to.words[SwizzledTile::placeOf(row, word)] = row < from.rows ? packPair(at[0], at[1]) : 0;
  }
}
inline void waitForCopies() {}
inline void keepOrder(WarpgroupResult &) {}
inline void keepOrder(WarpgroupOperand &) {}
inline void beginProducts() {}
inline void endProducts() {}
template <int Left> void waitForProducts() {}

template <typename F>
void beginProduct(WarpgroupResult &result, const SwizzledTile &a, const SwizzledTile &b) {
  result = {};
  int group = static_cast<int>(threadIdx.x % 32 / 4), pair = static_cast<int>(threadIdx.x % 4);
  auto word = [&](const SwizzledTile &tile, int row, int at) {
    return tile.words[SwizzledTile::placeOf(row, at + pair)];
  };
  for (int k = 0; k < kTileSize / 2; k += 8) {
    int row = WarpgroupResult::rowOf(0);
    uint32_t left[4] = {word(a, row, k), word(a, row + 8, k), word(a, row, k + 4),
                        word(a, row + 8, k + 4)};
    for (int j = 0; j < WarpgroupResult::kPairs; ++j) {
      uint32_t right[2] = {word(b, 8 * j + group, k), word(b, 8 * j + group, k + 4)};
      standin::multiplyAdd<F>(*reinterpret_cast<float(*)[4]>(result.at + 4 * j), left, right);
    }
  }
}

template <typename F>
void beginAdding(WarpgroupResult &result, const WarpgroupOperand &a, const SwizzledTile &b) {
  int group = static_cast<int>(threadIdx.x % 32 / 4), pair = static_cast<int>(threadIdx.x % 4);
  auto element = [&](int row, int column) {
    return b.words[SwizzledTile::placeOf(row, column / 2)] >> 16 * (column % 2) & 0xFFFF;
  };
  for (int k = 0; k < kTileSize / 16; ++k)
    for (int j = 0; j < WarpgroupResult::kPairs; ++j) {
      int row = 16 * k + 2 * pair, column = 8 * j + group;
      uint32_t right[2] = {element(row, column) | element(row + 1, column) << 16,
                           element(row + 8, column) | element(row + 9, column) << 16};
      standin::multiplyAdd<F>(*reinterpret_cast<float(*)[4]>(result.at + 4 * j), a.words[k], right);
    }
}

#endif

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_WARPGROUPUNITS_H
