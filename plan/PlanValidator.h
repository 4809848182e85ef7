//===- PlanValidator.h - Verification of a plan ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_PLANVALIDATOR_H
#define DTC_PLAN_PLANVALIDATOR_H

#include "plan/plan.pb.h"
#include "support/Error.h"

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
inline constexpr int kMaxCompanions = 16;
/// Every buffer's offset is a multiple of this many bytes.
inline constexpr uint64_t kBufferAlignment = 64;

/// An error if this runtime does not read plans of that version.
MaybeError checkPlanVersion(uint32_t version);

/// Checks everything that can be known from the plan alone: version, mesh, buffers, calls of
/// kernels (names, numbers of operands, attributes: KernelTable.h), collectives, shardings, states,
/// inputs and outputs, transfers. Then it follows the schedules: whatever is read was written
/// before, for the same microbatch, and not overwritten since; nothing touches what is being sent
/// or received; and the programs have no deadlock. The plan's companions are
/// checked in the same way, and for having the plan's states where it has them. A plan that passes
/// can be run to its end without touching memory outside its arena; the types and shapes of a
/// kernel's operands are checked by Backend::prepare. The error says where in the plan the fault
/// lies. With `repeatsLoop` all this holds however often the plan's loop over microbatches runs;
/// programs without a deadlock have none either when each runs its loop again.
MaybeError validatePlan(const plan::Plan &plan, bool repeatsLoop = false);

} // namespace dtc

#endif // DTC_PLAN_PLANVALIDATOR_H
