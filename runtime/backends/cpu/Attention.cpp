//===- Attention.cpp - Scaled dot-product attention -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/AttentionShape.h"
#include "runtime/backends/cpu/Softmax.h"

#include <fmt/format.h>

namespace dtc::runtime::cpu {

namespace {

/// The arrays of a thread.
template <typename F> struct Arrays {
  Wide<F> *scores, *k, *v, *q, *out, *lse;

  static size_t bytes(const AttentionShape &shape) {
    return arrayBytes<Wide<F>>(shape.blockElements()) +
           2 * arrayBytes<Wide<F>>(rowElements<F>(shape, shape.keys)) +
           2 * arrayBytes<Wide<F>>(rowElements<F>(shape, shape.blockRows())) +
           arrayBytes<Wide<F>>(shape.blockRows());
  }
  Arrays(const AttentionShape &shape, void *workspace, int part) {
    WorkspaceCursor cursor(static_cast<std::byte *>(workspace) +
                           static_cast<size_t>(part) * bytes(shape));
    scores = cursor.take<Wide<F>>(shape.blockElements());
    k = cursor.take<Wide<F>>(rowElements<F>(shape, shape.keys));
    v = cursor.take<Wide<F>>(rowElements<F>(shape, shape.keys));
    q = cursor.take<Wide<F>>(rowElements<F>(shape, shape.blockRows()));
    out = cursor.take<Wide<F>>(rowElements<F>(shape, shape.blockRows()));
    lse = cursor.take<Wide<F>>(shape.blockRows());
  }
};

/// The rows of a block from their scores to their weights.
template <typename W>
void weigh(const AttentionShape &shape, const AttentionBlock &block,
           const AttentionDropout &dropout, W *scores, W *lse) {
  simd([=] {
    for (int64_t i = 0; i < block.rows; ++i) {
      W *row = scores + i * block.keys;
      int64_t visible = shape.visible(block.begin + i);
      W largest = maxOf(row, visible);
      W sum = exponentials(row, row, visible, W(1), largest);
      lse[i] = visible ? largest + std::log(sum) : largest;
      W inverse = W(1) / sum;
      if (dropout) {
        W kept = static_cast<W>(dropout.scale) * inverse;
        dropout.forKeys(shape, block, i, visible,
                        [=](int64_t j, int64_t count, const uint8_t *keep) {
                          W *some = row + j;
#pragma omp simd
                          for (int64_t e = 0; e < count; ++e)
                            some[e] = keep[e] ? some[e] * kept : W(0);
                        });
      } else {
#pragma omp simd
        for (int64_t j = 0; j < visible; ++j)
          row[j] *= inverse;
      }
      std::fill(row + visible, row + block.keys, W(0));
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
    AttentionDropout dropout = call.dropout(args);
    int64_t headSize = shape.headSize;
    auto runTask = [=, &call](int64_t task, const Arrays<F> &arrays) {
      AttentionShape shape = call.shape;
      if (positions)
        shape.earlier = positions[task / shape.kvHeads];
      int64_t key = shape.keyOffset(task), stride = shape.queryStride();
      int64_t seen = shape.visible(shape.queries - 1);
      auto ks = loadRows(k + key, shape.keyStride(), seen, headSize, arrays.k);
      auto vs = loadRows(v + key, shape.keyStride(), seen, headSize, arrays.v);
      forBlocks(shape, task, [=, &shape](const AttentionBlock &block) {
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
        weigh(shape, block, dropout, arrays.scores, blockLse);
        multiplyByKeys(shape, block, arrays.scores, vs, wide);
        storeRows(wide, to, stride, block.rows, headSize);
      });
    };
    parallelFor(args.threads, shape.tasks(), shape.taskGrain(),
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
  SignatureChecker check(signature, hasAttentionDropout(signature) ? 4 : 3, 2);
  AttentionCall call = checkAttention(check, signature, 3);
  const TensorType &q = check.input(0);
  check.expectOutput(0, q);
  check.expectOutput(1, lseType(q));
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(
      q.dtype, [&](auto zero) { return makeAttention<decltype(zero)>(std::move(call), false); });
}

PrepareResult prepareCachedAttention(const KernelSignature &signature) {
  SignatureChecker check(signature, 4, 1);
  AttentionCall call = checkAttention(check, signature, 4, /*cached=*/true);
  const TensorType &q = check.input(0);
  if (!check.failed())
    check.expectInput(3, TensorType{DType::I32, {call.shape.batch}});
  check.expectOutput(0, q);
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(
      q.dtype, [&](auto zero) { return makeAttention<decltype(zero)>(std::move(call), true); });
}

} // namespace

bool hasAttentionDropout(const KernelSignature &signature) {
  auto found = signature.attributes.find("dropout");
  if (found == signature.attributes.end())
    return false;
  const double *rate = std::get_if<double>(&found->second);
  return !rate || *rate != 0;
}

AttentionCall checkAttention(SignatureChecker &check, const KernelSignature &signature,
                             size_t inputs, bool cached) {
  const TensorType &q = check.floatInputOfRank(0, 4);
  const TensorType &k = check.floatInputOfRank(1, 4);
  AttentionCall call;
  AttentionShape &shape = call.shape;
  shape.causal = cached || check.boolAttribute("causal");
  shape.scale = check.floatAttribute("scale");
  if (check.failed())
    return call;
  shape.batch = q.shape[0];
  shape.queries = q.shape[1];
  shape.heads = q.shape[2];
  shape.headSize = q.shape[3];
  shape.keys = k.shape[1];
  shape.kvHeads = k.shape[2];
  shape.earlier = shape.keys - shape.queries;
  check.expectInput(1,
                    TensorType{q.dtype, {shape.batch, shape.keys, shape.kvHeads, shape.headSize}});
  check.expectInput(2, k);
  if (shape.headSize == 0 || shape.kvHeads == 0 || shape.heads % shape.kvHeads != 0)
    check.fail(fmt::format("input 1 is {}, expected heads that divide the {} of input 0, of at "
                           "least 1 element",
                           k.str(), shape.heads));
  if (cached) {
    // Nothing drops out of it.
  } else if (hasAttentionDropout(signature)) {
    const int64_t scores[] = {shape.batch, shape.heads, shape.queries, shape.keys};
    call.mask = checkRandomMask(check, signature, "dropout", inputs, scores);
  } else if (check.hasAttribute("dropout")) {
    // Of a rate of 0: the mask may be described all the same, and is not used.
    check.floatAttribute("dropout");
    if (check.hasAttribute("op"))
      check.intAttribute("op");
    if (check.hasAttribute("shape"))
      check.intsAttribute("shape");
    if (check.hasAttribute("sharding"))
      check.stringsAttribute("sharding");
  }
  // Without elements nothing must be computed, nor scratch memory be asked for.
  if (q.numElements() == 0)
    shape.queries = 0;
  if (q.numElements() == 0 && k.numElements() == 0)
    shape.keys = 0;
  return call;
}

TensorType lseType(const TensorType &q) {
  return q.rank() == 4 ? TensorType{wideType(q.dtype), {q.shape[0], q.shape[2], q.shape[1]}} : q;
}

std::span<const KernelEntry> attentionKernels() {
  static constexpr KernelEntry entries[] = {
      {"attention", prepareAttention},
      {"cached_attention", prepareCachedAttention},
      {"attention_grad", prepareAttentionGrad},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
