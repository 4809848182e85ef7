//===- DtcWindowOps.cpp - Convolutions and poolings -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/OpHelpers.h"
#include "support/Windows.h"

using namespace mlir;
using namespace dtc;

static std::span<const int64_t> spanOf(ArrayRef<int64_t> array) {
  return {array.data(), array.size()};
}

/// The windows of an op with these attributes; `sizes` has one entry for each spatial dimension.
template <typename OpOrAdaptor>
static SmallVector<Windows> windowsOf(OpOrAdaptor op, ArrayRef<int64_t> sizes) {
  SmallVector<Windows> windows;
  for (auto [size, stride, padding, dilation] :
       llvm::zip_equal(sizes, op.getStrides(), op.getPadding(), op.getDilations()))
    windows.push_back({size, stride, padding, dilation});
  return windows;
}

/// Appends the number of windows along each of the last dimensions of `x` to `shape`. Returns the
/// first dimension into which no window fits, none if all have windows.
static std::optional<int64_t> countWindows(RankedTensorType x, ArrayRef<Windows> windows,
                                           SmallVectorImpl<int64_t> &shape) {
  int64_t first = x.getRank() - static_cast<int64_t>(windows.size());
  for (auto [i, each] : llvm::enumerate(windows)) {
    int64_t dim = first + static_cast<int64_t>(i), count = each.countIn(x.getDimSize(dim));
    if (count == 0)
      return dim;
    shape.push_back(count);
  }
  return std::nullopt;
}

/// Describes the part of a dimension that a window does not fit into.
static std::string describeMisfit(RankedTensorType x, int64_t dim, ArrayRef<Windows> windows) {
  const Windows &each = windows[static_cast<size_t>(dim - x.getRank()) + windows.size()];
  return (Twine("dimension ") + Twine(dim) + " has " + Twine(x.getDimSize(dim)) +
          " elements and a padding of " + Twine(each.padding) +
          " on both sides, expected the extent of a window, " + Twine(each.extent()) + ", or more")
      .str();
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

namespace {
/// The labels of the constraints of a convolution or a gradient, and the names of what takes the
/// part of its input and of its weight.
struct ConvLabels {
  StringRef windows, rank, weight, fit, x, w;
};
} // namespace

/// The type of the convolution of x and w; an error if there is none.
template <typename OpT, typename OpOrAdaptor>
static FailureOr<RankedTensorType> inferConv(std::optional<Location> location, OpOrAdaptor op,
                                             RankedTensorType x, RankedTensorType w,
                                             const ConvLabels &labels) {
  if (std::optional<std::string> problem = findWindowProblem(
          spanOf(op.getStrides()), spanOf(op.getPadding()), spanOf(op.getDilations())))
    return inferenceError<OpT>(location, labels.windows, *problem);
  int64_t spatial = static_cast<int64_t>(op.getStrides().size()), leading = x.getRank() - spatial;
  if (leading != 2 && leading != 3)
    return inferenceError<OpT>(location, labels.rank, labels.x, " has type ", x, ", expected rank ",
                               spatial + 2, ", or ", spatial + 3, " with groups, for ", spatial,
                               " strides");
  // [n,c,s...] and [o,c,k...], or [n,g,c,s...] and [g,o,c,k...].
  bool matches = w.getRank() == x.getRank() && w.getElementType() == x.getElementType() &&
                 w.getDimSize(leading - 1) == x.getDimSize(leading - 1) &&
                 (leading == 2 || w.getDimSize(0) == x.getDimSize(1));
  ArrayRef<int64_t> sizes = w.getShape().take_back(matches ? spatial : 0);
  if (!matches || llvm::any_of(sizes, [](int64_t size) { return size > kMaxWindowNumber; })) {
    std::string groups = leading == 2 ? "" : std::to_string(x.getDimSize(1)) + "x";
    return inferenceError<OpT>(location, labels.weight, labels.w, " has type ", w,
                               ", expected tensor<", groups, "ox", x.getDimSize(leading - 1), "xkx",
                               x.getElementType(), "> for some o and ", spatial,
                               " sizes k of less than 2^31, as ", labels.x, " has type ", x);
  }
  SmallVector<Windows> windows = windowsOf(op, sizes);
  SmallVector<int64_t> shape(x.getShape().take_front(leading - 1));
  shape.push_back(w.getDimSize(leading - 2));
  if (std::optional<int64_t> dim = countWindows(x, windows, shape))
    return inferenceError<OpT>(location, labels.fit, labels.x, " has type ", x, "; ",
                               describeMisfit(x, *dim, windows));
  return withShape(x, shape);
}

/// Which operands and results of an op are the input, the weight and the result of a convolution.
namespace {
struct ConvTerms {
  std::string x, w, y;
};
} // namespace
static ConvTerms convTermsOf(int64_t rank, size_t spatial) {
  bool hasGroups = rank == static_cast<int64_t>(spatial) + 3;
  std::string g = hasGroups ? "g" : "";
  auto take = [&](StringRef letters) { return letters.take_front(spatial).str(); };
  return {"b" + g + "c" + take("HIJ"), g + "oc" + take("KLM"), "b" + g + "o" + take("PQR")};
}

/// The FLOPs of a convolution with this weight and this result: each element of the result is a sum
/// over the input channels and the places of a window.
static double convFlops(RankedTensorType w, RankedTensorType y, size_t spatial) {
  double terms = 1;
  for (int64_t size : w.getShape().take_back(spatial + 1))
    terms *= static_cast<double>(size);
  return 2 * terms * static_cast<double>(y.getNumElements());
}

/// A convolution, or one of its gradients, with the attributes of `op`.
template <typename OpT, typename LikeOp, typename... Args>
static Value createConv(ValueBuilder &b, LikeOp like, Args &&...args) {
  return b.create<OpT>(std::forward<Args>(args)..., like.getStrides(), like.getPadding(),
                       like.getDilations());
}

LogicalResult ConvOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                       Adaptor adaptor, SmallVectorImpl<Type> &types) {
  FailureOr<RankedTensorType> result = inferConv<ConvOp>(
      location, adaptor, getTensorType(adaptor.getX()), getTensorType(adaptor.getW()),
      {"conv-c1", "conv-c2", "conv-c3", "conv-c4", "x", "w"});
  if (failed(result))
    return failure();
  types.push_back(*result);
  return success();
}

