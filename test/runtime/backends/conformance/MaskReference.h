//===- MaskReference.h - Reference implementation of random masks ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RUNTIME_BACKENDS_CONFORMANCE_MASKREFERENCE_H
#define DTC_TEST_RUNTIME_BACKENDS_CONFORMANCE_MASKREFERENCE_H

#include "support/Philox.h"

#include <cmath>
#include <cstdint>

namespace dtc::runtime::test {

/// Whether an element of the whole tensor is kept, as docs/kernels.md says it.
inline bool maskKeeps(double rate, uint32_t seed, uint32_t op, uint32_t iteration,
                      uint64_t element) {
  uint64_t block = element / 4;
  PhiloxCounter counter = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                           iteration, 0};
  return philox4x32(counter, {seed, op})[element % 4] >=
         static_cast<uint64_t>(std::llround(rate * 0x1p32));
}

} // namespace dtc::runtime::test

#endif // DTC_TEST_RUNTIME_BACKENDS_CONFORMANCE_MASKREFERENCE_H
