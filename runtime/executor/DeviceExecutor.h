//===- DeviceExecutor.h - One device's part of a step ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICEEXECUTOR_H
#define DTC_RUNTIME_EXECUTOR_DEVICEEXECUTOR_H

#include "runtime/backends/Kernel.h"
#include "runtime/executor/CommunicationMarks.h"
#include "runtime/executor/Deadline.h"
#include "runtime/executor/DeviceProgress.h"
#include "runtime/executor/DeviceResources.h"
#include "runtime/executor/DeviceStep.h"
#include "runtime/executor/DeviceTransfers.h"
#include "runtime/executor/FlightRing.h"
#include "runtime/executor/HostLanes.h"
#include "runtime/executor/Injection.h"
#include "runtime/executor/PreparedProgram.h"
#include "runtime/executor/StepGraphs.h"
#include "runtime/executor/StepTimes.h"
#include "runtime/fabrics/Fabric.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace dtc::runtime {

struct DeviceOptions {
  bool profile = false;
  size_t traceSteps = 0;    // to record; 0: none
  int64_t batches = 1;      // of a step
  size_t stepsInFlight = 1; // the most, at least 1
  std::vector<PreparedInjection> injections = {};
  bool measureWaits = false;
  double delay = 0;    // seconds, at the beginning of each step
  int64_t lane = 0;    // of the fabric, for collectives
  bool graphs = false; // the device gets stretches of instructions as graphs
  /// Whether a device whose host is ahead marks how far it has come (CommunicationMarks.h).
  bool marks = false;
  double copyTimeout = 0; // seconds; 0: none. See limitCopy()
  std::function<void(const Error &)> onHang = nullptr;
};

