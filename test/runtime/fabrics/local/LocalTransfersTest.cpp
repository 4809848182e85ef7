//===- LocalTransfersTest.cpp - Messages between threads ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/local/LocalTransfers.h"

#include "runtime/fabrics/local/LocalCommunicator.h"
#include "test/lib/plans/Expect.h"
#include "test/runtime/fabrics/Network.h"

#include <future>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// The ends of some devices. As starting never blocks, one thread may use them all.
struct Ends {
  explicit Ends(int64_t devices)
      : world(std::make_shared<LocalWorld>(Mesh({{"pp", devices, false, true}}))) {
    for (int64_t device = 0; device < devices; ++device)
      ends.push_back(std::make_unique<LocalTransfers>(world, device));
  }
  ~Ends() {
    world->abort();
    for (auto &end : ends)
      end->drain();
  }
  LocalTransfers &operator[](size_t device) { return *ends[device]; }

  std::shared_ptr<LocalWorld> world;
  std::vector<std::unique_ptr<LocalTransfers>> ends;
};

template <typename T> TransferTensor tensorOf(std::vector<T> &values) {
  return {values.data(), values.size() * sizeof(T)};
}

} // namespace

TEST(LocalTransfers, WhicheverEndComesFirst) {
  Ends ends(2);
  std::vector<int> from = {1, 2, 3}, other = {4}, none;
  for (bool sendFirst : {true, false}) {
    std::vector<int> to(3), otherTo(1), noneTo;
    std::vector<TransferTensor> out = {tensorOf(from), tensorOf(none), tensorOf(other)};
    std::vector<TransferTensor> in = {tensorOf(to), tensorOf(noneTo), tensorOf(otherTo)};
    Transfers::Ticket sent = 0, received = 0;
    if (sendFirst)
      sent = ends[0].startSend(1, 7, out);
    received = ends[1].startReceive(0, 7, in);
    if (!sendFirst)
      sent = ends[0].startSend(1, 7, out);
    TransferResult result = ends[1].wait(received);
    EXPECT_OK(result.error);
    EXPECT_GE(result.seconds(), 0);
    EXPECT_OK(ends[0].wait(sent).error);
    EXPECT_EQ(to, from);
    EXPECT_EQ(otherTo, other);
  }
  EXPECT_EQ(ends[0].sentBytes(), 2u * 16);
  EXPECT_EQ(ends[1].sentBytes(), 0u);
}

TEST(LocalTransfers, MessagesOfAChannelKeepTheirOrder) {
  // Three messages from device 0 on each of two channels, and as many from device 2; received in an
  // order of channels that is not that of sending, and waited for from the last to the first.
  Ends ends(3);
  std::vector<std::vector<int>> values, received(12, std::vector<int>(1));
  std::vector<std::vector<TransferTensor>> out(12), in(12);
  for (int i = 0; i < 12; ++i)
    values.push_back({i});
  std::vector<std::pair<size_t, Transfers::Ticket>> tickets;
  auto send = [&](size_t i) {
    size_t sender = i % 2 * 2;
    out[i] = {tensorOf(values[i])};
    tickets.emplace_back(sender, ends[sender].startSend(1, i / 2 % 2, out[i]));
  };
  for (size_t i = 0; i < 6; ++i)
    send(i);
  for (size_t group : {3, 1, 2, 0}) // sender and channel
    for (size_t i = group; i < 12; i += 4) {
      in[i] = {tensorOf(received[i])};
      tickets.emplace_back(1, ends[1].startReceive(group % 2 * 2, group / 2, in[i]));
    }
  for (size_t i = 6; i < 12; ++i)
    send(i);
  std::reverse(tickets.begin(), tickets.end());
  for (auto [device, ticket] : tickets)
    EXPECT_OK(ends[device].wait(ticket).error);
  EXPECT_EQ(received, values);
}

TEST(LocalTransfers, EndsThatDisagree) {
  Ends ends(2);
  std::vector<int> two(2), three(3);
  std::vector<TransferTensor> out = {tensorOf(two), tensorOf(two)};
  std::vector<TransferTensor> other = {tensorOf(two), tensorOf(three)}, less = {tensorOf(two)};
  auto sent = ends[0].startSend(1, 0, out), received = ends[1].startReceive(0, 0, other);
  const char *sizes = "tensor 1 of the message has 8 bytes, its receiver expects 12";
  EXPECT_ERROR(ends[0].wait(sent).error, sizes);
  EXPECT_ERROR(ends[1].wait(received).error, sizes);
  received = ends[1].startReceive(0, 0, less);
  sent = ends[0].startSend(1, 0, out);
  const char *counts = "the message has 2 tensors, its receiver expects 1";
  EXPECT_ERROR(ends[0].wait(sent).error, counts);
  EXPECT_ERROR(ends[1].wait(received).error, counts);
}

