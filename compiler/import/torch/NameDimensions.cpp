//===- NameDimensions.cpp - Logical axes of a captured model --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The names are those of docs/model-ir.md. Heads follow from attention, the vocabulary from lookups
// of tokens and from the cross entropy, and the width of an MLP from what one product gives and
// another one sums over. The names are put on weights; the compiler follows them from there.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ExpertRows.h"
#include "compiler/import/torch/AtenOp.h"
#include "compiler/import/torch/Weights.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

namespace {

class Namer {
public:
  explicit Namer(func::FuncOp function) : function(function) {}

  void run();

private:
  using Place = std::pair<Value, int64_t>;

  void nameWeight(Value weight, int64_t dim, StringRef name);
  void nameProducers(Value value, int64_t dim, StringRef name);
  void nameProducer(Value value, int64_t dim, StringRef name, SmallVectorImpl<Place> &inputs);
  bool collectConsumers(Value value, int64_t dim, SmallVectorImpl<Place> &weights, int depth);
  void nameConsumers(Value value, int64_t dim, StringRef name);
  void nameAttention(AttentionOp op);
  void nameInner(const WeightProduct &product);
  void nameRouting(NonzeroOp op);
  void initialize();

  func::FuncOp function;
  llvm::DenseSet<Place> visited;
};

} // namespace

/// Whether the op computes its elements from those at the same place of operands of its type.
static bool keepsDims(Operation *op) {
  return isa<AddOp, SubOp, MulOp, DivOp, MaximumOp, MinimumOp, SelectOp, NegOp, AbsOp, ExpOp, LogOp,
             SqrtOp, RsqrtOp, TanhOp, SigmoidOp, SoftplusOp, ReluOp, SiluOp, GeluOp, ConvertOp,
             DropoutOp, RotaryOp, CompareOp>(op);
}

/// Whether the op works on rows of the last dimension and keeps the others.
static bool isNorm(Operation *op) { return isa<RmsNormOp, LayerNormOp, SoftmaxOp>(op); }

/// Names a dimension of a parameter, or of the reshape that gives it the shape of all its uses. A
/// slice has the dimensions of its operand, and a reshape after it may leave out the one that is
/// sliced.
void Namer::nameWeight(Value weight, int64_t dim, StringRef name) {
  StringRef axes = DtcDialect::kAxesAttrName;
  size_t rank = shapeOf(weight).size();
  if (auto argument = dyn_cast<BlockArgument>(weight)) {
    unsigned index = argument.getArgNumber();
    if (function.getArgAttr(index, DtcDialect::kParamAttrName))
      function.setArgAttr(index, axes,
                          withName(function.getArgAttrOfType<ArrayAttr>(index, axes), rank, dim,
                                   name, function.getContext()));
    return;
  }
  if (auto slice = weight.getDefiningOp<SliceOp>()) {
    if (slice.getSizes()[dim] == shapeOf(slice.getOperand())[dim])
      nameWeight(slice.getOperand(), dim, name);
    return;
  }
  auto reshape = weight.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return;
  if (!isa<BlockArgument>(reshape.getOperand())) {
    ArrayRef<int64_t> source = shapeOf(reshape.getOperand()), target = shapeOf(weight);
    auto one = llvm::find(source, 1);
    int64_t removed = one - source.begin();
    if (source.size() == target.size() + 1 && one != source.end())
      nameWeight(reshape.getOperand(), dim + (dim >= removed ? 1 : 0), name);
    return;
  }
  reshape->setDiscardableAttr(axes, withName(reshape->getAttrOfType<ArrayAttr>(axes), rank, dim,
                                             name, function.getContext()));
}

/// Names the dimension in the weights that a value is made from. Without recursion: captures may be
/// of any depth.
void Namer::nameProducers(Value value, int64_t dim, StringRef name) {
  SmallVector<Place> pending;
  pending.push_back({value, dim});
  while (!pending.empty()) {
    Place place = pending.pop_back_val();
    if (!visited.insert(place).second)
      continue;
    SmallVector<Place> inputs;
    nameProducer(place.first, place.second, name, inputs);
    pending.append(inputs.rbegin(), inputs.rend());
  }
}

