//===- PlanReport.h - Summaries of plans as text and as JSON --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_PLANREPORT_H
#define DTC_REPORT_PLANREPORT_H

#include "plan/PlanSummary.h"
#include "simulator/Timeline.h"

#include <string>

namespace dtc {

/// Tables as text.
std::string formatSummary(const PlanSummary &summary);

/// One JSON object with every number of the summary, bytes and operations as plain numbers, and the
/// timeline if there is one.
std::string summaryToJson(const PlanSummary &summary, const Timeline *timeline = nullptr);

} // namespace dtc

#endif // DTC_REPORT_PLANREPORT_H
