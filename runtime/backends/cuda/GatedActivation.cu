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

#include "runtime/backends/cuda/Activations.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/Launch.h"
#include "runtime/backends/shared/ElementwiseCalls.h"

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
};

/// Of dact = dout * gate, dgate = dout * act, and dx, the gradient of the activation at x.
template <typename T> struct BackwardArrays {
  const T *dout, *gate, *act, *x;
  T *dact, *dgate, *dx;
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
    gatedActivationKernel(const __grid_constant__ ForwardArrays<T> at, int64_t count) {
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
  }
}

/// `Gradient` is void where x and dx are null.
template <int V, typename Gradient, typename T>
__global__ void __launch_bounds__(256)
    gatedActivationGradKernel(const __grid_constant__ BackwardArrays<T> at, int64_t count) {
  constexpr bool hasDx = !std::is_void_v<Gradient>;
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
    }
    storeAt<V>(at.dact, i, dact);
#pragma unroll
    for (int j = 0; j < V; ++j)
      act.at[j] = narrow<T>(widen(dout.at[j]) * widen(act.at[j]));
    storeAt<V>(at.dgate, i, act);
  }
}

/// Launches the kernel for as many elements at a time as the addresses allow.
template <typename T, typename Arrays, typename... Pointers>
MaybeError launchVectors(CudaQueue &queue, int64_t count, const Arrays &at,
                         void (*wide)(Arrays, int64_t), void (*narrow)(Arrays, int64_t),
                         Pointers... pointers) {
  constexpr int V = 16 / sizeof(T);
  bool inVectors = ((count % V == 0) && ... && isAligned(pointers, 16));
  if (inVectors)
    return launch(queue, gridStride(queue, count / V), wide, at, count);
  return launch(queue, gridStride(queue, count), narrow, at, count);
}

/// The calls by their meaning, as numbers of values; none: not there.
struct GateCalls {
  const FusedCalls::Call *activation = nullptr; // or its gradient
  bool isGradient = false;
  std::optional<size_t> dout, gate, act, x;   // that are read; forward without act
  std::optional<size_t> dact, dgate, dx, out; // that are made
};

class Matcher {
public:
  explicit Matcher(const FusedCalls &calls) : calls(calls) {}

  std::optional<GateCalls> match() {
    for (const FusedCalls::Call &call : calls.calls) {
      const std::string &kernel = call.signature.kernel;
      bool isGradient = kernel == "silu_grad" || kernel == "gelu_grad";
      if (kernel == "mul" && isPlain(call) && products.size() < 2)
        products.push_back(&call);
      else if ((isGradient || kernel == "silu" || kernel == "gelu") && !result.activation)
        result.activation = &call, result.isGradient = isGradient;
      else
        return std::nullopt;
    }
    bool isForward = result.activation && !result.isGradient;
    if (calls.calls.size() < 2 || !(isForward ? matchForward() : matchBackward()) ||
        !std::ranges::all_of(calls.overlaps, &FusedCalls::Overlap::isSame))
      return std::nullopt;
    return result;
  }

private:
  /// A product of two tensors of one type.
  static bool isPlain(const FusedCalls::Call &call) {
    const KernelSignature &signature = call.signature;
    return signature.attributes.empty() && signature.inputs[0] == signature.inputs[1] &&
           isFloat(signature.inputs[0].dtype);
  }
  bool isBefore(size_t value) const { return !calls.values[value].maker; }
  std::optional<size_t> ifKept(size_t value) const {
    return calls.values[value].isKept ? std::optional(value) : std::nullopt;
  }
  /// The other operand of a product; none where both are `one`, or neither.
  static std::optional<size_t> other(const FusedCalls::Call &product, size_t one) {
    bool isFirst = product.inputs[0] == one, isSecond = product.inputs[1] == one;
    return isFirst == isSecond ? std::nullopt : std::optional(product.inputs[isFirst ? 1 : 0]);
  }

  bool matchForward() {
    if (products.size() != 1)
      return false;
    size_t act = result.activation->outputs[0];
    result.x = result.activation->inputs[0];
    result.gate = other(*products[0], act);
    result.act = ifKept(act);
    result.out = products[0]->outputs[0];
    return result.gate && isBefore(*result.gate);
  }

