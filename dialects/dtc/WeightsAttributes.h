//===- WeightsAttributes.h - Ops that compute with weights ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_WEIGHTSATTRIBUTES_H
#define DTC_DIALECTS_DTC_WEIGHTSATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace dtc {

/// On an op of a train step that computes with a parameter as its optimizer does (a unit): mixed
/// precision gives it the master weights. dtc-build-train-step sets it.
inline constexpr llvm::StringLiteral kReadsMasterAttrName = "dtc.reads_master";

/// An attribute (a unit) of the sum over replicas of their changes of a parameter, which
/// dtc-compress-gradients may compress. dtc-build-outer-step sets it.
inline constexpr llvm::StringLiteral kOuterGradientAttrName = "dtc.outer_gradient";

} // namespace dtc

#endif // DTC_DIALECTS_DTC_WEIGHTSATTRIBUTES_H
