//===- TestPlans.h - Plans that several tests use -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_TESTPLANS_H
#define DTC_TEST_LIB_PLANS_TESTPLANS_H

#include "plan/plan.pb.h"

#include <memory>

namespace dtc::runtime::testing {

/// How the training plan is spread.
struct TrainingStrategy {
  int64_t dp = 1;           // devices that share the batch
  int64_t tp = 1;           // devices that share the parameter
  int64_t microbatches = 1; // more than 1 adds a temporal axis
};

/// A small plan with all that training needs. The parameter "w", f32[16,4] (f32[64] in files),
/// starts as normal(1) and follows the gradient of loss = sum(w * w) with SGD and momentum 0.5,
/// except in steps whose "grad_norm" is not finite.
/// Inputs: i32 "tokens" [8, 6] below 256 and the learning rate. Outputs: "loss" and "grad_norm"
/// before the update, and "token_sum", the sum of all tokens.
std::shared_ptr<plan::Plan> trainingPlan(const TrainingStrategy &strategy = {});

/// A plan without a learning rate: "token_sum" and "values" (the tokens as f32) from "tokens".
std::shared_ptr<plan::Plan> forwardPlan();

/// A plan with collectives of all kinds, buckets among them, on a mesh of a x b, which divide 8. It
/// runs its task twice and replaces its state "w" each time. With `async`, some collectives run
/// beside kernels and others are queued after those; the results are the same.
std::shared_ptr<plan::Plan> overlapPlan(bool async, int64_t a = 2, int64_t b = 2);

/// A plan that calls most kernels of docs/kernels.md once, and every collective, on a mesh of 2
/// x 2. Not a model: it exists to be checked and run.
std::shared_ptr<plan::Plan> kernelPlan();

/// A plan of two stages on a mesh of pp=2 x dp, three microbatches in the order of 1F1B. Parameters
/// "w0" and "w1", f32[1,4], start as uniform(1) and follow the gradient of loss = sum over the rows
/// of "x", f32[3 * dp, 4], of (x * w0 * w1)^2, with SGD (momentum 0, slots "w0.momentum",
/// "w1.momentum") and the learning rate "lr". Outputs: "loss" of the second program and "grad_sum",
/// the sum of all gradients' elements, of the first, for which a scalar is sent outside the loop.
std::shared_ptr<plan::Plan> pipelinePlan(int64_t dp = 1);

/// Lets what the first program of that plan sends (buffer 6) and what it receives in the loop (7)
/// share four slots, not in turn.
void shareSlots(plan::Program &program);

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_PLANS_TESTPLANS_H
