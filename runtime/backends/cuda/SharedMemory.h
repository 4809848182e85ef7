//===- SharedMemory.h - Shared memory that a launch asks for --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Beside the variables that a kernel declares, a block may have an array of shared memory whose
// size the launch tells. A thread can have it filled from global memory while it does other work:
// the copies that it begins form groups of its own, which it ends and waits for in their order.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_SHAREDMEMORY_H
#define DTC_RUNTIME_BACKENDS_CUDA_SHAREDMEMORY_H

#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/Launch.h"

namespace dtc::runtime::cuda {

/// Bytes that kernels with such an array have for the variables that they declare.
inline constexpr size_t kDeclaredShared = 1024;

/// The most bytes of the array, if a multiprocessor is to hold `blocks` blocks at a time.
inline size_t sharedMemoryOfBlock(const CudaQueue &queue, size_t blocks = 1) {
  int device = queue.owner().ordinal(), ofBlock = 48 * 1024, ofAll = ofBlock;
  // Where the driver does not know, these are what all GPUs have.
  cudaDeviceGetAttribute(&ofBlock, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  cudaDeviceGetAttribute(&ofAll, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  constexpr size_t ofDriver = 1024; // in each block
  return std::min(static_cast<size_t>(ofBlock), static_cast<size_t>(ofAll) / blocks - ofDriver) -
         kDeclaredShared;
}

/// launch() with an array of `bytes` bytes, at most sharedMemoryOfBlock().
template <typename... Parameters, typename... Arguments>
MaybeError launchWithShared(CudaQueue &queue, const LaunchShape &shape, size_t bytes,
                            void (*kernel)(Parameters...), Arguments &&...arguments) {
  if (shape.blocksX == 0 || shape.blocksY == 0)
    return std::nullopt;
  // Always the same for a kernel, since other threads may launch it.
  auto *function = reinterpret_cast<const void *>(kernel);
  if (MaybeError error =
          checkCuda(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(sharedMemoryOfBlock(queue))),
                    "cannot have shared memory"))
    return error;
  if (MaybeError error = checkCuda(
          cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout, 100),
          "cannot have shared memory"))
    return error;
  if (queue.isPreparing())
    return loadKernel(kernel);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(shape.blocksX, shape.blocksY, 1);
  config.blockDim = dim3(shape.threads, 1, 1);
  config.dynamicSmemBytes = bytes;
  config.stream = queue.stream();
  return checkCuda(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...),
                   "cannot launch");
}

#ifdef __CUDACC__

/// The array, aligned to 16 bytes.
template <typename T> __device__ __forceinline__ T *sharedArray() {
  extern __shared__ uint4 dtcSharedArray[];
  return reinterpret_cast<T *>(dtcSharedArray);
}

/// Begins to copy a vector of whole 16 bytes, at aligned addresses.
template <int N, typename T> __device__ __forceinline__ void copyToShared(T *to, const T *from) {
  auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  size_t global = __cvta_generic_to_global(from);
#pragma unroll
  for (int byte = 0; byte < static_cast<int>(N * sizeof(T)); byte += 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"(shared + byte), "l"(global + byte)
                 : "memory");
}
/// Ends a group, which may be empty.
__device__ __forceinline__ void endCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits for all groups of the thread but the `newest` last ones.
template <int newest> __device__ __forceinline__ void waitForCopies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(newest) : "memory");
}

#else

template <typename T> T *sharedArray() {
  return reinterpret_cast<T *>(dtc::standin::sharedArray());
}
template <int N, typename T> void copyToShared(T *to, const T *from) {
  memcpy(to, from, N * sizeof(T));
}
inline void endCopies() {}
template <int newest> void waitForCopies() {}

#endif

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_SHAREDMEMORY_H
