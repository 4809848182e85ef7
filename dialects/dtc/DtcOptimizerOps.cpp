//===- DtcOptimizerOps.cpp - Parameter updates ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The sharding rules and in-place pairs are in DtcElementwiseOps.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/OpHelpers.h"

#include <cmath>

using namespace mlir;
using namespace dtc;

/// The labels of the constraints of expectOperands.
struct OperandLabels {
  StringRef tensors, scalars, apply;
};

/// Checks that the operands called so are tensors as p, the scalars of its elements, and `apply`
/// one truth value.
template <typename OpT>
static LogicalResult expectOperands(std::optional<Location> location, const OperandLabels &labels,
                                    typename OpT::Adaptor adaptor,
                                    ArrayRef<std::pair<StringRef, Value>> tensors,
                                    ArrayRef<std::pair<StringRef, Value>> scalars) {
  RankedTensorType p = getTensorType(adaptor.getP()), scalar = withShape(p, {});
  for (auto [name, value] : tensors)
    if (failed(expectType<OpT>(location, labels.tensors, name, value, p)))
      return failure();
  for (auto [name, value] : scalars)
    if (failed(expectType<OpT>(location, labels.scalars, name, value, scalar)))
      return failure();
  return expectType<OpT>(location, labels.apply, "apply", adaptor.getApply(), getMaskType(scalar));
}

/// Checks that a hyperparameter is in [0, limit).
template <typename OpT>
static LogicalResult expectInRange(std::optional<Location> location, StringRef label,
                                   StringRef name, double value, double limit) {
  if (value >= 0 && value < limit)
    return success();
  if (std::isinf(limit))
    return inferenceError<OpT>(location, label, name, " is ", value,
                               ", expected a finite number that is not negative");
  return inferenceError<OpT>(location, label, name, " is ", value,
                             ", expected at least 0 and less than ", limit);
}

/// The labels of the constraints of an op of the family of Adam.
struct AdamLabels {
  OperandLabels operands;
  StringRef betas, others;
};

template <typename OpT>
static LogicalResult inferAdamFamily(std::optional<Location> location, const AdamLabels &labels,
                                     typename OpT::Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(
          expectOperands<OpT>(location, labels.operands, adaptor,
                              {{"g", adaptor.getG()}, {"m", adaptor.getM()}, {"v", adaptor.getV()}},
                              {{"lr", adaptor.getLr()},
                               {"step", adaptor.getStep()},
                               {"grad_scale", adaptor.getGradScale()}})) ||
      failed(expectInRange<OpT>(location, labels.betas, "beta1", adaptor.getBeta1(), 1)) ||
      failed(expectInRange<OpT>(location, labels.betas, "beta2", adaptor.getBeta2(), 1)) ||
      failed(expectInRange<OpT>(location, labels.others, "eps", adaptor.getEps(), INFINITY)) ||
      failed(expectInRange<OpT>(location, labels.others, "weight_decay", adaptor.getWeightDecay(),
                                INFINITY)))
    return failure();
  types.append(3, adaptor.getP().getType());
  return success();
}

LogicalResult AdamwOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                        Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferAdamFamily<AdamwOp>(
      location, {{"adamw-c1", "adamw-c2", "adamw-c3"}, "adamw-c4", "adamw-c5"}, adaptor, types);
}

LogicalResult AdamOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                       Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferAdamFamily<AdamOp>(
      location, {{"adam-c1", "adam-c2", "adam-c3"}, "adam-c4", "adam-c5"}, adaptor, types);
}

/// Checks the common part of the optimizers with one buffer.
template <typename OpT>
static LogicalResult inferMomentum(std::optional<Location> location, const OperandLabels &labels,
                                   StringRef decayLabel, typename OpT::Adaptor adaptor,
                                   SmallVectorImpl<Type> &types) {
  if (failed(expectOperands<OpT>(
          location, labels, adaptor, {{"g", adaptor.getG()}, {"m", adaptor.getM()}},
          {{"lr", adaptor.getLr()}, {"grad_scale", adaptor.getGradScale()}})) ||
      failed(expectInRange<OpT>(location, decayLabel, "weight_decay", adaptor.getWeightDecay(),
                                INFINITY)))
    return failure();
  types.append(2, adaptor.getP().getType());
  return success();
}

LogicalResult SgdOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                      Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(
          inferMomentum<SgdOp>(location, {"sgd-c1", "sgd-c2", "sgd-c3"}, "sgd-c4", adaptor, types)))
    return failure();
  return expectInRange<SgdOp>(location, "sgd-c4", "momentum", adaptor.getMomentum(), INFINITY);
}

LogicalResult LionOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                       Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(inferMomentum<LionOp>(location, {"lion-c1", "lion-c2", "lion-c3"}, "lion-c5", adaptor,
                                   types)) ||
      failed(expectInRange<LionOp>(location, "lion-c4", "beta1", adaptor.getBeta1(), 1)))
    return failure();
  return expectInRange<LionOp>(location, "lion-c4", "beta2", adaptor.getBeta2(), 1);
}
