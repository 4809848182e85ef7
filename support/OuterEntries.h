//===- OuterEntries.h - Entry points of replicas that differ --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_OUTERENTRIES_H
#define DTC_SUPPORT_OUTERENTRIES_H

namespace dtc {

/// The entry point of a plan that gives its replicas the same parameters again, and the one that
/// runs before the first step, if the outer step has states to begin with.
inline constexpr const char *kOuterStepEntry = "outer";
inline constexpr const char *kOuterBeginEntry = "outer_begin";

} // namespace dtc

#endif // DTC_SUPPORT_OUTERENTRIES_H
