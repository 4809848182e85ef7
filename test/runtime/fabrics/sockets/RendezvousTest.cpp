//===- RendezvousTest.cpp - Rendezvous of processes -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/sockets/Rendezvous.h"

#include "runtime/fabrics/sockets/SocketAddress.h"
#include "test/lib/RandomCases.h"
#include "test/lib/Times.h"
#include "test/lib/fabrics/ThreadMessages.h"
#include "test/lib/plans/Expect.h"

#include <fmt/format.h>
#include <future>
#include <gtest/gtest.h>
#include <iostream>
#include <netinet/in.h>
#include <poll.h>
#include <random>
#include <sys/socket.h>
#include <thread>

namespace rendezvousTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
using namespace std::chrono_literals;

namespace {

class RendezvousTest : public ::testing::Test {
protected:
  RendezvousOptions options(int64_t process, int64_t count) const {
    return {process, count, "127.0.0.1", port, "key", 20000ms};
  }
  static std::future<Expected<Rendezvous>> start(const RendezvousOptions &options) {
    return std::async(std::launch::async, meet, options);
  }
  /// A connection to process 0, once it listens.
  OwnedFile connectToFirst() const {
    sockaddr_in where = {};
    where.sin_family = AF_INET;
    where.sin_port = htons(static_cast<uint16_t>(port));
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 1000; ++i) {
      OwnedFile file(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (connect(file.get(), reinterpret_cast<sockaddr *>(&where), sizeof(where)) == 0)
        return file;
      std::this_thread::sleep_for(10ms);
    }
    return {};
  }
  static std::string answer(int file) {
    std::string all;
    char bytes[1000];
    for (ssize_t count = 0; (count = recv(file, bytes, sizeof(bytes), 0)) > 0;)
      all.append(bytes, static_cast<size_t>(count));
    return all;
  }

  const int port = freePort();
};

} // namespace

TEST_F(RendezvousTest, EachIsConnectedToEach) {
  for (int64_t count : {2, 5}) {
    std::vector<std::future<Expected<Rendezvous>>> started;
    for (int64_t process = count - 1; process >= 0; --process) // the first one comes last
      started.push_back(start(options(process, count)));
    for (int64_t process = count - 1; process >= 0; --process) {
      Expected<Rendezvous> met = started[static_cast<size_t>(count - 1 - process)].get();
      ASSERT_OK(met);
      ASSERT_EQ(std::ssize(met->connections), count);
      for (int64_t other = 0; other < count; ++other) {
        EXPECT_EQ(static_cast<bool>(met->connections[static_cast<size_t>(other)]),
                  other != process);
        EXPECT_EQ(met->hosts[static_cast<size_t>(other)], met->hosts.front());
        EXPECT_FALSE(met->hosts.front().empty());
      }
    }
  }
}

TEST_F(RendezvousTest, StrangersAreNotLetIn) {
  auto first = start(options(0, 2));
  std::vector<OwnedFile> silent;
  for (int i = 0; i < 5; ++i)
    silent.push_back(connectToFirst());
  OwnedFile noise = connectToFirst();
  std::string bytes = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
  ASSERT_EQ(send(noise.get(), bytes.data(), bytes.size(), 0), std::ssize(bytes));
  EXPECT_EQ(answer(noise.get()), "");
  OwnedFile large = connectToFirst();
  ASSERT_EQ(send(large.get(), "ffffffff", 8, 0), 8);
  EXPECT_EQ(answer(large.get()), "");
  RendezvousOptions other = options(1, 2);
  other.key = "another";
  EXPECT_ERROR(start(other).get(), "it has another key");
  EXPECT_ERROR(start(options(1, 3)).get(), "it was told of 3 processes, process 0 of 2");
  EXPECT_ERROR(start(options(2, 2)).get(), "there is no process 2 of 2; RANK is from 0 to 1");
  auto second = start(options(1, 2));
  EXPECT_OK(second.get());
  EXPECT_OK(first.get());
}

TEST_F(RendezvousTest, KeysThatDoNotComeThroughAreRefusedAtOnce) {
  for (int process : {0, 1}) {
    RendezvousOptions large = options(process, 2), lines = large;
    large.key = std::string(kMostKeyBytes + 1, 'k');
    EXPECT_ERROR(meet(large), "DTC_RUN_KEY has 2049 bytes, expected at most 2048");
    lines.key = "two\nlines";
    EXPECT_ERROR(meet(lines), "DTC_RUN_KEY has more than one line, expected one");
  }
  // The largest key does come through.
  RendezvousOptions first = options(0, 2), second = options(1, 2);
  first.key = second.key = std::string(kMostKeyBytes, 'k');
  auto met = start(first);
  EXPECT_OK(start(second).get());
  EXPECT_OK(met.get());
}

