//===- DevicePlaces.h - Current instructions of devices, as text ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICEPLACES_H
#define DTC_RUNTIME_EXECUTOR_DEVICEPLACES_H

#include "runtime/executor/DeviceExecutor.h"
#include "runtime/executor/RunWatch.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The device, and the work that it runs or waits for: "device 1 (dp=1) waits in all_reduce of
/// devices [0, 1], in task "forward" for microbatch 0, instruction 3, from model.mlir:7". Devices
/// beyond `stalledStep`, from 1, are ahead of others. From any thread.
std::string describeDevice(const PreparedPlan &plan, const DeviceExecutor &device,
                           uint64_t stalledStep = std::numeric_limits<uint64_t>::max());

/// The device and its coordinates: "device 1 (dp=1)".
std::string nameDevice(const PreparedPlan &plan, const DeviceExecutor &device);

/// A collective, or an end of a transfer, as the device has it: "all_reduce of devices [0, 1], in
/// task "forward", instruction 3, from model.mlir:7".
std::string describeInstruction(const PreparedPlan &plan, const DeviceExecutor &device,
                                size_t index);

/// The places of all devices of a session, and since when they are there.
class DevicePlaces {
public:
  /// The plan and the devices stay. `predict` may be null.
  DevicePlaces(const PreparedPlan &plan,
               const std::vector<std::unique_ptr<DeviceExecutor>> &devices, PredictTime predict);

  /// Describes the devices that are in a step, with the seconds for which they have not moved, as
  /// far as the calls have seen, and what their communication was predicted to take. By one thread
  /// at a time.
  std::string describe();
  /// The last and the next operations of all devices. From any thread.
  std::vector<DeviceFlight> flight() const;

private:
  using Clock = std::chrono::steady_clock;
  struct Seen {
    uint64_t advances = 0;
    Clock::time_point since;
  };
  std::optional<FlightOperation> operationAt(const DeviceExecutor &device, size_t entry,
                                             size_t index) const;
  DeviceFlight flightOf(const DeviceExecutor &device) const;
  std::string prediction(const DeviceExecutor &device) const;

  const PreparedPlan &plan;
  const std::vector<std::unique_ptr<DeviceExecutor>> &devices;
  const PredictTime predict;
  std::vector<Seen> seen; // by device
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICEPLACES_H
