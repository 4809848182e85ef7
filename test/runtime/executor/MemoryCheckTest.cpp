//===- MemoryCheckTest.cpp - Plans and the memory of their devices --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"
#include "runtime/fabrics/local/LocalFabric.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/TestPlans.h"

#include <gtest/gtest.h>

namespace memoryCheckTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// A device of the fake backend with a free memory that the test chooses.
class LimitedDevice final : public Device {
public:
  LimitedDevice(std::unique_ptr<Device> device, FreeMemory free)
      : device(std::move(device)), free(std::move(free)) {}

  std::string describe() const override { return device->describe(); }
  bool isHostMemory() const override { return device->isHostMemory(); }
  size_t alignment() const override { return device->alignment(); }
  Expected<FreeMemory> freeMemory() const override { return free; }
  Expected<std::unique_ptr<DeviceMemory>> allocate(size_t bytes) override {
    return device->allocate(bytes);
  }
  Expected<std::unique_ptr<DeviceMemory>> allocateStaging(size_t bytes) override {
    return device->allocateStaging(bytes);
  }
  Expected<std::unique_ptr<Queue>> openQueue(QueueKind kind) override {
    return device->openQueue(kind);
  }
  Expected<std::unique_ptr<Event>> createEvent(bool timed) override {
    return device->createEvent(timed);
  }

private:
  std::unique_ptr<Device> device;
  FreeMemory free;
};

class LimitedBackend final : public Backend {
public:
  explicit LimitedBackend(Device::FreeMemory free) : free(std::move(free)) {}

  std::string name() const override { return "limited"; }
  Expected<std::unique_ptr<Kernel>> prepare(const KernelSignature &signature) const override {
    return fake->prepare(signature);
  }
  Expected<std::unique_ptr<Device>> openDevice(int64_t index) const override {
    return std::unique_ptr<Device>(
        std::make_unique<LimitedDevice>(std::move(*fake->openDevice(index)), free));
  }

private:
  std::shared_ptr<const Backend> fake = createFakeBackend();
  Device::FreeMemory free;
};

/// The local fabric, as the first of several processes of a host would see one. The test gives the
/// bytes that the others broadcast.
class FirstProcess final : public Fabric {
public:
  FirstProcess(std::shared_ptr<Fabric> local, std::vector<std::string> others, uint64_t takes)
      : Fabric(local->mesh(), {local->devices().begin(), local->devices().end()}),
        local(std::move(local)), others(std::move(others)), takes(takes) {}

  int64_t numProcesses() const override { return 1 + std::ssize(others); }
  int64_t processesOnHost() const override { return numProcesses(); }
  Expected<std::unique_ptr<Communicator>> openCommunicator(int64_t device, int64_t lane,
                                                           Device &memory) override {
    return local->openCommunicator(device, lane, memory);
  }
  Expected<std::unique_ptr<Transfers>> openTransfers(int64_t device, Device &memory) override {
    return local->openTransfers(device, memory);
  }
  Expected<int64_t> agree(ReductionKind, int64_t value) override { return value; }
  Expected<std::string> broadcast(int64_t from, std::string bytes) override {
    return from == 0 ? bytes : others[static_cast<size_t>(from - 1)];
  }
  MemoryUse memoryFor(const CommunicatorNeeds &) const override {
    return {takes, takes ? "2 wires of copper" : ""};
  }
  void abort(const Error &reason) override { local->abort(reason); }

private:
  std::shared_ptr<Fabric> local;
  std::vector<std::string> others;
  uint64_t takes;
};

class MemoryCheck : public ::testing::Test {
protected:
  /// Why a session cannot have the plan, which needs 1 MiB and some workspace, in memory that is
  /// `free`, beside processes whose devices are in the memory of such owners. The fabric takes
  /// `fabricTakes` bytes of it.
  std::string refusal(Device::FreeMemory free, std::vector<std::string> others = {},
                      uint64_t fabricTakes = 0) {
    auto plan = forwardPlan();
    plan->mutable_programs(0)->set_arena_bytes(kMiB);
    SessionOptions options;
    options.openFabric = [&](const Mesh &mesh) -> Expected<std::shared_ptr<Fabric>> {
      Expected<std::shared_ptr<Fabric>> local = openLocalFabric(mesh);
      if (!local)
        return local.error();
      return std::shared_ptr<Fabric>(std::make_shared<FirstProcess>(*local, others, fabricTakes));
    };
    auto session =
        Session::create(plan, std::make_shared<LimitedBackend>(std::move(free)), options);
    return session ? "" : session.error().message;
  }

  static constexpr uint64_t kMiB = uint64_t{1} << 20;
};

TEST_F(MemoryCheck, ProcessesOfAHostShareItsMemory) {
  EXPECT_EQ(refusal({8 * kMiB, "the host"}, {"", "", ""}), "");
  EXPECT_TRUE(contains(refusal({3 * kMiB, "the host"}, {"", "", ""}),
                       "but the host has 768.0 KiB for each of 4 processes; compile for"));
}

TEST_F(MemoryCheck, ProcessesWithAGpuEachHaveItsMemory) {
  EXPECT_EQ(refusal({3 * kMiB, "cuda 0", "GPU-a"}, {"GPU-b\n", "GPU-c\n", "GPU-d\nGPU-e\n"}), "");
}

TEST_F(MemoryCheck, ProcessesThatShareAGpuHaveAPartEach) {
  EXPECT_TRUE(contains(refusal({3 * kMiB, "cuda 0", "GPU-a"}, {"GPU-b\n", "GPU-a\n", "GPU-a\n"}),
                       "but cuda 0 has 1.0 MiB for each of 3 processes; compile for"));
}

TEST_F(MemoryCheck, WhatIsInNoPlanIsLeftForIt) {
  EXPECT_EQ(refusal({6 * kMiB, "cuda 0", "GPU-a", 4 * kMiB}), "");
  EXPECT_TRUE(contains(refusal({4 * kMiB + 1024, "cuda 0", "GPU-a", 4 * kMiB}),
                       "but cuda 0 has 1.0 KiB beside 4.0 MiB for libraries, graphs and what else "
                       "is in no plan; compile for"));
  EXPECT_TRUE(contains(refusal({6 * kMiB, "cuda 0", "GPU-a", 4 * kMiB}, {"GPU-a\n"}),
                       "but cuda 0 has 0 B for each of 2 processes beside 4.0 MiB for"));
}

TEST_F(MemoryCheck, WhatConnectsDevicesIsCounted) {
  EXPECT_EQ(refusal({6 * kMiB, "cuda 0", "GPU-a"}, {}, 3 * kMiB), "");
  std::string error = refusal({6 * kMiB, "cuda 0", "GPU-a"}, {}, 5 * kMiB);
  EXPECT_TRUE(contains(error, "and what connects them 5.0 MiB (2 wires of copper), but cuda 0 has "
                              "6.0 MiB; compile for"));
  EXPECT_TRUE(contains(error, "fewer channels (--nccl-channels)"));
  // Each process has its own.
  EXPECT_TRUE(contains(refusal({6 * kMiB, "cuda 0", "GPU-a"}, {"GPU-a\n"}, 3 * kMiB),
                       "but cuda 0 has 3.0 MiB for each of 2 processes"));
}

} // namespace

} // namespace memoryCheckTest
