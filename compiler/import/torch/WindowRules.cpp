//===- WindowRules.cpp - Convolutions and poolings ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"
#include "support/Windows.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>
#include <limits>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

using Numbers = SmallVector<int64_t>;

/// The numbers of an argument, one for each of `count` dimensions. One number stands for all; where
/// there are none it is `otherwise`.
static Numbers numbersOf(const AtenOp &op, StringRef name, size_t count,
                         ArrayRef<int64_t> otherwise) {
  ArrayRef<int64_t> given = op.integers(name).value_or(ArrayRef<int64_t>());
  if (std::optional<int64_t> one = op.integer(name))
    return Numbers(count, *one);
  if (given.empty())
    return Numbers(otherwise);
  return given.size() == 1 ? Numbers(count, given[0]) : Numbers(given);
}

namespace {
/// The windows of an op.
struct WindowNumbers {
  Numbers sizes, strides, padding, dilations;

  /// The windows along the last dimensions of a shape: appends their numbers to `counts`. Reports
  /// what is wrong with them.
  LogicalResult count(const AtenOp &op, ArrayRef<int64_t> shape, Numbers &counts) const;
};
} // namespace

static WindowNumbers windowsOf(const AtenOp &op, ArrayRef<int64_t> sizes) {
  Numbers ones(sizes.size(), 1), zeros(sizes.size(), 0);
  return {Numbers(sizes), numbersOf(op, "stride", sizes.size(), sizes),
          numbersOf(op, "padding", sizes.size(), zeros),
          numbersOf(op, "dilation", sizes.size(), ones)};
}

LogicalResult WindowNumbers::count(const AtenOp &op, ArrayRef<int64_t> shape,
                                   Numbers &counts) const {
  auto spanOf = [](const Numbers &numbers) {
    return std::span<const int64_t>(numbers.data(), numbers.size());
  };
  if (std::optional<std::string> problem =
          findWindowProblem(spanOf(strides), spanOf(padding), spanOf(dilations), spanOf(sizes)))
    return op.fail("has windows that cannot be: " + *problem), failure();
  for (auto [i, size] : llvm::enumerate(sizes)) {
    Windows windows{size, strides[i], padding[i], dilations[i]};
    int64_t length = shape[shape.size() - sizes.size() + i];
    counts.push_back(windows.countIn(length));
    if (counts.back() == 0)
      return op.fail(
                 fmt::format("has windows of {} elements along a dimension of {} with a padding "
                             "of {} on both sides, expected windows that fit into it",
                             windows.extent(), length, windows.padding)),
             failure();
  }
  return success();
}

/// The dimension `dim` of a shape, split into `groups` and the rest; not split for one group.
static Numbers splitGroups(ArrayRef<int64_t> shape, size_t dim, int64_t groups) {
  Numbers split(shape);
  if (groups > 1) {
    split[dim] /= groups;
    split.insert(split.begin() + int64_t(dim), groups);
  }
  return split;
}

/// Whether windows neither overlap nor leave anything between, as images are cut into patches.
static bool arePatches(const WindowNumbers &windows) {
  auto are = [](const Numbers &numbers, int64_t wanted) {
    return llvm::all_of(numbers, [&](int64_t each) { return each == wanted; });
  };
  return windows.strides == windows.sizes && are(windows.padding, 0) && are(windows.dilations, 1);
}

/// The convolution of patches, which is a product: x [B, C, n...], weight [O, C, k...], result
/// [B, O, n/k...]. The rest at the end of a dimension that k does not divide is in no window.
static Value convolvePatches(AtenOp &op, Value x, Value weight, ArrayRef<int64_t> kernel) {
  Numbers parts(shapeOf(x).take_front(2));
  std::string left = "bc", right = "oc", result = "bo";
  for (auto [i, size] : llvm::enumerate(kernel)) {
    int64_t dim = int64_t(i) + 2, count = shapeOf(x)[dim] / size;
    x = op.slice(x, dim, 0, count * size);
    if (!x)
      return {};
    parts.append({count, size});
    left += {char('p' + 2 * i), char('q' + 2 * i)};
    right += char('q' + 2 * i);
    result += char('p' + 2 * i);
  }
  return op.einsum(left + "," + right + "->" + result, op.reshape(x, parts), weight);
}

