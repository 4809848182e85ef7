//===- SparseSum.cpp - Sums of the largest elements of gradients ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each device sends of each block of its gradient the k elements of the largest absolute value,
// with their places in the block, and keeps the others for the next step (Lin et al., "Deep
// Gradient Compression", arXiv:1712.01887, section 3, without its momentum correction). Of equal
// elements those with the smaller index are sent (dtc.top_k). The sum adds what the devices send
// in the order of the axis.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/collectives/CompressedSum.h"

#include <cmath>

using namespace mlir;
using namespace dtc;

namespace {

class SparseSum : public CompressedSum {
public:
  using CompressedSum::CompressedSum;
  bool choose() override;
  LogicalResult begin(Value addend) override;
  void combine() override {}
  Value result() override;

private:
  Value rowsOf(Value addend);
  Value addendOf(Value rows);
  /// Of the dimensions before the one that is scattered.
  int64_t outer() const {
    auto scatter = cast<dist::ReduceScatterOp>(sum.op);
    return sum.type().getNumElements() / elementsFrom(sum.type().getShape(), scatter.getDim());
  }

  int64_t block = 1, count = 1; ///< elements of a block, and how many of them travel
  int64_t blocks = 0;           ///< of a device's addend
  Value values, places;         ///< [blocks of this device, devices * count]
};

} // namespace

bool SparseSum::choose() {
  block = blockOf(build, sum);
  if (block == 0)
    return false;
  // A product such as 0.07 * 100 may be a little more than the integer that is meant.
  count = std::max<int64_t>(1, int64_t(std::ceil(build.settings.share * double(block) - 1e-9)));
  auto bytes = int64_t(sum.type().getElementTypeBitWidth() / 8);
  if (count * (bytes + 4) >= block * bytes) {
    build.remark(sum) << "is summed over \"" << build.settings.axis << "\" in full, as " << count
                      << " of the " << block
                      << " elements of a block with their places are no smaller";
    return false;
  }
  remarkOnBlock(build, sum, block);
  return true;
}

/// The blocks of an addend, [blocks, block]: those of each device's part of the sum together, in
/// the order of the axis.
Value SparseSum::rowsOf(Value addend) {
  if (sum.scatters()) {
    int64_t run = sum.type().getNumElements() / outer() / sum.group;
    Value parts = build.reshape(sum, addend, {outer(), sum.group, run});
    if (outer() > 1)
      parts = build.create<TransposeOp>(sum, parts, ArrayRef<int64_t>{1, 0, 2});
    return build.reshape(sum, parts, {blocks, block});
  }
  Value vector = build.reshape(sum, addend, {sum.type().getNumElements()});
  return build.reshape(sum, build.resize(sum, vector, {blocks * block}), {blocks, block});
}

/// The addend whose blocks these are.
Value SparseSum::addendOf(Value rows) {
  if (sum.scatters()) {
    int64_t run = sum.type().getNumElements() / outer() / sum.group;
    Value parts = build.reshape(sum, rows, {sum.group, outer(), run});
    if (outer() > 1)
      parts = build.create<TransposeOp>(sum, parts, ArrayRef<int64_t>{1, 0, 2});
    return build.reshape(sum, parts, sum.type().getShape());
  }
  Value vector = build.reshape(sum, rows, {blocks * block});
  return build.reshape(sum, build.resize(sum, vector, {sum.type().getNumElements()}),
                       sum.type().getShape());
}

LogicalResult SparseSum::begin(Value addend) {
  OpBuilder &builder = build.builder;
  blocks = (sum.type().getNumElements() + block - 1) / block;
  Value rows = rowsOf(addend);
  Value sizes = build.create<AbsOp>(sum, rows);
  auto masks = RankedTensorType::get({blocks, block}, builder.getI1Type());
  Value mask = build.create<TopKOp>(sum, masks, sizes, count);
  places = build.create<NonzeroOp>(
      sum, RankedTensorType::get({blocks, count}, builder.getI32Type()), mask);
  Value table = build.reshape(sum, rows, {blocks, block, 1});
  values = build.create<EmbeddingOp>(sum, table, places);
  values = build.reshape(sum, values, {blocks, count});
  auto exchange = [&](Value value) {
    return sum.scatters() ? build.allToAll(sum, value)
                          : build.allGather(sum, value, 1, build.axis());
  };
  values = exchange(values);
  places = exchange(places);
  sent = places.getDefiningOp();
  if (!build.settings.feedback)
    return success();
  Value zeros = build.create<ConstantOp>(sum, cast<RankedTensorType>(rows.getType()), 0.0);
  kept = addendOf(build.create<SelectOp>(sum, mask, rows, zeros));
  return success();
}

Value SparseSum::result() {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(places.getType()).getShape();
  Value rows = build.reshape(sum, values, {shape[0], shape[1], 1});
  auto dense = RankedTensorType::get({shape[0], block, 1}, sum.type().getElementType());
  Value total = build.create<EmbeddingGradOp>(sum, dense, places, rows);
  RankedTensorType type = sum.resultType();
  Value vector = build.reshape(sum, total, {shape[0] * block});
  return build.reshape(sum, build.resize(sum, vector, {type.getNumElements()}), type.getShape());
}

std::unique_ptr<CompressedSum> dtc::makeSparseSum(SumBuilder &build, GradientSum sum) {
  return std::make_unique<SparseSum>(build, std::move(sum));
}
