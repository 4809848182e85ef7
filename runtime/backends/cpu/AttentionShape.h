//===- AttentionShape.h - Shapes of attention and its gradient ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A task is a batch element and a key-value head. It walks the query heads of the group in blocks
// of rows, and for each block the keys that its rows see in blocks of keys. No more than the scores
// of a block of rows and a block of keys are there at a time. In a block, products leave out what
// groups of rows do not see (VisibleKeys). Keys and values are packed once for a task, in panels
// (PanelProducts.h); elements of 16 bits are widened as they are.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_ATTENTIONSHAPE_H
#define DTC_RUNTIME_BACKENDS_CPU_ATTENTIONSHAPE_H

#include "calls/AttentionCalls.h"
#include "runtime/backends/cpu/CpuKernels.h"
#include "runtime/backends/cpu/FewRows.h"
#include "runtime/backends/cpu/MaskStretches.h"
#include "runtime/backends/cpu/PanelProducts.h"
#include "runtime/backends/cpu/VectorMath.h"
#include "runtime/backends/cpu/VisibleKeys.h"
#include "runtime/backends/cpu/WideBlocks.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace dtc::runtime::cpu {

inline int64_t countTasks(const AttentionShape &shape) { return shape.batch * shape.kvHeads; }
/// Where the head of a task begins in k and v.
inline int64_t keyOffset(const AttentionShape &shape, int64_t task) {
  return task / shape.kvHeads * shape.keys * shape.keyStride() +
         task % shape.kvHeads * shape.headSize;
}
/// Rows of a block, and keys of a block: its scores take a part of the second cache.
inline constexpr int64_t kRowBlock = 64, kKeyBlock = 256;
/// Rows or keys of a block whose products leave out the same: a whole number of register tiles.
inline constexpr int64_t kGroup = 24;

inline int64_t blockRows(const AttentionShape &shape) {
  return std::min<int64_t>(shape.queries, kRowBlock);
}
/// The scores of a row of a block lie so far from those of the row before.
inline int64_t scoreStride(const AttentionShape &shape) {
  return std::min(kKeyBlock, roundUp(shape.keys, kPanel<float>));
}
inline int64_t blockElements(const AttentionShape &shape) {
  return blockRows(shape) * scoreStride(shape);
}
/// Tasks that are worth a thread.
inline int64_t taskGrain(const AttentionShape &shape) {
  return grainFor(shape.group() * blockRows(shape) * shape.keys, 4);
}

/// A block of rows of one query head.
struct AttentionBlock {
  int64_t head, begin, rows;
  KeyRange keys; // from the first that a row sees to the last
  int64_t query; // offset of its first row in q
  int64_t out;   // offset of its first row in out
  int64_t lse;   // offset of its first row in lse
  KeyRange seen[kRowBlock];

  /// The keys of `block` that rows [first, first + count) see, from a panel's begin on, counted
  /// from the block's first key.
  KeyRange ofRows(int64_t first, int64_t count, KeyRange block) const {
    KeyRange range = KeyRange{seen[first].begin, seen[first + count - 1].end}.within(block);
    return {range.begin / kPanel<float> * kPanel<float>, range.end};
  }
  /// The rows that see one of `range`.
  KeyRange rowsSeeing(KeyRange range) const {
    const KeyRange *end = seen + rows;
    const KeyRange *first = std::partition_point(
        seen, end, [=](const KeyRange &row) { return row.end <= range.begin; });
    const KeyRange *last = std::partition_point(
        first, end, [=](const KeyRange &row) { return row.begin < range.end; });
    return {first - seen, last - seen};
  }
};

/// Calls function(block) for the blocks of a task, in order.
template <typename Function>
void forBlocks(const AttentionShape &shape, const VisibleKeys &visible, int64_t task,
               const Function &function) {
  int64_t b = task / shape.kvHeads, kvHead = task % shape.kvHeads;
  AttentionBlock block;
  for (int64_t g = 0; g < shape.group(); ++g) {
    int64_t head = kvHead * shape.group() + g;
    block.head = head;
    for (int64_t begin = 0; begin < shape.queries; begin += block.rows) {
      block.begin = begin;
      block.rows = std::min(kRowBlock, shape.order.endOfRun(begin, shape.queries) - begin);
      block.keys = visible.ofRows(begin, block.rows);
      int64_t row = b * shape.queries + begin;
      block.query = row * shape.queryStride() + head * shape.headSize;
      block.out = row * shape.outStride() + head * shape.headSize;
      block.lse = (b * shape.heads + head) * shape.queries + begin;
      for (int64_t i = 0; i < block.rows; ++i)
        block.seen[i] = visible.of(begin + i);
      function(block);
    }
  }
}

