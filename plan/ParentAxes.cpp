//===- ParentAxes.cpp - Mesh axes before they were split --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/ParentAxes.h"

#include <algorithm>
#include <set>

namespace dtc {

std::vector<std::string> parentAxes(const plan::Plan &plan, const std::vector<std::string> &axes) {
  auto isNamed = [&](const plan::Axis &axis) {
    return std::find(axes.begin(), axes.end(), axis.name()) != axes.end();
  };
  std::vector<std::string> result;
  std::set<std::string> merged;
  for (const plan::Axis &axis : plan.axes()) {
    if (!isNamed(axis))
      continue;
    const std::string &whole = axis.sub_axis_of();
    bool together =
        !whole.empty() &&
        std::all_of(plan.axes().begin(), plan.axes().end(), [&](const plan::Axis &other) {
          return other.sub_axis_of() != whole || isNamed(other);
        });
    if (!together)
      result.push_back(axis.name());
    else if (merged.insert(whole).second)
      result.push_back(whole);
  }
  return result;
}

} // namespace dtc
