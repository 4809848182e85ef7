//===- Pooling.cu - Maxima of windows -------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/WindowCalls.h"
#include "runtime/backends/cuda/DeviceWindows.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/Launch.h"
#include "runtime/backends/cuda/WindowKernels.h"

#include <cmath>

namespace dtc::runtime::cuda {

namespace {

/// The place in the plane x of the largest element of a window, the first of equal ones; -1 if all
/// is padding. A NaN is larger than all numbers.
template <typename F>
__device__ __forceinline__ int64_t largestOf(const DeviceWindows &dims, const F *x,
                                             const Places &window) {
  int64_t best = -1;
  Wide<F> largest = 0;
  dims.forPlaces(window, [&](int64_t, int64_t place) {
    Wide<F> value = widen(x[place]);
    if (best >= 0 && !(value > largest || (value != value && largest == largest)))
      return;
    best = place;
    largest = value;
  });
  return best;
}

/// A thread for each element of y.
template <typename F>
__global__ void __launch_bounds__(256)
    maxPoolKernel(const DeviceWindows __grid_constant__ dims, const F *x, F *y, int64_t count) {
  int64_t in = dims.inElements(), out = dims.outElements();
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    int64_t plane = i / out;
    const F *from = x + plane * in;
    int64_t place = largestOf(dims, from, dims.windowAt(i - plane * out));
    y[i] = place < 0 ? narrow<F>(-Wide<F>(INFINITY)) : from[place];
  }
}

/// A thread for each element of dx. It finds the largest element of each window that has its own.
template <typename F>
__global__ void __launch_bounds__(256)
    maxPoolGradKernel(const DeviceWindows __grid_constant__ dims, const F *x, const F *dy, F *dx,
                      int64_t count) {
  int64_t in = dims.inElements(), out = dims.outElements();
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    int64_t plane = i / in, own = i - plane * in;
    const F *from = x + plane * in;
    Wide<F> sum = 0;
    dims.forWindows(dims.placeAt(own), [&](int64_t, int64_t window) {
      if (largestOf(dims, from, dims.windowAt(window)) == own)
        sum += widen(dy[plane * out + window]);
    });
    dx[i] = narrow<F>(sum);
  }
}

PrepareResult prepareMaxPool(const PoolCall &call) {
  return withFloatType(call.dtype, [&](auto identity) {
    using F = typename decltype(identity)::type;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      int64_t count = call.planes * outElements(call.dims);
      return launch(queue, gridStride(queue, count), maxPoolKernel<F>, DeviceWindows(call.dims),
                    input<F>(args, 0), output<F>(args, 0), count);
    });
  });
}

PrepareResult prepareMaxPoolGrad(const PoolCall &call) {
  return withFloatType(call.dtype, [&](auto identity) {
    using F = typename decltype(identity)::type;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      int64_t count = call.planes * inElements(call.dims);
      return launch(queue, gridStride(queue, count), maxPoolGradKernel<F>, DeviceWindows(call.dims),
                    input<F>(args, 0), input<F>(args, 1), output<F>(args, 0), count);
    });
  });
}

} // namespace

std::span<const KernelEntry> poolingKernels() {
  static constexpr KernelEntry entries[] = {
      {"max_pool", prepareBy<checkMaxPool, prepareMaxPool>},
      {"max_pool_grad", prepareBy<checkMaxPoolGrad, prepareMaxPoolGrad>}};
  return entries;
}

} // namespace dtc::runtime::cuda
