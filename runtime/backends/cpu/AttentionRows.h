//===- AttentionRows.h - Scores of attention, row by row ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The work on the scores of a block between the two products, in f32 or f64.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_ATTENTIONROWS_H
#define DTC_RUNTIME_BACKENDS_CPU_ATTENTIONROWS_H

#include "runtime/backends/cpu/AttentionShape.h"
#include "runtime/backends/cpu/Softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dtc::runtime::cpu {

/// The operands of attention; lse and sinks may be null.
template <typename F> struct AttentionOperands {
  const F *q, *k, *v;
  F *out;
  Wide<F> *lse;
  const F *sinks = nullptr;
};

/// The operands of attention_grad.
template <typename F> struct AttentionGradOperands {
  const F *q, *k, *v, *out;
  const Wide<F> *lse;
  const F *dout;
  F *dq, *dk, *dv;
};

/// The state of each row of a block while its blocks of keys are gone through: the largest score,
/// the sum of the exponentials of the scores less that, and the sum of the values with these
/// weights.
template <typename W> struct RowSums {
  W *largest, *sums;
  HeadRows<W> out;

  void clear(int64_t rows) const {
    std::fill_n(largest, rows, -std::numeric_limits<W>::infinity());
    std::fill_n(sums, rows, W(0));
    std::fill_n(out.data, rows * out.stride, W(0));
  }
};

/// Makes exp(scale * x - shift) of scores x; the result is their sum. The exponents are at most 0
/// but for rounding, and what is less than exp(-87) of the largest weight does not count. To be
/// called in simd().
template <typename W> inline W weightsOf(W *scores, int64_t count, W scale, W shift) {
  W sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < count; ++j) {
    W weight = vmath::expInBounds(scale * scores[j] - shift);
    scores[j] = weight;
    sum += weight;
  }
  return sum;
}

/// Makes exponentials of the scores of a block, and moves the sums to its largest scores. Source:
/// M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax" (arXiv:1805.02867),
/// 2018.
template <typename W>
void weigh(const AttentionShape &shape, const AttentionBlock &rowBlock, KeyRange range,
           const AttentionDropout &dropout, W *scores, int64_t stride, RowSums<W> rows) {
  const AttentionBlock *block = &rowBlock;
  simd([=] {
    for (int64_t i = 0; i < block->rows; ++i) {
      W *row = scores + i * stride;
      KeyRange seen = block->seen[i].within(range);
      zeroUnseen(row, range.count(), seen);
      int64_t count = seen.count();
      if (count == 0)
        continue;
      W *visible = row + seen.begin, scale = static_cast<W>(shape.scale);
      if (shape.softcap != 0) {
        capScores(shape.softcap, scale, visible, count);
        scale = 1;
      }
      W before = rows.largest[i];
      W largest = scale * (scale < 0 ? minOf(visible, count) : maxOf(visible, count));
      largest = largest < before ? before : largest; // NaN stays
      W sum = weightsOf(visible, count, scale, largest);
      if (largest != before) {
        W factor = vmath::exp(before - largest);
        W *out = rows.out.data + i * rows.out.stride;
        rows.sums[i] *= factor;
        rows.largest[i] = largest;
#pragma omp simd
        for (int64_t e = 0; e < shape.headSize; ++e)
          out[e] *= factor;
      }
      rows.sums[i] += sum;
      if (dropout)
        dropout.forKeys(shape.keys, *block, i, range, seen,
                        [=](int64_t j, int64_t some, const uint8_t *keep) {
                          W *weights = row + j;
#pragma omp simd
                          for (int64_t e = 0; e < some; ++e)
                            weights[e] = keep[e] ? weights[e] : W(0);
                        });
    }
  });
}

/// Adds the score `sink`, whose value is 0, to a row. The result is the factor for the row's sum of
/// values.
template <typename W> W addSink(W sink, W &largest, W &sum) {
  W before = largest;
  largest = std::max(before, sink);
  W factor = std::exp(before - largest);
  sum = sum * factor + std::exp(sink - largest);
  return factor;
}

