//===- RowCalls.cpp - Calls of kernels that work on rows ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/RowCalls.h"

#include "calls/SignatureChecker.h"

#include <fmt/format.h>

namespace dtc {

static RowShape rowsOf(const TensorType &type) {
  return {type.dtype, numRows(type), type.shape.back()};
}

/// The scale, 1 where it is absent.
static double checkScale(SignatureChecker &check) {
  return check.hasAttribute("scale") ? check.floatAttribute("scale") : 1;
}

Expected<SoftmaxCall> checkSoftmax(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  bool causal = check.hasAttribute("causal") && check.boolAttribute("causal");
  double scale = checkScale(check);
  const TensorType &x = check.floatInput(0, causal ? 2 : 1);
  check.expectOutput(0, x);
  if (!check.failed() && causal && x.shape.end()[-2] > x.shape.back())
    check.fail("input 0 is " + x.str() +
               ", expected no more rows than columns, as 'causal' is true");
  if (MaybeError error = check.finish())
    return *error;
  return SoftmaxCall{rowsOf(x), scale, causal, causal ? x.shape.end()[-2] : 1};
}

Expected<SoftmaxCall> checkSoftmaxGrad(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  double scale = checkScale(check);
  const TensorType &y = check.floatInput(0, 1);
  check.expectInput(1, y);
  check.expectOutput(0, y);
  if (MaybeError error = check.finish())
    return *error;
  return SoftmaxCall{rowsOf(y), scale};
}

/// Optional, and 0 without it.
static double checkSmoothing(SignatureChecker &check) {
  if (!check.hasAttribute("label_smoothing"))
    return 0;
  double smoothing = check.floatAttribute("label_smoothing");
  if (!(smoothing >= 0 && smoothing < 1))
    check.failAttribute("label_smoothing", fmt::format("{}", smoothing),
                        "a number from 0 to less than 1");
  return smoothing;
}

Expected<CrossEntropyCall> checkCrossEntropy(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 2);
  const TensorType &logits = check.floatInput(0, 1);
  TensorType row = withElements(dropLast(logits), wideType(logits.dtype));
  check.expectInput(1, withElements(row, DType::I32));
  check.expectOutput(0, row);
  check.expectOutput(1, row);
  double smoothing = checkSmoothing(check);
  if (MaybeError error = check.finish())
    return *error;
  return CrossEntropyCall{rowsOf(logits), smoothing};
}

Expected<CrossEntropyCall> checkCrossEntropyGrad(const KernelSignature &signature) {
  SignatureChecker check(signature, 4, 1);
  const TensorType &logits = check.floatInput(0, 1);
  TensorType row = withElements(dropLast(logits), wideType(logits.dtype));
  check.expectInput(1, withElements(row, DType::I32));
  check.expectInput(2, row);
  check.expectInput(3, row);
  check.expectOutput(0, logits);
  double smoothing = checkSmoothing(check);
  int64_t width = check.failed() ? 0 : logits.shape.back(), classes = width;
  if (check.hasAttribute("classes")) {
    classes = check.intAttribute("classes");
    if (classes < width)
      check.failAttribute("classes", fmt::format("{}", classes),
                          fmt::format("at least the {} of a shard", width));
  }
  if (MaybeError error = check.finish())
    return *error;
  return CrossEntropyCall{rowsOf(logits), smoothing, classes};
}

Expected<NormCall> checkLayerNorm(const KernelSignature &signature) {
  SignatureChecker check(signature, 3, 3);
  const TensorType &x = check.floatInput(0, 1);
  TensorType statistic = withElements(dropLast(x), wideType(x.dtype));
  if (!check.failed()) {
    check.expectInput(1, TensorType{x.dtype, {x.shape.back()}});
    check.expectInput(2, TensorType{x.dtype, {x.shape.back()}});
  }
  check.expectOutput(0, x);
  check.expectOutput(1, statistic);
  check.expectOutput(2, statistic);
  double eps = check.floatAttribute("eps");
  if (MaybeError error = check.finish())
    return *error;
  return NormCall{rowsOf(x), eps};
}

Expected<NormCall> checkRmsNorm(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 2);
  const TensorType &x = check.floatInput(0, 1);
  TensorType statistic = withElements(dropLast(x), wideType(x.dtype));
  if (!check.failed())
    check.expectInput(1, TensorType{x.dtype, {x.shape.back()}});
  check.expectOutput(0, x);
  check.expectOutput(1, statistic);
  double eps = check.floatAttribute("eps");
  if (MaybeError error = check.finish())
    return *error;
  return NormCall{rowsOf(x), eps};
}

/// The gradient of a norm with `statistics` statistics of a row and equally many parameters.
static Expected<RowShape> checkNormGrad(const KernelSignature &signature, size_t statistics) {
  SignatureChecker check(signature, 3 + statistics, 1 + statistics);
  const TensorType &x = check.floatInput(0, 1);
  TensorType parameter{x.dtype, {check.failed() ? 0 : x.shape.back()}};
  TensorType statistic = withElements(dropLast(x), wideType(x.dtype));
  TensorType gradient = withElements(parameter, wideType(x.dtype));
  check.expectInput(1, parameter);
  for (size_t i = 0; i < statistics; ++i)
    check.expectInput(2 + i, statistic);
  check.expectInput(2 + statistics, x);
  check.expectOutput(0, x);
  for (size_t i = 0; i < statistics; ++i)
    check.expectOutput(1 + i, gradient);
  if (MaybeError error = check.finish())
    return *error;
  return rowsOf(x);
}

Expected<RowShape> checkLayerNormGrad(const KernelSignature &signature) {
  return checkNormGrad(signature, 2);
}
Expected<RowShape> checkRmsNormGrad(const KernelSignature &signature) {
  return checkNormGrad(signature, 1);
}

Expected<DropoutCall> checkDropout(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  const TensorType &x = check.floatInput(0);
  check.expectOutput(0, x);
  RandomMask mask = checkRandomMask(check, signature, "rate", 1, x.shape);
  if (MaybeError error = check.finish())
    return *error;
  return DropoutCall{x, std::move(mask)};
}

} // namespace dtc
