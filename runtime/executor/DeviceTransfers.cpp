//===- DeviceTransfers.cpp - The messages of one device -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceTransfers.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

DeviceTransfers::DeviceTransfers(const PreparedPlan &plan, int64_t device, std::byte *arena,
                                 std::unique_ptr<Transfers> network)
    : program(plan.programOf(device)), arena(arena), network(std::move(network)) {
  std::vector<int64_t> pipeline; // the devices that differ only on the pipeline axis
  if (const MeshAxis *axis = plan.mesh.pipelineAxis())
    pipeline = plan.mesh.group(device, {axis->name});
  for (const PreparedTransfer &transfer : program.transfers) {
    Channel &channel = channels.emplace_back();
    channel.peer = pipeline[static_cast<size_t>(transfer.peer)];
    channel.started.resize(transfer.maxStarted);
    for (Started &started : channel.started)
      started.tensors.resize(transfer.tensors.size());
  }
}

Error DeviceTransfers::inContext(const MaybeError &error, size_t index, uint32_t microbatch) const {
  const PreparedTransfer &transfer = program.transfers[index];
  return error->inContext(fmt::format("{} device {} on channel {}, microbatch {}",
                                      transfer.sends ? "send to" : "receive from",
                                      channels[index].peer, transfer.channel, microbatch));
}

MaybeError DeviceTransfers::start(size_t index, uint32_t microbatch) {
  const PreparedTransfer &transfer = program.transfers[index];
  Channel &channel = channels[index];
  auto unused = std::find_if(channel.started.begin(), channel.started.end(),
                             [](const Started &started) { return !started.inUse; });
  if (unused == channel.started.end())
    return inContext(Error{"more transfers are on their way than the schedule starts"}, index,
                     microbatch);
  unused->inUse = true;
  unused->microbatch = microbatch;
  for (size_t i = 0; i < transfer.tensors.size(); ++i)
    unused->tensors[i] = {arena + transfer.tensors[i].range.offsetFor(microbatch),
                          transfer.tensors[i].bytes};
  unused->ticket = transfer.sends
                       ? network->startSend(channel.peer, transfer.channel, unused->tensors)
                       : network->startReceive(channel.peer, transfer.channel, unused->tensors);
  return std::nullopt;
}

TransferResult DeviceTransfers::finish(size_t index, uint32_t microbatch) {
  for (Started &started : channels[index].started) {
    if (!started.inUse || started.microbatch != microbatch)
      continue;
    TransferResult result = network->wait(started.ticket);
    if (result.error)
      result.error = inContext(result.error, index, microbatch);
    started.inUse = false;
    return result;
  }
  return {inContext(Error{"is finished, but was not started"}, index, microbatch), {}, {}};
}

MaybeError DeviceTransfers::checkAllFinished() const {
  for (size_t index = 0; index < channels.size(); ++index)
    for (const Started &started : channels[index].started)
      if (started.inUse)
        return inContext(Error{"was started, but is not finished by the end of the schedule"},
                         index, started.microbatch);
  return std::nullopt;
}

} // namespace dtc::runtime
