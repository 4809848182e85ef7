//===- ChunkEmission.h - The ops of chunks --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_COLLECTIVES_CHUNKEMISSION_H
#define DTC_COMPILER_PASSES_COLLECTIVES_CHUNKEMISSION_H

#include "compiler/passes/collectives/ChunkedChain.h"

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseSet.h"

namespace dtc {

/// The ops of a chain for each chunk, in a block of their own until they take its place.
///
/// The chain is divided where its collectives start: ops that need no result of a collective are of
/// phase 0, those that need the result of one are of phase 1, and so on. The collective of a chunk
/// starts before the phase after it of the chunk before, under which it runs: phase p of chunk c
/// comes directly after phase p - 1 of chunk c + 1.
class ChunkEmission {
public:
  ChunkEmission(const ChunkedChain &chain, const KnownChunks &known);

  /// The ops, to be estimated: without what joins values that only ops with the factor need, which
  /// can use the chunks if these are of a chain too.
  llvm::SmallVector<mlir::Operation *> countedOps();
  /// Whether nothing in the chain waits for the op: it is a sum over the factor, or adds such sums.
  bool isSum(mlir::Operation *op) const { return sumOps.contains(op); }
  /// Replaces the chain. Values that were joined are added to `known`.
  void replaceChain(KnownChunks &known);

private:
  unsigned firstPhase(mlir::Operation *op) const;
  void findPhases();
  void emitOp(mlir::Operation *op, int64_t chunk);
  mlir::Value chunkOf(mlir::Value value, ChunkDim dim, int64_t chunk);
  void addSum(mlir::Value value, mlir::Value part);
  void joinResults();

  const ChunkedChain &chain;
  const KnownChunks &known;
  mlir::Block block;
  mlir::OpBuilder builder;
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, unsigned> phases;
  unsigned numPhases = 1;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> chunks;
  llvm::MapVector<mlir::Value, mlir::Value> joined, sums;
  llvm::DenseSet<mlir::Operation *> sumOps, joins, uncounted;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_COLLECTIVES_CHUNKEMISSION_H
