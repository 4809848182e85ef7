//===- ScaleProducts.cpp - Products of operands of 8 bits -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/float8/Float8Passes.h"
#include "dialects/dist/DistScaledOps.h"
#include "dialects/dtc/Float8Attribute.h"
#include "support/EinsumEquation.h"

#include "mlir/IR/Builders.h"

#include <map>
#include <tuple>

namespace dtc {
#define GEN_PASS_DEF_SCALEPRODUCTSPASS
#include "compiler/passes/Float8Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

class ProductScaler {
public:
  ProductScaler(func::FuncOp function, const LinkedMesh &mesh, StringRef outer)
      : function(function), mesh(mesh), outer(outer), builder(function.getContext()) {}
  LogicalResult run();

private:
  /// A tensor in 8 bits.
  struct Quantized {
    Value elements, inverse;
  };
  Quantized quantize(EinsumOp einsum, unsigned operand, Type type);
  LogicalResult scale(EinsumOp einsum);

  func::FuncOp function;
  const LinkedMesh &mesh;
  StringRef outer; ///< empty: replicas do not differ
  OpBuilder builder;
  unsigned scaled = 0;     ///< products
  std::string firstReason; ///< why a product stays in 16 bits
  /// By the tensor, the type of 8 bits, where the ops are, and their stage.
  std::map<std::tuple<const void *, const void *, Block *, const void *>, Quantized> known;
};

} // namespace

/// Why the product stays in 16 bits; empty where it need not.
static std::string reasonAgainst(EinsumOp einsum) {
  for (Value value : einsum->getOperands())
    if (!cast<RankedTensorType>(value.getType()).getElementType().isBF16())
      return "an operand is not in bf16";
  if (Type type = cast<RankedTensorType>(einsum.getType()).getElementType();
      !type.isBF16() && !type.isF32())
    return "its result is not in bf16 or f32";
  auto shapeOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape(); };
  if (auto odd = dist::findOddSize(*EinsumEquation::parse(einsum.getEquation()),
                                   shapeOf(einsum.getLhs()), shapeOf(einsum.getRhs())))
    return (Twine("it has ") + Twine(odd->elements) + " " + odd->name +
            " on a device, and GPUs compute in 8 bits with multiples of 16")
        .str();
  return "";
}

ProductScaler::Quantized ProductScaler::quantize(EinsumOp einsum, unsigned operand, Type type) {
  Value value = einsum->getOperand(operand);
  auto stage = dist::getStage(einsum);
  Operation *before = einsum;
  // A parameter is the same in all microbatches.
  auto arg = dyn_cast<BlockArgument>(value);
  if (arg && !stage && arg.getOwner() == &function.front())
    before = function.front().findAncestorOpInBlock(*einsum);
  // A value of the microbatch is rounded in the first pass that multiplies it.
  bool isOfPass = value.getParentBlock() != einsum->getBlock();
  Quantized &entry = known[{value.getAsOpaquePointer(), type.getAsOpaquePointer(),
                            before->getBlock(), isOfPass ? stage.getAsOpaquePointer() : nullptr}];
  if (entry.elements)
    return entry;
  // Next to what makes the tensor, one kernel may do both.
  Operation *maker = value.getDefiningOp();
  if (maker && maker->getBlock() == before->getBlock() && dist::getStage(maker) == stage)
    builder.setInsertionPointAfter(maker);
  else
    builder.setInsertionPoint(before);
  Location loc = einsum.getLoc();
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  SmallVector<Operation *> made;
  auto largest = dist::LargestMagnitudeOp::create(builder, loc, scalar, value);
  made.push_back(largest);
  Value all = largest;
  SmallVector<StringRef> axes;
  for (auto axis :
       cast<ArrayAttr>(einsum->getAttrOfType<ArrayAttr>(dist::kOperandAxesAttrName)[operand])
           .getAsValueRange<StringAttr>())
    if (axis != outer)
      axes.push_back(axis);
  if (!axes.empty()) {
    auto most = dist::AllReduceOp::create(builder, loc, scalar, ReductionKind::Max, all, mesh.name,
                                          builder.getStrArrayAttr(axes));
    made.push_back(most);
    all = most;
  }
  builder.setInsertionPoint(before);
  auto quantized = dist::QuantizeF8Op::create(
      builder, loc, cast<RankedTensorType>(value.getType()).clone(type), scalar, value, all);
  made.push_back(quantized);
  if (stage)
    for (Operation *op : made)
      op->setAttr(dist::kStageAttrName, stage);
  return entry = {quantized.getResult(), quantized.getInverse()};
}

LogicalResult ProductScaler::scale(EinsumOp einsum) {
  auto types = einsum->getAttrOfType<ArrayAttr>(kFloat8AttrName);
  auto axes = einsum->getAttrOfType<ArrayAttr>(dist::kOperandAxesAttrName);
  if (!axes || axes.size() != 2)
    return einsum.emitOpError() << "has '" << kFloat8AttrName << "' and no '"
                                << dist::kOperandAxesAttrName << "'; run dtc-spmd-partition first";
  if (std::string reason = reasonAgainst(einsum); !reason.empty()) {
    einsum.emitRemark() << "the product \"" << einsum.getEquation()
                        << "\" stays in 16 bits: " << reason;
    if (firstReason.empty())
      firstReason = reason;
    einsum->removeAttr(kFloat8AttrName);
    einsum->removeAttr(dist::kOperandAxesAttrName);
    return success();
  }
  auto typeOf = [&](unsigned operand) { return cast<TypeAttr>(types[operand]).getValue(); };
  Quantized lhs = quantize(einsum, 0, typeOf(0)), rhs = quantize(einsum, 1, typeOf(1));
  builder.setInsertionPoint(einsum);
  auto product = dist::ScaledProductOp::create(builder, einsum.getLoc(), einsum.getType(),
                                               lhs.elements, rhs.elements, lhs.inverse, rhs.inverse,
                                               einsum.getEquationAttr());
  for (NamedAttribute attr : einsum->getDiscardableAttrs())
    if (attr.getName() != kFloat8AttrName && attr.getName() != dist::kOperandAxesAttrName)
      product->setAttr(attr.getName(), attr.getValue());
  einsum.getResult().replaceAllUsesWith(product.getResult());
  einsum.erase();
  ++scaled;
  return success();
}

LogicalResult ProductScaler::run() {
  SmallVector<EinsumOp> marked;
  function.walk([&](EinsumOp einsum) {
    if (einsum->hasAttr(kFloat8AttrName))
      marked.push_back(einsum);
  });
  for (EinsumOp einsum : marked)
    if (failed(scale(einsum)))
      return failure();
  InFlightDiagnostic report = scaled == 0 ? function.emitWarning() : function.emitRemark();
  report << scaled << " of " << marked.size()
         << " products of linear layers and their gradients have operands of 8 bits; ";
  if (scaled > 0)
    report << "embeddings, logits, routers, attention and norms keep 16";
  else if (marked.empty())
    report << "forward passes and generation have none, so that fp8 is bf16 here";
  else
    report << "the first stays in 16 because " << firstReason
           << ", so that fp8 is bf16 here; choose sizes for which 16 divides each device's part";
  return success();
}

namespace {
struct ScaleProductsPass : dtc::impl::ScaleProductsPassBase<ScaleProductsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(forEachFunction(getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) {
          return ProductScaler(function, mesh, outer).run();
        })))
      signalPassFailure();
  }
};
} // namespace
