//===- NcclTransfers.cpp - Messages from GPU to GPU -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/nccl/NcclTransfers.h"

#include "runtime/backends/cuda/CudaError.h"
#include "runtime/fabrics/nccl/NcclCommunicator.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime::nccl {

NcclTransfers::NcclTransfers(std::shared_ptr<NcclWorld> world,
                             std::shared_ptr<NcclMessages> messages, int64_t device, Device &memory)
    : world(std::move(world)), sizes(std::move(messages)), device(device), memory(memory) {
  this->world->add(*this);
}

NcclTransfers::~NcclTransfers() { world->remove(*this); }

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

MaybeError NcclTransfers::prepare(int64_t peer, bool sends) {
  if (channels.contains({peer, sends}))
    return std::nullopt;
  Expected<std::unique_ptr<Queue>> queue = memory.openQueue(QueueKind::Communication);
  if (!queue)
    return queue.error();
  ChannelState &channel = channels[{peer, sends}];
  channel.pair = sends ? world->openPair(device, peer) : world->openPair(peer, device);
  channel.queue = std::move(*queue);
  channel.rank = sends ? 0 : 1;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void NcclTransfers::Message::begin() const {
  std::lock_guard lock(owner.mutex);
  result.begin = std::chrono::steady_clock::now();
}

void NcclTransfers::Message::end() const {
  MaybeError failure = owner.world->failure();
  std::lock_guard lock(owner.mutex);
  result.end = std::chrono::steady_clock::now();
  result.error = std::move(failure);
  hasEnded = true;
  if (wanted)
    *wanted = result;
  wanted = nullptr;
}

void NcclTransfers::Message::endWait(const Error &error) const {
  if (wanted)
    wanted->error = error;
  wanted = nullptr;
}

void NcclTransfers::aborted(const Error &failure) {
  std::lock_guard lock(mutex);
  for (const Message &message : messages)
    message.endWait(failure);
}

MaybeError NcclTransfers::Message::enqueue(cuda::CudaQueue &queue, const KernelArguments &) const {
  owner.world->watch(queue.failureState());
  if (MaybeError error = checkGpu(*owner.world, queue, owner.device))
    return error;
  auto host = [&](cudaHostFn_t function) {
    return cuda::checkCuda(
        cudaLaunchHostFunc(queue.stream(), function, const_cast<Message *>(this)),
        "cannot enqueue work of the host");
  };
  if (MaybeError error =
          host([](void *message) { static_cast<const Message *>(message)->begin(); }))
    return error;
  channel->stream = queue.stream();
  const Nccl &api = owner.world->api();
  bool sends = channel->rank == 0;
  bool isEmpty = std::all_of(tensors.begin(), tensors.end(),
                             [](const TransferTensor &tensor) { return tensor.bytes == 0; });
  MaybeError error;
  if (!isEmpty)
    error = channel->pair->call(channel->rank, sends ? "send" : "receive",
                                [&](ncclComm_t communicator) {
                                  ncclResult_t result = api.groupStart();
                                  for (const TransferTensor &tensor : tensors) {
                                    if (tensor.bytes == 0 || result != ncclSuccess)
                                      continue;
                                    result = sends ? api.send(tensor.data, tensor.bytes, ncclUint8,
                                                              1, communicator, queue.stream())
                                                   : api.recv(tensor.data, tensor.bytes, ncclUint8,
                                                              0, communicator, queue.stream());
                                    if (result == ncclInProgress)
                                      result = ncclSuccess;
                                  }
                                  ncclResult_t ended = api.groupEnd();
                                  return result == ncclSuccess ? ended : result;
                                });
  // Also after an error: the message may be used again when it has ended.
  MaybeError last = host([](void *message) { static_cast<const Message *>(message)->end(); });
  return error ? error : last;
}

MaybeError NcclTransfers::Watch::enqueue(cuda::CudaQueue &queue, const KernelArguments &) const {
  owner.world->watch(queue.failureState());
  return checkGpu(*owner.world, queue, owner.device);
}

/// One that was waited for and has ended.
Expected<NcclTransfers::Message *> NcclTransfers::takeUnused() {
  std::lock_guard lock(mutex);
  for (Message &message : messages) {
    if (message.isStarted || !message.hasEnded)
      continue;
    message.hasEnded = false;
    message.wanted = nullptr;
    message.result = {};
    return &message;
  }
  Message &message = messages.emplace_back(*this);
  for (std::unique_ptr<Event> *event : {&message.started, &message.ended}) {
    Expected<std::unique_ptr<Event>> created = memory.createEvent(/*timed=*/false);
    if (!created)
      return created.error();
    *event = std::move(*created);
  }
  return &message;
}

Expected<Transfers::Ticket> NcclTransfers::doStart(Queue &queue, int64_t peer,
                                                   std::span<const TransferTensor> tensors,
                                                   bool sends) {
  if (MaybeError error = world->failure())
    return *error;
  auto channel = channels.find({peer, sends});
  if (channel == channels.end())
    return Error{
        fmt::format("messages {} device {} were not prepared", sends ? "to" : "from", peer)};
  Expected<Message *> taken = takeUnused();
  if (!taken)
    return taken.error();
  Message &message = **taken;
  message.channel = &channel->second;
  message.tensors.assign(tensors.begin(), tensors.end());
  message.ticket = ++lastTicket;
  message.isStarted = true;
  MaybeError differs;
  if (world->isHere(peer)) // all processes have the same plan
    differs = sizes->start(sends ? device : peer, sends ? peer : device, sends, tensors);
  if (differs) {
    // The other end waits for what will not come. This one fails when it is waited for.
    world->abort(*differs);
    return message.ticket;
  }
  // The work that the queue holds comes first; the work that it gets next does not wait.
  if (MaybeError error = queue.record(*message.started))
    return *error;
  Queue &own = *message.channel->queue;
  if (MaybeError error = own.wait(*message.started))
    return *error;
  if (MaybeError error = own.enqueue(message, {}))
    return *error;
  if (MaybeError error = own.record(*message.ended))
    return *error;
  return message.ticket;
}

MaybeError NcclTransfers::enqueueWait(Queue &queue, Ticket ticket, TransferResult &result) {
  auto message = std::find_if(messages.begin(), messages.end(), [&](const Message &each) {
    return each.isStarted && each.ticket == ticket;
  });
  if (message == messages.end())
    return Error{fmt::format("transfer {} was not started, or has been waited for", ticket)};
  message->isStarted = false;
  {
    std::lock_guard lock(mutex);
    if (message->hasEnded)
      result = message->result;
    else
      message->wanted = &result;
  }
  MaybeError error = queue.enqueue(watch, {});
  // An abort before this call sees no wait, one after it ends the wait.
  if (!error)
    error = world->failure();
  if (!error)
    error = queue.wait(*message->ended);
  if (error) {
    std::lock_guard lock(mutex);
    message->wanted = nullptr;
    result.error = error;
  }
  return error;
}

void NcclTransfers::drain() {
  // A queue that has failed does not wait for its GPU.
  for (auto &[key, channel] : channels) {
    (void)channel.queue->finish();
    if (channel.stream && cudaSetDevice(world->gpuOf(device)) == cudaSuccess)
      (void)cudaStreamSynchronize(channel.stream);
  }
}

} // namespace dtc::runtime::nccl
