//===- DeferredDeviceTest.cpp - Host work that waits for other queues -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// On the stand-in of CUDA, which calls the functions of the host of a device on one thread.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/shared/DeferredDevice.h"

#include "runtime/backends/cuda/CudaBackend.h"
#include "test/lib/plans/Expect.h"

#include <cstring>
#include <functional>
#include <future>
#include <gtest/gtest.h>

namespace deferredDeviceTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// Work that waits for others, as far as the queue knows.
struct Waiting final : HostWork {
  explicit Waiting(std::function<MaybeError()> body) : body(std::move(body)) {}
  MaybeError run() override { return body(); }
  bool mayWait() const override { return true; }

  std::function<MaybeError()> body;
};

class DeferredDevices : public ::testing::Test {
protected:
  std::unique_ptr<Queue> queue() { return std::move(*device->openQueue(QueueKind::Compute)); }
  std::unique_ptr<DeviceMemory> staging(char fill) {
    std::unique_ptr<DeviceMemory> memory = std::move(*device->allocateStaging(kBytes));
    std::memset(memory->data(), fill, kBytes);
    return memory;
  }

  static constexpr size_t kBytes = 64;
  std::unique_ptr<Backend> backend = createCudaBackend();
  std::unique_ptr<Device> device = std::move(*backend->openDevice(0));
};

} // namespace

TEST_F(DeferredDevices, WorkWaitsForThatOfAnotherQueue) {
  std::unique_ptr<Queue> first = queue(), second = queue();
  std::promise<void> toFirst, toSecond;
  Waiting one([&]() -> MaybeError {
    toSecond.set_value();
    toFirst.get_future().wait();
    return std::nullopt;
  });
  Waiting other([&]() -> MaybeError {
    toSecond.get_future().wait();
    toFirst.set_value();
    return std::nullopt;
  });
  ASSERT_OK(first->call(one));
  ASSERT_OK(second->call(other));
  EXPECT_OK(first->finish());
  EXPECT_OK(second->finish());
}

/// Copies before and after the work, and those of a queue that waits for an event that is recorded
/// only after it.
TEST_F(DeferredDevices, KeepTheOrderOfQueuesAndEvents) {
  std::unique_ptr<DeviceMemory> from = staging('a'), seen = staging(0), to = staging(0);
  std::unique_ptr<DeviceMemory> memory = std::move(*device->allocate(kBytes));
  std::unique_ptr<Queue> first = queue(), second = queue();
  std::unique_ptr<Event> event = std::move(*device->createEvent(false));
  std::promise<void> go;
  Waiting work([&]() -> MaybeError {
    go.get_future().wait();
    seen->data()[0] = seen->data()[1];
    std::memset(from->data(), 'b', kBytes);
    return std::nullopt;
  });
  ASSERT_OK(first->copy(memory->data(), from->data(), kBytes));
  ASSERT_OK(first->copy(seen->data(), memory->data(), kBytes));
  ASSERT_OK(first->call(work));
  ASSERT_OK(first->copy(memory->data(), from->data(), kBytes));
  ASSERT_OK(first->record(*event));
  ASSERT_OK(second->wait(*event));
  ASSERT_OK(second->copy(to->data(), memory->data(), kBytes));
  EXPECT_FALSE(*event->isDone());
  go.set_value();
  EXPECT_OK(second->finish());
  EXPECT_EQ(std::to_integer<char>(to->data()[kBytes - 1]), 'b');
  EXPECT_EQ(std::to_integer<char>(seen->data()[0]), 'a');
  EXPECT_OK(event->wait());
  EXPECT_TRUE(*event->isDone());
  EXPECT_OK(first->finish());
}

TEST_F(DeferredDevices, AnErrorOfTheWorkIsThatOfTheQueueAndOfWhoWaitsForIt) {
  std::unique_ptr<DeviceMemory> to = staging('x');
  std::unique_ptr<DeviceMemory> memory = std::move(*device->allocate(kBytes));
  std::unique_ptr<Queue> first = queue(), second = queue();
  std::unique_ptr<Event> event = std::move(*device->createEvent(false));
  std::promise<void> go;
  Waiting work([&]() -> MaybeError {
    go.get_future().wait();
    return Error{"out of paper"};
  });
  ASSERT_OK(first->clear(memory->data(), kBytes));
  ASSERT_OK(first->call(work));
  ASSERT_OK(first->copy(to->data(), memory->data(), kBytes));
  ASSERT_OK(first->record(*event));
  ASSERT_OK(second->wait(*event));
  go.set_value();
  EXPECT_ERROR(second->finish(), "out of paper");
  EXPECT_ERROR(first->finish(), "out of paper");
  EXPECT_ERROR(event->wait(), "out of paper");
  EXPECT_ERROR(first->call(work), "out of paper");
  EXPECT_EQ(std::to_integer<char>(to->data()[0]), 'x');
}

} // namespace deferredDeviceTest
