//===- AttentionTiles.cpp - Attention on bf16 by a unit of bf16 -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Attention and its gradient in the same blocks as in Attention.cpp and AttentionGrad.cpp, with
// the products of Tiles.h. The gradients of keys and values are summed transposed, (elements,
// keys): then weights, whose rows are queries, are right operands of their products, and pairs of
// their rows need no transposing.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/AttentionTiles.h"

#include "runtime/backends/cpu/AttentionRows.h"
#include "runtime/backends/cpu/Bf16Unit.h"
#include "runtime/backends/cpu/Segments.h"
#include "runtime/backends/cpu/Tiles.h"
#include "runtime/backends/cpu/Transpose.h"

namespace dtc::runtime::cpu {

namespace {

/// Rows or keys of a block whose products leave out the same: two by two tiles.
constexpr int64_t kTileGroup = 2 * kTileRows;
/// The stride between the rows of a block of weights: its columns are multiples of the depth of a
/// tile.
constexpr int64_t kWeightStride = kKeyBlock + kTileDepth;

int64_t padRows(int64_t count) { return roundUp(count, kTileRows); }
int64_t padDepth(int64_t count) { return roundUp(count, kTileDepth); }

/// Floats that take the room of `elements` elements of bf16.
int64_t halfFloats(int64_t elements) { return (elements + 1) / 2; }
BFloat16 *halves(float *array) { return reinterpret_cast<BFloat16 *>(array); }
uint32_t *words(float *array) { return reinterpret_cast<uint32_t *>(array); }

/// Keys or values by row; a product may begin with any panel of them, so their depth is padded
/// more.
int64_t keyDepth(const AttentionShape &shape) { return padDepth(shape.keys) + kTileDepth; }

/// The rows of a block, padded to whole tiles.
const BFloat16 *loadTileRows(const AttentionShape &shape, const BFloat16 *from, int64_t stride,
                             int64_t rows, float *array) {
  int64_t depth = padDepth(shape.headSize);
  BFloat16 *to = halves(array);
  for (int64_t i = 0; i < rows; ++i) {
    prefetchRow(from, stride, shape.headSize, i, rows);
    std::copy_n(from + i * stride, shape.headSize, to + i * depth);
    std::fill(to + i * depth + shape.headSize, to + (i + 1) * depth, BFloat16());
  }
  std::fill(to + rows * depth, to + padRows(rows) * depth, BFloat16());
  return to;
}

/// scores = rows * keys^T, where a row sees a key. `keys` is packed transposed.
void multiplyScores(const AttentionShape &shape, const AttentionBlock &block, KeyRange range,
                    const BFloat16 *rows, const uint32_t *keys, float *scores) {
  int64_t depth = padDepth(shape.headSize), panelStride = depth / 2 * kTileRows;
  for (int64_t first = 0; first < block.rows; first += kTileGroup) {
    int64_t count = std::min(kTileGroup, block.rows - first);
    KeyRange seen = block.ofRows(first, count, range);
    if (seen.count() > 0)
      multiplyTiles(padRows(count), padRows(seen.count()), depth, rows + first * depth, depth,
                    {keys + (range.begin + seen.begin) / kTileRows * panelStride, panelStride},
                    false, scores + first * kWeightStride + seen.begin, kWeightStride);
  }
}

/// out += weights * values; rows of out have as many elements as whole tiles of a head.
/// `rounded` takes the weights in bf16.
void addWeighted(const AttentionShape &shape, const AttentionBlock &block, KeyRange range,
                 const float *weights, BFloat16 *rounded, const uint32_t *values, float *out) {
  int64_t columns = padRows(shape.headSize), panelStride = keyDepth(shape) / 2 * kTileRows;
  for (int64_t first = 0; first < block.rows; first += kTileGroup) {
    int64_t count = std::min(kTileGroup, block.rows - first);
    KeyRange seen = block.ofRows(first, count, range);
    if (seen.count() == 0)
      continue;
    int64_t depth = padDepth(seen.count());
    for (int64_t i = 0; i < padRows(count); ++i) {
      BFloat16 *to = rounded + i * kWeightStride;
      if (i < count)
        narrow(weights + (first + i) * kWeightStride + seen.begin, to, seen.count());
      std::fill(to + (i < count ? seen.count() : 0), to + depth, BFloat16());
    }
    multiplyTiles(padRows(count), columns, depth, rounded, kWeightStride,
                  {values + (range.begin + seen.begin) / 2 * kTileRows, panelStride}, true,
                  out + first * columns, columns);
  }
}

/// Rounds the weights of a block and makes words of pairs of its rows, in panels of keys.
void pairWeights(int64_t rows, int64_t keys, const float *weights, uint32_t *panels) {
  constexpr int64_t panelWords = kRowBlock / 2 * kTileRows;
  simd([=] {
    for (int64_t i = 0; i < kRowBlock; i += 2)
      for (int64_t j = 0; j < keys; j += kTileRows) {
        uint32_t *to = panels + j / kTileRows * panelWords + i / 2 * kTileRows;
        const float *even = weights + i * kWeightStride + j, *odd = even + kWeightStride;
        if (i + 1 < rows) {
#pragma omp simd
          for (int64_t e = 0; e < kTileRows; ++e)
            to[e] = BFloat16(even[e]).bits | static_cast<uint32_t>(BFloat16(odd[e]).bits) << 16;
        } else if (i < rows) {
#pragma omp simd
          for (int64_t e = 0; e < kTileRows; ++e)
            to[e] = BFloat16(even[e]).bits;
        } else {
          std::fill_n(to, kTileRows, 0u);
        }
      }
  });
}

/// sums += rows^T * weights: (elements, keys). `rows` is the transposed block, `panels` its weights
/// in pairs.
void addToKeys(const AttentionShape &shape, const AttentionBlock &block, KeyRange range,
               const BFloat16 *rows, const uint32_t *panels, float *sums) {
  constexpr int64_t panelWords = kRowBlock / 2 * kTileRows;
  int64_t stride = padRows(shape.keys);
  for (int64_t first = 0; first < range.count(); first += kTileGroup) {
    int64_t count = std::min(kTileGroup, range.count() - first), key = range.begin + first;
    KeyRange seeing = block.rowsSeeing({key, key + count});
    if (seeing.count() == 0)
      continue;
    int64_t begin = seeing.begin / kTileDepth * kTileDepth;
    multiplyTiles(padRows(shape.headSize), padRows(count), padDepth(seeing.end - begin),
                  rows + begin, kRowBlock,
                  {panels + first / kTileRows * panelWords + begin / 2 * kTileRows, panelWords},
                  true, sums + key, stride);
  }
}

/// The rows of a block of the gradients of keys or values, from their transposed sums.
void storeKeys(const AttentionShape &shape, const float *sums, float *array, BFloat16 *to) {
  int64_t stride = padRows(shape.keys);
  for (int64_t key = 0; key < shape.keys; key += kRowBlock) {
    int64_t count = std::min(kRowBlock, shape.keys - key);
    transpose(sums + key, stride, shape.headSize, count, array, shape.headSize);
    storeRows<BFloat16>({array, shape.headSize}, to + key * shape.keyStride(), shape.keyStride(),
                        count, shape.headSize);
  }
}

/// Zeroes the columns of scores that pad a block: products read whole tiles.
void zeroPadding(int64_t rows, KeyRange range, float *scores) {
  int64_t width = range.count(), padded = padRows(width);
  for (int64_t i = 0; i < rows; ++i)
    std::fill(scores + i * kWeightStride + width, scores + i * kWeightStride + padded, 0.0f);
}

//===- attention ---------------------------------------------------------===//

enum ArrayIndex { Scores, Keys, Values, Queries, Rounded, Out, Largest, Sums, ArrayCount };

ThreadArrays<float, ArrayCount> arraysFor(const AttentionShape &shape) {
  ThreadArrays<float, ArrayCount> arrays;
  auto &elements = arrays.elements;
  elements[Scores] = kRowBlock * kWeightStride;
  elements[Keys] = tileWords(shape.headSize, shape.keys);
  elements[Values] = tileWords(keyDepth(shape), shape.headSize);
  elements[Queries] = halfFloats(kRowBlock * padDepth(shape.headSize));
  elements[Rounded] = halfFloats(kTileGroup * kWeightStride);
  elements[Out] = kRowBlock * padRows(shape.headSize);
  elements[Largest] = elements[Sums] = kRowBlock;
  return arrays;
}

void runTask(const AttentionShape &shape, const AttentionDropout &dropout,
             const AttentionOperands<BFloat16> &operands, int64_t task,
             const std::array<float *, ArrayCount> &arrays) {
  int64_t key = keyOffset(shape, task);
  VisibleKeys visible(shape);
  int64_t seen = visible.end();
  packTilesTransposed(operands.k + key, shape.keyStride(), shape.headSize, seen,
                      words(arrays[Keys]));
  packTileRows(operands.v + key, shape.keyStride(), seen, shape.headSize, keyDepth(shape),
               words(arrays[Values]));
  RowSums<float> rows{arrays[Largest], arrays[Sums], {arrays[Out], padRows(shape.headSize)}};
  forBlocks(shape, visible, task, [&](const AttentionBlock &block) {
    rows.clear(kRowBlock);
    const BFloat16 *q = loadTileRows(shape, operands.q + block.query, shape.queryStride(),
                                     block.rows, arrays[Queries]);
    forKeyBlocks(block, [&](KeyRange range) {
      multiplyScores(shape, block, range, q, words(arrays[Keys]), arrays[Scores]);
      weigh(shape, block, range, dropout, arrays[Scores], kWeightStride, rows);
      addWeighted(shape, block, range, arrays[Scores], halves(arrays[Rounded]),
                  words(arrays[Values]), rows.out.data);
    });
    finish(shape, block, dropout ? dropout.scale : 1, rows, operands);
  });
}

//===- attention_grad ----------------------------------------------------===//

enum GradArrayIndex {
  Weights,
  WeightGrads,
  Slopes,
  RoundedGrads,
  WeightPairs,
  KeysTransposed,
  ValuesTransposed,
  KeysByRow,
  KeyGrads,
  ValueGrads,
  QueryRows,
  QueryColumns,
  OutGradRows,
  OutGradColumns,
  WideRows,
  QueryGrads,
  Deltas,
  GradArrayCount
};

ThreadArrays<float, GradArrayCount> gradArraysFor(const AttentionShape &shape) {
  ThreadArrays<float, GradArrayCount> arrays;
  auto &elements = arrays.elements;
  int64_t rows = padRows(shape.headSize), depth = padDepth(shape.headSize);
  elements[Weights] = elements[WeightGrads] = kRowBlock * kWeightStride;
  elements[Slopes] = shape.softcap != 0 ? kKeyBlock : 0;
  elements[RoundedGrads] = halfFloats(kTileGroup * kWeightStride);
  elements[WeightPairs] = kRowBlock / 2 * kKeyBlock;
  elements[KeysTransposed] = elements[ValuesTransposed] = tileWords(shape.headSize, shape.keys);
  elements[KeysByRow] = tileWords(keyDepth(shape), shape.headSize);
  elements[KeyGrads] = elements[ValueGrads] = rows * padRows(shape.keys);
  elements[QueryRows] = elements[OutGradRows] = halfFloats(kRowBlock * depth);
  elements[QueryColumns] = elements[OutGradColumns] = halfFloats(kRowBlock * rows);
  elements[WideRows] = kRowBlock * shape.headSize;
  elements[QueryGrads] = kRowBlock * rows;
  elements[Deltas] = kRowBlock;
  return arrays;
}

/// The block's rows transposed; the rows that pad the head stay zero.
const BFloat16 *loadColumns(const AttentionShape &shape, const BFloat16 *from, int64_t stride,
                            int64_t rows, float *array) {
  BFloat16 *to = halves(array);
  transpose(from, stride, rows, shape.headSize, kRowBlock, to);
  std::fill(to + shape.headSize * kRowBlock, to + padRows(shape.headSize) * kRowBlock, BFloat16());
  return to;
}

void runGradTask(const AttentionShape &shape, const AttentionDropout &dropout,
                 const AttentionGradOperands<BFloat16> &operands, int64_t task,
                 const std::array<float *, GradArrayCount> &arrays) {
  int64_t key = keyOffset(shape, task), headSize = shape.headSize, columns = padRows(headSize);
  uint32_t *kTransposed = words(arrays[KeysTransposed]),
           *vTransposed = words(arrays[ValuesTransposed]);
  uint32_t *k = words(arrays[KeysByRow]), *pairs = words(arrays[WeightPairs]);
  // Keys that no query sees may be padding, of any value. A whole tile would multiply it by zero.
  VisibleKeys visible(shape);
  int64_t seen = visible.end();
  packTilesTransposed(operands.k + key, shape.keyStride(), headSize, seen, kTransposed);
  packTilesTransposed(operands.v + key, shape.keyStride(), headSize, seen, vTransposed);
  packTileRows(operands.k + key, shape.keyStride(), seen, headSize, keyDepth(shape), k);
  float *dk = arrays[KeyGrads], *dv = arrays[ValueGrads], *dq = arrays[QueryGrads];
  std::fill_n(dk, columns * padRows(shape.keys), 0.0f);
  std::fill_n(dv, columns * padRows(shape.keys), 0.0f);
  float *weights = arrays[Weights], *dweights = arrays[WeightGrads];
  forBlocks(shape, visible, task, [&](const AttentionBlock &block) {
    const BFloat16 *qFrom = operands.q + block.query, *doutFrom = operands.dout + block.out;
    int64_t rows = block.rows, qStride = shape.queryStride(), outStride = shape.outStride();
    sumProducts<BFloat16>(rows, headSize, {operands.out + block.out, outStride},
                          {doutFrom, outStride}, arrays[Deltas]);
    const BFloat16 *q = loadTileRows(shape, qFrom, qStride, rows, arrays[QueryRows]);
    const BFloat16 *dout = loadTileRows(shape, doutFrom, outStride, rows, arrays[OutGradRows]);
    const BFloat16 *qColumns = loadColumns(shape, qFrom, qStride, rows, arrays[QueryColumns]);
    const BFloat16 *doutColumns =
        loadColumns(shape, doutFrom, outStride, rows, arrays[OutGradColumns]);
    std::fill_n(dq, kRowBlock * columns, 0.0f);
    forKeyBlocks(block, [&](KeyRange range) {
      multiplyScores(shape, block, range, q, kTransposed, weights);
      multiplyScores(shape, block, range, dout, vTransposed, dweights);
      weighGradients<float>(shape, block, range, dropout,
                            {weights, dweights, arrays[Slopes], kWeightStride,
                             operands.lse + block.lse, arrays[Deltas]});
      zeroPadding(block.rows, range, weights);
      zeroPadding(block.rows, range, dweights);
      pairWeights(block.rows, range.count(), weights, pairs);
      addToKeys(shape, block, range, doutColumns, pairs, dv);
      pairWeights(block.rows, range.count(), dweights, pairs);
      addToKeys(shape, block, range, qColumns, pairs, dk);
      addWeighted(shape, block, range, dweights, halves(arrays[RoundedGrads]), k, dq);
    });
    storeRows<BFloat16>({dq, columns}, operands.dq + block.query, qStride, rows, headSize);
  });
  storeKeys(shape, dk, arrays[WideRows], operands.dk + key);
  storeKeys(shape, dv, arrays[WideRows], operands.dv + key);
}

/// Runs body(task, arrays) for all tasks of a call, with the tiles of each thread and its arrays in
/// the workspace.
template <typename Arrays, typename Body>
void forTileTasks(const AttentionShape &shape, const CpuArguments &args, void *workspace,
                  const Arrays &arrays, const Body &body) {
  parallelFor(args.threads, countTasks(shape), taskGrain(shape),
              [&](int64_t begin, int64_t end, int part) {
                TileScope tiles;
                auto own = arrays.at(workspace, part);
                for (int64_t task = begin; task < end; ++task)
                  body(task, own);
              });
}

} // namespace

bool attentionUsesTiles(const AttentionCall &call) {
  // Rows are read 16 bytes at a time. Few rows would leave most of a tile empty.
  return call.dtype == DType::BF16 && call.shape.headSize % 8 == 0 && packsKeys(call.shape) &&
         bf16Unit() != Bf16Unit::None;
}

std::unique_ptr<CpuKernel> makeTileAttention(AttentionCall call, bool cached) {
  auto arrays = arraysFor(call.shape);
  size_t segmentBytes = SegmentRanges::bytes(call);
  auto run = [call = std::move(call), arrays, cached](const CpuArguments &args) {
    AttentionOperands<BFloat16> operands{input<BFloat16>(args, 0),
                                         input<BFloat16>(args, 1),
                                         input<BFloat16>(args, 2),
                                         output<BFloat16>(args, 0),
                                         cached ? nullptr : output<float>(args, 1),
                                         call.sinks ? input<BFloat16>(args, *call.sinks) : nullptr};
    const int32_t *positions = cached ? input<int32_t>(args, 3) : nullptr;
    AttentionDropout dropout = dropoutOf(call, args);
    SegmentRanges segments(call, args);
    forTileTasks(call.shape, args, segments.workspace(), arrays,
                 [&](int64_t task, const auto &own) {
                   AttentionShape shape = segments.of(task);
                   if (positions)
                     shape.earlier = positions[task / shape.kvHeads];
                   runTask(shape, dropout, operands, task, own);
                 });
  };
  return makeKernel(std::move(run), [=](int threads) {
    return segmentBytes + static_cast<size_t>(threads) * arrays.bytes();
  });
}

std::unique_ptr<CpuKernel> makeTileAttentionGrad(AttentionCall call) {
  auto arrays = gradArraysFor(call.shape);
  size_t segmentBytes = SegmentRanges::bytes(call);
  auto run = [call = std::move(call), arrays](const CpuArguments &args) {
    AttentionGradOperands<BFloat16> operands = {
        input<BFloat16>(args, 0),  input<BFloat16>(args, 1),  input<BFloat16>(args, 2),
        input<BFloat16>(args, 3),  input<float>(args, 4),     input<BFloat16>(args, 5),
        output<BFloat16>(args, 0), output<BFloat16>(args, 1), output<BFloat16>(args, 2)};
    AttentionDropout dropout = dropoutOf(call, args);
    SegmentRanges segments(call, args);
    forTileTasks(call.shape, args, segments.workspace(), arrays,
                 [&](int64_t task, const auto &own) {
                   runGradTask(segments.of(task), dropout, operands, task, own);
                 });
  };
  return makeKernel(std::move(run), [=](int threads) {
    return segmentBytes + static_cast<size_t>(threads) * arrays.bytes();
  });
}

} // namespace dtc::runtime::cpu
