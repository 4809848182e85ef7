//===- AttentionGrad.cpp - The gradient of attention ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/AttentionRows.h"
#include "runtime/backends/cpu/AttentionTiles.h"
#include "runtime/backends/cpu/Segments.h"

namespace dtc::runtime::cpu {

namespace {

/// The arrays of a thread. The gradients of keys and values of 16 bits are summed in theirs.
enum ArrayIndex {
  Weights,
  WeightGrads,
  Slopes,
  KeysTransposed,
  ValuesTransposed,
  KeysByRow,
  KeyGrads,
  ValueGrads,
  Queries,
  QueriesPacked,
  OutGrads,
  OutGradsPacked,
  Outs,
  QueryGrads,
  Deltas,
  ArrayCount
};

template <typename F> ThreadArrays<Wide<F>, ArrayCount> arraysFor(const AttentionShape &shape) {
  using W = Wide<F>;
  int64_t rows = blockRows(shape), headSize = shape.headSize;
  int64_t transposed = panelElements<W>(headSize, roundUp(shape.keys, kPanel<float>));
  ThreadArrays<W, ArrayCount> arrays;
  auto &elements = arrays.elements;
  elements[Weights] = elements[WeightGrads] = blockElements(shape);
  elements[Slopes] = shape.softcap != 0 ? scoreStride(shape) : 0;
  elements[KeysTransposed] = elements[ValuesTransposed] = transposed;
  elements[KeysByRow] = panelElements<W>(shape.keys, headSize);
  // Before the first block they also take the widened keys and values, which are then packed.
  elements[KeyGrads] = elements[ValueGrads] = rowElements<F>(shape, shape.keys);
  elements[Queries] = elements[OutGrads] = elements[Outs] = rowElements<F>(shape, rows);
  elements[QueriesPacked] = elements[OutGradsPacked] = panelElements<W>(rows, headSize);
  elements[QueryGrads] = rows * headSize;
  elements[Deltas] = rows;
  return arrays;
}

template <typename F>
void runTask(const AttentionShape &shape, const AttentionDropout &dropout,
             const AttentionGradOperands<F> &operands, int64_t task,
             const std::array<Wide<F> *, ArrayCount> &arrays) {
  using W = Wide<F>;
  int64_t key = keyOffset(shape, task), keyStride = shape.keyStride(), keys = shape.keys;
  int64_t qStride = shape.queryStride(), outStride = shape.outStride(), headSize = shape.headSize,
          scores = scoreStride(shape);
  auto kTransposed = loadOperand(operands.k + key, keyStride, keys, headSize, true,
                                 arrays[KeyGrads], arrays[KeysTransposed]);
  auto k = loadOperand(operands.k + key, keyStride, keys, headSize, false, arrays[KeyGrads],
                       arrays[KeysByRow]);
  auto vTransposed = loadOperand(operands.v + key, keyStride, keys, headSize, true,
                                 arrays[ValueGrads], arrays[ValuesTransposed]);
  auto dk = rowsToStore(operands.dk + key, keyStride, headSize, arrays[KeyGrads]);
  auto dv = rowsToStore(operands.dv + key, keyStride, headSize, arrays[ValueGrads]);
  zeroRows(dk, keys, headSize);
  zeroRows(dv, keys, headSize);
  VisibleKeys visible(shape);
  forBlocks(shape, visible, task, [&](const AttentionBlock &block) {
    auto load = [&](const F *rows, int64_t stride, ArrayIndex array) {
      return loadRows(rows, stride, block.rows, headSize, arrays[array]);
    };
    auto q = load(operands.q + block.query, qStride, Queries);
    auto dout = load(operands.dout + block.out, outStride, OutGrads);
    sumProducts<W>(block.rows, headSize, load(operands.out + block.out, outStride, Outs), dout,
                   arrays[Deltas]);
    packRows(q.data, q.stride, block.rows, headSize, arrays[QueriesPacked]);
    packRows(dout.data, dout.stride, block.rows, headSize, arrays[OutGradsPacked]);
    HeadOperand<W> qPacked{q, block.rows, headSize, arrays[QueriesPacked]};
    HeadOperand<W> doutPacked{dout, block.rows, headSize, arrays[OutGradsPacked]};
    HeadRows<W> dq{arrays[QueryGrads], headSize};
    zeroRows(dq, block.rows, headSize);
    W *weights = arrays[Weights], *dweights = arrays[WeightGrads];
    forKeyBlocks(block, [&](KeyRange range) {
      multiplyScores(block, range, q, kTransposed, weights, scores);
      multiplyScores(block, range, dout, vTransposed, dweights, scores);
      weighGradients<W>(
          shape, block, range, dropout,
          {weights, dweights, arrays[Slopes], scores, operands.lse + block.lse, arrays[Deltas]});
      addToKeys<W>(block, range, weights, scores, doutPacked, dv);
      addToKeys<W>(block, range, dweights, scores, qPacked, dk);
      addWeighted(block, range, dweights, scores, k, dq);
    });
    storeRows(dq, operands.dq + block.query, qStride, block.rows, headSize);
  });
  if constexpr (!kIsWide<F>) {
    storeRows(dk, operands.dk + key, keyStride, keys, headSize);
    storeRows(dv, operands.dv + key, keyStride, keys, headSize);
  }
}

template <typename F> std::unique_ptr<CpuKernel> makeGradOf(AttentionCall call) {
  ThreadArrays<Wide<F>, ArrayCount> arrays = arraysFor<F>(call.shape);
  size_t segmentBytes = SegmentRanges::bytes(call);
  auto run = [call = std::move(call), arrays](const CpuArguments &args) {
    const AttentionShape &shape = call.shape;
    AttentionGradOperands<F> operands = {
        input<F>(args, 0),  input<F>(args, 1),       input<F>(args, 2),
        input<F>(args, 3),  input<Wide<F>>(args, 4), input<F>(args, 5),
        output<F>(args, 0), output<F>(args, 1),      output<F>(args, 2)};
    AttentionDropout dropout = dropoutOf(call, args);
    SegmentRanges segments(call, args);
    parallelFor(args.threads, countTasks(shape), taskGrain(shape),
                [&](int64_t begin, int64_t end, int part) {
                  auto own = arrays.at(segments.workspace(), part);
                  for (int64_t task = begin; task < end; ++task)
                    runTask(segments.of(task), dropout, operands, task, own);
                });
  };
  return makeKernel(std::move(run), [=](int threads) {
    return segmentBytes + static_cast<size_t>(threads) * arrays.bytes();
  });
}

} // namespace

std::unique_ptr<CpuKernel> makeAttentionGrad(AttentionCall call) {
  if (attentionUsesTiles(call))
    return makeTileAttentionGrad(std::move(call));
  return withFloatType(call.dtype,
                       [&](auto zero) { return makeGradOf<decltype(zero)>(std::move(call)); });
}

} // namespace dtc::runtime::cpu
