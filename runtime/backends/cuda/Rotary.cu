//===- Rotary.cu - Rotary position embedding ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/AttentionCalls.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/DeviceSequence.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/Launch.h"
#include "runtime/backends/cuda/RoundedProduct.h"

#include <algorithm>
#include <numbers>

namespace dtc::runtime::cuda {

namespace {

inline constexpr int kRotaryVector = 4; // pairs of a thread, where sizes and addresses allow it

inline constexpr int kMostPairs =
    256; // of each head that one launch rotates; a multiple of rotaryVector

/// The call as a parameter of kernels, for `count` pairs of each head from `begin` on: their
/// frequencies lie in constant memory.
struct DeviceRotary {
  int64_t batch, sequence, heads, headSize, pairs;
  int64_t begin, count;
  double factor;
  bool inverse;
  RotaryPositions positions;
  DeviceSequence order;
  double frequencies[kMostPairs];

  DeviceRotary(const RotaryCall &call, const SequenceOrder &order, int64_t begin)
      : batch(call.batch), sequence(call.sequence), heads(call.heads), headSize(call.headSize),
        pairs(call.pairs()), begin(begin),
        count(std::min<int64_t>(call.pairs() - begin, kMostPairs)), factor(call.factor),
        inverse(call.inverse), positions(call.positions), order(order), frequencies() {
    std::copy_n(call.frequencies.begin() + begin, count, frequencies);
  }
};

/// A thread has V neighbouring pairs (i, pairs + i) of a position and turns them in all heads, so
/// that an angle is computed once. Angles are f64, as on the CPU: those of late positions have no
/// digits to spare in f32. sincospi() needs fewer registers than sin() and cos(). `positions` are
/// as the call says. y may be x.
template <int V, typename F>
__global__ void __launch_bounds__(256)
    rotaryKernel(const F *x, F *y, const int32_t *positions, const DeviceRotary call) {
  using W = Wide<F>;
  using Pairs = Vector<F, V>;
  int64_t sequence = call.sequence, heads = call.heads;
  int64_t groups = call.count / V, count = call.batch * sequence * groups;
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t unit = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; unit < count; unit += step) {
    int64_t row = unit / groups, first = unit % groups * V;
    int64_t position =
        call.positions == RotaryPositions::OfRows ? positions[row] : call.order.at(row % sequence);
    if (call.positions == RotaryPositions::OfFirstRows)
      position += positions[row / sequence];
    W cosines[V], sines[V];
#pragma unroll
    for (int i = 0; i < V; ++i) {
      double angle = static_cast<double>(position) * call.frequencies[first + i];
      double sine, cosine;
      sincospi(angle / std::numbers::pi, &sine, &cosine);
      cosines[i] = static_cast<W>(call.factor * cosine);
      sines[i] = static_cast<W>(call.inverse ? -call.factor * sine : call.factor * sine);
    }
    for (int64_t head = 0; head < heads; ++head) {
      int64_t at = (row * heads + head) * call.headSize + call.begin + first;
      Pairs low = loadVector<V>(x + at), high = loadVector<V>(x + at + call.pairs);
#pragma unroll
      for (int i = 0; i < V; ++i) {
        W a = widen(low.at[i]), b = widen(high.at[i]);
        low.at[i] = narrow<F>(roundedProduct(a, cosines[i]) - roundedProduct(b, sines[i]));
        high.at[i] = narrow<F>(roundedProduct(b, cosines[i]) + roundedProduct(a, sines[i]));
      }
      storeVector(y + at, low);
      storeVector(y + at + call.pairs, high);
    }
  }
}

/// The elements of heads that are not rotated.
template <typename F>
__global__ void __launch_bounds__(256) rotaryRestKernel(const F *x, F *y, const DeviceRotary call) {
  int64_t rest = call.headSize - 2 * call.pairs;
  int64_t count = call.batch * call.sequence * call.heads * rest;
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t unit = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; unit < count; unit += step) {
    int64_t at = unit / rest * call.headSize + 2 * call.pairs + unit % rest;
    y[at] = x[at];
  }
}

template <typename F>
MaybeError enqueueRotary(CudaQueue &queue, const RotaryCall &call, const SequenceOrder &order,
                         const F *x, F *y, const int32_t *positions) {
  constexpr int V = kRotaryVector;
  int64_t rows = call.batch * call.sequence, rest = call.headSize - 2 * call.pairs();
  if (x != y && rest != 0)
    if (MaybeError error = launch(queue, gridStride(queue, rows * call.heads * rest),
                                  rotaryRestKernel<F>, x, y, DeviceRotary(call, order, 0)))
      return error;
  bool inVectors = call.pairs() % V == 0 && call.headSize % V == 0 && isAligned(x, V * sizeof(F)) &&
                   isAligned(y, V * sizeof(F));
  for (int64_t begin = 0; begin < call.pairs(); begin += kMostPairs) {
    DeviceRotary device(call, order, begin);
    MaybeError error = inVectors ? launch(queue, gridStride(queue, rows * device.count / V),
                                          rotaryKernel<V, F>, x, y, positions, device)
                                 : launch(queue, gridStride(queue, rows * device.count),
                                          rotaryKernel<1, F>, x, y, positions, device);
    if (error)
      return error;
  }
  return std::nullopt;
}

PrepareResult prepareRotary(const RotaryCall &call) {
  return withFloatType(call.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
      return enqueueRotary<F>(
          queue, call, call.shard.at(args.position), input<F>(args, 0), output<F>(args, 0),
          call.positions == RotaryPositions::None ? nullptr : input<int32_t>(args, 1));
    });
  });
}

} // namespace

std::span<const KernelEntry> rotaryKernels() {
  static constexpr KernelEntry entries[] = {{"rotary", prepareBy<checkRotary, prepareRotary>}};
  return entries;
}

} // namespace dtc::runtime::cuda
