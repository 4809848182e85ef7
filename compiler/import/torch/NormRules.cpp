//===- NormRules.cpp - Normalization --------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <limits>
#include <optional>

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

namespace {
/// A norm of the channels of x [B, C, n...].
struct BatchNorm {
  Value x, weight, bias; ///< weight and bias [C]; null: ones and zeros
  double eps = 0;

  /// The operands of the op; nothing after an error.
  static std::optional<BatchNorm> read(AtenOp &op);
  int64_t channels() const { return shapeOf(x)[1]; }
  /// The elements of a channel.
  double count() const { return double(typeOf(x).getNumElements()) / double(channels()); }
  Value spread(AtenOp &op, Value ofChannels) const {
    return op.broadcastAlong(ofChannels, shapeOf(x), {1});
  }
  Value meanOf(AtenOp &op, Value values) const;
  Value reciprocalDeviation(AtenOp &op, Value variance) const;
  /// The result for distances from the mean.
  Value finish(AtenOp &op, Value distance, Value rstd) const;
};
} // namespace

std::optional<BatchNorm> BatchNorm::read(AtenOp &op) {
  BatchNorm norm{op.required("input"), op.operand("weight"), op.operand("bias"),
                 op.number("eps").value_or(1e-5)};
  if (!norm.x)
    return std::nullopt;
  auto refuse = [&](const Twine &problem) {
    op.fail(problem);
    return std::nullopt;
  };
  if (!torch::isFloat(norm.x) || shapeOf(norm.x).size() < 2)
    return refuse("has an input that is no tensor of floats with a batch and channels");
  if (!(norm.eps >= 0) || !std::isfinite(norm.eps))
    return refuse("has an eps that is no finite number of at least 0");
  Type element = typeOf(norm.x).getElementType();
  for (Value row : {norm.weight, norm.bias, op.operand("running_mean"), op.operand("running_var")})
    if (row && row.getType() != RankedTensorType::get({norm.channels()}, element))
      return refuse("has a weight, a bias or statistics that are not of the elements and the " +
                    Twine(norm.channels()) + " channels of its input");
  return norm;
}

/// The means over all dimensions but the channels: [C].
Value BatchNorm::meanOf(AtenOp &op, Value values) const {
  SmallVector<int64_t> dims{0};
  for (int64_t dim = 2, rank = int64_t(shapeOf(x).size()); dim < rank; ++dim)
    dims.push_back(dim);
  return op.scale(op.reduce(values, ReductionKind::Sum, dims, /*keep=*/false), 1 / count());
}

Value BatchNorm::reciprocalDeviation(AtenOp &op, Value variance) const {
  Value eps = op.constant(shapeOf(variance), typeOf(variance).getElementType(), this->eps);
  return op.elementwise<RsqrtOp>(op.elementwise<AddOp>({variance, eps}));
}

Value BatchNorm::finish(AtenOp &op, Value distance, Value rstd) const {
  Value factor = weight ? op.elementwise<MulOp>({rstd, weight}) : rstd;
  Value y = op.elementwise<MulOp>({distance, spread(op, factor)});
  return bias ? op.elementwise<AddOp>({y, spread(op, bias)}) : y;
}

/// Normalizes by the statistics of the batch. The results are the output, the mean, the reciprocal
/// of the deviation and, where there are running statistics, their new values.
///
/// Source: Ioffe and Szegedy, "Batch normalization" (arXiv:1502.03167), algorithm 1. The running
/// variance is that of a sample (divided by the count less 1), as PyTorch's is.
static Results convertBatchNorm(AtenOp &op) {
  std::optional<BatchNorm> norm = BatchNorm::read(op);
  if (!norm)
    return {};
  Value runningMean = op.operand("running_mean"), runningVar = op.operand("running_var");
  bool keeps = op.name() == "_native_batch_norm_legit_functional";
  if (!op.flag("training") || (keeps && !(runningMean && runningVar)))
    return {op.fail("does not train, or has no statistics to update")};
  double count = norm->count(), momentum = op.number("momentum").value_or(0.1);
  if (count < 2)
    return {op.fail("has one value for each channel, expected several to normalize")};
  Value mean = norm->meanOf(op, norm->x);
  Value distance = op.elementwise<SubOp>({norm->x, norm->spread(op, mean)});
  Value variance = norm->meanOf(op, op.elementwise<MulOp>({distance, distance}));
  Value rstd = norm->reciprocalDeviation(op, variance);
  Results results{norm->finish(op, distance, rstd), mean, rstd};
  if (!keeps)
    return results;
  auto update = [&](Value running, Value ofBatch) {
    Value kept = op.scale(running, 1 - momentum), added = op.scale(ofBatch, momentum);
    return op.elementwise<AddOp>({kept, added});
  };
  results.push_back(update(runningMean, mean));
  results.push_back(update(runningVar, op.scale(variance, count / (count - 1))));
  return results;
}

/// Normalizes by running statistics.
static Results convertBatchNormByStatistics(AtenOp &op) {
  std::optional<BatchNorm> norm = BatchNorm::read(op);
  Value mean = op.required("running_mean"), variance = op.required("running_var");
  if (!norm || !mean || !variance)
    return {};
  Value distance = op.elementwise<SubOp>({norm->x, norm->spread(op, mean)});
  return {norm->finish(op, distance, norm->reciprocalDeviation(op, variance))};
}

ArrayRef<Rule> dtc::torch::normRules() {
  static const Rule rules[] = {
      {"aten._native_batch_norm_legit", convertBatchNorm},
      {"aten._native_batch_norm_legit_functional", convertBatchNorm},
      {"aten._native_batch_norm_legit_no_training", convertBatchNormByStatistics},
      {"aten.layer_norm", convertLayerNorm},
      {"aten.rms_norm", convertRmsNorm},
  };
  return rules;
}