/// A convolution: x [B, C, n...], weight [O, C/groups, k...], result [B, O, m...].
static Value convolve(AtenOp &op, Value x, Value weight, const WindowNumbers &windows,
                      int64_t groups) {
  Numbers shape{shapeOf(x)[0], shapeOf(weight)[0]};
  if (failed(windows.count(op, shapeOf(x), shape)))
    return {};
  if (groups == 1 && arePatches(windows))
    return convolvePatches(op, x, weight, windows.sizes);
  x = op.reshape(x, splitGroups(shapeOf(x), 1, groups));
  weight = op.reshape(weight, splitGroups(shapeOf(weight), 0, groups));
  auto type = typeOf(x).clone(splitGroups(shape, 1, groups));
  Value y = ConvOp::create(op.rewriter, op.loc, type, x, weight, windows.strides, windows.padding,
                           windows.dilations);
  return op.reshape(y, shape);
}

/// A transposed convolution: x [B, C, m...], weight [C, O/groups, k...], result [B, O, n...], which
/// is the gradient of a convolution from O to C channels by its input.
static Value convolveTransposed(AtenOp &op, Value x, Value weight, const WindowNumbers &windows,
                                int64_t groups) {
  Numbers shape{shapeOf(x)[0], shapeOf(weight)[1] * groups}, counts;
  ArrayRef<int64_t> result = op.resultType().getShape();
  if (result.size() != shapeOf(x).size() || result.take_front(2) != ArrayRef<int64_t>(shape))
    return op.fail("has a result that is not of its operands' batch and channels");
  shape.assign(result.begin(), result.end());
  if (failed(windows.count(op, shape, counts)))
    return {};
  if (ArrayRef<int64_t>(counts) != shapeOf(x).drop_front(2))
    return op.fail(
        "has an output padding of a stride or more, or a result of another size than its "
        "windows have");
  x = op.reshape(x, splitGroups(shapeOf(x), 1, groups));
  weight = op.reshape(weight, splitGroups(shapeOf(weight), 0, groups));
  auto type = typeOf(x).clone(splitGroups(shape, 1, groups));
  Value y = ConvInputGradOp::create(op.rewriter, op.loc, type, x, weight, windows.strides,
                                    windows.padding, windows.dilations);
  return op.reshape(y, shape);
}

static Results convertConvolution(AtenOp &op) {
  Value x = op.required("input"), weight = op.required("weight");
  if (!x || !weight)
    return {};
  size_t rank = shapeOf(weight).size();
  int64_t groups = op.integer("groups").value_or(1);
  if (rank < 3 || rank > 2 + kMaxSpatialDims || shapeOf(x).size() != rank || !torch::isFloat(x) ||
      typeOf(x).getElementType() != typeOf(weight).getElementType())
    return {op.fail("has an input and a weight that do not fit, expected floats of one type with a "
                    "batch or output channels, channels, and one to three spatial dimensions")};
  bool isTransposed = op.flag("transposed");
  int64_t channels = shapeOf(x)[1], first = shapeOf(weight)[0], second = shapeOf(weight)[1];
  if (groups < 1 || channels % groups != 0 || first % groups != 0 ||
      (isTransposed ? first != channels : second * groups != channels))
    return {op.fail(fmt::format("has an input of {} channels and a weight of {} x {} in {} groups, "
                                "expected groups that divide the channels, and {}",
                                channels, first, second, groups,
                                isTransposed ? "as many weights as input channels"
                                             : "weights for the input channels of a group"))};
  WindowNumbers windows = windowsOf(op, shapeOf(weight).drop_front(2));
  windows.strides = numbersOf(op, "stride", windows.sizes.size(), Numbers(windows.sizes.size(), 1));
  Value y = isTransposed ? convolveTransposed(op, x, weight, windows, groups)
                         : convolve(op, x, weight, windows, groups);
  Value bias = op.operand("bias");
  if (!y || !bias)
    return {y};
  if (shapeOf(bias) != shapeOf(y).slice(1, 1))
    return {op.fail("has a bias that does not have an element for each output channel")};
  return {op.elementwise<AddOp>(
      {y, op.broadcastAlong(op.convert(bias, typeOf(y).getElementType()), shapeOf(y), {1})})};
}

