//===- DeferredDevice.cpp - Host work that waits for other devices --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/shared/DeferredDevice.h"

#include "runtime/backends/Kernel.h"
#include "runtime/backends/shared/QueueFailure.h"
#include "support/StartThread.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace dtc::runtime {

namespace {

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

/// The state that an event shares with the queues that hold back a record of it or a wait for it.
class Moments {
public:
  explicit Moments(std::unique_ptr<Event> event) : event(std::move(event)) {}

  /// The queue with that failure has been asked to record the event; gives the number of this
  /// record.
  uint64_t ask(std::shared_ptr<QueueFailure> queue) {
    std::lock_guard lock(mutex);
    recorder = std::move(queue);
    return ++asked;
  }
  /// The device has record `number`, or never gets it, since the queue failed.
  void give(uint64_t number) {
    {
      std::lock_guard lock(mutex);
      given = number;
    }
    changed.notify_all();
  }
  uint64_t lastAsked() const {
    std::lock_guard lock(mutex);
    return asked;
  }
  bool isGiven(uint64_t number) const {
    std::lock_guard lock(mutex);
    return given >= number;
  }
  void waitUntilGiven(uint64_t number) const {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return given >= number; });
  }
  /// The failure of the queue that was asked last.
  MaybeError failure() const {
    std::shared_ptr<QueueFailure> queue;
    {
      std::lock_guard lock(mutex);
      queue = recorder;
    }
    return queue ? queue->get() : std::nullopt;
  }

  const std::unique_ptr<Event> event; // the device's

private:
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::shared_ptr<QueueFailure> recorder;
  uint64_t asked = 0, given = 0;
};

class DeferredEvent final : public Event {
public:
  explicit DeferredEvent(std::unique_ptr<Event> event)
      : moments(std::make_shared<Moments>(std::move(event))) {}

  Expected<bool> isDone() const override {
    if (MaybeError error = moments->failure())
      return *error;
    return moments->isGiven(moments->lastAsked()) ? moments->event->isDone() : false;
  }
  MaybeError wait() const override {
    moments->waitUntilGiven(moments->lastAsked());
    MaybeError error = moments->event->wait();
    MaybeError failure = moments->failure();
    return failure ? failure : error;
  }
  Expected<TimePoint> time() const override { return moments->event->time(); }

  const std::shared_ptr<Moments> moments;
};

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

class DeferredQueue final : public Queue {
public:
  explicit DeferredQueue(std::unique_ptr<Queue> queue) : queue(std::move(queue)) {}
  /// Waits for the operations that are held back; the caller must have made them end.
  ~DeferredQueue() override;

  MaybeError enqueue(const Kernel &kernel, const KernelArguments &arguments) override;
  // A queue that prepares holds nothing back.
  MaybeError prepare(const Kernel &kernel, const KernelArguments &arguments) override {
    MaybeError error = failure->get();
    return error ? error : keep(queue->prepare(kernel, arguments));
  }
  MaybeError copy(std::byte *to, const std::byte *from, size_t bytes) override {
    return submit([=, this] { return queue->copy(to, from, bytes); });
  }
  MaybeError clear(std::byte *at, size_t bytes) override {
    return submit([=, this] { return queue->clear(at, bytes); });
  }
  MaybeError call(HostWork &work) override;
  MaybeError record(Event &event) override;
  MaybeError wait(const Event &event) override;
  MaybeError finish() override;
  // A queue that captures holds nothing back: it gets no work of the host.
  MaybeError beginCapture() override {
    return submit([this] { return queue->beginCapture(); });
  }
  Expected<std::unique_ptr<Graph>> endCapture() override { return queue->endCapture(); }
  MaybeError enqueue(const Graph &graph) override {
    return submit([&graph, this] { return queue->enqueue(graph); });
  }

private:
  /// An operation that is held back. Called with whether the queue has failed; it then does not use
  /// the device.
  using Operation = std::function<MaybeError(bool failed)>;

  bool holdsNothing() const { return held.load(std::memory_order_acquire) == 0; }
  MaybeError keep(MaybeError error) {
    return error ? MaybeError(failure->set(std::move(*error))) : std::nullopt;
  }
  template <typename Work> MaybeError submit(Work work);
  MaybeError holdBack(Operation operation);
  void loop();

  const std::unique_ptr<Queue> queue;
  const std::shared_ptr<QueueFailure> failure = std::make_shared<QueueFailure>();
  /// Operations, and the one that runs. Only the thread that enqueues adds to it.
  std::atomic<size_t> held = 0;
  std::mutex mutex;
  std::condition_variable operationAdded, allDone;
  std::deque<Operation> operations;
  bool stopping = false;
  std::thread thread; // from the first operation on
};

DeferredQueue::~DeferredQueue() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  operationAdded.notify_one();
  if (thread.joinable())
    thread.join();
}

/// Runs work that uses the device, now or when its turn comes.
template <typename Work> MaybeError DeferredQueue::submit(Work work) {
  if (MaybeError error = failure->get())
    return error;
  if (holdsNothing())
    return keep(work());
  return holdBack([work = std::move(work)](bool failed) { return failed ? std::nullopt : work(); });
}

