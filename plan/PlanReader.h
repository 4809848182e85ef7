//===- PlanReader.h - Plans in files --------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_PLANREADER_H
#define DTC_PLAN_PLANREADER_H

#include "plan/PlanVerifier.h"
#include "plan/plan.pb.h"
#include "support/Error.h"

#include <memory>
#include <string>

namespace dtc {

/// The version of plans that this runtime reads and writes.
inline constexpr uint32_t kPlanVersion = 10;

/// Larger files are refused: parsing takes several times a file's size in memory.
inline constexpr uint64_t kMaxPlanFileBytes = uint64_t{256} << 20;

/// Reads a plan and verifies it (see PlanVerifier.h). The error begins with the path. The
/// verifier's findings go to `facts`, if given.
Expected<std::shared_ptr<const plan::Plan>> readPlan(const std::string &path,
                                                     VerifierResult *facts = nullptr);

/// Parses and verifies a plan in memory.
Expected<std::shared_ptr<const plan::Plan>> parsePlan(const void *data, size_t bytes,
                                                      VerifierResult *facts = nullptr);

/// The bytes of a plan; equal plans give equal bytes.
std::string serializePlan(const plan::Plan &plan);

/// Writes a plan whole or not at all. The error begins with the path.
MaybeError writePlan(const plan::Plan &plan, const std::string &path);

} // namespace dtc

#endif // DTC_PLAN_PLANREADER_H