/// `x` with elements after the last ones of the spatial dimensions, so that the windows are as many
/// as those of the result: those of a ceil_mode may go beyond the padding. Null if they are others.
static Value padToWindows(AtenOp &op, Value x, const WindowNumbers &windows, double fill) {
  ArrayRef<int64_t> wanted = op.resultType().getShape();
  Numbers shape(shapeOf(x)), low(shape.size(), 0), high(shape.size(), 0);
  size_t leading = shape.size() - windows.sizes.size();
  for (auto [i, size] : llvm::enumerate(windows.sizes)) {
    Windows own{size, windows.strides[i], windows.padding[i], windows.dilations[i]};
    int64_t &after = high[leading + i];
    if (wanted.size() != shape.size() || wanted[leading + i] < 1)
      return op.fail("has another number of dimensions than its result");
    after = (wanted[leading + i] - 1) * own.stride + own.extent() - 2 * own.padding -
            shape[leading + i];
    after = std::max<int64_t>(after, 0);
    if (after >= own.stride)
      return op.fail("has fewer windows than its result has elements");
    shape[leading + i] += after;
  }
  return PadOp::create(op.rewriter, op.loc, typeOf(x).clone(ArrayRef<int64_t>(shape)), x, low, high,
                       fill);
}

/// The windows of a pooling of `x`, whose numbers are appended to `shape`, which has its leading
/// dimensions. With a ceil_mode `x` gets the elements beyond the padding, which are `fill`. Reports
/// what is wrong with the windows.
static std::optional<WindowNumbers> poolWindows(AtenOp &op, Value &x, size_t spatial,
                                                Numbers &shape, double fill) {
  WindowNumbers windows = windowsOf(op, numbersOf(op, "kernel_size", spatial, {}));
  if (!torch::isFloat(x) || windows.sizes.size() != spatial || shapeOf(x).size() < spatial)
    return op.fail("has an input or a kernel that does not fit its spatial dimensions"),
           std::nullopt;
  size_t leading = shapeOf(x).size() - spatial;
  shape.assign(shapeOf(x).begin(), shapeOf(x).begin() + int64_t(leading));
  if (failed(windows.count(op, shapeOf(x), shape)))
    return std::nullopt;
  if (!op.flag("ceil_mode") || shape == Numbers(op.resultType().getShape()))
    return windows;
  x = padToWindows(op, x, windows, fill);
  shape.resize(leading);
  if (!x || failed(windows.count(op, shapeOf(x), shape)))
    return std::nullopt;
  return windows;
}

template <size_t spatial> static Results convertMaxPool(AtenOp &op) {
  Value x = op.required("self");
  Numbers shape;
  constexpr double least = -std::numeric_limits<double>::infinity();
  auto windows = x ? poolWindows(op, x, spatial, shape, least) : std::nullopt;
  if (!windows)
    return {};
  return {MaxPoolOp::create(op.rewriter, op.loc, typeOf(x).clone(shape), x, windows->sizes,
                            windows->strides, windows->padding, windows->dilations)};
}

/// One over the number of elements that count, for each window: counts [m...]. Those are the ones
/// of the dimensions of the given lengths, and the padding on both sides if `countsPadding`.
static Value reciprocalCounts(AtenOp &op, const WindowNumbers &windows, ArrayRef<int64_t> lengths,
                              ArrayRef<int64_t> counts, bool countsPadding, Type element) {
  SmallVector<double> factors{1};
  for (auto [i, count] : llvm::enumerate(counts)) {
    SmallVector<double> next;
    for (double before : factors)
      for (int64_t window = 0; window < count; ++window) {
        int64_t begin = window * windows.strides[i] - windows.padding[i];
        int64_t padding = countsPadding ? windows.padding[i] : 0;
        int64_t inside = std::min(begin + windows.sizes[i], lengths[i] + padding) -
                         std::max<int64_t>(begin, -padding);
        next.push_back(before / double(inside));
      }
    factors = std::move(next);
  }
  SmallVector<APFloat> values;
  for (double factor : factors) {
    bool loses = false;
    values.emplace_back(factor);
    values.back().convert(cast<FloatType>(element).getFloatSemantics(),
                          APFloat::rmNearestTiesToEven, &loses);
  }
  return ConstantOp::create(op.rewriter, op.loc,
                            DenseElementsAttr::get(RankedTensorType::get(counts, element), values));
}

