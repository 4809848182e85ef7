//===- Indexing.cpp - Kernels with indices --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/IndexingCalls.h"
#include "runtime/backends/cpu/DataMovement.h"

#include <algorithm>
#include <cmath>

namespace dtc::runtime::cpu {

namespace {

bool inRange(int32_t id, int64_t size) { return id >= 0 && id < size; }

/// The row of all tables that index `id` at place `i` names; -1 for none.
int64_t rowOf(const EmbeddingCall &call, int64_t i, int32_t id) {
  if (!inRange(id, call.vocabulary))
    return -1;
  return call.samples == 1 ? id : i / call.perSample % call.samples * call.vocabulary + id;
}

// embedding, pick and pick_grad move elements of any type: T is an unsigned integer as wide.

template <typename T> std::unique_ptr<CpuKernel> makeEmbedding(const EmbeddingCall &call) {
  return makeKernel([call](const CpuArguments &args) {
    const T *table = input<T>(args, 0);
    const int32_t *ids = input<int32_t>(args, 1);
    T *out = output<T>(args, 0);
    int64_t width = call.width;
    parallelFor(args.threads, call.count, grainFor(width), [=](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        if (int64_t row = rowOf(call, i, ids[i]); row >= 0)
          std::copy_n(table + row * width, width, out + i * width);
        else
          std::fill_n(out + i * width, width, T(0));
    });
  });
}

PrepareResult prepareEmbedding(const EmbeddingCall &call) {
  return withElementBits(call.dtype,
                         [&](auto zero) { return makeEmbedding<decltype(zero)>(call); });
}

template <typename F> std::unique_ptr<CpuKernel> makeEmbeddingGrad(const EmbeddingCall &call) {
  using W = Wide<F>;
  return makeKernel([call](const CpuArguments &args) {
    const int32_t *ids = input<int32_t>(args, 0);
    const F *dy = input<F>(args, 1);
    W *out = output<W>(args, 0);
    int64_t width = call.width;
    parallelFor(args.threads, call.numRows() * width, kElementGrain,
                [=](int64_t begin, int64_t end, int) { std::fill(out + begin, out + end, W(0)); });
    // Each thread adds its own columns of all rows: the order of a sum is that of the indices, and
    // the threads share the work evenly however the indices fall.
    parallelFor(args.threads, width, grainFor(call.count), [=](int64_t begin, int64_t end, int) {
      simd([=] {
        for (int64_t i = 0; i < call.count; ++i) {
          int64_t row = rowOf(call, i, ids[i]);
          if (row < 0)
            continue;
          W *to = out + row * width;
          const F *from = dy + i * width;
#pragma omp simd
          for (int64_t c = begin; c < end; ++c)
            to[c] += static_cast<W>(from[c]);
        }
      });
    });
  });
}

PrepareResult prepareEmbeddingGrad(const EmbeddingCall &call) {
  return withFloatType(call.dtype,
                       [&](auto zero) { return makeEmbeddingGrad<decltype(zero)>(call); });
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

PrepareResult preparePick(const PickCall &call) {
  return withElementBits(
      call.dtype, [&](auto zero) { return makePick<decltype(zero)>(call.rows, call.width); });
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

PrepareResult preparePickGrad(const PickCall &call) {
  return withElementBits(
      call.dtype, [&](auto zero) { return makePickGrad<decltype(zero)>(call.rows, call.width); });
}

/// The order of top_k: a NaN is larger than all numbers.
template <typename F> bool isLarger(F x, F y) {
  using W = Wide<F>;
  W a = static_cast<W>(x), b = static_cast<W>(y);
  return a > b || (std::isnan(a) && !std::isnan(b));
}

template <typename F> std::unique_ptr<CpuKernel> makeTopK(const TopKCall &call) {
  return makeKernel([call](const CpuArguments &args) {
    const F *x = input<F>(args, 0);
    uint8_t *out = output<uint8_t>(args, 0);
    parallelFor(args.threads, call.rows, grainFor(call.width * call.k),
                [=](int64_t begin, int64_t end, int) {
                  for (int64_t row = begin; row < end; ++row) {
                    const F *from = x + row * call.width;
                    uint8_t *isTaken = out + row * call.width;
                    std::fill_n(isTaken, call.width, uint8_t{0});
                    for (int64_t n = 0; n < call.k; ++n) {
                      int64_t best = -1;
                      for (int64_t c = 0; c < call.width; ++c)
                        if (!isTaken[c] && (best < 0 || isLarger(from[c], from[best])))
                          best = c;
                      isTaken[best] = 1;
                    }
                  }
                });
  });
}

PrepareResult prepareTopK(const TopKCall &call) {
  return withFloatType(call.dtype, [&](auto zero) { return makeTopK<decltype(zero)>(call); });
}

PrepareResult prepareNonzero(const NonzeroCall &call) {
  return makeKernel([call](const CpuArguments &args) {
    const uint8_t *x = input<uint8_t>(args, 0);
    int32_t *out = output<int32_t>(args, 0);
    parallelFor(args.threads, call.rows, grainFor(call.width),
                [=](int64_t begin, int64_t end, int) {
                  for (int64_t row = begin; row < end; ++row) {
                    const uint8_t *from = x + row * call.width;
                    int32_t *places = out + row * call.count;
                    int64_t found = 0;
                    for (int64_t c = 0; c < call.width && found < call.count; ++c)
                      if (from[c])
                        places[found++] = static_cast<int32_t>(c);
                    std::fill(places + found, places + call.count, -1);
                  }
                });
  });
}

} // namespace

std::span<const KernelEntry> indexingKernels() {
  static constexpr KernelEntry entries[] = {
      {"embedding", prepareBy<checkEmbedding, prepareEmbedding>},
      {"embedding_grad", prepareBy<checkEmbeddingGrad, prepareEmbeddingGrad>},
      {"nonzero", prepareBy<checkNonzero, prepareNonzero>},
      {"pick", prepareBy<checkPick, preparePick>},
      {"pick_grad", prepareBy<checkPickGrad, preparePickGrad>},
      {"top_k", prepareBy<checkTopK, prepareTopK>},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
