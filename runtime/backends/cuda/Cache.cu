//===- Cache.cu - Kernels that keep and find rows of samples --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/IndexingCalls.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/Launch.h"
#include "runtime/backends/cuda/Words.h"

namespace dtc::runtime::cuda {

namespace {

// Both kernels move words of bytes of any type: T is an unsigned integer or a vector of them. A
// tensor is [samples, places, ...]; `width` is the words of a row.

/// A block for each row that comes.
template <typename T>
__global__ void __launch_bounds__(kMaxBlockThreads)
    cacheUpdateKernel(const T *from, const int32_t *positions, T *cache, int64_t samples,
                      int64_t places, int64_t rows, int64_t width) {
  for (int64_t i = blockIdx.x; i < samples * rows; i += gridDim.x) {
    int64_t place = positions[i / rows] + i % rows;
    if (place < 0 || place >= places)
      continue;
    T *to = cache + (i / rows * places + place) * width;
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
      to[c] = from[i * width + c];
  }
}

/// A block for each sample.
template <typename T>
__global__ void __launch_bounds__(kMaxBlockThreads)
    selectRowKernel(const T *x, const int32_t *chosen, T *out, int64_t samples, int64_t places,
                    int64_t width) {
  for (int64_t n = blockIdx.x; n < samples; n += gridDim.x) {
    int64_t place = chosen[n];
    bool known = place >= 0 && place < places;
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
      out[n * width + c] = known ? x[(n * places + place) * width + c] : T{};
  }
}

MaybeError enqueueCacheUpdate(CudaQueue &queue, const SampleRowsCall &call,
                              const KernelArguments &args) {
  void *cache = args.outputs[0];
  const void *rows = args.inputs[1];
  if (cache != args.inputs[0])
    if (MaybeError error = queue.copy(static_cast<std::byte *>(cache), input<std::byte>(args, 0),
                                      static_cast<size_t>(call.samples * call.places * call.width)))
      return error;
  return withWords(call.width, cache, rows, [&](auto identity) {
    using T = typename decltype(identity)::type;
    int64_t width = call.width / static_cast<int64_t>(sizeof(T));
    return launch(queue, blockPerRow(width ? call.samples * call.rows : 0, width),
                  cacheUpdateKernel<T>, static_cast<const T *>(rows), input<int32_t>(args, 2),
                  static_cast<T *>(cache), call.samples, call.places, call.rows, width);
  });
}

MaybeError enqueueSelectRow(CudaQueue &queue, const SampleRowsCall &call,
                            const KernelArguments &args) {
  const void *x = args.inputs[0];
  void *out = args.outputs[0];
  return withWords(call.width, x, out, [&](auto identity) {
    using T = typename decltype(identity)::type;
    int64_t width = call.width / static_cast<int64_t>(sizeof(T));
    return launch(queue, blockPerRow(width ? call.samples : 0, width), selectRowKernel<T>,
                  static_cast<const T *>(x), input<int32_t>(args, 1), static_cast<T *>(out),
                  call.samples, call.places, width);
  });
}

template <MaybeError (*enqueue)(CudaQueue &, const SampleRowsCall &, const KernelArguments &)>
PrepareResult prepareRows(const SampleRowsCall &call) {
  return makeKernel(
      [call](CudaQueue &queue, const KernelArguments &args) { return enqueue(queue, call, args); });
}

} // namespace

std::span<const KernelEntry> cacheKernels() {
  static constexpr KernelEntry entries[] = {
      {"cache_update", prepareBy<checkCacheUpdate, prepareRows<enqueueCacheUpdate>>},
      {"select_row", prepareBy<checkSelectRow, prepareRows<enqueueSelectRow>>},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
