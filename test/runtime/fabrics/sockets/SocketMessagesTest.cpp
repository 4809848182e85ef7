//===- SocketMessagesTest.cpp - Messages over TCP --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Links and failures of sockets. The conformance tests (Sockets) test the fabric on them.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/sockets/SocketMessages.h"

#include "runtime/fabrics/sockets/SocketLink.h"
#include "test/lib/fabrics/ThreadMessages.h"
#include "test/lib/plans/Expect.h"

#include <algorithm>
#include <future>
#include <gtest/gtest.h>
#include <numeric>
#include <sys/socket.h>
#include <thread>

namespace socketMessagesTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// Bytes in some parts with gaps between them.
struct Scattered {
  Scattered(const std::vector<size_t> &sizes, int first) {
    size_t at = 0;
    for (size_t size : sizes)
      at += size + 3;
    bytes.resize(at, std::byte{0xEE});
    at = 0;
    for (size_t size : sizes) {
      parts.push_back({bytes.data() + at, size});
      for (size_t i = 0; i < size && first >= 0; ++i)
        bytes[at + i] = std::byte(static_cast<unsigned char>(first++ * 7));
      at += size + 3;
    }
  }

  std::vector<std::byte> joined() const {
    std::vector<std::byte> all;
    for (const MessagePart &part : parts)
      all.insert(all.end(), part.data, part.data + part.bytes);
    return all;
  }

  std::vector<std::byte> bytes;
  std::vector<MessagePart> parts;
};

class SocketMessagesTest : public ::testing::Test {
protected:
  void open(int64_t processes) { ends = openSocketMessagesHere(processes); }
  void TearDown() override {
    std::vector<std::future<void>> closed;
    for (auto &end : ends)
      closed.push_back(std::async(std::launch::async, [&end] { end.reset(); }));
  }

  std::vector<std::shared_ptr<Messages>> ends;
};

/// The ends of two links that are connected.
struct Pair {
  Pair() {
    int files[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, files), 0);
    first = std::make_unique<SocketLink>(1, OwnedFile(files[0]), [](const Error &) {});
    other = OwnedFile(files[1]);
  }
  std::unique_ptr<SocketLink> first;
  OwnedFile other;
};

} // namespace

/// Small ones, ones that are offered first, and more parts than a call of the system takes; the
/// receiver comes before the sender and after it; and to the own process.
TEST_F(SocketMessagesTest, PartsOfAnySizeGoAround) {
  std::vector<size_t> many(300, 5000);
  for (int64_t processes : {2, 3}) {
    open(processes);
    for (int64_t to : {int64_t{0}, processes - 1})
      for (bool receiverIsFirst : {false, true})
        for (const auto &[sizes, places] :
             {std::pair<std::vector<size_t>, std::vector<size_t>>{{5}, {5}},
              {{}, {}},
              {{1, 0, 3}, {4}},
              {{700001}, {1, 700000}},
              {many, {1500000}},
              {{3000000}, many},
              {{5000000, 7}, {3000000, 2000007}}}) {
          std::vector<size_t> given = places == many ? std::vector<size_t>{1500000} : sizes;
          Scattered sent(given, 1), received(places, -1);
          auto sender = ends.front()->openBatch(),
               receiver = ends[static_cast<size_t>(to)]->openBatch();
          if (receiverIsFirst) {
            ASSERT_OK(receiver->receive(0, 5, received.parts));
          }
          ASSERT_OK(sender->send(to, 5, sent.parts));
          if (!receiverIsFirst) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            ASSERT_OK(receiver->receive(0, 5, received.parts));
          }
          auto done = std::async(std::launch::async, [&] { return sender->wait(); });
          ASSERT_OK(receiver->wait());
          ASSERT_OK(done.get());
          EXPECT_TRUE(received.joined() == sent.joined()) << given.size() << " " << places.size();
          for (size_t i = 0; i < 3 && !received.bytes.empty(); ++i) // between parts, nothing
            EXPECT_EQ(received.bytes[received.bytes.size() - 1 - i], std::byte{0xEE});
        }
    TearDown();
  }
}

TEST_F(SocketMessagesTest, TagsKeepTheirOwnOrder) {
  open(2);
  // By turns small and offered.
  std::vector<std::vector<int>> sent, received;
  for (int i = 0; i < 20; ++i) {
    sent.emplace_back(i % 3 == 0 ? 400000 : 10, i);
    received.emplace_back(sent.back().size(), -1);
  }
  auto part = [](std::vector<int> &values) {
    return MessagePart{reinterpret_cast<std::byte *>(values.data()), values.size() * sizeof(int)};
  };
  auto sender = ends[0]->openBatch(), receiver = ends[1]->openBatch();
  for (size_t i = 0; i < 20; ++i) {
    MessagePart one = part(sent[i]);
    ASSERT_OK(sender->send(1, static_cast<int64_t>(i % 2), {&one, 1}));
  }
  for (size_t tag : {1, 0})
    for (size_t i = tag; i < 20; i += 2) {
      MessagePart one = part(received[i]);
      ASSERT_OK(receiver->receive(0, static_cast<int64_t>(tag), {&one, 1}));
    }
  ASSERT_OK(receiver->wait());
  ASSERT_OK(sender->wait());
  EXPECT_TRUE(received == sent);
}

