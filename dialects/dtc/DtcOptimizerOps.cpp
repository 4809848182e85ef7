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

/// Checks that the operands called so are tensors as p, the scalars of its elements, and `apply`
/// one truth value.
template <typename OpT>
static LogicalResult expectOperands(std::optional<Location> location, typename OpT::Adaptor adaptor,
                                    ArrayRef<std::pair<StringRef, Value>> tensors,
                                    ArrayRef<std::pair<StringRef, Value>> scalars) {
  RankedTensorType p = getTensorType(adaptor.getP()), scalar = withShape(p, {});
  for (auto [name, value] : tensors)
    if (failed(expectType<OpT>(location, name, value, p)))
      return failure();
  for (auto [name, value] : scalars)
    if (failed(expectType<OpT>(location, name, value, scalar)))
      return failure();
  return expectType<OpT>(location, "apply", adaptor.getApply(), getMaskType(scalar));
}

/// Checks that a hyperparameter is in [0, limit).
template <typename OpT>
static LogicalResult expectInRange(std::optional<Location> location, StringRef name, double value,
                                   double limit) {
  if (value >= 0 && value < limit)
    return success();
  if (std::isinf(limit))
    return inferenceError<OpT>(location, name, " is ", value,
                               ", expected a finite number that is not negative");
  return inferenceError<OpT>(location, name, " is ", value, ", expected at least 0 and less than ",
                             limit);
}

template <typename OpT>
static LogicalResult inferAdamFamily(std::optional<Location> location,
                                     typename OpT::Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(expectOperands<OpT>(
          location, adaptor, {{"g", adaptor.getG()}, {"m", adaptor.getM()}, {"v", adaptor.getV()}},
          {{"lr", adaptor.getLr()},
           {"step", adaptor.getStep()},
           {"grad_scale", adaptor.getGradScale()}})) ||
      failed(expectInRange<OpT>(location, "beta1", adaptor.getBeta1(), 1)) ||
      failed(expectInRange<OpT>(location, "beta2", adaptor.getBeta2(), 1)) ||
      failed(expectInRange<OpT>(location, "eps", adaptor.getEps(), INFINITY)) ||
      failed(expectInRange<OpT>(location, "weight_decay", adaptor.getWeightDecay(), INFINITY)))
    return failure();
  types.append(3, adaptor.getP().getType());
  return success();
}

LogicalResult AdamwOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                        Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferAdamFamily<AdamwOp>(location, adaptor, types);
}

LogicalResult AdamOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                       Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferAdamFamily<AdamOp>(location, adaptor, types);
}

/// Checks what the optimizers with one buffer share.
template <typename OpT>
static LogicalResult inferMomentum(std::optional<Location> location, typename OpT::Adaptor adaptor,
                                   SmallVectorImpl<Type> &types) {
  if (failed(
          expectOperands<OpT>(location, adaptor, {{"g", adaptor.getG()}, {"m", adaptor.getM()}},
                              {{"lr", adaptor.getLr()}, {"grad_scale", adaptor.getGradScale()}})) ||
      failed(expectInRange<OpT>(location, "weight_decay", adaptor.getWeightDecay(), INFINITY)))
    return failure();
  types.append(2, adaptor.getP().getType());
  return success();
}

LogicalResult SgdOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                      Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(inferMomentum<SgdOp>(location, adaptor, types)))
    return failure();
  return expectInRange<SgdOp>(location, "momentum", adaptor.getMomentum(), INFINITY);
}

LogicalResult LionOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                       Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(inferMomentum<LionOp>(location, adaptor, types)) ||
      failed(expectInRange<LionOp>(location, "beta1", adaptor.getBeta1(), 1)))
    return failure();
  return expectInRange<LionOp>(location, "beta2", adaptor.getBeta2(), 1);
}
