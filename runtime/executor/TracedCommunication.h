//===- TracedCommunication.h - Hidden communication of a trace ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_TRACEDCOMMUNICATION_H
#define DTC_RUNTIME_EXECUTOR_TRACEDCOMMUNICATION_H

#include "runtime/executor/Session.h"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The time of one kind of communication, summed over devices, in seconds.
struct CommunicationTime {
  std::string name; // of the collective; "send" and "receive"
  uint64_t calls = 0;
  double seconds = 0;       // from begin to end
  double movingSeconds = 0; // the part of it after the last device had begun
  /// The part of the moving time in which the device's compute queue waited for communication.
  double exposedSeconds = 0;

  /// The part of the moving time that is not exposed, from 0 to 1.
  double hiddenShare() const { return movingSeconds > 0 ? 1 - exposedSeconds / movingSeconds : 0; }
};

/// What one device recorded of its communication.
struct CommunicationSpans {
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Call {
    std::string name;
    /// The same for the parts of all devices in one collective; empty: it moves from its begin.
    std::string match;
    TimePoint begin, end;
  };
  struct Wait {
    TimePoint begin, end;
  };

  std::vector<Call> calls;
  std::vector<Wait> waits; // of the compute queue, which do not overlap, in their order
};

/// Sums what devices recorded, by name: the longest time first. A collective moves nothing before
/// the last of `devices` that take part has begun it: until then it waits for one that is late.
std::vector<CommunicationTime> sumCommunication(std::span<const CommunicationSpans> devices);

/// The communication in the steps that the session traced, on the devices of this process. Devices
/// of other processes are not seen: waiting for them counts as moving.
std::vector<CommunicationTime> tracedCommunication(const Session &session);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_TRACEDCOMMUNICATION_H
