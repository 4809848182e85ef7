//===- StepStatePlan.h - Step state in plans for tests --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_STEPSTATEPLAN_H
#define DTC_TEST_LIB_PLANS_STEPSTATEPLAN_H

#include "test/lib/plans/PlanBuilder.h"

namespace dtc::runtime::testing {

/// How many learning rates the plans take at once.
inline constexpr int64_t kNumTestRates = 4;

/// The step state of a plan that trains, as dtc-build-train-step builds it, of f32.
class StepStatePlan {
public:
  /// Adds the input LEARNING_RATES and what belongs to the loss scale to the program.
  StepStatePlan(PlanBuilder &builder, bool scalesLoss = false);

  /// Adds the input FIRST_STEP, the counters and the kernels that compute the scalars to the task.
  /// Called once, before these are used.
  void computeScalars();
  uint32_t learningRate() const { return rate; }
  uint32_t step() const { return number; }
  uint32_t lossScale() const { return scale; }

  /// Adds the kernels that update the state; `apply` is a bool.
  void update(uint32_t apply);

private:
  uint32_t scalar(DType dtype) { return builder.buffer(dtype, {}); }
  uint32_t constant(DType dtype, double value);
  uint32_t addState(const char *name, DType dtype, plan::State::Kind kind);

  PlanBuilder &builder;
  bool scalesLoss;
  uint32_t rates = 0, firstStep = 0, applied = 0, skipped = 0, scale = 0, good = 0, interval = 0;
  uint32_t rate = 0, number = 0;
};

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_PLANS_STEPSTATEPLAN_H
