//===- AbsorbReshapes.cpp - Reshapes of weights in place of values --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// PyTorch splits what a linear layer gives into heads, or into queries, keys and values. The
// weights are split here instead: a reshape of a parameter costs nothing, heads are a dimension
// that can be sharded, and the parts come out of their products dense. A product of rows [B * S, D]
// becomes one of [B, S, D], so that samples stay a dimension.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"
#include "compiler/import/torch/Weights.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

std::optional<Split> dtc::torch::findSplit(ArrayRef<int64_t> merged, ArrayRef<int64_t> split) {
  if (split.size() <= merged.size() || merged.empty())
    return std::nullopt;
  size_t dim = 0;
  while (dim < merged.size() && merged[dim] == split[dim])
    ++dim;
  size_t after = merged.size() - dim;
  if (after == 0)
    return std::nullopt;
  --after; // the dimensions after the one that is split
  size_t count = split.size() - after - dim;
  int64_t product = 1;
  for (int64_t size : split.slice(dim, count))
    product *= size;
  if (product != merged[dim] || merged.take_back(after) != split.take_back(after))
    return std::nullopt;
  return Split{int64_t(dim), int64_t(count)};
}

/// How many dimensions of a shape each dimension of another one merges, if the reshape does nothing
/// but merge.
static std::optional<SmallVector<int64_t>> findMerges(ArrayRef<int64_t> merged,
                                                      ArrayRef<int64_t> split) {
  SmallVector<int64_t> counts;
  size_t next = 0;
  for (int64_t size : merged) {
    int64_t product = 1, count = 0;
    while (next < split.size() && (count == 0 || product < size)) {
      product *= split[next++];
      ++count;
    }
    if (product != size || count == 0)
      return std::nullopt;
    counts.push_back(count);
  }
  if (next != split.size() || split.size() == merged.size())
    return std::nullopt;
  return counts;
}

SmallVector<int64_t> dtc::torch::replaced(ArrayRef<int64_t> shape, int64_t dim,
                                          ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> result(shape.take_front(dim));
  llvm::append_range(result, sizes);
  llvm::append_range(result, shape.drop_front(dim + 1));
  return result;
}

/// Letters that an equation does not have; empty if there are too few.
static std::string freshLetters(StringRef equation, int64_t count) {
  std::string fresh;
  for (char letter = 'a'; letter <= 'z' && int64_t(fresh.size()) < count; ++letter)
    if (!equation.contains(letter))
      fresh += letter;
  return int64_t(fresh.size()) == count ? fresh : std::string();
}

/// The equation with a letter replaced by several.
static std::string withLetters(StringRef equation, char letter, StringRef fresh) {
  std::string result;
  for (char each : equation)
    result += each == letter ? fresh.str() : std::string(1, each);
  return result;
}

static Value reshapeTo(OpBuilder &builder, Location loc, Value x, ArrayRef<int64_t> shape) {
  if (shapeOf(x) == shape)
    return x;
  return ReshapeOp::create(builder, loc, x, shape);
}

std::optional<int64_t> dtc::torch::slicedDim(SliceOp slice) {
  std::optional<int64_t> found;
  for (auto [dim, size] : llvm::enumerate(shapeOf(slice.getOperand())))
    if (slice.getSizes()[dim] != size) {
      if (found)
        return std::nullopt;
      found = int64_t(dim);
    }
  return found;
}

static bool onlySlices(Value value) {
  return llvm::all_of(value.getUsers(), llvm::IsaPred<SliceOp>);
}

