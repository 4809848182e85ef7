//===- FewRows.h - Products of a few rows with a matrix -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A product of a few rows with a large matrix, as in the decoding of a token, takes as long as the
// matrix takes to be read. A library packs the matrix first and reads it three times.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_FEWROWS_H
#define DTC_RUNTIME_BACKENDS_CPU_FEWROWS_H

#include "calls/GemmShape.h"
#include "support/Float16.h"

namespace dtc::runtime::cpu {

/// Whether the left operand, or the transposed right one, has so few rows that the product is one
/// for multiplyFewRows().
bool hasFewRows(const GemmShape &shape);

/// c = alpha a b, or c += alpha a b, four rows of c at a time. A is F or Wide<F>; else as below.
template <typename A, typename F, typename R>
void multiplyByRows(GemmShape shape, Wide<F> alpha, const A *a, const F *b, bool accumulate, R *c,
                    int threads);

/// c = alpha a b, or c += alpha a b, with sums in Wide<F>: in the order of k where rows of b are
/// contiguous, else in as many parts as a cache line has elements. F and R are float, double, or F
/// has 16 bits and R is F or float. The columns of c, or its rows, are divided among the threads;
/// in a parallel region `threads` must be 1.
template <typename F, typename R>
void multiplyFewRows(const GemmShape &shape, Wide<F> alpha, const F *a, const F *b, bool accumulate,
                     R *c, int threads);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_FEWROWS_H
