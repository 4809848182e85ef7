//===- Cache.cpp - Kernels that keep and find rows of samples -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/IndexingCalls.h"
#include "runtime/backends/cpu/DataMovement.h"

#include <cstring>

namespace dtc::runtime::cpu {

namespace {

// Both kernels move bytes of any type. A tensor is [samples, rows, ...]; `width` is the bytes of a
// row.

std::unique_ptr<CpuKernel> makeCacheUpdate(int64_t samples, int64_t places, int64_t rows,
                                           int64_t width) {
  return makeKernel([=](const CpuArguments &args) {
    const auto *cache = input<std::byte>(args, 0), *from = input<std::byte>(args, 1);
    const int32_t *positions = input<int32_t>(args, 2);
    auto *to = output<std::byte>(args, 0);
    if (to != cache)
      std::memcpy(to, cache, static_cast<size_t>(samples * places * width));
    parallelFor(args.threads, samples * rows, grainFor(width),
                [=](int64_t begin, int64_t end, int) {
                  for (int64_t i = begin; i < end; ++i) {
                    int64_t place = positions[i / rows] + i % rows;
                    if (place >= 0 && place < places)
                      std::memcpy(to + (i / rows * places + place) * width, from + i * width,
                                  static_cast<size_t>(width));
                  }
                });
  });
}

PrepareResult prepareCacheUpdate(const SampleRowsCall &call) {
  return makeCacheUpdate(call.samples, call.places, call.rows, call.width);
}

std::unique_ptr<CpuKernel> makeSelectRow(int64_t samples, int64_t rows, int64_t width) {
  return makeKernel([=](const CpuArguments &args) {
    const auto *x = input<std::byte>(args, 0);
    const int32_t *chosen = input<int32_t>(args, 1);
    auto *to = output<std::byte>(args, 0);
    for (int64_t n = 0; n < samples; ++n)
      if (chosen[n] >= 0 && chosen[n] < rows)
        std::memcpy(to + n * width, x + (n * rows + chosen[n]) * width, static_cast<size_t>(width));
      else
        std::memset(to + n * width, 0, static_cast<size_t>(width));
  });
}

PrepareResult prepareSelectRow(const SampleRowsCall &call) {
  return makeSelectRow(call.samples, call.places, call.width);
}

} // namespace

std::span<const KernelEntry> cacheKernels() {
  static constexpr KernelEntry entries[] = {
      {"cache_update", prepareBy<checkCacheUpdate, prepareCacheUpdate>},
      {"select_row", prepareBy<checkSelectRow, prepareSelectRow>}};
  return entries;
}

} // namespace dtc::runtime::cpu