ShardingRule ConvOp::getShardingRule() {
  ConvTerms terms = convTermsOf(getX().getType().getRank(), getStrides().size());
  ShardingRule rule = makeEquationRule(*this, terms.x + "," + terms.w + "->" + terms.y);
  rule.linearOperands = {{0}, {1}};
  return rule;
}

double ConvOp::getFlops() { return convFlops(getW().getType(), getType(), getStrides().size()); }

LogicalResult ConvOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool> needed,
                               MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  Value dy = b.convertLike(cotangents[0], getX());
  if (needed[0])
    gradients[0] = createConv<ConvInputGradOp>(b, *this, getX().getType(), dy, getW());
  if (needed[1])
    gradients[1] =
        createConv<ConvWeightGradOp>(b, *this, getWideTensor(getW().getType()), getX(), dy);
  return success();
}

LogicalResult ConvInputGradOp::verify() {
  FailureOr<RankedTensorType> y =
      inferConv<ConvInputGradOp>(getLoc(), *this, getType(), getW().getType(),
                                 {"conv_input_grad-c1", "conv_input_grad-c2", "conv_input_grad-c3",
                                  "conv_input_grad-c4", "the result", "w"});
  if (failed(y))
    return failure();
  return expectType<ConvInputGradOp>(getLoc(), "conv_input_grad-c5", "dy", getDy(), *y);
}

ShardingRule ConvInputGradOp::getShardingRule() {
  ConvTerms terms = convTermsOf(getType().getRank(), getStrides().size());
  ShardingRule rule = makeEquationRule(*this, terms.y + "," + terms.w + "->" + terms.x);
  rule.linearOperands = {{0}, {1}};
  return rule;
}

double ConvInputGradOp::getFlops() {
  return convFlops(getW().getType(), getDy().getType(), getStrides().size());
}

LogicalResult ConvInputGradOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                                        ArrayRef<bool> needed, MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  Value dx = b.convertLike(cotangents[0], getDy());
  if (needed[0])
    gradients[0] = createConv<ConvOp>(b, *this, dx, getW());
  if (needed[1])
    gradients[1] =
        createConv<ConvWeightGradOp>(b, *this, getWideTensor(getW().getType()), dx, getDy());
  return success();
}

LogicalResult ConvWeightGradOp::verify() {
  RankedTensorType x = getX().getType(), w = getType();
  Type element = x.getElementType();
  // The weight has the elements of x, unless those of the result are wrong.
  if (w.getElementType() == getWideType(element))
    w = w.clone(element);
  else if (w.getElementType() == element)
    w = w.clone(getWideType(element));
  FailureOr<RankedTensorType> y = inferConv<ConvWeightGradOp>(
      getLoc(), *this, x, w,
      {"conv_weight_grad-c1", "conv_weight_grad-c2", "conv_weight_grad-c3", "conv_weight_grad-c4",
       "x", "the weight"});
  if (failed(y))
    return failure();
  return expectType<ConvWeightGradOp>(getLoc(), "conv_weight_grad-c5", "dy", getDy(), *y);
}

