//===- CpuQueueTest.cpp - The order of queued work ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuQueue.h"

#include "runtime/backends/cpu/CpuDevice.h"
#include "test/lib/plans/Expect.h"

#include <array>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <list>
#include <stdexcept>

namespace cpuQueueTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

struct Call final : HostWork {
  explicit Call(std::function<MaybeError()> body) : body(std::move(body)) {}
  MaybeError run() override { return body(); }
  std::function<MaybeError()> body;
};

/// A queue of some kind of a device, with what was enqueued on it.
class CpuQueue : public ::testing::TestWithParam<QueueKind> {
protected:
  std::unique_ptr<Queue> open(QueueKind kind) { return std::move(*device->openQueue(kind)); }
  std::unique_ptr<Event> createEvent() { return std::move(*device->createEvent(/*timed=*/true)); }
  MaybeError call(Queue &on, std::function<MaybeError()> body) {
    return on.call(calls.emplace_back(std::move(body)));
  }

  std::list<Call> calls; // outlive the queue
  std::unique_ptr<Device> device = cpu::createCpuDevice(1);
  std::unique_ptr<Queue> queue = open(GetParam());
};

} // namespace

TEST_P(CpuQueue, RunsInOrder) {
  std::vector<int> seen;
  for (int round = 0; round < 500; ++round) {
    for (int i = 0; i < 3; ++i)
      ASSERT_OK(call(*queue, [&seen, value = 3 * round + i]() -> MaybeError {
        seen.push_back(value);
        return std::nullopt;
      }));
    ASSERT_OK(queue->finish());
    ASSERT_EQ(seen.size(), static_cast<size_t>(3 * round + 3));
  }
  for (int i = 0; i < 1500; ++i)
    EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST_P(CpuQueue, CopiesAndClears) {
  std::array<std::byte, 100> from, to{};
  from.fill(std::byte{7});
  ASSERT_OK(queue->copy(to.data() + 1, from.data(), 98));
  ASSERT_OK(queue->clear(to.data() + 10, 5));
  ASSERT_OK(queue->copy(to.data(), nullptr, 0));
  ASSERT_OK(queue->finish());
  for (size_t i = 0; i < to.size(); ++i)
    EXPECT_EQ(to[i], i == 0 || i == 99 || (i >= 10 && i < 15) ? std::byte{0} : std::byte{7}) << i;
}

TEST_P(CpuQueue, AnErrorStopsWhatIsBehindIt) {
  int ran = 0;
  MaybeError last;
  for (int item = 0; item < 4; ++item)
    last = call(*queue, [&ran, item]() -> MaybeError {
      ++ran;
      if (item == 1)
        return Error{"item 1 failed"};
      return std::nullopt;
    });
  EXPECT_ERROR(queue->finish(), "item 1 failed");
  EXPECT_EQ(ran, 2);
  EXPECT_ERROR(call(*queue, []() -> MaybeError { return std::nullopt; }), "item 1 failed");
  std::unique_ptr<Event> event = createEvent();
  EXPECT_ERROR(queue->record(*event), "item 1 failed");
}

TEST_P(CpuQueue, ExceptionsAreErrors) {
  (void)call(*queue, []() -> MaybeError { throw std::runtime_error("out of luck"); });
  EXPECT_ERROR(queue->finish(), "out of luck");
}

TEST_P(CpuQueue, EventsTellWhenTheirMomentCame) {
  std::unique_ptr<Event> event = createEvent();
  EXPECT_TRUE(*event->isDone());
  EXPECT_OK(event->wait());
  EXPECT_OK(queue->wait(*event)); // nothing to wait for
  auto before = Event::TimePoint::clock::now();
  ASSERT_OK(call(*queue, []() -> MaybeError { return std::nullopt; }));
  ASSERT_OK(queue->record(*event));
  ASSERT_OK(event->wait());
  EXPECT_TRUE(*event->isDone());
  Expected<Event::TimePoint> first = event->time();
  ASSERT_OK(first);
  EXPECT_GE(*first, before);
  ASSERT_OK(queue->record(*event));
  ASSERT_OK(event->wait());
  EXPECT_GE(*event->time(), *first);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CpuQueue,
                         ::testing::Values(QueueKind::Compute, QueueKind::Communication,
                                           QueueKind::Copy));

using CpuQueues = CpuQueue;

TEST_P(CpuQueues, OneWaitsForTheOther) {
  std::unique_ptr<Queue> other = open(QueueKind::Communication);
  std::unique_ptr<Event> event = createEvent();
  std::promise<void> go;
  std::atomic<bool> first = false, sawFirst = false;
  ASSERT_OK(call(*other, [&]() -> MaybeError {
    go.get_future().wait();
    first = true;
    return std::nullopt;
  }));
  ASSERT_OK(other->record(*event));
  EXPECT_FALSE(*event->isDone());
  // A queue of the calling thread waits here, and would wait for ever.
  if (GetParam() != QueueKind::Communication)
    go.set_value();
  ASSERT_OK(queue->wait(*event));
  ASSERT_OK(call(*queue, [&]() -> MaybeError {
    sawFirst = first.load();
    return std::nullopt;
  }));
  if (GetParam() == QueueKind::Communication)
    go.set_value();
  ASSERT_OK(queue->finish());
  EXPECT_TRUE(sawFirst);
  EXPECT_TRUE(*event->isDone());
}

TEST_P(CpuQueues, AWaitForAFailedQueueFails) {
  std::unique_ptr<Queue> other = open(QueueKind::Communication);
  std::unique_ptr<Event> event = createEvent();
  std::promise<void> go;
  ASSERT_OK(call(*other, [&]() -> MaybeError {
    go.get_future().wait();
    return Error{"the other queue failed"};
  }));
  ASSERT_OK(other->record(*event));
  go.set_value();
  (void)queue->wait(*event);
  EXPECT_ERROR(queue->finish(), "the other queue failed");
  EXPECT_ERROR(event->wait(), "the other queue failed");
}

INSTANTIATE_TEST_SUITE_P(Kinds, CpuQueues,
                         ::testing::Values(QueueKind::Compute, QueueKind::Communication));

TEST(ThreadQueue, FinishesWhatIsEnqueuedBeforeItEnds) {
  int ran = 0;
  Call work([&]() -> MaybeError {
    ++ran;
    return std::nullopt;
  });
  {
    cpu::ThreadQueue queue;
    ASSERT_OK(queue.call(work));
    ASSERT_OK(queue.call(work));
  }
  EXPECT_EQ(ran, 2);
}

} // namespace cpuQueueTest
