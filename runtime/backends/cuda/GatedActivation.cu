//===- GatedActivation.cu - Activation functions that gate another tensor -===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The gated linear units of Shazeer, "GLU Variants Improve Transformer" (2020), section 2, without
// their products: out = act(x) * gate, and the gradients of x and gate. Each intermediate result is
// rounded as the calls one by one round it, so that the bits are theirs.
//
//===----------------------------------------------------------------------===//

#include "calls/ElementwiseCalls.h"
#include "runtime/backends/cuda/Activations.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/LargestMagnitude.h"
#include "runtime/backends/cuda/Launch.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

namespace dtc::runtime::cuda {

namespace {

/// The dense arrays of a launch. Null: not wanted.
template <typename T> struct ForwardArrays {
  const T *x, *gate;
  T *act, *out;
  float *largestOut;
};

/// The arrays of dact = dout * gate, dgate = dout * act, and dx, the gradient of the activation at
/// x.
template <typename T> struct BackwardArrays {
  const T *dout, *gate, *act, *x;
  T *dact, *dgate, *dx;
  float *largestDgate, *largestDx;
};

template <int V, typename T>
__device__ __forceinline__ Vector<T, V> loadAt(const T *from, int64_t i) {
  return *reinterpret_cast<const Vector<T, V> *>(from + i);
}
template <int V, typename T>
__device__ __forceinline__ void storeAt(T *to, int64_t i, const Vector<T, V> &value) {
  if (to)
    *reinterpret_cast<Vector<T, V> *>(to + i) = value;
}

template <int V, typename Activation, typename T>
__global__ void __launch_bounds__(256)
    gatedActivationKernel(const ForwardArrays<T> __grid_constant__ at, int64_t count) {
  Wide<T> largest = 0;
  int64_t step = int64_t{gridDim.x} * blockDim.x * V;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V; i < count; i += step) {
    Vector<T, V> x = loadAt<V>(at.x, i), gate = loadAt<V>(at.gate, i), act, out;
#pragma unroll
    for (int j = 0; j < V; ++j) {
      act.at[j] = narrow<T>(Activation()(i + j, widen(x.at[j])));
      out.at[j] = narrow<T>(widen(act.at[j]) * widen(gate.at[j]));
    }
    storeAt<V>(at.act, i, act);
    storeAt<V>(at.out, i, out);
    largest = largestOf(largest, out);
  }
  raiseLargest(at.largestOut, largest);
}

/// `Gradient` is void where x and dx are null.
template <int V, typename Gradient, typename T>
__global__ void __launch_bounds__(256)
    gatedActivationGradKernel(const BackwardArrays<T> __grid_constant__ at, int64_t count) {
  constexpr bool hasDx = !std::is_void_v<Gradient>;
  Wide<T> largestDx = 0, largestDgate = 0;
  int64_t step = int64_t{gridDim.x} * blockDim.x * V;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V; i < count; i += step) {
    // All is read before anything is written, as results may lie in the place of operands.
    Vector<T, V> dout = loadAt<V>(at.dout, i), gate = loadAt<V>(at.gate, i), dact;
    Vector<T, V> act = at.dgate ? loadAt<V>(at.act, i) : gate;
#pragma unroll
    for (int j = 0; j < V; ++j)
      dact.at[j] = narrow<T>(widen(dout.at[j]) * widen(gate.at[j]));
    if constexpr (hasDx) {
      Vector<T, V> x = loadAt<V>(at.x, i), dx;
#pragma unroll
      for (int j = 0; j < V; ++j)
        dx.at[j] = narrow<T>(Gradient()(i + j, widen(x.at[j]), widen(dact.at[j])));
      storeAt<V>(at.dx, i, dx);
      largestDx = largestOf(largestDx, dx);
    }
    storeAt<V>(at.dact, i, dact);
#pragma unroll
    for (int j = 0; j < V; ++j)
      act.at[j] = narrow<T>(widen(dout.at[j]) * widen(act.at[j]));
    storeAt<V>(at.dgate, i, act);
    largestDgate = largestOf(largestDgate, act);
  }
  raiseLargest(at.largestDx, largestDx);
  raiseLargest(at.largestDgate, largestDgate);
}

