//===- ControlConnectionTest.cpp - Tests of the control connection --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The ends of a run are in this process. Some are made by hand, of sockets, and behave like a lost
// process.
//
//===----------------------------------------------------------------------===//

#include "runtime/control/ControlConnection.h"

#include "runtime/control/ControlLoop.h"
#include "test/lib/RandomCases.h"

#include <atomic>
#include <condition_variable>
#include <fmt/format.h>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <mutex>
#include <poll.h>
#include <random>
#include <set>
#include <sys/socket.h>
#include <thread>

namespace controlConnectionTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace std::chrono_literals;

namespace {

/// More than any test takes.
constexpr auto kLong = 120s;

/// An end, and what it was told.
struct End {
  std::unique_ptr<ControlConnection> connection;
  std::mutex mutex;
  std::vector<std::string> spoken, ended;
  std::atomic<int64_t> point = 1; // that it has come to

  size_t timesEnded() {
    std::lock_guard lock(mutex);
    return ended.size();
  }
};

class ControlConnectionTest : public ::testing::Test {
protected:
  /// Opens the ends of all processes but those that are made by hand.
  void open(int64_t processes, const std::set<int64_t> &byHand = {},
            std::chrono::milliseconds timeout = 20s) {
    count = processes;
    given = 0;
    ends.clear();
    texts.resize(static_cast<size_t>(processes));
    ends.resize(static_cast<size_t>(processes));
    for (int64_t process : byHand) {
      auto listener = ControlListener::open("127.0.0.1");
      ASSERT_TRUE(listener);
      std::string secret = *randomSecret();
      give(process, ControlMember{listener->endpoint, host(process), secret}.encode());
      listeners.emplace(process, std::move(*listener));
    }
    std::vector<std::thread> threads;
    for (int64_t process = 0; process < processes; ++process)
      if (!byHand.count(process))
        threads.emplace_back([this, process, timeout] { openOne(process, timeout); });
    for (std::thread &thread : threads)
      thread.join();
  }

  static std::string host(int64_t process) { return fmt::format("host{}", process); }
  ControlMember member(int64_t process) {
    return *ControlMember::decode(texts[static_cast<size_t>(process)]);
  }
  End &end(int64_t process) { return *ends[static_cast<size_t>(process)]; }

  /// A connection to a process, and a hello on it.
  ControlSocket connect(int64_t to) {
    auto socket = ControlSocket::connect(member(to).endpoint);
    EXPECT_TRUE(socket);
    return std::move(*socket);
  }
  ControlSocket hello(int64_t from, int64_t to = 0) {
    ControlSocket socket = connect(to);
    socket.send({ControlFrame::Hello, false, from, member(0).secret});
    flush(socket);
    return socket;
  }
  static void flush(ControlSocket &socket) {
    while (socket.hasOutput() && socket.flush()) {
      pollfd file{socket.file(), POLLOUT, 0};
      poll(&file, 1, 100);
    }
  }
  /// Waits until the other end has said something, or has closed the connection.
  static bool hears(ControlSocket &socket) {
    pollfd file{socket.file(), POLLIN, 0};
    EXPECT_EQ(poll(&file, 1, 120000), 1);
    return socket.receive();
  }

  /// The end of the run, which is the same for all that are not made by hand; `speaker` alone says
  /// so.
  RunEnd awaitEnd(int64_t speaker) {
    RunEnd reason;
    for (int64_t process = 0; process < count; ++process)
      if (ends[static_cast<size_t>(process)]) {
        auto found = end(process).connection->awaitEnd(kLong);
        EXPECT_TRUE(found) << process;
        if (!found)
          continue;
        if (process >= speaker && reason.reason.empty())
          reason = *found;
        EXPECT_EQ(found->reason, reason.reason) << process;
        EXPECT_EQ(found->hasLostProcess, reason.hasLostProcess) << process;
        end(process).connection.reset(); // all hooks have run
        EXPECT_EQ(end(process).ended.size(), 1u) << process;
        EXPECT_EQ(end(process).spoken.size(), process == speaker ? 1u : 0u) << process;
      }
    return reason;
  }
  /// Nobody has noticed anything, and the connection works.
  void expectAlive() {
    for (auto &each : ends)
      if (each) {
        EXPECT_EQ(each->timesEnded(), 0u);
      }
    end(count - 1).connection->report("the last word");
    EXPECT_EQ(firstLine(awaitEnd(0).reason),
              fmt::format("process {} on {}: the last word", count - 1, host(count - 1)));
  }
  static std::string firstLine(const std::string &text) { return text.substr(0, text.find('\n')); }

