//===- KeepNames.cpp - Requested names of a captured model ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A user names dimensions of values that later steps replace: a value that takes
// the place of another one has its names. A product that is reshaped into heads becomes one that
// gives heads, so that names are followed through views, too. Each value says which requests its
// names come from, until all have been checked.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

static constexpr StringRef kRequestsAttrName = "torch.requests";

ArrayAttr dtc::torch::withName(ArrayAttr names, size_t rank, int64_t dim, StringRef name,
                               MLIRContext *context) {
  Builder builder(context);
  SmallVector<Attribute> list(rank, builder.getStringAttr(""));
  if (names && names.size() == rank)
    list.assign(names.begin(), names.end());
  Attribute wanted = builder.getStringAttr(name);
  if (cast<StringAttr>(list[dim]).empty() && !llvm::is_contained(list, wanted))
    list[dim] = wanted;
  return builder.getArrayAttr(list);
}

static SmallVector<StringRef> textsOf(ArrayAttr names) {
  return llvm::map_to_vector(names.getAsRange<StringAttr>(),
                             [](StringAttr name) { return name.getValue(); });
}

template <typename Attr> static Attr attributeOf(Value value, StringRef name) {
  if (Operation *op = value.getDefiningOp())
    return op->getAttrOfType<Attr>(name);
  auto argument = cast<BlockArgument>(value);
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function.getArgAttrOfType<Attr>(argument.getArgNumber(), name);
}

static void setAttribute(Value value, StringRef name, Attribute attribute) {
  if (Operation *op = value.getDefiningOp())
    return op->setDiscardableAttr(name, attribute);
  auto argument = cast<BlockArgument>(value);
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  function.setArgAttr(argument.getArgNumber(), name, attribute);
}

/// Gives names of the requests to a value, and with them those of the requests that it then meets.
static void addNames(Value value, ArrayRef<StringRef> names, ArrayRef<int64_t> requests,
                     const Conversion &conversion) {
  if (Operation *op = value.getDefiningOp(); op && op->getNumResults() != 1) {
    // The result of an op on rows has the dimensions of its operand, but for the last one.
    bool keepsDims = isa<RmsNormOp, LayerNormOp>(op);
    if (!keepsDims && !isa<AttentionOp>(op))
      return;
    SmallVector<StringRef> kept(names);
    if (!keepsDims)
      kept.back() = "";
    return addNames(op->getOperand(0), kept, requests, conversion);
  }
  if (llvm::all_of(names, [](StringRef name) { return name.empty(); }))
    return;
  auto merged = attributeOf<ArrayAttr>(value, DtcDialect::kAxesAttrName);
  for (auto [dim, name] : llvm::enumerate(names))
    if (!name.empty())
      merged = withName(merged, names.size(), int64_t(dim), name, value.getContext());
  setAttribute(value, DtcDialect::kAxesAttrName, merged);

  if (requests.empty())
    return;
  SmallVector<int64_t> met;
  if (auto before = attributeOf<DenseI64ArrayAttr>(value, kRequestsAttrName))
    llvm::append_range(met, before.asArrayRef());
  for (int64_t request : requests) {
    StringRef name = conversion.requests[size_t(request)].first;
    auto dim = llvm::find(names, name);
    if (dim != names.end() && !llvm::is_contained(met, request) &&
        cast<StringAttr>(merged[size_t(dim - names.begin())]).getValue() == name)
      met.push_back(request);
  }
  setAttribute(value, kRequestsAttrName, DenseI64ArrayAttr::get(value.getContext(), met));
}

void dtc::torch::collectRequests(func::FuncOp function, Conversion &conversion) {
  for (Operation &op : function.getBody().front()) {
    auto names = op.getAttrOfType<ArrayAttr>("axes");
    if (!names || !llvm::all_of(names, llvm::IsaPred<StringAttr>))
      continue;
    SmallVector<int64_t> requests;
    for (auto name : names.getAsRange<StringAttr>()) {
      if (name.empty())
        continue;
      requests.push_back(int64_t(conversion.requests.size()));
      conversion.requests.emplace_back(name.str(), op.getLoc());
    }
    op.setAttr(kRequestsAttrName, DenseI64ArrayAttr::get(op.getContext(), requests));
  }
}

void dtc::torch::takeRequests(Value value, Operation *op, ArrayAttr names,
                              const Conversion &conversion) {
  auto requests = op->getAttrOfType<DenseI64ArrayAttr>(kRequestsAttrName);
  addNames(value, textsOf(names), requests.asArrayRef(), conversion);
}

