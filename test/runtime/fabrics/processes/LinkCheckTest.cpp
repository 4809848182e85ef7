//===- LinkCheckTest.cpp - Measurement of links ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/LinkCheck.h"

#include "test/lib/Times.h"
#include "test/lib/fabrics/ThreadMessages.h"
#include "test/lib/plans/Expect.h"

#include <atomic>
#include <chrono>
#include <future>
#include <gtest/gtest.h>
#include <iostream>
#include <thread>

namespace linkCheckTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// Messages between two of the processes take longer.
class SlowBatch final : public MessageBatch {
public:
  SlowBatch(std::unique_ptr<MessageBatch> batch, int64_t slow, std::chrono::milliseconds delay)
      : batch(std::move(batch)), slow(slow), delay(delay) {}
  MaybeError send(int64_t process, int64_t tag, std::span<const MessagePart> parts) override {
    if (process == slow)
      std::this_thread::sleep_for(delay);
    return batch->send(process, tag, parts);
  }
  MaybeError receive(int64_t process, int64_t tag, std::span<const MessagePart> parts) override {
    return batch->receive(process, tag, parts);
  }
  Expected<bool> isDone() override { return batch->isDone(); }
  bool cancel() override { return batch->cancel(); }

protected:
  MaybeError failure() const override { return std::nullopt; }

private:
  std::unique_ptr<MessageBatch> batch;
  int64_t slow;
  std::chrono::milliseconds delay;
};

class SlowMessages final : public Messages {
public:
  SlowMessages(std::shared_ptr<Messages> messages, int64_t slow, std::chrono::milliseconds delay)
      : messages(std::move(messages)), slow(slow), delay(delay) {}
  int64_t process() const override { return messages->process(); }
  int64_t numProcesses() const override { return messages->numProcesses(); }
  int64_t processesOnHost() const override { return messages->processesOnHost(); }
  int64_t largestTag() const override { return messages->largestTag(); }
  std::unique_ptr<MessageBatch> openBatch() override {
    return std::make_unique<SlowBatch>(messages->openBatch(), slow, delay);
  }
  void abort(const Error &reason) override { messages->abort(reason); }
  void abortHere(const Error &reason) override { messages->abortHere(reason); }
  MaybeError failure() const override { return messages->failure(); }
  void onAbort(std::function<void(const Error &)> heard) override {
    messages->onAbort(std::move(heard));
  }

private:
  std::shared_ptr<Messages> messages;
  int64_t slow;
  std::chrono::milliseconds delay;
};

/// Measures the links of four processes. The link between processes 1 and 3 is slow. Returns
/// whether the slow link was found, and no other was as slow.
bool findsTheSlowLink(std::chrono::milliseconds delay) {
  std::vector<std::shared_ptr<Messages>> ends = openSocketMessagesHere(4);
  ends[1] = std::make_shared<SlowMessages>(ends[1], 3, delay);
  ends[3] = std::make_shared<SlowMessages>(ends[3], 1, delay);
  const double limit = std::chrono::duration<double>(delay).count() / 2;
  std::atomic<bool> areAsExpected = true;
  std::vector<std::future<std::string>> texts;
  for (auto &end : ends)
    texts.push_back(std::async(std::launch::async, [&] {
      Expected<LinkTimes> times = measureLinks(end, {1 << 20, 1 << 20, 3, 3});
      EXPECT_OK(times);
      EXPECT_EQ(times->links.size(), 6u);
      for (const LinkTime &link : times->links) {
        EXPECT_GT(link.latency, 0);
        EXPECT_GT(link.bandwidth, 0);
        if ((link.latency > limit) != (link.first == 1 && link.second == 3))
          areAsExpected = false;
      }
      EXPECT_GT(times->allReduceSeconds, 0);
      std::string text = formatLinks(*times, {"a", "b", "c", "d"});
      end.reset(); // all together
      return text;
    }));
  std::string first = texts.front().get();
  EXPECT_TRUE(first.starts_with("6 links between 4 processes, median: ")) << first;
  for (size_t end = 1; end < texts.size(); ++end)
    EXPECT_EQ(texts[end].get(), first); // but for the all-reduce, which all agree on too
  bool isFound = areAsExpected && contains(first, "\nslow: process 1 on b and process 3 on d: ");
  if (!isFound)
    std::cerr << "With a delay of " << delay.count() << " ms: " << first;
  return isFound;
}

} // namespace

TEST(LinkCheck, MeasuresEachLinkAndFindsTheSlowOne) {
  EXPECT_TRUE(dtc::test::passesWithMoreTime(
      [](int factor) { return findsTheSlowLink(std::chrono::milliseconds(40) * factor); }));
}

TEST(LinkCheck, Format) {
  LinkTimes times{{{0, 1, 1e-5, 1e9}, {0, 2, 1.9e-5, 6e8}, {1, 2, 1e-5, 1e9}}, 0.5, 1 << 20};
  EXPECT_EQ(formatLinks(times, {"a", "a", "b"}),
            "1 link in hosts, median: 10.0 us, 953.7 MiB/s\n"
            "no link is more than 2 times slower than the median\n"
            "2 links between hosts, median: 10.0 us, 953.7 MiB/s\n"
            "no link is more than 2 times slower than the median\n"
            "all-reduce of 1.0 MiB: 500.0 ms, 2.0 MiB/s\n");
  times.links[1].bandwidth = 4e8;
  EXPECT_TRUE(contains(formatLinks(times, {"a", "a", "b"}),
                       "slow: process 0 on a and process 2 on b: 19.0 us, 381.5 MiB/s\n"));
}

} // namespace linkCheckTest
