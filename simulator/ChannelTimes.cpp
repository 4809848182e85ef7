//===- ChannelTimes.cpp - When the messages of a channel arrive -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/ChannelTimes.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

Expected<size_t> ChannelTimes::start(bool isSend, uint32_t microbatch, double time) {
  size_t index = isSend ? numSent++ : numPosted++;
  if (index == messages.size())
    messages.emplace_back();
  Message &message = messages[index];
  (isSend ? message.sentMicrobatch : message.postedMicrobatch) = microbatch;
  (isSend ? message.sent : message.posted) = time;
  if (message.sent && message.posted && message.sentMicrobatch != message.postedMicrobatch)
    return Error{fmt::format("message {} of channel {} is of microbatch {}, but its receive is for "
                             "microbatch {}; expected the same order at both ends",
                             index, number, message.sentMicrobatch, message.postedMicrobatch)};
  deliver();
  return index;
}

/// Gives times to the messages that have both ends.
void ChannelTimes::deliver() {
  for (; numArrived < messages.size(); ++numArrived) {
    Message &message = messages[numArrived];
    if (!message.sent || !message.posted)
      return;
    message.start = std::max(*message.sent, *message.posted);
    if (numArrived > 0)
      message.start = std::max(*message.start, *messages[numArrived - 1].end);
    message.end = *message.start + seconds;
  }
}

void ChannelTimes::addTo(std::vector<TransferInterval> &transfers) const {
  for (const Message &message : messages)
    if (message.end)
      transfers.push_back({number, message.sentMicrobatch, ends.from, ends.to, ends.bytes,
                           *message.start, *message.end});
}

} // namespace dtc::runtime
