//===- ValueReaders.h - Who reads the values of a program -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_VALUEREADERS_H
#define DTC_RUNTIME_EXECUTOR_VALUEREADERS_H

#include "plan/plan.pb.h"

#include <cstdint>
#include <vector>

namespace dtc::runtime {

/// Counts the places of a program that read each buffer, views included: operands of instructions,
/// transfers, and bindings.
class ValueReaders {
public:
  explicit ValueReaders(const plan::Program &program);

  /// Whether one kernel call, whose operand `buffer` is, is all that reads it.
  bool isReadOnce(uint32_t buffer) const;
  /// Whether two buffers have a byte in common, in any of their slots.
  bool overlap(uint32_t a, uint32_t b) const;

private:
  const plan::Program &program;
  std::vector<size_t> counts; // by buffer; of one with views, those of all of them
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_VALUEREADERS_H
