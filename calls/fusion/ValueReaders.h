//===- ValueReaders.h - Readers of the values of a program ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_FUSION_VALUEREADERS_H
#define DTC_CALLS_FUSION_VALUEREADERS_H

#include "plan/plan.pb.h"

#include <cstdint>
#include <vector>

namespace dtc {

/// Counts the places of a program that read each value, through views too: operands of
/// instructions, transfers, and bindings.
class ValueReaders {
public:
  explicit ValueReaders(const plan::Program &program);

  /// A value's buffer: the buffer itself, or the one that it is a view of.
  uint32_t valueOf(uint32_t buffer) const;
  size_t count(uint32_t buffer) const { return counts[valueOf(buffer)]; }

private:
  const plan::Program &program;
  std::vector<size_t> counts; // by buffer
};

} // namespace dtc

#endif // DTC_CALLS_FUSION_VALUEREADERS_H
