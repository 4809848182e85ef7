//===- AxisExtent.h - The block of a dimension that a device holds --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_AXISEXTENT_H
#define DTC_CALLS_AXISEXTENT_H

#include "calls/KernelSignature.h"
#include "support/ShardExtent.h"

#include <span>
#include <string>
#include <vector>

namespace dtc {

/// The axis of that name, or null.
inline const AxisCoordinate *findAxis(std::span<const AxisCoordinate> position,
                                      const std::string &name) {
  for (const AxisCoordinate &axis : position)
    if (axis.name == name)
      return &axis;
  return nullptr;
}

/// The device's block of a dimension of `size` elements that `axes` split.
inline ShardExtent extentAt(std::span<const AxisCoordinate> position,
                            const std::vector<std::string> &axes, int64_t size) {
  ShardExtent extent = ShardExtent::whole(size);
  for (const std::string &name : axes)
    if (const AxisCoordinate *axis = findAxis(position, name))
      extent = extent.part(axis->size, axis->coordinate);
  return extent;
}

} // namespace dtc

#endif // DTC_CALLS_AXISEXTENT_H
