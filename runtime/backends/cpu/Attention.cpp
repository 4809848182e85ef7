//===- Attention.cpp - Scaled dot-product attention -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/AttentionShape.h"
#include "runtime/backends/cpu/Softmax.h"

namespace dtc::runtime::cpu {

namespace {

/// The arrays of a thread.
enum ArrayIndex {
  Scores,
  Keys,
  WideKeys,
  Values,
  WideValues,
  Queries,
  Out,
  Largest,
  Sums,
  ArrayCount
};

template <typename F> ThreadArrays<Wide<F>, ArrayCount> arraysFor(const AttentionShape &shape) {
  using W = Wide<F>;
  bool packs = packsKeys(shape);
  ThreadArrays<W, ArrayCount> arrays;
  auto &elements = arrays.elements;
  elements[Scores] = blockElements(shape);
  elements[Keys] = packs ? panelElements<W>(shape.headSize, roundUp(shape.keys, kPanel<float>)) : 0;
  elements[Values] = packs ? panelElements<W>(shape.keys, shape.headSize) : 0;
  elements[WideKeys] = elements[WideValues] = rowElements<F>(shape, shape.keys);
  elements[Queries] = rowElements<F>(shape, blockRows(shape));
  elements[Out] = blockRows(shape) * shape.headSize;
  elements[Largest] = elements[Sums] = blockRows(shape);
  return arrays;
}

/// Of each row of a block, while its blocks of keys are gone through: the largest score, the sum of
/// the exponentials of the scores less that, and the sum of the values with these weights.
template <typename W> struct RowSums {
  W *largest, *sums;
  HeadRows<W> out;
};

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
      W sum = exponentials(visible, visible, count, scale, largest);
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

/// Divides by the sums, and writes the results.
template <typename F>
void finish(const AttentionShape &shape, const AttentionBlock &block, double factor,
            const RowSums<Wide<F>> &rows, F *out, Wide<F> *lse) {
  using W = Wide<F>;
  for (int64_t i = 0; i < block.rows; ++i) {
    bool none = block.seen[i].count() == 0;
    W *sums = rows.out.data + i * rows.out.stride;
    W inverse = none ? W(0) : static_cast<W>(factor) / rows.sums[i];
    for (int64_t e = 0; e < shape.headSize; ++e)
      sums[e] *= inverse;
    F *to = out + block.query + i * shape.queryStride();
    if constexpr (isWide<F>)
      std::copy_n(sums, shape.headSize, to);
    else
      narrow(sums, to, shape.headSize);
    if (lse)
      lse[block.lse + i] = rows.largest[i] + std::log(rows.sums[i]);
  }
}

/// The operands of attention; lse may be null.
template <typename F> struct Operands {
  const F *q, *k, *v;
  F *out;
  Wide<F> *lse;
};

template <typename F>
void runTask(const AttentionShape &shape, const AttentionDropout &dropout,
             const Operands<F> &operands, int64_t task,
             const std::array<Wide<F> *, ArrayCount> &arrays) {
  using W = Wide<F>;
  int64_t headSize = shape.headSize, stride = scoreStride(shape), key = keyOffset(shape, task);
  VisibleKeys visible(shape);
  int64_t seen = visible.ofRows(0, shape.queries).end;
  bool packs = packsKeys(shape);
  auto keys = loadOperand(operands.k + key, shape.keyStride(), seen, headSize, true,
                          arrays[WideKeys], packs ? arrays[Keys] : nullptr);
  auto values = loadOperand(operands.v + key, shape.keyStride(), seen, headSize, false,
                            arrays[WideValues], packs ? arrays[Values] : nullptr);
  RowSums<W> rows{arrays[Largest], arrays[Sums], {arrays[Out], headSize}};
  forBlocks(shape, visible, task, [&](const AttentionBlock &block) {
    std::fill_n(rows.largest, block.rows, -std::numeric_limits<W>::infinity());
    std::fill_n(rows.sums, block.rows, W(0));
    std::fill_n(rows.out.data, block.rows * headSize, W(0));
    auto q = loadRows(operands.q + block.query, shape.queryStride(), block.rows, headSize,
                      arrays[Queries]);
    forKeyBlocks(block, [&](KeyRange range) {
      multiplyScores(block, range, q, keys, arrays[Scores], stride);
      weigh(shape, block, range, dropout, arrays[Scores], stride, rows);
      addWeighted<W>(block, range, arrays[Scores], stride, values, rows.out);
    });
    finish<F>(shape, block, dropout ? dropout.scale : 1, rows, operands.out, operands.lse);
  });
}

/// With `cached`, input 3 says for each sample how many keys come before the one of query 0, and
/// there is no output lse.
template <typename F> std::unique_ptr<CpuKernel> makeAttention(AttentionCall call, bool cached) {
  ThreadArrays<Wide<F>, ArrayCount> arrays = arraysFor<F>(call.shape);
  auto run = [call = std::move(call), arrays, cached](const CpuArguments &args) {
    Operands<F> operands{input<F>(args, 0), input<F>(args, 1), input<F>(args, 2),
                         output<F>(args, 0), cached ? nullptr : output<Wide<F>>(args, 1)};
    const int32_t *positions = cached ? input<int32_t>(args, 3) : nullptr;
    AttentionDropout dropout = dropoutOf(call, args);
    parallelFor(args.threads, countTasks(call.shape), taskGrain(call.shape),
                [&](int64_t begin, int64_t end, int part) {
                  auto own = arrays.at(args.workspace, part);
                  for (int64_t task = begin; task < end; ++task) {
                    AttentionShape shape = call.shape;
                    if (positions)
                      shape.earlier = positions[task / shape.kvHeads];
                    runTask(shape, dropout, operands, task, own);
                  }
                });
  };
  return makeKernel(std::move(run),
                    [=](int threads) { return static_cast<size_t>(threads) * arrays.bytes(); });
}

PrepareResult prepareAttention(const KernelSignature &signature) {
  Expected<AttentionCall> call = checkAttention(signature);
  if (!call)
    return call.error();
  return withFloatType(call->dtype, [&](auto zero) {
    return makeAttention<decltype(zero)>(std::move(*call), false);
  });
}

PrepareResult prepareCachedAttention(const KernelSignature &signature) {
  Expected<AttentionCall> call = checkCachedAttention(signature);
  if (!call)
    return call.error();
  return withFloatType(call->dtype, [&](auto zero) {
    return makeAttention<decltype(zero)>(std::move(*call), true);
  });
}

} // namespace

std::span<const KernelEntry> attentionKernels() {
  static constexpr KernelEntry entries[] = {
      {"attention", prepareAttention},
      {"cached_attention", prepareCachedAttention},
      {"attention_grad", prepareAttentionGrad},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
