//===- WeightParts.cpp - Parts of weights of a captured model -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The weights of queries, keys and values, or of the two sides of a gated MLP, may be one tensor,
// which absorbReshapes() has cut into slices.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"
#include "compiler/import/torch/Weights.h"
#include "plan/FileTensors.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

//===----------------------------------------------------------------------===//
// Equal parts
//===----------------------------------------------------------------------===//

/// The parameter in another shape, by one reshape for all of its uses: the gradients of its parts
/// are then put together, and not added up. It is before `user`.
static Value sharedReshape(PatternRewriter &rewriter, Operation *user, Value parameter,
                           ArrayRef<int64_t> shape) {
  for (Operation *each : parameter.getUsers())
    if (auto reshape = dyn_cast<ReshapeOp>(each); reshape &&
                                                  reshape->getBlock() == user->getBlock() &&
                                                  shapeOf(reshape.getResult()) == shape) {
      if (user->isBeforeInBlock(reshape))
        rewriter.moveOpBefore(reshape, user);
      return reshape;
    }
  return ReshapeOp::create(rewriter, user->getLoc(), parameter, shape);
}

namespace {

/// reshape(slice(parameter)) of one of equal parts, that splits the part's dimension: the parameter
/// is split into parts and these dimensions, in the shape that all of its uses have, and then
/// sliced.
struct SplitParts : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto slice = op.getOperand().getDefiningOp<SliceOp>();
    std::optional<int64_t> dim = slice ? slicedDim(slice) : std::nullopt;
    if (!dim || !isa<BlockArgument>(slice.getOperand()))
      return failure();
    ArrayRef<int64_t> whole = shapeOf(slice.getOperand()), shape = op.getType().getShape();
    std::optional<Split> split = findSplit(shapeOf(slice.getResult()), shape);
    int64_t size = slice.getSizes()[*dim], begin = slice.getOffsets()[*dim];
    if (!split || split->dim != *dim || whole[*dim] % size != 0 || begin % size != 0)
      return failure();
    SmallVector<int64_t> sizes{whole[*dim] / size};
    llvm::append_range(sizes, shape.slice(split->dim, split->count));
    SmallVector<int64_t> wide = replaced(whole, *dim, sizes), offsets(wide.size(), 0);
    Value parts = sharedReshape(rewriter, op, slice.getOperand(), wide);
    offsets[*dim] = begin / size;
    wide[*dim] = 1;
    Value part = SliceOp::create(rewriter, op.getLoc(), parts, offsets, wide);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, part, shape);
    return success();
  }
};

/// slice(parameter) of one of equal parts that are all there is of the parameter: the parts become
/// a dimension of their own, so that the one that is sliced can be split among devices.
struct SliceParts : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    std::optional<int64_t> dim = slicedDim(op);
    if (!dim || !isa<BlockArgument>(op.getOperand()))
      return failure();
    ArrayRef<int64_t> whole = shapeOf(op.getOperand());
    int64_t size = op.getSizes()[*dim];
    // Parts of one element each are a dimension already, such as the layers of a stack.
    if (size == 1 || !areEqualParts(op.getOperand(), *dim, size))
      return failure();
    SmallVector<int64_t> wide = replaced(whole, *dim, {whole[*dim] / size, size});
    SmallVector<int64_t> offsets(wide.size(), 0);
    Value parts = sharedReshape(rewriter, op, op.getOperand(), wide);
    offsets[*dim] = op.getOffsets()[*dim] / size;
    wide[*dim] = 1;
    Value part = SliceOp::create(rewriter, op.getLoc(), parts, offsets, wide);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, part, op.getType().getShape());
    return success();
  }

