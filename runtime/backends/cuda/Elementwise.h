//===- Elementwise.h - Kernels of independent elements --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One kernel for all that makes each element of a dense result from an element of each operand: the
// operands lie with any strides, and the operation is a functor,
// `R operator()(int64_t index, Wide<Ins>... values)`, with the index of the result's element; R
// converts to Wide<Out>. Where rows and addresses allow it, 16 bytes are read and written at a
// time.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_ELEMENTWISE_H
#define DTC_RUNTIME_BACKENDS_CUDA_ELEMENTWISE_H

#include "runtime/backends/cuda/DeviceLoops.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/Launch.h"

#include <cstdint>
#include <utility>

namespace dtc::runtime::cuda {

/// V elements of an operand that lie `stride` apart. A stride of 1 means that `from` is aligned.
template <int V, typename T>
__device__ __forceinline__ Vector<T, V> loadVector(const T *from, int64_t stride) {
  if (stride == 1)
    return *reinterpret_cast<const Vector<T, V> *>(from);
  Vector<T, V> result;
#pragma unroll
  for (int i = 0; i < V; ++i)
    result.at[i] = from[i * stride];
  return result;
}

/// V elements of the result. The operands are read before any is written, as the result may lie in
/// their place.
template <int V, typename Op, typename Out, typename... Ins>
__device__ __forceinline__ void applyVector(Op &op, int64_t index, Out *out,
                                            const Vector<Ins, V> &...values) {
  Vector<Out, V> result;
#pragma unroll
  for (int i = 0; i < V; ++i)
    result.at[i] = narrow<Out>(static_cast<Wide<Out>>(op(index + i, widen(values.at[i])...)));
  *reinterpret_cast<Vector<Out, V> *>(out + index) = result;
}

template <int V, typename Loops, typename Op, typename Out, size_t... I, typename... Ins>
__device__ __forceinline__ void applyAt(const Loops &loops, Op &op, int64_t index, Out *out,
                                        std::index_sequence<I...>, const Ins *...in) {
  int64_t offsets[Loops::arrays];
  loops.offsetsAt(index, offsets);
  applyVector<V, Op, Out, Ins...>(op, index, out,
                                  loadVector<V>(in + offsets[I], loops.innerStride(I))...);
}

template <int V, typename Op, typename Out, typename... Ins>
__global__ void __launch_bounds__(256)
    elementwiseKernel(const DeviceLoops<sizeof...(Ins)> __grid_constant__ loops, Op op, Out *out,
                      const Ins *...in) {
  int64_t vectors = loops.count / V;
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < vectors; i += step)
    applyAt<V>(loops, op, i * V, out, std::index_sequence_for<Ins...>(), in...);
}

/// Whether every row of an operand begins at a multiple of `width` elements.
template <int V, int N, typename T>
bool allowsVectors(const DeviceLoops<N> &loops, int array, const T *from) {
  if (loops.innerStride(array) != 1)
    return true; // its elements are read one by one
  for (int dim = 0; dim + 1 < loops.dims; ++dim)
    if (loops.strides[array][dim] % V != 0)
      return false;
  return reinterpret_cast<uintptr_t>(from) % (V * sizeof(T)) == 0;
}

/// Enqueues op over the loops; the result is dense.
template <typename Out, typename... Ins, typename Op>
MaybeError enqueueElementwise(CudaQueue &queue, const DeviceLoops<sizeof...(Ins)> &loops,
                              const Op &op, Out *out, const Ins *...in) {
  constexpr int widest = static_cast<int>(std::max({sizeof(Out), sizeof(Ins)...}));
  constexpr int V = 16 / widest;
  int array = 0;
  bool vectors = loops.innerSize() % V == 0 &&
                 reinterpret_cast<uintptr_t>(out) % (V * sizeof(Out)) == 0 &&
                 (true && ... && allowsVectors<V>(loops, array++, in));
  if (vectors)
    return launch(queue, gridStride(queue, loops.count / V), elementwiseKernel<V, Op, Out, Ins...>,
                  loops, op, out, in...);
  return launch(queue, gridStride(queue, loops.count), elementwiseKernel<1, Op, Out, Ins...>, loops,
                op, out, in...);
}

/// The same for operands that are as dense as the result.
template <typename Out, typename... Ins, typename Op>
MaybeError enqueueDense(CudaQueue &queue, int64_t count, const Op &op, Out *out, const Ins *...in) {
  return enqueueElementwise<Out, Ins...>(queue, DeviceLoops<sizeof...(Ins)>::contiguous(count), op,
                                         out, in...);
}

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_ELEMENTWISE_H