  std::map<int64_t, ControlListener> listeners; // of those that are made by hand
  std::atomic<bool> inStep = true;
  std::function<void()> onDescribe; // on the thread of each connection

private:
  void give(int64_t process, const std::string &text) {
    std::lock_guard lock(mutex);
    texts[static_cast<size_t>(process)] = text;
    ++given;
    changed.notify_all();
  }
  void openOne(int64_t process, std::chrono::milliseconds timeout) {
    auto made = std::make_unique<End>();
    End *own = made.get();
    ControlOptions options;
    options.isOneHost = true;
    options.heartbeatTimeout = timeout;
    ControlHooks hooks;
    hooks.describe = [this, process] {
      if (onDescribe)
        onDescribe();
      return inStep ? fmt::format("place {}", process) : std::string();
    };
    hooks.point = [own] { return own->point.load(); };
    hooks.speak = [own](const RunEnd &end) {
      std::lock_guard lock(own->mutex);
      own->spoken.push_back(end.reason);
    };
    hooks.end = [own](const RunEnd &end) {
      std::lock_guard lock(own->mutex);
      own->ended.push_back(end.reason);
    };
    auto opened = ControlConnection::open(process, host(process), options, hooks,
                                          [&](const std::string &text) {
                                            give(process, text);
                                            std::unique_lock lock(mutex);
                                            changed.wait(lock, [&] { return given == count; });
                                            return Expected<std::vector<std::string>>(texts);
                                          });
    ASSERT_TRUE(opened) << opened.error().message;
    made->connection = std::move(*opened);
    std::lock_guard lock(mutex);
    ends[static_cast<size_t>(process)] = std::move(made);
  }

  int64_t count = 0, given = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> texts;
  std::vector<std::unique_ptr<End>> ends;
};

} // namespace

TEST_F(ControlConnectionTest, GoodbyeIsNoAlarm) {
  for (int64_t last : {0, 2}) {
    open(3, {}, 2000ms);
    end(2 - last).connection.reset();
    end(1).connection.reset();
    // Those that are gone are silent.
    std::this_thread::sleep_for(3000ms);
    for (int64_t process = 0; process < 3; ++process)
      EXPECT_EQ(end(process).timesEnded(), 0u) << process << " without " << last;
  }
}

TEST_F(ControlConnectionTest, ErrorEndsAll) {
  open(4);
  end(2).connection->report("the disk is full");
  RunEnd reason = awaitEnd(/*speaker=*/0);
  EXPECT_FALSE(reason.hasLostProcess);
  EXPECT_EQ(reason.reason, "process 2 on host2: the disk is full\n  process 0 on host0: place 0\n"
                           "  process 1 on host1: place 1\n  process 3 on host3: place 3");
}

TEST_F(ControlConnectionTest, ErrorsOfManyAreOneMessage) {
  open(5);
  for (int64_t process = 4; process >= 0; --process)
    end(process).connection->report("no such file");
  EXPECT_EQ(firstLine(awaitEnd(/*speaker=*/0).reason), "no such file");
}

/// The first process takes longer to find what the others have found.
TEST_F(ControlConnectionTest, TheFirstProcessIsWaitedFor) {
  inStep = false;
  open(3);
  end(2).connection->report("no such file", 1);
  end(1).connection->report("no such file", 1);
  std::this_thread::sleep_for(1500ms); // longer than reports are waited for else
  for (int64_t process = 0; process < 3; ++process)
    EXPECT_EQ(end(process).timesEnded(), 0u);
  end(0).connection->report("no such file", 1);
  EXPECT_EQ(awaitEnd(/*speaker=*/0).reason, "no such file");
}

/// It has gone past the place where another one has found something.
TEST_F(ControlConnectionTest, TheFirstProcessHasNotFoundIt) {
  inStep = false;
  open(3);
  end(2).connection->report("no such file", 1);
  std::this_thread::sleep_for(1000ms);
  EXPECT_EQ(end(0).timesEnded(), 0u);
  end(0).point = 2;
  EXPECT_EQ(awaitEnd(/*speaker=*/0).reason, "process 2 on host2: no such file");
}

TEST_F(ControlConnectionTest, LossByClose) {
  open(4, {2});
  {
    ControlSocket lost = hello(2);
    ASSERT_TRUE(hears(lost));
    lost.send({ControlFrame::Heartbeat, false, 2, "place 2"});
    flush(lost);
  }
  RunEnd reason = awaitEnd(/*speaker=*/0);
  EXPECT_TRUE(reason.hasLostProcess);
  EXPECT_TRUE(reason.reason.starts_with(
      "process 2 on host2 was lost: its control connection was closed without a goodbye at "))
      << reason.reason;
  EXPECT_NE(reason.reason.find(" before that it said: place 2\n"), std::string::npos)
      << reason.reason;
  for (const char *place : {"place 0", "place 1", "place 3"})
    EXPECT_NE(reason.reason.find(place), std::string::npos) << reason.reason;
}

