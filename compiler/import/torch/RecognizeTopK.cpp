//===- RecognizeTopK.cpp - The largest elements without their order -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// torch.topk gives the k largest elements of a row in their order, and where they were. dtc says of
// each element of the row whether it is one of them: "torch.top_k". What models compute of the k
// elements does not depend on their order: each has its weight, and they are added up, or put back
// where they were. So a tensor [..., k] of them is one [..., n] here, of the elements where they
// were, whose other elements say nothing.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/Recognize.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <limits>
#include <optional>
#include <utility>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

namespace {

/// The elements of a row, whose numbers become a part of the model.
constexpr int64_t kMaxRow = int64_t{1} << 22;

/// A tensor [..., k] of the largest elements of rows.
struct Largest {
  Value all;               ///< [..., n]: the same of all elements of the rows
  Value isLargest;         ///< i1 [..., n]
  bool restIsZero = false; ///< elements of `all` that are not among the largest are 0
  bool areNumbers = false; ///< of elements in their rows: what torch.topk gives as indices
  bool isFlat = false;     ///< the capture has all rows as one dimension
  Value before = {};       ///< what `all` was before its other elements became 0, if that is known
};

/// Replaces each aten.topk of a block, and all that is computed of the largest elements.
class LargestElements {
public:
  LargestElements(Block &block, Conversion &conversion) : block(block), conversion(conversion) {}

  void run();

private:
  using Handler = bool (LargestElements::*)(AtenArguments op);
  void begin(Operation *op);
  void follow(Operation *op);
  bool elementwise(AtenArguments op);
  bool view(AtenArguments op);
  bool sum(AtenArguments op);
  bool softmax(AtenArguments op);
  bool gather(AtenArguments op);
  bool scatter(AtenArguments op);
  bool count(AtenArguments op);
  bool rows(AtenArguments op);

  const Largest *find(Value value) const {
    auto found = largest.find(value);
    return found == largest.end() ? nullptr : &found->second;
  }
  Value create(StringRef name, ArrayRef<StringRef> names, ValueRange operands, Type type,
               ArrayRef<NamedAttribute> attributes = {});
  Value copy(Operation *op, ValueRange operands, Type type);
  Value choose(Value condition, Value onTrue, double onFalse);
  /// All elements, where those that are not among the largest are `rest`.
  Value withRest(const Largest &x, double rest);
  bool fail(Operation *op, const Twine &problem);

  Block &block;
  Conversion &conversion;
  OpBuilder builder{block.getParentOp()->getContext()};
  Location loc = builder.getUnknownLoc();
  llvm::DenseMap<Value, Largest> largest;
  llvm::DenseMap<std::pair<Value, Type>, Value> views; ///< of `isLargest`, by their types
};

} // namespace

bool LargestElements::fail(Operation *op, const Twine &problem) {
  conversion.error(op->getLoc(), "'" + op->getName().getStringRef() + "' " + problem);
  return false;
}

Value LargestElements::create(StringRef name, ArrayRef<StringRef> names, ValueRange operands,
                              Type type, ArrayRef<NamedAttribute> attributes) {
  return createAten(builder, loc, name, operands, names, type, attributes);
}

/// The op with other operands, whose result has the type.
Value LargestElements::copy(Operation *op, ValueRange operands, Type type) {
  OperationState state(loc, op->getName(), operands, TypeRange(type), op->getAttrs());
  return builder.create(state)->getResult(0);
}

Value LargestElements::choose(Value condition, Value onTrue, double onFalse) {
  return create("aten.where", {"condition", "self"}, {condition, onTrue}, onTrue.getType(),
                builder.getNamedAttr("other", builder.getF64FloatAttr(onFalse)));
}

Value LargestElements::withRest(const Largest &x, double rest) {
  if (rest == 0 && x.restIsZero)
    return x.all;
  return choose(x.isLargest, x.all, rest);
}