TEST_F(SocketMessagesTest, SizesThatDisagree) {
  open(2);
  std::vector<std::byte> bytes(4 << 20), place(4 << 20);
  for (size_t sent : {size_t{8}, size_t{100000}, size_t{3} << 20})
    for (size_t expected : {sent - 4, sent + 4})
      for (bool receiverIsFirst : {false, true}) {
        auto sender = ends[0]->openBatch(), receiver = ends[1]->openBatch();
        MessagePart from{bytes.data(), sent}, to{place.data(), expected};
        if (receiverIsFirst) {
          ASSERT_OK(receiver->receive(0, 3, {&to, 1}));
        }
        ASSERT_OK(sender->send(1, 3, {&from, 1}));
        if (!receiverIsFirst) {
          ASSERT_OK(receiver->receive(0, 3, {&to, 1}));
        }
        EXPECT_ERROR(receiver->wait(), "process 0: the message has " + std::to_string(sent) +
                                           " bytes, its receiver expects " +
                                           std::to_string(expected));
        EXPECT_OK(sender->wait());
        // And what follows arrives.
        MessagePart next{bytes.data(), 7}, nextPlace{place.data(), 7};
        ASSERT_OK(sender->send(1, 3, {&next, 1}));
        ASSERT_OK(receiver->receive(0, 3, {&nextPlace, 1}));
        EXPECT_OK(receiver->wait());
        EXPECT_OK(sender->wait());
      }
}

TEST_F(SocketMessagesTest, AnAbortIsHeardByAll) {
  open(3);
  std::vector<std::promise<std::string>> heard(3);
  for (size_t end = 0; end < 3; ++end)
    ends[end]->onAbort([&, end](const Error &reason) { heard[end].set_value(reason.message); });
  auto batch = ends[0]->openBatch();
  std::vector<std::byte> place(8);
  MessagePart part{place.data(), 8};
  ASSERT_OK(batch->receive(2, 9, {&part, 1}));
  ends[2]->abort(Error{"the disk is full"});
  ends[2]->abort(Error{"something later"});
  EXPECT_ERROR(batch->wait(), "the disk is full");
  EXPECT_TRUE(batch->cancel());
  for (auto &each : heard)
    EXPECT_EQ(each.get_future().get(), "the disk is full");
  for (auto &end : ends)
    end->onAbort(nullptr);
}

/// Messages that were written before are delivered; waiting ones fail, and name the process.
TEST(SocketLink, TheOtherEndIsKilled) {
  Pair pair;
  std::vector<std::byte> place(4 << 20);
  MessagePart small{place.data(), 8}, large{place.data(), place.size()};
  auto sent = std::make_shared<SocketOperation>(std::span(&large, 1));
  auto received = std::make_shared<SocketOperation>(std::span(&small, 1));
  pair.first->send(sent);
  pair.first->receive(received);
  pair.first->move();
  EXPECT_EQ(received->state, SocketOperation::UnderWay);
  pair.other = OwnedFile();
  pair.first->move();
  for (const auto &operation : {sent, received}) {
    EXPECT_EQ(operation->state, SocketOperation::Failed);
    EXPECT_EQ(operation->error,
              "process 1: its connection was closed: it was killed, or it crashed");
  }
  auto later = std::make_shared<SocketOperation>(std::span(&small, 1));
  pair.first->receive(later);
  EXPECT_EQ(later->state, SocketOperation::Failed);
  EXPECT_TRUE(pair.first->isOver());
}

TEST(SocketLink, WhatIsNoMessage) {
  Pair pair;
  std::vector<std::byte> place(8);
  MessagePart part{place.data(), 8};
  auto received = std::make_shared<SocketOperation>(std::span(&part, 1));
  pair.first->receive(received);
  std::string garbage(64, 'x');
  ASSERT_EQ(::send(pair.other.get(), garbage.data(), garbage.size(), 0), 64);
  pair.first->move();
  EXPECT_EQ(received->state, SocketOperation::Failed);
  EXPECT_NE(received->error.find("process 1: it sends what is no message"), std::string::npos);
}

/// Bytes after a part of a message would be taken for the rest of it.
TEST(SocketLink, NothingIsSentAfterAPart) {
  Pair pair;
  std::vector<std::byte> memory(1 << 20);
  MessagePart large{memory.data(), memory.size()}, small{memory.data(), 8};
  auto sent = std::make_shared<SocketOperation>(std::span(&large, 1));
  int few = 4096;
  ASSERT_EQ(setsockopt(pair.first->file(), SOL_SOCKET, SO_SNDBUF, &few, sizeof(few)), 0);
  pair.first->send(sent);
  ASSERT_EQ(sent->state, SocketOperation::UnderWay);
  pair.first->cancel(sent);
  auto later = std::make_shared<SocketOperation>(std::span(&small, 1));
  pair.first->send(later);
  EXPECT_EQ(later->state, SocketOperation::Failed);
  EXPECT_EQ(later->error, "process 1: a message to it was given up before all of it was sent");
}

/// After an abort nothing writes to the memory of what was given up.
TEST(SocketLink, NothingIsWrittenAfterCancel) {
  Pair one;
  SocketLink sender(0, std::move(one.other), [](const Error &) {});
  std::vector<std::byte> from(512 << 10, std::byte{1}), to(512 << 10, std::byte{0});
  MessagePart fromPart{from.data(), from.size()}, toPart{to.data(), to.size()};
  auto received = std::make_shared<SocketOperation>(std::span(&toPart, 1));
  auto sent = std::make_shared<SocketOperation>(std::span(&fromPart, 1));
  one.first->receive(received);
  sender.send(sent); // what the socket takes
  one.first->cancel(received);
  for (int i = 0; i < 1000 && sent->state == SocketOperation::UnderWay; ++i) {
    one.first->move();
    sender.move();
  }
  EXPECT_EQ(sent->state, SocketOperation::Done);
  one.first->move();
  EXPECT_TRUE(std::ranges::all_of(to, [](std::byte byte) { return byte == std::byte{0}; }));
}

} // namespace socketMessagesTest
