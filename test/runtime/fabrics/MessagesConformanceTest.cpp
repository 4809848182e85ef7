//===- MessagesConformanceTest.cpp - Conformance tests of messages --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The promises of the networks between processes to listeners of an abort.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/Messages.h"

#include "test/lib/fabrics/ThreadMessages.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

namespace messagesConformanceTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

class MessagesConformance : public ::testing::TestWithParam<std::pair<const char *, OpenMessages>> {
protected:
  static std::vector<std::shared_ptr<Messages>> open(int64_t processes) {
    return GetParam().second(processes);
  }
};

/// A world ends while another process aborts: it takes its listener away, and is gone.
TEST_P(MessagesConformance, NoListenerRunsOnceItIsTakenAway) {
  using namespace std::chrono_literals;
  std::vector<std::shared_ptr<Messages>> ends = open(2);
  std::atomic<bool> isRunning = false, hasRun = false;
  ends[0]->onAbort([&](const Error &) {
    isRunning = true;
    std::this_thread::sleep_for(50ms);
    hasRun = true;
  });
  std::thread other([&] { ends[1]->abort(Error{"the disk is full"}); });
  while (!isRunning)
    std::this_thread::yield();
  ends[0]->onAbort(nullptr);
  EXPECT_TRUE(hasRun);
  other.join();
}

INSTANTIATE_TEST_SUITE_P(
    Messages, MessagesConformance,
    ::testing::Values(std::pair<const char *, OpenMessages>{"Threads",
                                                            [](int64_t count) {
                                                              return openThreadMessages(count);
                                                            }},
                      std::pair<const char *, OpenMessages>{"Sockets", openSocketMessagesHere}),
    [](const auto &info) { return info.param.first; });

} // namespace messagesConformanceTest
