//===- AsyncBackend.cpp - Asynchronous devices ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/plans/AsyncBackend.h"

#include "runtime/backends/cpu/CpuDevice.h"
#include "runtime/backends/cpu/CpuKernel.h"
#include "runtime/backends/cpu/CpuQueue.h"
#include "runtime/fabrics/local/LocalFabric.h"
#include "test/lib/plans/FakeBackend.h"

#include <cstring>
#include <stdexcept>
#include <vector>

namespace dtc::runtime::testing {

//===----------------------------------------------------------------------===//
// The gate
//===----------------------------------------------------------------------===//

void KernelGate::let(uint64_t runs) {
  std::lock_guard lock(mutex);
  allowed += runs;
  changed.notify_all();
}

void KernelGate::open() { let(uint64_t{1} << 62); }

void KernelGate::failAt(uint64_t run) {
  std::lock_guard lock(mutex);
  failing = run;
}

void KernelGate::waitForEnqueued(uint64_t runs) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return given >= runs; });
}

uint64_t KernelGate::enqueued() const {
  std::lock_guard lock(mutex);
  return given;
}

void KernelGate::countEnqueued() {
  std::lock_guard lock(mutex);
  ++given;
  changed.notify_all();
}

void KernelGate::pass() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return passed < allowed; });
  if (++passed == failing)
    throw std::runtime_error("the kernel failed");
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

namespace {

class GatedKernel final : public cpu::CpuKernel {
public:
  GatedKernel(std::shared_ptr<KernelGate> gate, std::unique_ptr<Kernel> inner)
      : gate(std::move(gate)), inner(std::move(inner)) {}
  void run(const cpu::CpuArguments &args) const override {
    gate->pass();
    if (inner)
      static_cast<const cpu::CpuKernel &>(*inner).runPrepared(args);
  }
  size_t workspaceBytesFor(int) const override { return inner ? inner->workspaceBytes() : 0; }
  void countEnqueued() const { gate->countEnqueued(); }

private:
  std::shared_ptr<KernelGate> gate;
  std::unique_ptr<Kernel> inner; // null: nothing
};

/// The queue of a thread, which tells the gate about its work.
class AsyncQueue final : public Queue {
public:
  MaybeError enqueue(const Kernel &kernel, const KernelArguments &arguments) override {
    MaybeError error = queue.enqueue(kernel, arguments);
    if (const auto *gated = dynamic_cast<const GatedKernel *>(&kernel))
      gated->countEnqueued();
    return error;
  }
  MaybeError copy(std::byte *to, const std::byte *from, size_t bytes) override {
    return queue.copy(to, from, bytes);
  }
  MaybeError clear(std::byte *at, size_t bytes) override { return queue.clear(at, bytes); }
  MaybeError call(HostWork &work) override { return queue.call(work); }
  MaybeError record(Event &event) override { return queue.record(event); }
  MaybeError wait(const Event &event) override { return queue.wait(event); }
  MaybeError finish() override { return queue.finish(); }

private:
  cpu::ThreadQueue queue;
};

class AsyncMemory final : public DeviceMemory {
public:
  explicit AsyncMemory(std::unique_ptr<DeviceMemory> memory) : memory(std::move(memory)) {
    if (bytes() > 0)
      std::memset(data(), 0xFF, bytes());
  }
  std::byte *data() const override { return memory->data(); }
  size_t bytes() const override { return memory->bytes(); }

private:
  std::unique_ptr<DeviceMemory> memory;
};

class AsyncDevice final : public Device {
public:
  std::string describe() const override { return "a device of a test"; }
  bool isHostMemory() const override { return false; }
  size_t alignment() const override { return cpu->alignment(); }
  Expected<FreeMemory> freeMemory() const override { return cpu->freeMemory(); }
  Expected<std::unique_ptr<DeviceMemory>> allocate(size_t bytes) override {
    auto memory = cpu->allocate(bytes);
    if (!memory)
      return memory.error();
    return std::unique_ptr<DeviceMemory>(std::make_unique<AsyncMemory>(std::move(*memory)));
  }
  Expected<std::unique_ptr<DeviceMemory>> allocateStaging(size_t bytes) override {
    return allocate(bytes);
  }
  Expected<std::unique_ptr<Queue>> openQueue(QueueKind) override {
    return std::unique_ptr<Queue>(std::make_unique<AsyncQueue>());
  }
  Expected<std::unique_ptr<Event>> createEvent(bool timed) override {
    return cpu->createEvent(timed);
  }

private:
  std::unique_ptr<Device> cpu = cpu::createCpuDevice(1);
};

class AsyncBackend final : public Backend {
public:
  explicit AsyncBackend(std::shared_ptr<KernelGate> gate) : gate(std::move(gate)) {}

  std::string name() const override { return "async"; }
  Expected<std::unique_ptr<Kernel>> prepare(const KernelSignature &signature) const override {
    if (!gate || signature.kernel != gate->kernelName())
      return fake->prepare(signature);
    Expected<std::unique_ptr<Kernel>> inner = std::unique_ptr<Kernel>();
    if (signature.kernel != "test_gate")
      inner = fake->prepare(signature);
    if (!inner)
      return inner.error();
    return std::unique_ptr<Kernel>(std::make_unique<GatedKernel>(gate, std::move(*inner)));
  }
  Expected<std::unique_ptr<Device>> openDevice(int64_t) const override {
    return std::unique_ptr<Device>(std::make_unique<AsyncDevice>());
  }

private:
  std::shared_ptr<KernelGate> gate;
  std::shared_ptr<const Backend> fake = createFakeBackend();
};

//===----------------------------------------------------------------------===//
// Their network
//===----------------------------------------------------------------------===//

/// The local fabric, for devices whose memory the threads of the host do reach.
class AsyncFabric final : public Fabric {
public:
  explicit AsyncFabric(std::shared_ptr<Fabric> local)
      : Fabric(local->mesh(), {local->devices().begin(), local->devices().end()}),
        local(std::move(local)) {}

  Expected<std::unique_ptr<Communicator>> openCommunicator(int64_t device, int64_t lane,
                                                           Device &) override {
    return local->openCommunicator(device, lane, *memory);
  }
  Expected<std::unique_ptr<Transfers>> openTransfers(int64_t device, Device &) override {
    return local->openTransfers(device, *memory);
  }
  Expected<int64_t> agree(ReductionKind reduction, int64_t value) override {
    return local->agree(reduction, value);
  }
  Expected<std::string> broadcast(int64_t from, std::string bytes) override {
    return local->broadcast(from, std::move(bytes));
  }
  void abort(const Error &reason) override { local->abort(reason); }

private:
  std::unique_ptr<Device> memory = cpu::createCpuDevice(1);
  std::shared_ptr<Fabric> local;
};

} // namespace

std::shared_ptr<const Backend> createAsyncBackend(std::shared_ptr<KernelGate> gate) {
  return std::make_shared<AsyncBackend>(std::move(gate));
}

OpenFabric asyncFabric() {
  return [](const Mesh &mesh) -> Expected<std::shared_ptr<Fabric>> {
    auto local = openLocalFabric(mesh);
    if (!local)
      return local.error();
    return std::shared_ptr<Fabric>(std::make_shared<AsyncFabric>(std::move(*local)));
  };
}

} // namespace dtc::runtime::testing
