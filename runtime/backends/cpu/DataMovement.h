//===- DataMovement.h - Kernels that move elements ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_DATAMOVEMENT_H
#define DTC_RUNTIME_BACKENDS_CPU_DATAMOVEMENT_H

#include "runtime/backends/cpu/KernelSupport.h"

#include <cstdint>

namespace dtc::runtime::cpu {

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

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_DATAMOVEMENT_H
