//===- ParentAxes.h - Mesh axes before they were split ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_PARENTAXES_H
#define DTC_PLAN_PARENTAXES_H

#include "plan/plan.pb.h"

#include <string>
#include <vector>

namespace dtc {

/// The axes, in the order of the mesh, as the user knows them: where all parts of an axis that the
/// compiler took apart are among `axes`, its own name stands for them.
std::vector<std::string> parentAxes(const plan::Plan &plan, const std::vector<std::string> &axes);

} // namespace dtc

#endif // DTC_PLAN_PARENTAXES_H
