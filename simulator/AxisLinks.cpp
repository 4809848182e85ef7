//===- AxisLinks.cpp - Assumed rates of the links of a mesh ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/AxisLinks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace dtc {

MaybeError checkLinks(const plan::Plan &plan, const std::vector<NamedLink> &links) {
  std::set<std::string> seen;
  for (const NamedLink &link : links) {
    std::vector<std::string> known;
    bool found = false, temporal = false;
    for (const plan::Axis &axis : plan.axes()) {
      bool named = link.axis == axis.name() || link.axis == axis.sub_axis_of();
      temporal |= named && axis.temporal();
      found |= named && !axis.temporal();
      if (!axis.temporal())
        known.push_back(axis.name());
    }
    if (temporal)
      return Error{fmt::format("axis \"{}\" counts microbatches and has no link; expected an axis "
                               "of devices",
                               link.axis)};
    if (!found)
      return Error{fmt::format("the mesh has no axis \"{}\"; {}", link.axis,
                               known.empty()
                                   ? "it is one device and has no links"
                                   : fmt::format("its axes are {}", fmt::join(known, ", ")))};
    if (!seen.insert(link.axis).second)
      return Error{fmt::format("axis \"{}\" has two links; expected one", link.axis)};
  }
  return std::nullopt;
}

static void overrideLink(AxisLink &link, const LinkSpeed &speed, LinkOrigin origin) {
  if (speed.bandwidth > 0) {
    link.speed.bandwidth = speed.bandwidth;
    link.bandwidthFrom = origin;
  }
  if (speed.latency > 0) {
    link.speed.latency = speed.latency;
    link.latencyFrom = origin;
  }
}

AxisLink resolveLink(const plan::Axis &axis, const std::vector<NamedLink> &links) {
  AxisLink result{axis.name(), axis.sub_axis_of(), kAssumedLink};
  overrideLink(result, {axis.bandwidth(), axis.latency()}, LinkOrigin::Plan);
  // The link of a sub-axis is more precise than the link of the whole axis.
  for (const NamedLink &link : links)
    if (!axis.sub_axis_of().empty() && link.axis == axis.sub_axis_of())
      overrideLink(result, link.speed, LinkOrigin::Option);
  for (const NamedLink &link : links)
    if (link.axis == axis.name())
      overrideLink(result, link.speed, LinkOrigin::Option);
  return result;
}

} // namespace dtc
