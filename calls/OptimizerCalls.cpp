//===- OptimizerCalls.cpp - Calls of optimizers ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/OptimizerCalls.h"

#include "calls/SignatureChecker.h"

namespace dtc {

static OptimizerConstants readConstants(SignatureChecker &check, OptimizerRule rule) {
  OptimizerConstants constants;
  if (rule == OptimizerRule::Sgd) {
    constants.momentum = check.floatAttribute("momentum");
    constants.weightDecay = check.floatAttribute("weight_decay");
    return constants;
  }
  constants.beta1 = check.floatAttributeInRange("beta1", 0, 1);
  constants.beta2 = check.floatAttributeInRange("beta2", 0, 1);
  constants.weightDecay = check.floatAttribute("weight_decay");
  if (rule != OptimizerRule::Lion)
    constants.eps = check.floatAttribute("eps");
  return constants;
}

Expected<OptimizerCall> checkOptimizer(const KernelSignature &signature, OptimizerRule rule) {
  OptimizerOperands operands = operandsOf(rule);
  SignatureChecker check(signature, operands.numInputs(), operands.numOutputs());
  const TensorType &p = check.wideInput(0);
  for (size_t i = 1; i < operands.learningRate(); ++i)
    check.expectInput(i, p);
  for (size_t i = operands.learningRate(); i < operands.apply(); ++i)
    check.expectInput(i, TensorType{p.dtype, {}});
  check.expectInput(operands.apply(), TensorType{DType::Bool, {}});
  for (size_t i = 0; i < operands.numOutputs(); ++i)
    check.expectOutput(i, p);
  OptimizerConstants constants = readConstants(check, rule);
  if (MaybeError error = check.finish())
    return *error;
  return OptimizerCall{constants, p.dtype, p.numElements()};
}

} // namespace dtc