ShardingRule ConvWeightGradOp::getShardingRule() {
  ConvTerms terms = convTermsOf(getX().getType().getRank(), getStrides().size());
  ShardingRule rule = makeEquationRule(*this, terms.x + "," + terms.y + "->" + terms.w);
  rule.linearOperands = {{0}, {1}};
  return rule;
}

double ConvWeightGradOp::getFlops() {
  return convFlops(getType(), getDy().getType(), getStrides().size());
}

LogicalResult ConvWeightGradOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                                         ArrayRef<bool> needed, MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  Value dw = b.convertLike(cotangents[0], getX());
  if (needed[0])
    gradients[0] = createConv<ConvInputGradOp>(b, *this, getX().getType(), getDy(), dw);
  if (needed[1])
    gradients[1] = createConv<ConvOp>(b, *this, getX(), dw);
  return success();
}

//===----------------------------------------------------------------------===//
// Max pooling
//===----------------------------------------------------------------------===//

namespace {
struct PoolLabels {
  StringRef windows, rank, fit;
};
} // namespace

/// The type of the maxima of the windows of x; an error if there is none.
template <typename OpT, typename OpOrAdaptor>
static FailureOr<RankedTensorType> inferPool(std::optional<Location> location, OpOrAdaptor op,
                                             RankedTensorType x, const PoolLabels &labels) {
  if (std::optional<std::string> problem =
          findWindowProblem(spanOf(op.getStrides()), spanOf(op.getPadding()),
                            spanOf(op.getDilations()), spanOf(op.getWindow())))
    return inferenceError<OpT>(location, labels.windows, *problem);
  int64_t spatial = static_cast<int64_t>(op.getStrides().size());
  if (x.getRank() < spatial)
    return inferenceError<OpT>(location, labels.rank, "x has type ", x, ", expected rank ", spatial,
                               " or more for ", spatial, " strides");
  SmallVector<Windows> windows = windowsOf(op, op.getWindow());
  SmallVector<int64_t> shape(x.getShape().drop_back(spatial));
  if (std::optional<int64_t> dim = countWindows(x, windows, shape))
    return inferenceError<OpT>(location, labels.fit, "x has type ", x, "; ",
                               describeMisfit(x, *dim, windows));
  return withShape(x, shape);
}

/// Ends of the terms of x and y, after the dimensions that they share.
static std::pair<std::string, std::string> poolTermsOf(size_t spatial) {
  auto take = [&](StringRef letters) { return "..." + letters.take_front(spatial).str(); };
  return {take("HIJ"), take("PQR")};
}

/// One comparison for each element of each window.
template <typename OpT> static double poolFlops(OpT op, RankedTensorType y) {
  double flops = static_cast<double>(y.getNumElements());
  for (int64_t size : op.getWindow())
    flops *= static_cast<double>(size);
  return flops;
}

LogicalResult MaxPoolOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  FailureOr<RankedTensorType> result =
      inferPool<MaxPoolOp>(location, adaptor, getTensorType(adaptor.getX()),
                           {"max_pool-c1", "max_pool-c2", "max_pool-c3"});
  if (failed(result))
    return failure();
  types.push_back(*result);
  return success();
}

ShardingRule MaxPoolOp::getShardingRule() {
  auto [x, y] = poolTermsOf(getStrides().size());
  return makeEquationRule(*this, x + "->" + y);
}

double MaxPoolOp::getFlops() { return poolFlops(*this, getType()); }

LogicalResult MaxPoolOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                  MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  gradients[0] =
      b.create<MaxPoolGradOp>(getX().getType(), getX(), b.convertLike(cotangents[0], getX()),
                              getWindow(), getStrides(), getPadding(), getDilations());
  return success();
}

LogicalResult MaxPoolGradOp::verify() {
  FailureOr<RankedTensorType> y =
      inferPool<MaxPoolGradOp>(getLoc(), *this, getX().getType(),
                               {"max_pool_grad-c1", "max_pool_grad-c2", "max_pool_grad-c3"});
  if (failed(y))
    return failure();
  if (getDy().getType() != *y || getType() != getX().getType())
    return violates(*this, "max_pool_grad-c4")
           << "dy has type " << getDy().getType() << " and the result " << getType()
           << ", expected " << *y << " and " << getX().getType();
  return success();
}

ShardingRule MaxPoolGradOp::getShardingRule() {
  auto [x, y] = poolTermsOf(getStrides().size());
  ShardingRule rule = makeEquationRule(*this, x + "," + y + "->" + x);
  rule.linearOperands = {{1}};
  return rule;
}

double MaxPoolGradOp::getFlops() { return poolFlops(*this, getDy().getType()); }
