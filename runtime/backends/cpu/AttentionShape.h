//===- AttentionShape.h - Shapes of attention and its gradient ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A task is a batch element and a key-value head. It walks the query heads of the group, each in
// blocks of rows, so that the scores of a block fit the cache. Keys that no row of a block sees are
// left out of its products. Elements of 16 bits are widened: keys and values once for a task,
// the rows of a block with it.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_ATTENTIONSHAPE_H
#define DTC_RUNTIME_BACKENDS_CPU_ATTENTIONSHAPE_H

#include "runtime/backends/cpu/CpuKernels.h"
#include "runtime/backends/cpu/Gemm.h"
#include "runtime/backends/cpu/MaskStretches.h"
#include "runtime/backends/cpu/VectorMath.h"
#include "runtime/backends/cpu/VisibleKeys.h"
#include "runtime/backends/cpu/WideBlocks.h"
#include "runtime/backends/shared/AttentionCalls.h"

#include <algorithm>
#include <cstdint>

namespace dtc::runtime::cpu {

inline int64_t countTasks(const AttentionShape &shape) { return shape.batch * shape.kvHeads; }
/// Where the head of a task begins in k and v.
inline int64_t keyOffset(const AttentionShape &shape, int64_t task) {
  return task / shape.kvHeads * shape.keys * shape.keyStride() +
         task % shape.kvHeads * shape.headSize;
}
/// Rows whose scores are computed together.
inline int64_t blockRows(const AttentionShape &shape) {
  return std::min<int64_t>(shape.queries, 128);
}
/// Elements of the scores of a block.
inline int64_t blockElements(const AttentionShape &shape) { return blockRows(shape) * shape.keys; }
/// Tasks that are worth a thread.
inline int64_t taskGrain(const AttentionShape &shape) {
  return grainFor(shape.group() * blockElements(shape), 4);
}

/// A block of rows of one query head.
struct AttentionBlock {
  int64_t begin, rows;
  int64_t first; // key that the first row sees
  int64_t keys;  // from there to the last that the last row sees
  int64_t query; // offset of its first row in q and out
  int64_t lse;   // offset of its first row in lse
};

/// Calls function(block) for the blocks of a task, in order.
template <typename Function>
void forBlocks(const AttentionShape &shape, const VisibleKeys &visible, int64_t task,
               const Function &function) {
  int64_t b = task / shape.kvHeads, kvHead = task % shape.kvHeads;
  for (int64_t g = 0; g < shape.group(); ++g) {
    int64_t head = kvHead * shape.group() + g;
    for (int64_t begin = 0; begin < shape.queries; begin += blockRows(shape)) {
      int64_t rows = std::min(blockRows(shape), shape.queries - begin);
      KeyRange seen = visible.ofRows(begin, rows);
      function(
          AttentionBlock{begin, rows, seen.begin, seen.count(),
                         (b * shape.queries + begin) * shape.queryStride() + head * shape.headSize,
                         (b * shape.heads + head) * shape.queries + begin});
    }
  }
}

/// The keys that row `i` of a block sees, counted from the block's first.
inline KeyRange seenByRow(const VisibleKeys &visible, const AttentionBlock &block, int64_t i) {
  return visible.of(block.begin + i).within({block.first, block.first + block.keys});
}

/// Rows of one head; `stride` elements lie between the beginnings of two.
template <typename T> struct HeadRows {
  T *data;
  int64_t stride;
};

/// The rows themselves, or `array` with them widened.
template <typename F>
HeadRows<const Wide<F>> loadRows(const F *from, int64_t stride, int64_t rows, int64_t headSize,
                                 Wide<F> *array) {
  if constexpr (isWide<F>) {
    return {from, stride};
  } else {
    for (int64_t i = 0; i < rows; ++i)
      widen(from + i * stride, array + i * headSize, headSize);
    return {array, headSize};
  }
}

/// Where to compute rows, which storeRows then rounds into their place.
template <typename F>
HeadRows<Wide<F>> rowsToStore(F *to, int64_t stride, int64_t headSize, Wide<F> *array) {
  if constexpr (isWide<F>)
    return {to, stride};
  else
    return {array, headSize};
}
template <typename F>
void storeRows(HeadRows<Wide<F>> wide, F *to, int64_t stride, int64_t rows, int64_t headSize) {
  if constexpr (!isWide<F>)
    for (int64_t i = 0; i < rows; ++i)
      narrow(wide.data + i * wide.stride, to + i * stride, headSize);
}

/// Elements of the array for so many widened rows; none where nothing is widened.
template <typename F> int64_t rowElements(const AttentionShape &shape, int64_t rows) {
  return isWide<F> ? 0 : rows * shape.headSize;
}

/// Zeroes `rows` rows of one head.
template <typename F> void zeroRows(HeadRows<F> out, int64_t rows, int64_t headSize) {
  for (int64_t i = 0; i < rows; ++i)
    std::fill_n(out.data + i * out.stride, headSize, F(0));
}

/// scores = scale * q k^T: (rows, keys).
template <typename W>
void multiplyScores(const AttentionShape &shape, const AttentionBlock &block, W scale,
                    HeadRows<const W> q, HeadRows<const W> k, W *scores) {
  gemm({block.rows, block.keys, shape.headSize, {q.stride, 1}, {1, k.stride}, {block.keys, 1}},
       scale, q.data, k.data + block.first * k.stride, false, scores, 1);
}

/// out = weights * values, (rows, keys) by (keys, headSize).
template <typename W>
void multiplyByKeys(const AttentionShape &shape, const AttentionBlock &block, const W *weights,
                    HeadRows<const W> values, HeadRows<W> out) {
  gemm({block.rows,
        shape.headSize,
        block.keys,
        {block.keys, 1},
        {values.stride, 1},
        {out.stride, 1}},
       W(1), weights, values.data + block.first * values.stride, false, out.data, 1);
}

/// out += weights^T * rows, (keys, rows) by (rows, headSize).
template <typename W>
void addToKeys(const AttentionShape &shape, const AttentionBlock &block, const W *weights,
               HeadRows<const W> rows, HeadRows<W> out) {
  gemm({block.keys, shape.headSize, block.rows, {1, block.keys}, {rows.stride, 1}, {out.stride, 1}},
       W(1), weights, rows.data, true, out.data + block.first * out.stride, 1);
}

/// Bounds scores: x becomes softcap * tanh(x / softcap). Where there are `slopes`, they get the
/// derivatives. To be called in simd().
template <typename W>
inline void capScores(double softcap, W *scores, int64_t count, W *slopes = nullptr) {
  W cap = static_cast<W>(softcap), inverse = static_cast<W>(1 / softcap);
#pragma omp simd
  for (int64_t j = 0; j < count; ++j)
    scores[j] = vmath::tanh(scores[j] * inverse);
  if (slopes) {
#pragma omp simd
    for (int64_t j = 0; j < count; ++j)
      slopes[j] = W(1) - scores[j] * scores[j];
  }
#pragma omp simd
  for (int64_t j = 0; j < count; ++j)
    scores[j] *= cap;
}

/// Dropout of the attention weights, while a kernel runs.
struct AttentionDropout {
  LocalMask mask; // without a nest: no dropout
  double scale = 1;

  explicit operator bool() const { return mask.nest != nullptr; }
  /// Calls body(j, count, keeps) for stretches of the keys that row `i` of a block sees; j counts
  /// from the block's first key.
  template <typename Body>
  void forKeys(const AttentionShape &shape, const AttentionBlock &block, int64_t i, KeyRange seen,
               const Body &body) const {
    KeepBuffer buffer;
    int64_t first = (block.lse + i) * shape.keys + block.first;
    forKeeps(mask, first + seen.begin, first + seen.end, buffer,
             [&](int64_t element, int64_t count, const uint8_t *keeps) {
               body(element - first, count, keeps);
             });
  }
};

/// The mask of a call that runs.
inline AttentionDropout dropoutOf(const AttentionCall &call, const CpuArguments &args) {
  if (!call.mask)
    return {};
  return {call.mask->at(args.position, static_cast<const int32_t *>(args.inputs.back())),
          call.mask->scale()};
}

PrepareResult prepareAttentionGrad(const KernelSignature &signature);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_ATTENTIONSHAPE_H