/// Names the dimension of one value, and adds to `inputs` the values that are named next.
void Namer::nameProducer(Value value, int64_t dim, StringRef name, SmallVectorImpl<Place> &inputs) {
  if (isWeight(value))
    return nameWeight(value, dim, name);
  Operation *op = value.getDefiningOp();
  if (!op)
    return;
  int64_t rank = shapeOf(value).size();
  if (keepsDims(op)) {
    for (Value operand : op->getOperands())
      if (auto type = dyn_cast<RankedTensorType>(operand.getType());
          type && type.getShape() == shapeOf(value))
        inputs.push_back({operand, dim});
  } else if (isNorm(op)) {
    if (dim != rank - 1)
      inputs.push_back({op->getOperand(0), dim});
  } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
    inputs.push_back({transpose.getOperand(), transpose.getPermutation()[dim]});
  } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    ArrayRef<int64_t> dims = broadcast.getDims();
    if (llvm::is_contained(dims, dim))
      inputs.push_back({broadcast.getOperand(), llvm::find(dims, dim) - dims.begin()});
  } else if (isa<SliceOp, PadOp>(op)) {
    if (shapeOf(op->getOperand(0))[dim] == shapeOf(value)[dim])
      inputs.push_back({op->getOperand(0), dim});
  } else if (auto concat = dyn_cast<ConcatOp>(op)) {
    if (int64_t(concat.getDim()) != dim)
      for (Value input : concat.getInputs())
        inputs.push_back({input, dim});
  } else if (auto grouped = WeightProduct::of(op); grouped && isa<GroupedProductOp>(op)) {
    if (size_t place = grouped->terms.rhs.find(grouped->terms.result[size_t(dim)]);
        place != StringRef::npos)
      inputs.push_back({grouped->weight, int64_t(place)});
  } else if (auto einsum = dyn_cast<EinsumOp>(op)) {
    Terms terms(einsum);
    char letter = terms.result[size_t(dim)];
    for (auto [term, operand] :
         {std::pair(terms.lhs, einsum.getLhs()), std::pair(terms.rhs, einsum.getRhs())})
      if (size_t place = term.find(letter); place != StringRef::npos)
        inputs.push_back({operand, int64_t(place)});
  }
}

/// The weights with which products sum over the dimension; false if it is used otherwise.
bool Namer::collectConsumers(Value value, int64_t dim, SmallVectorImpl<Place> &weights, int depth) {
  // MLPs are short; a longer chain is a residual stream.
  if (depth > 12)
    return false;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (keepsDims(user) && shapeOf(user->getResult(0)) == shapeOf(value)) {
      if (!collectConsumers(user->getResult(0), dim, weights, depth + 1))
        return false;
      continue;
    }
    if (isa<SliceOp, PadOp>(user) && shapeOf(user->getResult(0))[dim] == shapeOf(value)[dim]) {
      if (!collectConsumers(user->getResult(0), dim, weights, depth + 1))
        return false;
      continue;
    }
    std::optional<WeightProduct> product = WeightProduct::of(user);
    if (!product || use.getOperandNumber() != 0)
      return false;
    char letter = product->terms.lhs[size_t(dim)];
    size_t place = product->terms.rhs.find(letter);
    if (product->terms.result.contains(letter) || place == StringRef::npos)
      return false;
    weights.push_back({product->weight, int64_t(place)});
  }
  return true;
}

void Namer::nameConsumers(Value value, int64_t dim, StringRef name) {
  SmallVector<Place> weights;
  collectConsumers(value, dim, weights, 0);
  for (auto [weight, place] : weights)
    nameWeight(weight, place, name);
}

void Namer::nameAttention(AttentionOp op) {
  constexpr int64_t kHeadDim = 2;
  bool isGrouped = shapeOf(op.getQ())[kHeadDim] != shapeOf(op.getK())[kHeadDim];
  nameProducers(op.getQ(), kHeadDim, "heads");
  nameProducers(op.getK(), kHeadDim, isGrouped ? "kv_heads" : "heads");
  nameProducers(op.getV(), kHeadDim, isGrouped ? "kv_heads" : "heads");
  nameConsumers(op.getOut(), kHeadDim, "heads");
}

/// The name that a dimension of a weight has already.
static StringRef nameOf(func::FuncOp function, Value weight, int64_t dim) {
  ArrayAttr names;
  if (auto argument = dyn_cast<BlockArgument>(weight))
    names =
        function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), DtcDialect::kAxesAttrName);
  else
    names = weight.getDefiningOp()->getAttrOfType<ArrayAttr>(DtcDialect::kAxesAttrName);
  return names && size_t(dim) < names.size() ? cast<StringAttr>(names[dim]).getValue()
                                             : StringRef();
}

