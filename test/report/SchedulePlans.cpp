//===- SchedulePlans.cpp - Pipelines with a given order of work -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/report/SchedulePlans.h"

#include <algorithm>

namespace dtc::runtime::testing {

SchedulePlanBuilder::SchedulePlanBuilder(const SchedulePlanShape &shape)
    : shape(shape), works(shape.devices) {
  pipelineAxis("pp", shape.devices);
  plan.mutable_axes(0)->set_bandwidth(shape.bandwidth);
  plan.mutable_axes(0)->set_latency(shape.latency);
  axis("micro", shape.microbatches, /*temporal=*/true);
  plan.set_model("a chain");
  plan.mutable_pipeline()->set_stages(shape.stages());
  for (uint32_t s = 0; s < shape.stages(); ++s) {
    inProgram(static_cast<int>(s % shape.devices));
    uint32_t x = addBuffer(), y = addBuffer(), dy = addBuffer(), dx = addBuffer();
    uint32_t dw = addBuffer();
    addTask(s, plan::Task::FORWARD, x, y);
    addTask(s, plan::Task::BACKWARD, dy, dx);
    addTask(s, plan::Task::WEIGHT, dy, dw);
  }
}

/// A task that makes `to` of `from`, which stage 0 makes for the forward pass itself, and the last
/// stage for the backward pass.
void SchedulePlanBuilder::addTask(uint32_t stage, plan::Task::Kind kind, uint32_t from,
                                  uint32_t to) {
  bool isForward = kind == plan::Task::FORWARD, moves = kind != plan::Task::WEIGHT;
  uint32_t last = shape.stages() - 1, channel = isForward ? stage : shape.stages() + stage;
  uint32_t before = isForward ? stage - 1 : stage + 1, after = isForward ? stage + 1 : stage - 1;
  bool receives = moves && stage != (isForward ? 0 : last);
  bool sends = moves && stage != (isForward ? last : 0);
  uint32_t receive = 0;
  if (receives) {
    receive = transfer(plan::Transfer::RECEIVE, before % shape.devices, channel, {from});
    receiving[channel] = task("receive." + std::to_string(channel));
    startTransfer(receive);
  }
  const char *name = isForward ? "forward." : moves ? "backward." : "weight.";
  tasks[{kind, stage}] = task(name + std::to_string(stage), kind, stage);
  program().mutable_tasks()->rbegin()->set_seconds(isForward ? shape.forward
                                                   : moves   ? shape.backward
                                                             : shape.weight);
  if (receives)
    finishTransfer(receive);
  else if (moves)
    (*kernel("fill", {}, {from}).mutable_attributes())["value"] = floatAttribute(1);
  kernel("add", {from, from}, {to});
  if (!sends)
    return;
  uint32_t outgoing = isForward ? channel + 1 : channel - 1;
  uint32_t send = transfer(plan::Transfer::SEND, after % shape.devices, outgoing, {to});
  startTransfer(send);
  sent[{kind, stage}] = {task("sent." + std::to_string(stage)), after % shape.devices, outgoing};
  finishTransfer(send);
}

void SchedulePlanBuilder::work(uint32_t device, const std::vector<PipelineWork> &list) {
  inProgram(static_cast<int>(device));
  works[device].insert(works[device].end(), list.begin(), list.end());
}

std::shared_ptr<plan::Plan> SchedulePlanBuilder::build() {
  // Messages to a device in the order in which the others send them.
  for (uint32_t d = 0; d < shape.devices; ++d)
    for (const PipelineWork &one : works[d])
      if (auto it = sent.find({one.kind, one.stage}); it != sent.end()) {
        inProgram(static_cast<int>(it->second.receiver));
        schedule(receiving.at(it->second.channel), one.microbatch);
      }
  for (uint32_t d = 0; d < shape.devices; ++d) {
    inProgram(static_cast<int>(d));
    for (const PipelineWork &one : works[d])
      schedule(tasks.at({one.kind, one.stage}), one.microbatch);
    for (auto [device, task] : onceAfter)
      if (device == d)
        schedule(task);
    for (const PipelineWork &one : works[d])
      if (auto it = sent.find({one.kind, one.stage}); it != sent.end())
        schedule(it->second.task, one.microbatch);
  }
  return PlanBuilder::build();
}

std::shared_ptr<plan::Plan> gpipePlan(const SchedulePlanShape &shape) {
  SchedulePlanBuilder builder(shape);
  builder.plan.mutable_pipeline()->set_schedule("gpipe");
  for (uint32_t s = 0; s < shape.stages(); ++s)
    for (uint32_t m = 0; m < shape.microbatches; ++m)
      builder.work(s % shape.devices, {{plan::Task::FORWARD, s, m}});
  for (uint32_t s = shape.stages(); s-- > 0;)
    for (uint32_t m = 0; m < shape.microbatches; ++m)
      builder.work(s % shape.devices, {{plan::Task::BACKWARD, s, m}});
  return builder.build();
}

std::shared_ptr<plan::Plan> oneForwardOneBackwardPlan(const SchedulePlanShape &shape) {
  SchedulePlanBuilder builder(shape);
  builder.plan.mutable_pipeline()->set_schedule("1f1b");
  for (uint32_t d = 0; d < shape.devices; ++d) {
    uint32_t ahead = std::min(shape.devices - d, shape.microbatches);
    for (uint32_t m = 0; m < ahead; ++m)
      builder.work(d, {{plan::Task::FORWARD, d, m}});
    for (uint32_t m = 0; m < shape.microbatches; ++m) {
      builder.work(d, {{plan::Task::BACKWARD, d, m}});
      if (m + ahead < shape.microbatches)
        builder.work(d, {{plan::Task::FORWARD, d, m + ahead}});
    }
  }
  return builder.build();
}

} // namespace dtc::runtime::testing
