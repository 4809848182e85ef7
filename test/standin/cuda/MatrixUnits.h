//===- MatrixUnits.h - Instructions of tensor cores -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The instructions that runtime/backends/cuda/MatrixUnits.h writes in PTX, with the operands of a
// lane as it describes them.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_MATRIXUNITS_H
#define DTC_TEST_STANDIN_CUDA_MATRIXUNITS_H

#include "test/standin/cuda/KernelLanguage.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace dtc::standin {

/// The words of a lane: two elements in each, the lower first.
struct MatrixOperands {
  float a[4][2], b[2][2];
};
/// Of the threads of the block, by number.
inline thread_local MatrixOperands matrixOperands[1024];

template <typename F> void splitWord(uint32_t word, float (&elements)[2]) {
  for (unsigned upper = 0; upper < 2; ++upper) {
    auto bits = static_cast<unsigned short>(word >> 16 * upper);
    if constexpr (std::is_same_v<F, __half>)
      elements[upper] = __half2float(__ushort_as_half(bits));
    else
      elements[upper] = __bfloat162float(__ushort_as_bfloat16(bits));
  }
}

/// mma.sync.aligned.m16n8k16: sums += a b, with sums in f32.
template <typename F>
void multiplyAdd(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                 Place place = Place::current()) {
  unsigned self = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  unsigned lane = self % 32;
  const MatrixOperands *lanes = matrixOperands + (self - lane);
  MatrixOperands &own = matrixOperands[self];
  for (unsigned w = 0; w < 4; ++w)
    splitWord<F>(a[w], own.a[w]);
  for (unsigned w = 0; w < 2; ++w)
    splitWord<F>(b[w], own.b[w]);
  ballot(0xFFFFFFFF, true, "mma.sync", place);
  for (unsigned i = 0; i < 4; ++i) {
    unsigned row = lane / 4, column = lane % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 16; ++k)
      sums[i] += lanes[row * 4 + k % 8 / 2].a[i / 2 + k / 8 * 2][k % 2] *
                 lanes[column * 4 + k % 8 / 2].b[k / 8][k % 2];
  }
  ballot(0xFFFFFFFF, true, "mma.sync", place); // the operands have been read
}

/// ldmatrix.sync.aligned.m8n8.x2.trans: 16 rows of 8 elements, `pitch` words apart.
inline void loadTransposed(const uint32_t *tile, int pitch, uint32_t (&words)[2]) {
  unsigned lane = laneIndex(), column = lane / 4;
  for (unsigned w = 0; w < 2; ++w) {
    const uint32_t *row = tile + static_cast<int>(lane % 4 * 2 + 8 * w) * pitch + column / 2;
    unsigned shift = 16 * (column % 2);
    words[w] = (row[0] >> shift & 0xFFFF) | (row[pitch] >> shift & 0xFFFF) << 16;
  }
}

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_MATRIXUNITS_H
