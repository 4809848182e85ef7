//===- ExplainedPlan.h - A plan with reasons, links and buckets -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_REPORT_EXPLAINEDPLAN_H
#define DTC_TEST_REPORT_EXPLAINEDPLAN_H

#include "test/lib/plans/PlanBuilder.h"

namespace dtc::runtime::testing {

/// A plan on dp=2 and tp=4, which the compiler took apart into tp.0=2 and tp.1=2, with 3
/// microbatches. The plan states the link of tp.0 and the bandwidth of tp.1, and nothing of dp.
/// Task "micro_step" runs once a microbatch:
///   0, 1  all_reduce over tp of f32[64,4] (1024 bytes), in layers h.0.attn and h.1.attn
///   2     all_gather over tp.1 of f32[8,4] (128 bytes), from an unknown place, without a reason
/// Task "finish" runs once:
///   0     all_reduce over dp, a bucket of two gradients f32[64,4] and a norm f32[], asynchronous
///   1     waits for it
class ExplainedPlanBuilder : public PlanBuilder {
public:
  ExplainedPlanBuilder() {
    plan.set_model("explained");
    addMesh();
    addReasons();
    uint32_t x = input("x", DType::F32, {128, 4}, {{"dp"}, {}}).buffer(); // f32[64,4]
    uint32_t part = input("part", DType::F32, {8, 4}, {{}, {}}).buffer();
    uint32_t sum = buffer(DType::F32, {64, 4}), gathered = buffer(DType::F32, {16, 4});
    uint32_t norm = buffer(DType::F32, {}, plan::Buffer::OUTPUT);
    task("micro_step");
    collective(plan::Collective::ALL_REDUCE, {"tp.0", "tp.1"}, x, sum).set_reason(1);
    last().set_location(1);
    collective(plan::Collective::ALL_REDUCE, {"tp.0", "tp.1"}, x, sum).set_reason(2);
    last().set_location(2);
    collective(plan::Collective::ALL_GATHER, {"tp.1"}, part, gathered);
    uint32_t gradients[] = {buffer(DType::F32, {64, 4}), buffer(DType::F32, {64, 4})};
    uint32_t one = buffer(DType::F32, {});
    (*kernel("fill", {}, {one}).mutable_attributes())["value"] = floatAttribute(1);
    for (auto [value, total] :
         {std::pair(one, norm), std::pair(sum, gradients[0]), std::pair(sum, gradients[1])})
      (*kernel("accumulate", {value}, {total}).mutable_attributes())["axis"] =
          stringAttribute("micro");
    task("finish");
    collective(plan::Collective::ALL_REDUCE, {"dp"}, gradients[0], gradients[0]).set_reason(3);
    for (auto [value, reason] : {std::pair(gradients[1], 4u), std::pair(norm, 0u)}) {
      plan::CollectiveTensor *tensor = last().mutable_collective()->add_tensors();
      tensor->set_input(value);
      tensor->set_output(value);
      tensor->set_reason(reason);
    }
    output("norm", DType::F32, {}, {}, norm);
    for (uint32_t m = 0; m < 3; ++m)
      schedule(0, m);
    schedule(1);
  }

  /// As if the bucket ran asynchronously.
  void makeAsync() {
    plan::Task &task = *program().mutable_tasks(1);
    task.mutable_instructions(0)->mutable_collective()->set_async(true);
    task.add_instructions()->mutable_wait()->set_instruction(0);
  }

  /// The instruction that was added last.
  plan::Instruction &last() {
    plan::Task &task = *program().mutable_tasks(program().tasks_size() - 1);
    return *task.mutable_instructions(task.instructions_size() - 1);
  }

private:
  void addMesh() {
    axis("dp", 2);
    axis("tp.0", 2);
    axis("tp.1", 2);
    axis("micro", 3, /*temporal=*/true);
    for (int part : {1, 2}) {
      plan.mutable_axes(part)->set_sub_axis_of("tp");
      plan.mutable_axes(part)->set_bandwidth(100e9);
    }
    plan.mutable_axes(1)->set_latency(2e-6);
  }

  void addReason(const std::string &value, const std::string &from, const std::string &to,
                 uint32_t producer, uint32_t consumer, const std::string &remedy) {
    plan::Reason *reason = plan.add_reasons();
    reason->set_value(value);
    reason->set_from(from);
    reason->set_to(to);
    reason->set_producer(producer);
    reason->set_consumer(consumer);
    reason->set_remedy(remedy);
  }

  void addReasons() {
    for (const char *location : {"h.0.attn", "h.1.attn", "h.0.mlp", "h.1.mlp"})
      plan.add_locations(location);
    plan.add_reasons();
    addReason("result of dtc.einsum", "[{dp}, {}] partial sum {tp}", "[{dp}, {}]", 1, 3,
              "do not shard heads");
    addReason("result of dtc.einsum", "[{dp}, {}] partial sum {tp}", "[{dp}, {}]", 2, 4,
              "do not shard heads");
    addReason("gradient of h.0.weight", "[{}, {}] partial sum {dp}", "[{}, {}]", 0, 0, "");
    addReason("gradient of h.1.weight", "[{}, {}] partial sum {dp}", "[{}, {}]", 0, 0, "");
  }
};

} // namespace dtc::runtime::testing

#endif // DTC_TEST_REPORT_EXPLAINEDPLAN_H
