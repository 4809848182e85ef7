//===- PipelinePlan.cpp - A plan of two stages ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/StepStatePlan.h"
#include "test/lib/plans/TestPlans.h"

namespace dtc::runtime::testing {

namespace {

constexpr int64_t kMicrobatches = 3;
constexpr uint32_t kActivationChannel = 0, kGradientChannel = 1, kSumChannel = 2;

/// Copies of two microbatches are alive at most in the first stage. The second works on one at a
/// time and receives the next meanwhile.
class PipelinePlanBuilder : public PlanBuilder {
public:
  explicit PipelinePlanBuilder(int64_t dp) : dp(dp) {
    pipelineAxis("pp", 2);
    axis("dp", dp);
    axis("micro", kMicrobatches, /*temporal=*/true);
    plan.set_model("two products");
    plan.mutable_pipeline()->set_schedule("1f1b");
    plan.mutable_pipeline()->set_stages(2);
    addFirst();
    inProgram(1);
    addSecond();
  }

private:
  static constexpr auto f32 = DType::F32;

  /// The parameter, its gradient and what an update needs.
  struct Weights {
    uint32_t w, momentum;
    StepStatePlan stepState;
    uint32_t gradient;
  };

  Weights addWeights(const std::string &name) {
    plan::State &parameter = state(name, f32, {1, 4}, {{}, {}});
    parameter.mutable_init()->set_kind(plan::Init::UNIFORM);
    parameter.mutable_init()->set_scale(1);
    uint32_t w = parameter.buffer();
    plan::State &momentum = state(name + ".momentum", f32, {1, 4}, {{}, {}});
    momentum.set_parameter(name);
    momentum.set_kind(plan::State::OPTIMIZER);
    uint32_t m = momentum.buffer();
    return {w, m, StepStatePlan(*this), buffer(f32, {1, 4}, plan::Buffer::GRADIENT)};
  }

  void accumulate(uint32_t from, uint32_t to) {
    (*kernel("accumulate", {from}, {to}).mutable_attributes())["axis"] = stringAttribute("micro");
  }

  void sum(uint32_t from, uint32_t to) {
    plan::KernelCall &call = kernel("reduce", {from}, {to});
    (*call.mutable_attributes())["kind"] = stringAttribute("sum");
    (*call.mutable_attributes())["dims"] = intsAttribute({0, 1});
  }

  void update(Weights &weights) {
    uint32_t one = buffer(f32, {}, plan::Buffer::CONSTANT);
    uint32_t apply = buffer(DType::Bool, {}, plan::Buffer::CONSTANT);
    for (uint32_t constant : {one, apply})
      (*kernel("fill", {}, {constant}).mutable_attributes())["value"] = floatAttribute(1);
    weights.stepState.computeScalars();
    plan::KernelCall &sgd = kernel("sgd",
                                   {weights.w, weights.gradient, weights.momentum,
                                    weights.stepState.learningRate(), one, apply},
                                   {weights.w, weights.momentum});
    (*sgd.mutable_attributes())["momentum"] = floatAttribute(0);
    (*sgd.mutable_attributes())["weight_decay"] = floatAttribute(0);
    weights.stepState.update(apply);
  }

  /// h = x * w0; the gradient of w0 is dh * x.
  void addFirst() {
    uint32_t x = input("x", f32, {kMicrobatches * dp, 4}, {{"dp"}, {}}).buffer();
    Weights weights = addWeights("w0");
    uint32_t rows = slotted(f32, {1, 4}, 2), h = slotted(f32, {1, 4}, 2);
    uint32_t dh = slotted(f32, {1, 4}, 1, plan::Buffer::GRADIENT), product = buffer(f32, {1, 4});
    uint32_t send = transfer(plan::Transfer::SEND, 1, kActivationChannel, {h});
    uint32_t receive = transfer(plan::Transfer::RECEIVE, 1, kGradientChannel, {dh});
    uint32_t ownSum = buffer(f32, {}), otherSum = buffer(f32, {});
    uint32_t allSum = buffer(f32, {}, plan::Buffer::OUTPUT);
    uint32_t receiveSum = transfer(plan::Transfer::RECEIVE, 1, kSumChannel, {otherSum});
    output("grad_sum", f32, {}, {}, allSum);

    uint32_t forward = task("forward.0", plan::Task::FORWARD, 0);
    plan::KernelCall &slice = kernel("shard_slice", {x}, {rows});
    (*slice.mutable_attributes())["dim"] = intAttribute(0);
    (*slice.mutable_attributes())["axes"] = stringsAttribute({"micro"});
    kernel("mul", {rows, weights.w}, {h});
    startTransfer(send);
    uint32_t backward = task("backward.0", plan::Task::BACKWARD, 0);
    finishTransfer(receive);
    kernel("mul", {dh, rows}, {product});
    accumulate(product, weights.gradient);
    uint32_t received = task("receive.1");
    startTransfer(receive);
    uint32_t sent = task("sent.0");
    finishTransfer(send);
    uint32_t last = task("update");
    collective(plan::Collective::ALL_REDUCE, {"dp"}, weights.gradient, weights.gradient);
    sum(weights.gradient, ownSum);
    startTransfer(receiveSum);
    finishTransfer(receiveSum);
    kernel("add", {ownSum, otherSum}, {allSum});
    update(weights);

    schedule(forward, 0);
    schedule(received, 0);
    schedule(forward, 1);
    schedule(backward, 0);
    schedule(received, 1);
    schedule(sent, 0);
    schedule(forward, 2);
    schedule(backward, 1);
    schedule(received, 2);
    schedule(backward, 2);
    schedule(sent, 1);
    schedule(sent, 2);
    schedule(last);
  }

