//===- LinkSpeed.cpp - Bandwidth and latency of a link --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/LinkSpeed.h"

#include "support/Quantity.h"

#include <fmt/format.h>
#include <iterator>
#include <span>

namespace dtc {

// The least first, as formatting expects them.
static constexpr Unit kBandwidthUnits[] = {
    {"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}};
static constexpr Unit kLatencyUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

static std::string_view trim(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

/// Stores one part of a link; an error if it is stated already.
static MaybeError store(const char *what, double value, double &field, std::string_view text) {
  if (!(value > 0))
    return Error{fmt::format("\"{}\" states a {} of 0; expected more than 0", text, what)};
  if (field > 0)
    return Error{fmt::format("\"{}\" states two of the kind {}; expected one bandwidth and one "
                             "latency, such as 25GB/s,10us",
                             text, what)};
  field = value;
  return std::nullopt;
}

Expected<LinkSpeed> parseLinkSpeed(std::string_view text) {
  LinkSpeed speed;
  std::string_view rest = text;
  while (true) {
    size_t comma = rest.find(',');
    std::string_view part = trim(rest.substr(0, comma));
    MaybeError error;
    if (std::optional<double> bandwidth = parseQuantity(part, kBandwidthUnits))
      error = store("bandwidth", *bandwidth, speed.bandwidth, text);
    else if (std::optional<double> latency = parseQuantity(part, kLatencyUnits))
      error = store("latency", *latency, speed.latency, text);
    else
      error = Error{fmt::format("\"{}\" is no bandwidth (in B/s, kB/s, MB/s, GB/s or TB/s) and no "
                                "latency (in ns, us, ms or s); expected such as 25GB/s,10us",
                                part)};
    if (error)
      return *error;
    if (comma == std::string_view::npos)
      return speed;
    rest.remove_prefix(comma + 1);
  }
}

Expected<NamedLink> parseNamedLink(std::string_view text) {
  size_t equals = text.find('=');
  std::string_view axis = trim(text.substr(0, equals));
  if (equals == std::string_view::npos || axis.empty())
    return Error{fmt::format("\"{}\" is not of the form axis=bandwidth,latency, such as "
                             "dp=25GB/s,10us",
                             text)};
  Expected<LinkSpeed> speed = parseLinkSpeed(text.substr(equals + 1));
  if (!speed)
    return speed.error().inContext(std::string(axis));
  return NamedLink{std::string(axis), *speed};
}

/// Writes a number in the largest unit in which it is at least one.
static std::string format(double value, std::span<const Unit> units) {
  size_t i = units.size() - 1;
  // A little less than one, or 1 us would be 1000 ns.
  while (i > 0 && value < units[i].factor * (1 - 1e-9))
    --i;
  return fmt::format("{:.4g} {}", value / units[i].factor, units[i].name);
}

std::string formatLinkSpeed(const LinkSpeed &speed) {
  std::string text;
  if (speed.bandwidth > 0)
    text = format(speed.bandwidth, kBandwidthUnits);
  if (speed.latency > 0)
    text += (text.empty() ? "" : " ") + format(speed.latency, kLatencyUnits);
  return text;
}

} // namespace dtc
