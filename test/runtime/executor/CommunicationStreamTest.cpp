//===- CommunicationStreamTest.cpp - The order of queued work -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/CommunicationStream.h"

#include "test/lib/plans/Expect.h"

#include <future>
#include <gtest/gtest.h>
#include <stdexcept>

using namespace dtc::runtime;
using namespace dtc::runtime::testing;

TEST(CommunicationStream, RunsInOrderOnOneThread) {
  std::vector<size_t> seen; // written by the stream, read when it is idle
  CommunicationStream stream(3, [&](size_t item) -> MaybeError {
    seen.push_back(item);
    return std::nullopt;
  });
  EXPECT_TRUE(stream.isIdle());
  std::vector<size_t> expected;
  for (size_t round = 0; round < 500; ++round) {
    auto first = stream.queue(3 * round);
    stream.queue(3 * round + 1);
    auto last = stream.queue(3 * round + 2);
    EXPECT_OK(stream.wait(last));
    EXPECT_OK(stream.wait(first)); // long done
    for (size_t i = 0; i < 3; ++i)
      expected.push_back(3 * round + i);
  }
  EXPECT_TRUE(stream.isIdle());
  EXPECT_EQ(seen, expected);
}

TEST(CommunicationStream, IsNotIdleWhileItWorks) {
  std::promise<void> go;
  CommunicationStream stream(2, [&](size_t) -> MaybeError {
    go.get_future().wait();
    return std::nullopt;
  });
  auto ticket = stream.queue(0);
  EXPECT_FALSE(stream.isIdle());
  go.set_value();
  EXPECT_OK(stream.wait(ticket));
  EXPECT_TRUE(stream.isIdle());
}

TEST(CommunicationStream, AnErrorStopsWhatIsBehindIt) {
  int ran = 0;
  CommunicationStream stream(4, [&](size_t item) -> MaybeError {
    ++ran;
    if (item == 1)
      return Error{"item 1 failed"};
    return std::nullopt;
  });
  for (size_t item = 0; item < 4; ++item)
    stream.queue(item);
  stream.drain();
  EXPECT_EQ(ran, 2);
  EXPECT_FALSE(stream.isIdle());
  EXPECT_ERROR(stream.wait(4), "item 1 failed");
  EXPECT_ERROR(stream.wait(stream.queue(5)), "item 1 failed");
  EXPECT_EQ(ran, 2);
}

TEST(CommunicationStream, ExceptionsAreErrors) {
  CommunicationStream stream(1,
                             [](size_t) -> MaybeError { throw std::runtime_error("out of luck"); });
  EXPECT_ERROR(stream.wait(stream.queue(0)), "out of luck");
}

TEST(CommunicationStream, FinishesWhatIsQueuedBeforeItEnds) {
  int ran = 0;
  {
    CommunicationStream stream(2, [&](size_t) -> MaybeError {
      ++ran;
      return std::nullopt;
    });
    stream.queue(0);
    stream.queue(1);
  }
  EXPECT_EQ(ran, 2);
}
