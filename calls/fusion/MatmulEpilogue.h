//===- MatmulEpilogue.h - What a matrix product computes beside it --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_FUSION_MATMULEPILOGUE_H
#define DTC_CALLS_FUSION_MATMULEPILOGUE_H

#include "calls/GemmShape.h"
#include "support/Tensor.h"

#include <compare>

namespace dtc {

/// What a product computes beside, while it has an operand or the result at hand. None of it in
/// f64.
struct MatmulEpilogue {
  enum class Gelu {
    None,
    Value,     // c = gelu(...), approximated by tanh
    ValueKept, // ... and what it is the GELU of is written too
    Gradient   // c is multiplied by the derivative of the GELU at what was written
  };
  enum class BiasGrad { None, OfA, OfB };

  bool addsBias = false; // n elements, to each row
  Gelu gelu = Gelu::None;
  BiasGrad biasGrad = BiasGrad::None; // m sums of the rows of a, or n of the columns of b

  auto operator<=>(const MatmulEpilogue &) const = default;
  bool empty() const { return *this == MatmulEpilogue{}; }
};

/// Whether cuBLASLt can be asked for the epilogue of a product of elements of type `in`: it wants
/// rows in which c is contiguous, and what is written or read for a GELU in rows of a multiple of 8
/// elements.
bool mayHaveEpilogue(const MatmulEpilogue &epilogue, const GemmShape &shape, DType in);

} // namespace dtc

#endif // DTC_CALLS_FUSION_MATMULEPILOGUE_H
