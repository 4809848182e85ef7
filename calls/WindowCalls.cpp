//===- WindowCalls.cpp - Calls of convolutions and poolings ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/WindowCalls.h"

#include "calls/SignatureChecker.h"

#include <fmt/format.h>

namespace dtc {

namespace {
/// The attributes of windows; strides has 1 to kMaxSpatialDims entries, and the others as many.
struct WindowAttributes {
  std::vector<int64_t> strides, padding, dilations;

  Windows at(size_t dim, int64_t size) const {
    return {size, strides[dim], padding[dim], dilations[dim]};
  }
};
} // namespace

/// The attributes of windows, of those with `sizes` of a pooling; they are valid unless the check
/// has failed.
static WindowAttributes readWindows(SignatureChecker &check,
                                    std::optional<std::span<const int64_t>> sizes = {}) {
  WindowAttributes read{check.intsAttribute("strides"), check.intsAttribute("padding"),
                        check.intsAttribute("dilations")};
  if (std::optional<std::string> problem =
          findWindowProblem(read.strides, read.padding, read.dilations, sizes))
    check.fail(*problem);
  return read;
}

/// The spatial dimensions of `in` with these windows, and their numbers of windows appended to
/// `out`. What `in` has no window for is an error; `what` names it.
static SpatialDims makeDims(SignatureChecker &check, const std::string &what,
                            std::span<const int64_t> in, std::span<const int64_t> sizes,
                            const WindowAttributes &attributes, std::vector<int64_t> &out) {
  SpatialDims dims;
  size_t first = kMaxSpatialDims - in.size();
  for (size_t i = 0; i < in.size(); ++i) {
    SpatialDim &dim = dims[first + i];
    dim.in = in[i];
    dim.windows = attributes.at(i, sizes[i]);
    dim.out = dim.windows.countIn(dim.in);
    if (dim.out == 0)
      check.fail(fmt::format("{} has {} elements along spatial dimension {} and a padding of {} on "
                             "both sides, expected the extent of a window, {}, or more",
                             what, dim.in, i, dim.windows.padding, dim.windows.extent()));
    out.push_back(dim.out);
  }
  return dims;
}

/// Checks the operands of a convolution, by what takes their parts.
static Expected<ConvCall> checkConvOf(SignatureChecker &check, ConvKind kind, const TensorType &x,
                                      const TensorType &w, const TensorType &y) {
  WindowAttributes attributes = readWindows(check);
  int64_t spatial = static_cast<int64_t>(attributes.strides.size());
  int64_t leading = x.rank() - spatial;
  if (!check.failed() && ((leading != 2 && leading != 3) || w.rank() != x.rank()))
    check.fail(fmt::format("the input of the convolution is {} and its weight {}, expected {} "
                           "dimensions of both, or {} with groups",
                           x.str(), w.str(), spatial + 2, spatial + 3));
  if (check.failed())
    return *check.finish();

  auto at = [](const TensorType &type, int64_t dim) {
    return type.shape[static_cast<size_t>(dim)];
  };
  ConvCall call;
  call.kind = kind;
  call.batch = at(x, 0);
  call.groups = leading == 3 ? at(x, 1) : 1;
  call.inChannels = at(x, leading - 1);
  call.outChannels = at(w, leading - 2);
  std::span<const int64_t> sizes(w.shape.end() - spatial, w.shape.end());
  if (at(w, leading - 1) != call.inChannels || (leading == 3 && at(w, 0) != call.groups) ||
      std::any_of(sizes.begin(), sizes.end(),
                  [](int64_t size) { return size < 1 || size > kMaxWindowNumber; }))
    check.fail(fmt::format("the weight of the convolution is {}, expected {} groups, {} input "
                           "channels and sizes from 1 to {}, as its input is {}",
                           w.str(), call.groups, call.inChannels, kMaxWindowNumber, x.str()));
  if (check.failed())
    return *check.finish();
  std::vector<int64_t> shape(x.shape.begin(), x.shape.begin() + leading - 1);
  shape.push_back(call.outChannels);
  call.dims = makeDims(check, "the input of the convolution",
                       {x.shape.end() - spatial, x.shape.end()}, sizes, attributes, shape);
  if (!check.failed() && y.shape != shape)
    check.fail(fmt::format("the result of the convolution is {}, expected {}, as its input is {} "
                           "and its weight {}",
                           y.str(), TensorType{y.dtype, shape}.str(), x.str(), w.str()));
  if (MaybeError error = check.finish())
    return *error;
  return call;
}

/// Checks a call of two operands of one float type, whose result has it too, or the wide type if
/// `isWide`.
static Expected<ConvCall> checkConvCall(const KernelSignature &signature, ConvKind kind) {
  SignatureChecker check(signature, 2, 1);
  DType dtype = check.floatInput(0).dtype;
  DType out = kind == ConvKind::WeightGrad ? wideType(dtype) : dtype;
  check.expectInput(1, withElements(check.input(1), dtype));
  check.expectOutput(0, withElements(check.output(0), out));
  const TensorType &first = check.input(0), &second = check.input(1), &result = check.output(0);
  Expected<ConvCall> call =
      kind == ConvKind::Forward     ? checkConvOf(check, kind, first, second, result)
      : kind == ConvKind::InputGrad ? checkConvOf(check, kind, result, second, first)
                                    : checkConvOf(check, kind, first, result, second);
  if (!call)
    return call.error();
  call->dtype = dtype;
  call->out = out;
  return call;
}

Expected<ConvCall> checkConv(const KernelSignature &signature) {
  return checkConvCall(signature, ConvKind::Forward);
}
Expected<ConvCall> checkConvInputGrad(const KernelSignature &signature) {
  return checkConvCall(signature, ConvKind::InputGrad);
}
Expected<ConvCall> checkConvWeightGrad(const KernelSignature &signature) {
  return checkConvCall(signature, ConvKind::WeightGrad);
}

/// The pooling of x with the result y. The caller checks the types of further operands.
static Expected<PoolCall> checkPool(SignatureChecker &check, const TensorType &x,
                                    const TensorType &y) {
  std::vector<int64_t> sizes = check.intsAttribute("window");
  WindowAttributes attributes = readWindows(check, sizes);
  size_t spatial = attributes.strides.size();
  if (!check.failed() && x.shape.size() < spatial)
    check.fail(fmt::format("input 0 is {}, expected at least {} dimensions", x.str(), spatial));
  if (check.failed())
    return *check.finish();
  auto split = x.shape.end() - static_cast<std::ptrdiff_t>(spatial);
  std::vector<int64_t> shape(x.shape.begin(), split);
  PoolCall call;
  call.dtype = x.dtype;
  call.planes = 1;
  for (int64_t size : shape)
    call.planes *= size;
  call.dims = makeDims(check, "input 0", {split, x.shape.end()}, sizes, attributes, shape);
  TensorType expected{x.dtype, shape};
  if (!check.failed() && y != expected)
    check.fail(
        fmt::format("the maxima of {} are {}, expected {}", x.str(), y.str(), expected.str()));
  if (MaybeError error = check.finish())
    return *error;
  return call;
}

Expected<PoolCall> checkMaxPool(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  return checkPool(check, check.floatInput(0), check.output(0));
}

Expected<PoolCall> checkMaxPoolGrad(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  const TensorType &x = check.floatInput(0);
  check.expectOutput(0, x);
  return checkPool(check, x, check.input(1));
}

} // namespace dtc
