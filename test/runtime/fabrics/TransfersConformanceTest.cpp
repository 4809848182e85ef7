//===- TransfersConformanceTest.cpp - Messages of every fabric ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// On all fabrics.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/Transfers.h"

#include "test/lib/files/Sanitizer.h"
#include "test/lib/plans/Expect.h"
#include "test/runtime/fabrics/Network.h"

#include <array>
#include <atomic>
#include <deque>
#include <fmt/format.h>
#include <future>
#include <gtest/gtest.h>
#include <thread>

namespace transfersConformanceTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// The ends of some devices and a queue of each.
struct Ends {
  Ends(const FabricUnderTest &tested, int64_t numDevices) {
    Mesh mesh({{"pp", numDevices, false, true}});
    fabric = std::move(*tested(mesh));
    devices = tested.openDevices(mesh);
    for (int64_t device = 0; device < numDevices; ++device) {
      Device &own = *devices[static_cast<size_t>(device)];
      queues.push_back(std::move(*own.openQueue(QueueKind::Compute)));
      ends.push_back(std::move(*fabric->openTransfers(device, own)));
      tensors.emplace_back(own, *queues.back());
    }
    for (int64_t from = 0; from < numDevices; ++from)
      for (int64_t to = 0; to < numDevices; ++to) {
        if (from == to)
          continue;
        EXPECT_OK(ends[static_cast<size_t>(from)]->prepare(to, /*sends=*/true));
        EXPECT_OK(ends[static_cast<size_t>(to)]->prepare(from, /*sends=*/false));
      }
    EXPECT_OK(fabric->connect());
    messages.resize(ends.size());
  }
  ~Ends() {
    fabric->abort(Error{"the test is over"});
    for (auto &queue : queues)
      (void)queue->finish();
    for (auto &end : ends)
      end->drain();
  }

  Transfers::Ticket send(size_t device, int64_t peer, std::span<const TransferTensor> given) {
    return start(device, peer, given, /*sends=*/true);
  }
  Transfers::Ticket receive(size_t device, int64_t peer, std::span<const TransferTensor> given) {
    return start(device, peer, given, /*sends=*/false);
  }
  TransferResult wait(size_t device, Transfers::Ticket ticket) {
    TransferResult result;
    MaybeError error = ends[device]->enqueueWait(*queues[device], ticket, result);
    if (!error)
      error = queues[device]->finish();
    EXPECT_EQ(messageOf(error), messageOf(result.error));
    auto message = std::find_if(messages[device].begin(), messages[device].end(),
                                [&](const Message &each) { return each.ticket == ticket; });
    if (message == messages[device].end())
      return result;
    if (!message->sends && !error) {
      for (const TransferTensor &tensor : message->given)
        EXPECT_OK(tensors[device].take(tensor.data, tensor.bytes));
    }
    messages[device].erase(message);
    return result;
  }

  std::shared_ptr<Fabric> fabric;
  std::vector<std::unique_ptr<Device>> devices;
  std::deque<DeviceTensors> tensors;
  std::vector<std::unique_ptr<Transfers>> ends;
  std::vector<std::unique_ptr<Queue>> queues; // before what they use

private:
  struct Message {
    std::span<const TransferTensor> given; // of the host
    std::vector<TransferTensor> placed;    // on the device
    bool sends;
    Transfers::Ticket ticket = 0;
  };
  std::vector<std::list<Message>> messages; // of each device

  Transfers::Ticket start(size_t device, int64_t peer, std::span<const TransferTensor> given,
                          bool sends) {
    Message &message = messages[device].emplace_back(Message{given, {}, sends});
    for (const TransferTensor &tensor : given) {
      message.placed.push_back({tensors[device].place(tensor.data, tensor.bytes), tensor.bytes});
      if (sends) {
        EXPECT_OK(tensors[device].give(tensor.data, tensor.bytes));
      }
    }
    return message.ticket = *ends[device]->start(*queues[device], peer, message.placed, sends);
  }
};

class TransfersConformance : public FabricConformance {
protected:
  /// Whether a send lasts until its message has been received, and fails with it. The fabric of the
  /// tests takes a copy, and so may a network between processes.
  static bool sendsWait() { return is("Local") || is("LocalOnCuda"); }
};

template <typename T> TransferTensor tensorOf(std::vector<T> &values) {
  return {values.data(), values.size() * sizeof(T)};
}

} // namespace

