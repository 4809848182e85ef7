//===- StepStatePlan.cpp - Step state in plans for tests ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/plans/StepStatePlan.h"

#include "runtime/train/TrainOptions.h"

namespace dtc::runtime::testing {

uint32_t StepStatePlan::addState(const char *name, DType dtype, plan::State::Kind kind) {
  plan::State &state = builder.state(name, dtype, {}, {});
  state.set_kind(kind);
  if (kind == plan::State::LOSS_SCALE || kind == plan::State::GROWTH_INTERVAL)
    state.mutable_init()->set_kind(plan::Init::ONES);
  return state.buffer();
}

StepStatePlan::StepStatePlan(PlanBuilder &builder, bool scalesLoss)
    : builder(builder), scalesLoss(scalesLoss) {
  plan::Input &given = builder.input("learning_rates", DType::F32, {kNumTestRates}, {{}});
  given.set_role(plan::Input::LEARNING_RATES);
  rates = given.buffer();
  if (!scalesLoss)
    return;
  scale = addState("dtc.loss_scale", DType::F32, plan::State::LOSS_SCALE);
  good = addState("dtc.good_steps", DType::I32, plan::State::GOOD_STEPS);
  interval = addState("dtc.growth_interval", DType::I32, plan::State::GROWTH_INTERVAL);
}

uint32_t StepStatePlan::constant(DType dtype, double value) {
  uint32_t buffer = builder.buffer(dtype, {}, plan::Buffer::CONSTANT);
  (*builder.kernel("fill", {}, {buffer}).mutable_attributes())["value"] = floatAttribute(value);
  return buffer;
}

void StepStatePlan::computeScalars() {
  plan::Input &first = builder.input("first_step", DType::I32, {}, {});
  first.set_role(plan::Input::FIRST_STEP);
  firstStep = first.buffer();
  applied = addState("dtc.applied_steps", DType::I32, plan::State::APPLIED_STEPS);
  skipped = addState("dtc.skipped_steps", DType::I32, plan::State::SKIPPED_STEPS);
  uint32_t steps = scalar(DType::I32), index = scalar(DType::I32), next = scalar(DType::I32);
  rate = scalar(DType::F32);
  number = scalar(DType::F32);
  builder.kernel("add", {applied, skipped}, {steps});
  builder.kernel("sub", {steps, firstStep}, {index});
  builder.kernel("pick", {rates, index}, {rate});
  builder.kernel("add", {applied, constant(DType::I32, 1)}, {next});
  builder.kernel("convert", {next}, {number});
}

void StepStatePlan::update(uint32_t apply) {
  uint32_t one = constant(DType::I32, 1);
  uint32_t isApplied = scalar(DType::I32), isSkipped = scalar(DType::I32);
  builder.kernel("convert", {apply}, {isApplied});
  builder.kernel("sub", {one, isApplied}, {isSkipped});
  builder.kernel("add", {applied, isApplied}, {applied});
  builder.kernel("add", {skipped, isSkipped}, {skipped});
  if (!scalesLoss)
    return;
  uint32_t more = scalar(DType::I32), run = scalar(DType::I32), grows = scalar(DType::Bool);
  builder.kernel("add", {good, one}, {more});
  builder.kernel("mul", {more, isApplied}, {run});
  (*builder.kernel("compare", {run, interval}, {grows}).mutable_attributes())["predicate"] =
      stringAttribute("ge");
  uint32_t grown = scalar(DType::I32), stays = scalar(DType::I32);
  builder.kernel("convert", {grows}, {grown});
  builder.kernel("sub", {one, grown}, {stays});
  builder.kernel("mul", {run, stays}, {good});
  uint32_t twice = scalar(DType::F32), most = scalar(DType::F32), kept = scalar(DType::F32);
  uint32_t half = scalar(DType::F32), least = scalar(DType::F32);
  builder.kernel("mul", {scale, constant(DType::F32, 2)}, {twice});
  builder.kernel("minimum", {twice, constant(DType::F32, LossScaling::kHighest)}, {most});
  builder.kernel("mul", {scale, constant(DType::F32, 0.5)}, {half});
  builder.kernel("maximum", {half, constant(DType::F32, LossScaling::kLowest)}, {least});
  builder.kernel("select", {grows, most, scale}, {kept});
  builder.kernel("select", {apply, kept, least}, {scale});
}

} // namespace dtc::runtime::testing