TEST_F(ControlConnectionTest, LossBySilence) {
  open(3, {1}, 2000ms);
  ControlSocket silent = hello(1);
  RunEnd reason = awaitEnd(/*speaker=*/0);
  EXPECT_TRUE(reason.hasLostProcess);
  EXPECT_TRUE(reason.reason.starts_with("process 1 on host1 was lost: nothing has come from it"))
      << reason.reason;
  // Should it wake, it reads that the run has ended.
  bool hasEnded = false;
  for (bool isOpen = true; isOpen && !hasEnded;) {
    isOpen = hears(silent);
    for (auto frame = silent.takeFrame(1 << 16); frame && *frame; frame = silent.takeFrame(1 << 16))
      hasEnded |= (*frame)->kind == ControlFrame::End;
  }
  EXPECT_TRUE(hasEnded);
}

TEST_F(ControlConnectionTest, OneThatNeverConnectsIsLost) {
  open(3, {2}, 2000ms);
  EXPECT_TRUE(awaitEnd(/*speaker=*/0).reason.starts_with("process 2 on host2 was lost: nothing"));
}

TEST_F(ControlConnectionTest, FirstIsClosed) {
  open(4, {0});
  listeners.clear(); // with all connections that it has not accepted
  RunEnd reason = awaitEnd(/*speaker=*/1);
  EXPECT_TRUE(reason.hasLostProcess);
  EXPECT_TRUE(reason.reason.starts_with("process 0 on host0 was lost: its control connection"))
      << reason.reason;
  for (const char *place : {"place 1", "place 2", "place 3"})
    EXPECT_NE(reason.reason.find(place), std::string::npos) << reason.reason;
}

TEST_F(ControlConnectionTest, FirstIsSilent) {
  open(3, {0}, 2000ms);
  RunEnd reason = awaitEnd(/*speaker=*/1);
  EXPECT_TRUE(reason.reason.starts_with("process 0 on host0 was lost: nothing has come from it"))
      << reason.reason;
}

TEST_F(ControlConnectionTest, FirstTwoAreClosed) {
  open(4, {0, 1});
  listeners.erase(1);
  listeners.erase(0);
  std::string reason = awaitEnd(/*speaker=*/2).reason;
  EXPECT_TRUE(reason.starts_with("process 0 on host0 was lost: ")) << reason;
  EXPECT_NE(reason.find("\n  process 1 on host1 was lost: "), std::string::npos) << reason;
}

TEST_F(ControlConnectionTest, WrongSecret) {
  open(2);
  for (const std::string &secret :
       {std::string(), std::string(32, '\0'), member(0).secret + "x", member(1).secret}) {
    for (int64_t to : {0, 1}) {
      ControlSocket stranger = connect(to);
      stranger.send({ControlFrame::Hello, false, 1 - to, secret});
      stranger.send({ControlFrame::End, true, 1 - to, "all is over"});
      flush(stranger);
      EXPECT_FALSE(hears(stranger));
    }
  }
  expectAlive();
}

TEST_F(ControlConnectionTest, NoHello) {
  open(2);
  for (auto kind : {ControlFrame::End, ControlFrame::Report, ControlFrame::Goodbye}) {
    ControlSocket stranger = connect(0);
    stranger.send({kind, true, 1, member(0).secret});
    flush(stranger);
    EXPECT_FALSE(hears(stranger));
  }
  expectAlive();
}

TEST_F(ControlConnectionTest, UnknownProcess) {
  open(2);
  for (int64_t process : {0, 2, 1 << 30}) {
    ControlSocket stranger = hello(process);
    EXPECT_FALSE(hears(stranger));
  }
  expectAlive();
}

TEST_F(ControlConnectionTest, PeersThatSayNothing) {
  open(3);
  std::vector<ControlSocket> strangers;
  for (int i = 0; i < 200; ++i)
    strangers.push_back(connect(i % 3));
  expectAlive();
}

/// A process has said who it is, and many strangers have come after it, before the first one looks.
TEST_F(ControlConnectionTest, StrangersDoNotDisplaceAProcess) {
  std::promise<void> isBusy, mayGoOn;
  std::once_flag once;
  onDescribe = [&] {
    std::call_once(once, [&] {
      isBusy.set_value();
      mayGoOn.get_future().wait();
    });
  };
  open(2, {1});
  isBusy.get_future().wait();
  ControlSocket process = hello(1);
  std::vector<ControlSocket> strangers;
  for (int i = 0; i < 200; ++i)
    strangers.push_back(connect(0));
  mayGoOn.set_value();
  EXPECT_TRUE(hears(process));
  EXPECT_EQ(end(0).timesEnded(), 0u);
  process.send({ControlFrame::Goodbye, false, 1});
  flush(process);
}