TEST_P(TransfersConformance, WhicheverEndComesFirst) {
  Ends ends(fabric(), 2);
  std::vector<int> from = {1, 2, 3}, other = {4}, none;
  for (bool sendFirst : {true, false}) {
    std::vector<int> to(3), otherTo(1), noneTo;
    std::vector<TransferTensor> out = {tensorOf(from), tensorOf(none), tensorOf(other)};
    std::vector<TransferTensor> in = {tensorOf(to), tensorOf(noneTo), tensorOf(otherTo)};
    Transfers::Ticket sent = 0, received = 0;
    if (sendFirst)
      sent = ends.send(0, 1, out);
    received = ends.receive(1, 0, in);
    if (!sendFirst)
      sent = ends.send(0, 1, out);
    TransferResult result = ends.wait(1, received);
    EXPECT_OK(result.error);
    EXPECT_GE(result.seconds(), 0);
    EXPECT_OK(ends.wait(0, sent).error);
    EXPECT_EQ(to, from);
    EXPECT_EQ(otherTo, other);
  }
  EXPECT_EQ(ends.ends[0]->sentBytes(), 2u * 16);
  EXPECT_EQ(ends.ends[1]->sentBytes(), 0u);
}

TEST_P(TransfersConformance, MessagesOfAPairKeepTheirOrder) {
  // Six messages of one size from each of devices 0 and 2; the first half is sent before any is
  // received. They are waited for from the last to the first.
  Ends ends(fabric(), 3);
  std::vector<std::vector<int>> values, received(12, std::vector<int>(1));
  std::vector<std::vector<TransferTensor>> out(12), in(12);
  for (int i = 0; i < 12; ++i)
    values.push_back({i});
  std::vector<std::pair<size_t, Transfers::Ticket>> tickets;
  auto send = [&](size_t i) {
    size_t sender = i % 2 * 2;
    out[i] = {tensorOf(values[i])};
    tickets.emplace_back(sender, ends.send(sender, 1, out[i]));
  };
  for (size_t i = 0; i < 6; ++i)
    send(i);
  for (size_t sender : {2, 0})
    for (size_t i = sender / 2; i < 12; i += 2) {
      in[i] = {tensorOf(received[i])};
      tickets.emplace_back(1, ends.receive(1, int64_t(sender), in[i]));
    }
  for (size_t i = 6; i < 12; ++i)
    send(i);
  std::reverse(tickets.begin(), tickets.end());
  for (auto [device, ticket] : tickets)
    EXPECT_OK(ends.wait(device, ticket).error);
  EXPECT_EQ(received, values);
}

TEST_P(TransfersConformance, EndsThatDisagree) {
  if (is("NcclProcesses"))
    GTEST_SKIP() << kComparedByNobody;
  std::vector<int> two(2), three(3);
  std::vector<TransferTensor> out = {tensorOf(two), tensorOf(two)};
  std::vector<TransferTensor> other = {tensorOf(two), tensorOf(three)}, fewer = {tensorOf(two)};
  for (const auto &[in, problem] :
       {std::pair(other, "tensor 1 of the message has 8 bytes, its receiver expects 12"),
        std::pair(fewer, "the message has 2 tensors, its receiver expects 1")}) {
    Ends ends(fabric(), 2);
    Transfers::Ticket sent = ends.send(0, 1, out);
    // Processes send each other bytes, which belong to no tensor.
    std::string bytes =
        fmt::format("the message has 16 bytes, its receiver expects {}", in.size() == 1 ? 8 : 20);
    EXPECT_ERROR(ends.wait(1, ends.receive(1, 0, in)).error, hasProcesses() ? bytes : problem);
    if (sendsWait()) {
      EXPECT_ERROR(ends.wait(0, sent).error, problem);
    }
  }
}

TEST_P(TransfersConformance, AnAbortWakesWhoWaits) {
  Ends ends(fabric(), 4);
  std::vector<int> values(4), sent(4), late(4);
  std::vector<TransferTensor> in = {tensorOf(values)}, out = {tensorOf(sent)};
  std::vector<TransferTensor> lateIn = {tensorOf(late)};
  auto wait = [&](size_t device, Transfers::Ticket ticket) {
    return std::async(std::launch::async, [&ends, device, ticket] {
      return messageOf(ends.wait(device, ticket).error);
    });
  };
  std::vector<std::future<std::string>> waiting;
  waiting.push_back(wait(1, ends.receive(1, 0, in)));
  Transfers::Ticket unreceived = ends.send(2, 0, out);
  if (sendsWait())
    waiting.push_back(wait(2, unreceived));
  ends.fabric->abort(Error{"no more power"});
  for (std::future<std::string> &each : waiting)
    EXPECT_EQ(each.get(), "another device failed: no more power");
  // A later transfer fails at its start or at its end.
  auto started = ends.ends[3]->start(*ends.queues[3], 0, lateIn, /*sends=*/false);
  std::string error = messageOf(started);
  if (started)
    error = messageOf(ends.wait(3, *started).error);
  EXPECT_EQ(error, "another device failed: no more power");
}

