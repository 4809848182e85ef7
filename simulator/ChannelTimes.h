//===- ChannelTimes.h - When the messages of a channel arrive -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_CHANNELTIMES_H
#define DTC_SIMULATOR_CHANNELTIMES_H

#include "plan/TransferEnds.h"
#include "simulator/Timeline.h"
#include "support/Error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace dtc::runtime {

/// The messages of a channel, one behind the other: each is on its way once its send and its
/// receive have started and the one before it has arrived. Times are known once both devices have
/// come to them.
class ChannelTimes {
public:
  /// A message takes `seconds`.
  ChannelTimes(uint32_t number, const TransferEnds &ends, double seconds)
      : number(number), ends(ends), seconds(seconds) {}

  /// The next send, or the next receive, starts at that time. The number of its message; an error
  /// if the other end of that is for another microbatch.
  Expected<size_t> start(bool isSend, uint32_t microbatch, double time);
  /// When the receive of a message that was sent or received has started.
  std::optional<double> posted(size_t message) const { return messages[message].posted; }
  std::optional<double> arrived(size_t message) const { return messages[message].end; }

  /// The program at the other end.
  size_t otherEnd(bool isSend) const { return isSend ? ends.to : ends.from; }
  /// Adds the messages that have arrived.
  void addTo(std::vector<TransferInterval> &transfers) const;

private:
  struct Message {
    uint32_t sentMicrobatch = 0;
    uint32_t postedMicrobatch = 0;
    std::optional<double> sent;   // when its send started
    std::optional<double> posted; // when its receive started
    std::optional<double> start;
    std::optional<double> end;
  };

  void deliver();

  uint32_t number;
  TransferEnds ends;
  double seconds;
  std::vector<Message> messages;
  size_t numSent = 0;
  size_t numPosted = 0;
  size_t numArrived = 0;
};

} // namespace dtc::runtime

#endif // DTC_SIMULATOR_CHANNELTIMES_H
