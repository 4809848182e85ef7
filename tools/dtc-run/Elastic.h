//===- Elastic.h - Plans for fewer devices ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_ELASTIC_H
#define DTC_TOOLS_DTC_RUN_ELASTIC_H

#include "support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// A plan with which a run can go on.
struct ElasticPlan {
  std::string path;
  int64_t devices = 0;
};

/// The plans of a folder (*.plan) for fewer devices than the one at `planPath` has, the largest
/// first. The error names a plan that has another batch, so that the run would be another one.
Expected<std::vector<ElasticPlan>> findElasticPlans(const std::string &folder,
                                                    const std::string &planPath);

/// "6, 4": the numbers of devices that there are plans for.
std::string listDevices(const std::vector<ElasticPlan> &plans);

/// The first plan that has at most `devices` devices.
std::optional<ElasticPlan> planFor(const std::vector<ElasticPlan> &plans, int64_t devices);

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_ELASTIC_H
