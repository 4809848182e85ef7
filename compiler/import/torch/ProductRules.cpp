//===- ProductRules.cpp - Matrix products ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

/// Letters for leading dimensions, which leave the last ones of the alphabet to others.
static std::string letters(size_t count) {
  return StringRef("abcdefghijklmnop").take_front(count).str();
}

/// x plus the bias, which has x's last dimensions.
static Value addBias(AtenOp &op, Value x, Value bias) {
  if (!x || !bias)
    return x;
  return op.elementwise<AddOp>(
      {x, op.broadcastTo(op.convert(bias, typeOf(x).getElementType()), shapeOf(x))});
}

/// input [..., in], weight [out, in] or [in].
static Results convertLinear(AtenOp &op) {
  Value x = op.required("input"), weight = op.required("weight");
  if (!x || !weight)
    return {};
  size_t rank = shapeOf(x).size();
  if (rank < 1 || rank > 15 || shapeOf(weight).empty())
    return {op.fail("has operands of ranks that do not fit")};
  std::string first = letters(rank - 1);
  bool isVector = shapeOf(weight).size() == 1;
  Value y =
      op.einsum(isVector ? first + "x,x->" + first : first + "x,yx->" + first + "y", x, weight);
  return {addBias(op, y, op.operand("bias"))};
}

/// A product of the last two dimensions, the others broadcast as PyTorch's matmul does. A vector is
/// a row on the left and a column on the right.
static Value multiply(AtenOp &op, Value lhs, Value rhs) {
  if (!lhs || !rhs)
    return {};
  int64_t left = shapeOf(lhs).size(), right = shapeOf(rhs).size();
  if (left < 1 || right < 1 || left > 12 || right > 12)
    return op.fail("has operands of ranks that do not fit");
  int64_t leftBatch = std::max<int64_t>(left - 2, 0), rightBatch = std::max<int64_t>(right - 2, 0);
  int64_t rank = std::max(leftBatch, rightBatch);
  std::string all = letters(size_t(rank));
  // A dimension of size 1 beside a larger one is repeated: it has no letter in its term.
  auto batchTerm = [&](Value &value, int64_t batch, Value other, int64_t otherBatch) {
    std::string term;
    SmallVector<int64_t> kept;
    for (int64_t i = 0; i < batch; ++i) {
      int64_t size = shapeOf(value)[i], place = rank - batch + i;
      int64_t otherPlace = place - (rank - otherBatch);
      if (size == 1 && otherPlace >= 0 && shapeOf(other)[otherPlace] != 1)
        continue;
      term += all[size_t(place)];
      kept.push_back(size);
    }
    llvm::append_range(kept, shapeOf(value).drop_front(batch));
    Value shaped = op.reshape(value, kept);
    return std::pair(term, shaped);
  };
  auto [leftTerm, a] = batchTerm(lhs, leftBatch, rhs, rightBatch);
  auto [rightTerm, b] = batchTerm(rhs, rightBatch, lhs, leftBatch);
  std::string rows = left > 1 ? "x" : "", columns = right > 1 ? "z" : "";
  return op.einsum(leftTerm + rows + "y," + rightTerm + "y" + columns + "->" + all + rows + columns,
                   a, b);
}

static Results convertMatmul(AtenOp &op) {
  Value rhs = op.operand("other");
  return {multiply(op, op.required("self"), rhs ? rhs : op.required("mat2"))};
}

/// beta input + alpha first second.
static Results convertAddProduct(AtenOp &op, StringRef first, StringRef second) {
  Value product = multiply(op, op.required(first), op.required(second));
  if (!product)
    return {};
  product = op.scale(product, op.number("alpha").value_or(1));
  Value input = op.required("self");
  return {addBias(op, product, op.scale(input, op.number("beta").value_or(1)))};
}

static Results convertAddmm(AtenOp &op) { return convertAddProduct(op, "mat1", "mat2"); }
static Results convertBaddbmm(AtenOp &op) { return convertAddProduct(op, "batch1", "batch2"); }

/// Converts an einsum of two tensors. No term has a letter twice, and each letter is in at least
/// two of the three terms (the two operands and the result).
static Results convertEinsum(AtenOp &op) {
  SmallVector<Value> tensors = op.list("tensors");
  StringRef equation = op.string("equation");
  auto [terms, result] = equation.split("->");
  auto [left, right] = terms.split(',');
  auto isTerm = [](StringRef term) {
    std::string sorted = term.str();
    llvm::sort(sorted);
    return llvm::all_of(sorted, llvm::isLower) && llvm::unique(sorted) == sorted.end();
  };
  auto isOfTwo = [left = left, right = right, result = result](char letter) {
    return left.contains(letter) + right.contains(letter) + result.contains(letter) >= 2;
  };
  if (tensors.size() != 2 || !isTerm(left) || !isTerm(right) || !isTerm(result) ||
      !equation.contains("->") || !llvm::all_of((left + right + result).str(), isOfTwo))
    return {op.fail("has the equation \"" + equation +
                    "\", expected two terms of different letters, such as \"abx,xc->abc\", and "
                    "each letter in at least two of the three terms")};
  return {op.einsum(equation, tensors[0], tensors[1])};
}

ArrayRef<Rule> dtc::torch::productRules() {
  static const Rule rules[] = {
      {"aten.addmm", convertAddmm},   {"aten.baddbmm", convertBaddbmm},
      {"aten.bmm", convertMatmul},    {"aten.einsum", convertEinsum},
      {"aten.linear", convertLinear}, {"aten.matmul", convertMatmul},
      {"aten.mm", convertMatmul},
  };
  return rules;
}
