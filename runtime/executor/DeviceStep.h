//===- DeviceStep.h - A step of a device that may be in flight ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A step is in flight from the first work that is enqueued for it until the host has taken in its
// results. While one is, the host may enqueue the next: this has the parts that the two must not
// share. All else (the arena, the events within a task) is in the order of the device's queues.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICESTEP_H
#define DTC_RUNTIME_EXECUTOR_DEVICESTEP_H

#include "runtime/backends/Device.h"
#include "runtime/executor/PreparedProgram.h"
#include "runtime/executor/StepTimes.h"

#include <atomic>
#include <memory>
#include <vector>

namespace dtc::runtime {

/// The properties that all steps of a device share.
struct StepLayout {
  /// A scalar that the host gets from every step.
  struct Result {
    uint32_t buffer = 0; // of the program
    size_t bytes = 0;
    size_t offset = 0; // in the results of a step
  };

  /// The entries of the schedule that a step runs, in their order.
  std::vector<size_t> entries;
  /// Where the inputs of a batch are in its staging memory, and the end of it. Empty where the host
  /// writes them to the arena.
  std::vector<size_t> inputOffsets;
  int64_t batches = 1;
  /// The scalars among the outputs and the step state.
  std::vector<Result> results;
  size_t resultBytes = 0;

  StepLayout(const PreparedProgram &program, const Device &device, int64_t batches);
  const Result *findResult(uint32_t buffer) const;
};

/// The functions without another remark are for the thread that enqueues.
class DeviceStep {
public:
  /// `layout` stays.
  static Expected<std::unique_ptr<DeviceStep>> create(const StepLayout &layout, Device &device);

  /// Forgets the step that had this place before, which is over. No other thread may use it then.
  void begin();

  /// Where the host writes an input for a batch; null where that is in the arena.
  std::byte *inputPlace(size_t input, int64_t batch) const;
  /// After all work of the next entry.
  MaybeError recordEntry(Queue &queue);
  /// After all work of the step: copies its results out of the arena. `zero` is a byte of the
  /// device's memory that is 0.
  MaybeError recordEnd(Queue &queue, const std::byte *arena, const PreparedProgram &program,
                       const std::byte *zero);

  /// Waits until the device has come to the end.
  MaybeError wait() const { return end->wait(); }
  /// For any thread. An error is one of the queue.
  Expected<bool> isDone() const { return end->isDone(); }
  /// Whether the device has come to the end, also where it has failed since. Once wait() has
  /// returned, or the queues have been drained.
  bool hasEnded() const;
  /// When it came there. After wait().
  Expected<Event::TimePoint> endTime() const { return end->time(); }
  /// The results that recordEnd() has copied. After wait(), or where hasEnded().
  const std::byte *results() const { return resultMemory->data() + kResultsBegin; }

  /// For any thread: entries that the device has been given, and has come to the end
  /// of.
  size_t entriesEnqueued() const { return enqueued.load(std::memory_order_acquire); }
  size_t entriesDone() const;

  StepMarks marks;
  /// Whether the host has waited for the step and taken its times.
  bool isOver = false;

private:
  /// Where the results begin in their memory. Before them is the byte that becomes 0 at the end.
  static constexpr size_t kResultsBegin = 16;

  DeviceStep(const StepLayout &layout, Device &device) : marks(device), layout(layout) {}

  const StepLayout &layout;
  std::unique_ptr<DeviceMemory> inputMemory; // for all inputs of each batch; null: the arena
  std::unique_ptr<DeviceMemory> resultMemory;
  std::vector<std::unique_ptr<Event>> entryEnds; // by position in StepLayout::entries
  std::unique_ptr<Event> end;
  std::atomic<size_t> enqueued = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICESTEP_H
