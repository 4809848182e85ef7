//===- Activations.h - Activation functions and their gradients -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// As functors for Elementwise.h.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_ACTIVATIONS_H
#define DTC_RUNTIME_BACKENDS_CUDA_ACTIVATIONS_H

#include <cstdint>
#include <cuda_runtime.h>

namespace dtc::runtime::cuda {

template <typename W> __device__ __forceinline__ W sigmoid(W x) { return W(1) / (W(1) + exp(-x)); }

/// The sigmoid and its derivative, which 1 - sigmoid(x) would cost its accuracy for large x.
template <typename W> __device__ __forceinline__ W sigmoidAndSlope(W x, W &slope) {
  W e = exp(-fabs(x));
  W inverse = W(1) / (W(1) + e);
  slope = e * inverse * inverse;
  return x < W(0) ? e * inverse : inverse;
}

struct Silu {
  template <typename W> __device__ W operator()(int64_t, W x) const { return x * sigmoid(x); }
};

// 0.5 (1 + tanh(u)) is sigmoid(2u), which keeps small results accurate.
template <typename W> __device__ __forceinline__ W geluTwiceU(W x) {
  return W(1.5957691216057308) * (x + W(0.044715) * (x * x * x));
}
template <typename W> __device__ __forceinline__ W normalCdf(W x) {
  return W(0.5) * (W(1) + erf(x * W(0.70710678118654752)));
}
struct GeluTanh {
  template <typename W> __device__ W operator()(int64_t, W x) const {
    return x * sigmoid(geluTwiceU(x));
  }
};
struct GeluErf {
  template <typename W> __device__ W operator()(int64_t, W x) const { return x * normalCdf(x); }
};
struct GeluTanhGrad {
  template <typename W> __device__ W operator()(int64_t, W x, W dy) const {
    W slope;
    W s = sigmoidAndSlope(geluTwiceU(x), slope);
    W inner = W(1.5957691216057308) * (W(1) + W(3 * 0.044715) * (x * x));
    return dy * (s + x * slope * inner);
  }
};
struct GeluErfGrad {
  template <typename W> __device__ W operator()(int64_t, W x, W dy) const {
    W density = W(0.39894228040143268) * exp(W(-0.5) * x * x);
    return dy * (normalCdf(x) + x * density);
  }
};
struct SiluGrad {
  template <typename W> __device__ W operator()(int64_t, W x, W dy) const {
    W slope;
    W s = sigmoidAndSlope(x, slope);
    return dy * (s + x * slope);
  }
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_ACTIVATIONS_H
