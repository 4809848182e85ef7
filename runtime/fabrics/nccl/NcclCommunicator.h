//===- NcclCommunicator.h - Collectives of GPUs ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_NCCL_NCCLCOMMUNICATOR_H
#define DTC_RUNTIME_FABRICS_NCCL_NCCLCOMMUNICATOR_H

#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/fabrics/Communicator.h"
#include "runtime/fabrics/nccl/NcclWorld.h"
#include "runtime/fabrics/nccl/PackedCollective.h"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace dtc::runtime::nccl {

/// An error if the queue is not of the GPU with the number of the device.
MaybeError checkGpu(const NcclWorld &world, const cuda::CudaQueue &queue, int64_t device);

/// One GPU's end of the groups. Those that were prepared have communicators of NCCL, which
/// Fabric::connect() connects. A collective is work of the queue that it is enqueued on, and the
/// host waits for nothing but, at the first one of a group and of a size, what NCCL sets up for
/// it.
class NcclCommunicator final : public Communicator {
public:
  NcclCommunicator(std::shared_ptr<NcclWorld> world, int64_t device, int64_t lane, Device &memory)
      : world(std::move(world)), device(device), lane(lane), memory(memory) {}

  Expected<Group> openGroup(const std::vector<std::string> &axes) override {
    return open(axes, /*isInGraphs=*/false);
  }
  Expected<Group> openGroupInGraphs(const std::vector<std::string> &axes) override {
    return open(axes, /*isInGraphs=*/true);
  }

  MaybeError prepare(Queue &queue, Group group, std::span<const CollectiveSpec> specs) override;

  bool canBeCaptured() const override { return true; }

protected:
  MaybeError doEnqueue(Queue &queue, Group group, std::span<const CollectiveSpec> specs,
                       std::span<const CollectiveOperands> operands) override;
  MaybeError doRepeat(Group group, std::span<const CollectiveSpec> specs) override;

private:
  struct Membership {
    std::vector<std::string> axes;
    bool isInGraphs = false;
    size_t rank = 0, size = 1;
    std::shared_ptr<NcclGroup> group = nullptr; // from prepare() on; of one member: null
  };
  /// One tensor of a call: the operands, and what NCCL reads and writes.
  struct Tensor {
    const CollectiveSpec *spec;
    const PackedCollective *packed;
    CollectiveOperands operands;
    const std::byte *sent;
    std::byte *received;
  };
  /// A bucket, kept until it is enqueued on the GPU's own queue.
  class Call final : public cuda::CudaKernel {
  public:
    explicit Call(const NcclCommunicator &owner) : CudaKernel("collective of NCCL"), owner(owner) {}
    MaybeError enqueue(cuda::CudaQueue &queue, const KernelArguments &) const override;

    const NcclCommunicator &owner;
    Membership membership;
    std::vector<Tensor> tensors;
    mutable std::atomic<bool> isUsed = false;

  private:
    MaybeError pack(cuda::CudaQueue &queue) const;
    MaybeError exchange(cuda::CudaQueue &queue) const;
    MaybeError unpack(cuda::CudaQueue &queue) const;
    ncclResult_t reduceOrGather(const Tensor &tensor, ncclComm_t communicator,
                                cudaStream_t stream) const;
    ncclResult_t sendAndReceive(const Tensor &tensor, ncclComm_t communicator,
                                cudaStream_t stream) const;
  };

  Group open(const std::vector<std::string> &axes, bool isInGraphs);
  Expected<const std::vector<PackedCollective> *> packedOf(std::span<const CollectiveSpec> specs);
  MaybeError reserve(size_t bytes);
  MaybeError placeTensors(Call &call, std::span<const CollectiveSpec> specs,
                          const std::vector<PackedCollective> &of,
                          std::span<const CollectiveOperands> operands);
  Call &takeUnused();

  std::shared_ptr<NcclWorld> world;
  int64_t device, lane;
  Device &memory;
  std::vector<Membership> groups;
  std::map<const CollectiveSpec *, std::vector<PackedCollective>>
      packedCollectives; // by the first spec
  /// The last one is used. Collectives run one after the other and share it; those that are
  /// enqueued may still use the others.
  std::vector<std::unique_ptr<DeviceMemory>> buffers;
  std::deque<Call> calls; // at addresses that stay
};

} // namespace dtc::runtime::nccl

#endif // DTC_RUNTIME_FABRICS_NCCL_NCCLCOMMUNICATOR_H
