//===- FusedCalls.h - Kernel calls that one kernel may compute ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_FUSION_FUSEDCALLS_H
#define DTC_CALLS_FUSION_FUSEDCALLS_H

#include "calls/KernelSignature.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace dtc {

/// Kernel calls of a plan that a device may compute by one kernel. Each could be computed by
/// itself. Values are numbered in the order in which the calls, operand by operand, name them
/// first. Its inputs are the values that were there before, its outputs are all values that the
/// calls make, both in the order of the numbers. It need not write a value that is not kept, but
/// may use its memory as the calls would.
struct FusedCalls {
  struct Call {
    KernelSignature signature;
    std::vector<size_t> inputs, outputs; // numbers of values
  };
  struct Value {
    std::optional<size_t> maker; // the call that makes it; none: it was there before
    bool isKept = false;         // whether other calls read it
  };
  /// A value that was there before, and one that is made, with bytes in common.
  struct Overlap {
    size_t before = 0, made = 0;
    bool isSame = false; // all bytes of both
    auto operator<=>(const Overlap &) const = default;
  };

  std::vector<Call> calls; // in the order of the plan
  std::vector<Value> values;
  std::vector<Overlap> overlaps;

  /// By value: which of the kernel's inputs, or of its outputs, it is.
  std::vector<size_t> operandIndices() const {
    std::vector<size_t> indices;
    size_t counts[2] = {};
    for (const Value &value : values)
      indices.push_back(counts[value.maker.has_value()]++);
    return indices;
  }
};

/// The bytes that one kernel for the calls reads and writes. It reads each earlier value once, or
/// only the parts that slices read; it writes each made value that other calls read or that nothing
/// reads.
int64_t bytesOf(const FusedCalls &calls);

} // namespace dtc

#endif // DTC_CALLS_FUSION_FUSEDCALLS_H
