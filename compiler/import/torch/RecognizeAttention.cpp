//===- RecognizeAttention.cpp - Attention by its parts --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Models write softmax(mask(cap(scale q k^T))) v in many ways: with matmul or einsum, dimensions in
// any order, samples and heads apart or as one dimension. Here the products are read as einsums, so
// that one form is left.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/Recognize.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

namespace {

/// A product of two tensors, with a letter for each dimension.
struct LetteredProduct {
  Value lhs, rhs;
  std::string left, right, result;

  void swap() {
    std::swap(lhs, rhs);
    std::swap(left, right);
  }
};

/// The parts that make the operand of a softmax.
struct ScoreParts {
  Value q, k;
  std::string queries, keys; ///< letters of the dimensions of q and k
  std::string order;         ///< letters of the scores, those of queries and keys last
  double scale = 1;
  std::optional<double> softcap;
  MaskForm mask;
};

/// Collects the parts of one softmax, and makes attention of them.
class AttentionParts {
public:
  AttentionParts(AtenArguments softmax, const ConstantMap &constants, MaskForms &forms)
      : softmax(softmax), constants(constants), forms(forms) {}

  /// Replaces the product of weights and values; false if the softmax is no part of attention.
  bool raise();

private:
  bool readScores(Value x);
  Value readScore(Value x);
  bool readMask(Value x, StringRef masked, StringRef mask, bool hides);
  bool readProduct(const LetteredProduct &product);
  Operation *readWeights(Value x);
  void noteShape(Value value);
  Value inOrder(OpBuilder &builder, Value value, StringRef letters, StringRef wanted, int64_t last);
  void build(Operation *op, const LetteredProduct &product, StringRef batch, StringRef features);

  AtenArguments softmax;
  const ConstantMap &constants;
  MaskForms &forms;

  ScoreParts scores;
  Value sinks;      ///< [heads], or null
  double outer = 1; ///< the product of factors after a mask, and before a cap
  bool isMasked = false;
  double dropout = 0;
  SmallVector<int64_t> batch; ///< samples and heads, as many dimensions as a value on the way has
  Location loc = softmax.op->getLoc();
};

} // namespace

/// Whether all letters are different, and in number the dimensions of the value.
static bool areDimensions(StringRef letters, Value value) {
  std::string sorted = letters.str();
  llvm::sort(sorted);
  return letters.size() == shapeOf(value).size() && llvm::all_of(sorted, llvm::isLower) &&
         llvm::unique(sorted) == sorted.end();
}

static std::optional<LetteredProduct> productOf(Operation *op) {
  AtenArguments arguments(op);
  StringRef name = op->getName().getStringRef();
  LetteredProduct product;
  if (name == "aten.einsum") {
    SmallVector<Value> tensors = arguments.list("tensors");
    auto [terms, result] = arguments.string("equation").split("->");
    auto [left, right] = terms.split(',');
    if (tensors.size() != 2 || !tensors[0] || !tensors[1])
      return std::nullopt;
    product = {tensors[0], tensors[1], left.str(), right.str(), result.str()};
  } else if (name == "aten.matmul" || name == "aten.bmm") {
    Value lhs = arguments.operand("self"), rhs = arguments.operand("other");
    rhs = rhs ? rhs : arguments.operand("mat2");
    if (!lhs || !rhs || shapeOf(lhs).size() < 3 || shapeOf(lhs).size() > 10 ||
        shapeOf(lhs).size() != shapeOf(rhs).size() ||
        shapeOf(lhs).drop_back(2) != shapeOf(rhs).drop_back(2))
      return std::nullopt;
    std::string leading = StringRef("abcdefgh").take_front(shapeOf(lhs).size() - 2).str();
    product = {lhs, rhs, leading + "xy", leading + "yz", leading + "xz"};
  } else {
    return std::nullopt;
  }
  if (!areDimensions(product.left, product.lhs) || !areDimensions(product.right, product.rhs) ||
      !areDimensions(product.result, op->getResult(0)))
    return std::nullopt;
  return product;
}

