//===- CollectiveLanes.h - The collectives of a simulated step ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_COLLECTIVELANES_H
#define DTC_SIMULATOR_COLLECTIVELANES_H

#include "simulator/StepProgress.h"

#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace dtc {

/// Each device runs its collectives on a lane, one after the other, beside what it computes. One
/// over the pipeline axis begins when all devices have come to it.
class CollectiveLanes {
public:
  /// With `keepIntervals` the result has the interval of each collective.
  CollectiveLanes(StepProgress &progress, bool keepIntervals)
      : progress(progress), keepIntervals(keepIntervals), lanes(progress.devices.size()) {}

  /// Whether a device gets past a collective, or past the wait for one, now. If not, it waits.
  bool passCollective(size_t p, const SimulatedOperation &step);
  bool passWait(size_t p, const SimulatedOperation &step);

  /// The collective that a device runs is over. Whether the device goes on, which waited for it.
  bool finish(size_t p);

  /// The device begins another execution of a task.
  void forgetStarted(size_t p) { lanes[p].started.clear(); }

private:
  /// A collective that a device has come to.
  struct Operation {
    SimulatedOperation step;
    size_t execution = 0;
    uint64_t arrival = 0; // of one over the pipeline axis: its number
    double start = 0;
    bool isDone = false;
  };

  struct Lane {
    std::deque<Operation> operations;     // those that have ended are forgotten from the front
    uint64_t first = 0;                   // number of operations.front()
    uint64_t running = 0;                 // number of the next or of the running operation
    bool isRunning = false;               // or waits for the others to come to it
    bool isMoving = false;                // runs
    std::map<uint32_t, uint64_t> started; // async ones of this execution, by instruction
    uint64_t arrivals = 0;
    std::optional<uint64_t> waitsFor; // the operation that the device waits for
  };

  /// Whether the operation that the device waits for is over.
  bool leave(size_t p);
  /// Counts how long a device has waited for its lane up to now, before the lane changes: the
  /// device waits for the operation at work, also if that is one before its own. Waiting for others
  /// to come to an operation is idle.
  void countWaiting(size_t p);
  /// Where it waits for others to come to an operation.
  void pauseIfIdle(size_t p);
  Operation &runningOperation(size_t p);
  /// Starts the next operation of a device's lane, if there is one and all members have come.
  void runNext(size_t p);
  void start(size_t p);

  StepProgress &progress;
  bool keepIntervals;
  std::vector<Lane> lanes;                          // by device
  std::map<uint64_t, std::vector<size_t>> arrivals; // members that have come
};

} // namespace dtc

#endif // DTC_SIMULATOR_COLLECTIVELANES_H
