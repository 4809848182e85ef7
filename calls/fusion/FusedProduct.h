//===- FusedProduct.h - A product and the calls around it -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The work of cuBLASLt besides a product of any operands, of 8 bits too: operands that are slices,
// as matrices with longer steps; on the result the addition of a bias or of another matrix, a GELU
// or its gradient, a sum over microbatches; the sums of an operand over the product's summed
// dimension, which are the gradient of a bias.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_FUSION_FUSEDPRODUCT_H
#define DTC_CALLS_FUSION_FUSEDPRODUCT_H

#include "calls/EinsumLowering.h"
#include "calls/ScaledCalls.h"
#include "calls/ShardingCalls.h"
#include "calls/fusion/FusedCalls.h"
#include "calls/fusion/MatmulEpilogue.h"

#include <optional>

namespace dtc {

/// A value, or a part of it.
struct FusedOperand {
  size_t value = 0;   // of FusedCalls
  int64_t offset = 0; // of the first element
};

struct FusedProduct {
  EinsumLowering lowering;
  std::optional<ScaledProductCall> scaled; // of operands of 8 bits
  DType in = DType::F32, out = DType::F32;
  MatmulEpilogue epilogue;
  FusedOperand a, b;
  size_t c = 0;
  std::optional<FusedOperand> added, bias;
  std::optional<size_t> geluInput, biasGrad;
  std::optional<size_t> scaleA, scaleB; // of operands of 8 bits
  std::optional<AccumulateCall> sum;    // over microbatches
};

/// The calls as a product; none where they are something else.
std::optional<FusedProduct> matchProduct(const FusedCalls &calls);

} // namespace dtc

#endif // DTC_CALLS_FUSION_FUSEDPRODUCT_H