/// The dimensions of the one shape that those of the other are, or begin with, or are the first
/// part of; -1 where there is none. Both have as many elements, at least one: else the products
/// below would never be equal, and it would read beyond the shapes.
static SmallVector<int64_t> reshapedDims(ArrayRef<int64_t> source, ArrayRef<int64_t> target) {
  SmallVector<int64_t> dims(target.size(), -1);
  size_t from = 0, to = 0;
  while (from < source.size() && to < target.size()) {
    if (source[from] != target[to] && source[from] == 1) {
      ++from;
      continue;
    }
    if (source[from] != target[to] && target[to] == 1) {
      ++to;
      continue;
    }
    dims[to] = int64_t(from);
    int64_t given = source[from++], taken = target[to++];
    while (given != taken)
      (given < taken ? given : taken) *= given < taken ? source[from++] : target[to++];
  }
  return dims;
}

/// For each dimension of what a view gives, that of its operand, or -1; nothing for other ops.
static std::optional<SmallVector<int64_t>> viewedDims(Operation *op) {
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return SmallVector<int64_t>(transpose.getPermutation());
  if (auto slice = dyn_cast<SliceOp>(op))
    return llvm::to_vector(llvm::seq<int64_t>(0, int64_t(slice.getSizes().size())));
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return reshapedDims(shapeOf(reshape.getOperand()), shapeOf(reshape.getResult()));
  return std::nullopt;
}

/// Gives the names of the operand of a view to its result, or the names of the result to the
/// operand.
static void followView(Operation *op, bool toResult, const Conversion &conversion) {
  std::optional<SmallVector<int64_t>> dims = viewedDims(op);
  if (!dims)
    return;
  Value operand = op->getOperand(0), result = op->getResult(0);
  Value from = toResult ? operand : result, to = toResult ? result : operand;
  auto requests = attributeOf<DenseI64ArrayAttr>(from, kRequestsAttrName);
  auto names = attributeOf<ArrayAttr>(from, DtcDialect::kAxesAttrName);
  // An argument lies as its own sharding says.
  if (!requests || !names || isa<BlockArgument>(to))
    return;
  SmallVector<StringRef> list(shapeOf(to).size(), "");
  for (auto [given, taken] : llvm::enumerate(*dims))
    if (taken >= 0)
      list[toResult ? given : size_t(taken)] =
          cast<StringAttr>(names[toResult ? size_t(taken) : given]).getValue();
  addNames(to, list, requests.asArrayRef(), conversion);
}

void dtc::torch::spreadRequests(func::FuncOp function, const Conversion &conversion) {
  Block &block = function.getBody().front();
  for (Operation &op : block)
    followView(&op, /*toResult=*/true, conversion);
  for (Operation &op : llvm::reverse(block))
    followView(&op, /*toResult=*/false, conversion);
}

void NameKeeper::notifyOperationReplaced(Operation *op, ValueRange replacement) {
  auto names = op->getAttrOfType<ArrayAttr>(DtcDialect::kAxesAttrName);
  if (!names || replacement.size() != 1 || names.size() != shapeOf(replacement[0]).size())
    return;
  auto requests = op->getAttrOfType<DenseI64ArrayAttr>(kRequestsAttrName);
  addNames(replacement[0], textsOf(names), requests ? requests.asArrayRef() : ArrayRef<int64_t>(),
           conversion);
}

void NameKeeper::notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) {
  followView(op, /*toResult=*/true, conversion);
}

void dtc::torch::checkRequests(func::FuncOp function, Conversion &conversion) {
  std::vector<bool> isMet(conversion.requests.size());
  auto meet = [&](DenseI64ArrayAttr requests) {
    for (int64_t request : requests ? requests.asArrayRef() : ArrayRef<int64_t>())
      isMet[size_t(request)] = true;
  };
  for (BlockArgument argument : function.getArguments()) {
    meet(attributeOf<DenseI64ArrayAttr>(argument, kRequestsAttrName));
    function.removeArgAttr(argument.getArgNumber(), kRequestsAttrName);
  }
  function.walk([&](Operation *op) {
    meet(op->getAttrOfType<DenseI64ArrayAttr>(kRequestsAttrName));
    op->removeAttr(kRequestsAttrName);
  });
  for (auto [request, met] : llvm::zip(conversion.requests, isMet))
    if (!met)
      conversion.warning(request.second,
                         "the dimension '" + request.first +
                             "' of a sharding constraint is lost: the value is computed within "
                             "another operator, or lies in another way already; constrain what "
                             "the operator gives, or an array of the parameters or the batch");
}
