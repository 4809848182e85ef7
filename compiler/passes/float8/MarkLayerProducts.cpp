//===- MarkLayerProducts.cpp - Products that may have 8 bits --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/float8/Float8Passes.h"
#include "dialects/dtc/Float8Attribute.h"
#include "support/EinsumEquation.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

namespace dtc {
#define GEN_PASS_DEF_MARKLAYERPRODUCTSPASS
#include "compiler/passes/Float8Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

/// Whether the op gives elements of its first operand, perhaps at other places or in another type.
static bool keepsElements(Operation *op) {
  return op->hasTrait<dtc::OpTrait::MovesElements>() ||
         op->hasTrait<dtc::OpTrait::SameElements>() || op->hasTrait<dtc::OpTrait::IsView>() ||
         isa<ConvertOp>(op);
}

/// Whether the value is a parameter, or elements of one.
static bool isParameter(func::FuncOp function, Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!keepsElements(op))
      return false;
    value = op->getOperand(0);
  }
  auto arg = cast<BlockArgument>(value);
  return bool(function.getArgAttr(arg.getArgNumber(), DtcDialect::kParamAttrName));
}

/// Whether the value is compared with others of its row, by a softmax or a choice: logits, and the
/// scores of a router. Elementwise ops may come between.
static bool isCompared(Value value) {
  SmallVector<Value> worklist{value};
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (Operation *user : next.getUsers()) {
      if (isa<CrossEntropyOp, SoftmaxOp, TopKOp, PickOp>(user))
        return true;
      if (keepsElements(user) || isa<AddOp, SubOp, MulOp, DivOp, NegOp, TanhOp, SigmoidOp>(user))
        llvm::append_range(worklist, user->getResults());
    }
  }
  return false;
}

/// Whether the einsum is one matrix product: no letter is in all three terms.
static bool isOneMatrix(const EinsumEquation &equation) {
  return llvm::none_of(equation.lhs(), [&](char letter) {
    return equation.rhs().find(letter) != std::string::npos &&
           equation.result().find(letter) != std::string::npos;
  });
}

static bool isLayerProduct(func::FuncOp function, EinsumOp einsum) {
  auto equation = EinsumEquation::parse(einsum.getEquation());
  bool isLeft = isParameter(function, einsum.getLhs());
  if (!equation || !isOneMatrix(*equation) || isLeft == isParameter(function, einsum.getRhs()))
    return false;
  Value weight = isLeft ? einsum.getLhs() : einsum.getRhs();
  return cast<RankedTensorType>(weight.getType()).getRank() >= 2 && !isCompared(einsum.getResult());
}

namespace {
struct MarkLayerProductsPass : dtc::impl::MarkLayerProductsPassBase<MarkLayerProductsPass> {
  using Base::Base;

  void runOnOperation() override {
    Attribute e4m3 = TypeAttr::get(Float8E4M3FNType::get(&getContext()));
    auto types = ArrayAttr::get(&getContext(), {e4m3, e4m3});
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](EinsumOp einsum) {
        if (isLayerProduct(function, einsum))
          einsum->setAttr(kFloat8AttrName, types);
      });
  }
};
} // namespace
