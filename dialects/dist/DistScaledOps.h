//===- DistScaledOps.h - Ops of products in 8 bits ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DIST_DISTSCALEDOPS_H
#define DTC_DIALECTS_DIST_DISTSCALEDOPS_H

#include "dialects/dist/Dist.h"

#define GET_OP_CLASSES
#include "dialects/dist/DistScaledOps.h.inc"

namespace dtc::dist {

/// On a dtc.einsum with dtc::kFloat8AttrName in the local view (an array of two arrays of names):
/// the spatial axes that split each operand. dtc-spmd-partition sets it, dtc-scale-products removes
/// it.
inline constexpr llvm::StringLiteral kOperandAxesAttrName = "dist.operand_axes";

} // namespace dtc::dist

#endif // DTC_DIALECTS_DIST_DISTSCALEDOPS_H
