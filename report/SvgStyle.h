//===- SvgStyle.h - Common style of SVG figures ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_SVGSTYLE_H
#define DTC_REPORT_SVGSTYLE_H

#include "support/Kinds.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dtc {

/// How many chunks of a device have colours of their own; further chunks repeat the colours.
inline constexpr size_t kNumTaskShades = 4;

/// The colour of a task, "#1f5fb4", for the chunks of a device in turn. White text is readable on
/// all of them.
const char *taskColour(std::optional<StagePass> pass, size_t chunk);

/// Text that XML and HTML allow, in elements and in quoted attributes: as on a terminal (see
/// printable()), with the signs of XML escaped. Names come from files and may hold any bytes.
std::string escapeXml(std::string_view text);

} // namespace dtc

#endif // DTC_REPORT_SVGSTYLE_H
