//===- Injection.h - Injection of non-finite numbers ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_INJECTION_H
#define DTC_RUNTIME_EXECUTOR_INJECTION_H

#include "runtime/executor/PreparedProgram.h"
#include "support/Error.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace dtc::runtime {

/// Overwrites one element that a kernel has made, to see how a run copes with an overflow. Of a
/// device's kernels that come from one part of the model and have an output of floats, one is
/// chosen; the element is one of the first such output. A kernel that only updates the state of a
/// parameter is named for the parameter, and not for the op that it belongs to.
struct Injection {
  std::string op;     ///< the kernel's location, or how it begins: "h.1.mlp", "h.1"
  std::string kernel; ///< its name, "einsum"; empty: any
  /// Which of those, in the order of the plan: 1 is the first, -1 the last. Backward passes come
  /// after forward passes.
  int64_t match = 1;
  int64_t step = 1; ///< in which of the session's steps, from 1; skipped ones count
  int64_t device = 0;
  int64_t microbatch = 0;
  int64_t element = 0; ///< of the device's shard, row-major
  double value = std::numeric_limits<double>::infinity();
};

/// A device that is slow: it does nothing for so long at the beginning of each step.
struct InjectedDelay {
  int64_t device = 0;
  double seconds = 0;
};

/// Reads "device=2,seconds=0.05", in any order.
Expected<InjectedDelay> parseDelay(const std::string &text);

/// Reads "op=h.1.mlp,step=3,device=5", in any order; `op`, `step` and `device` must be there,
/// `kernel`, `match`, `microbatch`, `element` and `value` (inf, -inf or nan) may be.
Expected<Injection> parseInjection(const std::string &text);

/// An injection whose place in a device's program is found.
struct PreparedInjection {
  size_t instruction = 0;
  uint64_t step = 1;
  uint32_t microbatch = 0;
  ArenaRange range;        // of the output
  uint64_t byteOffset = 0; // in it
  size_t width = 0;        // of the element
  std::array<std::byte, 8> bytes = {};
};

/// Finds the place. The error names the devices, kernels, microbatches or elements that the plan
/// has instead.
Expected<PreparedInjection> prepareInjection(const PreparedPlan &plan, const Injection &injection);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_INJECTION_H