  /// y = h * w1, loss = sum(y * y); dy = 2 y, dh = dy * w1, the gradient of w1 is dy * h.
  void addSecond() {
    Weights weights = addWeights("w1");
    uint32_t h = slotted(f32, {1, 4}, 2), y = slotted(f32, {1, 4}, 1);
    uint32_t dh = slotted(f32, {1, 4}, 1, plan::Buffer::GRADIENT);
    uint32_t square = buffer(f32, {1, 4}), rowLoss = buffer(f32, {});
    uint32_t loss = buffer(f32, {}, plan::Buffer::OUTPUT);
    uint32_t dy = buffer(f32, {1, 4}), product = buffer(f32, {1, 4}), ownSum = buffer(f32, {});
    uint32_t receive = transfer(plan::Transfer::RECEIVE, 0, kActivationChannel, {h});
    uint32_t send = transfer(plan::Transfer::SEND, 0, kGradientChannel, {dh});
    uint32_t sendSum = transfer(plan::Transfer::SEND, 0, kSumChannel, {ownSum});
    output("loss", f32, {}, {}, loss);

    uint32_t forward = task("forward.1", plan::Task::FORWARD, 1);
    finishTransfer(receive);
    kernel("mul", {h, weights.w}, {y});
    kernel("mul", {y, y}, {square});
    sum(square, rowLoss);
    accumulate(rowLoss, loss);
    uint32_t backward = task("backward.1", plan::Task::BACKWARD, 1);
    kernel("add", {y, y}, {dy});
    kernel("mul", {dy, weights.w}, {dh});
    startTransfer(send);
    kernel("mul", {dy, h}, {product});
    accumulate(product, weights.gradient);
    uint32_t received = task("receive.0");
    startTransfer(receive);
    uint32_t sent = task("sent.1");
    finishTransfer(send);
    uint32_t last = task("update");
    collective(plan::Collective::ALL_REDUCE, {"dp"}, loss, loss);
    collective(plan::Collective::ALL_REDUCE, {"dp"}, weights.gradient, weights.gradient);
    sum(weights.gradient, ownSum);
    startTransfer(sendSum);
    update(weights);
    finishTransfer(sendSum);

    schedule(received, 0);
    schedule(received, 1);
    schedule(forward, 0);
    schedule(backward, 0);
    schedule(received, 2);
    schedule(forward, 1);
    schedule(sent, 0);
    schedule(backward, 1);
    schedule(forward, 2);
    schedule(sent, 1);
    schedule(backward, 2);
    schedule(sent, 2);
    schedule(last);
  }

  int64_t dp;
};

} // namespace

std::shared_ptr<plan::Plan> pipelinePlan(int64_t dp) { return PipelinePlanBuilder(dp).build(); }

void shareSlots(plan::Program &program) {
  const std::vector<uint32_t> maps[] = {{0, 2, 1}, {1, 3, 0}};
  for (int i : {0, 1}) {
    plan::Buffer &buffer =
        *program.mutable_buffers(static_cast<int>(program.transfers(i).buffers(0)));
    buffer.set_offset(program.arena_bytes());
    buffer.set_slots(4);
    buffer.set_slot_map(static_cast<uint32_t>(program.slot_maps_size()));
    program.add_slot_maps()->mutable_slots()->Assign(maps[i].begin(), maps[i].end());
  }
  program.set_arena_bytes(program.arena_bytes() + 4 * 64);
}

} // namespace dtc::runtime::testing