/// A device's part of a plan: its place on the mesh, its ends of the fabric, and the work that it
/// enqueues in a step. Kernels, collectives that are waited for at once and transfers are work of
/// the device's compute queue, async collectives of its lane. The host waits for a device only at
/// the end of a step, and may have enqueued the next one before. Where the device's memory is the
/// host's, inputs are written to the arena, and a step is over when it has been enqueued.
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

  /// Prepares every kernel.
  MaybeError prepareKernels();
  /// Runs once, one after the other, each collective of a group of the plan that no graph holds, so
  /// that the network has set up everything for it. One group comes after the other.
  MaybeError rehearseCollectives(size_t group);
  /// Captures all graphs.
  MaybeError captureGraphs();

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
  void drain();

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
  CommunicatorBytes sent() const;
  /// The device at the other end of a transfer.
  int64_t transferPeer(size_t transfer) const { return transfers->peer(transfer); }

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
  bool hasFinished() const { return progress.hasFinished(); }

  /// The entries of a step, with those of each batch, and the whole steps that the device has done
  /// if it is in none.
  const std::vector<size_t> &entriesOfStep() const { return layout.entries; }
  uint64_t stepsDone() const { return begun - (begun > 0 && !hasFinished()); }

  /// For copies between the device's memory and the host's outside of steps, which no detector
  /// watches: until it is destroyed, DeviceOptions::onHang is called after the time with an error
  /// that names the copy of the buffer. Null for memory of the host. Throws ThreadStartError.
  std::unique_ptr<Deadline> limitCopy(uint32_t buffer) const;

  const FlightRing &getFlight() const { return flight; }

  /// How many instructions of the program are in stretches, if there are graphs.
  size_t instructionsInGraphs() const { return graphs ? graphs->instructions() : 0; }
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
  MaybeError openNetwork(Fabric &fabric, const DeviceOptions &options);
  MaybeError openGroups();
  bool canCapture(size_t group) const;
  MaybeError createSteps(size_t count);
  MaybeError createEvents();
  MaybeError stageInjections();
  MaybeError clearZero();
  MaybeError createMarks(bool wanted);
  ReachedCommunication reachedIn(size_t entry, std::optional<size_t> instruction) const;
  MaybeError enqueueSchedule(const std::function<MaybeError(int64_t batch)> &loadInputs);
  MaybeError await(DeviceStep &step);
  MaybeError runEntries(size_t begin, size_t end);
  MaybeError runEntry(const PreparedProgram::ScheduleEntry &entry);
  MaybeError runTask(size_t begin, size_t end);
  MaybeError runStretch(const Stretch &stretch);
  MaybeError capture(StepGraphs::Run &run);
  MaybeError repeatCollectives(const Stretch &stretch);
  MaybeError runInstructions(size_t begin, size_t end);
  MaybeError runInstruction(size_t index);
  /// Whether an instruction runs for the present microbatch, in this repetition of the loop.
  bool runsNow(size_t index) const;
  MaybeError communicate(size_t index);
  MaybeError runKernel(size_t index, const PreparedKernel &call);
  MaybeError injectAfter(size_t index);
  void placeOperands(const PreparedCollective &collective);
  MaybeError startCollective(size_t index, const PreparedCollective &collective);
  MaybeError startHostCall(size_t index, const PreparedHostCall &call);
  MaybeError beginOnLane(Queue &queue, const std::vector<size_t> &after);
  MaybeError runCollective(size_t index, const PreparedCollective &collective);
  MaybeError enqueueCollective(Queue &queue, size_t index);
  Communicator::Group groupOf(size_t index) const;
  void placeKernel(const PreparedKernel &call);
  KernelArguments arguments() const { return {inputs, outputs, axes, resources.workspace()}; }
  MaybeError finishTransfer(size_t index, size_t transfer);
  template <typename Work>
  MaybeError measure(bool wanted, Queue &queue, StepMarks::What what, size_t index,
                     const Work &work, const TransferResult *result = nullptr);
  DeviceStep &step(uint64_t number) const { return *steps[number % steps.size()]; }
  DeviceStep &oldest() const { return step(oldestStep()); }
  DeviceStep &newest() const { return step(begun); }

  std::shared_ptr<const PreparedPlan> plan;
  const PreparedProgram &program;
  int64_t deviceIndex;
  const DeviceResources &resources;
  Queue *compute, *lane; // of `resources`; no lane: null
  std::byte *arena;
  int64_t batches;
  double delay; // seconds
  double copyTimeout;
  std::function<void(const Error &)> onHang; // null: nobody is told
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<DeviceTransfers> transfers;
  std::vector<AxisCoordinate> axes;
  AxisCoordinate *temporal = nullptr;                      // in `axes`
  std::vector<Communicator::Group> groups, groupsInGraphs; // for each of the plan's
  std::vector<CollectiveOperands> operands;                // for each of the program's
  std::vector<void *> inputs, outputs;                     // scratch of runKernel()
  std::vector<PreparedInjection> injections;
  std::unique_ptr<DeviceMemory> injected; // the bytes of each injection
  std::unique_ptr<DeviceMemory> zero;     // a byte on the device

  std::unique_ptr<CommunicationMarks> marks; // null: the device makes none

  StepLayout layout;
  std::vector<std::unique_ptr<DeviceStep>> steps; // step n is steps[n % size]
  std::atomic<uint64_t> begun = 0, ended = 0;     // steps; between them, those in flight
  std::vector<std::byte> resultsOfLast;           // of the last step that has ended well
  Event::TimePoint endOfLast;

  size_t currentEntry = 0; // of the schedule
  uint32_t microbatch = 0; // of the running task
  bool inPipeline = false; // the running task
  StepTimes stepTimes;

  DeviceProgress progress; // of the host
  FlightRing flight;       // of the host

  std::unique_ptr<Event> computeDone;            // before a collective of the lane
  std::vector<std::unique_ptr<Event>> asyncDone; // for each async collective of the running task
  const Event *lastOnLane = nullptr;             // of the step that is being enqueued
  std::unique_ptr<Event> hostDone;               // after a call of the host that is not async
  std::unique_ptr<HostLanes> hostLanes;          // null: the program does not use the host
  std::unique_ptr<StepGraphs> graphs;            // null: all is enqueued one by one
  /// Collectives of the lane are branches of them. A GPU that devices share may not begin a branch
  /// of one graph before another graph has ended.
  bool branchesGraphs = true;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICEEXECUTOR_H
