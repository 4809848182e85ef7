//===- ThreadMessages.cpp - Processes that are threads --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/fabrics/ThreadMessages.h"

#include "runtime/control/ControlSocket.h"
#include "runtime/fabrics/processes/ProcessFabric.h"
#include "runtime/fabrics/sockets/SocketMessages.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <future>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <tuple>

namespace dtc::runtime::testing {

namespace {

struct Message {
  std::vector<MessagePart> parts;
  bool isDone = false;
  bool isCancelled = false;
  MaybeError error;

  size_t bytes() const {
    return std::accumulate(parts.begin(), parts.end(), size_t{0},
                           [](size_t sum, const MessagePart &part) { return sum + part.bytes; });
  }
};

void copy(const Message &from, const Message &to) {
  size_t piece = 0, at = 0;
  for (const MessagePart &part : from.parts)
    for (size_t done = 0; done < part.bytes;) {
      const MessagePart &target = to.parts[piece];
      size_t bytes = std::min(part.bytes - done, target.bytes - at);
      std::memcpy(target.data + at, part.data + done, bytes);
      done += bytes;
      at += bytes;
      if (at == target.bytes) {
        ++piece;
        at = 0;
      }
    }
}

/// Where the messages of all processes meet.
struct Hub {
  explicit Hub(const ThreadMessagesOptions &options) : options(options), random(options.seed) {}

  struct ChannelState {
    std::deque<std::shared_ptr<Message>> sends, receives;
  };

  /// Moves what has met, of channels in any order, and now and then nothing. The mutex is held.
  void move() {
    if (std::bernoulli_distribution(options.delayed)(random))
      return;
    std::vector<ChannelState *> order;
    for (auto &[key, channel] : channels)
      if (!channel.sends.empty() && !channel.receives.empty())
        order.push_back(&channel);
    std::ranges::shuffle(order, random);
    for (ChannelState *channel : order) {
      std::shared_ptr<Message> from = channel->sends.front(), to = channel->receives.front();
      channel->sends.pop_front();
      channel->receives.pop_front();
      if (from->bytes() != to->bytes())
        to->error = Error{fmt::format("the message has {} bytes, its receiver expects {}",
                                      from->bytes(), to->bytes())};
      else if (!from->isCancelled && !to->isCancelled)
        copy(*from, *to);
      from->isDone = to->isDone = true;
    }
  }

  ThreadMessagesOptions options;
  std::mutex mutex;
  std::mt19937_64 random;
  std::map<std::tuple<int64_t, int64_t, int64_t>, ChannelState> channels; // from, to, tag
  MaybeError aborted;
  std::mutex listening;                                            // while listeners run or change
  std::map<int64_t, std::function<void(const Error &)>> listeners; // by process
};

class ThreadBatch final : public MessageBatch {
public:
  ThreadBatch(std::shared_ptr<Hub> hub, int64_t process) : hub(std::move(hub)), process(process) {}
  ~ThreadBatch() override { cancel(); }

  MaybeError send(int64_t to, int64_t tag, std::span<const MessagePart> parts) override {
    return start({process, to, tag}, &Hub::ChannelState::sends, parts);
  }
  MaybeError receive(int64_t from, int64_t tag, std::span<const MessagePart> parts) override {
    return start({from, process, tag}, &Hub::ChannelState::receives, parts);
  }

  Expected<bool> isDone() override {
    std::lock_guard lock(hub->mutex);
    hub->move();
    for (const std::shared_ptr<Message> &message : messages)
      if (message->error)
        return *message->error;
    if (!std::ranges::all_of(messages, &Message::isDone))
      return false;
    messages.clear();
    return true;
  }

