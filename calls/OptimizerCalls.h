//===- OptimizerCalls.h - Calls of optimizers -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_OPTIMIZERCALLS_H
#define DTC_CALLS_OPTIMIZERCALLS_H

#include "calls/KernelSignature.h"
#include "support/Error.h"

namespace dtc {

/// The constants of the rules; a rule leaves those at 0 that it does not have.
struct OptimizerConstants {
  double beta1 = 0, beta2 = 0, eps = 0, momentum = 0, weightDecay = 0;
};

enum class OptimizerRule { AdamW, Adam, Sgd, Lion };

/// The operands of a call: p, g, the moments, then the scalars lr, step (if the rule has it),
/// grad_scale and apply. The results: p and the moments.
struct OptimizerOperands {
  size_t numMoments;
  bool hasStep;

  static constexpr size_t firstMoment = 2;
  constexpr size_t learningRate() const { return firstMoment + numMoments; }
  constexpr size_t step() const { return learningRate() + 1; }
  constexpr size_t gradScale() const { return learningRate() + (hasStep ? 2 : 1); }
  constexpr size_t apply() const { return gradScale() + 1; }
  constexpr size_t numInputs() const { return apply() + 1; }
  constexpr size_t numOutputs() const { return 1 + numMoments; }
};

/// The operands of a rule.
constexpr OptimizerOperands operandsOf(OptimizerRule rule) {
  bool isAdam = rule == OptimizerRule::AdamW || rule == OptimizerRule::Adam;
  return {isAdam ? size_t{2} : size_t{1}, isAdam};
}

struct OptimizerCall {
  OptimizerConstants constants;
  DType dtype = DType::F32;
  int64_t count = 0; // of parameters
};

/// Checks the call against its row of docs/kernels.md.
Expected<OptimizerCall> checkOptimizer(const KernelSignature &signature, OptimizerRule rule);

} // namespace dtc

#endif // DTC_CALLS_OPTIMIZERCALLS_H
