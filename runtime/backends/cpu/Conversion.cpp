//===- Conversion.cpp - Conversions between element types -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/ElementwiseCalls.h"
#include "runtime/backends/cpu/ElementwiseKernel.h"

#include <limits>
#include <type_traits>

namespace dtc::runtime::cpu {

namespace {

/// Stands for bool, whose byte may hold any value in a buffer that nobody has written.
struct BoolByte {
  uint8_t byte;
};

template <typename To, typename From> To convertElement(From value) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (!std::is_same_v<From, Wide<From>>) {
    return convertElement<To>(static_cast<Wide<From>>(value));
  } else if constexpr (std::is_same_v<From, BoolByte>) {
    return convertElement<To>(static_cast<int32_t>(value.byte != 0));
  } else if constexpr (std::is_same_v<To, BoolByte>) {
    return BoolByte{static_cast<uint8_t>(value != From(0))};
  } else if constexpr (std::is_same_v<To, int32_t> && std::is_floating_point_v<From>) {
    // Values that no integer holds become the nearest one, NaN becomes 0.
    constexpr double low = std::numeric_limits<int32_t>::min();
    constexpr double high = std::numeric_limits<int32_t>::max();
    double wide = value;
    wide = wide < low ? low : wide;
    wide = wide > high ? high : wide;
    return wide == wide ? static_cast<int32_t>(wide) : 0;
  } else {
    return static_cast<To>(value);
  }
}

template <typename To, typename From> std::unique_ptr<CpuKernel> makeConvert(int64_t count) {
  auto range = [](const CpuArguments &args, int64_t begin, int64_t end) {
    const From *x = input<From>(args, 0);
    To *y = output<To>(args, 0);
    simd([=] {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i)
        y[i] = convertElement<To>(x[i]);
    });
  };
  return makeElementwise(count, kElementGrain, range);
}

/// Calls function(T()) with the element type that `dtype` names.
template <typename Function> auto withType(DType dtype, const Function &function) {
  if (dtype == DType::I32)
    return function(int32_t());
  if (dtype == DType::Bool)
    return function(BoolByte());
  return withFloatType(dtype, function);
}

PrepareResult prepareConvert(const KernelSignature &signature) {
  Expected<ConvertCall> call = checkConvert(signature);
  if (!call)
    return call.error();
  return withType(call->from, [&](auto from) {
    return withType(
        call->to, [&](auto to) { return makeConvert<decltype(to), decltype(from)>(call->count); });
  });
}

} // namespace

std::span<const KernelEntry> conversionKernels() {
  static constexpr KernelEntry entries[] = {{"convert", prepareConvert}};
  return entries;
}

} // namespace dtc::runtime::cpu