/// The operand of an op that neither changes elements nor the last two dimensions.
static Value beforeView(Operation *op) {
  static constexpr StringRef names[] = {
      "aten._to_copy", "aten._unsafe_view", "aten.alias",   "aten.clone",   "aten.contiguous",
      "aten.expand",   "aten.flatten",      "aten.reshape", "aten.squeeze", "aten.unflatten",
      "aten.to",       "aten.unsqueeze",    "aten.view"};
  Value x = llvm::is_contained(names, op->getName().getStringRef())
                ? AtenArguments(op).operand("self")
                : Value();
  if (!x || shapeOf(x).size() < 2)
    return {};
  RankedTensorType from = typeOf(x), to = typeOf(op->getResult(0));
  bool keeps = from.getElementType() == to.getElementType() && to.getRank() >= 2 &&
               from.getNumElements() == to.getNumElements() &&
               from.getShape().take_back(2) == to.getShape().take_back(2);
  return keeps ? x : Value();
}

void AttentionParts::noteShape(Value value) {
  ArrayRef<int64_t> leading = shapeOf(value).drop_back(2);
  if (leading.size() > batch.size())
    batch.assign(leading.begin(), leading.end());
}

/// A mask over scores that nothing was done to before.
bool AttentionParts::readMask(Value x, StringRef masked, StringRef mask, bool hides) {
  AtenArguments op(x.getDefiningOp());
  Value scoresBefore = op.operand(masked), known = op.operand(mask);
  if (isMasked || outer != 1 || scores.softcap || !scoresBefore || !known ||
      scoresBefore.getType() != x.getType())
    return false;
  ArrayRef<int64_t> shape = shapeOf(x);
  std::optional<MaskForm> form = forms.find(known, shape[shape.size() - 2], shape.back(), hides);
  if (!form)
    return false;
  isMasked = true;
  scores.mask = *form;
  return true;
}

/// The value that x is computed from, by one step; null if it is none of scores.
Value AttentionParts::readScore(Value x) {
  AtenArguments op(x.getDefiningOp());
  StringRef name = op.op->getName().getStringRef();
  auto hides = [&](StringRef fill) {
    std::optional<double> number = op.number(fill);
    number = number ? number : knownNumber(op.operand(fill), constants);
    return number && *number <= kHiddenAtMost;
  };
  if (Value before = beforeView(op.op))
    return before;
  if (auto factor = factorOf(x, constants)) {
    (scores.softcap ? scores.scale : outer) *= factor->second;
    return factor->first;
  }
  if (name == "aten.tanh" && !scores.softcap && outer > 0) {
    scores.softcap = outer;
    return op.operand("self");
  }
  if (name == "aten.add" && op.number("alpha").value_or(1) == 1)
    for (auto [masked, mask] : {std::pair("self", "other"), std::pair("other", "self")})
      if (op.operand(mask) && constants.contains(op.operand(mask)))
        return readMask(x, masked, mask, /*hides=*/false) ? op.operand(masked) : Value();
  if (name == "aten.masked_fill" && hides("value") && readMask(x, "self", "mask", /*hides=*/true))
    return op.operand("self");
  if (name == "aten.where" && hides("other") && readMask(x, "self", "condition", /*hides=*/false))
    return op.operand("self");
  if (name == "aten.where" && hides("self") && readMask(x, "other", "condition", /*hides=*/true))
    return op.operand("other");
  return {};
}

/// Scores [..., s, t] of queries with a dimension s and keys with t.
bool AttentionParts::readProduct(const LetteredProduct &given) {
  LetteredProduct product = given;
  char query = product.result[product.result.size() - 2], key = product.result.back();
  if (!StringRef(product.left).contains(query))
    product.swap();
  StringRef left = product.left, right = product.right, result = product.result;
  if (!left.contains(query) || right.contains(query) || !right.contains(key) || left.contains(key))
    return false;
  // All other dimensions are those of samples and heads, or are summed over.
  for (char letter : product.left + product.right)
    if (letter != query && letter != key && (!left.contains(letter) || !right.contains(letter)))
      return false;
  if (!llvm::all_of(result, [&](char letter) {
        return letter == query || letter == key || left.contains(letter);
      }))
    return false;
  scores.q = product.lhs;
  scores.k = product.rhs;
  scores.queries = product.left;
  scores.keys = product.right;
  scores.order = product.result;
  // Scores are capped as c tanh(scale q k / c).
  scores.scale = scores.softcap ? scores.scale * *scores.softcap : outer;
  return shapeOf(scores.q).size() > result.size() - 1;
}

