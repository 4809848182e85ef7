//===- EinsumLowering.h - Einsum as a batched matrix product --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The letters of an equation fall into four classes: batch letters (in all terms), M (lhs and
// result), N (rhs and result) and K (lhs and rhs, summed). Letters that are neighbours in the same
// order wherever they occur count as one ("bsd,df->bsf" is "md,df->mf"). If one stride goes through
// all letters of each class of an operand, the operand is a batch of strided matrices as it is. If
// not, it is copied to a memory order with such strides. Of the possible orders within the classes
// the lowering takes the one that copies the fewest elements.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_EINSUMLOWERING_H
#define DTC_CALLS_EINSUMLOWERING_H

#include "calls/GemmShape.h"
#include "calls/KernelSignature.h"
#include "calls/LoopNest.h"
#include "support/EinsumEquation.h"
#include "support/Error.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtc {

/// How an einsum is computed.
struct EinsumLowering {
  enum class Kind {
    Zero,    // nothing to compute, or sums of nothing
    Product, // nothing is summed
    Dot,     // a dot product for each batch index
    Gemm
  };
  enum Operand { Lhs, Rhs, Out };

  /// `sizes` gives the size of each letter (index 0 is 'a').
  static EinsumLowering create(EinsumEquation equation, const std::array<int64_t, 26> &sizes);

  Kind kind = Kind::Zero;
  int64_t outElements = 0;

  /// Product: over the result, the offsets of lhs and rhs.
  /// Dot and Gemm: over the batch, the offsets of the three matrices.
  LoopNest<3> loops{{}, {}};
  /// Gemm; a dot product has m = n = 1.
  GemmShape gemm;

  /// The operand is copied to the workspace before (the result: from it, after). Over the elements:
  /// the offsets of the source and of the target.
  std::array<std::optional<LoopNest<2>>, 3> copies;
  std::array<int64_t, 3> elements{};
};

/// Checks a call of the kernel `einsum` against its signature in docs/kernels.md, and plans it. The
/// result may have the wide type of 16-bit operands.
Expected<EinsumLowering> planEinsum(const KernelSignature &signature);

/// The number of elements of a plan for one dot product of two dense arrays; 0 for other plans.
/// With one element nothing is summed, and the plan has a product.
int64_t lengthOfDenseDot(const EinsumLowering &plan);

} // namespace dtc

#endif // DTC_CALLS_EINSUMLOWERING_H
