//===- SessionMeasurements.h - Times that a session has measured ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_SESSIONMEASUREMENTS_H
#define DTC_RUNTIME_EXECUTOR_SESSIONMEASUREMENTS_H

#include <cstdint>
#include <string>

namespace dtc::runtime {

/// The time that one kind of instruction took, summed over its calls and over the devices.
struct ProfileEntry {
  std::string name; // of the kernel or the collective; "send" and "receive"
  uint64_t calls = 0;
  /// The seconds of a collective include waiting for other devices; those of a transfer are the
  /// ones in which bytes moved.
  double seconds = 0;
  double flops = 0;
};

/// The time of collectives, summed over the devices. What is not exposed overlapped with kernels.
struct MeasuredCollectives {
  double seconds = 0;        // of all collectives, waiting for other devices included
  double exposedSeconds = 0; // in which a compute thread waited for one

  /// The part of the time that kernels hid, from 0 to 1.
  double hiddenShare() const;
};

/// How well the devices of a pipeline were used, summed over the steps.
struct PipelineTime {
  /// In the tasks FORWARD, BACKWARD and WEIGHT of all devices, less what they waited for transfers.
  double busySeconds = 0;
  /// From the first such task of any device to the end of the last one, times the devices.
  double deviceSeconds = 0;

  /// The part of the time in which devices had nothing to do for the pipeline, from 0 to 1.
  double bubbleShare() const {
    return deviceSeconds > busySeconds ? 1 - busySeconds / deviceSeconds : 0;
  }
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_SESSIONMEASUREMENTS_H
