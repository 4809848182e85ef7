//===- TransferChannels.cpp - Messages of a simulated step ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/TransferChannels.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc {

TransferChannels::TransferChannels(StepProgress &progress, std::function<void(size_t)> advance)
    : progress(progress), advance(std::move(advance)), ends(progress.devices.size()) {
  for (const auto &[number, shape] : progress.work.channels)
    channels[number].shape = &shape;
}

bool TransferChannels::passStart(size_t p, uint32_t transfer) {
  const SimulatedTransfer &end = progress.work.devices[p].transfers[transfer];
  ChannelState &channel = channels.at(end.channel);
  uint32_t microbatch = progress.executionOf(p).microbatch;
  auto [it, fresh] = ends[p].underWay.try_emplace({transfer, microbatch}, 0);
  if (!ends[p].isSending) {
    if (!fresh)
      return progress.fail(
          p, fmt::format("transfer {} is started again for microbatch {}; expected it to "
                         "be finished first",
                         transfer, microbatch));
    it->second = end.isSend ? channel.numSent++ : channel.numPosted++;
    if (it->second >= channel.messages.size())
      channel.messages.emplace_back();
    Message &message = channel.messages[it->second];
    (end.isSend ? message.sent : message.posted) = microbatch;
    if (message.sent && message.posted && message.sent != message.posted)
      return progress.fail(
          p, fmt::format("message {} of channel {} is of microbatch {}, but its receive "
                         "is for microbatch {}; expected the same order at both ends",
                         it->second, end.channel, *message.sent, *message.posted));
    deliver(end.channel);
  }
  Message &message = channel.messages[it->second];
  ends[p].isSending = progress.work.isRendezvous && end.isSend && !message.posted;
  if (ends[p].isSending) {
    progress.pause(p);
    message.waiters[0] = p;
    return false;
  }
  progress.resume(p);
  // A send that waits for this receive goes on.
  if (!end.isSend && progress.work.isRendezvous)
    if (size_t sender = std::exchange(message.waiters[0], kNobody); sender != kNobody)
      advance(sender);
  return true;
}

void TransferChannels::deliver(uint32_t number) {
  ChannelState &channel = channels.at(number);
  const SimulatedChannel &shape = *channel.shape;
  while (channel.numStarted < channel.messages.size() &&
         (!shape.carriesOne || channel.numStarted == channel.numArrived)) {
    Message &message = channel.messages[channel.numStarted];
    if (!message.sent || !message.posted)
      return;
    ++channel.numStarted;
    message.start = progress.now;
    progress.addMover(shape.from, true);
    progress.addMover(shape.to, true);
    progress.startFlow(shape.seconds, progress.usesOf(shape.from, shape.to, shape.ports),
                       {FlowOwner::Transfer, shape.from, number});
  }
}

void TransferChannels::finish(uint32_t number) {
  ChannelState &channel = channels.at(number);
  const SimulatedChannel &shape = *channel.shape;
  progress.addMover(shape.from, false);
  progress.addMover(shape.to, false);
  size_t index = channel.numArrived++;
  channel.messages[index].isDone = true;
  Message message = channel.messages[index];
  progress.result.timeline.transfers.push_back(
      {number, *message.sent, shape.from, shape.to, shape.bytes, message.start, progress.now});
  deliver(number);
  for (size_t waiter : message.waiters)
    if (waiter != kNobody)
      advance(waiter);
}

bool TransferChannels::passFinish(size_t p, uint32_t transfer) {
  DeviceProgress &device = progress.devices[p];
  const SimulatedTransfer &end = progress.work.devices[p].transfers[transfer];
  uint32_t microbatch = progress.executionOf(p).microbatch;
  auto it = ends[p].underWay.find({transfer, microbatch});
  if (it == ends[p].underWay.end())
    return progress.fail(
        p, fmt::format("transfer {} is finished for microbatch {}, but it was not started",
                       transfer, microbatch));
  Message &message = channels.at(end.channel).messages[it->second];
  if (!message.isDone) {
    device.blockedSince = progress.now;
    progress.pause(p);
    message.waiters[end.isSend ? 0 : 1] = p;
    return false;
  }
  if (device.blockedSince) {
    double moving = progress.now - std::max(*device.blockedSince, message.start);
    progress.result.devices[p].exposedTransfers += std::max(0.0, moving);
    device.blockedSince.reset();
    progress.resume(p);
  }
  ends[p].underWay.erase(it);
  return true;
}

std::string TransferChannels::describeWait(size_t p, uint32_t transfer) const {
  const SimulatedTransfer &end = progress.work.devices[p].transfers[transfer];
  const SimulatedChannel &channel = progress.work.channels.at(end.channel);
  return fmt::format("pipeline coordinate {} to {} microbatch {} on channel {}",
                     end.isSend ? channel.to : channel.from,
                     ends[p].isSending ? "start its receive of" : (end.isSend ? "receive" : "send"),
                     progress.executionOf(p).microbatch, end.channel);
}

} // namespace dtc
