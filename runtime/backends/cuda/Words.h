//===- Words.h - Rows as words of bytes, on a GPU -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_WORDS_H
#define DTC_RUNTIME_BACKENDS_CUDA_WORDS_H

#include "runtime/backends/cuda/Elements.h"
#include "support/Error.h"

#include <cstdint>
#include <type_traits>

namespace dtc::runtime::cuda {

/// Calls function(type) with the type of the widest words that can begin at these addresses and
/// that rows of `bytes` bytes consist of.
template <typename Function>
MaybeError withWords(int64_t bytes, const void *a, const void *b, const Function &function) {
  uint64_t all = static_cast<uint64_t>(bytes) | reinterpret_cast<uintptr_t>(a) |
                 reinterpret_cast<uintptr_t>(b);
  if (all % 16 == 0)
    return function(std::type_identity<Vector<uint32_t, 4>>());
  if (all % 4 == 0)
    return function(std::type_identity<uint32_t>());
  if (all % 2 == 0)
    return function(std::type_identity<uint16_t>());
  return function(std::type_identity<uint8_t>());
}

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_WORDS_H
