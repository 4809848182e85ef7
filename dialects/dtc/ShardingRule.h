//===- ShardingRule.h - Relations between dimensions of an op -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// An op declares its factors once, as an einsum does: `bsd,df->bsf` has the factors b, s, d and f.
// A factor is an index that runs over its size; each dimension of each operand and result is the
// row-major product of a list of factors (one for most, several where a reshape merges or splits
// dimensions, none where a dimension cannot be divided at all). Shardings are propagated,
// partitioned and costed over factors alone: no pass holds a table of ops.
//
// The idea of factor-based rules follows Shardy (openxla/shardy, docs/sharding_representation.md).
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_SHARDINGRULE_H
#define DTC_DIALECTS_DTC_SHARDINGRULE_H

#include "support/Kinds.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mlir {
class Operation;
} // namespace mlir

namespace dtc {

struct Factor {
  int64_t size = 1;
  /// The op needs the whole factor on one device: its shards cannot be combined.
  bool whole = false;
  /// How partial results of the factor's shards are combined in the results that lack the factor;
  /// none where every result has it.
  std::optional<ReductionKind> reduction;
};

/// For each dimension of a tensor the factors that make it up, the first varies slowest.
using TensorFactors = llvm::SmallVector<llvm::SmallVector<unsigned, 1>, 4>;

struct ShardingRule {
  llvm::SmallVector<Factor> factors;
  llvm::SmallVector<TensorFactors> operands;
  llvm::SmallVector<TensorFactors> results;

  /// Sets of operands in which the op is linear together: if all operands of a set are partial sums
  /// over an axis and the others are complete, every result is a partial sum over that axis. `add`
  /// has {{0, 1}}, `mul` {{0}, {1}}, `div` {{0}}.
  llvm::SmallVector<llvm::SmallVector<unsigned, 2>> linearOperands;

  /// An integer operand whose elements are indices into a factor. On a shard of the factor the
  /// indices are counted from the shard's start; the op ignores indices outside.
  struct IndexedFactor {
    unsigned operand;
    unsigned factor;
  };
  llvm::SmallVector<IndexedFactor> indexedFactors;

  /// The dimensions of the tensor over which the op draws random numbers, each as a dimension of an
  /// operand; empty for other ops. The random numbers of a device depend on the position of its
  /// shard in that tensor, so a shard of the op gets it in its attributes `shape` and `sharding`.
  struct TensorDim {
    unsigned operand, dim;
  };
  llvm::SmallVector<TensorDim> randomDims;

  /// The factor along which the op treats an element by its place, such as a position in a
  /// sequence. A shard of it gets the size of the whole factor and the axes that split it in its
  /// attributes `sequence` and `sequence_axes`.
  std::optional<unsigned> sequenceFactor;

  unsigned addFactor(int64_t size, std::optional<ReductionKind> reduction = {}) {
    factors.push_back({size, /*whole=*/false, reduction});
    return factors.size() - 1;
  }
  unsigned addWholeFactor(int64_t size) {
    factors.push_back({size, /*whole=*/true, std::nullopt});
    return factors.size() - 1;
  }
};

/// All operands and results of tensor type have `shape`, or are scalars; one factor a dimension.
ShardingRule makeElementwiseRule(mlir::Operation *op);

/// The rule of an op described as an einsum: "bsd,df->bsf", comma-separated results allowed; "" is
/// a scalar. Letters that are in no result are summed, and so are letters that only some of the
/// results lack, for those results. Upper-case letters must stay whole. "..." stands for the
/// dimensions that a term's letters leave over, the same ones in every term; "(gr)" is a dimension
/// made up of the factors g and r. The sizes come from the types of the operands and results.
ShardingRule makeEquationRule(mlir::Operation *op, llvm::StringRef equation);

/// The rule of a reshape from `from` to `to`: both are split into their coarsest common factors.
/// Dimensions that share no divisor stay whole.
ShardingRule makeReshapeRule(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

/// Checks that the rule matches the op's operands and results: one entry each, the factors of a
/// dimension multiply to its size, a factor occurs at most once in a tensor, results lacking a
/// factor have a reduction for it, indices are in range. Errors are appended to the diagnostic of
/// `emitError`.
mlir::LogicalResult checkShardingRule(mlir::Operation *op, const ShardingRule &rule,
                                      llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace dtc

#endif // DTC_DIALECTS_DTC_SHARDINGRULE_H
