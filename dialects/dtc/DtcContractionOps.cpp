//===- DtcContractionOps.cpp - Einsums and reductions ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/Float8Attribute.h"
#include "dialects/dtc/OpHelpers.h"
#include "support/EinsumEquation.h"

#include <array>

using namespace mlir;
using namespace dtc;

//===----------------------------------------------------------------------===//
// EinsumOp
//===----------------------------------------------------------------------===//

LogicalResult EinsumOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  EinsumEquation::Violation violation;
  auto equation = EinsumEquation::parse(adaptor.getEquation(), &violation);
  if (!equation) {
    // In the order of EinsumEquation::Rule.
    constexpr StringLiteral labels[] = {"einsum-c1", "einsum-c2", "einsum-c3", "einsum-c4"};
    return inferenceError<EinsumOp>(location, labels[static_cast<size_t>(violation.rule)],
                                    "equation \"", adaptor.getEquation(), "\" ", violation.text);
  }

  RankedTensorType lhs = getTensorType(adaptor.getLhs()), rhs = getTensorType(adaptor.getRhs());
  if (lhs.getElementType() != rhs.getElementType())
    return inferenceError<EinsumOp>(location, "einsum-c5", "lhs has elements of ",
                                    lhs.getElementType(), " and rhs of ", rhs.getElementType(),
                                    ", expected the same");
  std::array<int64_t, 26> sizes = {};
  auto readSizes = [&](StringRef name, StringRef term, RankedTensorType type) -> LogicalResult {
    if (static_cast<int64_t>(term.size()) != type.getRank())
      return inferenceError<EinsumOp>(location, "einsum-c6", name, " has rank ", type.getRank(),
                                      ", expected ", term.size(), " for the term \"", term, "\"");
    for (auto [letter, size] : llvm::zip_equal(term, type.getShape())) {
      int64_t &known = sizes[letter - 'a'];
      if (known != 0 && known != size)
        return inferenceError<EinsumOp>(location, "einsum-c7", "'", StringRef(&letter, 1),
                                        "' has size ", size, " in ", name, ", expected ", known,
                                        " as in lhs");
      known = size;
    }
    return success();
  };
  if (failed(readSizes("lhs", equation->lhs(), lhs)) ||
      failed(readSizes("rhs", equation->rhs(), rhs)))
    return failure();
  SmallVector<int64_t> shape;
  for (char letter : equation->result())
    shape.push_back(sizes[letter - 'a']);
  types.push_back(withShape(adaptor.getWide() ? getWideTensor(lhs) : lhs, shape));
  return success();
}

ShardingRule EinsumOp::getShardingRule() {
  ShardingRule rule = makeEquationRule(*this, getEquation());
  rule.linearOperands = {{0}, {1}};
  return rule;
}

double EinsumOp::getFlops() {
  double flops = 2;
  for (const Factor &factor : getShardingRule().factors)
    flops *= static_cast<double>(factor.size);
  return flops;
}

LogicalResult EinsumOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool> needed,
                                 MutableArrayRef<Value> gradients) {
  auto [lhs, rhs, result] = EinsumEquation::parse(getEquation())->terms;
  // Each letter is in two terms at least, so the exchanged terms are an einsum as well.
  ValueBuilder b(builder, getLoc());
  Value cotangent = b.convertLike(cotangents[0], getLhs());
  // Of a product whose operands may have 8 bits, the gradient may as well, in a type of its own.
  auto types = (*this)->getAttrOfType<ArrayAttr>(kFloat8AttrName);
  auto mark = [&](Value gradient, unsigned cotangentOperand) {
    Operation *op = gradient.getDefiningOp();
    if (types && isa<EinsumOp>(op)) {
      SmallVector<Attribute> all(types.begin(), types.end());
      all[cotangentOperand] = TypeAttr::get(Float8E5M2Type::get(getContext()));
      op->setAttr(kFloat8AttrName, builder.getArrayAttr(all));
    }
    return gradient;
  };
  if (needed[0])
    gradients[0] =
        mark(b.create<EinsumOp>(cotangent, getRhs(), EinsumEquation{{result, rhs, lhs}}.str()), 0);
  if (needed[1])
    gradients[1] =
        mark(b.create<EinsumOp>(getLhs(), cotangent, EinsumEquation{{lhs, result, rhs}}.str()), 1);
  return success();
}

//===----------------------------------------------------------------------===//
// GroupedProductOp
//===----------------------------------------------------------------------===//

LogicalResult GroupedProductOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                 Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto equation = EinsumEquation::parse(adaptor.getEquation());
  if (!equation || !isGroupedProduct(*equation))
    return inferenceError<GroupedProductOp>(
        location, "grouped_product-c1", "equation is \"", adaptor.getEquation(),
        "\", expected the form of \"xbck,xkn->xbcn\", \"xbck,xnk->xbcn\", "
        "\"xbck,xbcn->xkn\" or \"xbck,xbcn->xnk\"");
  RankedTensorType lhs = getTensorType(adaptor.getLhs()), rhs = getTensorType(adaptor.getRhs()),
                   rows = getTensorType(adaptor.getRows());
  if (lhs.getElementType() != rhs.getElementType())
    return inferenceError<GroupedProductOp>(location, "grouped_product-c2", "lhs has elements of ",
                                            lhs.getElementType(), " and rhs of ",
                                            rhs.getElementType(), ", expected the same");
  std::array<int64_t, 26> sizes = {};
  for (auto [term, type] : {std::pair(equation->lhs(), lhs), std::pair(equation->rhs(), rhs)}) {
    bool matches = static_cast<int64_t>(term.size()) == type.getRank();
    for (int64_t dim = 0; matches && dim < type.getRank(); ++dim) {
      int64_t &size = sizes[term[dim] - 'a'];
      matches = size == 0 || size == type.getDimSize(dim);
      size = type.getDimSize(dim);
    }
    if (!matches)
      return inferenceError<GroupedProductOp>(location, "grouped_product-c3", "lhs has type ", lhs,
                                              " and rhs ", rhs, ", expected those of \"",
                                              adaptor.getEquation(), "\"");
  }
  if (rows.getShape() != lhs.getShape().take_front(3))
    return inferenceError<GroupedProductOp>(location, "grouped_product-c4", "rows has type ", rows,
                                            ", expected the first three dimensions of ", lhs);
  double occupancy = adaptor.getOccupancy().convertToDouble();
  if (!(occupancy > 0 && occupancy <= 1))
    return inferenceError<GroupedProductOp>(location, "grouped_product-c5", "occupancy is ",
                                            occupancy, ", expected more than 0 and at most 1");
  SmallVector<int64_t> shape;
  for (char letter : equation->result())
    shape.push_back(sizes[letter - 'a']);
  types.push_back(withShape(adaptor.getWide() ? getWideTensor(lhs) : lhs, shape));
  return success();
}

