//===- QuantizedSum.cpp - Sums of gradients as integers -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A gradient G = sum of g_r over the devices r of an axis becomes Q(sum of Q(g_r)), where Q makes
// integers of blocks of elements (dist.quantize_blocks). A block is whole on a device in each
// layout that cuts the gradient at multiples of the block, so the result does not depend on the
// layout. Stochastic rounding adds a number from [0, 1) and rounds down (Alistarh et al., "QSGD",
// arXiv:1610.02132, section 3.1, on the grid of the integers). The number is a function of the
// step, the parameter, the element's place in it and, of an addend, the device along the axis.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/collectives/CompressedSum.h"
#include "support/Philox.h"
#include "support/QuantizedBlocks.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dtc;

namespace {

class QuantizedSum : public CompressedSum {
public:
  using CompressedSum::CompressedSum;
  bool choose() override;
  LogicalResult begin(Value addend) override;
  void combine() override;
  Value result() override;

private:
  bool isStochastic() const { return build.settings.rounding == Rounding::Stochastic; }
  int64_t bits() const { return build.settings.method == CompressionMethod::Int8 ? 8 : 4; }
  Value quantize(Value floats, int64_t dim, int64_t parts, Value noise);
  Value dequantize(Value words, ArrayRef<int64_t> shape, int64_t dim, int64_t parts);
  Value draw(StringRef what, bool isOfDevice);
  Value gradientOf(Value words, int64_t parts, RankedTensorType type);
  /// The elements of the addend as one vector of as many as all devices' parts have.
  Value vectorOf(Value addend) {
    return build.resize(sum, build.reshape(sum, addend, {sum.type().getNumElements()}), {elements});
  }

  int64_t block = 1;            ///< elements with one scale
  int64_t elements = 0;         ///< of the gradient, with what makes parts equal
  Value words;                  ///< the integers of the addend, then of the sum
  std::optional<Layout> layout; ///< of the addend, where numbers are drawn for its elements
};

} // namespace

/// Chooses the block of a sum.
bool QuantizedSum::choose() {
  block = blockOf(build, sum);
  if (block == 0)
    return false;
  QuantizedBlocks blocks{.bits = bits(), .block = block};
  auto bytes = int64_t(sum.type().getElementTypeBitWidth() / 8);
  if (blocks.words() * 4 >= block * bytes) {
    build.remark(sum) << "is summed over \"" << build.settings.axis
                      << "\" in full, as blocks of length " << block
                      << " with their scales are no smaller";
    return false;
  }
  if (isStochastic()) {
    layout = build.addendLayout(sum);
    if (!layout) {
      build.remark(sum) << "is summed over \"" << build.settings.axis
                        << "\" in full, as what a device has of it is no shard of the parameter, "
                           "for whose elements it would draw numbers";
      return false;
    }
  }
  remarkOnBlock(build, sum, block);
  return true;
}

Value QuantizedSum::quantize(Value floats, int64_t dim, int64_t parts, Value noise) {
  QuantizedBlocks blocks{.bits = bits(),
                         .block = block,
                         .parts = parts,
                         .elements = cast<RankedTensorType>(floats.getType()).getNumElements()};
  auto type = RankedTensorType::get({blocks.rows(), blocks.words()}, build.builder.getI32Type());
  return build.create<dist::QuantizeBlocksOp>(sum, type, floats, noise, bits(), block, dim, parts);
}

Value QuantizedSum::dequantize(Value words, ArrayRef<int64_t> shape, int64_t dim, int64_t parts) {
  auto type = RankedTensorType::get(shape, sum.type().getElementType());
  return build.create<dist::DequantizeBlocksOp>(sum, type, words, bits(), block, dim, parts);
}

