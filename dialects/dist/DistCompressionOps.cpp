//===- DistCompressionOps.cpp - Ops of compressed gradients ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/DistCompressionOps.h"

#include "support/QuantizedBlocks.h"

#include "mlir/IR/Builders.h"

#include <limits>

using namespace mlir;
using namespace dtc;
using namespace dtc::dist;

/// Checks an op between `floats` and the rows `words` of its blocks. `labels` are those of its
/// constraints, in their order.
template <typename OpT>
static LogicalResult verifyBlocks(OpT op, RankedTensorType floats, RankedTensorType words,
                                  ArrayRef<StringRef> labels) {
  auto bits = int64_t(op.getBits()), block = int64_t(op.getBlock()), parts = int64_t(op.getParts());
  if (bits != 4 && bits != 8)
    return violates(op, labels[0]) << "has integers of " << bits << " bits, expected 4 or 8";
  if (block < 1 || block > kMaxQuantizedBlock)
    return violates(op, labels[1])
           << "has blocks of " << block << " elements, expected at least 1 and at most "
           << kMaxQuantizedBlock;
  if (op.getDim() >= uint64_t(floats.getRank()))
    return violates(op, labels[2])
           << "names dimension " << int64_t(op.getDim()) << " of " << floats;
  int64_t size = floats.getDimSize(op.getDim());
  if (parts < 1 || size % parts != 0)
    return violates(op, labels[3]) << "has " << parts << " parts, expected a divisor of the "
                                   << size << " elements of dimension " << op.getDim();
  QuantizedBlocks blocks{
      .bits = bits, .block = block, .parts = parts, .elements = floats.getNumElements()};
  auto expected = RankedTensorType::get({blocks.rows(), blocks.words()}, words.getElementType());
  if (words != expected)
    return violates(op, labels[4]) << "has blocks of type " << words << ", expected " << expected;
  return success();
}

LogicalResult QuantizeBlocksOp::verify() {
  if (failed(verifyBlocks(*this, getInput().getType(), getType(),
                          {"quantize_blocks-c1", "quantize_blocks-c2", "quantize_blocks-c3",
                           "quantize_blocks-c4", "quantize_blocks-c5"})))
    return failure();
  if (getNoise() && getNoise().getType().getShape() != getInput().getType().getShape())
    return violates(*this, "quantize_blocks-c6")
           << "has noise of type " << getNoise().getType() << ", expected the shape of "
           << getInput().getType();
  return success();
}

LogicalResult DequantizeBlocksOp::verify() {
  return verifyBlocks(*this, getType(), getInput().getType(),
                      {"dequantize_blocks-c1", "dequantize_blocks-c2", "dequantize_blocks-c3",
                       "dequantize_blocks-c4", "dequantize_blocks-c5"});
}

LogicalResult RandomUniformOp::verify() {
  auto keyType = RankedTensorType::get({2}, IntegerType::get(getContext(), 32));
  if (getKey().getType() != keyType)
    return violates(*this, "random_uniform-c1")
           << "has a key of type " << getKey().getType() << ", expected " << keyType;
  auto rank = size_t(getType().getRank());
  if (getShape().size() != rank || getSharding().size() != rank)
    return violates(*this, "random_uniform-c2")
           << "has a shape of " << getShape().size() << " dimensions and the sharding of "
           << getSharding().size() << ", expected " << rank << " as the result";
  if (getNumber() > std::numeric_limits<uint32_t>::max())
    return violates(*this, "random_uniform-c3")
           << "has number " << int64_t(getNumber()) << ", expected at least 0 and less than 2^32";
  return success();
}

DictionaryAttr RandomUniformOp::getKernelAttributes() {
  NamedAttrList attributes;
  attributes.set("op", getNumberAttr());
  attributes.set("shape", getShapeAttr());
  attributes.set("sharding", getShardingAttr());
  return attributes.getDictionary(getContext());
}

#define GET_OP_CLASSES
#include "dialects/dist/DistCompressionOps.cpp.inc"
