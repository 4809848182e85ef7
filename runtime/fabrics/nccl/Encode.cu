//===- Encode.cu - Elements as NCCL reduces them --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/nccl/Encode.h"

#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/Launch.h"
#include "runtime/backends/cuda/StridedCopy.h"

#include <cstdint>

namespace dtc::runtime::nccl {

using cuda::CudaQueue;
using cuda::DeviceLoops;

namespace {

/// The integer with as many bits as a float that is computed with.
template <typename W> struct KeyOf { using Type = uint32_t; };
template <> struct KeyOf<double> { using Type = uint64_t; };
template <typename W> using Key = typename KeyOf<W>::Type;

__device__ __forceinline__ uint32_t bitsOf(float value) { return __float_as_uint(value); }
__device__ __forceinline__ uint64_t bitsOf(double value) {
  return static_cast<uint64_t>(__double_as_longlong(value));
}
__device__ __forceinline__ float floatOf(uint32_t bits) { return __uint_as_float(bits); }
__device__ __forceinline__ double floatOf(uint64_t bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}

struct Widen {
  template <typename F> __device__ cuda::Wide<F> operator()(F value) const {
    return cuda::widen(value);
  }
};

/// Negative floats have the reverse order of their bits.
struct ToKey {
  bool nanIsLargest;
  template <typename F> __device__ Key<cuda::Wide<F>> operator()(F value) const {
    using K = Key<cuda::Wide<F>>;
    constexpr K sign = K(1) << (8 * sizeof(K) - 1);
    auto wide = cuda::widen(value);
    if (wide != wide)
      return nanIsLargest ? ~K(0) : K(0);
    K bits = bitsOf(wide);
    return (bits & sign) ? ~bits : bits | sign;
  }
};

template <typename F> struct Narrow {
  __device__ F operator()(cuda::Wide<F> value) const { return cuda::narrow<F>(value); }
};

template <typename F> struct FromKey {
  bool nanIsLargest;
  __device__ F operator()(Key<cuda::Wide<F>> key) const {
    using K = Key<cuda::Wide<F>>;
    constexpr K sign = K(1) << (8 * sizeof(K) - 1);
    // All bits set are a NaN.
    K bits = key == (nanIsLargest ? ~K(0) : K(0)) ? ~K(0) : (key & sign) ? key ^ sign : ~key;
    return cuda::narrow<F>(floatOf(bits));
  }
};

template <typename To, typename From, typename Op>
__global__ void __launch_bounds__(256)
    mapKernel(const DeviceLoops<2> __grid_constant__ loops, To *to, const From *from, Op op) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < loops.count; i += step) {
    int64_t offsets[2];
    loops.offsetsAt(i, offsets);
    to[offsets[0]] = op(from[offsets[1]]);
  }
}

template <typename To, typename From, typename Op>
MaybeError enqueueMap(CudaQueue &queue, const DeviceLoops<2> &loops, void *to, const void *from,
                      const Op &op) {
  return cuda::launch(queue, cuda::gridStride(queue, loops.count), mapKernel<To, From, Op>, loops,
                      static_cast<To *>(to), static_cast<const From *>(from), op);
}

} // namespace

MaybeError enqueueEncode(CudaQueue &queue, const DeviceLoops<2> &loops, Code code, DType dtype,
                         void *to, const void *from) {
  if (code == Code::Same)
    return cuda::enqueueStridedCopy(queue, loops, byteWidth(dtype), to, from);
  return cuda::withFloatType(dtype, [&](auto identity) {
    using F = typename decltype(identity)::type;
    using W = cuda::Wide<F>;
    if (code == Code::Widened)
      return enqueueMap<W, F>(queue, loops, to, from, Widen());
    return enqueueMap<Key<W>, F>(queue, loops, to, from, ToKey{code == Code::MaxKey});
  });
}

MaybeError enqueueDecode(CudaQueue &queue, const DeviceLoops<2> &loops, Code code, DType dtype,
                         void *to, const void *from) {
  if (code == Code::Same)
    return cuda::enqueueStridedCopy(queue, loops, byteWidth(dtype), to, from);
  return cuda::withFloatType(dtype, [&](auto identity) {
    using F = typename decltype(identity)::type;
    using W = cuda::Wide<F>;
    if (code == Code::Widened)
      return enqueueMap<F, W>(queue, loops, to, from, Narrow<F>());
    return enqueueMap<F, Key<W>>(queue, loops, to, from, FromKey<F>{code == Code::MaxKey});
  });
}

} // namespace dtc::runtime::nccl