/// It was taken for a stranger while there were too many of them.
TEST_F(ControlConnectionTest, WhoIsTurnedAwayComesAgain) {
  open(2, {0});
  auto next = [&] {
    pollfd file{listeners.at(0).file.get(), POLLIN, 0};
    EXPECT_EQ(poll(&file, 1, 120000), 1);
    return ControlSocket(listeners.at(0).accept());
  };
  for (int times = 0; times < 3; ++times)
    (void)next();
  {
    ControlSocket socket = next();
    ASSERT_TRUE(hears(socket));
    auto frame = socket.takeFrame(kControlHelloBytes);
    ASSERT_TRUE(frame && *frame);
    EXPECT_EQ((*frame)->kind, ControlFrame::Hello);
    EXPECT_EQ((*frame)->text, member(0).secret);
    EXPECT_EQ(end(1).timesEnded(), 0u);
    listeners.clear();
  }
  EXPECT_TRUE(
      awaitEnd(/*speaker=*/1)
          .reason.starts_with("process 0 on host0 was lost: its control connection was closed"));
}

TEST_F(ControlConnectionTest, RandomMessages) {
  std::mt19937_64 random(dtc::test::randomSeed());
  open(2);
  auto number = [&](uint64_t below) { return random() % below; };
  for (int i = 0; i < 10000; ++i) {
    ControlSocket stranger = connect(static_cast<int64_t>(number(2)));
    // All but the secret may be right.
    std::string bytes = encode({static_cast<ControlFrame::Kind>(1 + number(7)), number(2) == 1,
                                static_cast<int64_t>(number(3)), std::string(number(64), 'x')});
    for (uint64_t changes = number(4); changes > 0; --changes)
      bytes[number(bytes.size())] = static_cast<char>(random());
    if (number(3) == 0)
      bytes.resize(number(bytes.size()));
    if (number(3) == 0)
      for (uint64_t more = number(400); more > 0; --more)
        bytes.push_back(static_cast<char>(random()));
    pollfd file{stranger.file(), POLLOUT, 0};
    poll(&file, 1, 1000);
    (void)::send(stranger.file(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  expectAlive();
}

TEST_F(ControlConnectionTest, ListensOnlyWhereAsked) {
  open(2);
  for (int64_t process : {0, 1}) {
    std::string endpoint = member(process).endpoint, port = endpoint.substr(endpoint.find(' ') + 1);
    EXPECT_EQ(endpoint, "127.0.0.1 " + port);
    // All of 127.0.0.0/8 is this host.
    auto socket = ControlSocket::connect("127.0.0.2 " + port);
    if (socket) {
      EXPECT_FALSE(hears(*socket)) << "process " << process << " listens at 127.0.0.2 too";
    }
  }
  expectAlive();
}

TEST_F(ControlConnectionTest, GarbageOfAProcessIsItsLoss) {
  open(3, {2});
  ControlSocket process = hello(2);
  ASSERT_TRUE(hears(process));
  process.send({static_cast<ControlFrame::Kind>(77), false, 2});
  flush(process);
  EXPECT_TRUE(awaitEnd(/*speaker=*/0).reason.starts_with("process 2 on host2 was lost: "));
}

TEST_F(ControlConnectionTest, WhoDoesNotEndIsMadeTo) {
  auto exchange = [](const std::string &own) {
    return Expected<std::vector<std::string>>(std::vector{own});
  };
  std::mutex mutex;
  std::condition_variable changed;
  bool hasLeft = false;
  ControlOptions options;
  options.isOneHost = true;
  options.grace = 10ms;
  ControlHooks hooks;
  hooks.leave = [&](const RunEnd &) {
    std::lock_guard lock(mutex);
    hasLeft = true;
    changed.notify_all();
  };
  auto opened = ControlConnection::open(0, "host", options, hooks, exchange);
  ASSERT_TRUE(opened);
  (*opened)->report("an error");
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, kLong, [&] { return hasLeft; }));
}

TEST(ControlConnection, UnknownNetwork) {
  ControlOptions options;
  options.network = "no-such-interface";
  std::string given;
  auto opened = ControlConnection::open(0, "host", options, {}, [&](const std::string &own) {
    given = own;
    return Expected<std::vector<std::string>>(std::vector{own});
  });
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.error().message.starts_with(
      "this host has no address in no-such-interface; expected an interface, such as eth0"))
      << opened.error().message;
  EXPECT_EQ(given, opened.error().message); // the others are told
}

} // namespace controlConnectionTest
