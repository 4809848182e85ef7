//===- RecognizeSinks.cpp - Sinks of attention ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// gpt-oss (OpenAI 2025, arXiv:2508.10925) joins a trained score of each head to those of the keys,
// takes the softmax of all, and leaves out the share of the joined one.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/Recognize.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

/// Whether the value is the maximum of each row of x.
static bool isMaximumOf(Value value, Value x) {
  Operation *op = value ? value.getDefiningOp() : nullptr;
  if (!op || !x || shapeOf(x).empty() || value != op->getResult(0))
    return false;
  AtenArguments maximum(op);
  int64_t rank = shapeOf(x).size();
  auto dims = maximum.dims("dim", rank);
  return (maximum.name() == "max" || maximum.name() == "amax") && maximum.operand("self") == x &&
         maximum.flag("keepdim") && dims && *dims == SmallVector<int64_t>{rank - 1};
}

/// The tensor [heads] that is repeated to one number for each head and query.
static Value perHead(Value value, int64_t heads) {
  int64_t rank = shapeOf(value).size();
  while (Operation *op = value.getDefiningOp()) {
    AtenArguments expand(op);
    if (expand.name() != "expand" || !expand.operand("self"))
      break;
    value = expand.operand("self");
  }
  SmallVector<int64_t> narrow(rank, 1);
  narrow[rank - 3] = heads;
  if (shapeOf(value) != ArrayRef<int64_t>(narrow))
    return {};
  static constexpr StringRef views[] = {"alias", "reshape", "unsqueeze", "view"};
  while (shapeOf(value).size() > 1) {
    Operation *op = value.getDefiningOp();
    Value before = op && llvm::is_contained(views, AtenArguments(op).name())
                       ? AtenArguments(op).operand("self")
                       : Value();
    if (!before)
      return {};
    value = before;
  }
  return value;
}

std::optional<SinkParts> dtc::torch::sinksOf(AtenArguments softmax) {
  Value shares = softmax.op->getResult(0), x = softmax.operand("self");
  // The shares of scores less their maximum are those of the scores.
  if (AtenArguments sub = producerOf(x, "aten.sub");
      sub.op && sub.number("alpha").value_or(1) == 1 &&
      isMaximumOf(sub.operand("other"), sub.operand("self")))
    x = sub.operand("self");
  AtenArguments cat = producerOf(x, "aten.cat");
  if (!cat.op || !shares.hasOneUse())
    return std::nullopt;
  SmallVector<Value> parts = cat.list("tensors");
  int64_t rank = shapeOf(x).size();
  if (parts.size() != 2 || !parts[0] || !parts[1] || rank < 4 || cat.dim("dim", rank) != rank - 1 ||
      int64_t(shapeOf(parts[1]).size()) != rank || shapeOf(parts[1]).back() != 1 ||
      softmax.dim("dim", rank) != rank - 1)
    return std::nullopt;
  AtenArguments slice(*shares.getUsers().begin());
  if (slice.name() != "slice" || slice.dim("dim", rank) != rank - 1 ||
      slice.integer("start").value_or(0) != 0 || slice.integer("step").value_or(1) != 1 ||
      slice.op->getResult(0).getType() != parts[0].getType())
    return std::nullopt;
  Value sinks = perHead(parts[1], shapeOf(x)[rank - 3]);
  if (!sinks)
    return std::nullopt;
  return SinkParts{parts[0], sinks, slice.op->getResult(0)};
}
