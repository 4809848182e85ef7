//===- MatmulEpilogue.h - Epilogues of matrix products --------------------===//
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

/// Work that a product does on an operand or on the result while it has them at hand. There is none
/// in f64.
struct MatmulEpilogue {
  enum class Gelu {
    None,
    Value,     // c = gelu(...), approximated by tanh
    ValueKept, // ... and the operand of the GELU is written too
    Gradient   // c is multiplied by the derivative of the GELU at the written operand
  };
  enum class BiasGrad { None, OfA, OfB };

  bool addsBias = false; // n elements, to each row
  Gelu gelu = Gelu::None;
  BiasGrad biasGrad = BiasGrad::None; // m sums of the rows of a, or n of the columns of b

  auto operator<=>(const MatmulEpilogue &) const = default;
  bool empty() const { return *this == MatmulEpilogue{}; }
};

/// Whether cuBLASLt can be asked for the epilogue of a product of elements of type `in` whose
/// result is of type `out`: c must be contiguous in its rows, and the operand of a GELU must have
/// rows of a multiple of 8 elements. Products of 8 bits have those of forward passes, with a result
/// in bf16: the bias and the operand of the GELU have its type (cuBLAS documentation,
/// cublasLtMatmul(), the table of FP8 kernels, and CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE).
bool mayHaveEpilogue(const MatmulEpilogue &epilogue, const GemmShape &shape, DType in, DType out);

} // namespace dtc

#endif // DTC_CALLS_FUSION_MATMULEPILOGUE_H
