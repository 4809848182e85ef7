//===- LinkSpeed.h - Bandwidth and latency of a link ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_LINKSPEED_H
#define DTC_SUPPORT_LINKSPEED_H

#include "support/Error.h"

#include <string>
#include <string_view>

namespace dtc {

/// The link between neighbours on a mesh axis, as plan.proto's Axis states it: 0 is unknown.
struct LinkSpeed {
  double bandwidth = 0; // bytes a second in each direction
  double latency = 0;   // seconds before the first byte

  bool operator==(const LinkSpeed &) const = default;
};

/// The assumed link where nothing is known: a network card of 200 Gbit/s, and a message through it.
inline constexpr LinkSpeed kAssumedLink = {25e9, 10e-6};

/// A link with the name of its mesh axis.
struct NamedLink {
  std::string axis;
  LinkSpeed speed;

  bool operator==(const NamedLink &) const = default;
};

/// "25GB/s,10us". Bandwidths are in B/s, kB/s, MB/s, GB/s or TB/s (powers of ten), latencies in ns,
/// us, ms or s; both are more than 0. One of them may be left out and is then 0.
Expected<LinkSpeed> parseLinkSpeed(std::string_view text);

/// "dp=25GB/s,10us": the form of the tools' --link. An error quotes the text; the caller adds the
/// name of the flag.
Expected<NamedLink> parseNamedLink(std::string_view text);

/// "25 GB/s 10 us"; unknown figures are left out.
std::string formatLinkSpeed(const LinkSpeed &speed);

} // namespace dtc

#endif // DTC_SUPPORT_LINKSPEED_H
