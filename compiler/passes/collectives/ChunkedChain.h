//===- ChunkedChain.h - Chains of ops that are computed in chunks ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_COLLECTIVES_CHUNKEDCHAIN_H
#define DTC_COMPILER_PASSES_COLLECTIVES_CHUNKEDCHAIN_H

#include "compiler/passes/collectives/ChunkDim.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace dtc {

/// The number of ops after a collective, or before it, among which a chain is searched: those of
/// about two layers.
inline constexpr unsigned kSearchedChainOps = 256;

/// Whether what the collective moves was computed in the block of more than one value. A parameter
/// that is gathered was not, and can be there before it is needed.
bool movesComputed(mlir::Operation *collective);

/// Whether products of the block, or another fragment of a pipeline, need a result of the op, at
/// once or by way of other ops. The gradients of weights, and sums of them, are for the optimizer
/// alone.
bool feedsProducts(mlir::Operation *op);

/// Values that were joined from chunks, which others can use instead of slices.
struct JoinedChunks {
  ChunkDim dim;
  llvm::SmallVector<mlir::Value> chunks;
};

/// The ops and values that chains have become.
struct KnownChunks {
  llvm::DenseMap<mlir::Value, JoinedChunks> joined;
  llvm::DenseSet<mlir::Operation *> emitted; ///< no chain has them
  llvm::DenseSet<mlir::Operation *> joins;   ///< those of `emitted` that join chunks
};

/// Ops of one block that have a factor in common, at least one of them a collective and one made
/// of matrix products. Each but those that sum over the factor carries it from its operands to its
/// results, so that it can be computed for each chunk of the factor alone. No op outside of the
/// chain needs a result of it and is needed by another op of it.
class ChunkedChain {
public:
  /// Makes a chain without ops, which is to be computed in `chunks` chunks.
  ChunkedChain(int64_t chunks, const KnownChunks &known) : chunks(chunks), known(&known) {}

  /// Adds `collective`, whose operand is cut in `dim`, and what leads from it to other collectives,
  /// or if it leads to none, to the first products. False where there are no products.
  bool growFrom(mlir::Operation *collective, ChunkDim dim);
  /// Adds `collective` and what leads to it from the last products before it. False where there are
  /// none.
  bool growTo(mlir::Operation *collective, ChunkDim dim);
  /// Adds what makes chunks cheaper: ops whose operands are smaller than their results, which would
  /// be cut, ops whose results are smaller than their operands, which would be joined, and sums
  /// over the factor.
  void extend();

  int64_t numChunks() const { return chunks; }
  /// The elements of a block of the factor, in each tensor alike.
  int64_t size() const { return blockElements; }
  /// The ops in the order of the block.
  llvm::SmallVector<mlir::Operation *> ops() const;
  bool contains(mlir::Operation *op) const { return members.contains(op); }
  /// Whether the op, which is not of the chain, is computed again for each chunk, since that costs
  /// less than cutting its result: a reshape, a broadcast.
  bool isCopied(mlir::Operation *op) const { return copies.contains(op); }
  /// The dimensions of an op that is of the chain or copied.
  const CarriedDims &dimsOf(mlir::Operation *op) const;
  /// Where a result of the chain has the factor; none for other values and for sums.
  std::optional<ChunkDim> dimOf(mlir::Value value) const;
  /// Whether the value has chunks in `dim` already.
  bool hasKnownChunks(mlir::Value value, ChunkDim dim) const;
  /// Whether an op of the block that is not of the chain, or of another block, uses the value.
  bool isUsedOutside(mlir::Value value) const;

private:
  bool add(mlir::Operation *op, const std::optional<CarriedDims> &dims);
  /// Whether GPUs compute each chunk of the op, if that is a product in 8 bits.
  bool fitsGpus(mlir::Operation *op, const CarriedDims &dims) const;
  /// The dimensions of a user of values of the chain.
  std::optional<CarriedDims> dimsOfUser(mlir::Operation *user) const;
  /// Removes what does not lead to one of `ends`.
  void keepAncestorsOf(llvm::ArrayRef<mlir::Operation *> ends);
  /// The products that no other one of the chain leads to, but for those which nothing waits for.
  llvm::SmallVector<mlir::Operation *> firstProducts() const;
  bool hasProducts() const;
  bool isConvex() const;
  bool isAwaitedOutside(mlir::Operation *collective) const;
  /// Adds the op unless the chain would no longer be convex.
  bool addConvex(mlir::Operation *op, const std::optional<CarriedDims> &dims);
  int64_t cutBytes(mlir::Operation *op, const CarriedDims &dims) const;
  int64_t sumBytes(mlir::Operation *op, const CarriedDims &dims) const;
  void copyCheapOps();
  bool extendUp();
  bool extendDown();
  void addSums();

  int64_t chunks;
  const KnownChunks *known;
  mlir::Operation *seed = nullptr; ///< the collective that the chain was grown from
  int64_t blockElements = 0;
  llvm::MapVector<mlir::Operation *, CarriedDims> members, copies;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_COLLECTIVES_CHUNKEDCHAIN_H
