//===- SequenceDims.h - Sequence dimensions of values ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_GENERATE_SEQUENCEDIMS_H
#define DTC_COMPILER_PASSES_GENERATE_SEQUENCEDIMS_H

#include "dialects/dtc/DtcOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace dtc {

/// The dimension of positions, or of samples, of each value that depends on an input of tokens
/// [batch, seq], found by the factors of the ops (see ShardingRule.h).
class SequenceDims {
public:
  /// Emits an error for an op in which positions depend on each other, unless it is causal
  /// attention.
  static mlir::FailureOr<SequenceDims> findPositions(mlir::func::FuncOp function,
                                                     mlir::Value tokens);
  /// The results of ops that mix samples have no such dimension.
  static SequenceDims findSamples(mlir::func::FuncOp function, mlir::Value tokens);

  /// nullopt for a value that does not depend on the tokens.
  std::optional<unsigned> of(mlir::Value value) const {
    auto it = dims.find(value);
    return it == dims.end() ? std::nullopt : std::optional<unsigned>(it->second);
  }

  /// The factor of the op that its operands' positions are. The op is one that find() has accepted
  /// and has an operand that depends on the tokens.
  unsigned factorOf(const ShardingRule &rule, mlir::Operation *op) const;

  /// Whether the op routes rows by indices of positions: dtc.nonzero, and lookups in a table for
  /// each sample. All of its operands count positions, and so does its result; in a program for one
  /// position each has one row, and the only index is 0.
  bool exchangesPlaces(mlir::Operation *op) const;

private:
  mlir::LogicalResult visitPositions(ShardingRuleOpInterface op);
  /// Follows one factor through an op. If the op ends the way, returns a description of its effect
  /// on the factor.
  std::optional<llvm::StringRef> follow(ShardingRuleOpInterface op);

  llvm::DenseMap<mlir::Value, unsigned> dims;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_GENERATE_SEQUENCEDIMS_H
