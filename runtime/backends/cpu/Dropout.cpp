//===- Dropout.cpp - Dropout and random numbers ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/RowCalls.h"
#include "calls/UniformCall.h"
#include "runtime/backends/cpu/KernelSupport.h"
#include "runtime/backends/cpu/MaskStretches.h"
#include "support/Philox.h"

namespace dtc::runtime::cpu {

namespace {

template <typename F> std::unique_ptr<CpuKernel> makeDropout(RandomMask mask, int64_t count) {
  return makeKernel([mask = std::move(mask), count](const CpuArguments &args) {
    const F *x = input<F>(args, 0);
    F *out = output<F>(args, 0);
    LocalMask local = mask.at(args.position, input<int32_t>(args, 1));
    Wide<F> scale = static_cast<Wide<F>>(mask.scale());
    // An element takes some 20 operations on words.
    parallelFor(args.threads, count, kElementGrain / 8, [=](int64_t begin, int64_t end, int) {
      simd([=] {
        KeepBuffer buffer;
        forKeeps(local, begin, end, buffer,
                 [=](int64_t first, int64_t length, const uint8_t *keeps) {
                   const F *from = x + first;
                   F *to = out + first;
#pragma omp simd
                   for (int64_t i = 0; i < length; ++i) {
                     // Dropped elements are zero, also where the input is not finite.
                     Wide<F> scaled = static_cast<Wide<F>>(from[i]) * scale;
                     to[i] = static_cast<F>(keeps[i] ? scaled : Wide<F>(0));
                   }
                 });
      });
    });
  });
}

PrepareResult prepareDropout(DropoutCall call) {
  return withFloatType(call.type.dtype, [&](auto zero) {
    return makeDropout<decltype(zero)>(std::move(call.mask), call.type.numElements());
  });
}

/// Writes the numbers of `count` elements, `stride` apart in the whole tensor from `first` on: the
/// high 24 bits of their words, as a fraction.
void writeNumbers(const MaskWords &words, int64_t first, int64_t stride, int64_t count, float *to) {
  uint64_t known = ~uint64_t{0}; // the number of `block`
  PhiloxCounter block{};
  for (int64_t i = 0; i < count; ++i) {
    auto element = static_cast<uint64_t>(first + i * stride);
    if (element / 4 != known) {
      known = element / 4;
      block = philox4x32(philoxCounter(known, words.iteration), {words.seed, words.op});
    }
    to[i] = static_cast<float>(block[element % 4] >> 8) * 0x1p-24F;
  }
}

PrepareResult prepareUniform(UniformCall call) {
  return makeKernel([call = std::move(call)](const CpuArguments &args) {
    const int32_t *key = input<int32_t>(args, 0);
    LocalMask local = call.words.at(args.position, key);
    // The numbers are those of the step, in whichever repetition of the loop they are drawn.
    local.words.iteration = static_cast<uint32_t>(key[1]);
    float *out = output<float>(args, 0);
    parallelFor(args.threads, call.count, kElementGrain / 8, [=](int64_t begin, int64_t end, int) {
      float *to = out + begin;
      local.nest->forSegments(begin, end, [&](const auto &offsets, int64_t length) {
        writeNumbers(local.words, local.origin + offsets[0], local.nest->inner().strides[0], length,
                     to);
        to += length;
      });
    });
  });
}

} // namespace

std::span<const KernelEntry> dropoutKernels() {
  static constexpr KernelEntry entries[] = {
      {"dropout", prepareBy<checkDropout, prepareDropout>},
      {"random_uniform", prepareBy<checkUniform, prepareUniform>},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