TEST_F(RendezvousTest, RandomMessages) {
  std::mt19937_64 random(dtc::test::randomSeed());
  auto number = [&](uint64_t below) { return random() % below; };
  auto first = start(options(0, 2));
  for (int i = 0; i < 10000; ++i) {
    OwnedFile stranger = connectToFirst();
    ASSERT_TRUE(stranger);
    // All but the key may be right.
    std::string bytes =
        framed(fmt::format("dtc-run 1\n{}\n{}\n{}\nhost\n127.0.0.1\n{}\n", number(3), number(3),
                           std::string(number(40), 'k'), number(65536)));
    for (uint64_t changes = number(4); changes > 0; --changes)
      bytes[number(bytes.size())] = static_cast<char>(random());
    if (number(3) == 0)
      bytes.resize(number(bytes.size()));
    if (number(3) == 0)
      for (uint64_t more = number(400); more > 0; --more)
        bytes.push_back(static_cast<char>(random()));
    (void)send(stranger.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  auto second = start(options(1, 2));
  EXPECT_OK(second.get());
  EXPECT_OK(first.get());
}

TEST_F(RendezvousTest, ListensOnlyWhereAsked) {
  auto first = start(options(0, 2));
  ASSERT_TRUE(connectToFirst());
  // All of 127.0.0.0/8 is this host.
  EXPECT_ERROR(connectTo("127.0.0.2", port, std::chrono::steady_clock::now() + 100ms), "refused");
  EXPECT_OK(start(options(1, 2)).get());
  EXPECT_OK(first.get());
}

TEST_F(RendezvousTest, TwoOfOneNumber) {
  auto first = start(options(0, 3));
  auto second = start(options(1, 3)), third = start(options(1, 3));
  // One of them is refused before all have come.
  while (second.wait_for(1ms) != std::future_status::ready &&
         third.wait_for(1ms) != std::future_status::ready)
    ;
  auto last = start(options(2, 3));
  EXPECT_OK(first.get());
  // Whichever came first is the one.
  Expected<Rendezvous> a = second.get(), b = third.get();
  EXPECT_NE(static_cast<bool>(a), static_cast<bool>(b));
  EXPECT_ERROR(a ? b : a, "there is another process 1; each needs a RANK of its own");
  EXPECT_OK(last.get());
}

TEST_F(RendezvousTest, ThoseThatDoNotComeAreNamed) {
  // The second one may come too late.
  EXPECT_TRUE(dtc::test::passesWithMoreTime([&](int seconds) {
    RendezvousOptions first = options(0, 4), second = options(2, 4);
    first.timeout = 1s * seconds;
    auto started = start(first), told = start(second);
    Expected<Rendezvous> found = started.get(), other = told.get();
    EXPECT_OK(found);
    if (!other || !found) {
      std::cerr << messageOf(other) << "\n";
      return false;
    }
    EXPECT_EQ(other->givenUp, found->givenUp);
    std::cerr << found->givenUp << "\n";
    return found->givenUp.starts_with(
        fmt::format("2 of 4 processes have not come to 127.0.0.1 port {} within {} s, among them "
                    "[1, 3]",
                    port, seconds));
  }));
}

TEST_F(RendezvousTest, WhereNobodyListens) {
  RendezvousOptions alone = options(1, 2);
  alone.timeout = 300ms;
  EXPECT_ERROR(meet(alone), "process 1 cannot reach process 0 at 127.0.0.1");
  alone.address = "no-such-host.invalid";
  EXPECT_ERROR(meet(alone), "no-such-host.invalid");
}

TEST_F(RendezvousTest, APortThatIsTaken) {
  auto listener = ControlListener::open("127.0.0.1");
  ASSERT_OK(listener);
  RendezvousOptions first = options(0, 2);
  first.port = std::stoi(listener->endpoint.substr(listener->endpoint.find(' ') + 1));
  EXPECT_ERROR(meet(first), "process 0 cannot listen at 127.0.0.1");
}

} // namespace rendezvousTest
