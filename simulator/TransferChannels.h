//===- TransferChannels.h - Messages of a simulated step ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_TRANSFERCHANNELS_H
#define DTC_SIMULATOR_TRANSFERCHANNELS_H

#include "simulator/StepProgress.h"

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dtc {

/// The messages between the devices of a pipeline. One is on its way when both ends have started it
/// and, on a channel that carries one at a time, those before it have arrived.
class TransferChannels {
public:
  /// `advance` lets a device go on that has waited for an end of a message.
  TransferChannels(StepProgress &progress, std::function<void(size_t)> advance);

  /// Whether a device gets past the start or the end of one of its transfers now. If not, it waits,
  /// or the simulation has failed.
  bool passStart(size_t p, uint32_t transfer);
  bool passFinish(size_t p, uint32_t transfer);

  /// The message at work on a channel has arrived.
  void finish(uint32_t channel);

  /// Describes what a device waits for at the start or the end of a transfer.
  std::string describeWait(size_t p, uint32_t transfer) const;

private:
  static constexpr size_t kNobody = SIZE_MAX;

  struct Message {
    std::optional<uint32_t> sent, posted; // the microbatch of an end that has started
    double start = 0;                     // on its way
    bool isDone = false;
    std::array<size_t, 2> waiters = {kNobody, kNobody}; // the sender and the receiver
  };

  struct ChannelState {
    const SimulatedChannel *shape = nullptr;
    std::vector<Message> messages;
    size_t numSent = 0, numPosted = 0, numStarted = 0, numArrived = 0;
  };

  struct Ends {
    bool isSending = false;                                   // waits until its send is received
    std::map<std::pair<uint32_t, uint32_t>, size_t> underWay; // transfer, microbatch: the message
  };

  /// Puts the next messages of a channel on their way, if both ends have started them.
  void deliver(uint32_t channel);

  StepProgress &progress;
  std::function<void(size_t)> advance;
  std::vector<Ends> ends; // by device
  std::map<uint32_t, ChannelState> channels;
};

} // namespace dtc

#endif // DTC_SIMULATOR_TRANSFERCHANNELS_H
