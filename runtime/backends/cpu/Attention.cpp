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
template <typename F> struct Arrays {
  Wide<F> *scores, *k, *v, *q, *out, *lse;

  static size_t bytes(const AttentionShape &shape) {
    return arrayBytes<Wide<F>>(blockElements(shape)) +
           2 * arrayBytes<Wide<F>>(rowElements<F>(shape, shape.keys)) +
           2 * arrayBytes<Wide<F>>(rowElements<F>(shape, blockRows(shape))) +
           arrayBytes<Wide<F>>(blockRows(shape));
  }
  Arrays(const AttentionShape &shape, void *workspace, int part) {
    WorkspaceCursor cursor(static_cast<std::byte *>(workspace) +
                           static_cast<size_t>(part) * bytes(shape));
    scores = cursor.take<Wide<F>>(blockElements(shape));
    k = cursor.take<Wide<F>>(rowElements<F>(shape, shape.keys));
    v = cursor.take<Wide<F>>(rowElements<F>(shape, shape.keys));
    q = cursor.take<Wide<F>>(rowElements<F>(shape, blockRows(shape)));
    out = cursor.take<Wide<F>>(rowElements<F>(shape, blockRows(shape)));
    lse = cursor.take<Wide<F>>(blockRows(shape));
  }
};

/// The rows of a block from their scores to their weights.
template <typename W>
void weigh(const AttentionShape &shape, const VisibleKeys &visibleKeys, const AttentionBlock &block,
           const AttentionDropout &dropout, W *scores, W *lse) {
  simd([=] {
    for (int64_t i = 0; i < block.rows; ++i) {
      W *row = scores + i * block.keys;
      KeyRange seen = seenByRow(visibleKeys, block, i);
      W *visible = row + seen.begin;
      if (shape.softcap != 0)
        capScores(shape.softcap, visible, seen.count());
      W largest = maxOf(visible, seen.count());
      W sum = exponentials(visible, visible, seen.count(), W(1), largest);
      lse[i] = seen.count() ? largest + std::log(sum) : largest;
      W inverse = W(1) / sum;
      if (dropout) {
        W kept = static_cast<W>(dropout.scale) * inverse;
        dropout.forKeys(shape, block, i, seen, [=](int64_t j, int64_t count, const uint8_t *keep) {
          W *some = row + j;
#pragma omp simd
          for (int64_t e = 0; e < count; ++e)
            some[e] = keep[e] ? some[e] * kept : W(0);
        });
      } else {
#pragma omp simd
        for (int64_t j = seen.begin; j < seen.end; ++j)
          row[j] *= inverse;
      }
      std::fill(row, visible, W(0));
      std::fill(row + seen.end, row + block.keys, W(0));
    }
  });
}

/// With `cached`, input 3 says for each sample how many keys come before the one of query 0, and
/// there is no output lse.
template <typename F> std::unique_ptr<CpuKernel> makeAttention(AttentionCall call, bool cached) {
  using W = Wide<F>;
  AttentionShape shape = call.shape;
  auto run = [call = std::move(call), cached](const CpuArguments &args) {
    const AttentionShape &shape = call.shape;
    const F *q = input<F>(args, 0), *k = input<F>(args, 1), *v = input<F>(args, 2);
    F *out = output<F>(args, 0);
    W *lse = cached ? nullptr : output<W>(args, 1);
    const int32_t *positions = cached ? input<int32_t>(args, 3) : nullptr;
    AttentionDropout dropout = dropoutOf(call, args);
    int64_t headSize = shape.headSize;
    auto runTask = [=, &call](int64_t task, const Arrays<F> &arrays) {
      AttentionShape shape = call.shape;
      if (positions)
        shape.earlier = positions[task / shape.kvHeads];
      int64_t key = keyOffset(shape, task), stride = shape.queryStride();
      VisibleKeys visible(shape);
      int64_t seen = visible.ofRows(0, shape.queries).end;
      auto ks = loadRows(k + key, shape.keyStride(), seen, headSize, arrays.k);
      auto vs = loadRows(v + key, shape.keyStride(), seen, headSize, arrays.v);
      forBlocks(shape, visible, task, [=, &shape, &visible](const AttentionBlock &block) {
        F *to = out + block.query;
        W *blockLse = lse ? lse + block.lse : arrays.lse;
        if (block.keys == 0) {
          zeroRows(HeadRows<F>{to, stride}, block.rows, headSize);
          std::fill_n(blockLse, block.rows, -std::numeric_limits<W>::infinity());
          return;
        }
        auto qs = loadRows(q + block.query, stride, block.rows, headSize, arrays.q);
        auto wide = rowsToStore(to, stride, headSize, arrays.out);
        multiplyScores(shape, block, static_cast<W>(shape.scale), qs, ks, arrays.scores);
        weigh(shape, visible, block, dropout, arrays.scores, blockLse);
        multiplyByKeys(shape, block, arrays.scores, vs, wide);
        storeRows(wide, to, stride, block.rows, headSize);
      });
    };
    parallelFor(args.threads, countTasks(shape), taskGrain(shape),
                [&](int64_t begin, int64_t end, int part) {
                  Arrays<F> arrays(shape, args.workspace, part);
                  for (int64_t task = begin; task < end; ++task)
                    runTask(task, arrays);
                });
  };
  return makeKernel(std::move(run), [=](int threads) {
    return static_cast<size_t>(threads) * Arrays<F>::bytes(shape);
  });
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
