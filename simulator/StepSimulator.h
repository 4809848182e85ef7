//===- StepSimulator.h - The simulation of a step -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_STEPSIMULATOR_H
#define DTC_SIMULATOR_STEPSIMULATOR_H

#include "simulator/StepWork.h"
#include "support/Error.h"

#include <vector>

namespace dtc {

/// A collective at work, or a wait for one.
struct CollectiveInterval {
  size_t execution = 0;     // which entry of the program's schedule
  uint32_t instruction = 0; // of its task
  uint32_t axes = 0;        // index into StepWork::axes
  double start = 0, end = 0;
};

/// The time of a device by use. The parts add up to the step.
struct StepBreakdown {
  double computing = 0;
  /// Waiting while collectives are at work, by index into StepWork::axes. The collective at work
  /// may come before the one that is waited for.
  std::vector<double> exposed;
  double exposedTransfers = 0; // waiting for messages that are on their way
  double exposedHost = 0;      // waiting while the host, or a copy to or from it, is at work
  double idle = 0;             // waiting for others to send or to come, and for the step's end
};

struct StepSimulation {
  double seconds = 0;                 // of the step
  std::vector<StepBreakdown> devices; // by coordinate on the pipeline axis
  Timeline timeline;
  /// By coordinate; the lists are empty unless asked for.
  std::vector<std::vector<CollectiveInterval>> collectives;
};

/// Runs a step: every device takes its instructions in order, collectives and the calls of the
/// host overlap with them on lanes, one after the other, messages when both ends have started them
/// and those before them on the channel have arrived. Collectives and messages that use the same
/// ports of a device at the same time share them, and devices that share cores, or a host, share
/// those. An interval of the timeline is a time in which a device computes or waits for the work of
/// a lane.
///
/// An error if devices would wait for each other for ever, or if the ends of a channel do not fit:
/// they are of different microbatches, or a transfer is started twice or finished before it is
/// started.
Expected<StepSimulation> simulateStep(const StepWork &work, bool keepCollectives = false);

} // namespace dtc

#endif // DTC_SIMULATOR_STEPSIMULATOR_H
