//===- DeviceExecutor.h - One device's part of a step ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICEEXECUTOR_H
#define DTC_RUNTIME_EXECUTOR_DEVICEEXECUTOR_H

#include "runtime/backends/Kernel.h"
#include "runtime/executor/Deadline.h"
#include "runtime/executor/DeviceInstructions.h"
#include "runtime/executor/DeviceOptions.h"
#include "runtime/executor/DeviceResources.h"
#include "runtime/executor/DeviceStep.h"
#include "runtime/executor/PreparedProgram.h"
#include "runtime/executor/StepTimes.h"
#include "runtime/fabrics/Fabric.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace dtc::runtime {

/// A device's part of a plan: its place on the mesh, and the steps that it enqueues. The host waits
/// for a device only at the end of a step, and may have enqueued the next one before. Where the
/// device's memory is the host's, inputs are written to the arena, and a step is over when it has
/// been enqueued.
///
/// Steps begin and end in their order: beginStep(), enqueueStep(), awaitStep(), endStep().
class DeviceExecutor {
public:
  /// Opens all groups. The resources, which outlive it, have their queues, and enough memory for
  /// the device's program. Throws ThreadStartError.
  static Expected<std::unique_ptr<DeviceExecutor>>
  create(std::shared_ptr<const PreparedPlan> plan, int64_t index, const DeviceResources &resources,
         Fabric &fabric, const DeviceOptions &options);

  // The preparation: all that may wait for the device (Device.h), in three parts. Each is for the
  // device's thread, after Fabric::connect(), before the states have values, and begins when all
  // devices of the mesh have ended the part before. A device that is the host's needs none.

  MaybeError prepareKernels() { return instructions.prepareKernels(); }
  /// One group comes after the other.
  MaybeError rehearseCollectives(size_t group) { return instructions.rehearseCollectives(group); }
  MaybeError captureGraphs() { return instructions.captureGraphs(); }

  /// Begins another step, while fewer than DeviceOptions::stepsInFlight are in flight. On the
  /// thread that watches, while nothing else uses this.
  void beginStep();
  /// Enqueues the step that was begun last: the schedule once, with its loop over microbatches once
  /// for each batch. Calls loadInputs(batch) before the first entry and before each further run of
  /// the loop. After an error, which may be of a step before, others may still be running.
  MaybeError enqueueStep(const std::function<MaybeError(int64_t batch)> &loadInputs);
  /// Waits for the end of the oldest step in flight and takes its times.
  MaybeError awaitStep() { return await(oldest()); }
  /// Whether the oldest step in flight has come to its end, as the queue knows it.
  Expected<bool> stepIsDone() const { return oldest().isDone(); }
  /// Whether awaitStep() has nothing left to do.
  bool stepIsOver() const { return oldest().isOver; }
  /// Whether the device has come to the end of the oldest step in flight, also where it has failed
  /// since. After awaitStep(), or drain().
  bool stepHasEnded() const { return oldest().hasEnded(); }
  /// Keeps the results of the oldest step in flight, and its end, where it has one. On the thread
  /// of beginStep().
  void endStep();
  size_t stepsInFlight() const { return static_cast<size_t>(begun - ended); }
  /// The number of the oldest step in flight, from 1.
  uint64_t oldestStep() const { return ended + 1; }

  /// The bytes of a scalar output, or of a scalar of the step state, after the last step that
  /// endStep() has seen come to its end; null for other buffers, and before.
  const std::byte *lastResult(uint32_t buffer) const;
  /// When that step came to its end, by the device.
  Event::TimePoint lastEnd() const { return endOfLast; }

  /// Waits for the work that failed steps have left. The fabric must have been aborted, and all
  /// devices must have drained before the memory of one is freed.
  void drain() { instructions.drain(); }

  int64_t index() const { return deviceIndex; }
  const PreparedProgram &getProgram() const { return program; }
  const DeviceResources &getResources() const { return resources; }
  /// The address of a buffer of the plan; of one with slots, the first.
  std::byte *buffer(uint32_t index) const;
  /// Whether the host can follow the address.
  bool isInHostMemory(uint32_t index) const;
  /// Where the host writes an input of the program for a batch, and what makes the device's
  /// compute queue take it from there. To be called by loadInputs() for the batch.
  std::byte *inputPlace(size_t input, int64_t batch) const;
  MaybeError enqueueInput(size_t input, int64_t batch);

