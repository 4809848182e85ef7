//===- AxisLinks.h - Assumed rates of the links of a mesh -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_AXISLINKS_H
#define DTC_SIMULATOR_AXISLINKS_H

#include "plan/plan.pb.h"
#include "support/Error.h"
#include "support/LinkSpeed.h"

#include <string>
#include <vector>

namespace dtc {

/// The source of a link's figures.
enum class LinkOrigin { Assumed, Plan, Option };

/// The link that the estimates take for one spatial axis of more than one device.
struct AxisLink {
  std::string axis;
  std::string
      subAxisOf;   // the axis that the user knows, where the compiler took one apart; else empty
  LinkSpeed speed; // both figures are more than 0
  LinkOrigin bandwidthFrom = LinkOrigin::Assumed;
  LinkOrigin latencyFrom = LinkOrigin::Assumed;
};

/// An error if a link names no spatial axis of the plan, or two name the same. The name of an axis
/// that the compiler took apart stands for all its parts.
MaybeError checkLinks(const plan::Plan &plan, const std::vector<NamedLink> &links);

/// The link of one axis, with `links` that checkLinks() accepts. The plan gives the figures that
/// they leave open, and kAssumedLink those that the plan leaves open.
AxisLink resolveLink(const plan::Axis &axis, const std::vector<NamedLink> &links);

} // namespace dtc

#endif // DTC_SIMULATOR_AXISLINKS_H
