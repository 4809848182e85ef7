//===- PlanVerifier.h - Verification of a plan ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_PLANVERIFIER_H
#define DTC_PLAN_PLANVERIFIER_H

#include "plan/plan.pb.h"
#include "support/Error.h"

#include <optional>
#include <vector>

namespace dtc {

/// The most devices that a plan may be made for.
inline constexpr int64_t kMaxPlanDevices = int64_t{1} << 20;
/// The most axes of a mesh. More than 20 of them cannot have several devices each.
inline constexpr int kMaxMeshAxes = 64;
/// The most microbatches.
inline constexpr int64_t kMaxMicrobatches = int64_t{1} << 20;
/// The most dimensions of a tensor.
inline constexpr int kMaxTensorRank = 16;
/// The largest arena: 64 TiB, small enough that no sum of offsets overflows.
inline constexpr uint64_t kMaxArenaBytes = uint64_t{1} << 46;
/// The most entry points beside a plan's own.
inline constexpr int kMaxEntryPoints = 16;
/// Every buffer's offset is a multiple of this many bytes.
inline constexpr uint64_t kBufferAlignment = 64;

/// The most operands to follow through the schedule of a program. A transfer that starts counts as
/// several. A task that leaves the arena's values as they were is followed once (see
/// VerifyDataflow.cpp), and each repetition counts as one. See WorkLimit.h.
inline constexpr int64_t kMaxFollowedOperands = int64_t{1} << 27;

/// The work of one program in a step, on one device.
struct ProgramVerifierResult {
  int64_t entries = 0;      // of the schedule
  int64_t instructions = 0; // executed
  int64_t sends = 0;        // messages
  int64_t receives = 0;     // messages
  uint64_t arenaBytes = 0;
  uint64_t arenaLowerBound = 0;
  uint64_t hostArenaBytes = 0;

  /// The buffer that holds the values of the most microbatches at one moment, each from its write
  /// to its last read; of several, the first. Buffers that share slots count as one, the first of
  /// them. No buffer where none has slots.
  struct Slots {
    uint32_t buffer = 0;
    uint32_t alive = 0;    // values
    uint32_t reserved = 0; // slots
    uint32_t buffers = 1;  // that share them, without views
  };
  std::optional<Slots> slots;
};

/// The findings of verifyPlan() about a plan, without its further entry points.
struct VerifierResult {
  std::vector<ProgramVerifierResult> programs;
  int64_t microbatches = 1;
  int64_t channels = 0;
  /// Messages of a step between one device of each program. Each is sent and received.
  int64_t messages = 0;
};

/// An error if this runtime does not read plans of that version.
MaybeError checkPlanVersion(uint32_t version);

/// Checks everything that the plan alone determines: version, mesh, buffers, calls of kernels
/// (names, numbers of operands, attributes: KernelTable.h), collectives, shardings, states, inputs
/// and outputs, transfers. Then it follows the schedules: each value that is read was written
/// before, for the same microbatch, and not overwritten since; nothing touches a tensor in flight;
/// no message goes into the loop over microbatches or out of it; and the programs have no deadlock.
/// The plan's entry points are checked in the same way, and for having the plan's states where it
/// has them. A plan that passes can be run to its end without touching memory outside its arena;
/// the types and shapes of a kernel's operands are checked by Backend::prepare. The error says
/// where in the plan the fault lies. With `repeatsLoop` all this holds however often the plan's
/// loop over microbatches runs (VerifyDeadlock.cpp says why no deadlock comes of it).
Expected<VerifierResult> verifyPlan(const plan::Plan &plan, bool repeatsLoop = false);

/// The error alone.
MaybeError findPlanError(const plan::Plan &plan, bool repeatsLoop = false);

} // namespace dtc

#endif // DTC_PLAN_PLANVERIFIER_H
