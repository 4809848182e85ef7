//===- PlanReport.h - Summaries of plans as text and as JSON --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_PLANREPORT_H
#define DTC_REPORT_PLANREPORT_H

#include "plan/PlanSummary.h"
#include "report/PeakValues.h"
#include "simulator/Timeline.h"

#include <string>

namespace dtc {

/// Tables as text. If `peak` is given, they include the largest tensors at the peak of the program
/// with the largest arena.
std::string formatSummary(const PlanSummary &summary, const PlanPeak *peak = nullptr);

/// One JSON object with every number of the summary, bytes and operations as plain numbers, and the
/// timeline and the peak if there are any.
std::string summaryToJson(const PlanSummary &summary, const Timeline *timeline = nullptr,
                          const PlanPeak *peak = nullptr);

} // namespace dtc

#endif // DTC_REPORT_PLANREPORT_H
