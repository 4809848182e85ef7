//===- Staged.cpp - Networks of the host for devices with their own memory -===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/Staged.h"

#include <algorithm>
#include <fmt/format.h>
#include <list>
#include <vector>

namespace dtc::runtime {

namespace {

/// The bytes of a tensor in staging memory; the next one begins after them.
size_t paddedBytes(size_t bytes) { return (bytes + 63) / 64 * 64; }

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

class StagedCommunicator final : public Communicator {
public:
  StagedCommunicator(std::unique_ptr<Communicator> host, Device &device)
      : device(device), host(std::move(host)) {}

  Expected<Group> openGroup(const std::vector<std::string> &axes) override {
    return host->openGroup(axes);
  }

protected:
  MaybeError doEnqueue(Queue &queue, Group group, std::span<const CollectiveSpec> specs,
                       std::span<const CollectiveOperands> operands) override;

private:
  static bool isInPlace(const CollectiveOperands &operands) {
    return operands.input == operands.output;
  }
  MaybeError reserve(size_t bytes);
  MaybeError placeOperands(std::span<const CollectiveSpec> specs,
                           std::span<const CollectiveOperands> operands);

  Device &device;
  /// The last one is used. Collectives run one after the other and share it; those that are
  /// enqueued may still use the others.
  std::vector<std::unique_ptr<DeviceMemory>> memories;
  std::vector<std::byte *> inputs; // of `staged`
  std::vector<CollectiveOperands> staged;
  std::unique_ptr<Communicator> host;
};

MaybeError StagedCommunicator::reserve(size_t bytes) {
  size_t present = memories.empty() ? 0 : memories.back()->bytes();
  if (bytes <= present)
    return std::nullopt;
  Expected<std::unique_ptr<DeviceMemory>> memory =
      device.allocateStaging(std::max(bytes, 2 * present));
  if (!memory)
    return memory.error();
  memories.push_back(std::move(*memory));
  return std::nullopt;
}

MaybeError StagedCommunicator::placeOperands(std::span<const CollectiveSpec> specs,
                                             std::span<const CollectiveOperands> operands) {
  size_t bytes = 0;
  for (size_t i = 0; i < specs.size(); ++i)
    bytes += paddedBytes(specs[i].input.numBytes()) +
             (isInPlace(operands[i]) ? 0 : paddedBytes(specs[i].output().numBytes()));
  if (MaybeError error = reserve(bytes))
    return error;
  inputs.clear();
  staged.clear();
  std::byte *next = memories.empty() ? nullptr : memories.back()->data();
  for (size_t i = 0; i < specs.size(); ++i) {
    std::byte *input = next, *output = next;
    next += paddedBytes(specs[i].input.numBytes());
    if (!isInPlace(operands[i])) {
      output = next;
      next += paddedBytes(specs[i].output().numBytes());
    }
    inputs.push_back(input);
    staged.push_back({input, output});
  }
  return std::nullopt;
}

MaybeError StagedCommunicator::doEnqueue(Queue &queue, Group group,
                                         std::span<const CollectiveSpec> specs,
                                         std::span<const CollectiveOperands> operands) {
  if (MaybeError error = placeOperands(specs, operands))
    return error;
  for (size_t i = 0; i < specs.size(); ++i)
    if (MaybeError error = queue.copy(inputs[i], static_cast<const std::byte *>(operands[i].input),
                                      specs[i].input.numBytes()))
      return error;
  if (MaybeError error = host->enqueue(queue, group, specs, staged))
    return error;
  for (size_t i = 0; i < specs.size(); ++i)
    if (MaybeError error = queue.copy(static_cast<std::byte *>(operands[i].output),
                                      static_cast<const std::byte *>(staged[i].output),
                                      specs[i].output().numBytes()))
      return error;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

class StagedTransfers final : public Transfers {
public:
  StagedTransfers(std::unique_ptr<Transfers> host, Device &device)
      : device(device), host(std::move(host)) {}

  MaybeError prepare(int64_t peer, bool sends) override { return host->prepare(peer, sends); }
  MaybeError enqueueWait(Queue &queue, Ticket ticket, TransferResult &result) override;
  void drain() override { host->drain(); }

protected:
  Expected<Ticket> doStart(Queue &queue, int64_t peer, std::span<const TransferTensor> tensors,
                           bool sends) override;

private:
  struct Message {
    std::unique_ptr<DeviceMemory> memory;
    std::unique_ptr<Event> started, ended; // on queues
    std::vector<TransferTensor> staged;
    std::span<const TransferTensor> tensors; // on the device
    Ticket ticket = 0;
    bool sends = false;
    bool isStarted = false; // and not waited for
  };

  Expected<Message *> takeUnused(size_t bytes);

  Device &device;
  std::list<Message> messages;
  std::unique_ptr<Transfers> host;
};

/// A message whose memory is enough. One that was waited for is used again as soon as the queue has
/// come to its end, for which the host waits: more of them would be as large as all messages of a
/// step.
Expected<StagedTransfers::Message *> StagedTransfers::takeUnused(size_t bytes) {
  Message *unused = nullptr;
  for (Message &message : messages) {
    if (message.isStarted || message.memory->bytes() < bytes)
      continue;
    Expected<bool> isDone = message.ended->isDone();
    if (!isDone)
      return isDone.error();
    if (*isDone)
      return &message;
    if (!unused)
      unused = &message;
  }
  if (unused) {
    if (MaybeError error = unused->ended->wait())
      return *error;
    return unused;
  }
  Message message;
  Expected<std::unique_ptr<DeviceMemory>> memory = device.allocateStaging(bytes);
  if (!memory)
    return memory.error();
  message.memory = std::move(*memory);
  for (std::unique_ptr<Event> *event : {&message.started, &message.ended}) {
    Expected<std::unique_ptr<Event>> created = device.createEvent(/*timed=*/false);
    if (!created)
      return created.error();
    *event = std::move(*created);
  }
  return &messages.emplace_back(std::move(message));
}

Expected<Transfers::Ticket> StagedTransfers::doStart(Queue &queue, int64_t peer,
                                                     std::span<const TransferTensor> tensors,
                                                     bool sends) {
  size_t bytes = 0;
  for (const TransferTensor &tensor : tensors)
    bytes += paddedBytes(tensor.bytes);
  Expected<Message *> taken = takeUnused(bytes);
  if (!taken)
    return taken.error();
  Message &message = **taken;
  message.tensors = tensors;
  message.sends = sends;
  message.staged.clear();
  std::byte *next = message.memory->data();
  for (const TransferTensor &tensor : tensors) {
    message.staged.push_back({next, tensor.bytes});
    if (sends)
      if (MaybeError error =
              queue.copy(next, static_cast<const std::byte *>(tensor.data), tensor.bytes))
        return *error;
    next += paddedBytes(tensor.bytes);
  }
  Expected<Ticket> ticket = host->start(queue, peer, message.staged, sends);
  if (!ticket)
    return ticket.error();
  message.ticket = *ticket;
  message.isStarted = true;
  if (MaybeError error = queue.record(*message.started))
    return *error;
  return message.ticket;
}

MaybeError StagedTransfers::enqueueWait(Queue &queue, Ticket ticket, TransferResult &result) {
  auto message = std::find_if(messages.begin(), messages.end(), [&](const Message &each) {
    return each.isStarted && each.ticket == ticket;
  });
  if (message == messages.end())
    return Error{fmt::format("transfer {} was not started, or has been waited for", ticket)};
  message->isStarted = false;
  if (MaybeError error = queue.wait(*message->started))
    return error;
  if (MaybeError error = host->enqueueWait(queue, ticket, result))
    return error;
  for (size_t i = 0; i < message->tensors.size() && !message->sends; ++i)
    if (MaybeError error = queue.copy(static_cast<std::byte *>(message->tensors[i].data),
                                      static_cast<const std::byte *>(message->staged[i].data),
                                      message->tensors[i].bytes))
      return error;
  return queue.record(*message->ended);
}

} // namespace

std::unique_ptr<Communicator> stageCommunicator(std::unique_ptr<Communicator> host,
                                                Device &device) {
  if (device.isHostMemory())
    return host;
  return std::make_unique<StagedCommunicator>(std::move(host), device);
}

std::unique_ptr<Transfers> stageTransfers(std::unique_ptr<Transfers> host, Device &device) {
  if (device.isHostMemory())
    return host;
  return std::make_unique<StagedTransfers>(std::move(host), device);
}

} // namespace dtc::runtime
