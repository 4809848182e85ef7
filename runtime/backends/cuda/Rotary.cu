//===- Rotary.cu - Rotary position embedding ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/Launch.h"
#include "runtime/backends/shared/AttentionCalls.h"

#include <cmath>
#include <numbers>

namespace dtc::runtime::cuda {

namespace {

inline constexpr int rotaryVector = 4; // pairs of a thread, where sizes and addresses allow it

/// A thread has V neighbouring pairs (i, half + i) of a position and turns them in all heads, so
/// that an angle is computed once. Angles are f64, as on the CPU: those of late positions have no
/// digits to spare in f32. `logTheta` is to base 2: exp2() and sincospi() need fewer registers than
/// pow(), sin() and cos(). With `positions`, the first row of batch element b is at positions[b].
/// y may be x.
template <int V, typename F>
__global__ void __launch_bounds__(256)
    rotaryKernel(const F *x, F *y, const int32_t *positions, int64_t batch, int64_t sequence,
                 int64_t heads, int64_t half, double logTheta, bool inverse) {
  using W = Wide<F>;
  using Pairs = Vector<F, V>;
  int64_t groups = half / V, count = batch * sequence * groups;
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t unit = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; unit < count; unit += step) {
    int64_t row = unit / groups, first = unit % groups * V;
    int64_t position = row % sequence + (positions ? positions[row / sequence] : 0);
    W cosines[V], sines[V];
#pragma unroll
    for (int i = 0; i < V; ++i) {
      double exponent = static_cast<double>(first + i) / static_cast<double>(half);
      double angle = static_cast<double>(position) * exp2(-exponent * logTheta);
      double sine, cosine;
      sincospi(angle / std::numbers::pi, &sine, &cosine);
      cosines[i] = static_cast<W>(cosine);
      sines[i] = static_cast<W>(inverse ? -sine : sine);
    }
    for (int64_t head = 0; head < heads; ++head) {
      int64_t at = (row * heads + head) * 2 * half + first;
      Pairs low = *reinterpret_cast<const Pairs *>(x + at);
      Pairs high = *reinterpret_cast<const Pairs *>(x + at + half);
#pragma unroll
      for (int i = 0; i < V; ++i) {
        W a = widen(low.at[i]), b = widen(high.at[i]);
        low.at[i] = narrow<F>(a * cosines[i] - b * sines[i]);
        high.at[i] = narrow<F>(b * cosines[i] + a * sines[i]);
      }
      *reinterpret_cast<Pairs *>(y + at) = low;
      *reinterpret_cast<Pairs *>(y + at + half) = high;
    }
  }
}

template <typename F>
MaybeError enqueueRotary(CudaQueue &queue, const RotaryCall &call, const F *x, F *y,
                         const int32_t *positions) {
  constexpr int V = rotaryVector;
  int64_t half = call.headSize / 2, pairs = call.batch * call.sequence * half;
  double logTheta = std::log2(call.theta);
  auto isAligned = [](const F *at) {
    return reinterpret_cast<uintptr_t>(at) % (V * sizeof(F)) == 0;
  };
  if (half % V == 0 && isAligned(x) && isAligned(y))
    return launch(queue, gridStride(queue, pairs / V), rotaryKernel<V, F>, x, y, positions,
                  call.batch, call.sequence, call.heads, half, logTheta, call.inverse);
  return launch(queue, gridStride(queue, pairs), rotaryKernel<1, F>, x, y, positions, call.batch,
                call.sequence, call.heads, half, logTheta, call.inverse);
}

PrepareResult prepareRotary(const KernelSignature &signature) {
  Expected<RotaryCall> checked = checkRotary(signature);
  if (!checked)
    return checked.error();
  return withFloatType(checked->dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    return makeKernel([call = *checked](CudaQueue &queue, const KernelArguments &args) {
      return enqueueRotary<F>(queue, call, input<F>(args, 0), output<F>(args, 0),
                              call.hasPositions ? input<int32_t>(args, 1) : nullptr);
    });
  });
}

} // namespace

std::span<const KernelEntry> rotaryKernels() {
  static constexpr KernelEntry entries[] = {{"rotary", prepareRotary}};
  return entries;
}

} // namespace dtc::runtime::cuda
