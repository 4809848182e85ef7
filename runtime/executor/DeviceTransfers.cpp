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
    : program(plan.programOf(device)), network(std::move(network)) {
  std::vector<int64_t> pipeline; // the devices that differ only on the pipeline axis
  if (const MeshAxis *axis = plan.mesh.pipelineAxis())
    pipeline = plan.mesh.group(device, {axis->name});
  uint32_t microbatches = 1;
  for (const PreparedProgram::ScheduleEntry &entry : program.schedule)
    microbatches = std::max(microbatches, entry.microbatch + 1);
  for (const PreparedTransfer &transfer : program.transfers) {
    ChannelState &channel = channels.emplace_back();
    channel.peer = pipeline[static_cast<size_t>(transfer.peer)];
    channel.started.resize(transfer.maxStarted);
    for (uint32_t microbatch = 0; microbatch < microbatches; ++microbatch)
      for (const PreparedTransfer::Tensor &tensor : transfer.tensors)
        channel.tensors.push_back({arena + tensor.range.offsetFor(microbatch), tensor.bytes});
  }
}

MaybeError DeviceTransfers::prepare() {
  for (size_t index = 0; index < channels.size(); ++index)
    if (MaybeError error = network->prepare(channels[index].peer, program.transfers[index].sends))
      return inContext(*error, index, /*microbatch=*/0);
  return std::nullopt;
}

std::span<const TransferTensor> DeviceTransfers::tensorsOf(size_t index,
                                                           uint32_t microbatch) const {
  size_t count = program.transfers[index].tensors.size();
  return std::span(channels[index].tensors).subspan(microbatch * count, count);
}

Error DeviceTransfers::inContext(const Error &error, size_t index, uint32_t microbatch) const {
  const PreparedTransfer &transfer = program.transfers[index];
  return error.inContext(fmt::format("{} device {} on channel {}, microbatch {}",
                                     transfer.sends ? "send to" : "receive from",
                                     channels[index].peer, transfer.channel, microbatch));
}

Error DeviceTransfers::locate(const Error &error) const {
  for (const std::vector<Wait> *step : {&waits, &waitsBefore})
    for (const Wait &wait : *step)
      if (wait.result->error && wait.result->error->message == error.message)
        return inContext(error, wait.transfer, wait.microbatch);
  return error;
}

MaybeError DeviceTransfers::start(Queue &queue, size_t index, uint32_t microbatch) {
  const PreparedTransfer &transfer = program.transfers[index];
  ChannelState &channel = channels[index];
  auto unused = std::find_if(channel.started.begin(), channel.started.end(),
                             [](const Started &started) { return !started.inUse; });
  if (unused == channel.started.end())
    return inContext(Error{"more transfers are on their way than the schedule starts"}, index,
                     microbatch);
  std::span<const TransferTensor> tensors = tensorsOf(index, microbatch);
  Expected<Transfers::Ticket> ticket = transfer.sends
                                           ? network->startSend(queue, channel.peer, tensors)
                                           : network->startReceive(queue, channel.peer, tensors);
  if (!ticket)
    return inContext(ticket.error(), index, microbatch);
  *unused = {true, microbatch, *ticket};
  return std::nullopt;
}

MaybeError DeviceTransfers::finish(Queue &queue, size_t index, uint32_t microbatch,
                                   TransferResult &result) {
  for (Started &started : channels[index].started) {
    if (!started.inUse || started.microbatch != microbatch)
      continue;
    started.inUse = false;
    result.error.reset();
    waits.push_back({index, microbatch, &result});
    return network->enqueueWait(queue, started.ticket, result);
  }
  return inContext(Error{"is finished, but was not started"}, index, microbatch);
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