private:
  /// Whether the uses of the parameter are such parts, and all of them. Uses that have been
  /// rewritten already are slices of the reshape.
  static bool areEqualParts(Value parameter, int64_t dim, int64_t size) {
    int64_t rows = shapeOf(parameter)[dim];
    if (rows % size != 0)
      return false;
    llvm::SmallDenseSet<int64_t> begins;
    SmallVector<int64_t> wide = replaced(shapeOf(parameter), dim, {rows / size, size});
    for (Operation *user : parameter.getUsers()) {
      if (auto slice = dyn_cast<SliceOp>(user)) {
        if (slicedDim(slice) != dim || slice.getSizes()[dim] != size ||
            slice.getOffsets()[dim] % size != 0)
          return false;
        begins.insert(slice.getOffsets()[dim] / size);
        continue;
      }
      auto reshape = dyn_cast<ReshapeOp>(user);
      if (!reshape || ArrayRef(wide) != shapeOf(reshape.getResult()))
        return false;
      for (Operation *part : reshape->getUsers()) {
        auto slice = dyn_cast<SliceOp>(part);
        if (!slice || slicedDim(slice) != dim || slice.getSizes()[dim] != 1)
          return false;
        begins.insert(slice.getOffsets()[dim]);
      }
    }
    return int64_t(begins.size()) == rows / size;
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Ranges of a parameter
//===----------------------------------------------------------------------===//

namespace {
/// The slices of a parameter along one dimension, by the first element of each.
struct Ranges {
  int64_t dim = 0;
  std::map<int64_t, SmallVector<SliceOp>> slices;
};
} // namespace

/// The slices that are all uses of a parameter, if they are disjoint ranges along a dimension that
/// are together all of it; nothing otherwise.
static std::optional<Ranges> rangesOf(Value parameter) {
  Ranges found;
  for (Operation *user : parameter.getUsers()) {
    auto slice = dyn_cast<SliceOp>(user);
    std::optional<int64_t> dim = slice ? slicedDim(slice) : std::nullopt;
    if (!dim || (!found.slices.empty() && *dim != found.dim))
      return std::nullopt;
    found.dim = *dim;
    found.slices[slice.getOffsets()[*dim]].push_back(slice);
  }
  int64_t end = 0;
  for (auto &[begin, slices] : found.slices) {
    int64_t size = slices.front().getSizes()[found.dim];
    if (begin != end ||
        llvm::any_of(slices, [&](SliceOp each) { return each.getSizes()[found.dim] != size; }))
      return std::nullopt;
    end += size;
  }
  if (found.slices.empty() || end != shapeOf(parameter)[found.dim])
    return std::nullopt;
  return found;
}

/// Whether ranges of a parameter are parameters of their own: rows of different sizes, as of keys
/// that are shared by groups of queries, which could not be split among devices together, and the
/// sides of the gates of experts, which would be copied out of the weight in each step.
static bool areParameters(Ranges &ranges) {
  llvm::SmallDenseSet<int64_t> sizes;
  bool areOfExperts = true;
  for (auto &[begin, slices] : ranges.slices)
    for (SliceOp slice : slices) {
      sizes.insert(slice.getSizes()[ranges.dim]);
      areOfExperts &= llvm::all_of(slice->getUsers(), llvm::IsaPred<GroupedProductOp>);
    }
  return ranges.dim == 0 ? sizes.size() > 1 : ranges.slices.size() > 1 && areOfExperts;
}

/// Makes parameters of the ranges of a parameter that are parameters of their own.
static void splitRows(func::FuncOp function) {
  Builder builder(function.getContext());
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    BlockArgument argument = function.getArgument(index);
    auto name = function.getArgAttrOfType<StringAttr>(index, DtcDialect::kParamAttrName);
    std::optional<Ranges> ranges = name ? rangesOf(argument) : std::nullopt;
    if (!ranges || !areParameters(*ranges))
      continue;
    unsigned place = index;
    for (auto &[begin, slices] : ranges->slices) {
      NamedAttrList attributes(function.getArgAttrDict(index));
      int64_t end = begin + slices.front().getSizes()[ranges->dim];
      StringAttr part =
          builder.getStringAttr(FileRows{name.getValue(), begin, end, ranges->dim}.name());
      attributes.set(DtcDialect::kParamAttrName, part);
      (void)function.insertArgument(++place, slices.front().getType(),
                                    attributes.getDictionary(builder.getContext()),
                                    NameLoc::get(part));
      for (SliceOp slice : slices) {
        slice.replaceAllUsesWith(function.getArgument(place));
        slice.erase();
      }
    }
    (void)function.eraseArgument(index);
    index = place - 1; // the last of the parts
  }
}

/// Puts the slices of each parameter in the order of the parts that they take. The sum of their
/// gradients is then one of neighbours, which becomes a concatenation.
static void orderParts(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    for (Operation *user : argument.getUsers()) {
      auto reshape = dyn_cast<ReshapeOp>(user);
      if (!reshape || !llvm::all_of(reshape->getUsers(), llvm::IsaPred<SliceOp>))
        continue;
      SmallVector<Operation *> parts(reshape->getUsers());
      llvm::stable_sort(parts, [](Operation *a, Operation *b) {
        ArrayRef<int64_t> first = cast<SliceOp>(a).getOffsets();
        ArrayRef<int64_t> second = cast<SliceOp>(b).getOffsets();
        return std::lexicographical_compare(first.begin(), first.end(), second.begin(),
                                            second.end());
      });
      for (Operation *part : llvm::reverse(parts))
        part->moveAfter(reshape);
    }
}

void dtc::torch::splitParameters(func::FuncOp function) {
  splitRows(function);
  RewritePatternSet heads(function.getContext()), parts(function.getContext());
  heads.add<SplitParts>(function.getContext());
  parts.add<SliceParts>(function.getContext());
  (void)applyPatternsGreedily(function, std::move(heads));
  (void)applyPatternsGreedily(function, std::move(parts));
  orderParts(function);
}
