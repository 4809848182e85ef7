//===- DeviceTrace.h - Recorded times of a device -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICETRACE_H
#define DTC_RUNTIME_EXECUTOR_DEVICETRACE_H

#include "runtime/executor/PreparedProgram.h"

#include <array>
#include <chrono>
#include <vector>

namespace dtc::runtime {

/// The kinds of work that overlap with each other on a device.
enum class TraceRow : size_t { Compute, Collectives, Transfers, ToHost, Host, ToDevice };
inline constexpr size_t kNumTraceRows = 6;

/// Of a lane of the host.
inline TraceRow rowOf(Lane lane) {
  return lane == Lane::ToHost ? TraceRow::ToHost
         : lane == Lane::Host ? TraceRow::Host
                              : TraceRow::ToDevice;
}

struct TraceEvent {
  using TimePoint = std::chrono::steady_clock::time_point;
  enum Kind : uint8_t {
    Task,   // a whole execution of a task
    Work,   // a kernel, or a collective or a transfer at work
    Waiting // the compute thread waits for a collective or a transfer
  };

  Kind kind = Work;
  uint32_t entry = 0;       // of the schedule
  uint32_t instruction = 0; // of the program; of a task, 0
  TimePoint begin, end;
};

/// The events of a device's last steps. All memory is taken before the first step. The row of
/// collectives is for the thread that runs them, the others are for the compute thread.
class DeviceTrace {
public:
  /// The events of one step, by TraceRow. Those of a row are in the order in which they ended.
  using Step = std::array<std::vector<TraceEvent>, kNumTraceRows>;

  DeviceTrace(const PreparedProgram &program, size_t steps, int64_t batches);
  /// The memory that the events of a device take, at most the largest number.
  static uint64_t bytesFor(const PreparedProgram &program, size_t steps, int64_t batches);

  /// Begins a new step; the oldest one may be forgotten.
  void beginStep();
  void add(TraceRow row, const TraceEvent &event) {
    (*current)[static_cast<size_t>(row)].push_back(event);
  }
  /// The steps that are remembered, the oldest first.
  std::vector<const Step *> steps() const;

private:
  std::vector<Step> ring; // step s is ring[s % size]
  Step *current = nullptr;
  size_t begun = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICETRACE_H