bool AttentionParts::readScores(Value x) {
  Type type = typeOf(x).getElementType();
  while (x && x.getDefiningOp() && shapeOf(x).size() >= 2 && x.hasOneUse() &&
         typeOf(x).getElementType() == type) {
    noteShape(x);
    if (std::optional<LetteredProduct> product = productOf(x.getDefiningOp()))
      return readProduct(*product);
    x = readScore(x);
  }
  return false;
}

/// The op that multiplies the weights by values, after dropout.
Operation *AttentionParts::readWeights(Value x) {
  while (x.hasOneUse() && shapeOf(x).size() >= 2) {
    noteShape(x);
    Operation *user = *x.getUsers().begin();
    AtenArguments op(user);
    if (productOf(user))
      return user;
    if (op.name() == "dropout" && op.operand("input") == x && dropout == 0)
      dropout = op.flag("train") ? op.number("p").value_or(0.5) : 0;
    else if (user->getNumResults() != 1 || beforeView(user) != x)
      return nullptr;
    x = user->getResult(0);
  }
  return nullptr;
}

/// A view of x or an order of its dimensions, which one attribute says.
static Value createView(OpBuilder &builder, Location loc, StringRef name, Value x,
                        ArrayRef<int64_t> shape, StringRef attribute, ArrayRef<int64_t> value) {
  return createAten(builder, loc, name, x, {"self"}, typeOf(x).clone(shape),
                    builder.getNamedAttr(attribute, builder.getDenseI64ArrayAttr(value)));
}

static Value viewed(OpBuilder &builder, Location loc, Value x, ArrayRef<int64_t> shape) {
  if (shapeOf(x) == shape)
    return x;
  return createView(builder, loc, "aten.view", x, shape, "size", shape);
}

/// x with its dimensions, called by letters, in another order.
static Value permuted(OpBuilder &builder, Location loc, Value x, StringRef letters,
                      StringRef wanted) {
  if (letters == wanted)
    return x;
  SmallVector<int64_t> dims, shape;
  for (char letter : wanted) {
    dims.push_back(int64_t(letters.find(letter)));
    shape.push_back(shapeOf(x)[dims.back()]);
  }
  return createView(builder, loc, "aten.permute", x, shape, "dims", dims);
}

static int64_t sizeOf(ArrayRef<int64_t> shape) {
  int64_t size = 1;
  for (int64_t each : shape)
    size *= each;
  return size;
}

/// A value with its dimensions in the order wanted, those of samples and heads as in `batch`, then
/// one dimension, then the `last` ones as one.
Value AttentionParts::inOrder(OpBuilder &builder, Value value, StringRef letters, StringRef wanted,
                              int64_t last) {
  Value x = permuted(builder, loc, value, letters, wanted);
  SmallVector<int64_t> shape(batch);
  shape.push_back(shapeOf(x).drop_back(last).back());
  shape.push_back(sizeOf(shapeOf(x).take_back(last)));
  return viewed(builder, loc, x, shape);
}

