//===- Cache.cpp - Kernels that keep and find rows of samples -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/DataMovement.h"

#include <cstring>

namespace dtc::runtime::cpu {

namespace {

// Both kernels move bytes, whatever they mean. A tensor is [samples, rows, ...]; `width` is the
// bytes of a row.

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

/// The bytes of a row of [samples, rows, ...].
int64_t rowBytes(const TensorType &type) {
  int64_t bytes = static_cast<int64_t>(byteWidth(type.dtype));
  for (size_t dim = 2; dim < type.shape.size(); ++dim)
    bytes *= type.shape[dim];
  return bytes;
}

PrepareResult prepareCacheUpdate(const KernelSignature &signature) {
  SignatureChecker check(signature, 3, 1);
  const TensorType &cache = check.floatInput(0, 2);
  const TensorType &rows = check.floatInput(1, 2);
  if (!check.failed()) {
    TensorType expected = cache;
    expected.shape[1] = rows.shape[1];
    check.expectInput(1, expected);
    check.expectInput(2, TensorType{DType::I32, {cache.shape[0]}});
  }
  check.expectOutput(0, cache);
  if (MaybeError error = check.finish())
    return *error;
  return makeCacheUpdate(cache.shape[0], cache.shape[1], rows.shape[1], rowBytes(cache));
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

PrepareResult prepareSelectRow(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  const TensorType &x = check.input(0);
  if (!check.failed() && x.rank() < 2)
    check.fail("input 0 is " + x.str() + ", expected at least 2 dimensions");
  if (!check.failed()) {
    TensorType expected = x;
    expected.shape[1] = 1;
    check.expectInput(1, TensorType{DType::I32, {x.shape[0]}});
    check.expectOutput(0, expected);
  }
  if (MaybeError error = check.finish())
    return *error;
  return makeSelectRow(x.shape[0], x.shape[1], rowBytes(x));
}

} // namespace

std::span<const KernelEntry> cacheKernels() {
  static constexpr KernelEntry entries[] = {{"cache_update", prepareCacheUpdate},
                                            {"select_row", prepareSelectRow}};
  return entries;
}

} // namespace dtc::runtime::cpu