/// Launches the kernel for as many elements at a time as the addresses allow.
template <typename T, typename Arrays, typename Parameter, typename... Pointers>
MaybeError launchVectors(CudaQueue &queue, int64_t count, const Arrays &at,
                         void (*wide)(Parameter, int64_t), void (*narrow)(Parameter, int64_t),
                         Pointers... pointers) {
  constexpr int V = 16 / sizeof(T);
  bool inVectors = ((count % V == 0) && ... && isAligned(pointers, 16));
  if (inVectors)
    return launch(queue, gridStride(queue, count / V), wide, at, count);
  return launch(queue, gridStride(queue, count), narrow, at, count);
}

/// Pointers to the arrays of values, null for those that are not there.
class Addresses {
public:
  Addresses(const std::vector<size_t> &indices, const KernelArguments &args)
      : indices(indices), args(args) {}
  template <typename T> const T *read(std::optional<size_t> value) const {
    return value ? input<T>(args, indices[*value]) : nullptr;
  }
  template <typename T> T *write(std::optional<size_t> value) const {
    return value ? output<T>(args, indices[*value]) : nullptr;
  }

private:
  const std::vector<size_t> &indices;
  const KernelArguments &args;
};

template <typename T, typename Activation>
std::unique_ptr<CudaKernel> makeForward(const FusedCalls &calls, const GatedActivation &match,
                                        int64_t count) {
  return makeKernel([=, indices = calls.operandIndices()](
                        CudaQueue &queue, const KernelArguments &args) -> MaybeError {
    Addresses of(indices, args);
    ForwardArrays<T> at{of.read<T>(match.x), of.read<T>(match.gate), of.write<T>(match.act),
                        of.write<T>(match.out), of.write<float>(match.largestOut)};
    if (MaybeError error = clearLargest(queue, {at.largestOut}))
      return error;
    return launchVectors<T>(queue, count, at, gatedActivationKernel<16 / sizeof(T), Activation, T>,
                            gatedActivationKernel<1, Activation, T>, at.x, at.gate, at.act, at.out);
  });
}

template <typename T, typename Gradient>
std::unique_ptr<CudaKernel> makeBackward(const FusedCalls &calls, const GatedActivation &match,
                                         int64_t count) {
  return makeKernel([=, indices = calls.operandIndices()](
                        CudaQueue &queue, const KernelArguments &args) -> MaybeError {
    Addresses of(indices, args);
    BackwardArrays<T> at{of.read<T>(match.dout),          of.read<T>(match.gate),
                         of.read<T>(match.act),           of.read<T>(match.x),
                         of.write<T>(match.dact),         of.write<T>(match.dgate),
                         of.write<T>(match.dx),           of.write<float>(match.largestDgate),
                         of.write<float>(match.largestDx)};
    if (MaybeError error = clearLargest(queue, {at.largestDgate, at.largestDx}))
      return error;
    return launchVectors<T>(queue, count, at,
                            gatedActivationGradKernel<16 / sizeof(T), Gradient, T>,
                            gatedActivationGradKernel<1, Gradient, T>, at.dout, at.gate, at.act,
                            at.x, at.dact, at.dgate, at.dx);
  });
}

} // namespace

PrepareResult prepareGatedActivation(const FusedCalls &calls, const GatedActivation &match) {
  const KernelSignature &signature =
      match.activation ? match.activation->signature : calls.calls[0].signature;
  bool isTanh = false;
  if (signature.kernel == "gelu" || signature.kernel == "gelu_grad") {
    Expected<GeluCall> gelu = match.isGradient ? checkGeluGrad(signature) : checkGelu(signature);
    if (!gelu)
      return gelu.error();
    isTanh = gelu->isTanh;
  }
  bool isGelu = signature.kernel.starts_with("gelu"), isForward = match.out.has_value();
  int64_t count = signature.inputs[0].numElements();
  return withFloatType(signature.inputs[0].dtype, [&](auto identity) {
    using T = typename decltype(identity)::type;
    if (isForward)
      return !isGelu  ? makeForward<T, Silu>(calls, match, count)
             : isTanh ? makeForward<T, GeluTanh>(calls, match, count)
                      : makeForward<T, GeluErf>(calls, match, count);
    if (!match.activation)
      return makeBackward<T, void>(calls, match, count);
    return !isGelu  ? makeBackward<T, SiluGrad>(calls, match, count)
           : isTanh ? makeBackward<T, GeluTanhGrad>(calls, match, count)
                    : makeBackward<T, GeluErfGrad>(calls, match, count);
  });
}

} // namespace dtc::runtime::cuda
