//===- Rotary.cpp - Rotary position embedding -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/WideBlocks.h"
#include "runtime/backends/shared/AttentionCalls.h"

#include <algorithm>
#include <cmath>

namespace dtc::runtime::cpu {

namespace {

/// Rotates the first 2 `pairs` elements of the heads of one position; y may be x.
template <typename W>
void rotateHeads(const W *x, W *y, const W *cosines, const W *sines, int64_t heads,
                 int64_t headSize, int64_t pairs) {
  simd([=] {
    for (int64_t h = 0; h < heads; ++h) {
      const W *low = x + h * headSize, *high = low + pairs;
      W *lowOut = y + h * headSize, *highOut = lowOut + pairs;
#pragma omp simd
      for (int64_t i = 0; i < pairs; ++i) {
        W a = low[i], b = high[i];
        lowOut[i] = a * cosines[i] - b * sines[i];
        highOut[i] = b * cosines[i] + a * sines[i];
      }
      if (x != y)
        std::copy(low + 2 * pairs, low + headSize, lowOut + 2 * pairs);
    }
  });
}

template <typename F> std::unique_ptr<CpuKernel> makeRotary(const RotaryCall &shape) {
  using W = Wide<F>;
  int64_t pairs = shape.pairs(), headSize = shape.headSize;
  int64_t width = shape.heads * headSize; // of a position of a sequence
  WideArrays<F> arrays(headSize, 1);
  auto tableBytes = [=](int threads) {
    return static_cast<size_t>(threads) * arrayBytes<W>(2 * pairs);
  };

  auto run = [=](const CpuArguments &args) {
    const F *x = input<F>(args, 0);
    const int32_t *positions = shape.hasPositions ? input<int32_t>(args, 1) : nullptr;
    F *y = output<F>(args, 0);
    W *tables = static_cast<W *>(args.workspace);
    void *scratch = static_cast<std::byte *>(args.workspace) + tableBytes(args.threads);
    const double *frequency = shape.frequencies.data();
    // By positions, so that the angles of a position are computed once.
    parallelFor(args.threads, shape.sequence, grainFor(shape.batch * width),
                [=, &shape](int64_t begin, int64_t end, int part) {
                  W *cosines = tables + part * 2 * pairs, *sines = cosines + pairs;
                  W *array = arrays.at(scratch, part, 0);
                  auto turnTo = [=, &shape](int64_t position) {
                    double sign = shape.inverse ? -shape.factor : shape.factor;
                    for (int64_t i = 0; i < pairs; ++i) {
                      double angle = static_cast<double>(position) * frequency[i];
                      cosines[i] = static_cast<W>(shape.factor * std::cos(angle));
                      sines[i] = static_cast<W>(sign * std::sin(angle));
                    }
                  };
                  for (int64_t s = begin; s < end; ++s) {
                    if (!positions)
                      turnTo(s);
                    for (int64_t b = 0; b < shape.batch; ++b) {
                      if (positions)
                        turnTo(positions[b] + s);
                      int64_t position = (b * shape.sequence + s) * width;
                      forWideBlocks<F>(0, shape.heads, headSize, [=](int64_t first, int64_t last) {
                        int64_t offset = position + first * headSize;
                        int64_t length = (last - first) * headSize;
                        W *to = wideOutput(y + offset, array);
                        rotateHeads(wideInput(x + offset, length, array), to, cosines, sines,
                                    last - first, headSize, pairs);
                        storeWide(to, y + offset, length);
                      });
                    }
                  }
                });
  };
  return makeKernel(std::move(run),
                    [=](int threads) { return tableBytes(threads) + arrays.bytes(threads); });
}

PrepareResult prepareRotary(const KernelSignature &signature) {
  Expected<RotaryCall> call = checkRotary(signature);
  if (!call)
    return call.error();
  return withFloatType(call->dtype, [&](auto zero) { return makeRotary<decltype(zero)>(*call); });
}

} // namespace

std::span<const KernelEntry> rotaryKernels() {
  static constexpr KernelEntry entries[] = {{"rotary", prepareRotary}};
  return entries;
}

} // namespace dtc::runtime::cpu
