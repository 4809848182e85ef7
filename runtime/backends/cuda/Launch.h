//===- Launch.h - The one place that launches kernels ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Kernels are launched by a function call rather than by <<<>>>, so that the same sources compile
// as plain C++ for the tests that have no GPU.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_LAUNCH_H
#define DTC_RUNTIME_BACKENDS_CUDA_LAUNCH_H

#include "runtime/backends/cuda/CudaDevice.h"
#include "runtime/backends/cuda/CudaError.h"

#include <algorithm>
#include <cstdint>

namespace dtc::runtime::cuda {

/// Blocks and the threads of each, whole warps of them.
struct LaunchShape {
  unsigned blocksX = 0, blocksY = 1, threads = 256;
};

inline constexpr unsigned kWarpThreads = 32;
/// The most threads of a block, but where a kernel says otherwise.
inline constexpr unsigned kMaxBlockThreads = 512;

/// The blocks of `threads` threads for `units` units of work, one a thread, in a grid-stride loop:
/// no more than the GPU holds at a time. Results must not depend on this number.
inline LaunchShape gridStride(const CudaQueue &queue, int64_t units, unsigned threads = 256) {
  int64_t atOnce = int64_t{queue.owner().multiprocessors()} * (2048 / threads);
  return {static_cast<unsigned>(std::min((units + threads - 1) / threads, atOnce)), 1, threads};
}

/// A block for each of `rows` rows, in a grid-stride loop, with threads for `units` units of each.
inline LaunchShape blockPerRow(int64_t rows, int64_t units) {
  int64_t threads = std::clamp<int64_t>((units + kWarpThreads - 1) / kWarpThreads * kWarpThreads,
                                        kWarpThreads, kMaxBlockThreads);
  return {static_cast<unsigned>(std::min<int64_t>(rows, 65535)), 1, static_cast<unsigned>(threads)};
}

/// Loads the code of a kernel, as its first launch would: by default CUDA loads it then, which may
/// wait for all that the GPU does (CUDA C++ Programming Guide, "Lazy Loading").
template <typename... Parameters> MaybeError loadKernel(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes;
  return checkCuda(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(kernel)),
                   "cannot load");
}

/// Enqueues `kernel` with these arguments; nothing if there are no blocks. A queue that prepares
/// loads it.
template <typename... Parameters, typename... Arguments>
MaybeError launch(CudaQueue &queue, const LaunchShape &shape, void (*kernel)(Parameters...),
                  Arguments &&...arguments) {
  if (shape.blocksX == 0 || shape.blocksY == 0)
    return std::nullopt;
  if (queue.isPreparing())
    return loadKernel(kernel);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(shape.blocksX, shape.blocksY, 1);
  config.blockDim = dim3(shape.threads, 1, 1);
  config.stream = queue.stream();
  return checkCuda(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...),
                   "cannot launch");
}

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_LAUNCH_H
