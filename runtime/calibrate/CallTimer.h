//===- CallTimer.h - Times of calls on some kind of device ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_CALLTIMER_H
#define DTC_RUNTIME_CALIBRATE_CALLTIMER_H

#include "runtime/backends/Kernel.h"
#include "runtime/calibrate/KernelRun.h"

#include <vector>

namespace dtc::runtime {

/// Runs calls of kernels as plans do, and takes their times.
class CallTimer {
public:
  virtual ~CallTimer() = default;

  /// The mean seconds of one call of these kernels, which take turns and share the working set,
  /// without the launches. `run` says neither where nor with how many threads.
  virtual Expected<double> secondsOf(const std::vector<KernelSignature> &calls,
                                     KernelRunOptions run) = 0;
  /// Calls with larger operands are not measured.
  virtual size_t mostOperandBytes() const = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_CALLTIMER_H