MaybeError DeferredQueue::holdBack(Operation operation) {
  if (!thread.joinable()) {
    try {
      thread = startThread("a queue's work of the host", [this] { loop(); });
    } catch (const ThreadStartError &error) {
      return keep(Error{error.what()});
    }
  }
  {
    std::lock_guard lock(mutex);
    operations.push_back(std::move(operation));
    held.fetch_add(1, std::memory_order_relaxed);
  }
  operationAdded.notify_one();
  return std::nullopt;
}

void DeferredQueue::loop() {
  std::unique_lock lock(mutex);
  while (true) {
    operationAdded.wait(lock, [&] { return stopping || !operations.empty(); });
    if (operations.empty())
      return;
    {
      Operation operation = std::move(operations.front());
      operations.pop_front();
      lock.unlock();
      MaybeError error;
      try {
        error = operation(failure->get().has_value());
      } catch (const std::exception &exception) {
        error = Error{exception.what()};
      }
      (void)keep(std::move(error));
    }
    lock.lock();
    held.fetch_sub(1, std::memory_order_release);
    if (operations.empty())
      allDone.notify_all();
  }
}

MaybeError DeferredQueue::enqueue(const Kernel &kernel, const KernelArguments &arguments) {
  if (MaybeError error = failure->get())
    return error;
  if (holdsNothing())
    return keep(queue->enqueue(kernel, arguments));
  auto list = [](auto span) { return std::vector(span.begin(), span.end()); };
  return holdBack([this, &kernel, inputs = list(arguments.inputs),
                   outputs = list(arguments.outputs), position = list(arguments.position),
                   workspace = arguments.workspace](bool failed) {
    return failed ? std::nullopt : queue->enqueue(kernel, {inputs, outputs, position, workspace});
  });
}

MaybeError DeferredQueue::call(HostWork &work) {
  if (!work.mayWait())
    return submit([this, &work] { return queue->call(work); });
  if (MaybeError error = failure->get())
    return error;
  return holdBack([this, &work](bool failed) -> MaybeError {
    if (failed)
      return std::nullopt;
    MaybeError error = queue->finish();
    return error ? error : work.run();
  });
}

/// Records the event also where the queue has failed: the thread that waits for it has to wake.
MaybeError DeferredQueue::record(Event &event) {
  const std::shared_ptr<Moments> &moments = static_cast<DeferredEvent &>(event).moments;
  uint64_t number = moments->ask(failure);
  auto record = [this, moments, number](bool failed) {
    MaybeError error = failed ? std::nullopt : queue->record(*moments->event);
    if (error)
      (void)keep(error);
    moments->give(number);
    return error;
  };
  if (holdsNothing()) {
    (void)record(failure->get().has_value());
    return failure->get();
  }
  (void)holdBack(record);
  return failure->get();
}

MaybeError DeferredQueue::wait(const Event &event) {
  if (MaybeError error = failure->get())
    return error;
  const std::shared_ptr<Moments> &moments = static_cast<const DeferredEvent &>(event).moments;
  uint64_t number = moments->lastAsked();
  auto wait = [this, moments, number](bool failed) -> MaybeError {
    if (failed)
      return std::nullopt;
    moments->waitUntilGiven(number);
    MaybeError error = moments->failure();
    return error ? error : queue->wait(*moments->event);
  };
  if (holdsNothing() && moments->isGiven(number))
    return keep(wait(false));
  return holdBack(wait);
}

MaybeError DeferredQueue::finish() {
  {
    std::unique_lock lock(mutex);
    allDone.wait(lock, [&] { return holdsNothing(); });
  }
  MaybeError error = queue->finish();
  MaybeError first = failure->get();
  return first ? first : keep(std::move(error));
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

class DeferredDevice final : public Device {
public:
  explicit DeferredDevice(std::unique_ptr<Device> device) : device(std::move(device)) {}

  std::string describe() const override { return device->describe(); }
  std::string model() const override { return device->model(); }
  bool isHostMemory() const override { return device->isHostMemory(); }
  bool capturesGraphs() const override { return device->capturesGraphs(); }
  size_t alignment() const override { return device->alignment(); }
  Expected<FreeMemory> freeMemory() const override { return device->freeMemory(); }
  Expected<std::unique_ptr<DeviceMemory>> allocate(size_t bytes) override {
    return device->allocate(bytes);
  }
  Expected<std::unique_ptr<DeviceMemory>> allocateStaging(size_t bytes) override {
    return device->allocateStaging(bytes);
  }
  Expected<std::unique_ptr<Queue>> openQueue(QueueKind kind) override {
    Expected<std::unique_ptr<Queue>> queue = device->openQueue(kind);
    if (!queue)
      return queue.error();
    return std::unique_ptr<Queue>(std::make_unique<DeferredQueue>(std::move(*queue)));
  }
  Expected<std::unique_ptr<Event>> createEvent(bool timed) override {
    Expected<std::unique_ptr<Event>> event = device->createEvent(timed);
    if (!event)
      return event.error();
    return std::unique_ptr<Event>(std::make_unique<DeferredEvent>(std::move(*event)));
  }

private:
  std::unique_ptr<Device> device;
};

} // namespace

std::unique_ptr<Device> deferWaitingWork(std::unique_ptr<Device> device) {
  return std::make_unique<DeferredDevice>(std::move(device));
}

} // namespace dtc::runtime
