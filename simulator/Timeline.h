//===- Timeline.h - Timeline of a simulated step --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The times of the devices of a pipeline in a step, from any source: the figures and tables of a
// schedule are made from them. All times are seconds from the start of the step.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_TIMELINE_H
#define DTC_SIMULATOR_TIMELINE_H

#include "plan/plan.pb.h"
#include "support/Kinds.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// A time span in which a device works on one execution of a task. An execution that waits in its
/// middle has several, one that takes no time has one without length.
struct TaskInterval {
  size_t execution = 0; // which entry of the program's schedule
  size_t task = 0;      // which task of the program; see Timeline::taskName()
  uint32_t microbatch = 0;
  std::optional<StagePass> pass; // none of a task that is outside the pipeline
  uint32_t stage = 0;            // of `pass`
  double start = 0;
  double end = 0;

  double seconds() const { return end - start; }
  /// Whether this is a microbatch's work at a stage.
  bool isPipelined() const { return pass.has_value(); }
};

/// A message from one device of the pipeline to another: on its way from `start` to `end`.
struct TransferInterval {
  uint32_t channel = 0;
  uint32_t microbatch = 0;
  size_t from = 0; // coordinates on the pipeline axis
  size_t to = 0;
  uint64_t bytes = 0;
  double start = 0; // sent, its receive posted, and the channel free
  double end = 0;   // all of it has arrived
};

struct TimeSpan {
  double start = 0;
  double end = 0;

  double seconds() const { return end - start; }
};

/// The most microbatches that a stage has under way at a moment: between the start of their FORWARD
/// task and the end of their last BACKWARD or WEIGHT task, or of the FORWARD task if that is all.
struct StageInFlight {
  uint32_t stage = 0;
  size_t program = 0; // the stage's coordinate on the pipeline axis
  size_t microbatches = 0;
};

/// A step of one device at each coordinate on the pipeline axis.
struct Timeline {
  std::string axis;         // the name of the pipeline axis; empty if the plan has none
  std::string model;        // for people; may be empty
  std::string schedule;     // the schedule's name; empty if the plan does not say
  uint32_t stages = 0;      // of the model
  int64_t microbatches = 1; // of a step
  std::vector<std::vector<TaskInterval>> programs; // by coordinate; each in the order of time
  std::vector<std::vector<std::string>> taskNames; // by coordinate and task
  std::vector<TransferInterval> transfers;         // by channel, then in the order they were sent

  const std::string &taskName(size_t program, const TaskInterval &interval) const {
    return taskNames[program][interval.task];
  }

  /// Everything.
  TimeSpan step() const;
  /// From the first start to the last end of FORWARD, BACKWARD and WEIGHT tasks; of no length if
  /// there is none.
  TimeSpan pipelined() const;
  /// Seconds that a program's device works between two times.
  double busySeconds(size_t program, const TimeSpan &within) const;
  /// The share of the pipelined part that devices do not work in, 0 to 1: 1 - (the sum of their
  /// busy seconds) / (programs * its length).
  double bubbleShare() const;
  /// The stages that a program works on, rising: its chunks.
  std::vector<uint32_t> stagesOf(size_t program) const;
  /// The most chunks of a device.
  size_t chunks() const;
  /// By stage.
  std::vector<StageInFlight> inFlight() const;
  /// The time span of a figure: all of the step, or the pipelined part alone where that is less
  /// than half of it and would be too small to read.
  TimeSpan shown() const;
  /// Whether that has a length that can be drawn. It has none where a plan says nothing of times.
  bool isDrawable() const;
};

/// "1f1b: 4 stages on 4 devices (pp), 8 microbatches".
std::string describeTimeline(const Timeline &timeline);

/// "forward", "backward", "weight", "other".
const char *name(std::optional<StagePass> pass);
/// The kinds of tasks, in the order of legends.
inline constexpr std::array<std::optional<StagePass>, 4> kTaskPasses = {
    StagePass::Forward, StagePass::Backward, StagePass::Weight, std::nullopt};

} // namespace dtc

#endif // DTC_SIMULATOR_TIMELINE_H
