//===- DeviceLanes.h - The lanes of the devices in a simulated step -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_DEVICELANES_H
#define DTC_SIMULATOR_DEVICELANES_H

#include "simulator/StepProgress.h"

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace dtc {

/// Beside its compute queue, each device has a lane for its collectives and three for its host
/// (support/Kinds.h). The operations of a lane run one after the other; each begins when the
/// operations that it comes after have ended.
class DeviceLanes {
public:
  /// With `keepIntervals` the result has the interval of each collective.
  DeviceLanes(StepProgress &progress, bool keepIntervals)
      : progress(progress), keepIntervals(keepIntervals), devices(progress.devices.size()) {}

  /// Whether a device gets past an operation, or past the wait for one, now. If not, it waits.
  bool passOperation(size_t p, const SimulatedOperation &step);
  bool passWait(size_t p, const SimulatedOperation &step);

  /// The operation that a device's lane runs is over. Whether the device goes on, which waited.
  bool finish(size_t p, Lane lane);

  /// The device begins another execution of a task.
  void forgetStarted(size_t p) { devices[p].started.clear(); }

private:
  /// An operation of a device, by its lane and its number there.
  struct Place {
    Lane lane = Lane::Communication;
    uint64_t number = 0;
  };

  /// An operation that a device has come to.
  struct Operation {
    SimulatedOperation step;
    std::vector<Place> after;
    size_t execution = 0;
    double start = 0;
  };

  struct LaneState {
    std::deque<Operation> operations; // those that have ended are forgotten
    uint64_t first = 0;               // number of operations.front()
    bool isRunning = false;           // the first runs
  };

  struct DeviceState {
    std::array<LaneState, kNumLanes> lanes;
    std::map<uint32_t, Place> started; // async ones of this execution, by instruction
    std::optional<Place> waitsFor;

    LaneState &lane(Lane lane) { return lanes[static_cast<size_t>(lane)]; }
    bool isDone(const Place &place) { return place.number < lane(place.lane).first; }
  };

  /// Whether the operation that the device waits for is over.
  bool leave(size_t p);
  /// The operation at work that a device waits for: that of the lane of the awaited one, or of
  /// what that lane waits for. Null between the end of one operation and the start of the next.
  const SimulatedOperation *atWork(size_t p);
  /// Counts how long a device has waited for its lanes up to now, before they change.
  void countWaiting(size_t p);
  /// Starts what can start on the lanes of a device.
  void runNext(size_t p);
  void runNext(size_t p, Lane lane);

  StepProgress &progress;
  bool keepIntervals;
  std::vector<DeviceState> devices;
};

} // namespace dtc

#endif // DTC_SIMULATOR_DEVICELANES_H
