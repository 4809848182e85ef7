//===- SharedLaunches.h - Calls that may share a launch -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A GPU takes the tensors of many calls of some kernels in one launch (multi-tensor launches):
// conversions, dot products such as those of a norm of all gradients, updates of parameters.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_FUSION_SHAREDLAUNCHES_H
#define DTC_CALLS_FUSION_SHAREDLAUNCHES_H

#include "calls/KernelSignature.h"

namespace dtc {

/// Whether a call may share a launch with others of its kernel, element types and attributes.
bool mayShareLaunch(const KernelSignature &signature);

} // namespace dtc

#endif // DTC_CALLS_FUSION_SHAREDLAUNCHES_H
