//===- OperandMemory.h - Memory for operands, used again ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_OPERANDMEMORY_H
#define DTC_RUNTIME_CALIBRATE_OPERANDMEMORY_H

#include "support/Memory.h"

#include <vector>

namespace dtc::runtime {

/// Memory that is taken from its front to its end, and again from its front after reset(): pages
/// that were touched once need not be mapped again, which can take longer than what is measured.
class OperandMemory {
public:
  /// At least `bytes` bytes, aligned to 64 bytes. They hold anything, until reset().
  Expected<std::byte *> take(size_t bytes);
  /// Gives all back that was taken.
  void reset();

private:
  std::vector<PageMemory> chunks; // taken from the last one
  size_t used = 0;                // of the last one
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_OPERANDMEMORY_H
