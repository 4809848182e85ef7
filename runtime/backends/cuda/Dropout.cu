//===- Dropout.cu - Dropout and random numbers ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/RowCalls.h"
#include "calls/UniformCall.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/DeviceLoops.h"
#include "runtime/backends/cuda/DeviceMask.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/Launch.h"

namespace dtc::runtime::cuda {

namespace {

inline constexpr int kElementsPerThread = 4;

/// A thread has neighbouring elements, which mostly have one block of words. `loops` lead from the
/// elements of the device's block to those of the whole tensor, whose first is `origin`. y may be
/// x.
template <typename F>
__global__ void __launch_bounds__(256)
    dropoutKernel(const DeviceLoops<1> __grid_constant__ loops, MaskWords mask, int64_t origin,
                  const int32_t *key, const F *x, F *y, Wide<F> scale) {
  MaskReader reader(mask, key);
  int64_t step = int64_t{gridDim.x} * blockDim.x * kElementsPerThread;
  int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kElementsPerThread;
  for (; first < loops.count; first += step) {
    int64_t last =
        first + kElementsPerThread < loops.count ? first + kElementsPerThread : loops.count;
    for (int64_t i = first; i < last; ++i) {
      int64_t offset[1];
      loops.offsetsAt(i, offset);
      // Dropped elements are zero, also where the input is not finite.
      y[i] = narrow<F>(reader.keeps(origin + offset[0]) ? widen(x[i]) * scale : Wide<F>(0));
    }
  }
}

PrepareResult prepareDropout(DropoutCall call) {
  // The seed and the iteration are read on the GPU.
  static constexpr int32_t noKey[2] = {};
  Expected<DeviceLoops<1>> loops = DeviceLoops<1>::from(*call.mask.at({}, noKey).nest);
  if (!loops)
    return loops.error();
  return withFloatType(call.type.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    return makeKernel([mask = std::move(call.mask), loops = *loops](CudaQueue &queue,
                                                                    const KernelArguments &args) {
      LocalMask local = mask.at(args.position, noKey);
      int64_t threads = (loops.count + kElementsPerThread - 1) / kElementsPerThread;
      return launch(queue, gridStride(queue, threads), dropoutKernel<F>, loops, local.words,
                    local.origin, input<int32_t>(args, 1), input<F>(args, 0), output<F>(args, 0),
                    static_cast<Wide<F>>(mask.scale()));
    });
  });
}

/// The numbers of the device's block, from elements to threads as in dropoutKernel.
__global__ void __launch_bounds__(256)
    uniformKernel(const DeviceLoops<1> __grid_constant__ loops, MaskWords words, int64_t origin,
                  const int32_t *key, float *out) {
  // The numbers are those of the step, in whichever repetition of the loop they are drawn.
  words.iteration = 0;
  MaskReader reader(words, key);
  int64_t step = int64_t{gridDim.x} * blockDim.x * kElementsPerThread;
  int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kElementsPerThread;
  for (; first < loops.count; first += step) {
    int64_t last =
        first + kElementsPerThread < loops.count ? first + kElementsPerThread : loops.count;
    for (int64_t i = first; i < last; ++i) {
      int64_t offset[1];
      loops.offsetsAt(i, offset);
      out[i] = static_cast<float>(reader.wordOf(origin + offset[0]) >> 8) * 0x1p-24F;
    }
  }
}

PrepareResult prepareUniform(UniformCall call) {
  // The seed and the iteration are read on the GPU.
  static constexpr int32_t noKey[2] = {};
  Expected<DeviceLoops<1>> loops = DeviceLoops<1>::from(*call.words.at({}, noKey).nest);
  if (!loops)
    return loops.error();
  return makeKernel([words = std::move(call.words), loops = *loops](CudaQueue &queue,
                                                                    const KernelArguments &args) {
    LocalMask local = words.at(args.position, noKey);
    int64_t threads = (loops.count + kElementsPerThread - 1) / kElementsPerThread;
    return launch(queue, gridStride(queue, threads), uniformKernel, loops, local.words,
                  local.origin, input<int32_t>(args, 0), output<float>(args, 0));
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

} // namespace dtc::runtime::cuda
