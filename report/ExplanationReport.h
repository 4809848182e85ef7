//===- ExplanationReport.h - Explanations as text and as JSON -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_EXPLANATIONREPORT_H
#define DTC_REPORT_EXPLANATIONREPORT_H

#include "report/PlanExplanation.h"

#include <cstddef>
#include <string>

namespace dtc {

/// The number of groups of collectives in a report by default.
inline constexpr size_t kDefaultExplainedRows = 20;

/// Tables as text, 120 columns wide, with the `top` groups of collectives that cost most.
std::string formatExplanation(const PlanExplanation &explanation,
                              size_t top = kDefaultExplainedRows);

/// One JSON object with every collective of the plan; sizes in bytes, times in seconds.
std::string explanationToJson(const PlanExplanation &explanation);

} // namespace dtc

#endif // DTC_REPORT_EXPLANATIONREPORT_H