  /// The bytes that this device has sent since it was made.
  CommunicatorBytes sent() const { return instructions.sent(); }
  /// The device at the other end of a transfer.
  int64_t transferPeer(size_t transfer) const { return instructions.getTransfers().peer(transfer); }

  /// Grows whenever the device, or the host for it, has done more. This and what follows up to
  /// hasFinished() is for any thread, while others enqueue and wait.
  uint64_t advances() const;
  /// The current place of the device in its program.
  struct Position {
    uint64_t step = 0; // from 1
    size_t entry = 0;  // of the schedule
    /// The instruction of the program; none if the host is ahead of the device, which is somewhere
    /// in the entry.
    std::optional<size_t> instruction;
    size_t entriesBefore = 0; // of the step
    /// In the entry; nothing where that is not known.
    ReachedCommunication reached = {};
  };
  /// None where it is in no step.
  std::optional<Position> position() const;
  /// Whether a device that is in no step has come to the end of the last one, instead of not having
  /// begun it.
  bool hasFinished() const { return instructions.getProgress().hasFinished(); }

  /// The entries of a step, with those of each batch, and the whole steps that the device has done
  /// if it is in none.
  const std::vector<size_t> &entriesOfStep() const { return layout.entries; }
  uint64_t stepsDone() const { return begun - (begun > 0 && !hasFinished()); }

  /// For copies between the device's memory and the host's outside of steps, which no detector
  /// watches: until it is destroyed, DeviceOptions::onHang is called after the time with an error
  /// that names the copy of the buffer. Null for memory of the host. Throws ThreadStartError.
  std::unique_ptr<Deadline> limitCopy(uint32_t buffer) const;

  const FlightRing &getFlight() const { return instructions.getFlight(); }

  /// How many instructions of the program are in stretches, if there are graphs.
  size_t instructionsInGraphs() const { return instructions.inGraphs(); }
  /// See Session::waitedSeconds().
  double waitedSeconds() const { return stepTimes.waitedSeconds(); }
  /// One entry for each of the program's instructions; empty without profiling.
  const std::vector<InstructionTime> &times() const { return stepTimes.times(); }
  /// One entry for each of the program's transfers; empty without profiling.
  const std::vector<TransferTime> &transferTimes() const { return stepTimes.transferTimes(); }
  /// Null without tracing.
  const DeviceTrace *getTrace() const { return stepTimes.getTrace(); }
  /// The span of the pipeline in the last run of the schedule; none if the device has no such task.
  const std::optional<PipelineSpan> &pipelineSpan() const { return stepTimes.pipelineSpan(); }

private:
  DeviceExecutor(std::shared_ptr<const PreparedPlan> plan, int64_t index,
                 const DeviceResources &resources, const DeviceOptions &options);
  MaybeError createSteps(size_t count);
  MaybeError clearZero();
  MaybeError enqueueSchedule(const std::function<MaybeError(int64_t batch)> &loadInputs);
  MaybeError await(DeviceStep &step);
  MaybeError runEntries(size_t begin, size_t end);
  DeviceStep &step(uint64_t number) const { return *steps[number % steps.size()]; }
  DeviceStep &oldest() const { return step(oldestStep()); }
  DeviceStep &newest() const { return step(begun); }

  std::shared_ptr<const PreparedPlan> plan;
  const PreparedProgram &program;
  int64_t deviceIndex;
  const DeviceResources &resources;
  Queue *compute; // of `resources`
  int64_t batches;
  double delay; // seconds
  double copyTimeout;
  std::function<void(const Error &)> onHang; // null: nobody is told
  StepTimes stepTimes;
  DeviceInstructions instructions;
  std::unique_ptr<DeviceMemory> zero; // a byte on the device

  StepLayout layout;
  std::vector<std::unique_ptr<DeviceStep>> steps; // step n is steps[n % size]
  std::atomic<uint64_t> begun = 0, ended = 0;     // steps; between them, those in flight
  std::vector<std::byte> resultsOfLast;           // of the last step that has ended well
  Event::TimePoint endOfLast;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICEEXECUTOR_H
