//===- CpuDevice.cpp - Memory, queues and events of the host --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuDevice.h"

#include "runtime/backends/cpu/CpuQueue.h"
#include "runtime/backends/cpu/KernelThreads.h"
#include "support/Memory.h"
#include "support/StartThread.h"

namespace dtc::runtime::cpu {

namespace {

class CpuMemory final : public DeviceMemory {
public:
  explicit CpuMemory(PageMemory pages) : pages(std::move(pages)) {}
  std::byte *data() const override { return pages.data(); }
  size_t bytes() const override { return pages.size(); }
  bool isZeroed() const override { return true; }

private:
  PageMemory pages;
};

class CpuDevice final : public Device {
public:
  explicit CpuDevice(int threads) : threads(threads) {}

  std::string describe() const override { return "cpu"; }
  bool isHostMemory() const override { return true; }
  size_t alignment() const override { return 64; }

  Expected<FreeMemory> freeMemory() const override {
    MemoryLimit limit = memoryLimit();
    return FreeMemory{limit.bytes, limit.holder};
  }

  Expected<std::unique_ptr<DeviceMemory>> allocate(size_t bytes) override {
    Expected<PageMemory> pages = PageMemory::allocate(bytes);
    if (!pages)
      return pages.error();
    return std::unique_ptr<DeviceMemory>(std::make_unique<CpuMemory>(std::move(*pages)));
  }
  Expected<std::unique_ptr<DeviceMemory>> allocateStaging(size_t bytes) override {
    return allocate(bytes);
  }

  Expected<std::unique_ptr<Queue>> openQueue(QueueKind kind) override {
    if (kind == QueueKind::Compute)
      if (MaybeError error = startKernelThreads(threads))
        return *error;
    if (kind != QueueKind::Communication)
      return std::unique_ptr<Queue>(std::make_unique<DirectQueue>());
    try {
      return std::unique_ptr<Queue>(std::make_unique<ThreadQueue>());
    } catch (const ThreadStartError &error) {
      return Error{error.what()};
    }
  }

  Expected<std::unique_ptr<Event>> createEvent(bool timed) override {
    return std::unique_ptr<Event>(std::make_unique<CpuEvent>(timed));
  }

private:
  int threads;
};

} // namespace

std::unique_ptr<Device> createCpuDevice(int threads) {
  return std::make_unique<CpuDevice>(threads);
}

} // namespace dtc::runtime::cpu
