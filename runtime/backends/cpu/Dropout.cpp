//===- Dropout.cpp - Dropout ----------------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/RowCalls.h"
#include "runtime/backends/cpu/KernelSupport.h"
#include "runtime/backends/cpu/MaskStretches.h"

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
                     // What is left out is zero, also where it is no finite number.
                     Wide<F> scaled = static_cast<Wide<F>>(from[i]) * scale;
                     to[i] = static_cast<F>(keeps[i] ? scaled : Wide<F>(0));
                   }
                 });
      });
    });
  });
}

PrepareResult prepareDropout(const KernelSignature &signature) {
  Expected<DropoutCall> call = checkDropout(signature);
  if (!call)
    return call.error();
  return withFloatType(call->type.dtype, [&](auto zero) {
    return makeDropout<decltype(zero)>(std::move(call->mask), call->type.numElements());
  });
}

} // namespace

std::span<const KernelEntry> dropoutKernels() {
  static constexpr KernelEntry entries[] = {{"dropout", prepareDropout}};
  return entries;
}

} // namespace dtc::runtime::cpu