/// Calls function(keys) for the blocks of keys that a row of a block sees, in order. They begin
/// with a panel.
template <typename Function>
void forKeyBlocks(const AttentionBlock &block, const Function &function) {
  if (block.keys.count() == 0)
    return;
  for (int64_t begin = block.keys.begin / kPanel<float> * kPanel<float>; begin < block.keys.end;
       begin += kKeyBlock)
    function(KeyRange{begin, std::min(begin + kKeyBlock, block.keys.end)});
}

/// Arrays of a thread in the workspace.
template <typename W, size_t Count> struct ThreadArrays {
  std::array<int64_t, Count> elements;

  size_t bytes() const {
    size_t all = 0;
    for (int64_t count : elements)
      all += arrayBytes<W>(count);
    return all;
  }
  std::array<W *, Count> at(void *workspace, int part) const {
    WorkspaceCursor cursor(static_cast<std::byte *>(workspace) +
                           static_cast<size_t>(part) * bytes());
    std::array<W *, Count> arrays;
    for (size_t i = 0; i < Count; ++i)
      arrays[i] = cursor.take<W>(elements[i]);
    return arrays;
  }
};

/// Rows of one head; `stride` elements are between the beginnings of two.
template <typename T> struct HeadRows {
  T *data;
  int64_t stride;
};

/// Has the memory read a later row of a head than row `i`: rows lie too far apart for the processor
/// to find out by itself.
template <typename F>
inline void prefetchRow(const F *rows, int64_t stride, int64_t headSize, int64_t i, int64_t count) {
  constexpr int64_t ahead = 12, line = 64 / static_cast<int64_t>(sizeof(F));
  if (i + ahead < count)
    for (int64_t e = 0; e < headSize; e += line)
      __builtin_prefetch(rows + (i + ahead) * stride + e);
}

/// The rows themselves, or `array` with them widened.
template <typename F>
HeadRows<const Wide<F>> loadRows(const F *from, int64_t stride, int64_t rows, int64_t headSize,
                                 Wide<F> *array) {
  if constexpr (kIsWide<F>) {
    return {from, stride};
  } else {
    for (int64_t i = 0; i < rows; ++i)
      widen(from + i * stride, array + i * headSize, headSize);
    return {array, headSize};
  }
}

/// Where to compute rows: in their place, or in `array`, from which storeRows rounds them.
template <typename F>
HeadRows<Wide<F>> rowsToStore(F *to, int64_t stride, int64_t headSize, Wide<F> *array) {
  if constexpr (kIsWide<F>)
    return {to, stride};
  else
    return {array, headSize};
}
template <typename F>
void storeRows(HeadRows<Wide<F>> wide, F *to, int64_t stride, int64_t rows, int64_t headSize) {
  for (int64_t i = 0; i < rows; ++i)
    if constexpr (kIsWide<F>)
      std::copy_n(wide.data + i * wide.stride, headSize, to + i * stride);
    else
      narrow(wide.data + i * wide.stride, to + i * stride, headSize);
}

/// Elements of the array for `rows` widened rows; none where nothing is widened.
template <typename F> int64_t rowElements(const AttentionShape &shape, int64_t rows) {
  return kIsWide<F> ? 0 : rows * shape.headSize;
}

/// Zeroes `rows` rows of one head.
template <typename F> void zeroRows(HeadRows<F> out, int64_t rows, int64_t headSize) {
  for (int64_t i = 0; i < rows; ++i)
    std::fill_n(out.data + i * out.stride, headSize, F(0));
}

/// Rows of a head as the right operand of products over rows or, transposed, over their elements.
template <typename F> struct HeadOperand {
  using W = Wide<F>;
  HeadRows<const F> rows;
  int64_t count, headSize;
  const W *panels; // null: not packed

  PanelBlock<W> from(int64_t row) const { return {panels + row * kPanel<W>, count * kPanel<W>}; }
  PanelBlock<W> fromTransposed(int64_t row) const {
    return {panels + row * headSize, headSize * kPanel<W>};
  }
};

/// With fewer queries a product does not pay for the packing of its right operand.
inline bool packsKeys(const AttentionShape &shape) { return shape.queries >= 8; }

/// Packs the rows in `panels` if there are any; elements of 16 bits are widened in `array` for it.
template <typename F>
HeadOperand<F> loadOperand(const F *from, int64_t stride, int64_t rows, int64_t headSize,
                           bool transposed, Wide<F> *array, Wide<F> *panels) {
  if (panels) {
    HeadRows<const Wide<F>> wide = loadRows(from, stride, rows, headSize, array);
    (transposed ? packTransposed<Wide<F>>
                : packRows<Wide<F>>)(wide.data, wide.stride, transposed ? headSize : rows,
                                     transposed ? rows : headSize, panels);
  }
  return {{from, stride}, rows, headSize, panels};
}

