//===- NcclCommunicator.cpp - Collectives of GPUs -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/nccl/NcclCommunicator.h"

#include "runtime/fabrics/nccl/Encode.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime::nccl {

MaybeError checkGpu(const NcclWorld &world, const cuda::CudaQueue &queue, int64_t device) {
  if (queue.owner().ordinal() == world.gpuOf(device))
    return std::nullopt;
  return Error{
      fmt::format("device {} of the plan is on {}, expected cuda {}: with NCCL each device "
                  "has the GPU of its number",
                  device, queue.owner().describe(), world.gpuOf(device))};
}

Communicator::Group NcclCommunicator::open(const std::vector<std::string> &axes, bool isInGraphs) {
  groups.push_back({axes, isInGraphs,
                    static_cast<size_t>(world->getMesh().blockIndex(device, axes)),
                    static_cast<size_t>(world->getMesh().groupSize(axes))});
  return groups.size() - 1;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

Expected<const std::vector<PackedCollective> *>
NcclCommunicator::packedOf(std::span<const CollectiveSpec> specs) {
  std::vector<PackedCollective> &known = packedCollectives[specs.data()];
  if (known.size() == specs.size())
    return &known;
  known.clear();
  for (const CollectiveSpec &spec : specs) {
    Expected<PackedCollective> packed = PackedCollective::create(spec);
    if (!packed)
      return packed.error().inContext(name(spec.kind));
    known.push_back(*packed);
  }
  return &known;
}

static size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

static size_t bufferBytes(const std::vector<PackedCollective> &all) {
  size_t bytes = 0;
  for (const PackedCollective &packed : all)
    bytes += padded(packed.packBytes()) + padded(packed.unpackBytes());
  return bytes;
}

MaybeError NcclCommunicator::prepare(Queue &queue, Group index,
                                     std::span<const CollectiveSpec> specs) {
  Membership &membership = groups[index];
  if (membership.size == 1)
    return std::nullopt;
  if (!membership.group)
    membership.group = world->openGroup(device, membership.axes, lane, membership.isInGraphs);
  if (specs.empty())
    return std::nullopt;
  Expected<const std::vector<PackedCollective> *> of = packedOf(specs);
  if (!of)
    return of.error();
  size_t bytes = bufferBytes(**of);
  if (!buffers.empty() && buffers.back()->bytes() < bytes)
    buffers.clear(); // nothing uses them
  if (MaybeError error = reserve(bytes))
    return error;
  Call call(*this);
  call.membership = membership;
  std::vector<CollectiveOperands> nowhere(specs.size());
  if (MaybeError error = placeTensors(call, specs, **of, nowhere))
    return error;
  if (MaybeError error = queue.prepare(call, {}))
    return error;
  return queue.finish();
}

MaybeError NcclCommunicator::reserve(size_t bytes) {
  size_t present = buffers.empty() ? 0 : buffers.back()->bytes();
  if (bytes <= present)
    return std::nullopt;
  Expected<std::unique_ptr<DeviceMemory>> allocated = memory.allocate(std::max(bytes, 2 * present));
  if (!allocated)
    return allocated.error().inContext("the buffers of collectives, beside the plan's memory");
  buffers.push_back(std::move(*allocated));
  return std::nullopt;
}

MaybeError NcclCommunicator::placeTensors(Call &call, std::span<const CollectiveSpec> specs,
                                          const std::vector<PackedCollective> &of,
                                          std::span<const CollectiveOperands> operands) {
  if (MaybeError error = reserve(bufferBytes(of)))
    return error;
  std::byte *next = buffers.empty() ? nullptr : buffers.back()->data();
  auto take = [&](size_t size) { return std::exchange(next, next + padded(size)); };
  call.tensors.clear();
  for (size_t i = 0; i < specs.size(); ++i) {
    const PackedCollective &packed = of[i];
    Tensor tensor{&specs[i], &packed, operands[i],
                  static_cast<const std::byte *>(operands[i].input),
                  static_cast<std::byte *>(operands[i].output)};
    if (packed.pack)
      tensor.sent = take(packed.packBytes());
    if (packed.unpack)
      tensor.received = take(packed.unpackBytes());
    call.tensors.push_back(tensor);
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

NcclCommunicator::Call &NcclCommunicator::takeUnused() {
  for (Call &call : calls)
    if (!call.isUsed.load(std::memory_order_acquire))
      return call;
  return calls.emplace_back(*this);
}

/// A group of one has nobody to wait for; every kind of collective is a copy.
static MaybeError enqueueCopies(Queue &queue, std::span<const CollectiveSpec> specs,
                                std::span<const CollectiveOperands> operands) {
  for (size_t i = 0; i < specs.size(); ++i)
    if (operands[i].input != operands[i].output)
      if (MaybeError error = queue.copy(static_cast<std::byte *>(operands[i].output),
                                        static_cast<const std::byte *>(operands[i].input),
                                        specs[i].input.numBytes()))
        return error;
  return std::nullopt;
}

MaybeError NcclCommunicator::doEnqueue(Queue &queue, Group index,
                                       std::span<const CollectiveSpec> specs,
                                       std::span<const CollectiveOperands> operands) {
  const char *what = name(specs.front().kind);
  if (MaybeError error = world->failure())
    return error->inContext(what);
  const Membership &membership = groups[index];
  if (static_cast<size_t>(specs.front().members) != membership.size)
    return Error{"the collective is for a group of another size"};
  if (membership.size == 1)
    return enqueueCopies(queue, specs, operands);
  if (!membership.group)
    return Error{fmt::format("{}: the group was not prepared", what)};
  Expected<const std::vector<PackedCollective> *> of = packedOf(specs);
  if (!of)
    return of.error();
  if (MaybeError error = membership.group->agree(membership.rank, fingerprintOf(specs), what))
    return error->inContext(what);
  Call &call = takeUnused();
  call.membership = membership;
  if (MaybeError error = placeTensors(call, specs, **of, operands))
    return error;
  call.isUsed.store(true, std::memory_order_relaxed);
  MaybeError error = queue.enqueue(call, {});
  if (error) // a queue does not keep refused work
    call.isUsed.store(false, std::memory_order_relaxed);
  return error;
}

MaybeError NcclCommunicator::doRepeat(Group index, std::span<const CollectiveSpec> specs) {
  const char *what = name(specs.front().kind);
  MaybeError error = world->failure();
  const Membership &membership = groups[index];
  if (!error && membership.size > 1)
    error = membership.group->agree(membership.rank, fingerprintOf(specs), what);
  return error ? MaybeError(error->inContext(what)) : std::nullopt;
}

MaybeError NcclCommunicator::Call::enqueue(cuda::CudaQueue &queue, const KernelArguments &) const {
  owner.world->watch(queue.failureState());
  MaybeError error = checkGpu(*owner.world, queue, owner.device);
  if (!error)
    error = pack(queue);
  if (!error && !queue.isPreparing())
    error = exchange(queue);
  if (!error)
    error = unpack(queue);
  isUsed.store(false, std::memory_order_release);
  return error;
}

MaybeError NcclCommunicator::Call::pack(cuda::CudaQueue &queue) const {
  for (const Tensor &tensor : tensors)
    if (tensor.packed->pack)
      if (MaybeError error = enqueueEncode(
              queue, *tensor.packed->pack, tensor.packed->code, tensor.spec->input.dtype,
              const_cast<std::byte *>(tensor.sent), tensor.operands.input))
        return error;
  return std::nullopt;
}

MaybeError NcclCommunicator::Call::unpack(cuda::CudaQueue &queue) const {
  for (const Tensor &tensor : tensors)
    if (tensor.packed->unpack)
      if (MaybeError error =
              enqueueDecode(queue, *tensor.packed->unpack, tensor.packed->code,
                            tensor.spec->input.dtype, tensor.operands.output, tensor.received))
        return error;
  return std::nullopt;
}

ncclResult_t NcclCommunicator::Call::reduceOrGather(const Tensor &tensor, ncclComm_t communicator,
                                                    cudaStream_t stream) const {
  const Nccl &api = owner.world->api();
  const PackedCollective &packed = *tensor.packed;
  auto count = static_cast<size_t>(packed.count);
  switch (tensor.spec->kind) {
  case CollectiveKind::AllReduce:
    return api.allReduce(tensor.sent, tensor.received, count, packed.type, packed.reduction,
                         communicator, stream);
  case CollectiveKind::ReduceScatter:
    return api.reduceScatter(tensor.sent, tensor.received, count, packed.type, packed.reduction,
                             communicator, stream);
  default:
    return api.allGather(tensor.sent, tensor.received, count, packed.type, communicator, stream);
  }
}

/// Within a group of calls, which all begin together.
ncclResult_t NcclCommunicator::Call::sendAndReceive(const Tensor &tensor, ncclComm_t communicator,
                                                    cudaStream_t stream) const {
  const Nccl &api = owner.world->api();
  const PackedCollective &packed = *tensor.packed;
  auto count = static_cast<size_t>(packed.count);
  ncclResult_t result = ncclSuccess;
  auto take = [&](ncclResult_t given) {
    if (result == ncclSuccess && given != ncclInProgress)
      result = given;
  };
  auto exchange = [&](size_t sendTo, size_t receiveFrom, size_t sentBlock, size_t receivedBlock) {
    size_t bytes = count * packed.width;
    take(api.send(tensor.sent + sentBlock * bytes, count, packed.type, static_cast<int>(sendTo),
                  communicator, stream));
    take(api.recv(tensor.received + receivedBlock * bytes, count, packed.type,
                  static_cast<int>(receiveFrom), communicator, stream));
  };
  if (tensor.spec->kind == CollectiveKind::Permute) {
    const std::vector<int64_t> &sources = *tensor.spec->sources;
    auto receiver =
        std::find(sources.begin(), sources.end(), static_cast<int64_t>(membership.rank));
    exchange(static_cast<size_t>(receiver - sources.begin()),
             static_cast<size_t>(sources[membership.rank]), 0, 0);
    return result;
  }
  for (size_t peer = 0; peer < membership.size; ++peer)
    exchange(peer, peer, peer, peer);
  return result;
}

/// Each reduction is a call of its own: how NCCL divides the tensors of a group of calls depends on
/// all of them, and with it the order of sums.
MaybeError NcclCommunicator::Call::exchange(cuda::CudaQueue &queue) const {
  CollectiveKind kind = tensors.front().spec->kind;
  const char *what = dtc::name(kind);
  NcclGroup &group = *membership.group;
  if (kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter) {
    for (const Tensor &tensor : tensors)
      if (tensor.packed->count > 0)
        if (MaybeError error = group.call(membership.rank, what, [&](ncclComm_t communicator) {
              return reduceOrGather(tensor, communicator, queue.stream());
            }))
          return error;
    return std::nullopt;
  }
  bool isEmpty = std::all_of(tensors.begin(), tensors.end(),
                             [](const Tensor &tensor) { return tensor.packed->count == 0; });
  if (isEmpty)
    return std::nullopt;
  return group.call(membership.rank, what, [&](ncclComm_t communicator) {
    const Nccl &api = owner.world->api();
    ncclResult_t result = api.groupStart();
    for (const Tensor &tensor : tensors) {
      if (tensor.packed->count == 0 || result != ncclSuccess)
        continue;
      result = kind == CollectiveKind::AllGather
                   ? reduceOrGather(tensor, communicator, queue.stream())
                   : sendAndReceive(tensor, communicator, queue.stream());
      if (result == ncclInProgress)
        result = ncclSuccess;
    }
    ncclResult_t ended = api.groupEnd();
    return result == ncclSuccess ? ended : result;
  });
}

} // namespace dtc::runtime::nccl