/// Names the dimension that a product with a weight gives and that only products with other weights
/// sum over.
void Namer::nameInner(const WeightProduct &product) {
  const Terms &terms = product.terms;
  Value weight = product.weight;
  SmallVector<size_t> given;
  for (auto [place, letter] : llvm::enumerate(terms.result))
    if (!terms.lhs.contains(letter))
      given.push_back(place);
  if (given.size() != 1)
    return;
  int64_t dim = int64_t(given[0]), place = int64_t(terms.rhs.find(terms.result[given[0]]));
  SmallVector<Place> consumers;
  if (!nameOf(function, weight, place).empty() ||
      !collectConsumers(product.result, dim, consumers, 0) || consumers.empty())
    return;
  // As in Megatron-LM, the first of two products in a row is split by its result, and the second by
  // its sum. The next layer has products of its own.
  for (size_t other = 0; other < shapeOf(weight).size(); ++other)
    if (nameOf(function, weight, int64_t(other)) == "mlp")
      return;
  nameProducers(product.result, dim, "mlp");
  for (auto [consumer, at] : consumers)
    nameWeight(consumer, at, "mlp");
}

/// The value that a tensor with a dimension of experts in front is a transpose of, and a reshape.
static Value beforeExperts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<TransposeOp, ReshapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The op among the producers of a value that makes scores of what a router gives, such as a
/// softmax.
static Operation *scoresOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<SoftmaxOp, SigmoidOp>(op))
      return op;
    if (!isa<AddOp, SelectOp, ConvertOp>(op))
      break;
    value = op->getOperand(isa<SelectOp>(op) ? 1 : 0);
  }
  return nullptr;
}

/// Says of what chooses the experts of tokens that it is where the tokens are, as dtc-import does
/// for configurations. What a router gives is converted to its own type, so that nothing is rounded
/// where a plan computes in 16 bits: a conversion is not narrowed.
void Namer::nameRouting(NonzeroOp op) {
  Value chosen = beforeExperts(op.getOperand());
  auto topK = chosen.getDefiningOp<TopKOp>();
  if (!topK || shapeOf(chosen).size() != 3)
    return;
  nameAsTokens(chosen);
  for (Operation *user : op->getUsers())
    if (auto lookup = dyn_cast<EmbeddingOp>(user); lookup && lookup.getIds() == op.getResult())
      if (Value weights = beforeExperts(lookup.getTable());
          weights.getDefiningOp() && weights.getType() == topK.getOperand().getType())
        nameAsTokens(weights);
  Operation *scores = scoresOf(topK.getOperand());
  if (!scores || scores->getResult(0).getType() != topK.getOperand().getType())
    return;
  nameAsTokens(scores->getResult(0));
  Value logits = scores->getOperand(0);
  if (logits.getDefiningOp<ConvertOp>())
    return;
  OpBuilder builder(scores);
  scores->setOperand(
      0, ConvertOp::create(builder, scores->getLoc(), logits, typeOf(logits).getElementType()));
}

/// Weights files have the values of parameters. These are where a run begins without one.
void Namer::initialize() {
  MLIRContext *context = function.getContext();
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (!function.getArgAttr(index, DtcDialect::kParamAttrName) ||
        function.getArgAttr(index, DtcDialect::kInitAttrName))
      continue;
    bool isScale = llvm::any_of(argument.getUses(), [](OpOperand &use) {
      return isa<RmsNormOp, LayerNormOp>(use.getOwner()) && use.getOperandNumber() == 1;
    });
    Attribute init = shapeOf(argument).size() >= 2 ? Attribute(NormalAttr::get(context, 0.02))
                     : isScale                     ? Attribute(OnesAttr::get(context))
                                                   : Attribute(ZerosAttr::get(context));
    function.setArgAttr(index, DtcDialect::kInitAttrName, init);
  }
}

void Namer::run() {
  function.walk([&](AttentionOp op) { nameAttention(op); });
  function.walk([&](EmbeddingOp op) {
    if (shapeOf(op.getTable()).size() == 2 && !op.getIds().getDefiningOp<ConstantOp>())
      nameProducers(op.getTable(), 0, "vocab");
  });
  function.walk([&](CrossEntropyOp op) {
    nameProducers(op.getLogits(), int64_t(shapeOf(op.getLogits()).size()) - 1, "vocab");
  });
  function.walk([&](GroupedProductOp op) {
    if (isWeight(op.getRhs()))
      nameWeight(op.getRhs(), 0, "experts");
  });
  function.walk([&](Operation *op) {
    if (auto product = WeightProduct::of(op))
      nameInner(*product);
  });
  function.walk([&](NonzeroOp op) { nameRouting(op); });
  initialize();
}

void dtc::torch::nameDimensions(func::FuncOp function) { Namer(function).run(); }