/// Makes "torch.top_k" of aten.topk, and notes what its two results are.
void LargestElements::begin(Operation *op) {
  AtenArguments topk(op);
  Value x = topk.operand("self");
  int64_t rank = x ? int64_t(shapeOf(x).size()) : 0;
  std::optional<int64_t> k = topk.integer("k"), dim = topk.dim("dim", rank);
  if (!dim && !op->hasAttr("dim"))
    dim = rank - 1;
  bool isSmallest = op->hasAttr("largest") && !topk.flag("largest");
  if (!x || rank == 0 || dim != rank - 1 || !torch::isFloat(x) || isSmallest || !k || *k < 1 ||
      *k > shapeOf(x).back() || op->getNumResults() != 2) {
    fail(op, "takes the smallest elements, or not along the last dimension of floats, for which "
             "there is no rule; negate or transpose the operand");
    return;
  }
  ArrayRef<int64_t> shape = shapeOf(x);
  Value isLargest = create("torch.top_k", {"self"}, x, typeOf(x).clone(builder.getI1Type()),
                           builder.getNamedAttr("k", builder.getI64IntegerAttr(*k)));
  if (!op->getResult(0).use_empty())
    largest[op->getResult(0)] = {
        .all = choose(isLargest, x, 0), .isLargest = isLargest, .restIsZero = true, .before = x};
  if (op->getResult(1).use_empty())
    return;
  if (shape.back() > kMaxRow) {
    fail(op, "gives numbers in rows of " + Twine(shape.back()) + " elements, expected at most " +
                 Twine(kMaxRow) + "; compute with the elements alone");
    return;
  }
  auto numbers = llvm::to_vector(llvm::seq<int64_t>(0, shape.back()));
  auto row = RankedTensorType::get(shape.back(), builder.getI64Type());
  Value written =
      create("torch.constant", {}, {}, row,
             builder.getNamedAttr("value", DenseElementsAttr::get(row, ArrayRef(numbers))));
  Value all =
      create("aten.expand", {"self"}, written, RankedTensorType::get(shape, row.getElementType()));
  largest[op->getResult(1)] = {.all = all, .isLargest = isLargest, .areNumbers = true};
}

/// An op that computes its elements from those at the same places. Of elements that are not among
/// the largest it gives finite numbers, so that their gradient is 0 as well.
bool LargestElements::elementwise(AtenArguments op) {
  static constexpr StringRef copies[] = {"_to_copy", "alias", "clone", "contiguous", "to"};
  Value result = op.op->getResult(0);
  StringRef name = op.name();
  bool isCopy = llvm::is_contained(copies, name);
  SmallVector<Value> operands(op.op->getOperands());
  Largest found;
  bool areAllLargest = true;
  for (Value &operand : operands) {
    const Largest *x = find(operand);
    if (!x) {
      areAllLargest = false;
      if (!shapeOf(operand).empty() && shapeOf(operand).back() != 1)
        return fail(op.op, "combines the largest elements of rows with a tensor by their order, "
                           "which dtc does not know; compute with one number for each row");
      continue;
    }
    if ((found.all && found.isLargest != x->isLargest) || shapeOf(operand) != shapeOf(result))
      return fail(op.op, "combines the results of several torch.topk, or repeats them, for which "
                         "there is no rule");
    bool isZero = x->restIsZero && (!found.all || found.restIsZero);
    found = *x;
    found.restIsZero = isZero;
    operand = x->all;
  }
  if ((found.isFlat && !isCopy) || (name == "div" && find(op.operand("other"))))
    return false;
  bool isSum = (name == "add" || name == "sub") && areAllLargest && op.op->getNumOperands() == 2;
  found.restIsZero &= isCopy || isSum || name == "neg" || name == "mul" || name == "div";
  found.areNumbers &= isCopy;
  found.before = {};
  RankedTensorType type = typeOf(found.all).clone(typeOf(result).getElementType());
  found.all = copy(op.op, operands, type);
  largest[result] = found;
  return true;
}

