//===- Quantity.h - Quantities with units of measure ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_QUANTITY_H
#define DTC_SUPPORT_QUANTITY_H

#include "support/Error.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace dtc {

/// A unit of measure and how many of the base unit it has: {"kB", 1e3}.
struct Unit {
  std::string_view name;
  double factor = 1;
};

/// "25GB/s" or "1.5 GB/s" in the base unit of `units`. No value if the text does not begin with a
/// number that is finite and not negative, or the rest of it is none of the units.
std::optional<double> parseQuantity(std::string_view text, std::span<const Unit> units);

/// A number of bytes: "1000", "512 B", "2GB" (2e9), "1.5MiB" (1.5 * 2^20). A fraction of a byte is
/// dropped.
Expected<uint64_t> parseByteSize(std::string_view text);

} // namespace dtc

#endif // DTC_SUPPORT_QUANTITY_H
