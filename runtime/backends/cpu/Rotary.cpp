//===- Rotary.cpp - Rotary position embedding -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/AttentionCalls.h"
#include "runtime/backends/cpu/WideBlocks.h"

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

/// The cosines and sines of a position.
template <typename W> struct Angles {
  W *cosines, *sines;

  Angles(W *array, int64_t pairs) : cosines(array), sines(array + pairs) {}
  void turnTo(const RotaryCall &shape, int64_t position) const {
    double sign = shape.inverse ? -shape.factor : shape.factor;
    for (int64_t i = 0; i < shape.pairs(); ++i) {
      double angle = static_cast<double>(position) * shape.frequencies[static_cast<size_t>(i)];
      cosines[i] = static_cast<W>(shape.factor * std::cos(angle));
      sines[i] = static_cast<W>(sign * std::sin(angle));
    }
  }
};

template <typename F> std::unique_ptr<CpuKernel> makeRotary(RotaryCall call) {
  using W = Wide<F>;
  int64_t headSize = call.headSize, pairs = call.pairs();
  WideArrays<F> arrays(headSize, 1);
  // Rows with positions of their own share a table of the positions that rows without have: those
  // of documents begin at 0.
  int64_t tabled = call.positions == RotaryPositions::OfRows ? call.sequence : 0;
  auto tableBytes = [=](int threads) {
    return arrayBytes<W>(2 * pairs * tabled) +
           static_cast<size_t>(threads) * arrayBytes<W>(2 * pairs);
  };

  auto run = [=, shape = std::move(call)](const CpuArguments &args) {
    const F *x = input<F>(args, 0);
    const int32_t *positions =
        shape.positions == RotaryPositions::None ? nullptr : input<int32_t>(args, 1);
    F *y = output<F>(args, 0);
    W *table = static_cast<W *>(args.workspace);
    auto *ofThreads = static_cast<std::byte *>(args.workspace) + arrayBytes<W>(2 * pairs * tabled);
    void *scratch = static_cast<std::byte *>(args.workspace) + tableBytes(args.threads);
    SequenceOrder order = shape.shard.at(args.position);
    int64_t heads = shape.heads, width = heads * headSize; // of a row
    auto anglesOf = [=](int part) {
      return Angles<W>(
          reinterpret_cast<W *>(ofThreads + static_cast<size_t>(part) * arrayBytes<W>(2 * pairs)),
          pairs);
    };
    auto rotateRow = [=](int64_t row, const Angles<W> &angles, int part) {
      W *array = arrays.at(scratch, part, 0);
      forWideBlocks<F>(0, heads, headSize, [=](int64_t first, int64_t last) {
        int64_t offset = row * width + first * headSize, length = (last - first) * headSize;
        W *to = wideOutput(y + offset, array);
        rotateHeads(wideInput(x + offset, length, array), to, angles.cosines, angles.sines,
                    last - first, headSize, pairs);
        storeWide(to, y + offset, length);
      });
    };
    if (tabled != 0) {
      parallelFor(args.threads, tabled, grainFor(pairs), [&](int64_t begin, int64_t end, int) {
        for (int64_t position = begin; position < end; ++position)
          Angles<W>(table + 2 * pairs * position, pairs).turnTo(shape, position);
      });
      parallelFor(
          args.threads, shape.batch * shape.sequence, grainFor(width),
          [&](int64_t begin, int64_t end, int part) {
            Angles<W> own = anglesOf(part);
            for (int64_t row = begin; row < end; ++row) {
              int64_t position = positions[row];
              bool isTabled = position >= 0 && position < tabled;
              if (!isTabled)
                own.turnTo(shape, position);
              rotateRow(row, isTabled ? Angles<W>(table + 2 * pairs * position, pairs) : own, part);
            }
          });
      return;
    }
    // By positions, so that the angles of a position are computed once.
    parallelFor(args.threads, shape.sequence, grainFor(shape.batch * width),
                [&](int64_t begin, int64_t end, int part) {
                  Angles<W> angles = anglesOf(part);
                  for (int64_t s = begin; s < end; ++s) {
                    if (!positions)
                      angles.turnTo(shape, order.at(s));
                    for (int64_t b = 0; b < shape.batch; ++b) {
                      if (positions)
                        angles.turnTo(shape, positions[b] + order.at(s));
                      rotateRow(b * shape.sequence + s, angles, part);
                    }
                  }
                });
  };
  return makeKernel(std::move(run),
                    [=](int threads) { return tableBytes(threads) + arrays.bytes(threads); });
}

PrepareResult prepareRotary(RotaryCall call) {
  return withFloatType(call.dtype,
                       [&](auto zero) { return makeRotary<decltype(zero)>(std::move(call)); });
}

} // namespace

std::span<const KernelEntry> rotaryKernels() {
  static constexpr KernelEntry entries[] = {{"rotary", prepareBy<checkRotary, prepareRotary>}};
  return entries;
}

} // namespace dtc::runtime::cpu
