//===- ChunkDim.h - Dimensions that are cut into chunks -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_COLLECTIVES_CHUNKDIM_H
#define DTC_COMPILER_PASSES_COLLECTIVES_CHUNKDIM_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace dtc {

/// A chain is divided into this many chunks at most.
inline constexpr int64_t kMaxCollectiveChunks = 64;

/// Whether the op is a collective that can move a chunk alone. What goes round a ring overlaps
/// already, step by step.
bool movesChunks(mlir::Operation *op);

/// Whether the op takes long enough to hide a collective. A dot product, as in the norm of a
/// gradient, does not.
bool isMatrixProduct(mlir::Operation *op);

/// The dimension of a tensor that is cut into chunks. It consists of `blocks` equal blocks, one
/// after another, and a chunk has the same part of each. A collective that gathers along the
/// dimension makes one block from each device, and one that scatters takes one block for each.
struct ChunkDim {
  unsigned dim = 0;
  int64_t blocks = 1;
  bool operator==(const ChunkDim &other) const {
    return dim == other.dim && blocks == other.blocks;
  }
};

/// The part of each block that a chunk has.
struct ChunkPart {
  int64_t offset, size;
};

/// Divides `size` elements into `chunks` parts and returns number `chunk`. Parts differ by one
/// element at most, and the longer ones come first.
ChunkPart chunkPart(int64_t size, int64_t chunks, int64_t chunk);

/// The elements of a block of a tensor.
int64_t blockSize(mlir::Type tensor, ChunkDim dim);

/// The type of a chunk that has `size` elements of each block.
mlir::RankedTensorType chunkType(mlir::Type tensor, ChunkDim dim, int64_t size);

/// The dimensions of an op's tensors along one of its factors; none for those that lack the factor.
struct CarriedDims {
  llvm::SmallVector<std::optional<ChunkDim>, 4> operands, results;
  /// Results that lack the factor are sums over it.
  bool sums = false;

  bool isCarried() const;
};

/// The dimensions of the tensors of `op` along the factor that its operand, or result, of number
/// `index` has in `dim`: by the sharding rule of an op, and by the dimension that a collective
/// gathers and scatters. None where the chunks of the op would not be the op on chunks: where it
/// needs the factor in one piece, draws random numbers, or knows where along the factor its
/// elements lie.
std::optional<CarriedDims> carriedDims(mlir::Operation *op, ChunkDim dim, bool ofResult,
                                       unsigned index);

/// A chunk of `value`: the part of each block.
mlir::Value sliceChunk(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                       ChunkDim dim, ChunkPart part);

/// The tensor of the chunks.
mlir::Value joinChunks(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange chunks,
                       ChunkDim dim);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_COLLECTIVES_CHUNKDIM_H
