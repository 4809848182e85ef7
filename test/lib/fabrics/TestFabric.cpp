//===- TestFabric.cpp - Test fabric with delays and faults ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/fabrics/TestFabric.h"

#include "runtime/fabrics/local/LocalFabric.h"
#include "runtime/fabrics/local/WorkPool.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <random>
#include <thread>

namespace dtc::runtime::testing {

namespace {

using Clock = std::chrono::steady_clock;

/// The messages of all pairs of devices, and the thread that delivers them.
class DelayedMessages {
public:
  using Ticket = Transfers::Ticket;

  explicit DelayedMessages(TestFabricOptions options) : options(options), random(options.seed) {}
  ~DelayedMessages() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    if (thread.joinable())
      thread.join();
  }

  /// Counts a collective or a message.
  MaybeError begin() {
    std::lock_guard lock(mutex);
    if (aborted)
      return aborted;
    if (options.failAt && begun++ == *options.failAt)
      return Error{"the network of the test failed"};
    return std::nullopt;
  }

  std::chrono::microseconds delay() {
    std::lock_guard lock(mutex);
    return std::chrono::microseconds(random() % (options.longestDelay.count() + 1));
  }

  /// The bytes of a message are taken at once, so that the sender may write over them.
  void send(int64_t from, int64_t to, std::span<const TransferTensor> tensors, Ticket ticket) {
    Message message;
    for (const TransferTensor &tensor : tensors) {
      message.sizes.push_back(tensor.bytes);
      auto bytes = static_cast<const std::byte *>(tensor.data);
      message.bytes.insert(message.bytes.end(), bytes, bytes + tensor.bytes);
    }
    std::lock_guard lock(mutex);
    startThread();
    pairs[{from, to}].sent.push_back(std::move(message));
    results[{from, ticket}] = TransferResult{std::nullopt, Clock::now(), Clock::now()};
    changed.notify_all();
  }

  void receive(int64_t from, int64_t to, std::span<const TransferTensor> tensors, Ticket ticket) {
    std::lock_guard lock(mutex);
    startThread();
    pairs[{from, to}].receives.push_back({tensors, ticket});
    changed.notify_all();
  }

  TransferResult wait(int64_t device, Ticket ticket) {
    std::unique_lock lock(mutex);
    auto found = results.end();
    changed.wait(lock, [&] {
      found = results.find({device, ticket});
      return found != results.end() || aborted;
    });
    if (found == results.end())
      return {aborted, {}, {}};
    TransferResult result = found->second;
    results.erase(found);
    return result;
  }

  void abort(const Error &reason) {
    std::lock_guard lock(mutex);
    if (!aborted)
      aborted = Error{"another device failed: " + reason.message};
    changed.notify_all();
  }

  /// Waits until no bytes move. Messages must have been aborted.
  void drain() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !delivering; });
  }

private:
  struct Message {
    std::vector<uint64_t> sizes;
    std::vector<std::byte> bytes;
  };
  struct Receive {
    std::span<const TransferTensor> tensors;
    Ticket ticket;
  };
  using Key = std::pair<int64_t, int64_t>; // sender and receiver
  struct Pair {
    std::deque<Message> sent;
    std::deque<Receive> receives;
    bool isReady() const { return !sent.empty() && !receives.empty(); }
  };

  void startThread() {
    if (!thread.joinable())
      thread = std::thread([this] { deliver(); });
  }

  static MaybeError copy(const Message &message, const Receive &receive) {
    if (message.sizes.size() != receive.tensors.size())
      return Error{fmt::format("the message has {} tensors, its receiver expects {}",
                               message.sizes.size(), receive.tensors.size())};
    for (size_t i = 0; i < message.sizes.size(); ++i)
      if (message.sizes[i] != receive.tensors[i].bytes)
        return Error{fmt::format("tensor {} of the message has {} bytes, its receiver expects {}",
                                 i, message.sizes[i], receive.tensors[i].bytes)};
    const std::byte *from = message.bytes.data();
    for (const TransferTensor &tensor : receive.tensors) {
      if (tensor.bytes > 0)
        std::memcpy(tensor.data, from, tensor.bytes);
      from += tensor.bytes;
    }
    return std::nullopt;
  }

  /// Delivers the first message of any pair that has both ends, a while after it was found.
  void deliver() {
    std::unique_lock lock(mutex);
    while (true) {
      std::vector<std::pair<const Key, Pair> *> ready;
      changed.wait(lock, [&] {
        ready.clear();
        for (auto &pair : pairs)
          if (pair.second.isReady())
            ready.push_back(&pair);
        return stopping || (!ready.empty() && !aborted);
      });
      if (stopping)
        return;
      auto &[key, pair] = *ready[random() % ready.size()];
      Message message = std::move(pair.sent.front());
      Receive receive = pair.receives.front();
      pair.sent.pop_front();
      pair.receives.pop_front();
      std::chrono::microseconds pause(random() % (options.longestDelay.count() + 1));
      delivering = true;
      lock.unlock();
      std::this_thread::sleep_for(pause);
      TransferResult result{std::nullopt, Clock::now(), {}};
      result.error = copy(message, receive);
      result.end = Clock::now();
      lock.lock();
      delivering = false;
      results[{key.second, receive.ticket}] = result;
      changed.notify_all();
    }
  }

  const TestFabricOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  std::mt19937_64 random;
  uint64_t begun = 0;
  std::map<Key, Pair> pairs;
  std::map<std::pair<int64_t, Ticket>, TransferResult> results;
  MaybeError aborted;
  bool delivering = false, stopping = false;
  std::thread thread;
};

