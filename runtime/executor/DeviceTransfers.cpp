//===- DeviceTransfers.cpp - The messages of one device -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceTransfers.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace dtc::runtime {

/// For which microbatches each transfer with slots is started.
static std::vector<std::set<uint32_t>> findMicrobatches(const PreparedProgram &program) {
  std::vector<std::set<uint32_t>> microbatches(program.transfers.size());
  auto hasSlots = [&](size_t transfer) {
    return std::ranges::any_of(
        program.transfers[transfer].tensors,
        [](const PreparedTransfer::Tensor &tensor) { return tensor.range.slots > 0; });
  };
  std::vector<std::vector<size_t>> startedIn; // by task
  for (size_t task = 0; task + 1 < program.taskBegin.size(); ++task) {
    std::vector<size_t> &transfers = startedIn.emplace_back();
    for (size_t i = program.taskBegin[task]; i < program.taskBegin[task + 1]; ++i)
      if (const auto *start = std::get_if<PreparedStartTransfer>(&program.instructions[i]))
        if (hasSlots(start->transfer))
          transfers.push_back(start->transfer);
  }
  for (const PreparedProgram::ScheduleEntry &entry : program.schedule)
    for (size_t transfer : startedIn[entry.task])
      microbatches[transfer].insert(entry.microbatch);
  return microbatches;
}

DeviceTransfers::DeviceTransfers(const PreparedPlan &plan, int64_t device, std::byte *arena,
                                 std::unique_ptr<Transfers> network)
    : program(plan.programOf(device)), network(std::move(network)) {
  std::vector<int64_t> pipeline; // the devices that differ only on the pipeline axis
  if (const MeshAxis *axis = plan.mesh.pipelineAxis())
    pipeline = plan.mesh.group(device, {axis->name});
  std::vector<std::set<uint32_t>> microbatches = findMicrobatches(program);
  for (size_t index = 0; index < program.transfers.size(); ++index) {
    const PreparedTransfer &transfer = program.transfers[index];
    ChannelState &channel = channels.emplace_back();
    channel.peer = pipeline[static_cast<size_t>(transfer.peer)];
    channel.started.resize(transfer.maxStarted);
    placeTensors(index, arena, microbatches[index]);
  }
}

/// A plan may have very many microbatches and name few of them in a schedule, and the slots of most
/// of those are the same again and again.
void DeviceTransfers::placeTensors(size_t index, std::byte *arena,
                                   const std::set<uint32_t> &microbatches) {
  const PreparedTransfer &transfer = program.transfers[index];
  ChannelState &channel = channels[index];
  auto addList = [&](uint32_t microbatch) {
    for (const PreparedTransfer::Tensor &tensor : transfer.tensors)
      channel.tensors.push_back({arena + tensor.range.offsetFor(microbatch), tensor.bytes});
  };
  if (microbatches.empty()) {
    addList(0);
    return;
  }
  std::map<std::vector<uint64_t>, size_t> known; // lists by the places of their tensors
  for (uint32_t microbatch : microbatches) {
    std::vector<uint64_t> places;
    for (const PreparedTransfer::Tensor &tensor : transfer.tensors)
      places.push_back(tensor.range.offsetFor(microbatch));
    auto [list, isNew] = known.try_emplace(std::move(places), channel.tensors.size());
    if (isNew)
      addList(microbatch);
    channel.lists.emplace_back(microbatch, list->second);
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
  const ChannelState &channel = channels[index];
  size_t begin = 0;
  if (!channel.lists.empty())
    begin =
        std::ranges::lower_bound(channel.lists, microbatch, {}, &std::pair<uint32_t, size_t>::first)
            ->second;
  return std::span(channel.tensors).subspan(begin, program.transfers[index].tensors.size());
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
  Expected<Transfers::Ticket> ticket = network->start(queue, channel.peer, tensors, transfer.sends);
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
