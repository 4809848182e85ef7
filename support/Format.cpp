//===- Format.cpp - Formatting of numbers and lists -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Format.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtc {

std::string formatBytes(uint64_t bytes) {
  static constexpr const char *units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024)
    return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string formatShape(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

std::string formatSeconds(double seconds) {
  if (!std::isfinite(seconds))
    return "?";
  // A year of seconds is as good as any larger number.
  auto whole = std::llround(std::clamp(seconds, 0.0, 3.2e7));
  if (whole < 60)
    return fmt::format("{}s", whole);
  if (whole < 3600)
    return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
}

std::string formatDuration(double seconds) {
  static constexpr const char *units[] = {"ns", "us", "ms", "s"};
  if (!std::isfinite(seconds))
    return "?";
  if (seconds == 0)
    return "0 s";
  double value = seconds * 1e9;
  size_t unit = 0;
  // A value that would be shown as 1000.0 is 1.0 of the next unit.
  while (value >= 999.95 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, units[unit]);
}

} // namespace dtc
