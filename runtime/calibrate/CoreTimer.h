//===- CoreTimer.h - Times of calls on all cores --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_CORETIMER_H
#define DTC_RUNTIME_CALIBRATE_CORETIMER_H

#include "runtime/calibrate/BusyCores.h"
#include "runtime/calibrate/Calibration.h"
#include "runtime/calibrate/CallTimer.h"

#include <memory>
#include <vector>

namespace dtc::runtime {

/// Every core runs the calls at the same time, with operands of its own.
class CoreTimer final : public CallTimer {
public:
  /// The options and the speed outlive it.
  CoreTimer(const CalibrationOptions &options, std::shared_ptr<const Backend> backend,
            CoreSpeed &speed);

  Expected<double> secondsOf(const std::vector<KernelSignature> &calls,
                             KernelRunOptions run) override;
  size_t mostOperandBytes() const override;
  /// Groups of as many cores as a device has threads.
  size_t numGroups() const { return cores.size(); }

private:
  const CalibrationOptions &options;
  std::shared_ptr<const Backend> backend;
  BusyCores cores;
  std::vector<std::shared_ptr<OperandMemory>> memory; // of each thread of `cores`
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_CORETIMER_H
