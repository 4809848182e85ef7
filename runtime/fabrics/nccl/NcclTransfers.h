//===- NcclTransfers.h - Messages from GPU to GPU -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Messages of a device to another one have a communicator and, at both ends, a queue of their own:
// no message waits for one of another pair, nor for one in the other direction, which might wait
// for it in turn.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_NCCL_NCCLTRANSFERS_H
#define DTC_RUNTIME_FABRICS_NCCL_NCCLTRANSFERS_H

#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/fabrics/Transfers.h"
#include "runtime/fabrics/nccl/NcclMessages.h"
#include "runtime/fabrics/nccl/NcclWorld.h"

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace dtc::runtime::nccl {

class NcclTransfers final : public Transfers, private AbortListener {
public:
  NcclTransfers(std::shared_ptr<NcclWorld> world, std::shared_ptr<NcclMessages> messages,
                int64_t device, Device &memory);
  ~NcclTransfers() override;

  MaybeError prepare(int64_t peer, bool sends) override;
  MaybeError enqueueWait(Queue &queue, Ticket ticket, TransferResult &result) override;
  void drain() override;

protected:
  Expected<Ticket> doStart(Queue &queue, int64_t peer, std::span<const TransferTensor> tensors,
                           bool sends) override;

private:
  /// This device's end of all messages in one direction between it and a peer.
  struct ChannelState {
    std::shared_ptr<NcclGroup> pair;
    std::unique_ptr<Queue> queue;
    size_t rank = 0;
    cudaStream_t stream = nullptr; // of the queue, from the first message on
  };
  /// One end of a message on its way: the work of the channel's queue.
  class Message final : public cuda::CudaKernel {
  public:
    explicit Message(const NcclTransfers &owner) : CudaKernel("message of NCCL"), owner(owner) {}
    MaybeError enqueue(cuda::CudaQueue &queue, const KernelArguments &) const override;

    /// Write the times of the move into the result that was given or will be.
    void begin() const;
    void end() const;
    /// Ends the wait, if there is one, with an error: nothing is written to its result afterwards,
    /// which may be gone when the queue that waits has failed. With the mutex.
    void endWait(const Error &error) const;

    const NcclTransfers &owner;
    ChannelState *channel = nullptr;
    std::vector<TransferTensor> tensors;
    std::unique_ptr<Event> started, ended; // on queues
    Ticket ticket = 0;
    bool isStarted = false; // and not waited for

    // With the mutex of the owner.
    mutable TransferResult result;
    mutable TransferResult *wanted = nullptr;
    mutable bool hasEnded = false;
  };
  /// Makes the failure of the run that of a queue.
  class Watch final : public cuda::CudaKernel {
  public:
    explicit Watch(const NcclTransfers &owner) : CudaKernel("watch of NCCL"), owner(owner) {}
    MaybeError enqueue(cuda::CudaQueue &queue, const KernelArguments &) const override;

    const NcclTransfers &owner;
  };

  void aborted(const Error &failure) override;
  Expected<Message *> takeUnused();

  std::shared_ptr<NcclWorld> world;
  std::shared_ptr<NcclMessages> sizes;
  int64_t device;
  Device &memory;
  Ticket lastTicket = 0;
  Watch watch{*this};
  mutable std::mutex mutex; // of the list and the results of its messages
  std::list<Message> messages;
  /// By peer and direction. Last: their queues end before what they use.
  std::map<std::pair<int64_t, bool>, ChannelState> channels;
};

} // namespace dtc::runtime::nccl

#endif // DTC_RUNTIME_FABRICS_NCCL_NCCLTRANSFERS_H
