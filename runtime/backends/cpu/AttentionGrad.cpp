//===- AttentionGrad.cpp - The gradient of attention ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/AttentionShape.h"
#include "runtime/backends/cpu/Softmax.h"

namespace dtc::runtime::cpu {

namespace {

/// The operands of attention_grad.
template <typename F> struct GradOperands {
  const F *q, *k, *v, *out;
  const Wide<F> *lse;
  const F *dout;
  F *dq, *dk, *dv;
};

/// Derivatives of the capped scores of a row.
int64_t slopeElements(const AttentionShape &shape) { return shape.softcap != 0 ? shape.keys : 0; }

/// The arrays of a thread. The gradients of keys and values are summed in theirs.
template <typename F> struct Arrays {
  Wide<F> *weights, *dweights, *slopes, *keys[4], *rows[4];

  static size_t bytes(const AttentionShape &shape) {
    return arrayBytes<Wide<F>>(slopeElements(shape)) +
           2 * arrayBytes<Wide<F>>(blockElements(shape)) +
           4 * arrayBytes<Wide<F>>(rowElements<F>(shape, shape.keys)) +
           4 * arrayBytes<Wide<F>>(rowElements<F>(shape, blockRows(shape)));
  }
  Arrays(const AttentionShape &shape, void *workspace, int part) {
    WorkspaceCursor cursor(static_cast<std::byte *>(workspace) +
                           static_cast<size_t>(part) * bytes(shape));
    weights = cursor.take<Wide<F>>(blockElements(shape));
    dweights = cursor.take<Wide<F>>(blockElements(shape));
    slopes = cursor.take<Wide<F>>(slopeElements(shape));
    for (Wide<F> *&array : keys)
      array = cursor.take<Wide<F>>(rowElements<F>(shape, shape.keys));
    for (Wide<F> *&array : rows)
      array = cursor.take<Wide<F>>(rowElements<F>(shape, blockRows(shape)));
  }
};

/// From scores to weights, and from the gradient of the weights to that of the scores.
template <typename W>
void weighGradients(const AttentionShape &shape, const VisibleKeys &visible,
                    const AttentionBlock &block, const AttentionDropout &dropout, const W *lse,
                    HeadRows<const W> out, HeadRows<const W> dout, W *weights, W *dweights,
                    W *slopes) {
  simd([=] {
    W scale = static_cast<W>(shape.scale);
    for (int64_t i = 0; i < block.rows; ++i) {
      W *row = weights + i * block.keys, *drow = dweights + i * block.keys;
      KeyRange seen = seenByRow(visible, block, i);
      if (shape.softcap != 0)
        capScores(shape.softcap, row + seen.begin, seen.count(), slopes + seen.begin);
      exponentials(row + seen.begin, row + seen.begin, seen.count(), W(1), lse[i]);
      // The gradient of the softmax p; the sum of p * dp is that of out * dout. With a mask m, out
      // has the weights p * m, and dp is m * dweights.
      W sum = dotOf(out.data + i * out.stride, dout.data + i * dout.stride, shape.headSize);
      if (dropout) {
        W kept = static_cast<W>(dropout.scale);
        dropout.forKeys(shape, block, i, seen, [=](int64_t j, int64_t count, const uint8_t *keep) {
          W *p = row + j, *dp = drow + j;
#pragma omp simd
          for (int64_t e = 0; e < count; ++e) {
            W m = keep[e] ? kept : W(0);
            dp[e] = p[e] * (m * dp[e] - sum) * scale;
            p[e] *= m;
          }
        });
      } else {
#pragma omp simd
        for (int64_t j = seen.begin; j < seen.end; ++j)
          drow[j] = row[j] * (drow[j] - sum) * scale;
      }
      if (shape.softcap != 0) {
#pragma omp simd
        for (int64_t j = seen.begin; j < seen.end; ++j)
          drow[j] *= slopes[j];
      }
      for (W *each : {row, drow}) {
        std::fill(each, each + seen.begin, W(0));
        std::fill(each + seen.end, each + block.keys, W(0));
      }
    }
  });
}

template <typename F>
void runTask(const AttentionShape &shape, const AttentionDropout &dropout,
             const GradOperands<F> &operands, int64_t task, const Arrays<F> &arrays) {
  using W = Wide<F>;
  int64_t key = keyOffset(shape, task), keyStride = shape.keyStride();
  int64_t stride = shape.queryStride(), headSize = shape.headSize;
  auto k = loadRows(operands.k + key, keyStride, shape.keys, headSize, arrays.keys[0]);
  auto v = loadRows(operands.v + key, keyStride, shape.keys, headSize, arrays.keys[1]);
  auto dk = rowsToStore(operands.dk + key, keyStride, headSize, arrays.keys[2]);
  auto dv = rowsToStore(operands.dv + key, keyStride, headSize, arrays.keys[3]);
  zeroRows(dk, shape.keys, headSize);
  zeroRows(dv, shape.keys, headSize);
  VisibleKeys visible(shape);
  forBlocks(shape, visible, task, [&](const AttentionBlock &block) {
    F *to = operands.dq + block.query;
    if (block.keys == 0)
      return zeroRows(HeadRows<F>{to, stride}, block.rows, headSize);
    auto load = [&](const F *operand, int array) {
      return loadRows(operand + block.query, stride, block.rows, headSize, arrays.rows[array]);
    };
    auto q = load(operands.q, 0), out = load(operands.out, 1), dout = load(operands.dout, 2);
    auto dq = rowsToStore(to, stride, headSize, arrays.rows[3]);
    multiplyScores(shape, block, static_cast<W>(shape.scale), q, k, arrays.weights);
    multiplyScores(shape, block, W(1), dout, v, arrays.dweights);
    weighGradients(shape, visible, block, dropout, operands.lse + block.lse, out, dout,
                   arrays.weights, arrays.dweights, arrays.slopes);
    addToKeys(shape, block, arrays.weights, dout, dv);
    multiplyByKeys(shape, block, arrays.dweights, k, dq);
    addToKeys(shape, block, arrays.dweights, q, dk);
    storeRows(dq, to, stride, block.rows, headSize);
  });
  storeRows(dk, operands.dk + key, keyStride, shape.keys, headSize);
  storeRows(dv, operands.dv + key, keyStride, shape.keys, headSize);
}

template <typename F> std::unique_ptr<CpuKernel> makeAttentionGrad(AttentionCall call) {
  AttentionShape shape = call.shape;
  auto run = [call = std::move(call)](const CpuArguments &args) {
    const AttentionShape &shape = call.shape;
    GradOperands<F> operands = {input<F>(args, 0),  input<F>(args, 1),       input<F>(args, 2),
                                input<F>(args, 3),  input<Wide<F>>(args, 4), input<F>(args, 5),
                                output<F>(args, 0), output<F>(args, 1),      output<F>(args, 2)};
    AttentionDropout dropout = dropoutOf(call, args);
    parallelFor(args.threads, countTasks(shape), taskGrain(shape),
                [&](int64_t begin, int64_t end, int part) {
                  Arrays<F> arrays(shape, args.workspace, part);
                  for (int64_t task = begin; task < end; ++task)
                    runTask(shape, dropout, operands, task, arrays);
                });
  };
  return makeKernel(std::move(run), [=](int threads) {
    return static_cast<size_t>(threads) * Arrays<F>::bytes(shape);
  });
}

} // namespace

PrepareResult prepareAttentionGrad(const KernelSignature &signature) {
  Expected<AttentionCall> call = checkAttentionGrad(signature);
  if (!call)
    return call.error();
  return withFloatType(
      call->dtype, [&](auto zero) { return makeAttentionGrad<decltype(zero)>(std::move(*call)); });
}

} // namespace dtc::runtime::cpu
