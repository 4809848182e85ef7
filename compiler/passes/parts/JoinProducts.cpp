//===- JoinProducts.cpp - Products with the parts of one weight -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/DeadOps.h"
#include "compiler/passes/parts/PartsPasses.h"

#include "support/EinsumEquation.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

#include <optional>
#include <tuple>

namespace dtc {
#define GEN_PASS_DEF_JOINPRODUCTSPASS
#include "compiler/passes/PartsPasses.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// Part `index` of dimension `dim` of a tensor, without that dimension.
struct Part {
  Value whole;
  int64_t dim = 0, index = 0;
};

/// The addition of a part of a bias to a product.
struct AddedPart {
  AddOp add;
  Part bias;
  BroadcastOp broadcast;
};

/// A product of a tensor with a part of a weight.
struct PartProduct {
  EinsumOp einsum;
  Part weight;
  std::optional<AddedPart> added;
};

/// By the tensor, the weight, its dimension, the equation and which operand is the weight.
using ProductKey = std::tuple<Value, Value, int64_t, StringAttr, unsigned>;

} // namespace

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Whether something is said of the op that a joint one would not say.
static bool hasAttributes(Operation *op) { return !op->getDiscardableAttrs().empty(); }

/// The part that a value is, if it is a slice of one element of a dimension, reshaped to the other
/// dimensions.
static std::optional<Part> partOf(Value value) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  auto slice = reshape ? reshape.getOperand().getDefiningOp<SliceOp>() : SliceOp();
  if (!slice || hasAttributes(reshape) || hasAttributes(slice))
    return std::nullopt;
  ArrayRef<int64_t> whole = shapeOf(slice.getOperand()), part = slice.getSizes();
  std::optional<int64_t> dim;
  for (int64_t d = 0; d < int64_t(whole.size()); ++d) {
    if (part[d] == whole[d])
      continue;
    if (dim || part[d] != 1)
      return std::nullopt;
    dim = d;
  }
  if (!dim)
    return std::nullopt;
  SmallVector<int64_t> rest(part);
  rest.erase(rest.begin() + *dim);
  if (shapeOf(reshape) != ArrayRef(rest))
    return std::nullopt;
  return Part{slice.getOperand(), *dim, slice.getOffsets()[*dim]};
}

/// The addition of a part of a bias that is the only use of a product.
static std::optional<AddedPart> addedTo(EinsumOp einsum) {
  if (!einsum->hasOneUse())
    return std::nullopt;
  OpOperand &use = *einsum->use_begin();
  auto add = dyn_cast<AddOp>(use.getOwner());
  if (!add || hasAttributes(add))
    return std::nullopt;
  auto broadcast = add->getOperand(1 - use.getOperandNumber()).getDefiningOp<BroadcastOp>();
  if (!broadcast || hasAttributes(broadcast))
    return std::nullopt;
  std::optional<Part> bias = partOf(broadcast.getOperand());
  if (!bias)
    return std::nullopt;
  return AddedPart{add, *bias, broadcast};
}

/// The equation of the joint product, and the dimension of its result that tells the parts apart;
/// none if the result would not have each part in one range of its rows.
static std::optional<std::pair<std::string, int64_t>> joinedEquation(StringRef text,
                                                                     unsigned weight, int64_t dim) {
  EinsumEquation equation = *EinsumEquation::parse(text);
  std::string &term = equation.terms[weight], &result = equation.terms[2];
  std::string all = equation.str();
  char letter = 'a';
  while (letter <= 'z' && all.find(letter) != std::string::npos)
    ++letter;
  size_t first = result.size();
  for (size_t d = 0; d < term.size(); ++d) {
    size_t at = result.find(term[d]);
    if (at == std::string::npos)
      continue;
    // A dimension of a batch has the parts apart, and so has one before them.
    if (int64_t(d) < dim || equation.terms[1 - weight].find(term[d]) != std::string::npos)
      return std::nullopt;
    first = std::min(first, at);
  }
  if (letter > 'z')
    return std::nullopt;
  term.insert(term.begin() + dim, letter);
  result.insert(result.begin() + int64_t(first), letter);
  return std::pair(equation.str(), int64_t(first));
}

