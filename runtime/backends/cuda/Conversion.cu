//===- Conversion.cu - Conversions between element types ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/ElementwiseCalls.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/MultiTensor.h"

namespace dtc::runtime::cuda {

namespace {

template <typename T>
inline constexpr bool kHasHalfWidth = std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, __half>;

/// The float next to `value` on the side of zero, with its last bit set if it is not `value`
/// itself, so that rounding again gives what rounding once would (support/Float16.h).
__device__ __forceinline__ float roundToOdd(double value) {
  float nearest = static_cast<float>(value);
  double back = nearest;
  uint32_t bits = __float_as_uint(nearest);
  if (back == value || value != value || (bits & 1) != 0)
    return nearest;
  return __uint_as_float(fabs(back) < fabs(value) ? bits + 1 : bits - 1);
}

/// `value` is of a type that is computed with.
template <typename To, typename From> __device__ __forceinline__ To convertWide(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, BoolByte>) {
    return BoolByte{static_cast<uint8_t>(value != From(0))};
  } else if constexpr (std::is_same_v<To, int32_t>) {
    // Values that no integer holds become the nearest one, NaN becomes 0.
    double wide = value;
    wide = wide < -2147483648.0 ? -2147483648.0 : wide;
    wide = wide > 2147483647.0 ? 2147483647.0 : wide;
    return wide == wide ? static_cast<int32_t>(wide) : 0;
  } else if constexpr (kHasHalfWidth<To> && std::is_same_v<From, float>) {
    return narrow<To>(value);
  } else if constexpr (kHasHalfWidth<To>) {
    return narrow<To>(roundToOdd(static_cast<double>(value)));
  } else {
    return static_cast<To>(value);
  }
}

template <typename To, typename From> __device__ __forceinline__ To convertElement(From value) {
  if constexpr (std::is_same_v<From, To>)
    return value;
  else if constexpr (std::is_same_v<From, BoolByte>)
    return convertWide<To>(static_cast<int32_t>(value.byte != 0));
  else
    return convertWide<To>(widen(value));
}

template <typename To, typename From, int Capacity>
__global__ void __launch_bounds__(256)
    convertKernel(const GroupTable<2, Capacity> __grid_constant__ table) {
  constexpr int V = static_cast<int>(16 / (sizeof(To) > sizeof(From) ? sizeof(To) : sizeof(From)));
  forEachChunk(table, [](const auto &group, int64_t begin, int64_t end) {
    const From *in = static_cast<const From *>(group.arrays[0]);
    To *out = static_cast<To *>(group.arrays[1]);
    bool isVector = isAligned(in, V * sizeof(From)) && isAligned(out, V * sizeof(To));
    int64_t vectorEnd = isVector ? begin + (end - begin) / V * V : begin;
    for (int64_t i = begin + threadIdx.x * V; i < vectorEnd; i += blockDim.x * V) {
      Vector<From, V> from = loadVector<V>(in + i);
      Vector<To, V> to;
#pragma unroll
      for (int j = 0; j < V; ++j)
        to.at[j] = convertElement<To>(from.at[j]);
      storeVector(out + i, to);
    }
    for (int64_t i = vectorEnd + threadIdx.x; i < end; i += blockDim.x)
      out[i] = convertElement<To>(in[i]);
  });
}

template <typename To, typename From>
MaybeError launchConvert(CudaQueue &queue, const void *, std::span<const TensorGroup> groups) {
  return launchGroups(queue, groups, convertKernel<To, From, 8>,
                      convertKernel<To, From, HeldLaunches::kMaxGroups>);
}

template <typename To, typename From> std::unique_ptr<CudaKernel> makeConvert(int64_t count) {
  return makeMultiTensorKernel([=](const KernelArguments &args) {
    HeldCall held;
    held.launch = launchConvert<To, From>;
    held.tensors = {{args.inputs[0], args.outputs[0]}, count};
    held.reads = {{args.inputs[0], static_cast<size_t>(count) * sizeof(From)}};
    held.writes = {{args.outputs[0], static_cast<size_t>(count) * sizeof(To)}};
    return held;
  });
}

/// Calls function(type) with the std::type_identity of the element type that `dtype` names.
template <typename Function> auto withType(DType dtype, const Function &function) {
  if (dtype == DType::I32)
    return function(std::type_identity<int32_t>());
  if (dtype == DType::Bool)
    return function(std::type_identity<BoolByte>());
  return withFloatType(dtype, function);
}

PrepareResult prepareConvert(const KernelSignature &signature) {
  Expected<ConvertCall> call = checkConvert(signature);
  if (!call)
    return call.error();
  return withType(call->from, [&](auto from) {
    return withType(call->to, [&](auto to) {
      return makeConvert<typename decltype(to)::type, typename decltype(from)::type>(call->count);
    });
  });
}

} // namespace

std::span<const KernelEntry> conversionKernels() {
  static constexpr KernelEntry entries[] = {{"convert", prepareConvert}};
  return entries;
}

} // namespace dtc::runtime::cuda