/// Replaces the product op of weights, which are on its left, and values. The letters `samples` are
/// those of samples and heads, in the order of the weights, `features` those of values alone.
void AttentionParts::build(Operation *op, const LetteredProduct &product, StringRef samples,
                           StringRef features) {
  OpBuilder builder(op);
  loc = op->getLoc();
  std::string query(1, scores.order[scores.order.size() - 2]), key(1, scores.order.back());
  std::string leading = scores.order.substr(0, scores.order.size() - 2), summed;
  for (char letter : scores.queries)
    if (!StringRef(scores.order).contains(letter))
      summed += letter;
  if (batch.size() < 2)
    batch.resize(2, 1);
  Value q = inOrder(builder, scores.q, scores.queries, leading + query + summed, summed.size());
  Value k = inOrder(builder, scores.k, scores.keys, leading + key + summed, summed.size());
  StringRef weights = product.left;
  std::string row = weights.drop_back(1).take_back(1).str(), column = weights.take_back(1).str();
  Value v = inOrder(builder, product.rhs, product.right, samples.str() + column + features.str(),
                    features.size());
  SmallVector<int64_t> shape(shapeOf(q));
  shape.back() = shapeOf(v).back();
  OperationState state(loc, "aten.scaled_dot_product_attention");
  state.addOperands({q, k, v});
  state.addTypes(RankedTensorType::get(shape, typeOf(q).getElementType()));
  SmallVector<StringRef> names{"query", "key", "value"};
  if (sinks) {
    state.addOperands(sinks);
    names.push_back("sinks");
  }
  state.addAttribute("operands", builder.getStrArrayAttr(names));
  state.addAttribute("scale", builder.getF64FloatAttr(scores.scale));
  state.addAttribute("dropout_p", builder.getF64FloatAttr(dropout));
  state.addAttribute("is_causal", builder.getBoolAttr(scores.mask.causal));
  state.addAttribute("recognized", builder.getBoolAttr(true));
  if (scores.mask.window)
    state.addAttribute("window", builder.getI64IntegerAttr(*scores.mask.window));
  if (scores.softcap)
    state.addAttribute("softcap", builder.getF64FloatAttr(*scores.softcap));
  Value out = builder.create(state)->getResult(0);
  std::string order = samples.str() + row + features.str();
  SmallVector<int64_t> parts;
  for (char letter : order)
    parts.push_back(shapeOf(op->getResult(0))[int64_t(product.result.find(letter))]);
  out = permuted(builder, loc, viewed(builder, loc, out, parts), order, product.result);
  op->getResult(0).replaceAllUsesWith(out);
}

bool AttentionParts::raise() {
  Value x = softmax.operand("self"), weights = softmax.op->getResult(0);
  if (std::optional<SinkParts> parts = sinksOf(softmax)) {
    x = parts->scores;
    weights = parts->weights;
    sinks = parts->sinks;
  }
  int64_t rank = shapeOf(weights).size();
  if (!x || x.getType() != weights.getType() || rank < 2 || softmax.dim("dim", rank) != rank - 1 ||
      !torch::isFloat(x) || !readScores(x))
    return false;
  Operation *op = readWeights(weights);
  if (!op)
    return false;
  if (sinks && (batch.size() != 2 || batch[1] != shapeOf(sinks)[0] || scores.softcap))
    return false;
  LetteredProduct product = *productOf(op);
  Operation *last = weights.getDefiningOp();
  // The weights are the operand that the softmax leads to; neither of both if that is both.
  auto leadsHere = [&](Value value) {
    while (value.getDefiningOp() && value.getDefiningOp() != last) {
      AtenArguments step(value.getDefiningOp());
      value = step.name() == "dropout" ? step.operand("input") : beforeView(step.op);
      if (!value)
        return false;
    }
    return value.getDefiningOp() == last;
  };
  if (!leadsHere(product.lhs))
    product.swap();
  StringRef left = product.left, right = product.right, result = product.result;
  char row = left[left.size() - 2], column = left.back();
  if (right.contains(row) || !result.contains(row) || !right.contains(column) ||
      result.contains(column))
    return false;
  StringRef samples = left.drop_back(2);
  if (!llvm::all_of(samples,
                    [&](char letter) { return right.contains(letter) && result.contains(letter); }))
    return false;
  std::string features;
  for (char letter : right)
    if (!left.contains(letter)) {
      if (!result.contains(letter))
        return false;
      features += letter;
    }
  if (features.empty() || result.size() != samples.size() + 1 + features.size() ||
      typeOf(product.rhs).getElementType() != typeOf(weights).getElementType())
    return false;
  build(op, product, samples, features);
  return true;
}

void dtc::torch::recognizeAttention(Block &block, const ConstantMap &constants,
                                    Conversion &conversion) {
  MaskForms forms(constants);
  for (Operation &op : block.without_terminator())
    if (op.getName().getStringRef() == "aten.softmax" && !constants.contains(op.getResult(0)) &&
        AttentionParts(AtenArguments(&op), constants, forms).raise())
      conversion.raised("attention by its parts, now dtc.attention", op.getLoc());
}
