//===- ScaledCalls.h - Calls about numbers of 8 bits ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each function checks a call against its row of docs/kernels.md and gives the backend its
// parameters.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_SCALEDCALLS_H
#define DTC_CALLS_SCALEDCALLS_H

#include "calls/EinsumLowering.h"
#include "calls/KernelSignature.h"
#include "support/Error.h"

namespace dtc {

/// The largest absolute value of `elements` elements of a float type.
struct LargestMagnitudeCall {
  DType dtype = DType::F32;
  int64_t elements = 0;
};
Expected<LargestMagnitudeCall> checkLargestMagnitude(const KernelSignature &signature);

/// Rounds `elements` elements of the float type `from` to the type `to` of 8 bits.
struct QuantizeF8Call {
  DType from = DType::F32, to = DType::F8E4M3;
  int64_t elements = 0;
};
Expected<QuantizeF8Call> checkQuantizeF8(const KernelSignature &signature);

/// An einsum of operands of 8 bits, whose sums are multiplied by two scalars.
struct ScaledProductCall {
  DType lhs = DType::F8E4M3, rhs = DType::F8E4M3;
  DType result = DType::BF16; ///< or F32
  int64_t lhsElements = 0, rhsElements = 0, resultElements = 0;
  /// The same einsum of the operands in bf16, which has all numbers of 8 bits.
  KernelSignature widened;
  EinsumLowering lowering; ///< of `widened`
};
Expected<ScaledProductCall> checkScaledProduct(const KernelSignature &signature);

} // namespace dtc

#endif // DTC_CALLS_SCALEDCALLS_H
