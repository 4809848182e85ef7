//===- StepTimes.h - Measured times of a step -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_STEPTIMES_H
#define DTC_RUNTIME_EXECUTOR_STEPTIMES_H

#include "runtime/backends/Device.h"
#include "runtime/executor/DeviceTrace.h"
#include "runtime/executor/PreparedProgram.h"
#include "runtime/fabrics/Transfers.h"

#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace dtc::runtime {

/// The time that one instruction of the plan took on one device. A wait counts for the instruction
/// that it waits for.
struct InstructionTime {
  uint64_t calls = 0;
  double seconds = 0; // on the queue that ran it
  /// For an async instruction: how long the compute queue did nothing else.
  double exposedSeconds = 0;
};

/// The time of one end of a transfer, or of many.
struct TransferTime {
  uint64_t calls = 0;
  double seconds = 0;        // in which bytes moved
  double exposedSeconds = 0; // the part of it in which the compute queue waited for them
  /// All time that the compute queue waited, also for a message that was not on its way yet.
  double waitedSeconds = 0;

  /// The time of one transfer, whose bytes moved from `moved.begin` to `moved.end`, and for which
  /// the compute queue waited from `waitBegin` to `waitEnd`. Waiting for a message that nobody has
  /// sent yet is no cost of moving it.
  static TransferTime of(const TransferResult &moved, Event::TimePoint waitBegin,
                         Event::TimePoint waitEnd);
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

/// Moments of one step, as events of the device's queues, and what is between them. Once a step
/// has been measured, the next ones in its place allocate nothing.
class StepMarks {
public:
  enum class What : uint8_t {
    Kernel,
    HostCall,       // a copy to or from the memory of the host, or a kernel there
    Collective,     // at work
    CollectiveWait, // of the compute queue for one
    TransferWait,   // of the compute queue for one; index: of the instruction
    Task,           // a whole execution of a task
  };
  /// A moment of this step.
  using Mark = size_t;

  explicit StepMarks(Device &device) : device(device) {}

  /// Forgets the marks of the step that was here before.
  void begin();
  /// The moment when all that the queue holds is done.
  Expected<Mark> mark(Queue &queue);
  /// Adds the work between two marks. `instruction` is of the program; 0 for tasks.
  void add(What what, uint32_t entry, size_t instruction, Mark begin, Mark end,
           const TransferResult *result = nullptr) {
    spans.push_back({what, entry, static_cast<uint32_t>(instruction), begin, end, result});
  }
  /// Where a transfer of this step writes how it went.
  TransferResult &newResult();

private:
  friend class StepTimes;
  struct Span {
    What what;
    uint32_t entry, instruction;
    Mark begin, end;
    const TransferResult *result; // of a transfer
  };

  Device &device;
  std::vector<std::unique_ptr<Event>> events; // the first `used` are of this step
  size_t used = 0;
  std::vector<Span> spans;
  std::deque<TransferResult> results; // the first `usedResults` are of this step
  size_t usedResults = 0;
};

/// Adds up the times of a device's work over the steps. They are read when a step is over: the host
/// may be far ahead of the device.
class StepTimes {
public:
  StepTimes(const PreparedProgram &program, bool profile, size_t traceSteps, int64_t batches,
            bool waits);

  /// Whether somebody wants to know the times of kernels and collectives.
  bool measures() const { return trace || !instructionTimes.empty(); }
  /// Whether somebody wants to know how long the compute queue waits.
  bool measuresWaits() const { return waits || measures(); }
  /// Adds the times of a step whose work is all done.
  MaybeError collect(const StepMarks &marks);

  const std::vector<InstructionTime> &times() const { return instructionTimes; }
  const std::vector<TransferTime> &transferTimes() const { return timesOfTransfers; }
  const DeviceTrace *getTrace() const { return trace.get(); }
  /// How long the compute queue waited for collectives and transfers, in the last step.
  double waitedSeconds() const { return waited; }
  const std::optional<PipelineSpan> &pipelineSpan() const { return pipeline; }

private:
  using Span = StepMarks::Span;
  using TimePoint = Event::TimePoint;

  void collectTransfer(const Span &span, TimePoint begin, TimePoint end);
  void collectTask(const Span &span, TimePoint begin, TimePoint end);
  void addToTrace(TraceRow row, TraceEvent::Kind kind, const Span &span, TimePoint begin,
                  TimePoint end);

  const PreparedProgram &program;
  std::vector<InstructionTime> instructionTimes;
  std::vector<TransferTime> timesOfTransfers;
  std::unique_ptr<DeviceTrace> trace;
  std::optional<PipelineSpan> pipeline; // of the last step
  const bool waits;
  double waited = 0;   // in the last step
  double taskWait = 0; // for transfers, of the task whose spans are being collected
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_STEPTIMES_H
