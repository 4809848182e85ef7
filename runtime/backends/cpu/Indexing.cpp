//===- Indexing.cpp - Kernels with indices --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/IndexingCalls.h"
#include "runtime/backends/cpu/DataMovement.h"

namespace dtc::runtime::cpu {

namespace {

bool inRange(int32_t id, int64_t size) { return id >= 0 && id < size; }

// embedding, pick and pick_grad move elements of any type: T is an unsigned integer as wide.

template <typename T>
std::unique_ptr<CpuKernel> makeEmbedding(int64_t vocabulary, int64_t width, int64_t count) {
  return makeKernel([=](const CpuArguments &args) {
    const T *table = input<T>(args, 0);
    const int32_t *ids = input<int32_t>(args, 1);
    T *out = output<T>(args, 0);
    parallelFor(args.threads, count, grainFor(width), [=](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        if (inRange(ids[i], vocabulary))
          std::copy_n(table + ids[i] * width, width, out + i * width);
        else
          std::fill_n(out + i * width, width, T(0));
    });
  });
}

PrepareResult prepareEmbedding(const KernelSignature &signature) {
  Expected<EmbeddingCall> call = checkEmbedding(signature);
  if (!call)
    return call.error();
  return withElementBits(call->dtype, [&](auto zero) {
    return makeEmbedding<decltype(zero)>(call->vocabulary, call->width, call->count);
  });
}

template <typename F>
std::unique_ptr<CpuKernel> makeEmbeddingGrad(int64_t vocabulary, int64_t width, int64_t count) {
  using W = Wide<F>;
  return makeKernel([=](const CpuArguments &args) {
    const int32_t *ids = input<int32_t>(args, 0);
    const F *dy = input<F>(args, 1);
    W *out = output<W>(args, 0);
    parallelFor(args.threads, vocabulary * width, kElementGrain,
                [=](int64_t begin, int64_t end, int) { std::fill(out + begin, out + end, W(0)); });
    // Each thread adds its own columns of all rows: the order of a sum is that of the indices, and
    // the threads share the work evenly however the indices fall.
    parallelFor(args.threads, width, grainFor(count), [=](int64_t begin, int64_t end, int) {
      simd([=] {
        for (int64_t i = 0; i < count; ++i) {
          int32_t id = ids[i];
          if (id < 0 || id >= vocabulary)
            continue;
          W *to = out + id * width;
          const F *from = dy + i * width;
#pragma omp simd
          for (int64_t c = begin; c < end; ++c)
            to[c] += static_cast<W>(from[c]);
        }
      });
    });
  });
}

PrepareResult prepareEmbeddingGrad(const KernelSignature &signature) {
  Expected<EmbeddingCall> call = checkEmbeddingGrad(signature);
  if (!call)
    return call.error();
  return withFloatType(call->dtype, [&](auto zero) {
    return makeEmbeddingGrad<decltype(zero)>(call->vocabulary, call->width, call->count);
  });
}

template <typename T> std::unique_ptr<CpuKernel> makePick(int64_t rows, int64_t width) {
  return makeKernel([=](const CpuArguments &args) {
    const T *x = input<T>(args, 0);
    const int32_t *ids = input<int32_t>(args, 1);
    T *out = output<T>(args, 0);
    parallelFor(args.threads, rows, kElementGrain, [=](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        out[i] = inRange(ids[i], width) ? x[i * width + ids[i]] : T(0);
    });
  });
}

PrepareResult preparePick(const KernelSignature &signature) {
  Expected<PickCall> call = checkPick(signature);
  if (!call)
    return call.error();
  return withElementBits(
      call->dtype, [&](auto zero) { return makePick<decltype(zero)>(call->rows, call->width); });
}

template <typename T> std::unique_ptr<CpuKernel> makePickGrad(int64_t rows, int64_t width) {
  return makeKernel([=](const CpuArguments &args) {
    const int32_t *ids = input<int32_t>(args, 0);
    const T *dy = input<T>(args, 1);
    T *out = output<T>(args, 0);
    parallelFor(args.threads, rows, grainFor(width), [=](int64_t begin, int64_t end, int) {
      std::fill(out + begin * width, out + end * width, T(0));
      for (int64_t i = begin; i < end; ++i)
        if (inRange(ids[i], width))
          out[i * width + ids[i]] = dy[i];
    });
  });
}

PrepareResult preparePickGrad(const KernelSignature &signature) {
  Expected<PickCall> call = checkPickGrad(signature);
  if (!call)
    return call.error();
  return withElementBits(call->dtype, [&](auto zero) {
    return makePickGrad<decltype(zero)>(call->rows, call->width);
  });
}

} // namespace

std::span<const KernelEntry> indexingKernels() {
  static constexpr KernelEntry entries[] = {
      {"embedding", prepareEmbedding},
      {"embedding_grad", prepareEmbeddingGrad},
      {"pick", preparePick},
      {"pick_grad", preparePickGrad},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
