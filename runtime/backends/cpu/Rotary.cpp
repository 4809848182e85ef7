//===- Rotary.cpp - Rotary position embedding -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/WideBlocks.h"
#include "runtime/backends/shared/AttentionCalls.h"

#include <cmath>
#include <vector>

namespace dtc::runtime::cpu {

namespace {

/// Rotates the heads of one position; y may be x.
template <typename W>
void rotateHeads(const W *x, W *y, const W *cosines, const W *sines, int64_t heads, int64_t half) {
  simd([=] {
    for (int64_t h = 0; h < heads; ++h) {
      const W *low = x + h * 2 * half, *high = low + half;
      W *lowOut = y + h * 2 * half, *highOut = lowOut + half;
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        W a = low[i], b = high[i];
        lowOut[i] = a * cosines[i] - b * sines[i];
        highOut[i] = b * cosines[i] + a * sines[i];
      }
    }
  });
}

template <typename F> std::unique_ptr<CpuKernel> makeRotary(const RotaryCall &shape) {
  using W = Wide<F>;
  int64_t half = shape.headSize / 2;
  std::vector<double> frequencies(static_cast<size_t>(half));
  for (int64_t i = 0; i < half; ++i)
    frequencies[static_cast<size_t>(i)] =
        std::pow(shape.theta, -2.0 * static_cast<double>(i) / static_cast<double>(shape.headSize));
  int64_t width = shape.heads * shape.headSize; // of a position of a sequence
  WideArrays<F> arrays(shape.headSize, 1);
  auto tableBytes = [=](int threads) {
    return static_cast<size_t>(threads) * arrayBytes<W>(2 * half);
  };

  auto run = [=, frequencies = std::move(frequencies)](const CpuArguments &args) {
    const F *x = input<F>(args, 0);
    const int32_t *positions = shape.hasPositions ? input<int32_t>(args, 1) : nullptr;
    F *y = output<F>(args, 0);
    W *tables = static_cast<W *>(args.workspace);
    void *scratch = static_cast<std::byte *>(args.workspace) + tableBytes(args.threads);
    const double *frequency = frequencies.data();
    // By positions, so that the angles of a position are computed once.
    parallelFor(args.threads, shape.sequence, grainFor(shape.batch * width),
                [=](int64_t begin, int64_t end, int part) {
                  W *cosines = tables + part * 2 * half, *sines = cosines + half;
                  W *array = arrays.at(scratch, part, 0);
                  auto turnTo = [=](int64_t position) {
                    for (int64_t i = 0; i < half; ++i) {
                      double angle = static_cast<double>(position) * frequency[i];
                      cosines[i] = static_cast<W>(std::cos(angle));
                      sines[i] = static_cast<W>(shape.inverse ? -std::sin(angle) : std::sin(angle));
                    }
                  };
                  for (int64_t s = begin; s < end; ++s) {
                    if (!positions)
                      turnTo(s);
                    for (int64_t b = 0; b < shape.batch; ++b) {
                      if (positions)
                        turnTo(positions[b] + s);
                      int64_t position = (b * shape.sequence + s) * width;
                      forWideBlocks<F>(0, shape.heads, shape.headSize,
                                       [=](int64_t first, int64_t last) {
                                         int64_t offset = position + first * 2 * half;
                                         int64_t length = (last - first) * 2 * half;
                                         W *to = wideOutput(y + offset, array);
                                         rotateHeads(wideInput(x + offset, length, array), to,
                                                     cosines, sines, last - first, half);
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