/// Calls function(first, count) for groups of [0, size).
template <typename Function> void forGroups(int64_t size, const Function &function) {
  for (int64_t first = 0; first < size; first += kGroup)
    function(first, std::min(kGroup, size - first));
}

/// scores = rows * keys^T, where a row sees a key.
template <typename F>
void multiplyScores(const AttentionBlock &block, KeyRange range, HeadRows<const Wide<F>> rows,
                    const HeadOperand<F> &keys, Wide<F> *scores, int64_t stride) {
  using W = Wide<F>;
  if (!keys.panels)
    return multiplyByRows({block.rows,
                           range.count(),
                           keys.headSize,
                           {rows.stride, 1},
                           {1, keys.rows.stride},
                           {stride, 1}},
                          W(1), rows.data, keys.rows.data + range.begin * keys.rows.stride, false,
                          scores, 1);
  forGroups(block.rows, [&](int64_t first, int64_t count) {
    KeyRange seen = block.ofRows(first, count, range);
    if (seen.count() > 0)
      multiplyPanels<W>(count, roundUp(seen.count(), kPanel<float>), keys.headSize,
                        rows.data + first * rows.stride, {rows.stride, 1},
                        keys.fromTransposed(range.begin + seen.begin), false,
                        scores + first * stride + seen.begin, stride);
  });
}

/// out += weights * values.
template <typename F>
void addWeighted(const AttentionBlock &block, KeyRange range, const Wide<F> *weights,
                 int64_t stride, const HeadOperand<F> &values, HeadRows<Wide<F>> out) {
  using W = Wide<F>;
  if (!values.panels)
    return multiplyByRows({block.rows,
                           values.headSize,
                           range.count(),
                           {stride, 1},
                           {values.rows.stride, 1},
                           {out.stride, 1}},
                          W(1), weights, values.rows.data + range.begin * values.rows.stride, true,
                          out.data, 1);
  forGroups(block.rows, [&](int64_t first, int64_t count) {
    KeyRange seen = block.ofRows(first, count, range);
    if (seen.count() > 0)
      multiplyPanels<W>(count, values.headSize, seen.count(), weights + first * stride + seen.begin,
                        {stride, 1}, values.from(range.begin + seen.begin), true,
                        out.data + first * out.stride, out.stride);
  });
}

/// out += weights^T * rows: those of the block.
template <typename W>
void addToKeys(const AttentionBlock &block, KeyRange range, const W *weights, int64_t stride,
               const HeadOperand<W> &rows, HeadRows<W> out) {
  forGroups(range.count(), [&](int64_t first, int64_t count) {
    int64_t key = range.begin + first;
    KeyRange seeing = block.rowsSeeing({key, key + count});
    if (seeing.count() > 0)
      multiplyPanels<W>(count, rows.headSize, seeing.count(),
                        weights + seeing.begin * stride + first, {1, stride},
                        rows.from(seeing.begin), true, out.data + key * out.stride, out.stride);
  });
}

/// Bounds scores: x becomes softcap * tanh(scale * x / softcap). Where there are `slopes`, they get
/// the derivatives by scale * x. To be called in simd().
template <typename W>
inline void capScores(double softcap, W scale, W *scores, int64_t count, W *slopes = nullptr) {
  W cap = static_cast<W>(softcap), inverse = scale / cap;
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

/// Zeroes the scores of a row, of `width` keys, that lie outside of `seen`.
template <typename W> inline void zeroUnseen(W *row, int64_t width, KeyRange seen) {
  std::fill(row, row + seen.begin, W(0));
  std::fill(row + seen.end, row + width, W(0));
}

/// Dropout of the attention weights, while a kernel runs.
struct AttentionDropout {
  LocalMask mask; // without a nest: no dropout
  double scale = 1;

  explicit operator bool() const { return mask.nest != nullptr; }
  /// Calls body(j, count, keeps) for stretches of the keys that row `i` of a block sees in `range`;
  /// j counts from its first key.
  template <typename Body>
  void forKeys(int64_t keys, const AttentionBlock &block, int64_t i, KeyRange range, KeyRange seen,
               const Body &body) const {
    KeepBuffer buffer;
    int64_t first = (block.lse + i) * keys + range.begin;
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

/// The kernels of a checked call of `attention` and of `attention_grad`.
std::unique_ptr<CpuKernel> makeAttention(AttentionCall call);
std::unique_ptr<CpuKernel> makeAttentionGrad(AttentionCall call);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_ATTENTIONSHAPE_H