  bool cancel() override {
    std::lock_guard lock(hub->mutex);
    for (const std::shared_ptr<Message> &message : messages)
      message->isCancelled = true;
    messages.clear();
    return true;
  }

protected:
  MaybeError failure() const override {
    std::lock_guard lock(hub->mutex);
    return hub->aborted;
  }

private:
  MaybeError start(std::tuple<int64_t, int64_t, int64_t> key,
                   std::deque<std::shared_ptr<Message>> Hub::ChannelState::*ends,
                   std::span<const MessagePart> parts) {
    std::lock_guard lock(hub->mutex);
    auto message = std::make_shared<Message>();
    message->parts.assign(parts.begin(), parts.end());
    messages.push_back(message);
    (hub->channels[key].*ends).push_back(std::move(message));
    return std::nullopt;
  }

  std::shared_ptr<Hub> hub;
  int64_t process;
  std::vector<std::shared_ptr<Message>> messages;
};

class ThreadMessages final : public Messages {
public:
  ThreadMessages(std::shared_ptr<Hub> hub, int64_t process, int64_t processes)
      : hub(std::move(hub)), own(process), processes(processes) {}

  int64_t process() const override { return own; }
  int64_t numProcesses() const override { return processes; }
  int64_t processesOnHost() const override { return processes; }
  int64_t largestTag() const override { return (int64_t{1} << 31) - 1; }
  std::unique_ptr<MessageBatch> openBatch() override {
    return std::make_unique<ThreadBatch>(hub, own);
  }

  void abort(const Error &reason) override {
    {
      std::lock_guard lock(hub->mutex);
      if (hub->aborted)
        return;
      hub->aborted = reason;
    }
    std::lock_guard lock(hub->listening);
    for (auto &[process, listener] : hub->listeners)
      if (listener)
        listener(reason);
  }
  /// All processes are this one.
  void abortHere(const Error &reason) override { abort(reason); }
  MaybeError failure() const override {
    std::lock_guard lock(hub->mutex);
    return hub->aborted;
  }
  void onAbort(std::function<void(const Error &)> heard) override {
    {
      std::lock_guard lock(hub->listening);
      hub->listeners[own] = heard;
    }
    if (MaybeError reason = failure(); reason && heard)
      heard(*reason);
  }

private:
  std::shared_ptr<Hub> hub;
  int64_t own, processes;
};

/// All processes' fabrics as that of one.
class CombinedFabric final : public Fabric {
public:
  CombinedFabric(const Mesh &mesh, std::vector<int64_t> devices,
                 std::vector<std::shared_ptr<Fabric>> fabrics)
      : Fabric(mesh, std::move(devices)), fabrics(std::move(fabrics)) {}
  /// Together: a network may wait for the other ends.
  ~CombinedFabric() override {
    std::vector<std::future<void>> ends;
    for (std::shared_ptr<Fabric> &fabric : fabrics)
      ends.push_back(std::async(std::launch::async, [&fabric] { fabric.reset(); }));
  }

  Expected<std::unique_ptr<Communicator>> openCommunicator(int64_t device, int64_t lane,
                                                           Device &memory) override {
    return holderOf(device).openCommunicator(device, lane, memory);
  }
  Expected<std::unique_ptr<Transfers>> openTransfers(int64_t device, Device &memory) override {
    return holderOf(device).openTransfers(device, memory);
  }

  bool sharesGpus() const override { return fabrics.front()->sharesGpus(); }
  MemoryUse memoryFor(const CommunicatorNeeds &needs) const override {
    return fabrics.front()->memoryFor(needs);
  }
  MaybeError connect() override {
    Expected<int64_t> done = together<int64_t>([&](size_t process) -> Expected<int64_t> {
      MaybeError error = fabrics[process]->connect();
      return error ? Expected<int64_t>(*error) : 0;
    });
    return done ? MaybeError() : done.error();
  }
  Expected<int64_t> agree(ReductionKind reduction, int64_t value) override {
    return together<int64_t>([&](size_t process) {
      bool adds = reduction == ReductionKind::Sum && process > 0;
      return fabrics[process]->agree(reduction, adds ? 0 : value);
    });
  }
  Expected<std::string> broadcast(int64_t, std::string bytes) override {
    return together<std::string>(
        [&](size_t process) { return fabrics[process]->broadcast(0, process == 0 ? bytes : ""); });
  }
  void abort(const Error &reason) override { fabrics.back()->abort(reason); }

private:
  Fabric &holderOf(int64_t device) {
    return *fabrics[static_cast<size_t>(fabrics.front()->processOf(device))];
  }
  template <typename T, typename Call> Expected<T> together(const Call &call) {
    std::vector<std::future<Expected<T>>> results;
    for (size_t process = 0; process < fabrics.size(); ++process)
      results.push_back(std::async(std::launch::async, call, process));
    std::vector<Expected<T>> values;
    for (std::future<Expected<T>> &result : results)
      values.push_back(result.get());
    for (const Expected<T> &value : values)
      if (value && values.front() && *value != *values.front())
        return Error{"the processes do not agree"};
    return values.back();
  }

