//===- RunIdentity.h - Identity of a run ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CHECKPOINT_RUNIDENTITY_H
#define DTC_RUNTIME_CHECKPOINT_RUNIDENTITY_H

#include "plan/plan.pb.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/data/DataSource.h"
#include "runtime/data/Sampling.h"
#include "support/Error.h"

#include <set>
#include <span>
#include <string>
#include <string_view>

namespace dtc::runtime {

/// The properties that a user may allow to change: "batch", "data", "model", "optimizer", "seed",
/// "sequence".
std::span<const std::string_view> allowedChanges();

/// The samples of a batch of the plan; 0 where it needs no data.
int64_t samplesOfBatch(const plan::Plan &plan);

/// The identity of a run of a plan; `data` is null for one that needs none. An error is one of
/// reading the data.
Expected<RunIdentity> identityOf(const plan::Plan &plan, int64_t batches, uint64_t seed,
                                 const DataSource *data, Sampling sampling);

/// Fails if a property differs that is not in `allowed`: the error names both values of each and
/// the flag that allows it. Differences that are allowed are appended to `notes`, and so is a step
/// of as many samples in another number of batches. For the optimizer, this compares the settings
/// of parameters that both train; loadCheckpoint() compares the parameters themselves, and this
/// compares the operations of the model only where those are the same.
MaybeError checkIdentity(const RunIdentity &saved, const RunIdentity &now,
                         const std::set<std::string> &allowed, std::vector<std::string> &notes);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CHECKPOINT_RUNIDENTITY_H
