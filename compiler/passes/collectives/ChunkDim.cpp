//===- ChunkDim.cpp - Dimensions that are cut into chunks -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/collectives/ChunkDim.h"

#include "dialects/dist/Dist.h"
#include "dialects/dtc/DtcOps.h"

using namespace mlir;
using namespace dtc;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

bool dtc::movesChunks(Operation *op) {
  return isa<dist::CollectiveOpInterface>(op) && !isa<dist::PermuteOp>(op);
}

bool dtc::isMatrixProduct(Operation *op) {
  return op->hasTrait<dtc::OpTrait::MatrixProducts>() && tensorType(op->getResult(0)).getRank() > 0;
}

ChunkPart dtc::chunkPart(int64_t size, int64_t chunks, int64_t chunk) {
  int64_t least = size / chunks, longer = size % chunks;
  return {chunk * least + std::min(chunk, longer), least + (chunk < longer)};
}

int64_t dtc::blockSize(Type tensor, ChunkDim dim) {
  return cast<RankedTensorType>(tensor).getDimSize(dim.dim) / dim.blocks;
}

RankedTensorType dtc::chunkType(Type tensor, ChunkDim dim, int64_t size) {
  auto type = cast<RankedTensorType>(tensor);
  SmallVector<int64_t> shape(type.getShape());
  shape[dim.dim] = dim.blocks * size;
  return type.clone(shape);
}

bool CarriedDims::isCarried() const {
  return llvm::any_of(results, [](const auto &dim) { return dim.has_value(); });
}

/// The dimension that is the factor alone. Fails where the factor is a part of a dimension.
static FailureOr<std::optional<ChunkDim>> aloneDimOf(const TensorFactors &dims, unsigned factor,
                                                     int64_t blocks) {
  for (auto [dim, factors] : llvm::enumerate(dims)) {
    if (!llvm::is_contained(factors, factor))
      continue;
    if (factors.size() != 1)
      return failure();
    return std::optional(ChunkDim{unsigned(dim), blocks});
  }
  return std::optional<ChunkDim>();
}

static std::optional<CarriedDims> carriedByRule(ShardingRuleOpInterface op, ChunkDim dim,
                                                bool ofResult, unsigned index) {
  ShardingRule rule = op.getShardingRule();
  const TensorFactors &tensor = (ofResult ? rule.results : rule.operands)[index];
  if (tensor[dim.dim].size() != 1)
    return std::nullopt;
  unsigned factor = tensor[dim.dim].front();
  bool isIndexed =
      llvm::any_of(rule.indexedFactors, [&](const auto &entry) { return entry.factor == factor; });
  if (rule.factors[factor].whole || isIndexed || rule.sequenceFactor == factor ||
      !rule.randomDims.empty())
    return std::nullopt;
  CarriedDims carried;
  for (auto [from, to] :
       {std::pair(&rule.operands, &carried.operands), std::pair(&rule.results, &carried.results)})
    for (const TensorFactors &dims : *from) {
      auto found = aloneDimOf(dims, factor, dim.blocks);
      if (failed(found))
        return std::nullopt;
      to->push_back(*found);
    }
  carried.sums = rule.factors[factor].reduction == ReductionKind::Sum;
  return carried;
}

/// A collective makes the dimension larger that it gathers along, and the one smaller that it
/// scatters along, by the number of devices.
static std::optional<CarriedDims> carriedByCollective(Operation *op, ChunkDim dim, bool ofResult) {
  int64_t before = tensorType(op->getOperand(0)).getDimSize(dim.dim);
  int64_t after = tensorType(op->getResult(0)).getDimSize(dim.dim);
  ChunkDim operand = dim, result = dim;
  if (ofResult && before > after)
    operand.blocks *= before / after;
  else if (ofResult && operand.blocks % (after / before) == 0)
    operand.blocks /= after / before;
  else if (!ofResult && after >= before)
    result.blocks *= after / before;
  else if (!ofResult && result.blocks % (before / after) == 0)
    result.blocks /= before / after;
  else
    return std::nullopt;
  CarriedDims carried;
  carried.operands.push_back(operand);
  carried.results.push_back(result);
  return carried;
}

std::optional<CarriedDims> dtc::carriedDims(Operation *op, ChunkDim dim, bool ofResult,
                                            unsigned index) {
  if (movesChunks(op))
    return carriedByCollective(op, dim, ofResult);
  if (op->getNumRegions() == 0)
    if (auto withRule = dyn_cast<ShardingRuleOpInterface>(op))
      return carriedByRule(withRule, dim, ofResult, index);
  return std::nullopt;
}

/// The shape in which the blocks are a dimension of their own, before the one of their elements.
static SmallVector<int64_t> blocksApart(RankedTensorType type, ChunkDim dim) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim.dim] /= dim.blocks;
  shape.insert(shape.begin() + dim.dim, dim.blocks);
  return shape;
}

Value dtc::sliceChunk(OpBuilder &builder, Location loc, Value value, ChunkDim dim, ChunkPart part) {
  unsigned sliced = dim.dim;
  RankedTensorType result = chunkType(value.getType(), dim, part.size);
  if (dim.blocks > 1) {
    RankedTensorType type = tensorType(value);
    value = ReshapeOp::create(builder, loc, type.clone(blocksApart(type, dim)), value);
    ++sliced;
  }
  SmallVector<int64_t> offsets(tensorType(value).getRank()), sizes(tensorType(value).getShape());
  offsets[sliced] = part.offset;
  sizes[sliced] = part.size;
  Value slice = SliceOp::create(builder, loc, value, offsets, sizes);
  return dim.blocks > 1 ? Value(ReshapeOp::create(builder, loc, result, slice)) : slice;
}

Value dtc::joinChunks(OpBuilder &builder, Location loc, ValueRange chunks, ChunkDim dim) {
  if (dim.blocks == 1)
    return ConcatOp::create(builder, loc, chunks, dim.dim);
  SmallVector<Value> apart;
  int64_t size = 0;
  for (Value chunk : chunks) {
    RankedTensorType type = tensorType(chunk);
    apart.push_back(ReshapeOp::create(builder, loc, type.clone(blocksApart(type, dim)), chunk));
    size += blockSize(type, dim);
  }
  Value joined = ConcatOp::create(builder, loc, apart, dim.dim + 1);
  return ReshapeOp::create(builder, loc, chunkType(chunks.front().getType(), dim, size), joined);
}
