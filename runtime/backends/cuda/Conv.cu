//===- Conv.cu - Convolutions and their gradients -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Plain kernels, without matrix units: a thread, or for the gradient of a weight a warp, gathers
// the terms of one element of the result, in an order that the sizes alone decide.
//
//===----------------------------------------------------------------------===//

#include "calls/WindowCalls.h"
#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/DeviceWindows.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/Launch.h"
#include "runtime/backends/cuda/WindowKernels.h"

namespace dtc::runtime::cuda {

namespace {

/// A ConvCall as a parameter of kernels.
struct DeviceConv {
  explicit DeviceConv(const ConvCall &call)
      : batch(call.batch), groups(call.groups), inChannels(call.inChannels),
        outChannels(call.outChannels), dims(call.dims) {}

  int64_t batch, groups, inChannels, outChannels;
  DeviceWindows dims;
};

/// A thread for each element of y.
template <typename F>
__global__ void __launch_bounds__(256)
    convKernel(const DeviceConv __grid_constant__ c, const F *x, const F *w, F *y, int64_t count) {
  int64_t in = c.dims.inElements(), out = c.dims.outElements(), window = c.dims.windowElements();
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    int64_t plane = i / out, sampleGroup = plane / c.outChannels;
    Places at = c.dims.windowAt(i - plane * out);
    int64_t row = sampleGroup % c.groups * c.outChannels + plane % c.outChannels;
    const F *from = x + sampleGroup * c.inChannels * in;
    const F *weights = w + row * c.inChannels * window;
    Wide<F> sum = 0;
    for (int64_t channel = 0; channel < c.inChannels; ++channel, from += in, weights += window)
      c.dims.forPlaces(
          at, [&](int64_t k, int64_t place) { sum += widen(weights[k]) * widen(from[place]); });
    y[i] = narrow<F>(sum);
  }
}

/// A thread for each element of dx.
template <typename F>
__global__ void __launch_bounds__(256)
    convInputGradKernel(const DeviceConv __grid_constant__ c, const F *dy, const F *w, F *dx,
                        int64_t count) {
  int64_t in = c.dims.inElements(), out = c.dims.outElements(), window = c.dims.windowElements();
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    int64_t plane = i / in, sampleGroup = plane / c.inChannels, channel = plane % c.inChannels;
    Places at = c.dims.placeAt(i - plane * in);
    int64_t row = sampleGroup % c.groups * c.outChannels;
    const F *from = dy + sampleGroup * c.outChannels * out;
    const F *weights = w + (row * c.inChannels + channel) * window;
    Wide<F> sum = 0;
    for (int64_t o = 0; o < c.outChannels; ++o, from += out, weights += c.inChannels * window)
      c.dims.forWindows(
          at, [&](int64_t k, int64_t place) { sum += widen(weights[k]) * widen(from[place]); });
    dx[i] = narrow<F>(sum);
  }
}

/// A warp for each element of dw.
inline constexpr unsigned kWeightWarps = 8;
template <typename F>
__global__ void __launch_bounds__(kWeightWarps *kWarpThreads)
    convWeightGradKernel(const DeviceConv __grid_constant__ c, const F *x, const F *dy, Wide<F> *dw,
                         int64_t count) {
  int64_t in = c.dims.inElements(), out = c.dims.outElements(), window = c.dims.windowElements();
  unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
  int64_t step = int64_t{gridDim.x} * kWeightWarps;
  for (int64_t i = int64_t{blockIdx.x} * kWeightWarps + warp; i < count; i += step) {
    int64_t plane = i / window, row = plane / c.inChannels, channel = plane % c.inChannels;
    Places k = c.dims.elementAt(i - plane * window);
    Wide<F> sum = 0;
    for (int64_t j = lane; j < c.batch * out; j += kWarpThreads) {
      int64_t sample = j / out, result = j - sample * out;
      int64_t place = c.dims.placeOf(c.dims.windowAt(result), k);
      int64_t group = sample * c.groups + row / c.outChannels;
      if (place >= 0)
        sum += widen(x[(group * c.inChannels + channel) * in + place]) *
               widen(dy[(sample * c.groups * c.outChannels + row) * out + result]);
    }
    sum = reduceWarp<SumOf>(sum);
    if (lane == 0)
      dw[i] = sum;
  }
}

PrepareResult prepareConv(const ConvCall &call) {
  return withFloatType(call.dtype, [&](auto identity) {
    using F = typename decltype(identity)::type;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      int64_t count = call.yElements();
      return launch(queue, gridStride(queue, count), convKernel<F>, DeviceConv(call),
                    input<F>(args, 0), input<F>(args, 1), output<F>(args, 0), count);
    });
  });
}

PrepareResult prepareConvInputGrad(const ConvCall &call) {
  return withFloatType(call.dtype, [&](auto identity) {
    using F = typename decltype(identity)::type;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      int64_t count = call.xElements();
      return launch(queue, gridStride(queue, count), convInputGradKernel<F>, DeviceConv(call),
                    input<F>(args, 0), input<F>(args, 1), output<F>(args, 0), count);
    });
  });
}

PrepareResult prepareConvWeightGrad(const ConvCall &call) {
  return withFloatType(call.dtype, [&](auto identity) {
    using F = typename decltype(identity)::type;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      int64_t count = call.wElements();
      return launch(queue, gridStride(queue, count * kWarpThreads, kWeightWarps * kWarpThreads),
                    convWeightGradKernel<F>, DeviceConv(call), input<F>(args, 0), input<F>(args, 1),
                    output<Wide<F>>(args, 0), count);
    });
  });
}

} // namespace

std::span<const KernelEntry> convKernels() {
  static constexpr KernelEntry entries[] = {
      {"conv", prepareBy<checkConv, prepareConv>},
      {"conv_input_grad", prepareBy<checkConvInputGrad, prepareConvInputGrad>},
      {"conv_weight_grad", prepareBy<checkConvWeightGrad, prepareConvWeightGrad>}};
  return entries;
}

} // namespace dtc::runtime::cuda