/// A number from [0, 1) for each element of the addend, zeros for its padding; null where rounding
/// needs none. `what` tells draws for one parameter apart.
Value QuantizedSum::draw(StringRef what, bool isOfDevice) {
  if (!isStochastic())
    return {};
  Layout drawn = *layout;
  SmallVector<int64_t> shape = sum.shape, local = drawn.localShape(build.mesh, shape);
  SmallVector<int64_t> ofOp = local;
  if (isOfDevice) {
    shape.insert(shape.begin(), sum.group);
    drawn.dims.insert(drawn.dims.begin(), AxisList{build.axis()});
    ofOp.insert(ofOp.begin(), 1);
  }
  SmallVector<std::string> sharding;
  for (const AxisList &list : drawn.dims) {
    SmallVector<StringRef> names;
    for (unsigned axis : list)
      names.push_back(build.mesh.axes[axis].name);
    sharding.push_back(llvm::join(names, ","));
  }
  SmallVector<StringRef> texts(sharding.begin(), sharding.end());
  auto number = int64_t(uint32_t(fnv1a((build.parameterName(sum).getValue() + "." + what).str())));
  Value numbers = build.create<dist::RandomUniformOp>(
      sum, RankedTensorType::get(ofOp, build.builder.getF32Type()), build.randomKey(), number,
      ArrayRef<int64_t>(shape), build.builder.getStrArrayAttr(texts));
  return build.resize(sum, build.reshape(sum, numbers, local), sum.type().getShape());
}

/// The tensor whose elements, with zeros after them, are in the words.
Value QuantizedSum::gradientOf(Value words, int64_t parts, RankedTensorType type) {
  Value vector = dequantize(words, {elements}, 0, parts);
  return build.reshape(sum, build.resize(sum, vector, {type.getNumElements()}), type.getShape());
}

/// Makes integers of this device's addend and sends each device those of its part.
LogicalResult QuantizedSum::begin(Value addend) {
  Value noise = draw("addend", /*isOfDevice=*/true);
  auto scatter = dyn_cast<dist::ReduceScatterOp>(sum.op);
  elements = sum.type().getNumElements();
  if (scatter) {
    words = quantize(addend, int64_t(scatter.getDim()), sum.group, noise);
  } else {
    int64_t whole = sum.group * block;
    elements = (elements + whole - 1) / whole * whole;
    words = quantize(vectorOf(addend), 0, sum.group, noise ? vectorOf(noise) : noise);
  }
  Value own = words;
  words = build.allToAll(sum, words);
  sent = words.getDefiningOp();
  if (!build.settings.feedback)
    return success();
  kept = scatter ? dequantize(own, sum.type().getShape(), int64_t(scatter.getDim()), sum.group)
                 : gradientOf(own, sum.group, sum.type());
  return success();
}

/// Adds the addends of the devices in the order of the axis, and makes integers of the sum. These
/// stay on this device, or are gathered on all.
void QuantizedSum::combine() {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(words.getType()).getShape();
  int64_t blocks = shape[0], perBlock = shape[1] / sum.group;
  Value rows = build.reshape(sum, words, {blocks * sum.group, perBlock});
  Value addends = dequantize(rows, {blocks, sum.group, block}, 0, 1);
  Value total = build.create<ReduceOp>(sum, addends, ReductionKind::Sum, ArrayRef<int64_t>{1});
  Value noise = draw("sum", /*isOfDevice=*/false);
  if (noise) {
    if (auto scatter = dyn_cast<dist::ReduceScatterOp>(sum.op))
      noise = build.shardSlice(sum, noise, int64_t(scatter.getDim()), build.axis());
    else
      noise = build.shardSlice(sum, vectorOf(noise), 0, build.axis());
    noise = build.reshape(sum, noise, {blocks, block});
  }
  words = quantize(total, 0, 1, noise);
  if (!sum.scatters())
    words = build.allGather(sum, words, 0, build.axis());
}

Value QuantizedSum::result() {
  if (sum.scatters())
    return dequantize(words, sum.resultType().getShape(), 0, 1);
  return gradientOf(words, 1, sum.resultType());
}

std::unique_ptr<CompressedSum> dtc::makeQuantizedSum(SumBuilder &build, GradientSum sum) {
  return std::make_unique<QuantizedSum>(build, std::move(sum));
}