/// A view that keeps rows, or makes one dimension of all.
bool LargestElements::view(AtenArguments op) {
  Value result = op.op->getResult(0);
  const Largest *given = find(op.operand("self"));
  if (!given || given->isFlat)
    return false;
  Largest x = *given;
  ArrayRef<int64_t> shape = shapeOf(result);
  ArrayRef<int64_t> before = shapeOf(op.operand("self"));
  if (!shape.empty() && shape.back() == before.back()) {
    SmallVector<int64_t> wide(shape);
    wide.back() = shapeOf(x.all).back();
    auto reshaped = [&](Value value) {
      return create("aten.view", {"self"}, value, typeOf(value).clone(ArrayRef(wide)));
    };
    if (ArrayRef(wide) != shapeOf(x.all)) {
      // One value for all views of the same shape, by which later ops tell that they fit.
      Value &isLargest = views[{x.isLargest, typeOf(x.isLargest).clone(ArrayRef(wide))}];
      if (!isLargest)
        isLargest = reshaped(x.isLargest);
      x.all = reshaped(x.all);
      x.isLargest = isLargest;
      x.before = {};
    }
  } else if (shape.size() == 1) {
    x.isFlat = true;
  } else {
    return false;
  }
  largest[result] = x;
  return true;
}

/// A sum over the largest elements of each row, and perhaps over rows too.
bool LargestElements::sum(AtenArguments op) {
  const Largest *x = find(op.operand("self"));
  int64_t rank = x ? int64_t(shapeOf(x->all).size()) : 0;
  auto dims = op.dims("dim", rank);
  if (!x || x->isFlat || x->areNumbers || !dims || !llvm::is_contained(*dims, rank - 1))
    return false;
  Value all = typeOf(x->all).getElementType().isInteger(1)
                  ? create("aten.logical_and", {"self", "other"}, {x->all, x->isLargest},
                           x->isLargest.getType())
                  : withRest(*x, 0);
  Value result = op.op->getResult(0);
  result.replaceAllUsesWith(copy(op.op, all, result.getType()));
  return true;
}

bool LargestElements::softmax(AtenArguments op) {
  const Largest *x = find(op.operand("self"));
  Value result = op.op->getResult(0);
  int64_t rank = int64_t(shapeOf(result).size());
  if (!x || x->isFlat || x->areNumbers || op.dim("dim", rank) != rank - 1)
    return false;
  RankedTensorType type = typeOf(x->all).clone(typeOf(result).getElementType());
  Value scores = choose(x->isLargest, x->before ? x->before : x->all,
                        -std::numeric_limits<double>::infinity());
  Largest shares{.all = copy(op.op, scores, type), .isLargest = x->isLargest, .restIsZero = true};
  largest[result] = shares;
  return true;
}

/// The elements of another tensor in the places of the largest.
bool LargestElements::gather(AtenArguments op) {
  const Largest *x = find(op.operand("index"));
  Value from = op.operand("self");
  int64_t rank = x ? int64_t(shapeOf(x->all).size()) : 0;
  if (!x || !x->areNumbers || x->isFlat || !from || find(from) || op.dim("dim", rank) != rank - 1 ||
      shapeOf(from) != shapeOf(x->all) || !torch::isFloat(from))
    return false;
  Largest gathered{.all = choose(x->isLargest, from, 0),
                   .isLargest = x->isLargest,
                   .restIsZero = true,
                   .before = from};
  largest[op.op->getResult(0)] = gathered;
  return true;
}

/// Puts the largest elements, or a number, where the largest were.
bool LargestElements::scatter(AtenArguments op) {
  const Largest *x = find(op.operand("index")), *source = find(op.operand("src"));
  Value result = op.op->getResult(0), base = op.operand("self");
  int64_t rank = x ? int64_t(shapeOf(x->all).size()) : 0;
  std::optional<double> value = op.number("value");
  RankedTensorType type = typeOf(result);
  if (op.op->hasAttr("reduce"))
    return fail(op.op, "adds to or multiplies what is there, for which there is no rule; scatter "
                       "into zeros, and add or multiply the result");
  if (!x || !x->areNumbers || x->isFlat || !base || find(base) || op.dim("dim", rank) != rank - 1 ||
      type.getShape() != shapeOf(x->all) || base.getType() != type || bool(source) == bool(value) ||
      (source && source->isLargest != x->isLargest))
    return false;
  Value put = source ? create("aten.where", {"condition", "self", "other"},
                              {x->isLargest, source->all, base}, type)
                     : create("aten.where", {"condition", "other"}, {x->isLargest, base}, type,
                              builder.getNamedAttr("self", builder.getF64FloatAttr(*value)));
  result.replaceAllUsesWith(put);
  return true;
}

