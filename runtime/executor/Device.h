//===- Device.h - One device's part of a step -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICE_H
#define DTC_RUNTIME_EXECUTOR_DEVICE_H

#include "runtime/backends/Kernel.h"
#include "runtime/communicators/Communicator.h"
#include "runtime/executor/CommunicationStream.h"
#include "runtime/executor/PreparedProgram.h"
#include "runtime/support/Memory.h"

#include <memory>
#include <vector>

namespace dtc::runtime {

/// The time that one instruction of the plan took on one device. A wait counts for its collective.
struct InstructionTime {
  uint64_t calls = 0;
  double seconds = 0; // on the thread that ran it
  /// Of a collective: how long the compute thread did nothing else.
  double exposedSeconds = 0;
};

/// A device: its memory, its place on the mesh and its end of the network. Kernels run on the
/// thread that calls runSchedule(), async collectives on the device's communication stream. The end
/// of the network passes from one to the other when the stream is idle.
class Device {
public:
  /// Allocates the arena and the workspace, and opens all groups.
  static Expected<std::unique_ptr<Device>> create(std::shared_ptr<const PreparedProgram> program,
                                                  int64_t index,
                                                  std::unique_ptr<Communicator> communicator,
                                                  int threads, bool profile);

  /// Runs the schedule once. Fails only if a collective does; others may then still be running.
  MaybeError runSchedule();
  /// Waits for the collectives that a failed schedule has left. The network must have been aborted,
  /// and all devices must have drained before the memory of one is freed.
  void drain();

  int64_t index() const { return deviceIndex; }
  /// The memory of a buffer of the plan.
  std::byte *buffer(uint32_t index) const;
  const Communicator &getCommunicator() const { return *communicator; }
  /// One entry for each of the program's instructions; empty without profiling.
  const std::vector<InstructionTime> &times() const { return instructionTimes; }

private:
  Device(std::shared_ptr<const PreparedProgram> program, int64_t index,
         std::unique_ptr<Communicator> communicator, int threads);
  MaybeError runInstruction(size_t index);
  void runKernel(const PreparedKernel &call);
  MaybeError startCollective(size_t index, const PreparedCollective &collective);
  MaybeError runCollective(size_t index);
  MaybeError waitFor(size_t index);

  std::shared_ptr<const PreparedProgram> program;
  int64_t deviceIndex;
  std::unique_ptr<Communicator> communicator;
  int threads;
  PageMemory arena;
  PageMemory workspace;
  std::vector<AxisPosition> position;
  AxisPosition *temporal = nullptr;         // in `position`
  std::vector<Communicator::Group> groups;  // for each of the program's
  std::vector<CollectiveOperands> operands; // for each of the program's
  std::vector<InstructionTime> instructionTimes;
  std::vector<void *> inputs, outputs; // scratch of runKernel()
  /// What to wait for, for each async collective of the running task.
  std::vector<CommunicationStream::Ticket> tickets;
  std::unique_ptr<CommunicationStream> stream; // null if all is in order; last: it uses the others
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICE_H
