//===- ShapeRules.cpp - Views and permutations ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

/// Gives the elements the shape of the result, which the capture knows.
static Results convertView(AtenOp &op) {
  return {op.reshape(op.required("self"), op.resultType().getShape())};
}

static Results convertExpand(AtenOp &op) {
  return {op.broadcastTo(op.required("self"), op.resultType().getShape())};
}

static Results convertPermute(AtenOp &op) {
  Value x = op.required("self");
  std::optional<ArrayRef<int64_t>> dims = op.integers("dims");
  if (!x || !dims)
    return {x ? op.fail("has no dims") : x};
  int64_t rank = shapeOf(x).size();
  SmallVector<int64_t> order;
  for (int64_t dim : *dims)
    order.push_back(dim < 0 ? dim + rank : dim);
  return {op.transpose(x, order)};
}

static Results convertTranspose(AtenOp &op) {
  Value x = op.required("self");
  if (!x)
    return {};
  int64_t rank = shapeOf(x).size();
  std::optional<int64_t> first = op.dim("dim0", rank), second = op.dim("dim1", rank);
  if (!first || !second)
    return {op.fail("names a dimension that does not exist")};
  return {op.swapDims(x, *first, *second)};
}

static Results convertT(AtenOp &op) {
  Value x = op.required("self");
  if (!x || shapeOf(x).size() > 2)
    return {x ? op.fail("has an operand of more than 2 dimensions") : x};
  return {shapeOf(x).size() == 2 ? op.swapDims(x, 0, 1) : x};
}

ArrayRef<Rule> dtc::torch::shapeRules() {
  static const Rule rules[] = {
      {"aten._unsafe_view", convertView},   {"aten.broadcast_to", convertExpand},
      {"aten.expand", convertExpand},       {"aten.flatten", convertView},
      {"aten.permute", convertPermute},     {"aten.reshape", convertView},
      {"aten.squeeze", convertView},        {"aten.t", convertT},
      {"aten.transpose", convertTranspose}, {"aten.unflatten", convertView},
      {"aten.unsqueeze", convertView},      {"aten.view", convertView},
  };
  return rules;
}
