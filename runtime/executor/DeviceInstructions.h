//===- DeviceInstructions.h - Instructions of one device ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICEINSTRUCTIONS_H
#define DTC_RUNTIME_EXECUTOR_DEVICEINSTRUCTIONS_H

#include "runtime/backends/Kernel.h"
#include "runtime/executor/CommunicationMarks.h"
#include "runtime/executor/DeviceOptions.h"
#include "runtime/executor/DeviceProgress.h"
#include "runtime/executor/DeviceResources.h"
#include "runtime/executor/DeviceTransfers.h"
#include "runtime/executor/FlightRing.h"
#include "runtime/executor/HostLanes.h"
#include "runtime/executor/Injection.h"
#include "runtime/executor/PreparedProgram.h"
#include "runtime/executor/StepGraphs.h"
#include "runtime/executor/StepTimes.h"
#include "runtime/fabrics/Fabric.h"

#include <memory>
#include <optional>
#include <vector>

namespace dtc::runtime {

/// Enqueues the instructions of a device's program: it has the ends of the fabric, and the places
/// of operands. Kernels, collectives that are waited for at once and transfers are work of the
/// device's compute queue, async collectives of its lane.
class DeviceInstructions {
public:
  /// The arguments outlive it.
  DeviceInstructions(const PreparedPlan &plan, int64_t index, const DeviceResources &resources,
                     const DeviceOptions &options, const StepTimes &stepTimes);
  /// Opens all groups and transfers. Nothing else may be called before.
  MaybeError open(Fabric &fabric, const DeviceOptions &options);

  // The preparation, see DeviceExecutor.h. After begin() of a step 0.

  /// Prepares every kernel.
  MaybeError prepareKernels();
  /// Runs once, one after the other, each collective of a group of the plan that no graph holds, so
  /// that the network has set up everything for it.
  MaybeError rehearseCollectives(size_t group);
  /// Captures all graphs.
  MaybeError captureGraphs();

  /// The instructions that come are of this step, and their times go to its marks.
  void begin(uint64_t step, StepMarks &marksOfStep);
  /// They are of this batch of the step.
  void beginBatch(int64_t batch) {
    if (temporal)
      temporal->repetition = batch;
  }
  /// Enqueues the task of an entry of the schedule, for its microbatch.
  MaybeError runEntry(size_t index);
  /// Waits for all that is enqueued, also after an error.
  void drain();

  DeviceTransfers &getTransfers() { return *transfers; }
  const DeviceTransfers &getTransfers() const { return *transfers; }
  /// The place of the host in the program. begin() and finish() are for the one who runs a step.
  DeviceProgress &getProgress() { return progress; }
  const DeviceProgress &getProgress() const { return progress; }
  const FlightRing &getFlight() const { return flight; }
  /// The bytes that the device has sent.
  CommunicatorBytes sent() const;
  /// How many instructions of the program are in stretches, if there are graphs.
  size_t inGraphs() const { return graphs ? graphs->instructions() : 0; }
  /// Which communication the device has reached in an entry; `instruction`: that of the host.
  /// `repeats`: the loop runs again after the repetition that the entry is in.
  ReachedCommunication reachedIn(size_t entry, std::optional<size_t> instruction,
                                 bool repeats = false) const;

private:
  MaybeError openNetwork(Fabric &fabric, const DeviceOptions &options);
  MaybeError openGroups();
  bool canCapture(size_t group) const;
  MaybeError createEvents();
  MaybeError stageInjections();
  MaybeError createMarks(bool wanted);
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

  const PreparedPlan &plan;
  const PreparedProgram &program;
  int64_t deviceIndex;
  const DeviceResources &resources;
  const StepTimes &stepTimes;
  Queue *compute, *lane; // of `resources`; no lane: null
  std::byte *arena;
  int64_t batches;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<DeviceTransfers> transfers;
  std::vector<AxisCoordinate> axes;
  AxisCoordinate *temporal = nullptr;                      // in `axes`
  std::vector<Communicator::Group> groups, groupsInGraphs; // for each of the plan's
  std::vector<CollectiveOperands> operands;                // for each of the program's
  std::vector<void *> inputs, outputs;                     // scratch of runKernel()
  std::vector<PreparedInjection> injections;
  std::unique_ptr<DeviceMemory> injected; // the bytes of each injection

  std::unique_ptr<CommunicationMarks> marks; // null: the device makes none

  uint64_t stepNumber = 0; // of the step that is being enqueued
  StepMarks *stepMarks = nullptr;
  size_t currentEntry = 0; // of the schedule
  uint32_t microbatch = 0; // of the running task
  bool inPipeline = false; // the running task

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

#endif // DTC_RUNTIME_EXECUTOR_DEVICEINSTRUCTIONS_H