/// Adds the sinks, divides by the sums, and writes the results.
template <typename F>
void finish(const AttentionShape &shape, const AttentionBlock &block, double factor,
            const RowSums<Wide<F>> &rows, const AttentionOperands<F> &operands) {
  using W = Wide<F>;
  for (int64_t i = 0; i < block.rows; ++i) {
    bool none = block.seen[i].count() == 0;
    W *sums = rows.out.data + i * rows.out.stride;
    W scale = static_cast<W>(factor);
    if (operands.sinks)
      scale *= addSink(static_cast<W>(operands.sinks[block.head]), rows.largest[i], rows.sums[i]);
    W inverse = none ? W(0) : scale / rows.sums[i];
    for (int64_t e = 0; e < shape.headSize; ++e)
      sums[e] *= inverse;
    F *to = operands.out + block.out + i * shape.outStride();
    if constexpr (kIsWide<F>)
      std::copy_n(sums, shape.headSize, to);
    else
      narrow(sums, to, shape.headSize);
    if (operands.lse)
      operands.lse[block.lse + i] = rows.largest[i] + std::log(rows.sums[i]);
  }
}

/// The scores of a block, their gradients, and the values that these are computed with.
template <typename W> struct ScoreGrads {
  W *weights, *dweights, *slopes;
  int64_t stride;
  const W *lse, *deltas;
};

/// From scores to weights, and from the gradient of the weights to that of the scores: with the
/// weights p and the mask m, dp is m * dweights, and the sum of p * dp over a row is its delta.
template <typename W>
void weighGradients(const AttentionShape &shape, const AttentionBlock &rowBlock, KeyRange range,
                    const AttentionDropout &dropout, ScoreGrads<W> scores) {
  const AttentionBlock *block = &rowBlock;
  simd([=] {
    W outer = static_cast<W>(shape.scale), kept = static_cast<W>(dropout.scale);
    for (int64_t i = 0; i < block->rows; ++i) {
      W *row = scores.weights + i * scores.stride, *drow = scores.dweights + i * scores.stride;
      W *slopes = scores.slopes, lse = scores.lse[i], delta = scores.deltas[i], scale = outer;
      KeyRange seen = block->seen[i].within(range);
      zeroUnseen(row, range.count(), seen);
      zeroUnseen(drow, range.count(), seen);
      if (shape.softcap != 0) {
        capScores(shape.softcap, scale, row + seen.begin, seen.count(), slopes + seen.begin);
        scale = 1;
      }
      if (dropout) {
        weightsOf(row + seen.begin, seen.count(), scale, lse);
        dropout.forKeys(shape.keys, *block, i, range, seen,
                        [=](int64_t j, int64_t count, const uint8_t *keep) {
                          W *p = row + j, *dp = drow + j;
#pragma omp simd
                          for (int64_t e = 0; e < count; ++e) {
                            W m = keep[e] ? kept : W(0);
                            dp[e] = p[e] * (m * dp[e] - delta) * outer;
                            p[e] *= m;
                          }
                        });
      } else {
#pragma omp simd
        for (int64_t j = seen.begin; j < seen.end; ++j) {
          W p = vmath::expInBounds(scale * row[j] - lse);
          row[j] = p;
          drow[j] = p * (drow[j] - delta) * outer;
        }
      }
      if (shape.softcap != 0) {
#pragma omp simd
        for (int64_t j = seen.begin; j < seen.end; ++j)
          drow[j] *= slopes[j];
      }
    }
  });
}

/// The sum of p * dp over each row: that of out * dout. F is wide, or bf16.
template <typename F>
void sumProducts(int64_t rows, int64_t headSize, HeadRows<const F> out, HeadRows<const F> dout,
                 Wide<F> *deltas) {
  simd([=] {
    for (int64_t i = 0; i < rows; ++i) {
      const F *x = out.data + i * out.stride, *y = dout.data + i * dout.stride;
      prefetchRow(out.data, out.stride, headSize, i, rows);
      prefetchRow(dout.data, dout.stride, headSize, i, rows);
      Wide<F> sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t e = 0; e < headSize; ++e)
        sum += Wide<F>(x[e]) * Wide<F>(y[e]);
      deltas[i] = sum;
    }
  });
}

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_ATTENTIONROWS_H