TEST_P(TransfersConformance, DoNotWaitForCollectives) {
  // Device 0 is in a collective that device 1 comes to only after it has a message of device 0.
  Ends ends(fabric(), 2);
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {4}});
  spec.members = 2;
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int64_t device : {0, 1})
    communicators.push_back(std::move(
        *ends.fabric->openCommunicator(device, 0, *ends.devices[static_cast<size_t>(device)])));
  Communicator::Group group = 0;
  for (size_t device : {0, 1}) {
    group = *communicators[device]->openGroup({"pp"});
    EXPECT_OK(communicators[device]->prepare(*ends.queues[device], group, {}));
  }
  EXPECT_OK(ends.fabric->connect());
  auto reduce = [&](size_t device) {
    std::vector<float> values(4, 1);
    size_t bytes = values.size() * sizeof(float);
    void *place = ends.tensors[device].place(values.data(), bytes);
    EXPECT_OK(ends.tensors[device].give(values.data(), bytes));
    CollectiveOperands operands{place, place};
    EXPECT_OK(
        communicators[device]->enqueue(*ends.queues[device], group, {&spec, 1}, {&operands, 1}));
    EXPECT_OK(ends.queues[device]->finish());
    EXPECT_OK(ends.tensors[device].take(values.data(), bytes));
    return values.front();
  };
  std::vector<int> from = {5}, to = {0};
  std::vector<TransferTensor> out = {tensorOf(from)}, in = {tensorOf(to)};
  auto blocked = std::async(std::launch::async, [&] {
    Transfers::Ticket sent = ends.send(0, 1, out);
    float sum = reduce(0);
    EXPECT_OK(ends.wait(0, sent).error);
    return sum;
  });
  EXPECT_OK(ends.wait(1, ends.receive(1, 0, in)).error);
  EXPECT_EQ(to.front(), 5);
  EXPECT_EQ(reduce(1), 2);
  EXPECT_EQ(blocked.get(), 2);
}

TEST_P(TransfersConformance, ManyThreadsAndMessages) {
  // Every device sends a number of messages of many sizes to every other one and checks what it
  // receives. Four messages of each pair are on their way at a time.
  constexpr int64_t devices = 4;
  constexpr int window = 4, words = 50;
  Ends ends(fabric(), devices);
  // The stand-in of CUDA checks all memory after each copy.
  const int messages = ends.devices.front()->isHostMemory() ? 400 : DTC_SANITIZE_THREAD ? 8 : 40;
  auto valueOf = [messages](int64_t from, int64_t to, int message, size_t word) {
    return static_cast<int>(((from * 4 + to) * messages + message) * words) +
           static_cast<int>(word);
  };
  auto wordsOf = [](int message) { return static_cast<size_t>(1 + message * 7 % words); };
  struct Stream {
    bool sends;
    int64_t peer;
    std::array<std::vector<int>, window> values;
    std::array<TransferTensor, window> tensors;
    std::array<Transfers::Ticket, window> tickets;
  };
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int64_t device = 0; device < devices; ++device)
    threads.emplace_back([&, device] {
      auto self = static_cast<size_t>(device);
      std::deque<Stream> streams;
      for (int64_t peer = 0; peer < devices; ++peer)
        for (bool sends : {true, false})
          if (peer != device)
            streams.push_back({sends, peer, {}, {}, {}});
      auto finish = [&](Stream &stream, int message) {
        size_t slot = static_cast<size_t>(message) % window;
        if (ends.wait(self, stream.tickets[slot]).error)
          ++wrong;
        for (size_t word = 0; word < wordsOf(message) && !stream.sends; ++word)
          wrong += stream.values[slot][word] != valueOf(stream.peer, device, message, word);
      };
      for (int message = 0; message < messages + window; ++message)
        for (Stream &stream : streams) {
          size_t slot = static_cast<size_t>(message) % window;
          if (message >= window)
            finish(stream, message - window);
          if (message >= messages)
            continue;
          std::vector<int> &values = stream.values[slot];
          values.assign(wordsOf(message), -1);
          for (size_t word = 0; word < values.size() && stream.sends; ++word)
            values[word] = valueOf(device, stream.peer, message, word);
          stream.tensors[slot] = tensorOf(values);
          std::span<const TransferTensor> tensors(&stream.tensors[slot], 1);
          stream.tickets[slot] = stream.sends ? ends.send(self, stream.peer, tensors)
                                              : ends.receive(self, stream.peer, tensors);
        }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  uint64_t sent = 0;
  for (int message = 0; message < messages; ++message)
    sent += 3 * wordsOf(message) * sizeof(int);
  for (auto &end : ends.ends)
    EXPECT_EQ(end->sentBytes(), sent);
}

INSTANTIATE_FABRIC_CONFORMANCE(TransfersConformance);

} // namespace transfersConformanceTest
