//===- Device.h - Memory, queues and events of a device -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The executor knows a device by these interfaces alone. It enqueues kernels and copies on queues
// and orders the queues by events; where the device allows it, the host is far ahead of the device
// and waits for nothing within a step.
//
// A queue runs its work in order. Two queues of a device have no order but the one that events
// give: after queue A has recorded an event and queue B waits for it, later work of B begins after
// all earlier work of A. A queue may run its work at once, in the thread that
// enqueues it (the compute queue of a CPU does); a queue that waits then blocks that thread.
//
// Errors: a function that enqueues returns an error if the device cannot take the work. An error of
// the work itself, which a device may find later, fails the queue: the work that it holds is
// dropped or has no meaning, and every later call that concerns the queue or an event of it
// (enqueue, record, wait, finish) returns the first error of the queue. A failed queue stays
// failed.
//
// Waits of the device: to load the code of a kernel, to make a handle of a library, to allocate or
// free memory, to make or destroy a graph may wait for all that a device does. While one of its
// queues waits for another device, as in a collective, that may be for ever. So all of it is done
// before the first collective of a run (Queue::prepare), or when the device is at rest.
//
// All functions of a device may be called from any thread. Those of one queue or one event are for
// one thread at a time, except where they say something else. A queue outlives the events that were
// recorded on it last.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_DEVICE_H
#define DTC_RUNTIME_BACKENDS_DEVICE_H

#include "support/Error.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace dtc::runtime {

class Kernel;
struct KernelArguments;

/// A range of bytes that a device owns. Unless isZeroed(), its bytes have no meaning before they
/// are written.
class DeviceMemory {
public:
  virtual ~DeviceMemory() = default;
  /// The first byte, aligned to Device::alignment(). An address of the device: the host may follow
  /// it only where Device::isHostMemory(), and in staging memory.
  virtual std::byte *data() const = 0;
  virtual size_t bytes() const = 0;
  /// Whether the bytes were zero when the memory was allocated.
  virtual bool isZeroed() const { return false; }
};

/// A moment in the work of a queue: when all that the queue held at record() is done. It may be
/// recorded again, which forgets the moment before; who waits for that one still waits for it.
class Event {
public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~Event() = default;
  /// Whether the moment has come; true before the first record(). Does not wait, and may be called
  /// while another thread records the event: it then speaks of the moment before or of the new one.
  virtual Expected<bool> isDone() const = 0;
  /// Blocks the calling thread until the moment has come.
  virtual MaybeError wait() const = 0;
  /// When the moment came, by the host's clock as well as the device can tell; for an event that
  /// was created with `timed`, recorded, and is done.
  virtual Expected<TimePoint> time() const = 0;
};

/// The purpose of a queue. A device may give each kind a priority or threads of its own.
enum class QueueKind { Compute, Communication, Copy };

/// Work of the host that is in order with other work of a queue.
class HostWork {
public:
  virtual ~HostWork() = default;
  virtual MaybeError run() = 0;
  /// Whether run() may wait for work of other queues.
  virtual bool mayWait() const { return false; }
};

/// Work of queues that was captured, to be enqueued as a whole any number of times.
class Graph {
public:
  virtual ~Graph() = default;
};

class Queue {
public:
  virtual ~Queue() = default;

  /// Enqueues a prepared kernel of this device's backend. The pointers in the arguments are those
  /// of device memory; the spans are not used after the call.
  virtual MaybeError enqueue(const Kernel &kernel, const KernelArguments &arguments) = 0;
  /// Does what the first such call of enqueue() would do beside its work and might wait for the
  /// device: loads code, makes handles, chooses algorithms. It may overwrite the outputs and the
  /// workspace. The queue holds nothing, and does so again after finish().
  virtual MaybeError prepare(const Kernel &kernel, const KernelArguments &arguments) {
    return std::nullopt;
  }
  /// Enqueues a copy of bytes between memory of this device, its staging memory, or both. The two
  /// ranges do not overlap.
  virtual MaybeError copy(std::byte *to, const std::byte *from, size_t bytes) = 0;
  /// Enqueues the setting of every byte to zero.
  virtual MaybeError clear(std::byte *at, size_t bytes) = 0;
  /// Enqueues a function of the host, which lives until it has run. It may not use the device.
  virtual MaybeError call(HostWork &work) = 0;

  virtual MaybeError record(Event &event) = 0;
  /// Work that is enqueued from now on begins after the event, as it was recorded last; before the
  /// first record() this does nothing.
  virtual MaybeError wait(const Event &event) = 0;
  /// Blocks the calling thread until all that was enqueued is done.
  virtual MaybeError finish() = 0;

  /// Where Device::capturesGraphs(), after prepare() of each kernel: work that the queue gets from
  /// now on is not run but becomes a graph, together with the work that other queues get after they
  /// have waited for an event of the capture. Until endCapture(), which the same thread calls,
  /// there are no calls of the host, no waits for events of before, and no allocations; in the end
  /// the queue has to wait for the others. An event that was recorded in a capture has to be
  /// recorded again before it can be used outside.
  virtual MaybeError beginCapture() { return Error{"the device has no graphs"}; }
  /// Also after an error, which it may return again.
  virtual Expected<std::unique_ptr<Graph>> endCapture() {
    return Error{"the device has no graphs"};
  }
  /// Enqueues all work of a graph, which the device's queues have made and which outlives it.
  virtual MaybeError enqueue(const Graph &graph) { return Error{"the device has no graphs"}; }
};

/// One device, or the part of one that a device of the mesh has (several virtual devices may share
/// a machine's cores or one GPU).
class Device {
public:
  virtual ~Device() = default;

  /// For people: "cpu", "NVIDIA H200 (cuda 0)".
  virtual std::string describe() const = 0;
  /// The same of all devices of its kind: "NVIDIA H200".
  virtual std::string model() const { return describe(); }
  /// Whether the host can follow the addresses of the device's memory.
  virtual bool isHostMemory() const = 0;
  /// The alignment of memory and of every buffer in it, in bytes: a power of two, at least 64.
  virtual size_t alignment() const = 0;
  struct FreeMemory {
    uint64_t bytes = 0; // that can still be allocated
    /// Who limits them, for messages: "the machine", "the container", "cuda 0".
    std::string limitedBy;
    /// Whose memory it is, the same in all processes that have a part of it; empty: the host's.
    std::string owner = {};
    /// The part of these bytes that each process has to leave to what is in no plan, such as
    /// libraries.
    uint64_t reserved = 0;
    /// All bytes of the device, free or not; 0: not known.
    uint64_t capacity = 0;
  };
  virtual Expected<FreeMemory> freeMemory() const = 0;

  /// An error names the bytes that were asked for and those that are free. 0 bytes are no error.
  virtual Expected<std::unique_ptr<DeviceMemory>> allocate(size_t bytes) = 0;
  /// Memory of the host from and to which copy() is asynchronous and fast.
  virtual Expected<std::unique_ptr<DeviceMemory>> allocateStaging(size_t bytes) = 0;

  /// A compute queue is opened by the thread that will use it: where kernels run in that thread,
  /// it gets the threads that they use beside it.
  virtual Expected<std::unique_ptr<Queue>> openQueue(QueueKind kind) = 0;
  /// `timed`: time() will be asked for.
  virtual Expected<std::unique_ptr<Event>> createEvent(bool timed) = 0;
  /// Whether queues can capture what they get.
  virtual bool capturesGraphs() const { return false; }
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_BACKENDS_DEVICE_H
