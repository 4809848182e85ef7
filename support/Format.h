//===- Format.h - Formatting of numbers and lists -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_FORMAT_H
#define DTC_SUPPORT_FORMAT_H

#include <cstdint>
#include <span>
#include <string>

namespace dtc {

/// "512 B", "1.5 KiB", "3.2 GiB".
std::string formatBytes(uint64_t bytes);

/// "[2, 3]".
std::string formatShape(std::span<const int64_t> shape);

/// A time to wait for: "45s", "3m12s", "2h05m".
std::string formatSeconds(double seconds);

/// A time that was measured or estimated: "0 s", "850.0 ns", "1.2 ms", "3.4 s".
std::string formatDuration(double seconds);

} // namespace dtc

#endif // DTC_SUPPORT_FORMAT_H