/// A communicator whose devices come late.
class TestCommunicator final : public Communicator {
public:
  TestCommunicator(std::unique_ptr<Communicator> inner, DelayedMessages &messages)
      : inner(std::move(inner)), messages(messages) {}

  Expected<Group> openGroup(const std::vector<std::string> &axes) override {
    return inner->openGroup(axes);
  }

protected:
  MaybeError doEnqueue(Queue &queue, Group group, std::span<const CollectiveSpec> specs,
                       std::span<const CollectiveOperands> operands) override {
    if (MaybeError error = delays.enqueue(queue, [](int &) {}))
      return error;
    return inner->enqueue(queue, group, specs, operands);
  }

private:
  std::unique_ptr<Communicator> inner;
  DelayedMessages &messages;
  WorkPool<int> delays{[this](int) {
    std::this_thread::sleep_for(messages.delay());
    return messages.begin();
  }};
};

class TestTransfers final : public Transfers {
public:
  TestTransfers(DelayedMessages &messages, int64_t device) : messages(messages), device(device) {}

  MaybeError enqueueWait(Queue &queue, Ticket ticket, TransferResult &result) override {
    return calls.enqueue(queue, [&](Call &call) { call = {Call::Wait, 0, {}, ticket, &result}; });
  }
  void drain() override { messages.drain(); }

protected:
  Expected<Ticket> doStart(Queue &queue, int64_t peer, std::span<const TransferTensor> tensors,
                           bool sends) override {
    Call call{sends ? Call::Send : Call::Receive, peer, tensors, ++lastTicket, nullptr};
    if (MaybeError error = calls.enqueue(queue, [&](Call &to) { to = call; }))
      return *error;
    return call.ticket;
  }

private:
  struct Call {
    enum Kind { Send, Receive, Wait } kind = Send;
    int64_t peer = 0;
    std::span<const TransferTensor> tensors;
    Ticket ticket = 0;
    TransferResult *result = nullptr;
  };

  MaybeError run(const Call &call) {
    if (call.kind == Call::Wait) {
      *call.result = messages.wait(device, call.ticket);
      return call.result->error;
    }
    if (MaybeError error = messages.begin())
      return error;
    if (call.kind == Call::Send)
      messages.send(device, call.peer, call.tensors, call.ticket);
    else
      messages.receive(call.peer, device, call.tensors, call.ticket);
    return std::nullopt;
  }

  DelayedMessages &messages;
  int64_t device;
  Ticket lastTicket = 0;
  WorkPool<Call> calls{[this](const Call &call) { return run(call); }};
};

class TestFabric final : public Fabric {
public:
  TestFabric(std::shared_ptr<Fabric> local, const TestFabricOptions &options)
      : Fabric(local->mesh(), {local->devices().begin(), local->devices().end()}),
        local(std::move(local)), messages(options) {}

  Expected<std::unique_ptr<Communicator>> openCommunicator(int64_t device, int64_t lane,
                                                           Device &memory) override {
    auto inner = local->openCommunicator(device, lane, memory);
    if (!inner)
      return inner.error();
    return std::unique_ptr<Communicator>(
        std::make_unique<TestCommunicator>(std::move(*inner), messages));
  }
  Expected<std::unique_ptr<Transfers>> openTransfers(int64_t device, Device &) override {
    return std::unique_ptr<Transfers>(std::make_unique<TestTransfers>(messages, device));
  }
  Expected<int64_t> agree(ReductionKind reduction, int64_t value) override {
    return local->agree(reduction, value);
  }
  Expected<std::string> broadcast(int64_t from, std::string bytes) override {
    return local->broadcast(from, std::move(bytes));
  }
  void abort(const Error &reason) override {
    local->abort(reason);
    messages.abort(reason);
  }

private:
  std::shared_ptr<Fabric> local;
  DelayedMessages messages;
};

} // namespace

OpenFabric testFabric(TestFabricOptions options) {
  return [options](const Mesh &mesh) -> Expected<std::shared_ptr<Fabric>> {
    auto local = openLocalFabric(mesh);
    if (!local)
      return local.error();
    return std::shared_ptr<Fabric>(std::make_shared<TestFabric>(std::move(*local), options));
  };
}

} // namespace dtc::runtime::testing
