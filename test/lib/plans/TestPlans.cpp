//===- TestPlans.cpp - Plans that several tests use -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/plans/TestPlans.h"

#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/StepStatePlan.h"

#include <limits>

namespace dtc::runtime::testing {

namespace {

class TrainingPlanBuilder : public PlanBuilder {
public:
  explicit TrainingPlanBuilder(const TrainingStrategy &strategy) : strategy(strategy) {
    axis("dp", strategy.dp);
    axis("tp", strategy.tp);
    if (strategy.microbatches > 1)
      axis("micro", strategy.microbatches, /*temporal=*/true);
    addBindings();
    task("forward");
    addTokenSum();
    task("update");
    addUpdate();
    for (int64_t m = 0; m < strategy.microbatches; ++m)
      schedule(0, static_cast<uint32_t>(m));
    schedule(1);
  }

private:
  void addBindings() {
    plan.set_model("a square");
    plan::State &parameter = state("w", DType::F32, {16, 4}, {{"tp"}, {}});
    parameter.clear_file_shape();
    parameter.add_file_shape(64);
    parameter.mutable_init()->set_kind(plan::Init::NORMAL);
    parameter.mutable_init()->set_scale(1);
    plan::State &slot = state("w.momentum", DType::F32, {16, 4}, {{"tp"}, {}});
    slot.set_parameter("w");
    slot.set_kind(plan::State::OPTIMIZER);
    plan::Input &tokensInput = input("tokens", DType::I32, {8, 6}, {{"dp"}, {}});
    tokensInput.set_index_limit(256);
    w = parameter.buffer();
    momentum = slot.buffer();
    tokens = tokensInput.buffer();
    stepState.emplace(*this);
    tokenSum = buffer(DType::F32, {}, plan::Buffer::OUTPUT);
    loss = buffer(DType::F32, {}, plan::Buffer::OUTPUT);
    gradNorm = buffer(DType::F32, {}, plan::Buffer::OUTPUT);
    output("loss", DType::F32, {}, {}, loss);
    output("grad_norm", DType::F32, {}, {}, gradNorm);
    output("token_sum", DType::F32, {}, {}, tokenSum);
  }

  void addTokenSum() {
    int64_t rows = 8 / strategy.dp / strategy.microbatches;
    uint32_t slice = tokens;
    if (strategy.microbatches > 1) {
      slice = buffer(DType::I32, {rows, 6});
      plan::KernelCall &call = kernel("shard_slice", {tokens}, {slice});
      (*call.mutable_attributes())["dim"] = intAttribute(0);
      (*call.mutable_attributes())["axes"] = stringsAttribute({"micro"});
    }
    uint32_t values = buffer(DType::F32, {rows, 6});
    kernel("convert", {slice}, {values});
    if (strategy.microbatches == 1)
      return addSum(values, tokenSum, {0, 1});
    uint32_t partial = buffer(DType::F32, {});
    addSum(values, partial, {0, 1});
    plan::KernelCall &call = kernel("accumulate", {partial}, {tokenSum});
    (*call.mutable_attributes())["axis"] = stringAttribute("micro");
  }

  void addUpdate() {
    collective(plan::Collective::ALL_REDUCE, {"dp"}, tokenSum, tokenSum);
    uint32_t square = buffer(DType::F32, {16 / strategy.tp, 4});
    uint32_t gradient = buffer(DType::F32, {16 / strategy.tp, 4}, plan::Buffer::GRADIENT);
    uint32_t partial = buffer(DType::F32, {});
    uint32_t one = buffer(DType::F32, {}, plan::Buffer::CONSTANT);
    uint32_t largest = buffer(DType::F32, {}, plan::Buffer::CONSTANT);
    uint32_t apply = buffer(DType::Bool, {});
    kernel("mul", {w, w}, {square});
    addSum(square, partial, {0, 1});
    collective(plan::Collective::ALL_REDUCE, {"tp"}, partial, loss);
    kernel("add", {w, w}, {gradient});
    kernel("mul", {gradient, gradient}, {square});
    addSum(square, partial, {0, 1});
    collective(plan::Collective::ALL_REDUCE, {"tp"}, partial, gradNorm);
    kernel("sqrt", {gradNorm}, {gradNorm});
    (*kernel("fill", {}, {one}).mutable_attributes())["value"] = floatAttribute(1);
    (*kernel("fill", {}, {largest}).mutable_attributes())["value"] =
        floatAttribute(std::numeric_limits<float>::max());
    plan::KernelCall &isFinite = kernel("compare", {gradNorm, largest}, {apply});
    (*isFinite.mutable_attributes())["predicate"] = stringAttribute("le");
    stepState->computeScalars();
    plan::KernelCall &sgd = kernel(
        "sgd", {w, gradient, momentum, stepState->learningRate(), one, apply}, {w, momentum});
    (*sgd.mutable_attributes())["momentum"] = floatAttribute(0.5);
    (*sgd.mutable_attributes())["weight_decay"] = floatAttribute(0);
    stepState->update(apply);
  }

  void addSum(uint32_t from, uint32_t to, const std::vector<int64_t> &dims) {
    plan::KernelCall &call = kernel("reduce", {from}, {to});
    (*call.mutable_attributes())["kind"] = stringAttribute("sum");
    (*call.mutable_attributes())["dims"] = intsAttribute(dims);
  }

  TrainingStrategy strategy;
  std::optional<StepStatePlan> stepState;
  uint32_t w = 0, momentum = 0, tokens = 0, tokenSum = 0, loss = 0, gradNorm = 0;
};

} // namespace

std::shared_ptr<plan::Plan> trainingPlan(const TrainingStrategy &strategy) {
  return TrainingPlanBuilder(strategy).build();
}

std::shared_ptr<plan::Plan> forwardPlan() {
  PlanBuilder builder;
  uint32_t tokens = builder.input("tokens", DType::I32, {4, 6}, {{}, {}}).buffer();
  uint32_t values = builder.buffer(DType::F32, {4, 6}, plan::Buffer::OUTPUT);
  uint32_t sum = builder.buffer(DType::F32, {}, plan::Buffer::OUTPUT);
  builder.task("forward");
  builder.kernel("convert", {tokens}, {values});
  plan::KernelCall &reduce = builder.kernel("reduce", {values}, {sum});
  (*reduce.mutable_attributes())["kind"] = stringAttribute("sum");
  (*reduce.mutable_attributes())["dims"] = intsAttribute({0, 1});
  builder.schedule(0);
  builder.output("token_sum", DType::F32, {}, {}, sum);
  builder.output("values", DType::F32, {4, 6}, {{}, {}}, values);
  return builder.build();
}

} // namespace dtc::runtime::testing
