//===- PredictedTimes.cpp - Predicted times of communication ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/PredictedTimes.h"

#include "simulator/AxisLinks.h"
#include "simulator/cluster/CollectiveTime.h"

#include <map>
#include <string>
#include <vector>

namespace dtc::runtime {

PredictTime predictTimes(const plan::Plan &plan) {
  std::map<std::string, GroupAxis> axes;
  for (const plan::Axis &axis : plan.axes())
    if (!axis.temporal())
      axes[axis.name()] = {static_cast<int64_t>(axis.size()), resolveLink(axis, {}).speed};
  return [axes = std::move(axes)](const FlightOperation &operation) {
    std::vector<GroupAxis> group;
    for (const std::string &axis : operation.axes)
      group.push_back(axes.at(axis));
    GroupShape shape = GroupShape::ofTorus(group);
    auto bytes = static_cast<double>(operation.bytes);
    return operation.kind ? collectiveTime(*operation.kind, bytes, shape).seconds
                          : messageTime(bytes, shape).seconds;
  };
}

} // namespace dtc::runtime
