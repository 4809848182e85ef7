//===- KeepSamples.cpp - Samples as a dimension of a captured model -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Models merge samples and positions where they work on tokens, [B, S, D] as [B * S, D]. Here the
// merging reshape is moved after what works on rows, until one that splits the tokens again meets
// it. So samples stay a dimension, which devices and microbatches can split.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"
#include "compiler/import/torch/Weights.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

namespace {

/// A reshape whose first dimension merges the leading dimensions of its operand.
struct Merge {
  Operation *reshape;
  SmallVector<int64_t> leading;

  /// A shape of merged tokens with the dimensions that they are merged of.
  SmallVector<int64_t> widen(ArrayRef<int64_t> merged) const {
    SmallVector<int64_t> shape(leading);
    llvm::append_range(shape, merged.drop_front());
    return shape;
  }
  /// A dimension after that of the tokens in a wide shape.
  int64_t shift(int64_t dim) const { return dim + int64_t(leading.size()) - 1; }
  /// The value with its leading dimensions.
  Value wide(PatternRewriter &rewriter) const {
    Value source = reshape->getOperand(0);
    SmallVector<int64_t> shape = widen(shapeOf(reshape->getResult(0)));
    if (shapeOf(source) == ArrayRef(shape))
      return source;
    return ReshapeOp::create(rewriter, reshape->getLoc(), source, shape);
  }
};

} // namespace

/// Whether a value is a parameter, or a part of one.
static bool isOfParameter(Value value) {
  if (!isWeight(value))
    return false;
  while (Operation *op = value.getDefiningOp())
    value = op->getOperand(0);
  auto argument = cast<BlockArgument>(value);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function && function.getArgAttr(argument.getArgNumber(), DtcDialect::kParamAttrName);
}

static std::optional<Merge> findMerge(Value value) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  if (!reshape || shapeOf(value).empty() || isOfParameter(value))
    return std::nullopt;
  ArrayRef<int64_t> source = shapeOf(reshape.getOperand());
  int64_t tokens = shapeOf(value).front(), product = 1;
  size_t count = 0;
  while (count < source.size() && product < tokens)
    product *= source[count++];
  if (count < 2 || product != tokens)
    return std::nullopt;
  return Merge{reshape, SmallVector<int64_t>(source.take_front(count))};
}

/// Whether an op computes each element from those at its place.
static bool isElementwise(Operation *op) {
  return isa<AddOp, SubOp, MulOp, DivOp, MaximumOp, MinimumOp, SelectOp, CompareOp, ConvertOp,
             NegOp, AbsOp, ExpOp, LogOp, SqrtOp, RsqrtOp, TanhOp, SigmoidOp, SoftplusOp, ReluOp,
             SiluOp, GeluOp>(op);
}

/// Whether an operand of an op on rows is known in the wide shape: before its merge, as a constant,
/// or as a broadcast of what all rows share.
static bool canWiden(Value operand, const Merge &merge) {
  if (auto own = findMerge(operand))
    return own->leading == merge.leading;
  if (auto constant = operand.getDefiningOp<ConstantOp>())
    return constant.getValue().isSplat();
  auto broadcast = operand.getDefiningOp<BroadcastOp>();
  return broadcast && !llvm::is_contained(broadcast.getDims(), 0);
}

static Value widened(PatternRewriter &rewriter, Value operand, const Merge &merge) {
  if (auto own = findMerge(operand))
    return own->wide(rewriter);
  auto type = cast<RankedTensorType>(typeOf(operand).clone(merge.widen(shapeOf(operand))));
  if (auto constant = operand.getDefiningOp<ConstantOp>())
    return ConstantOp::create(rewriter, constant.getLoc(), constant.getValue().resizeSplat(type));
  auto broadcast = operand.getDefiningOp<BroadcastOp>();
  SmallVector<int64_t> dims;
  for (int64_t dim : broadcast.getDims())
    dims.push_back(merge.shift(dim));
  return BroadcastOp::create(rewriter, broadcast.getLoc(), type, broadcast.getOperand(), dims);
}

