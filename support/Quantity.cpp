//===- Quantity.cpp - Quantities with units of measure --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Quantity.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace dtc {

std::optional<double> parseQuantity(std::string_view text, std::span<const Unit> units) {
  // from_chars would take "inf" and "-1" too.
  if (text.empty() || text.front() < '0' || text.front() > '9')
    return std::nullopt;
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc())
    return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  while (text.starts_with(' '))
    text.remove_prefix(1);
  for (const Unit &unit : units)
    if (text == unit.name && std::isfinite(value * unit.factor))
      return value * unit.factor;
  return std::nullopt;
}

Expected<uint64_t> parseByteSize(std::string_view text) {
  static constexpr double kibi = 1024;
  static constexpr Unit units[] = {{"", 1},
                                   {"B", 1},
                                   {"kB", 1e3},
                                   {"MB", 1e6},
                                   {"GB", 1e9},
                                   {"TB", 1e12},
                                   {"KiB", kibi},
                                   {"MiB", kibi * kibi},
                                   {"GiB", kibi * kibi * kibi},
                                   {"TiB", kibi * kibi * kibi * kibi}};
  // A double holds no more than 53 bits of a plain number.
  uint64_t plain = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), plain);
  if (error == std::errc() && end == text.data() + text.size())
    return plain;
  std::optional<double> bytes = parseQuantity(text, units);
  if (!bytes)
    return Error{fmt::format("\"{}\" is no number of bytes; expected a number that is not negative "
                             "with B, kB, MB, GB, TB, KiB, MiB, GiB, TiB or no unit, such as 64MiB",
                             text)};
  if (*bytes >= 0x1p64)
    return Error{
        fmt::format("\"{}\" is more bytes than 64 bits count; expected less than 2^64", text)};
  return static_cast<uint64_t>(*bytes);
}

} // namespace dtc
