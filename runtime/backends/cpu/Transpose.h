//===- Transpose.h - Transposed copies of matrices ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_TRANSPOSE_H
#define DTC_RUNTIME_BACKENDS_CPU_TRANSPOSE_H

#include "support/Float16.h"

#include <cstdint>

namespace dtc::runtime::cpu {

/// to = from^T: `rows` contiguous rows of `columns` elements become `columns`
/// rows of `paddedRows` elements, zero from
/// `rows` on.
void transpose(const BFloat16 *from, int64_t stride, int64_t rows, int64_t columns,
               int64_t paddedRows, BFloat16 *to);
void transpose(const float *from, int64_t stride, int64_t rows, int64_t columns, float *to,
               int64_t toStride);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_TRANSPOSE_H
