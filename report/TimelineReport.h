//===- TimelineReport.h - Timelines as text and as JSON -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_TIMELINEREPORT_H
#define DTC_REPORT_TIMELINEREPORT_H

#include "simulator/Timeline.h"

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace dtc {

/// The default width of a figure in columns, and the smallest possible one.
inline constexpr size_t kDefaultTimelineColumns = 100;
inline constexpr size_t kFewestTimelineColumns = 40;

/// A row for each device, with time to the right, and a summary. A box is a letter for the kind,
/// the microbatch, and dashes for the rest of its time: "F0--". Devices with several stages
/// alternate upper and lower case letters; dots are waiting time of a device. A figure that would
/// be too narrow to read goes on in further bands below. No line of it is longer than `columns`,
/// which is at least kFewestTimelineColumns.
std::string formatTimeline(const Timeline &timeline, size_t columns = kDefaultTimelineColumns);

/// All intervals and figures; times in seconds.
nlohmann::ordered_json timelineToJson(const Timeline &timeline);

} // namespace dtc

#endif // DTC_REPORT_TIMELINEREPORT_H
