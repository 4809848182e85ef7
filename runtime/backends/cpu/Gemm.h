//===- Gemm.h - Products of strided matrices ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_GEMM_H
#define DTC_RUNTIME_BACKENDS_CPU_GEMM_H

#include "calls/GemmShape.h"

namespace dtc::runtime::cpu {

/// float goes to oneDNN, double to plain loops. The result is cut into one block a thread; in a
/// parallel region `threads` must be 1.
void gemm(const GemmShape &shape, float alpha, const float *a, const float *b, bool accumulate,
          float *c, int threads);
void gemm(const GemmShape &shape, double alpha, const double *a, const double *b, bool accumulate,
          double *c, int threads);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_GEMM_H
