//===- ExpertRows.h - The rows of experts -----------------------*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A mixture of experts in ops that say nothing of devices (Shazeer et al. 2017, arXiv:1701.06538;
// Lepikhin et al., "GShard", arXiv:2006.16668): each expert has a fixed number of rows for the
// tokens of each sequence, and rows without a token are zeros. Which tokens an expert gets depends
// on their sequence alone, so that all layouts route alike. Shapes: B sequences, S tokens of each,
// D width, X experts, C rows of an expert for a sequence.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_EXPERTROWS_H
#define DTC_COMPILER_IMPORT_EXPERTROWS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace dtc {

/// Which experts the tokens of a layer go to.
struct Routing {
  mlir::Value scores;        ///< [B, S, X]
  bool areShares = true;     ///< the scores of a token add up to 1
  mlir::Value isSelected;    ///< i1 [B, S, X]
  mlir::Value rows;          ///< i32 [X, B, C]: the position of the token of each row; -1: none
  mlir::Value rowsOfExperts; ///< the same, where the experts are
  mlir::Value weights;       ///< [X, B, C]
  int64_t capacity = 0;      ///< C
  double occupancy = 1; ///< of the rows, by as many tokens as choose an expert if all are chosen
                        ///< evenly
};

/// Builds the ops on the rows of experts, all at one location.
class ExpertRows {
public:
  ExpertRows(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  /// Sets the rows of a routing, and their weights. It has `isSelected` and `capacity` already. The
  /// weights of tokens [B, S, X] are 0 where an expert is not selected. The first tokens of a
  /// sequence that select an expert take its rows.
  void route(Routing &routing, mlir::Value weightsOfTokens);

  /// The tokens x [B, S, D] of each expert: [X, B, C, D], zeros in rows without a token.
  mlir::Value dispatch(mlir::Value x, const Routing &routing);

  /// A product of each expert's rows [X, B, C, ...] and its part of a weight [X, ..., ...].
  mlir::Value product(llvm::StringRef equation, mlir::Value x, mlir::Value weight,
                      const Routing &routing);

  /// Rows [X, B, C, F] times their weights.
  mlir::Value weigh(mlir::Value rows, const Routing &routing);

  /// The bias [X, F] of each expert for its rows, of the type [X, B, C, F], also where a row has no
  /// token.
  mlir::Value spreadBias(mlir::Value bias, mlir::Type rows);

  /// For each token of [B, S, D], the type of the result, the sum of its rows of [X, B, C, D].
  mlir::Value combine(mlir::Value rows, const Routing &routing, mlir::Type tokens);

  /// Gives a value the logical axes of what experts compute, as many as it has dimensions.
  void nameAsExperts(mlir::Value value);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

/// The occupancy of rows, where each of the tokens of a sequence selects as many experts.
double occupancyOf(int64_t tokens, int64_t selected, int64_t experts, int64_t capacity);

/// Marks [B, S, X], a value that routing is computed from, as one of where the tokens are: only the
/// weights of rows go from there to the experts.
void nameAsTokens(mlir::Value value);

} // namespace dtc

#endif // DTC_COMPILER_IMPORT_EXPERTROWS_H
