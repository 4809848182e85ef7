//===- DataMovement.h - Kernels that move elements ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_DATAMOVEMENT_H
#define DTC_RUNTIME_BACKENDS_CPU_DATAMOVEMENT_H

#include "runtime/backends/cpu/KernelSupport.h"
#include "runtime/backends/cpu/StridedCopy.h"

#include <bit>
#include <cstdint>

namespace dtc::runtime::cpu {

/// The bits of `value` as an element; integers and bools hold it, floats round it.
inline uint64_t bitsOf(double value, DType dtype) {
  switch (dtype) {
  case DType::F32:
    return std::bit_cast<uint32_t>(static_cast<float>(value));
  case DType::F64:
    return std::bit_cast<uint64_t>(value);
  case DType::I32:
    return std::bit_cast<uint32_t>(static_cast<int32_t>(value));
  case DType::Bool:
    return value != 0;
  case DType::BF16:
    return BFloat16(value).bits;
  case DType::F16:
    return Float16(value).bits;
  }
  return 0;
}

/// Calls function(T()) with an unsigned integer T as wide as an element.
template <typename Function> auto withElementBits(DType dtype, const Function &function) {
  switch (byteWidth(dtype)) {
  case 1:
    return function(uint8_t());
  case 2:
    return function(uint16_t());
  case 8:
    return function(uint64_t());
  default:
    return function(uint32_t());
  }
}

/// A kernel that copies input 0, from element `fromOffset` on, to output 0.
std::unique_ptr<CpuKernel> makeStridedCopy(DType dtype, StridedCopy copy, int64_t toOffset = 0,
                                           int64_t fromOffset = 0);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_DATAMOVEMENT_H
