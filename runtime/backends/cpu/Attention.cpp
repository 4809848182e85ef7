//===- Attention.cpp - Scaled dot-product attention -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A task is a batch element and a key-value head. It walks the query heads of the group, each in
// blocks of rows, so that the scores of a block fit the cache. Keys that a causal block cannot see
// are left out of its products.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Gemm.h"
#include "runtime/backends/cpu/KernelSupport.h"
#include "runtime/backends/cpu/Softmax.h"

#include <fmt/format.h>

namespace dtc::runtime::cpu {

namespace {

struct AttentionShape {
  int64_t batch, queries, keys, heads, kvHeads, headSize;
  bool causal;
  double scale;

  int64_t tasks() const { return batch * kvHeads; }
  int64_t group() const { return heads / kvHeads; }
  /// Elements between the rows of a head in q, out and their gradients, and in k, v and theirs.
  int64_t queryStride() const { return heads * headSize; }
  int64_t keyStride() const { return kvHeads * headSize; }
  /// How many keys query `i` sees.
  int64_t visible(int64_t i) const {
    return causal ? std::clamp<int64_t>(i + 1 + keys - queries, 0, keys) : keys;
  }
  /// Rows whose scores are computed together.
  int64_t blockRows() const { return std::min<int64_t>(queries, 128); }
  /// Elements of the scores of a block.
  int64_t blockElements() const { return blockRows() * keys; }
};

/// A block of rows of one query head.
struct Block {
  int64_t begin, rows;
  int64_t keys;  // that the last row sees
  int64_t query; // offset of its first row in q and out
  int64_t key;   // offset of its head in k and v
  int64_t lse;   // offset of its first row in lse
};

/// Calls function(block) for the blocks of a task, in order.
template <typename Function>
void forBlocks(const AttentionShape &shape, int64_t task, const Function &function) {
  int64_t b = task / shape.kvHeads, kvHead = task % shape.kvHeads;
  int64_t key = b * shape.keys * shape.keyStride() + kvHead * shape.headSize;
  for (int64_t g = 0; g < shape.group(); ++g) {
    int64_t head = kvHead * shape.group() + g;
    for (int64_t begin = 0; begin < shape.queries; begin += shape.blockRows()) {
      int64_t rows = std::min(shape.blockRows(), shape.queries - begin);
      function(Block{begin, rows, shape.visible(begin + rows - 1),
                     (b * shape.queries + begin) * shape.queryStride() + head * shape.headSize, key,
                     (b * shape.heads + head) * shape.queries + begin});
    }
  }
}

/// scores = scale * q k^T: (rows, keys).
template <typename F>
void multiplyScores(const AttentionShape &shape, const Block &block, F scale, const F *q,
                    const F *k, F *scores) {
  gemm({block.rows,
        block.keys,
        shape.headSize,
        {shape.queryStride(), 1},
        {1, shape.keyStride()},
        {block.keys, 1}},
       scale, q + block.query, k + block.key, false, scores, 1);
}

/// out (+)= weights * values, (rows, keys) by (keys, headSize), into rows of a query-like tensor.
template <typename F>
void multiplyByKeys(const AttentionShape &shape, const Block &block, const F *weights,
                    const F *values, F *out) {
  gemm({block.rows,
        shape.headSize,
        block.keys,
        {block.keys, 1},
        {shape.keyStride(), 1},
        {shape.queryStride(), 1}},
       F(1), weights, values + block.key, false, out + block.query, 1);
}

/// out += weights^T * rows, (keys, rows) by (rows, headSize), into rows of a key-like tensor.
template <typename F>
void addToKeys(const AttentionShape &shape, const Block &block, const F *weights, const F *rows,
               F *out) {
  gemm({block.keys,
        shape.headSize,
        block.rows,
        {1, block.keys},
        {shape.queryStride(), 1},
        {shape.keyStride(), 1}},
       F(1), weights, rows + block.query, true, out + block.key, 1);
}

/// Zeroes `rows` rows of one head.
template <typename F> void zeroRows(F *out, int64_t rows, int64_t stride, int64_t headSize) {
  for (int64_t i = 0; i < rows; ++i)
    std::fill_n(out + i * stride, headSize, F(0));
}

template <typename F>
void attentionBlock(const AttentionShape &shape, const Block &block, const F *q, const F *k,
                    const F *v, F *out, F *lse, F *scores) {
  if (block.keys == 0) {
    zeroRows(out + block.query, block.rows, shape.queryStride(), shape.headSize);
    std::fill_n(lse + block.lse, block.rows, -std::numeric_limits<F>::infinity());
    return;
  }
  multiplyScores(shape, block, static_cast<F>(shape.scale), q, k, scores);
  simd([=] {
    for (int64_t i = 0; i < block.rows; ++i) {
      F *row = scores + i * block.keys;
      int64_t visible = shape.visible(block.begin + i);
      F largest = maxOf(row, visible);
      F sum = exponentials(row, row, visible, F(1), largest);
      lse[block.lse + i] = visible ? largest + std::log(sum) : largest;
      F inverse = F(1) / sum;
#pragma omp simd
      for (int64_t j = 0; j < visible; ++j)
        row[j] *= inverse;
      std::fill(row + visible, row + block.keys, F(0));
    }
  });
  multiplyByKeys(shape, block, scores, v, out);
}

template <typename F> std::unique_ptr<Kernel> makeAttention(const AttentionShape &shape) {
  auto run = [=](const KernelArguments &args) {
    const F *q = input<F>(args, 0), *k = input<F>(args, 1), *v = input<F>(args, 2);
    F *out = output<F>(args, 0), *lse = output<F>(args, 1);
    F *scores = static_cast<F *>(args.workspace);
    int64_t stride = static_cast<int64_t>(arrayBytes<F>(shape.blockElements()) / sizeof(F));
    parallelFor(args.threads, shape.tasks(), grainFor(shape.group() * shape.blockElements(), 4),
                [=](int64_t begin, int64_t end, int part) {
                  for (int64_t task = begin; task < end; ++task)
                    forBlocks(shape, task, [=](const Block &block) {
                      attentionBlock(shape, block, q, k, v, out, lse, scores + part * stride);
                    });
                });
  };
  return makeKernel(run, [=](int threads) {
    return static_cast<size_t>(threads) * arrayBytes<F>(shape.blockElements());
  });
}

/// The operands of attention_grad.
template <typename F> struct GradOperands {
  const F *q, *k, *v, *out, *lse, *dout;
  F *dq, *dk, *dv;
};

template <typename F>
void attentionGradBlock(const AttentionShape &shape, const Block &block,
                        const GradOperands<F> &operands, F *weights, F *dweights) {
  if (block.keys == 0) {
    zeroRows(operands.dq + block.query, block.rows, shape.queryStride(), shape.headSize);
    return;
  }
  F scale = static_cast<F>(shape.scale);
  multiplyScores(shape, block, scale, operands.q, operands.k, weights);
  multiplyScores(shape, block, F(1), operands.dout, operands.v, dweights);
  const F *lse = operands.lse + block.lse;
  const F *out = operands.out + block.query, *dout = operands.dout + block.query;
  simd([=] {
    for (int64_t i = 0; i < block.rows; ++i) {
      F *row = weights + i * block.keys, *drow = dweights + i * block.keys;
      int64_t visible = shape.visible(block.begin + i), offset = i * shape.queryStride();
      exponentials(row, row, visible, F(1), lse[i]);
      // The gradient of the softmax; the sum of p * dp is that of out * dout.
      F sum = dotOf(out + offset, dout + offset, shape.headSize);
#pragma omp simd
      for (int64_t j = 0; j < visible; ++j)
        drow[j] = row[j] * (drow[j] - sum) * scale;
      std::fill(row + visible, row + block.keys, F(0));
      std::fill(drow + visible, drow + block.keys, F(0));
    }
  });
  addToKeys(shape, block, weights, operands.dout, operands.dv);
  multiplyByKeys(shape, block, dweights, operands.k, operands.dq);
  addToKeys(shape, block, dweights, operands.q, operands.dk);
}

template <typename F> std::unique_ptr<Kernel> makeAttentionGrad(const AttentionShape &shape) {
  auto run = [=](const KernelArguments &args) {
    GradOperands<F> operands = {input<F>(args, 0),  input<F>(args, 1),  input<F>(args, 2),
                                input<F>(args, 3),  input<F>(args, 4),  input<F>(args, 5),
                                output<F>(args, 0), output<F>(args, 1), output<F>(args, 2)};
    F *scores = static_cast<F *>(args.workspace);
    int64_t stride = static_cast<int64_t>(arrayBytes<F>(shape.blockElements()) / sizeof(F));
    parallelFor(args.threads, shape.tasks(), grainFor(shape.group() * shape.blockElements(), 4),
                [=](int64_t begin, int64_t end, int part) {
                  F *weights = scores + 2 * part * stride, *dweights = weights + stride;
                  for (int64_t task = begin; task < end; ++task) {
                    int64_t key = task / shape.kvHeads * shape.keys * shape.keyStride() +
                                  task % shape.kvHeads * shape.headSize;
                    zeroRows(operands.dk + key, shape.keys, shape.keyStride(), shape.headSize);
                    zeroRows(operands.dv + key, shape.keys, shape.keyStride(), shape.headSize);
                    forBlocks(shape, task, [=](const Block &block) {
                      attentionGradBlock(shape, block, operands, weights, dweights);
                    });
                  }
                });
  };
  return makeKernel(run, [=](int threads) {
    return static_cast<size_t>(threads) * 2 * arrayBytes<F>(shape.blockElements());
  });
}

/// Checks q, k, v and the attributes, which both kernels share.
AttentionShape checkShape(SignatureChecker &check) {
  const TensorType &q = check.floatInputOfRank(0, 4);
  const TensorType &k = check.floatInputOfRank(1, 4);
  AttentionShape shape{};
  shape.causal = check.boolAttribute("causal");
  shape.scale = check.floatAttribute("scale");
  if (check.failed())
    return shape;
  shape.batch = q.shape[0];
  shape.queries = q.shape[1];
  shape.heads = q.shape[2];
  shape.headSize = q.shape[3];
  shape.keys = k.shape[1];
  shape.kvHeads = k.shape[2];
  check.expectInput(1,
                    TensorType{q.dtype, {shape.batch, shape.keys, shape.kvHeads, shape.headSize}});
  check.expectInput(2, k);
  if (shape.headSize == 0 || shape.kvHeads == 0 || shape.heads % shape.kvHeads != 0)
    check.fail(fmt::format("input 1 is {}, expected heads that divide the {} of input 0, of at "
                           "least 1 element",
                           k.str(), shape.heads));
  // Without elements nothing must be computed, nor scratch memory be asked for.
  if (q.numElements() == 0)
    shape.queries = 0;
  if (q.numElements() == 0 && k.numElements() == 0)
    shape.keys = 0;
  return shape;
}

TensorType lseType(const TensorType &q) {
  return q.rank() == 4 ? TensorType{q.dtype, {q.shape[0], q.shape[2], q.shape[1]}} : q;
}

PrepareResult prepareAttention(const KernelSignature &signature) {
  SignatureChecker check(signature, 3, 2);
  AttentionShape shape = checkShape(check);
  const TensorType &q = check.input(0);
  check.expectOutput(0, q);
  check.expectOutput(1, lseType(q));
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(q.dtype, [&](auto zero) { return makeAttention<decltype(zero)>(shape); });
}

PrepareResult prepareAttentionGrad(const KernelSignature &signature) {
  SignatureChecker check(signature, 6, 3);
  AttentionShape shape = checkShape(check);
  const TensorType &q = check.input(0);
  check.expectInput(3, q);
  check.expectInput(4, lseType(q));
  check.expectInput(5, q);
  check.expectOutput(0, q);
  check.expectOutput(1, check.input(1));
  check.expectOutput(2, check.input(1));
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(q.dtype,
                       [&](auto zero) { return makeAttentionGrad<decltype(zero)>(shape); });
}

} // namespace

std::span<const KernelEntry> attentionKernels() {
  static constexpr KernelEntry entries[] = {
      {"attention", prepareAttention},
      {"attention_grad", prepareAttentionGrad},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