  std::vector<std::shared_ptr<Fabric>> fabrics;
};

} // namespace

std::vector<std::shared_ptr<Messages>> openThreadMessages(int64_t processes,
                                                          ThreadMessagesOptions options) {
  auto hub = std::make_shared<Hub>(options);
  std::vector<std::shared_ptr<Messages>> ends;
  for (int64_t process = 0; process < processes; ++process)
    ends.push_back(std::make_shared<ThreadMessages>(hub, process, processes));
  return ends;
}

int freePort() {
  const std::string endpoint = ControlListener::open("127.0.0.1")->endpoint;
  return std::stoi(endpoint.substr(endpoint.find(' ') + 1));
}

std::vector<std::shared_ptr<Messages>> openSocketMessagesHere(int64_t processes) {
  RendezvousOptions options{0, processes, "127.0.0.1", freePort(), "a key"};
  std::vector<std::future<Expected<std::shared_ptr<Messages>>>> opened;
  for (; options.process < processes; ++options.process)
    opened.push_back(std::async(std::launch::async, [options] {
      Expected<Rendezvous> met = meet(options);
      return met ? openSocketMessages(options.process, std::move(*met))
                 : Expected<std::shared_ptr<Messages>>(met.error());
    }));
  std::vector<std::shared_ptr<Messages>> ends;
  for (auto &end : opened)
    ends.push_back(*end.get());
  return ends;
}

OpenFabric threadProcessesFabric(int64_t processes, ThreadMessagesOptions options) {
  return processesFabric(
      processes, [=](int64_t count) { return openThreadMessages(count, options); },
      options.sharing);
}

OpenFabric processesFabric(int64_t processes, OpenMessages open, HostSharing sharing) {
  return processesFabric(processes, std::move(open),
                         [=](const Mesh &mesh, const std::shared_ptr<Messages> &messages) {
                           return openProcessFabric(mesh, messages, sharing);
                         });
}

OpenFabric processesFabric(int64_t processes, OpenMessages open, OpenEnd openEnd) {
  return [processes, open = std::move(open),
          openEnd = std::move(openEnd)](const Mesh &mesh) -> Expected<std::shared_ptr<Fabric>> {
    std::vector<std::future<Expected<std::shared_ptr<Fabric>>>> opened;
    for (auto &end : open(std::min(processes, mesh.numDevices())))
      opened.push_back(std::async(std::launch::async, openEnd, mesh, end));
    std::vector<std::shared_ptr<Fabric>> fabrics;
    MaybeError error;
    for (auto &one : opened) {
      Expected<std::shared_ptr<Fabric>> fabric = one.get();
      if (fabric)
        fabrics.push_back(std::move(*fabric));
      else
        error = fabric.error();
    }
    if (error)
      return *error;
    std::vector<int64_t> devices(static_cast<size_t>(mesh.numDevices()));
    std::iota(devices.begin(), devices.end(), int64_t{0});
    return std::shared_ptr<Fabric>(
        std::make_shared<CombinedFabric>(mesh, std::move(devices), std::move(fabrics)));
  };
}

} // namespace dtc::runtime::testing
