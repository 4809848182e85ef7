//===- DistScaledOps.cpp - Ops of products in 8 bits ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/DistScaledOps.h"

#include "dialects/dtc/OpHelpers.h"
#include "support/EinsumEquation.h"

#include <array>

using namespace mlir;
using namespace dtc;
using namespace dtc::dist;

std::optional<MatrixSize> dtc::dist::findOddSize(const EinsumEquation &equation,
                                                 ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs) {
  auto sizeOf = [](ArrayRef<int64_t> shape, StringRef term, StringRef others) {
    int64_t size = 1;
    for (auto [letter, dim] : llvm::zip_equal(term, shape))
      if (others.contains(letter))
        size *= dim;
    return size;
  };
  for (MatrixSize size :
       {MatrixSize{"rows", sizeOf(lhs, equation.lhs(), equation.result())},
        MatrixSize{"columns", sizeOf(rhs, equation.rhs(), equation.result())},
        MatrixSize{"products to sum", sizeOf(lhs, equation.lhs(), equation.rhs())}})
    if (size.elements % 16 != 0)
      return size;
  return std::nullopt;
}

LogicalResult QuantizeF8Op::verify() {
  if (getResult().getType().getShape() != getInput().getType().getShape())
    return violates(*this, "quantize_f8-c1") << "has a result of type " << getResult().getType()
                                             << ", expected the shape of " << getInput().getType();
  return success();
}

LogicalResult ScaledProductOp::verify() {
  EinsumEquation::Violation violation;
  auto equation = EinsumEquation::parse(getEquation(), &violation);
  if (!equation)
    return violates(*this, "scaled_product-c1")
           << "has the equation \"" << getEquation() << "\", which " << violation.text;
  std::array<int64_t, 26> sizes = {};
  for (auto [term, type] :
       {std::pair(equation->lhs(), getLhs().getType()),
        std::pair(equation->rhs(), getRhs().getType()), std::pair(equation->result(), getType())}) {
    bool fits = int64_t(term.size()) == type.getRank();
    for (size_t dim = 0; fits && dim < term.size(); ++dim) {
      int64_t &size = sizes[term[dim] - 'a'];
      fits = size == 0 || size == type.getDimSize(dim);
      size = type.getDimSize(dim);
    }
    if (!fits)
      return violates(*this, "scaled_product-c2")
             << "has a tensor of type " << type << ", expected the dimensions \"" << term
             << "\" of the equation \"" << getEquation() << "\"";
  }
  if (isa<Float8E5M2Type>(getLhs().getType().getElementType()) &&
      isa<Float8E5M2Type>(getRhs().getType().getElementType()))
    return violates(*this, "scaled_product-c3")
           << "has two operands of f8E5M2, expected at most one; GPUs have no such product";
  return success();
}

ShardingRule ScaledProductOp::getShardingRule() {
  auto [lhs, rhs, result] = EinsumEquation::parse(getEquation())->terms;
  return makeEquationRule(*this, lhs + "," + rhs + ",,->" + result);
}

double ScaledProductOp::getFlops() {
  double flops = 2;
  for (const Factor &factor : getShardingRule().factors)
    flops *= static_cast<double>(factor.size);
  return flops;
}

#define GET_OP_CLASSES
#include "dialects/dist/DistScaledOps.cpp.inc"
