//===- PipelineSimulation.h - Simulation of pipeline schedules ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
// The time of a schedule, whether it comes to an end, and when the receivers of messages must be
// ready for them.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_PIPELINESIMULATION_H
#define DTC_COMPILER_ANALYSIS_PIPELINESIMULATION_H

#include "compiler/analysis/PipelineSchedule.h"

#include "llvm/ADT/SmallVector.h"

namespace dtc {

/// The seconds of the passes of a stage for one microbatch. Backward takes both of the last two
/// where the schedule has no units of kind Weight.
struct StageSeconds {
  double forward = 1;
  double backward = 1;
  double weight = 1;
};

/// The units of one kind and stage, one for each microbatch.
struct UnitRole {
  StagePass kind = StagePass::Forward;
  int stage = 0;
};

/// A value that each microbatch has of its own: made by one unit, used by others of one device. It
/// is a message where that is another device than the producer's.
struct StageValue {
  UnitRole producer;
  llvm::SmallVector<UnitRole, 4> consumers; ///< at least one
  double seconds = 0;                       ///< of the transfer, if it is one
};

/// An activation of stage `from` that stage `to`, a higher one, needs; its gradient comes back.
struct StageEdge {
  int from = 0;
  int to = 1;
  double seconds = 0; ///< of a transfer one way
};

/// Two channels for each link: the activation is used by all units of `to`, the gradient by
/// Backward and Weight of `from`.
std::vector<StageValue> linkValues(const PipelineSchedule &schedule,
                                   llvm::ArrayRef<StageEdge> links);

/// Each stage linked to the next.
std::vector<StageEdge> chainEdges(const PipelineShape &shape, double seconds = 0);

/// How the messages of a channel are received.
struct ReceivePosting {
  /// Copies of the buffer: microbatch i is received into copy i mod slots.
  int slots = 1;
  /// By microbatch: the place in the receiver's order before whose unit the receive is posted,
  /// after all that the unit before it does. Ascending.
  std::vector<int> positions;
  /// By microbatch: the place in the sender's order of the unit that makes the message. Receives of
  /// one device at one place are posted in the order of these, and then of channels: that of the
  /// sends.
  std::vector<int> sentAt;
};

struct UnitTime {
  double start = 0;
  double end = 0;
};

/// The most microbatches that are between the start of Forward and the end of the last use of the
/// activations, by stage and, each stage counted, by device.
struct PipelineInFlight {
  std::vector<int> stageInFlight;
  std::vector<int> deviceInFlight;
};

/// Counts the microbatches in flight of a schedule, however long its units take.
PipelineInFlight countInFlight(const PipelineSchedule &schedule);

struct PipelineSimulation : PipelineInFlight {
  std::vector<std::vector<UnitTime>> times; ///< by device, as its order; none after a deadlock
  double span = 0;                          ///< seconds from the first start to the last end
  double bubbleShare = 0;                   ///< of devices * span, the part without work
  /// Empty, or the wait of each device that cannot go on.
  std::string deadlock;
};

/// Simulates a schedule (simulator/StepSimulator.h). A unit starts when the one before it in its
/// device's order has ended and all channels that it is a consumer of have brought its microbatch;
/// Backward needs Forward of its own stage, and Weight needs Backward.
///
/// Without `postings`, senders never wait. With them (one for each channel; those of channels
/// within a device are not looked at) a send is a rendezvous: after a unit, its device sends the
/// unit's values in the order of channels, each no earlier than the receive has been posted.
/// Messages do not wait for each other.
PipelineSimulation simulateSchedule(const PipelineSchedule &schedule,
                                    llvm::ArrayRef<StageSeconds> stageSeconds,
                                    llvm::ArrayRef<StageValue> channels,
                                    llvm::ArrayRef<ReceivePosting> postings = {});

/// The fewest copies of a buffer so that microbatch i can have copy i mod copies, where it is in
/// use from first[i] to last[i] (program points, or places in an order), both included.
int countSlots(llvm::ArrayRef<int> first, llvm::ArrayRef<int> last);

/// Slots and places for the receives of one channel, from a simulation in which senders never wait:
/// `sendTimes[i]` is the end of the unit that sends microbatch i, ascending; `lastUses[i]` the
/// place in the receiver's order of the last unit that uses it; `receiverEnds` are the ends of the
/// receiver's units, in its order.
///
/// There are as few slots as let each receive be posted before the sender needs it: while the unit
/// before the one that runs, or that the receiver waits for, has not ended yet. There are at least
/// two, where there are two microbatches, so that a message can arrive while another is in use.
/// Then each receive is posted as early as that many slots allow: right after the last use of the
/// message that had its slot.
///
/// If all receives of a schedule are posted like this, rendezvous sends cannot deadlock, however
/// long units and transfers really take. Proof. Give each event the time of the simulation: a unit
/// its end, its sends the same, and a receive the end of the unit that it is posted after (or -inf
/// at the beginning). A send at time t waits only for a receive whose time is less than t: it is
/// posted before the first unit that ends at t or later, or earlier still. All other dependencies
/// (from unit to unit along a device's order, from a unit to its sends and what it needs to it,
/// from a unit to the receives after it and from these to the next unit) go to the same time or a
/// later one. So a cycle would consist of events of one time, and hence not contain a send that
/// waits for a receive; but all other dependencies are those of the simulation, which came to its
/// end.
ReceivePosting postReceives(llvm::ArrayRef<double> sendTimes, llvm::ArrayRef<int> lastUses,
                            llvm::ArrayRef<double> receiverEnds);

/// The same for all channels, as `simulateSchedule` takes them. A channel within a device gets no
/// positions, and the slots that it needs from its producer to the last use.
///
/// Receives of messages between two devices are posted in the order of the sends, so that a network
/// can carry them one after the other: each at the latest of the places of those that are sent
/// before it. That is early enough. The places at which receives must have been posted do not fall
/// along the sends, whose times do not, and none is posted later than its own.
std::vector<ReceivePosting> postReceives(const PipelineSchedule &schedule,
                                         llvm::ArrayRef<StageValue> channels,
                                         const PipelineSimulation &simulation);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_PIPELINESIMULATION_H