/// The broadcast weight among the operands of a sum, and the other operand.
static std::optional<std::pair<BroadcastOp, Value>> biasOf(AddOp add) {
  for (auto [x, bias] :
       {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
    if (auto broadcast = bias.getDefiningOp<BroadcastOp>();
        broadcast && isWeight(broadcast.getOperand()))
      return std::pair(broadcast, Value(x));
  return std::nullopt;
}

namespace {

/// reshape(einsum(x, w)) that splits a dimension of w: einsum(x, reshape(w)).
struct SplitProduct : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto einsum = op.getOperand().getDefiningOp<EinsumOp>();
    if (!einsum || !einsum->hasOneUse() || !isWeight(einsum.getRhs()))
      return failure();
    ArrayRef<int64_t> shape = op.getType().getShape();
    std::optional<Split> split = findSplit(shapeOf(einsum.getResult()), shape);
    if (!split)
      return failure();
    Terms terms(einsum);
    char letter = terms.result[size_t(split->dim)];
    size_t place = terms.rhs.find(letter);
    std::string fresh = freshLetters(einsum.getEquation(), split->count);
    if (terms.lhs.contains(letter) || place == StringRef::npos || fresh.empty())
      return failure();
    Value weight = reshapeTo(
        rewriter, einsum.getLoc(), einsum.getRhs(),
        replaced(shapeOf(einsum.getRhs()), int64_t(place), shape.slice(split->dim, split->count)));
    rewriter.replaceOpWithNewOp<EinsumOp>(op, einsum.getLhs(), weight,
                                          withLetters(einsum.getEquation(), letter, fresh));
    return success();
  }
};

/// reshape(x + bias) that splits a dimension of the bias: reshape(x) + reshape(bias).
struct SplitSum : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto add = op.getOperand().getDefiningOp<AddOp>();
    auto bias = add && add->hasOneUse() ? biasOf(add) : std::nullopt;
    if (!bias || !bias->second.getDefiningOp<EinsumOp>())
      return failure();
    ArrayRef<int64_t> shape = op.getType().getShape();
    std::optional<Split> split = findSplit(shapeOf(add.getResult()), shape);
    ArrayRef<int64_t> dims = bias->first.getDims();
    if (!split || !llvm::is_contained(dims, split->dim))
      return failure();
    SmallVector<int64_t> newDims;
    for (int64_t dim : dims) {
      int64_t count = dim == split->dim ? split->count : 1;
      for (int64_t i = 0; i < count; ++i)
        newDims.push_back(dim + i + (dim > split->dim ? split->count - 1 : 0));
    }
    Value narrow = bias->first.getOperand();
    int64_t place = llvm::find(dims, split->dim) - dims.begin();
    narrow = reshapeTo(rewriter, add.getLoc(), narrow,
                       replaced(shapeOf(narrow), place, shape.slice(split->dim, split->count)));
    Value wide = BroadcastOp::create(rewriter, add.getLoc(), op.getType(), narrow, newDims);
    Value x = reshapeTo(rewriter, add.getLoc(), bias->second, shape);
    Value sum = AddOp::create(rewriter, add.getLoc(), x, wide);
    rewriter.replaceOp(op, sum);
    return success();
  }
};

/// einsum(reshape(x), w) that merges dimensions: those over which it sums are split in w, too; rows
/// are merged in the result instead.
struct MergeIntoProduct : OpRewritePattern<EinsumOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(EinsumOp op, PatternRewriter &rewriter) const override {
    auto reshape = op.getLhs().getDefiningOp<ReshapeOp>();
    if (!reshape || !isWeight(op.getRhs()))
      return failure();
    ArrayRef<int64_t> shape = shapeOf(reshape.getOperand());
    std::optional<SmallVector<int64_t>> counts = findMerges(shapeOf(op.getLhs()), shape);
    if (!counts)
      return failure();
    Terms terms(op);
    std::string equation = op.getEquation().str();
    SmallVector<int64_t> weight(shapeOf(op.getRhs()));
    std::string rhs = terms.rhs.str(); // as far as it has been split
    int64_t begin = 0;
    for (auto [letter, count] : llvm::zip(terms.lhs, *counts)) {
      ArrayRef<int64_t> sizes = shape.slice(begin, count);
      begin += count;
      if (count == 1)
        continue;
      std::string fresh = freshLetters(equation, count);
      size_t place = rhs.find(letter);
      bool isSum = !terms.result.contains(letter), isRow = place == std::string::npos;
      if (fresh.empty() || isSum == isRow)
        return failure();
      if (isSum) {
        weight = replaced(weight, int64_t(place), sizes);
        rhs = withLetters(rhs, letter, fresh);
      }
      equation = withLetters(equation, letter, fresh);
    }
    Value split = reshapeTo(rewriter, op.getLoc(), op.getRhs(), weight);
    Value wide = EinsumOp::create(rewriter, op.getLoc(), reshape.getOperand(), split, equation);
    rewriter.replaceOp(op, reshapeTo(rewriter, op.getLoc(), wide, op.getType().getShape()));
    return success();
  }
};

/// The einsum with a weight that a value is, or that it is but for a bias.
static EinsumOp productOf(Value value) {
  if (auto add = value.getDefiningOp<AddOp>())
    if (auto bias = biasOf(add))
      value = bias->second;
  auto einsum = value.getDefiningOp<EinsumOp>();
  return einsum && isWeight(einsum.getRhs()) ? einsum : EinsumOp();
}

