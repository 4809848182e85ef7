//===- RunWatch.h - Observation of the devices of a run -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_RUNWATCH_H
#define DTC_RUNTIME_EXECUTOR_RUNWATCH_H

#include "support/Collective.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dtc::runtime {

/// An instruction of a device that communicates.
struct FlightOperation {
  using TimePoint = std::chrono::steady_clock::time_point;

  std::string operation;        // "all_reduce", "send", "receive"
  bool isWait = false;          // for one that was started before
  std::vector<int64_t> devices; // of the group; of a transfer, the one at the other end
  uint64_t bytes = 0;           // that the device gives: its inputs, or those of the message
  std::string task;
  uint32_t microbatch = 0;
  size_t instruction = 0; // of the task
  std::string location;   // the place in the model; empty if it has none
  uint64_t step = 0;      // of the session, from 1
  /// None: it has not begun; it has not ended.
  std::optional<TimePoint> begin, end;
  /// The kind of a collective; none: a transfer.
  std::optional<CollectiveKind> kind = {};
  std::vector<std::string> axes = {}; // along which the devices lie
  /// The seconds that it was predicted to take alone, if something predicts them.
  std::optional<double> predictedSeconds = {};
};

/// The seconds that an operation is predicted to take.
using PredictTime = std::function<double(const FlightOperation &)>;

/// The last operations of a device, and its next ones.
struct DeviceFlight {
  int64_t device = 0;
  std::string place;                       // "device 1 (dp=1) waits in ..."
  std::vector<FlightOperation> last, next; // in their order; next begins with the current one
};

/// Lets threads that watch a run from outside ask for the current work of the devices of its
/// sessions. Thread-safe.
class RunWatch {
public:
  struct Watched {
    std::function<std::string()> describe;
    std::function<std::vector<DeviceFlight>()> flight;
  };

  void add(const void *session, Watched watched);
  /// Its functions do not run any more when this returns.
  void remove(const void *session);

  /// Empty if no device is in a step. Call it about once a second: from that it knows since when
  /// a device has not moved.
  std::string describe() const;
  /// The flights of all devices that have communicated. A device is there for each entry point that
  /// has run.
  std::vector<DeviceFlight> flight() const;

private:
  mutable std::mutex mutex;
  std::map<const void *, Watched> sessions;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_RUNWATCH_H