ShardingRule GroupedProductOp::getShardingRule() {
  auto [lhs, rhs, result] = EinsumEquation::parse(getEquation())->terms;
  ShardingRule rule =
      makeEquationRule(*this, lhs + "," + rhs + "," + lhs.substr(0, 3) + "->" + result);
  rule.linearOperands = {{0}, {1}};
  return rule;
}

DictionaryAttr GroupedProductOp::getKernelAttributes() {
  return DictionaryAttr::get(getContext(),
                             {NamedAttribute(getEquationAttrName(), getEquationAttr())});
}

double GroupedProductOp::getFlops() {
  double flops = 2 * getOccupancy().convertToDouble();
  for (const Factor &factor : getShardingRule().factors)
    flops *= static_cast<double>(factor.size);
  return flops;
}

LogicalResult GroupedProductOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                                         ArrayRef<bool> needed, MutableArrayRef<Value> gradients) {
  auto [lhs, rhs, result] = EinsumEquation::parse(getEquation())->terms;
  ValueBuilder b(builder, getLoc());
  Value cotangent = b.convertLike(cotangents[0], getLhs());
  auto product = [&](Value x, Value y, const EinsumEquation &equation) {
    return GroupedProductOp::create(builder, getLoc(), x, y, getRows(), equation.str(),
                                    /*wide=*/false, getOccupancy());
  };
  // The operand with rows goes first.
  bool keepsRows = result.size() == 4;
  if (needed[0])
    gradients[0] = keepsRows ? product(cotangent, getRhs(), {{result, rhs, lhs}})
                             : product(getRhs(), cotangent, {{rhs, result, lhs}});
  if (needed[1])
    gradients[1] = product(getLhs(), cotangent, {{lhs, result, rhs}});
  return success();
}

//===----------------------------------------------------------------------===//
// ReduceOp
//===----------------------------------------------------------------------===//

/// The dimensions of a tensor of that rank that are not in `dims`.
static SmallVector<int64_t> getKeptDims(int64_t rank, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> kept;
  for (int64_t i = 0; i < rank; ++i)
    if (!llvm::is_contained(dims, i))
      kept.push_back(i);
  return kept;
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType operand = getTensorType(adaptor.getOperand());
  if (!areIncreasingDims(adaptor.getDims(), operand.getRank()))
    return inferenceError<ReduceOp>(location, "reduce-c1", "dims are ",
                                    formatList(adaptor.getDims()),
                                    ", expected increasing dimensions of ", operand);
  SmallVector<int64_t> shape;
  for (int64_t dim : getKeptDims(operand.getRank(), adaptor.getDims()))
    shape.push_back(operand.getDimSize(dim));
  types.push_back(withShape(getWideTensor(operand), shape));
  return success();
}

ShardingRule ReduceOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors operand, result;
  for (auto [dim, size] : llvm::enumerate(getOperand().getType().getShape())) {
    bool reduced = llvm::is_contained(getDims(), static_cast<int64_t>(dim));
    operand.push_back({rule.addFactor(size, reduced ? std::optional(getKind()) : std::nullopt)});
    if (!reduced)
      result.push_back(operand.back());
  }
  rule.operands.push_back(std::move(operand));
  rule.results.push_back(std::move(result));
  if (getKind() == ReductionKind::Sum)
    rule.linearOperands = {{0}};
  return rule;
}

OpFoldResult ReduceOp::fold(FoldAdaptor) {
  return getDims().empty() && !isAnnotated(*this) && getOperand().getType() == getType()
             ? getOperand()
             : OpFoldResult();
}

LogicalResult ReduceOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                 MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  SmallVector<int64_t> kept = getKeptDims(getOperand().getType().getRank(), getDims());
  auto broadcast = [&](Value value) -> Value {
    return b.create<BroadcastOp>(getOperand().getType(), b.convertLike(value, getOperand()), kept);
  };
  if (getKind() == ReductionKind::Sum) {
    gradients[0] = broadcast(cotangents[0]);
    return success();
  }
  // The elements that are the extremum share its gradient.
  Value isExtremum = b.compare(ComparePredicate::Equal, getOperand(), broadcast(getResult()));
  Value ones = b.create<ConvertOp>(isExtremum, getOperand().getType().getElementType());
  Value count = b.create<ReduceOp>(ones, ReductionKind::Sum, getDims()); // in the wide type
  Value share = broadcast(b.div(cotangents[0], count));
  gradients[0] = b.select(isExtremum, share, b.splat(getOperand(), 0));
  return success();
}
