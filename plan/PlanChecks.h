//===- PlanChecks.h - The parts of the plan verifier ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each function checks one part of a plan and expects that the parts before it have passed, in the
// order in which they are listed here.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_PLANCHECKS_H
#define DTC_PLAN_PLANCHECKS_H

#include "plan/PlanVerifier.h"
#include "plan/WorkLimit.h"
#include "plan/plan.pb.h"
#include "support/Error.h"
#include "support/Mesh.h"
#include "support/Tensor.h"

#include <set>
#include <string>
#include <vector>

namespace dtc {

/// A buffer's range of bytes of the arena.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool empty() const { return begin == end; }
  bool operator==(const ByteRange &) const = default;
  bool overlaps(const ByteRange &other) const {
    return !empty() && !other.empty() && begin < other.end && other.begin < end;
  }
};

/// The places of the copies of a buffer.
struct BufferSlots {
  ByteRange first;
  uint64_t stride = 0; // bytes from one copy to the next
  uint32_t slots = 0;  // as in the plan; 0 and 1 both mean one copy
  // The copy that each microbatch has, in the plan. Null: they take turns.
  const plan::SlotMap *map = nullptr;

  uint32_t count() const { return slots > 1 ? slots : 1; }
  uint32_t indexFor(uint32_t microbatch) const {
    return map ? map->slots(static_cast<int>(microbatch)) : microbatch % count();
  }
  /// The copy that the buffer means in the execution of a task for that microbatch.
  ByteRange forMicrobatch(uint32_t microbatch) const {
    uint64_t shift = stride * indexFor(microbatch);
    return {first.begin + shift, first.end + shift};
  }
  /// Whether both mean their k-th copies always for the same k, at the same distance.
  bool advancesLike(const BufferSlots &other) const {
    return count() == other.count() &&
           (count() == 1 || (stride == other.stride && map == other.map));
  }
};

/// Where the ranges of buffers in the memory of the host begin: beyond those of the device, so that
/// one proof about bytes covers both memories.
inline constexpr uint64_t kHostRangesBegin = kMaxArenaBytes;

/// A program of a plan with the findings of the first checks.
struct PlanContext {
  const plan::Plan &plan;
  const plan::Program &program;
  int number = 0; // of the program
  const Mesh &mesh;
  std::vector<TensorType> types;   // of each buffer
  std::vector<BufferSlots> copies; // of each buffer
  std::vector<ByteRange> ranges;   // of each buffer, all copies together
  std::vector<uint32_t> roots;     // by buffer its value: itself, or the viewed buffer

  /// Whether the two may share bytes in an execution of a task. Exact for buffers whose copies
  /// advance together; of others, the copies of all microbatches are compared.
  bool mayShareBytes(uint32_t a, uint32_t b) const {
    return copies[a].advancesLike(copies[b]) ? copies[a].first.overlaps(copies[b].first)
                                             : ranges[a].overlaps(ranges[b]);
  }
  /// Whether the two are always the same bytes.
  bool areSameBytes(uint32_t a, uint32_t b) const {
    return copies[a].advancesLike(copies[b]) && copies[a].first == copies[b].first;
  }
};

/// The element type is known, the shape's sizes are not negative, their product and the bytes do
/// not overflow, the rank is at most kMaxTensorRank.
MaybeError checkTensor(plan::DType dtype, const google::protobuf::RepeatedField<int64_t> &shape);

/// An error that names the buffer if there is no such buffer.
MaybeError checkBufferIndex(const PlanContext &context, uint32_t buffer);
/// An error unless the buffer lies in the memory of the device. `what` has to, as in "an input".
MaybeError checkOnDevice(const PlanContext &context, uint32_t buffer, const char *what);

/// The arena and the buffers; fills in the context.
MaybeError checkBuffers(PlanContext &context);

/// Operands, collectives, attributes and sources of all instructions; the schedule.
MaybeError checkInstructions(const PlanContext &context);

/// Checks async collectives and waits: every collective is waited for once, and until then nothing
/// writes its inputs and nothing touches its outputs. `budget` is at this program.
MaybeError checkAsync(const PlanContext &context, WorkLimit &budget);

/// States, inputs and outputs with their shardings and buffers.
MaybeError checkBindings(const PlanContext &context);

/// Each value has one writer: an instruction, a transfer that receives it, or the setup of states
/// and inputs before the step. Expects that all indices have been checked.
MaybeError checkWriters(const PlanContext &context);

/// The program's transfers, each for itself.
MaybeError checkTransfers(const PlanContext &context);

/// Each channel has two ends that agree. Bindings with one name are equal in all programs.
MaybeError checkChannels(const std::vector<PlanContext> &programs);
MaybeError checkSharedBindings(const std::vector<PlanContext> &programs);

/// Follows the schedule: every operand finds in its bytes the value that it names, whole, of its
/// own microbatch and of the same repetition of the loop; a sum that is read after the loop has
/// every microbatch once, in their order; nothing touches a tensor in flight. With `repeatsLoop`
/// this holds however often the loop over microbatches runs. `budget` is at this program. Values
/// that are made outside of the loop from values that each repetition of it has anew may go to
/// other programs: `channelsOfData` gets the channels that send them. As long as it grows, the
/// receiving programs must be followed again.
Expected<ProgramVerifierResult> checkDataflow(const PlanContext &context, bool repeatsLoop,
                                              std::set<uint32_t> &channelsOfData,
                                              WorkLimit &budget);

/// Runs the transfers of all programs together, each message in the loop at both ends or on one
/// side of it; the number of messages that a pipeline of one device for each program sends in a
/// step.
Expected<int64_t> checkDeadlock(const std::vector<PlanContext> &programs);

/// `task "forward", instruction 12 (kernel einsum, from ...), microbatch 3` of an entry of the
/// schedule; the microbatch only where there are several.
std::string describeExecution(const PlanContext &context, int entry, int instruction);

/// verifyPlan() within a limit, which is for the plan and its entry points together.
Expected<VerifierResult> verifyWithin(WorkLimit budget, const plan::Plan &plan, bool repeatsLoop);

/// The number of microbatches.
int64_t microbatchesOf(const Mesh &mesh);

/// The place of an entry of the schedule: in the loop over microbatches, or on one side of it.
/// Without a loop all entries lie after it.
enum class LoopPlace { Before, In, After };
inline LoopPlace loopPlaceOf(const plan::Program &program, int entry) {
  if (entry >= static_cast<int>(program.loop_end()))
    return LoopPlace::After;
  return entry < static_cast<int>(program.loop_begin()) ? LoopPlace::Before : LoopPlace::In;
}
inline bool isInLoop(const plan::Program &program, int entry) {
  return loopPlaceOf(program, entry) == LoopPlace::In;
}
/// "before the loop over microbatches", for messages.
std::string describe(LoopPlace place);

} // namespace dtc

#endif // DTC_PLAN_PLANCHECKS_H