/// How often each number is one of the largest: a histogram with a bin for each number.
bool LargestElements::count(AtenArguments op) {
  const Largest *x = find(op.operand("self"));
  Value result = op.op->getResult(0);
  int64_t rank = x ? int64_t(shapeOf(x->all).size()) : 0;
  int64_t bins = x ? shapeOf(x->all).back() : 0;
  double least = op.number("min").value_or(0), most = op.number("max").value_or(0);
  if (!x || !x->areNumbers || op.integer("bins") != bins || least != 0 || most < double(bins - 1) ||
      most > double(bins) || rank < 2 || bins < 2)
    return false;
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
  result.replaceAllUsesWith(
      create("aten.sum", {"self"}, x->isLargest, result.getType(),
             builder.getNamedAttr("dim", DenseI64ArrayAttr::get(builder.getContext(), dims))));
  return true;
}

/// "torch.expert_rows" is given for each expert whether a token has it, and its weight.
bool LargestElements::rows(AtenArguments op) {
  const Largest *chosen = find(op.operand("chosen")), *weights = find(op.operand("weights"));
  if (!chosen || !chosen->areNumbers || chosen->isFlat || !weights || weights->isFlat ||
      chosen->isLargest != weights->isLargest)
    return false;
  Value all = withRest(*weights, 0);
  op.op->setOperands({chosen->isLargest, all});
  return true;
}

void LargestElements::follow(Operation *op) {
  static constexpr StringRef elementwiseNames[] = {
      "_to_copy", "add", "alias", "clone", "contiguous", "div", "eq",   "maximum", "minimum",
      "mul",      "ne",  "neg",   "relu",  "sigmoid",    "sub", "tanh", "to"};
  static constexpr StringRef views[] = {"_unsafe_view", "flatten", "reshape", "view"};
  static const std::pair<StringRef, Handler> others[] = {
      {"sum", &LargestElements::sum},       {"softmax", &LargestElements::softmax},
      {"gather", &LargestElements::gather}, {"scatter", &LargestElements::scatter},
      {"histc", &LargestElements::count},   {"torch.expert_rows", &LargestElements::rows}};
  AtenArguments arguments(op);
  StringRef name = arguments.name();
  Handler handler = llvm::is_contained(elementwiseNames, name) ? &LargestElements::elementwise
                    : llvm::is_contained(views, name)          ? &LargestElements::view
                                                               : nullptr;
  for (auto [other, its] : others)
    if (name == other)
      handler = its;
  size_t errors = conversion.log.errors.size();
  if ((handler && (this->*handler)(arguments)) || conversion.log.errors.size() != errors)
    return;
  fail(op,
       "takes the result of torch.topk, whose elements dtc knows, but not their order; weigh "
       "them, divide them by their sum, add them up or put them back by scatter, and give them to "
       "dtc.torch.experts()");
}

void LargestElements::run() {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    builder.setInsertionPoint(&op);
    loc = op.getLoc();
    if (op.getName().getStringRef() == "aten.topk" && !find(AtenArguments(&op).operand("self"))) {
      begin(&op);
      continue;
    }
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return find(operand); }))
      follow(&op);
    else if (op.getName().getStringRef() == "torch.expert_rows")
      fail(&op, "has experts that torch.topk did not choose; choose the experts of a token by the "
                "largest of their scores");
  }
}

void dtc::torch::recognizeTopK(Block &block, Conversion &conversion) {
  LargestElements(block, conversion).run();
}
