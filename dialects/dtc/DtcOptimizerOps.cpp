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

/// Checks that the operands called so are tensors as p, or scalars of its elements.
template <typename OpT>
static LogicalResult expectOperands(std::optional<Location> location, RankedTensorType p,
                                    ArrayRef<std::pair<StringRef, Value>> tensors,
                                    ArrayRef<std::pair<StringRef, Value>> scalars) {
  for (auto [name, value] : tensors)
    if (failed(expectType<OpT>(location, name, value, p)))
      return failure();
  for (auto [name, value] : scalars)
    if (failed(expectType<OpT>(location, name, value, withShape(p, {}))))
      return failure();
  return success();
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

LogicalResult AdamwOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                        Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType p = getTensorType(adaptor.getP());
  if (failed(expectOperands<AdamwOp>(
          location, p, {{"g", adaptor.getG()}, {"m", adaptor.getM()}, {"v", adaptor.getV()}},
          {{"lr", adaptor.getLr()},
           {"step", adaptor.getStep()},
           {"grad_scale", adaptor.getGradScale()}})) ||
      failed(expectInRange<AdamwOp>(location, "beta1", adaptor.getBeta1(), 1)) ||
      failed(expectInRange<AdamwOp>(location, "beta2", adaptor.getBeta2(), 1)) ||
      failed(expectInRange<AdamwOp>(location, "eps", adaptor.getEps(), INFINITY)) ||
      failed(expectInRange<AdamwOp>(location, "weight_decay", adaptor.getWeightDecay(), INFINITY)))
    return failure();
  types.append(3, p);
  return success();
}

LogicalResult SgdOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                      Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType p = getTensorType(adaptor.getP());
  if (failed(expectOperands<SgdOp>(
          location, p, {{"g", adaptor.getG()}, {"m", adaptor.getM()}},
          {{"lr", adaptor.getLr()}, {"grad_scale", adaptor.getGradScale()}})) ||
      failed(expectInRange<SgdOp>(location, "momentum", adaptor.getMomentum(), INFINITY)) ||
      failed(expectInRange<SgdOp>(location, "weight_decay", adaptor.getWeightDecay(), INFINITY)))
    return failure();
  types.append(2, p);
  return success();
}
