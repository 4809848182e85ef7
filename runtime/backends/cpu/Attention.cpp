//===- Attention.cpp - Scaled dot-product attention -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/AttentionRows.h"
#include "runtime/backends/cpu/AttentionTiles.h"
#include "runtime/backends/cpu/Segments.h"

#include <cmath>
#include <limits>
#include <tuple>

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
  elements[WideKeys] = elements[WideValues] = packs ? rowElements<F>(shape, shape.keys) : 0;
  elements[Queries] = rowElements<F>(shape, blockRows(shape));
  elements[Out] = blockRows(shape) * shape.headSize;
  elements[Largest] = elements[Sums] = blockRows(shape);
  return arrays;
}

template <typename F>
void runTask(const AttentionShape &shape, const AttentionDropout &dropout,
             const AttentionOperands<F> &operands, int64_t task,
             const std::array<Wide<F> *, ArrayCount> &arrays) {
  using W = Wide<F>;
  int64_t headSize = shape.headSize, stride = scoreStride(shape), key = keyOffset(shape, task);
  VisibleKeys visible(shape);
  int64_t seen = visible.end();
  bool packs = packsKeys(shape);
  auto keys = loadOperand(operands.k + key, shape.keyStride(), seen, headSize, true,
                          arrays[WideKeys], packs ? arrays[Keys] : nullptr);
  auto values = loadOperand(operands.v + key, shape.keyStride(), seen, headSize, false,
                            arrays[WideValues], packs ? arrays[Values] : nullptr);
  RowSums<W> rows{arrays[Largest], arrays[Sums], {arrays[Out], headSize}};
  forBlocks(shape, visible, task, [&](const AttentionBlock &block) {
    rows.clear(block.rows);
    auto q = loadRows(operands.q + block.query, shape.queryStride(), block.rows, headSize,
                      arrays[Queries]);
    forKeyBlocks(block, [&](KeyRange range) {
      multiplyScores(block, range, q, keys, arrays[Scores], stride);
      weigh(shape, block, range, dropout, arrays[Scores], stride, rows);
      addWeighted(block, range, arrays[Scores], stride, values, rows.out);
    });
    finish<F>(shape, block, dropout ? dropout.scale : 1, rows, operands);
  });
}

/// With `cached`, input 3 says for each sample how many keys come before the one of query 0, and
/// there is no output lse.
template <typename F> std::unique_ptr<CpuKernel> makeAttentionOf(AttentionCall call, bool cached) {
  ThreadArrays<Wide<F>, ArrayCount> arrays = arraysFor<F>(call.shape);
  size_t segmentBytes = SegmentRanges::bytes(call);
  auto run = [call = std::move(call), arrays, cached](const CpuArguments &args) {
    AttentionOperands<F> operands{input<F>(args, 0),
                                  input<F>(args, 1),
                                  input<F>(args, 2),
                                  output<F>(args, 0),
                                  cached ? nullptr : output<Wide<F>>(args, 1),
                                  call.sinks ? input<F>(args, *call.sinks) : nullptr};
    const int32_t *positions = cached ? input<int32_t>(args, 3) : nullptr;
    AttentionDropout dropout = dropoutOf(call, args);
    SegmentRanges segments(call, args);
    parallelFor(args.threads, countTasks(call.shape), taskGrain(call.shape),
                [&](int64_t begin, int64_t end, int part) {
                  auto own = arrays.at(segments.workspace(), part);
                  for (int64_t task = begin; task < end; ++task) {
                    AttentionShape shape = segments.of(task);
                    if (positions)
                      shape.earlier = positions[task / shape.kvHeads];
                    runTask(shape, dropout, operands, task, own);
                  }
                });
  };
  return makeKernel(std::move(run), [=](int threads) {
    return segmentBytes + static_cast<size_t>(threads) * arrays.bytes();
  });
}

std::unique_ptr<CpuKernel> makeCall(AttentionCall call, bool cached) {
  if (attentionUsesTiles(call))
    return makeTileAttention(std::move(call), cached);
  return withFloatType(call.dtype, [&](auto zero) {
    return makeAttentionOf<decltype(zero)>(std::move(call), cached);
  });
}

PrepareResult prepareAttention(AttentionCall call) { return makeCall(std::move(call), false); }

PrepareResult prepareCachedAttention(AttentionCall call) { return makeCall(std::move(call), true); }

/// The weights with which two partial results are added, and the log of the sum of exponentials of
/// the scores over all keys.
template <typename W> std::tuple<W, W, W> mergeWeights(W lse, W partLse) {
  W largest = std::max(lse, partLse);
  // Where neither has seen a key, all weights are 0.
  W base = largest == -std::numeric_limits<W>::infinity() ? W(0) : largest;
  W weight = std::exp(lse - base), partWeight = std::exp(partLse - base);
  W sum = weight + partWeight, factor = sum == 0 ? W(0) : W(1) / sum;
  return {weight * factor, partWeight * factor, base + std::log(sum)};
}

template <typename F> std::unique_ptr<CpuKernel> makeMerge(const MergeAttentionCall &call) {
  using W = Wide<F>;
  return makeKernel([call](const CpuArguments &args) {
    const W *out = input<W>(args, 0), *lse = input<W>(args, 1), *partLse = input<W>(args, 3);
    const F *part = input<F>(args, 2);
    W *merged = output<W>(args, 0), *mergedLse = output<W>(args, 1);
    int64_t heads = call.heads, queries = call.queries, size = call.headSize;
    parallelFor(args.threads, call.batch * heads * queries, grainFor(size, 2),
                [&](int64_t begin, int64_t end, int) {
                  for (int64_t row = begin; row < end; ++row) {
                    int64_t b = row / (heads * queries), head = row / queries % heads,
                            query = row % queries;
                    int64_t at = ((b * queries + query) * heads + head) * size;
                    auto [weight, partWeight, sum] = mergeWeights(lse[row], partLse[row]);
                    mergedLse[row] = sum;
                    for (int64_t i = at; i < at + size; ++i)
                      merged[i] = weight * out[i] + partWeight * static_cast<W>(part[i]);
                  }
                });
  });
}

PrepareResult prepareMerge(const MergeAttentionCall &call) {
  return withFloatType(call.dtype, [&](auto zero) { return makeMerge<decltype(zero)>(call); });
}

} // namespace

std::unique_ptr<CpuKernel> makeAttention(AttentionCall call) {
  return makeCall(std::move(call), false);
}

std::span<const KernelEntry> attentionKernels() {
  static constexpr KernelEntry entries[] = {
      {"attention", prepareBy<checkAttention, prepareAttention>},
      {"cached_attention", prepareBy<checkCachedAttention, prepareCachedAttention>},
      {"attention_grad", prepareBy<checkAttentionGrad, makeAttentionGrad>},
      {"merge_attention", prepareBy<checkMergeAttention, prepareMerge>},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
