//===- PlanVerifier.h - Verification of a plan, with its results ----------===//
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

/// The most operands that are followed through the schedule of a program, where a transfer that
/// starts counts as several. What leaves the arena's values as they were is followed once (see
/// ValidateDataflow.cpp), and each repetition counts as one. See WorkLimit.h.
inline constexpr int64_t kMaxFollowedOperands = int64_t{1} << 27;

/// What one program does in a step, on one device.
struct ProgramVerifierResult {
  int64_t entries = 0;      // of the schedule
  int64_t instructions = 0; // executed
  int64_t sends = 0;        // messages
  int64_t receives = 0;     // messages
  uint64_t arenaBytes = 0;
  uint64_t arenaLowerBound = 0;

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

/// What validatePlan() found, but for the plan's companions, while it proved that a plan can be
/// run.
struct VerifierResult {
  std::vector<ProgramVerifierResult> programs;
  int64_t microbatches = 1;
  int64_t channels = 0;
  /// Messages of a step between one device of each program. Each is sent and received.
  int64_t messages = 0;
};

/// Does what validatePlan() does, which see, and returns what it found on the way.
Expected<VerifierResult> verifyPlan(const plan::Plan &plan, bool repeatsLoop = false);

} // namespace dtc

#endif // DTC_PLAN_PLANVERIFIER_H