/// The dimensions of the joint result along which the whole bias lies; none if there is no common
/// bias.
static std::optional<SmallVector<int64_t>> biasDims(MutableArrayRef<PartProduct> products,
                                                    int64_t resultDim) {
  for (PartProduct &product : products) {
    if (!product.added || !products.front().added)
      return std::nullopt;
    AddedPart &added = *product.added, &first = *products.front().added;
    if (added.bias.whole != first.bias.whole || added.bias.dim != first.bias.dim ||
        added.bias.index != product.weight.index ||
        added.broadcast.getDims() != first.broadcast.getDims())
      return std::nullopt;
  }
  AddedPart &first = *products.front().added;
  if (shapeOf(first.bias.whole)[first.bias.dim] != int64_t(products.size()))
    return std::nullopt;
  Operation *maker = first.bias.whole.getDefiningOp();
  if (maker && !maker->isBeforeInBlock(products.front().einsum))
    return std::nullopt;
  SmallVector<int64_t> dims;
  for (int64_t dim : first.broadcast.getDims())
    dims.push_back(dim < resultDim ? dim : dim + 1);
  dims.insert(dims.begin() + first.bias.dim, resultDim);
  if (!llvm::is_sorted(dims))
    return std::nullopt;
  return dims;
}

/// Replaces products with all parts of a weight, in the order of the text, where that is possible.
static bool join(MutableArrayRef<PartProduct> products, unsigned weight) {
  EinsumOp first = products.front().einsum;
  auto joined = joinedEquation(first.getEquation(), weight, products.front().weight.dim);
  if (!joined)
    return false;
  auto [equation, dim] = *joined;
  OpBuilder builder(first);
  Location loc = first.getLoc();
  SmallVector<Value> operands(first->getOperands());
  operands[weight] = products.front().weight.whole;
  Value all = EinsumOp::create(builder, loc, operands[0], operands[1], equation);
  std::optional<SmallVector<int64_t>> dims = biasDims(products, dim);
  if (dims) {
    Value bias = BroadcastOp::create(builder, loc, cast<RankedTensorType>(all.getType()),
                                     products.front().added->bias.whole, *dims);
    all = AddOp::create(builder, loc, all, bias);
  }
  // The gradients of slices, padded, are added in the reverse order. A sum of two that touch is a
  // concatenation, and another one stays a sum.
  llvm::sort(products, [](const PartProduct &a, const PartProduct &b) {
    return a.weight.index < b.weight.index;
  });
  for (PartProduct &product : products) {
    Operation *replaced = dims ? product.added->add.getOperation() : product.einsum.getOperation();
    SmallVector<int64_t> offsets(shapeOf(all).size(), 0), sizes(shapeOf(all));
    offsets[dim] = product.weight.index;
    sizes[dim] = 1;
    Value part = SliceOp::create(builder, loc, all, offsets, sizes);
    part = ReshapeOp::create(builder, loc, replaced->getResult(0).getType(), part);
    replaced->getResult(0).replaceAllUsesWith(part);
  }
  return true;
}

namespace {
struct JoinProductsPass : dtc::impl::JoinProductsPassBase<JoinProductsPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Block &block : function.getBody())
        runOnBlock(block);
  }

  static void runOnBlock(Block &block) {
    llvm::MapVector<ProductKey, SmallVector<PartProduct>> groups;
    for (auto einsum : block.getOps<EinsumOp>()) {
      if (hasAttributes(einsum) || einsum.getWide())
        continue;
      for (unsigned weight : {0u, 1u})
        if (std::optional<Part> part = partOf(einsum->getOperand(weight)))
          groups[{einsum->getOperand(1 - weight), part->whole, part->dim, einsum.getEquationAttr(),
                  weight}]
              .push_back({einsum, *part, addedTo(einsum)});
    }
    bool isChanged = false;
    for (auto &[key, products] : groups) {
      int64_t parts = shapeOf(std::get<1>(key))[std::get<2>(key)];
      SmallVector<bool> isThere(parts, false);
      for (const PartProduct &product : products)
        isThere[product.weight.index] = true;
      if (int64_t(products.size()) != parts || llvm::is_contained(isThere, false))
        continue;
      isChanged |= join(products, std::get<4>(key));
    }
    if (isChanged)
      eraseDeadOps(block);
  }
};
} // namespace
