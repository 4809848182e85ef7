//===- DataflowTracker.h - Arena contents while a schedule is followed ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_DATAFLOWTRACKER_H
#define DTC_PLAN_DATAFLOWTRACKER_H

#include "plan/ArenaValues.h"
#include "plan/ClosingInstructions.h"
#include "plan/PlanChecks.h"
#include "plan/SlotLiveRanges.h"
#include "plan/WorkLimit.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dtc {

/// The name of an operand in errors: "input 3", or the kind alone without a number. Only an error
/// makes the text.
struct OperandName {
  std::string_view kind;
  int number = -1;

  std::string str() const;
};

/// The values in the arena of one program and its transfers under way, at one point of the
/// schedule. A value is the result of one execution in one buffer; bytes hold values. The errors
/// name the value that was read, written or transferred. The user of this class adds the place.
class DataflowTracker {
public:
  /// The context must stay valid, and so must `channelsOfData`, the channels of values that each
  /// repetition of the loop has anew: sending such a value outside of the loop adds its channel,
  /// and receiving from one makes the received value such a value.
  DataflowTracker(const PlanContext &context, const ClosingInstructions &closing,
                  std::set<uint32_t> &channelsOfData, WorkLimit &budget);

  /// The running instruction. `now` rises with every instruction.
  struct ProgramPoint {
    int entry = -1; // of the schedule; -1: before the step
    int instruction = 0;
    uint32_t microbatch = 0;
    int repetition = 0;  // of the loop over microbatches
    bool inLoop = false; // the entry is in it
    bool closes = false; // the instruction is a closing one
    int64_t now = 0;
  };
  ProgramPoint point;

  /// An error unless the bytes of the buffer hold its own value, whole, and the expected one: the
  /// value of the present microbatch and repetition of the loop if it is made in the loop; after
  /// the loop, a sum over all microbatches and repetitions, or the only value. `what` names the
  /// operand.
  MaybeError read(OperandName what, uint32_t buffer);
  /// An error unless the sum has all microbatches before the present one, in their order, and of
  /// all repetitions of the loop. The first of all finds nothing.
  MaybeError readSum(uint32_t buffer);
  /// `ofData`: it is made from values that each repetition of the loop has anew.
  MaybeError write(uint32_t buffer, bool ofData = false);
  /// Whether the last value read is made, outside of the loop, from values that each repetition of
  /// it has anew.
  bool lastReadIsOfData() const { return lastIsOfData; }
  MaybeError startTransfer(uint32_t number);
  MaybeError finishTransfer(uint32_t number);
  /// An error that says where the first transfer was started that is not finished.
  MaybeError checkAllFinished() const;
  /// From here on, transfers that were finished may run again.
  void forgetTransfers() { starts.clear(); }
  /// Whether some byte of the buffer was never written.
  bool isUnwritten(uint32_t buffer);
  /// The task of an entry runs on up to that microbatch, with the same values as the entry left.
  void skipTo(uint32_t microbatch, int entry) { values.moveTo(microbatch, entry); }

  bool hasSlots(uint32_t buffer) const { return context.copies[buffer].slots > 0; }
  /// Takes time in the number of values; pay for it.
  const ArenaValues &heldValues() const { return values; }
  std::optional<ProgramVerifierResult::Slots> liveliestSlots() const { return lives.liveliest(); }
  int64_t sends() const { return startedSends; }
  int64_t receives() const { return startedReceives; }

private:
  /// One tensor, of some bytes, of a transfer that has started and not finished.
  struct InFlight {
    ByteRange range;
    uint32_t buffer;
    uint32_t transfer;
    uint32_t microbatch;
    bool isReceive;
  };
  /// The place where a transfer was started.
  struct Start {
    int entry, instruction;
    int64_t since;
    bool finished;
  };

  void markSums(const ClosingInstructions &closing);
  MaybeError checkReceives(uint32_t buffer) const;
  /// The buffer's own value in the bytes where it lies now; null if it has no bytes.
  Expected<ArenaValue *> findOwn(OperandName what, uint32_t buffer);
  MaybeError checkMoment(OperandName what, uint32_t buffer, const ArenaValue &value) const;
  bool isSum(uint32_t buffer) const { return sums[context.roots[buffer]]; }
  /// Whether it is made of whole sums, once in a step.
  bool isMadeOfSums(uint32_t buffer) const { return madeOfSums[context.roots[buffer]]; }
  /// The cost of comparing with every tensor in flight, beside the operand itself.
  int64_t stepsOfAccess() const { return static_cast<int64_t>(1 + inFlight.size() / 8); }
  ByteRange rangeNow(uint32_t buffer) const {
    return context.copies[buffer].forMicrobatch(point.microbatch);
  }
  MaybeError checkWrite(uint32_t buffer);
  void put(uint32_t buffer, int64_t since, bool ofData);
  Error overwritten(OperandName what, uint32_t buffer) const;
  Error conflict(const char *does, uint32_t buffer, const InFlight &other) const;

  std::string describe(uint32_t buffer, uint32_t ofMicrobatch) const;
  std::string describeWriter(const ArenaValue &value) const;
  std::string describeTransfer(uint32_t number, uint32_t ofMicrobatch) const;
  /// Sorts by transfer, then by microbatch.
  static uint64_t startKey(uint32_t transfer, uint32_t microbatch) {
    return uint64_t{transfer} << 32 | microbatch;
  }
  const plan::Transfer &transfer(uint32_t number) const {
    return context.program.transfers(static_cast<int>(number));
  }

  const PlanContext &context;
  std::set<uint32_t> &channelsOfData;
  WorkLimit &budget;
  ArenaValues values;
  SlotLiveRanges lives;
  int64_t microbatches;
  std::vector<bool> sums;       // by value: whether the kernel accumulate writes it
  std::vector<bool> madeOfSums; // by value: whether a closing instruction writes it
  std::vector<bool> isWritten;  // by value: whether something has written it
  bool lastIsOfData = false;
  std::vector<InFlight> inFlight;
  std::unordered_map<uint64_t, Start> starts; // by startKey()
  std::vector<ArenaValue *> found;
  int64_t startedSends = 0, startedReceives = 0;
};

} // namespace dtc

#endif // DTC_PLAN_DATAFLOWTRACKER_H
