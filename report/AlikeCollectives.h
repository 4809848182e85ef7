//===- AlikeCollectives.h - Collectives that are alike --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_ALIKECOLLECTIVES_H
#define DTC_REPORT_ALIKECOLLECTIVES_H

#include "report/PlanExplanation.h"

#include <vector>

namespace dtc {

/// Groups collectives that are alike but for the number of their layer, in the order of the first
/// of each group. See also representativeOf().
std::vector<ExplainedRow>
mergeAlikeCollectives(const std::vector<ExplainedCollective> &collectives);

} // namespace dtc

#endif // DTC_REPORT_ALIKECOLLECTIVES_H
