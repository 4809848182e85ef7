//===- DeviceExecutor.h - One device's part of a step ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICEEXECUTOR_H
#define DTC_RUNTIME_EXECUTOR_DEVICEEXECUTOR_H

#include "runtime/backends/Device.h"
#include "runtime/backends/Kernel.h"
#include "runtime/executor/CommunicationStream.h"
#include "runtime/executor/DeviceProgress.h"
#include "runtime/executor/DeviceTrace.h"
#include "runtime/executor/DeviceTransfers.h"
#include "runtime/executor/Injection.h"
#include "runtime/executor/PreparedProgram.h"
#include "runtime/fabrics/Communicator.h"
#include "runtime/fabrics/Transfers.h"
#include "support/Memory.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace dtc::runtime {

/// The time that one instruction of the plan took on one device. A wait counts for its collective.
struct InstructionTime {
  uint64_t calls = 0;
  double seconds = 0; // on the thread that ran it
  /// Of a collective: how long the compute thread did nothing else.
  double exposedSeconds = 0;
};

/// The time of one end of a transfer, or of many.
struct TransferTime {
  uint64_t calls = 0;
  double seconds = 0;        // in which bytes moved
  double exposedSeconds = 0; // the part of it in which the compute thread waited for them
  /// All time that the compute thread waited, also for a message that was not on its way yet.
  double waitedSeconds = 0;

  TransferTime &operator+=(const TransferTime &other);
  /// The part of the time that kernels hid, from 0 to 1.
  double hiddenShare() const;
};

/// A device's part in the pipeline during one step: its tasks FORWARD, BACKWARD and WEIGHT.
struct PipelineSpan {
  using TimePoint = std::chrono::steady_clock::time_point;

  TimePoint begin, end;   // of the first and the last of them
  double busySeconds = 0; // in them, without the time waited for transfers
};

struct DeviceOptions {
  bool profile = false;
  size_t traceSteps = 0; // to record; 0: none
  int64_t batches = 1;   // of a step
  std::vector<PreparedInjection> injections = {};
};

/// The memory of a device for its programs. The entry points of a plan share it.
struct ProgramMemory {
  PageMemory arena;
  PageMemory workspace;

  static Expected<std::shared_ptr<const ProgramMemory>> allocate(size_t arenaBytes,
                                                                 size_t workspaceBytes);
};

/// A device: its memory, its place on the mesh and its ends of the network. Kernels run on the
/// thread that calls runSchedule(), async collectives on the device's communication stream.
/// The communicator passes from one to the other when the stream is idle.
class DeviceExecutor {
public:
  /// Opens all groups. The memory is enough for the device's program. Throws ThreadStartError.
  static Expected<std::unique_ptr<DeviceExecutor>>
  create(std::shared_ptr<const PreparedPlan> plan, int64_t index,
         std::shared_ptr<const ProgramMemory> memory, std::unique_ptr<Communicator> communicator,
         std::unique_ptr<Transfers> transfers, const DeviceOptions &options);

  /// Runs the schedule once, with its loop over microbatches once for each batch. Calls
  /// loadInputs(batch) before the first entry and before each further run of the loop. Fails only
  /// if a collective or a transfer does; others may then still be running.
  MaybeError runSchedule(const std::function<void(int64_t batch)> &loadInputs);
  /// Waits for the communication that a failed schedule has left. The network must have been
  /// aborted, and all devices must have drained before the memory of one is freed.
  void drain();

  /// Opens the queue of the kernels; on the thread that will run the schedule.
  MaybeError openQueue(const Backend &backend);

  int64_t index() const { return deviceIndex; }
  const PreparedProgram &getProgram() const { return program; }
  /// The memory of a buffer of the plan; of one with slots, the first.
  std::byte *buffer(uint32_t index) const;
  /// What this device has sent since it was made.
  CommunicatorBytes sent() const;
  /// The device at the other end of a transfer.
  int64_t transferPeer(size_t transfer) const { return transfers->peer(transfer); }

  DeviceProgress &getProgress() { return progress; }
  const DeviceProgress &getProgress() const { return progress; }
  /// One entry for each of the program's instructions; empty without profiling.
  const std::vector<InstructionTime> &times() const { return instructionTimes; }
  /// One entry for each of the program's transfers; empty without profiling.
  const std::vector<TransferTime> &transferTimes() const { return timesOfTransfers; }
  /// Null without tracing.
  const DeviceTrace *getTrace() const { return trace.get(); }
  /// Of the last run of the schedule; none if the device has no such task.
  const std::optional<PipelineSpan> &pipelineSpan() const { return span; }

private:
  using Clock = std::chrono::steady_clock;

  DeviceExecutor(std::shared_ptr<const PreparedPlan> plan, int64_t index,
                 std::shared_ptr<const ProgramMemory> memory,
                 std::unique_ptr<Communicator> communicator, const DeviceOptions &options);
  MaybeError runEntries(size_t begin, size_t end);
  MaybeError runEntry(const PreparedProgram::Entry &entry);
  MaybeError runInstruction(size_t index);
  MaybeError runKernel(size_t index, const PreparedKernel &call);
  void injectAfter(size_t index);
  void placeOperands(const PreparedCollective &collective);
  MaybeError startCollective(size_t index, const PreparedCollective &collective);
  MaybeError runCollective(size_t index);
  MaybeError waitFor(size_t index, CommunicationStream::Ticket ticket);
  MaybeError finishTransfer(size_t index, size_t transfer);

  bool measures() const { return trace || !instructionTimes.empty(); }
  /// The time now, if somebody wants to know.
  Clock::time_point startWatch() const { return measures() ? Clock::now() : Clock::time_point(); }
  void addTime(TraceRow row, size_t index, Clock::time_point begin);
  void addWait(size_t index, Clock::time_point begin);
  void addToTrace(TraceRow row, TraceEvent::Kind kind, size_t index, Clock::time_point begin,
                  Clock::time_point end);

  std::shared_ptr<const PreparedPlan> plan;
  const PreparedProgram &program;
  int64_t deviceIndex;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Device> device;
  std::unique_ptr<Queue> queue; // of the kernels; runs them at once
  int64_t batches;
  std::shared_ptr<const ProgramMemory> memory;
  std::byte *arena; // of `memory`
  std::unique_ptr<DeviceTransfers> transfers;
  std::vector<AxisPosition> position;
  AxisPosition *temporal = nullptr;         // in `position`
  std::vector<Communicator::Group> groups;  // for each of the plan's
  std::vector<CollectiveOperands> operands; // for each of the program's
  std::vector<void *> inputs, outputs;      // scratch of runKernel()
  std::vector<PreparedInjection> injections;

  uint64_t currentStep = 0; // from 1
  size_t currentEntry = 0;  // of the schedule
  uint32_t microbatch = 0;  // of the running task
  double taskWait = 0;      // seconds that the running task has waited for transfers
  DeviceProgress progress;
  std::vector<InstructionTime> instructionTimes;
  std::vector<TransferTime> timesOfTransfers;
  std::unique_ptr<DeviceTrace> trace;
  std::optional<PipelineSpan> span;

  /// What to wait for, for each async collective of the running task.
  std::vector<CommunicationStream::Ticket> tickets;
  std::unique_ptr<CommunicationStream> stream; // null if all is in order; last: it uses the others
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICEEXECUTOR_H
