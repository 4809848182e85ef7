//===- TimelineSvg.h - Timelines as figures -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_TIMELINESVG_H
#define DTC_REPORT_TIMELINESVG_H

#include "simulator/Timeline.h"

#include <string>

namespace dtc {

/// An SVG 1.1 document without other files: a row for each device with time to the right, a
/// coloured box for each piece of work (its microbatch inside, all about it in its tooltip),
/// hatching where a device waits, thin lines for transfers, and a legend of kinds and shades. The
/// same timeline gives the same bytes.
std::string timelineToSvg(const Timeline &timeline);

} // namespace dtc

#endif // DTC_REPORT_TIMELINESVG_H