/// The mean of each window: a depthwise convolution with a weight of equal elements.
template <size_t spatial> static Results convertAvgPool(AtenOp &op) {
  Value x = op.required("self");
  Numbers shape;
  Value given = x;
  auto windows = x ? poolWindows(op, x, spatial, shape, 0) : std::nullopt;
  if (!windows)
    return {};
  ArrayRef<int64_t> all = shapeOf(x), lengths = all.take_back(spatial);
  ArrayRef<int64_t> counts = ArrayRef<int64_t>(shape).take_back(spatial);
  Type element = typeOf(x).getElementType();
  bool isPadded = llvm::any_of(windows->padding, [](int64_t each) { return each > 0; });
  bool countsPadding = !op.op->hasAttr("count_include_pad") || op.flag("count_include_pad");
  double divisor = double(op.integer("divisor_override").value_or(0));
  bool countsInside = ((isPadded && !countsPadding) || x != given) && divisor == 0;
  for (auto [size, padding] : llvm::zip(windows->sizes, windows->padding))
    if (2 * padding > size)
      return {op.fail("has a padding of more than half of a window")};
  // [..., C, n...] is [B, C, 1, n...]: a group for each channel.
  Numbers grouped{1, 1, 1}, kernel{1, 1, 1};
  for (auto [dim, size] : llvm::enumerate(all.drop_back(spatial)))
    grouped[dim + spatial + 1 == all.size() ? 1 : 0] *= size;
  kernel[0] = grouped[1];
  Numbers pooled = grouped;
  grouped.append(lengths.begin(), lengths.end());
  pooled.append(counts.begin(), counts.end());
  kernel.append(windows->sizes);
  if (divisor == 0 && !countsInside) {
    divisor = 1;
    for (int64_t size : windows->sizes)
      divisor *= double(size);
  }
  Value weight = op.constant(kernel, element, countsInside ? 1 : 1 / divisor);
  Value y = ConvOp::create(op.rewriter, op.loc, typeOf(x).clone(pooled), op.reshape(x, grouped),
                           weight, windows->strides, windows->padding, windows->dilations);
  y = op.reshape(y, shape);
  if (!countsInside)
    return {y};
  Value factors = reciprocalCounts(op, *windows, shapeOf(given).take_back(spatial), counts,
                                   countsPadding, element);
  return {op.elementwise<MulOp>({y, op.broadcastTo(factors, shape)})};
}

/// Means of as many windows along each dimension as the result has elements.
static Results convertAdaptiveAvgPool(AtenOp &op) {
  Value x = op.required("self");
  if (!x)
    return {};
  ArrayRef<int64_t> in = shapeOf(x), out = op.resultType().getShape();
  if (in.size() != out.size() || in.size() < 2 || !torch::isFloat(x))
    return {op.fail("has an input that does not fit its result")};
  Numbers parts(in.drop_back(2));
  SmallVector<int64_t> reduced;
  int64_t count = 1; // elements of a window
  for (auto [from, to] : llvm::zip(in.take_back(2), out.take_back(2))) {
    if (from % to != 0)
      return {op.fail(fmt::format("divides a dimension of {} elements into {} windows, expected a "
                                  "divisor; windows of different sizes have no rule",
                                  from, to))};
    parts.append({to, from / to});
    reduced.push_back(int64_t(parts.size()) - 1);
    count *= from / to;
  }
  Value sums = op.reduce(op.reshape(x, parts), ReductionKind::Sum, reduced, /*keep=*/false);
  return {op.reshape(op.scale(sums, 1 / double(count)), out)};
}

ArrayRef<Rule> dtc::torch::windowRules() {
  static const Rule rules[] = {
      {"aten.adaptive_avg_pool2d", convertAdaptiveAvgPool},
      {"aten.avg_pool1d", convertAvgPool<1>},
      {"aten.avg_pool2d", convertAvgPool<2>},
      {"aten.convolution", convertConvolution},
      {"aten.max_pool1d", convertMaxPool<1>},
      {"aten.max_pool2d", convertMaxPool<2>},
  };
  return rules;
}
