//===- OuterStates.h - States of outer steps ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_OUTERSTATES_H
#define DTC_SUPPORT_OUTERSTATES_H

namespace dtc {

/// The state of a parameter, its name behind a dot, that keeps the value that it had after the last
/// outer step, or before the first step.
inline constexpr const char *kOuterParametersState = "outer_params";

} // namespace dtc

#endif // DTC_SUPPORT_OUTERSTATES_H
