//===- Rotary.cpp - Rotary position embedding -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/KernelSupport.h"

#include <cmath>
#include <fmt/format.h>
#include <vector>

namespace dtc::runtime::cpu {

namespace {

/// Heads beyond this are a corrupt plan; the frequencies of a head are kept in a table.
constexpr int64_t maxHeadSize = int64_t{1} << 20;

struct Shape {
  int64_t batch, sequence, heads, headSize;
};

template <typename F>
std::unique_ptr<Kernel> makeRotary(const Shape &shape, double theta, bool inverse) {
  int64_t half = shape.headSize / 2;
  std::vector<double> frequencies(static_cast<size_t>(half));
  for (int64_t i = 0; i < half; ++i)
    frequencies[static_cast<size_t>(i)] =
        std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(shape.headSize));

  auto run = [=, frequencies = std::move(frequencies)](const KernelArguments &args) {
    const F *x = input<F>(args, 0);
    F *y = output<F>(args, 0);
    F *tables = static_cast<F *>(args.workspace);
    const double *frequency = frequencies.data();
    int64_t perPosition = shape.batch * shape.heads * shape.headSize;
    // By positions, so that the angles of a position are computed once.
    parallelFor(args.threads, shape.sequence, grainFor(perPosition),
                [=](int64_t begin, int64_t end, int part) {
                  F *cosines = tables + part * 2 * half, *sines = cosines + half;
                  for (int64_t s = begin; s < end; ++s) {
                    for (int64_t i = 0; i < half; ++i) {
                      double angle = static_cast<double>(s) * frequency[i];
                      cosines[i] = static_cast<F>(std::cos(angle));
                      sines[i] = static_cast<F>(inverse ? -std::sin(angle) : std::sin(angle));
                    }
                    simd([=] {
                      for (int64_t b = 0; b < shape.batch; ++b)
                        for (int64_t h = 0; h < shape.heads; ++h) {
                          int64_t head = ((b * shape.sequence + s) * shape.heads + h) * 2 * half;
                          const F *low = x + head, *high = low + half;
                          F *lowOut = y + head, *highOut = lowOut + half;
#pragma omp simd
                          for (int64_t i = 0; i < half; ++i) {
                            F a = low[i], b = high[i];
                            lowOut[i] = a * cosines[i] - b * sines[i];
                            highOut[i] = b * cosines[i] + a * sines[i];
                          }
                        }
                    });
                  }
                });
  };
  return makeKernel(std::move(run), [=](int threads) { return threads * arrayBytes<F>(2 * half); });
}

PrepareResult prepareRotary(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &x = check.floatInputOfRank(0, 4);
  check.expectOutput(0, x);
  double theta = check.floatAttribute("theta");
  if (!(theta > 0))
    check.failAttribute("theta", fmt::format("{}", theta), "a positive number");
  bool inverse = check.boolAttribute("inverse");
  if (!check.failed() && (x.shape[3] % 2 != 0 || x.shape[3] > maxHeadSize))
    check.fail(fmt::format("input 0 is {}, expected an even last dimension of at most {}", x.str(),
                           maxHeadSize));
  if (MaybeError error = check.finish())
    return *error;
  Shape shape{x.shape[0], x.shape[1], x.shape[2], x.shape[3]};
  if (x.numElements() == 0)
    shape = {0, 0, 0, 0};
  return withFloatType(
      x.dtype, [&](auto zero) { return makeRotary<decltype(zero)>(shape, theta, inverse); });
}

} // namespace

std::span<const KernelEntry> rotaryKernels() {
  static constexpr KernelEntry entries[] = {{"rotary", prepareRotary}};
  return entries;
}

} // namespace dtc::runtime::cpu