/// Whether a weight is a part of a parameter.
static bool isPart(Value weight) {
  for (Operation *op = weight.getDefiningOp(); op; op = op->getOperand(0).getDefiningOp())
    if (isa<SliceOp>(op))
      return true;
  return false;
}

/// Whether the slices are three parts of the same size of one dimension: queries, keys and values.
static bool areThirds(ArrayRef<SliceOp> slices, ArrayRef<int64_t> whole) {
  std::optional<int64_t> dim = slices.size() == 3 ? slicedDim(slices[0]) : std::nullopt;
  if (!dim || whole[*dim] % 3 != 0)
    return false;
  llvm::SmallDenseSet<int64_t> begins;
  for (SliceOp slice : slices)
    if (slicedDim(slice) == dim && slice.getSizes()[*dim] == whole[*dim] / 3)
      begins.insert(slice.getOffsets()[*dim]);
  return begins.size() == 3;
}

/// slice(transpose(x)), if only slices use the transpose: transpose(slice(x)). A product is sliced
/// into queries, keys and values alone: more parts would be products of their own.
struct SliceTranspose : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    if (op->use_empty() || !onlySlices(op.getResult()))
      return failure();
    SmallVector<SliceOp> slices;
    for (Operation *user : op->getUsers())
      slices.push_back(cast<SliceOp>(user));
    EinsumOp product = productOf(op.getOperand());
    if (product && !isPart(product.getRhs()) && !areThirds(slices, op.getType().getShape()))
      return failure();
    for (SliceOp slice : slices) {
      SmallVector<int64_t> offsets(slice.getOffsets().size()), sizes(offsets.size());
      for (auto [to, from] : llvm::enumerate(op.getPermutation())) {
        offsets[from] = slice.getOffsets()[to];
        sizes[from] = slice.getSizes()[to];
      }
      rewriter.setInsertionPoint(slice);
      Value part = SliceOp::create(rewriter, slice.getLoc(), op.getOperand(), offsets, sizes);
      rewriter.replaceOpWithNewOp<TransposeOp>(slice, part, op.getPermutation());
    }
    return success();
  }
};

/// norm(transpose(x)) of the rows of x: transpose(norm(x)), which meets the transpose of attention.
template <typename Norm> struct NormOfTranspose : OpRewritePattern<Norm> {
  using OpRewritePattern<Norm>::OpRewritePattern;
  LogicalResult matchAndRewrite(Norm op, PatternRewriter &rewriter) const override {
    auto transpose = op.getOperation()->getOperand(0).template getDefiningOp<TransposeOp>();
    bool isUsedAlone = llvm::all_of(op->getResults().drop_front(),
                                    [](Value statistic) { return statistic.use_empty(); });
    if (!transpose || !transpose->hasOneUse() || !isUsedAlone ||
        transpose.getPermutation().back() != int64_t(transpose.getPermutation().size()) - 1)
      return failure();
    SmallVector<Value> operands(op->getOperands());
    operands[0] = transpose.getOperand();
    auto norm = Norm::create(rewriter, op.getLoc(), operands, op->getAttrs());
    Value result =
        TransposeOp::create(rewriter, op.getLoc(), norm->getResult(0), transpose.getPermutation());
    rewriter.replaceAllUsesWith(op->getResult(0), result);
    rewriter.eraseOp(op);
    return success();
  }
};

/// concat(transpose(x), transpose(y)...) by one permutation: transpose(concat(x, y...)).
struct ConcatTransposes : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    SmallVector<Value> inputs;
    ArrayRef<int64_t> permutation;
    for (Value input : op.getInputs()) {
      auto transpose = input.getDefiningOp<TransposeOp>();
      if (!transpose || !transpose->hasOneUse() ||
          (!inputs.empty() && transpose.getPermutation() != permutation))
        return failure();
      permutation = transpose.getPermutation();
      inputs.push_back(transpose.getOperand());
    }
    Value joined =
        ConcatOp::create(rewriter, op.getLoc(), inputs, permutation[size_t(op.getDim())]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, joined, permutation);
    return success();
  }
};