namespace {

/// op(merge(x)...) of rows: merge(op(x...)).
struct MergeAfterRows : RewritePattern {
  explicit MergeAfterRows(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    bool isOfRows = isa<SoftmaxOp, TopKOp>(op);
    if (op->getNumResults() != 1 || (!isOfRows && !isElementwise(op)))
      return failure();
    Value result = op->getResult(0);
    std::optional<Merge> merge;
    for (Value operand : op->getOperands()) {
      if (shapeOf(operand) != shapeOf(result))
        return failure();
      merge = merge ? merge : findMerge(operand);
    }
    if (!merge || (isOfRows && shapeOf(result).size() < 2))
      return failure();
    if (!llvm::all_of(op->getOperands(), [&](Value each) { return canWiden(each, *merge); }))
      return failure();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(widened(rewriter, operand, *merge));
    OperationState state(op->getLoc(), op->getName(), operands,
                         TypeRange(typeOf(result).clone(merge->widen(shapeOf(result)))),
                         op->getAttrs());
    Value wide = rewriter.create(state)->getResult(0);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, wide, shapeOf(result));
    return success();
  }
};

/// reduce(merge(x)): over rows, reduce(x); within each row, merge(reduce(x)).
struct MergeAfterReduce : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op, PatternRewriter &rewriter) const override {
    std::optional<Merge> merge = findMerge(op.getOperand());
    if (!merge)
      return failure();
    SmallVector<int64_t> dims;
    bool isOverRows = llvm::is_contained(op.getDims(), 0);
    if (isOverRows)
      llvm::append_range(dims, llvm::seq<int64_t>(0, int64_t(merge->leading.size())));
    for (int64_t dim : op.getDims())
      if (dim != 0)
        dims.push_back(merge->shift(dim));
    Value wide = ReduceOp::create(rewriter, op.getLoc(), merge->wide(rewriter), op.getKind(), dims);
    if (isOverRows)
      rewriter.replaceOp(op, wide);
    else
      rewriter.replaceOpWithNewOp<ReshapeOp>(op, wide, op.getType().getShape());
    return success();
  }
};

/// broadcast(merge(x)) that keeps the rows: merge(broadcast(x)).
struct MergeAfterBroadcast : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    std::optional<Merge> merge = findMerge(op.getOperand());
    if (!merge || op.getDims().front() != 0)
      return failure();
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(merge->leading.size())));
    for (int64_t dim : op.getDims().drop_front())
      dims.push_back(merge->shift(dim));
    auto type = op.getType().clone(merge->widen(op.getType().getShape()));
    Value wide = BroadcastOp::create(rewriter, op.getLoc(), type, merge->wide(rewriter), dims);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, wide, op.getType().getShape());
    return success();
  }
};

/// norm(merge(x)) of rows: merge(norm(x)).
template <typename Norm> struct MergeAfterNorm : OpRewritePattern<Norm> {
  using OpRewritePattern<Norm>::OpRewritePattern;
  LogicalResult matchAndRewrite(Norm op, PatternRewriter &rewriter) const override {
    std::optional<Merge> merge = findMerge(op->getOperand(0));
    bool isUsedAlone = llvm::all_of(op->getResults().drop_front(),
                                    [](Value statistic) { return statistic.use_empty(); });
    if (!merge || !isUsedAlone || shapeOf(op->getOperand(0)).size() < 2)
      return failure();
    SmallVector<Value> operands(op->getOperands());
    operands[0] = merge->wide(rewriter);
    auto norm = Norm::create(rewriter, op.getLoc(), operands, op->getAttrs());
    Value result =
        ReshapeOp::create(rewriter, op.getLoc(), norm->getResult(0), shapeOf(op->getResult(0)));
    rewriter.replaceAllUsesWith(op->getResult(0), result);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void dtc::torch::addKeepSamples(RewritePatternSet &patterns) {
  patterns.add<MergeAfterRows, MergeAfterReduce, MergeAfterBroadcast, MergeAfterNorm<RmsNormOp>,
               MergeAfterNorm<LayerNormOp>>(patterns.getContext());
}
