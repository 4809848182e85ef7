//===- NormRules.cpp - Normalization --------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

/// A norm of the last dimensions of x [..., n...], which are one for dtc: [..., n]. `normalize` is
/// given x and the scale and bias [n], ones and zeros where there are none.
static Results convertNorm(AtenOp &op, function_ref<Value(Value, Value, Value)> normalize) {
  Value x = op.required("input");
  std::optional<ArrayRef<int64_t>> normalized = op.integers("normalized_shape");
  if (!x || !torch::isFloat(x) || !normalized)
    return {x ? op.fail("has no floats, or no normalized shape") : x};
  SmallVector<int64_t> shape(shapeOf(x));
  if (normalized->empty() || normalized->size() > shape.size() ||
      ArrayRef<int64_t>(shape).take_back(normalized->size()) != *normalized)
    return {op.fail("has a normalized shape that is not that of the input's last dimensions")};
  double eps = op.number("eps").value_or(0);
  if (!(eps >= 0) || !std::isfinite(eps))
    return {op.fail("has an eps that is no finite number of at least 0")};
  int64_t size = 1;
  for (int64_t each : *normalized)
    size *= each;
  Type element = typeOf(x).getElementType();
  auto row = [&](StringRef name, double otherwise) -> Value {
    if (Value value = op.operand(name))
      return op.reshape(op.convert(value, element), {size});
    return op.constant({size}, element, otherwise);
  };
  Value scale = row("weight", 1), bias = row("bias", 0);
  if (!scale || !bias)
    return {};
  SmallVector<int64_t> rows(ArrayRef<int64_t>(shape).drop_back(normalized->size()));
  rows.push_back(size);
  return {op.reshape(normalize(op.reshape(x, rows), scale, bias), shape)};
}

static Results convertLayerNorm(AtenOp &op) {
  double eps = op.number("eps").value_or(1e-5);
  return convertNorm(op, [&](Value x, Value scale, Value bias) -> Value {
    return LayerNormOp::create(op.rewriter, op.loc, x, scale, bias, eps).getY();
  });
}

static Results convertRmsNorm(AtenOp &op) {
  return convertNorm(op, [&](Value x, Value scale, Value) -> Value {
    double epsilon = typeOf(x).getElementType().isF64() ? std::numeric_limits<double>::epsilon()
                                                        : std::numeric_limits<float>::epsilon();
    return RmsNormOp::create(op.rewriter, op.loc, x, scale, op.number("eps").value_or(epsilon))
        .getY();
  });
}

ArrayRef<Rule> dtc::torch::normRules() {
  static const Rule rules[] = {
      {"aten.layer_norm", convertLayerNorm},
      {"aten.rms_norm", convertRmsNorm},
  };
  return rules;
}
