//===- SocketMessages.cpp - Messages between processes over TCP ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/sockets/SocketMessages.h"

#include "runtime/fabrics/processes/AbortReason.h"
#include "runtime/fabrics/sockets/SocketLink.h"
#include "support/StartThread.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <thread>

namespace dtc::runtime {

namespace {

/// How long the end of a network waits for the other processes, which may have failed.
constexpr std::chrono::seconds kGoodbyeTime(30);

/// The links of a process, and the news of the network's end that it has received.
class Network {
public:
  Network(int64_t process, Rendezvous met) : own(process) {
    auto heard = [this](const Error &reason) { (void)aborted.set(reason); };
    for (size_t other = 0; other < met.connections.size(); ++other)
      links.push_back(std::make_unique<SocketLink>(static_cast<int64_t>(other),
                                                   std::move(met.connections[other]), heard));
    onHost = std::ranges::count(met.hosts, met.hosts[static_cast<size_t>(process)]);
  }

  SocketLink &link(int64_t process) { return *links[static_cast<size_t>(process)]; }

  const int64_t own;
  int64_t onHost = 1;
  std::vector<std::unique_ptr<SocketLink>> links; // by process
  AbortReason aborted;
};

class SocketBatch final : public MessageBatch {
public:
  explicit SocketBatch(std::shared_ptr<Network> network) : network(std::move(network)) {}
  ~SocketBatch() override { (void)cancel(); }

  MaybeError send(int64_t process, int64_t tag, std::span<const MessagePart> parts) override {
    return add(process, tag, parts, &SocketLink::send);
  }
  MaybeError receive(int64_t process, int64_t tag, std::span<const MessagePart> parts) override {
    return add(process, tag, parts, &SocketLink::receive);
  }

  Expected<bool> isDone() override {
    if (MaybeError error = operations.empty() ? std::nullopt : network->aborted.get())
      return *error;
    MaybeError failed;
    SocketLink *moved = nullptr;
    std::erase_if(operations, [&](const Operation &entry) {
      if (entry.operation->state.load(std::memory_order_acquire) == SocketOperation::UnderWay &&
          entry.link != moved) {
        moved = entry.link;
        moved->tryToMove();
      }
      SocketOperation::State state = entry.operation->state.load(std::memory_order_acquire);
      if (state == SocketOperation::Failed && !failed)
        failed = Error{entry.operation->error};
      return state != SocketOperation::UnderWay;
    });
    if (failed)
      return *failed;
    return operations.empty();
  }

  bool cancel() override {
    for (const Operation &entry : operations)
      entry.link->cancel(entry.operation);
    operations.clear();
    return true;
  }

protected:
  MaybeError failure() const override { return network->aborted.get(); }
  /// Another thread hears of each change of a socket.
  bool movesByItself() const override { return true; }

private:
  struct Operation {
    SocketLink *link;
    std::shared_ptr<SocketOperation> operation;
  };

  MaybeError add(int64_t process, int64_t tag, std::span<const MessagePart> parts,
                 void (SocketLink::*start)(const std::shared_ptr<SocketOperation> &)) {
    auto operation = std::make_shared<SocketOperation>(parts);
    operation->tag = tag;
    SocketLink &link = network->link(process);
    operations.push_back({&link, operation});
    (link.*start)(operation);
    return std::nullopt;
  }

  std::shared_ptr<Network> network;
  std::vector<Operation> operations;
};

class SocketMessages final : public Messages {
public:
  SocketMessages(std::shared_ptr<Network> theNetwork, OwnedFile theEvents, OwnedFile theWake)
      : network(std::move(theNetwork)), events(std::move(theEvents)), wake(std::move(theWake)) {
    thread = startThread("messages of other processes", [this] { loop(); });
  }
  ~SocketMessages() override {
    if (!network->aborted.get())
      sayGoodbye();
    stopping = true;
    eventfd_write(wake.get(), 1);
    thread.join();
  }

  /// Registers all sockets, so that the thread hears of each when something has changed.
  static Expected<std::shared_ptr<Messages>> open(std::shared_ptr<Network> network) {
    OwnedFile events(epoll_create1(EPOLL_CLOEXEC)), wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    auto watch = [&](int file, uint32_t what, void *which) {
      epoll_event event = {};
      event.events = what;
      event.data.ptr = which;
      return epoll_ctl(events.get(), EPOLL_CTL_ADD, file, &event) == 0;
    };
    bool watched = events && wake && watch(wake.get(), EPOLLIN, nullptr);
    for (const auto &link : network->links)
      watched = watched &&
                (link->file() < 0 || watch(link->file(), EPOLLIN | EPOLLOUT | EPOLLET, link.get()));
    if (!watched)
      return Error{fmt::format("the connections to other processes: {}", std::strerror(errno))};
    try {
      return std::shared_ptr<Messages>(
          std::make_shared<SocketMessages>(std::move(network), std::move(events), std::move(wake)));
    } catch (const ThreadStartError &error) {
      return Error{error.what()};
    }
  }

  int64_t process() const override { return network->own; }
  int64_t numProcesses() const override { return std::ssize(network->links); }
  int64_t processesOnHost() const override { return network->onHost; }
  int64_t largestTag() const override { return std::numeric_limits<int64_t>::max() / 2; }
  std::unique_ptr<MessageBatch> openBatch() override {
    return std::make_unique<SocketBatch>(network);
  }

  void abort(const Error &reason) override {
    if (!network->aborted.set(reason))
      return;
    for (const auto &link : network->links)
      link->tellAbort(reason.message);
  }
  void abortHere(const Error &reason) override { (void)network->aborted.set(reason); }
  MaybeError failure() const override { return network->aborted.get(); }
  void onAbort(std::function<void(const Error &)> heard) override {
    network->aborted.listen(heard);
  }

private:
  /// Messages that are on their way arrive before this end closes.
  void sayGoodbye() {
    auto deadline = std::chrono::steady_clock::now() + kGoodbyeTime;
    for (const auto &link : network->links)
      link->sayGoodbye();
    for (const auto &link : network->links)
      while (!link->isOver() && !network->aborted.get() &&
             std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        link->move();
      }
  }

  void loop() {
    epoll_event found[64];
    while (!stopping) {
      int count = epoll_wait(events.get(), found, std::size(found), -1);
      for (int i = 0; i < count; ++i)
        if (auto *link = static_cast<SocketLink *>(found[i].data.ptr))
          link->move();
    }
  }

  std::shared_ptr<Network> network;
  OwnedFile events, wake;
  std::atomic<bool> stopping = false;
  std::thread thread; // last: it uses the others
};

} // namespace

Expected<std::shared_ptr<Messages>> openSocketMessages(int64_t process, Rendezvous met) {
  return SocketMessages::open(std::make_shared<Network>(process, std::move(met)));
}

} // namespace dtc::runtime