TEST(LocalTransfers, AnAbortWakesWhoWaits) {
  Ends ends(2);
  std::vector<int> values(4);
  std::vector<TransferTensor> tensors = {tensorOf(values)};
  auto wait = [&](size_t device, Transfers::Ticket ticket) {
    return std::async(std::launch::async, [&ends, device, ticket] {
      return messageOf(ends[device].wait(ticket).error);
    });
  };
  auto receiver = wait(1, ends[1].startReceive(0, 0, tensors));
  auto sender = wait(0, ends[0].startSend(1, 1, tensors)); // nobody receives on this channel
  ends[0].abort();
  EXPECT_EQ(receiver.get(), "another device failed");
  EXPECT_EQ(sender.get(), "another device failed");
  EXPECT_ERROR(ends[1].wait(ends[1].startReceive(0, 1, tensors)).error, "another device failed");
}

TEST(LocalTransfers, DoNotWaitForCollectives) {
  // Device 0 is in a collective that device 1 comes to only after it has a message of device 0.
  auto world = std::make_shared<LocalWorld>(Mesh({{"pp", 2, false, true}}));
  LocalTransfers first(world, 0), second(world, 1);
  LocalCommunicator firstEnd(world, 0), secondEnd(world, 1);
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {4}});
  spec.members = 2;
  auto reduce = [&](LocalCommunicator &end) {
    std::vector<float> values(4, 1);
    auto group = *end.openGroup({"pp"});
    EXPECT_OK(end.run(group, spec, values.data(), values.data()));
    return values.front();
  };
  std::vector<int> from = {5}, to = {0};
  std::vector<TransferTensor> out = {tensorOf(from)}, in = {tensorOf(to)};
  auto sent = first.startSend(1, 0, out);
  auto blocked = std::async(std::launch::async, [&] { return reduce(firstEnd); });
  EXPECT_OK(second.wait(second.startReceive(0, 0, in)).error);
  EXPECT_EQ(to.front(), 5);
  EXPECT_EQ(reduce(secondEnd), 2);
  EXPECT_EQ(blocked.get(), 2);
  EXPECT_OK(first.wait(sent).error);
}

TEST(LocalTransfers, ManyThreadsAndMessages) {
  // Every device sends a number of messages to every other one, on two channels, and checks what it
  // receives. Four messages of each channel are on their way at a time.
  constexpr int64_t devices = 4;
  constexpr int messages = 400, window = 4, words = 50;
  Ends ends(devices);
  auto valueOf = [](int64_t from, int64_t to, int64_t channel, int message, int word) {
    return static_cast<int>((((from * 4 + to) * 2 + channel) * messages + message) * words + word);
  };
  struct Stream {
    bool sends;
    int64_t peer;
    uint32_t channel;
    std::vector<std::vector<int>> values = std::vector(window, std::vector<int>(words));
    std::vector<TransferTensor> tensors = std::vector<TransferTensor>(window);
    std::vector<Transfers::Ticket> tickets = std::vector<Transfers::Ticket>(window);
  };
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int64_t device = 0; device < devices; ++device)
    threads.emplace_back([&, device] {
      std::vector<Stream> streams;
      for (int64_t peer = 0; peer < devices; ++peer)
        for (uint32_t channel : {0u, 1u})
          for (bool sends : {true, false})
            if (peer != device) {
              Stream &stream = streams.emplace_back();
              stream.sends = sends;
              stream.peer = peer;
              stream.channel = channel;
            }
      LocalTransfers &end = ends[static_cast<size_t>(device)];
      auto finish = [&](Stream &stream, int message) {
        size_t slot = static_cast<size_t>(message) % window;
        if (end.wait(stream.tickets[slot]).error)
          ++wrong;
        for (int word = 0; word < words && !stream.sends; ++word)
          if (stream.values[slot][static_cast<size_t>(word)] !=
              valueOf(stream.peer, device, stream.channel, message, word))
            ++wrong;
      };
      for (int message = 0; message < messages + window; ++message)
        for (Stream &stream : streams) {
          size_t slot = static_cast<size_t>(message) % window;
          if (message >= window)
            finish(stream, message - window);
          if (message >= messages)
            continue;
          std::vector<int> &values = stream.values[slot];
          for (int word = 0; word < words; ++word)
            values[static_cast<size_t>(word)] =
                stream.sends ? valueOf(device, stream.peer, stream.channel, message, word) : -1;
          stream.tensors[slot] = tensorOf(values);
          std::span<const TransferTensor> tensors(&stream.tensors[slot], 1);
          stream.tickets[slot] = stream.sends
                                     ? end.startSend(stream.peer, stream.channel, tensors)
                                     : end.startReceive(stream.peer, stream.channel, tensors);
        }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  for (size_t device = 0; device < devices; ++device)
    EXPECT_EQ(ends[device].sentBytes(), 3u * 2 * messages * words * sizeof(int));
}