  /// Both products, or one of them and the gradient of the activation, or all.
  bool matchBackward() {
    if (result.activation) {
      result.x = result.activation->inputs[0];
      // The first is the one whose result the gradient reads.
      size_t dact = result.activation->inputs[1];
      if (products.size() == 2 && products[1]->outputs[0] == dact)
        std::swap(products[0], products[1]);
      if (products.empty() || products[0]->outputs[0] != dact || !isBefore(*result.x))
        return false;
      result.dx = result.activation->outputs[0];
    }
    const FusedCalls::Call &first = *products[0];
    result.dout = first.inputs[0];
    if (products.size() == 2) {
      const FusedCalls::Call &second = *products[1];
      if (std::ranges::find(second.inputs, *result.dout) == second.inputs.end())
        result.dout = first.inputs[1];
      result.act = other(second, *result.dout);
      result.dgate = ifKept(second.outputs[0]);
      if (!result.act || !isBefore(*result.act) ||
          second.signature.inputs[0] != first.signature.inputs[0])
        return false;
    }
    result.gate = other(first, *result.dout);
    result.dact = ifKept(first.outputs[0]);
    return result.gate && isBefore(*result.dout) && isBefore(*result.gate);
  }

  const FusedCalls &calls;
  GateCalls result;
  std::vector<const FusedCalls::Call *> products;
};

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
std::unique_ptr<CudaKernel> makeForward(const FusedCalls &calls, const GateCalls &match,
                                        int64_t count) {
  return makeKernel([=, indices = calls.operandIndices()](CudaQueue &queue,
                                                          const KernelArguments &args) {
    Addresses of(indices, args);
    ForwardArrays<T> at{of.read<T>(match.x), of.read<T>(match.gate), of.write<T>(match.act),
                        of.write<T>(match.out)};
    return launchVectors<T>(queue, count, at, gatedActivationKernel<16 / sizeof(T), Activation, T>,
                            gatedActivationKernel<1, Activation, T>, at.x, at.gate, at.act, at.out);
  });
}

template <typename T, typename Gradient>
std::unique_ptr<CudaKernel> makeBackward(const FusedCalls &calls, const GateCalls &match,
                                         int64_t count) {
  return makeKernel([=, indices = calls.operandIndices()](CudaQueue &queue,
                                                          const KernelArguments &args) {
    Addresses of(indices, args);
    BackwardArrays<T> at{of.read<T>(match.dout), of.read<T>(match.gate),  of.read<T>(match.act),
                         of.read<T>(match.x),    of.write<T>(match.dact), of.write<T>(match.dgate),
                         of.write<T>(match.dx)};
    return launchVectors<T>(queue, count, at,
                            gatedActivationGradKernel<16 / sizeof(T), Gradient, T>,
                            gatedActivationGradKernel<1, Gradient, T>, at.dout, at.gate, at.act,
                            at.x, at.dact, at.dgate, at.dx);
  });
}

} // namespace

PrepareResult prepareGatedActivation(const FusedCalls &calls, const SingleKernels &) {
  std::optional<GateCalls> match = Matcher(calls).match();
  if (!match)
    return PrepareResult(nullptr);
  const KernelSignature &signature =
      match->activation ? match->activation->signature : calls.calls[0].signature;
  bool isTanh = false;
  if (signature.kernel == "gelu" || signature.kernel == "gelu_grad") {
    Expected<GeluCall> gelu = match->isGradient ? checkGeluGrad(signature) : checkGelu(signature);
    if (!gelu)
      return gelu.error();
    isTanh = gelu->isTanh;
  }
  bool isGelu = signature.kernel.starts_with("gelu"), isForward = match->out.has_value();
  int64_t count = signature.inputs[0].numElements();
  return withFloatType(signature.inputs[0].dtype, [&](auto identity) {
    using T = typename decltype(identity)::type;
    if (isForward)
      return !isGelu  ? makeForward<T, Silu>(calls, *match, count)
             : isTanh ? makeForward<T, GeluTanh>(calls, *match, count)
                      : makeForward<T, GeluErf>(calls, *match, count);
    if (!match->activation)
      return makeBackward<T, void>(calls, *match, count);
    return !isGelu  ? makeBackward<T, SiluGrad>(calls, *match, count)
           : isTanh ? makeBackward<T, GeluTanhGrad>(calls, *match, count)
                    : makeBackward<T, GeluErfGrad>(calls, *match, count);
  });
}

} // namespace dtc::runtime::cuda