/// concat(rotary(slice(x)), slice(x)) of the first elements of each head and of the rest:
/// rotary(x), which leaves the rest as it is.
struct RotaryOfPart : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    int64_t last = op.getType().getRank() - 1;
    auto rotary = op.getInputs().front().getDefiningOp<RotaryOp>();
    auto rest = op.getInputs().back().getDefiningOp<SliceOp>();
    auto part = rotary ? rotary->getOperand(0).getDefiningOp<SliceOp>() : SliceOp();
    if (op.getInputs().size() != 2 || int64_t(op.getDim()) != last || !part || !rest ||
        rotary->getNumOperands() != 1 || !rotary.getFrequencies() ||
        part.getOperand() != rest.getOperand() || slicedDim(part) != last ||
        slicedDim(rest) != last || part.getOperand().getType() != op.getType())
      return failure();
    int64_t size = part.getSizes()[last];
    if (part.getOffsets()[last] != 0 || rest.getOffsets()[last] != size ||
        2 * int64_t(rotary.getFrequencies()->size()) != size || shapeOf(op.getResult())[last] % 2)
      return failure();
    rewriter.replaceOpWithNewOp<RotaryOp>(op, TypeRange{op.getType()},
                                          ValueRange{part.getOperand()}, rotary->getAttrs());
    return success();
  }
};

/// slice(x + bias) of a sum that is used in slices alone: slice(x) + slice(bias).
struct SliceSum : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    auto add = op.getOperand().getDefiningOp<AddOp>();
    std::optional<int64_t> dim = slicedDim(op);
    auto bias = add && dim && onlySlices(add.getResult()) ? biasOf(add) : std::nullopt;
    EinsumOp product = bias ? bias->second.getDefiningOp<EinsumOp>() : EinsumOp();
    if (!product || isPart(product.getRhs()) || !llvm::is_contained(bias->first.getDims(), *dim))
      return failure();
    Value narrow = bias->first.getOperand();
    SmallVector<int64_t> offsets(shapeOf(narrow).size(), 0), sizes(shapeOf(narrow));
    int64_t place = llvm::find(bias->first.getDims(), *dim) - bias->first.getDims().begin();
    offsets[place] = op.getOffsets()[*dim];
    sizes[place] = op.getSizes()[*dim];
    Value part = SliceOp::create(rewriter, add.getLoc(), narrow, offsets, sizes);
    Value wide =
        BroadcastOp::create(rewriter, add.getLoc(), op.getType(), part, bias->first.getDims());
    Value x = SliceOp::create(rewriter, add.getLoc(), bias->second, op.getOffsets(), op.getSizes());
    rewriter.replaceOpWithNewOp<AddOp>(op, x, wide);
    return success();
  }
};

/// slice(einsum(x, w)) of a product that is used in slices alone: einsum(x, slice(w)).
struct SliceProduct : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    auto einsum = op.getOperand().getDefiningOp<EinsumOp>();
    std::optional<int64_t> dim = slicedDim(op);
    if (!einsum || !dim || !isWeight(einsum.getRhs()) || isPart(einsum.getRhs()) ||
        !onlySlices(einsum.getResult()))
      return failure();
    Terms terms(einsum);
    char letter = terms.result[size_t(*dim)];
    size_t place = terms.rhs.find(letter);
    if (terms.lhs.contains(letter) || place == StringRef::npos)
      return failure();
    Value weight = einsum.getRhs();
    SmallVector<int64_t> offsets(shapeOf(weight).size(), 0), sizes(shapeOf(weight));
    offsets[place] = op.getOffsets()[*dim];
    sizes[place] = op.getSizes()[*dim];
    Value part = SliceOp::create(rewriter, einsum.getLoc(), weight, offsets, sizes);
    rewriter.replaceOpWithNewOp<EinsumOp>(op, einsum.getLhs(), part, einsum.getEquation());
    return success();
  }
};

} // namespace

void dtc::torch::absorbReshapes(func::FuncOp function, Conversion &conversion) {
  spreadRequests(function, conversion);
  MLIRContext *context = function.getContext();
  RewritePatternSet patterns(context);
  patterns.add<SplitProduct, SplitSum, MergeIntoProduct, SliceSum, SliceProduct, SliceTranspose,
               NormOfTranspose<RmsNormOp>, NormOfTranspose<LayerNormOp>, ConcatTransposes,
               RotaryOfPart>(context);
  addKeepSamples(patterns);
  // If the rewriting reaches no end, the function stays as it is then: all states are the same
  // model.
  NameKeeper keeper(conversion);
  (void)applyPatternsGreedily(function, std::move(patterns),
                              GreedyRewriteConfig().setUseTopDownTraversal().setListener(&keeper));
  splitParameters(function);
}
