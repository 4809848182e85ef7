//===- DistScaledOps.h - Ops of products in 8 bits ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DIST_DISTSCALEDOPS_H
#define DTC_DIALECTS_DIST_DISTSCALEDOPS_H

#include "dialects/dist/Dist.h"
#include "support/EinsumEquation.h"

#include <optional>

#define GET_OP_CLASSES
#include "dialects/dist/DistScaledOps.h.inc"

namespace dtc::dist {

/// On a dtc.einsum with dtc::kFloat8AttrName in the local view (an array of two arrays of names):
/// the spatial axes that split each operand. dtc-spmd-partition sets it, dtc-scale-products removes
/// it.
inline constexpr llvm::StringLiteral kOperandAxesAttrName = "dist.operand_axes";

/// A dimension of one matrix product, and its elements.
struct MatrixSize {
  const char *name;
  int64_t elements;
};

/// The dimension of the einsum as one matrix product m x k times k x n that is not a multiple of
/// 16; none where all are. GPUs compute no other products in 8 bits (cuBLAS documentation, "Tensor
/// Core Usage"). The shapes are those of the equation's operands.
std::optional<MatrixSize> findOddSize(const EinsumEquation &equation, llvm::ArrayRef<int64_t> lhs,
                                      llvm::ArrayRef<int64_t> rhs);

} // namespace dtc::dist

#endif // DTC_DIALECTS_DIST_DISTSCALEDOPS_H
