//===- ElementwiseUnary.cu - Functions of one tensor, their gradients -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/ElementwiseCalls.h"
#include "runtime/backends/cuda/Activations.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elementwise.h"

namespace dtc::runtime::cuda {

namespace {

struct Neg {
  template <typename W> __device__ W operator()(int64_t, W x) const { return -x; }
};
struct Abs {
  template <typename W> __device__ W operator()(int64_t, W x) const { return fabs(x); }
};
struct Exp {
  template <typename W> __device__ W operator()(int64_t, W x) const { return exp(x); }
};
struct Log {
  template <typename W> __device__ W operator()(int64_t, W x) const { return log(x); }
};
struct Sqrt {
  template <typename W> __device__ W operator()(int64_t, W x) const { return sqrt(x); }
};
struct Rsqrt {
  template <typename W> __device__ W operator()(int64_t, W x) const { return W(1) / sqrt(x); }
};
struct Tanh {
  template <typename W> __device__ W operator()(int64_t, W x) const { return tanh(x); }
};
struct Sigmoid {
  template <typename W> __device__ W operator()(int64_t, W x) const { return sigmoid(x); }
};
struct Softplus {
  template <typename W> __device__ W operator()(int64_t, W x) const {
    return (x < W(0) ? W(0) : x) + log1p(exp(-fabs(x)));
  }
};
struct Relu {
  // Written so that a NaN stays one.
  template <typename W> __device__ W operator()(int64_t, W x) const { return x < W(0) ? W(0) : x; }
};
template <typename Op> std::unique_ptr<CudaKernel> makeUnary(const TensorType &type) {
  int64_t count = type.numElements();
  return withFloatType(type.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel([=](CudaQueue &queue, const KernelArguments &args) {
      return enqueueDense<T, T>(queue, count, Op(), output<T>(args, 0), input<T>(args, 0));
    });
  });
}

template <typename Op> std::unique_ptr<CudaKernel> makeGradient(const TensorType &type) {
  int64_t count = type.numElements();
  return withFloatType(type.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel([=](CudaQueue &queue, const KernelArguments &args) {
      return enqueueDense<T, T, T>(queue, count, Op(), output<T>(args, 0), input<T>(args, 0),
                                   input<T>(args, 1));
    });
  });
}

template <typename Op> PrepareResult prepareUnary(const KernelSignature &signature) {
  Expected<TensorType> type = checkUnary(signature);
  return type ? PrepareResult(makeUnary<Op>(*type)) : PrepareResult(type.error());
}

PrepareResult prepareGelu(const GeluCall &call) {
  return call.isTanh ? makeUnary<GeluTanh>(call.type) : makeUnary<GeluErf>(call.type);
}

PrepareResult prepareGeluGrad(const GeluCall &call) {
  return call.isTanh ? makeGradient<GeluTanhGrad>(call.type) : makeGradient<GeluErfGrad>(call.type);
}

} // namespace

std::span<const KernelEntry> unaryKernels() {
  static constexpr KernelEntry entries[] = {
      {"neg", prepareUnary<Neg>},
      {"abs", prepareUnary<Abs>},
      {"exp", prepareUnary<Exp>},
      {"log", prepareUnary<Log>},
      {"sqrt", prepareUnary<Sqrt>},
      {"rsqrt", prepareUnary<Rsqrt>},
      {"tanh", prepareUnary<Tanh>},
      {"sigmoid", prepareUnary<Sigmoid>},
      {"relu", prepareUnary<Relu>},
      {"silu", prepareUnary<Silu>},
      {"gelu", prepareBy<checkGelu, prepareGelu>},
      {"gelu_grad", prepareBy<checkGeluGrad, prepareGeluGrad>},
      {"silu_grad", prepareBy<checkUnaryGrad, makeGradient<SiluGrad>>},
      {"softplus", prepareUnary<Softplus>},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
