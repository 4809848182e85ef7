//===- OuterOptimizers.cpp - Optimizers of outer parameters --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/outer/OuterStepBuilder.h"

using namespace mlir;
using namespace dtc;

/// The outer parameters after a step of SGD with Nesterov momentum.
Value OuterStepBuilder::nesterov(const TrainedWeights &trained, BlockArgument outer, Value mean) {
  Location loc = trained.weights.getLoc();
  BlockArgument momentum = addState(trained, "outer_momentum");
  // The mean of changes is there where the mean was computed from them.
  auto difference = mean.getDefiningOp<SubOp>();
  Value gradient =
      difference ? difference.getRhs() : Value(SubOp::create(builder, loc, outer, mean));
  Value newMomentum =
      AddOp::create(builder, loc, multiplied(builder, momentum, options.momentum), gradient);
  Value direction =
      AddOp::create(builder, loc, gradient, multiplied(builder, newMomentum, options.momentum));
  update(momentum, unlessNone(newMomentum, momentum));
  return SubOp::create(builder, loc, outer, multiplied(builder, direction, options.learningRate));
}

/// The outer parameters after a step of an adaptive optimizer.
///
/// Source: Reddi et al., "Adaptive federated optimization" (ICLR 2021), algorithm 2.
Value OuterStepBuilder::adaptive(const TrainedWeights &trained, BlockArgument outer, Value mean) {
  Location loc = trained.weights.getLoc();
  BlockArgument first = addState(trained, "outer_exp_avg");
  BlockArgument second = addState(trained, "outer_exp_avg_sq");
  auto add = [&](Value a, Value b) -> Value { return AddOp::create(builder, loc, a, b); };
  auto times = [&](Value a, double by) { return multiplied(builder, a, by); };
  Value change = SubOp::create(builder, loc, mean, outer);
  Value square = MulOp::create(builder, loc, change, change);
  Value newFirst = add(times(first, options.momentum), times(change, 1 - options.momentum));
  Value newSecond;
  if (options.step == "adam") {
    newSecond = add(times(second, options.beta2), times(square, 1 - options.beta2));
  } else if (options.step == "adagrad") {
    newSecond = add(second, square);
  } else {
    Value part = times(square, 1 - options.beta2);
    Value isLess = CompareOp::create(builder, loc, second, square, ComparePredicate::Less);
    Value isMore = CompareOp::create(builder, loc, second, square, ComparePredicate::Greater);
    Value smaller =
        SelectOp::create(builder, loc, isMore, SubOp::create(builder, loc, second, part), second);
    newSecond = SelectOp::create(builder, loc, isLess, add(second, part), smaller);
  }
  update(first, unlessNone(newFirst, first));
  update(second, unlessNone(newSecond, second));
  Value root = SqrtOp::create(builder, loc, newSecond);
  Value direction = DivOp::create(builder, loc, newFirst, add(root, splat(root, options.tau)));
  return add(outer, times(direction, options.learningRate));
}

/// Gives the states of the outer step the values that they have before the first one.
void OuterStepBuilder::begin(const TrainedWeights &trained, BlockArgument outer) {
  update(outer, trained.weights);
  if (hasMoments())
    update(addState(trained, "outer_exp_avg_sq"),
           splat(trained.weights, options.tau * options.tau));
}
