//===- SchedulePlans.h - Pipelines with a given order of work ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_REPORT_SCHEDULEPLANS_H
#define DTC_TEST_REPORT_SCHEDULEPLANS_H

#include "test/lib/plans/PlanBuilder.h"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace dtc::runtime::testing {

/// One microbatch's work at one stage.
struct PipelineWork {
  plan::Task::Kind kind = plan::Task::FORWARD;
  uint32_t stage = 0;
  uint32_t microbatch = 0;
};

struct SchedulePlanShape {
  uint32_t devices = 2;
  uint32_t chunks = 1; // of each device; stage s lies on device s mod devices
  uint32_t microbatches = 4;
  // Seconds of one execution.
  double forward = 1;
  double backward = 1;
  double weight = 1; // of schedules that have WEIGHT tasks
  // The link between the devices.
  double bandwidth = 1e30;
  double latency = 1e-30;

  uint32_t stages() const { return devices * chunks; }
};

/// Builds a plan on pp=devices. The messages from stage to stage are f32[2,4] (32 bytes): to stage
/// s on channel s, the gradients to stage s on channel stages + s. All receives are started before
/// the first work, in the order of the sends, and every buffer has a slot for each microbatch, so
/// that any order of work that heeds the data is a valid one. Sends start at the end of the task
/// that makes the tensors, and are finished at the end of the device's schedule.
class SchedulePlanBuilder : public PlanBuilder {
public:
  explicit SchedulePlanBuilder(const SchedulePlanShape &shape);

  /// Appends to a device's schedule, and goes on in its program.
  void work(uint32_t device, const std::vector<PipelineWork> &list);
  /// Runs a task once, after the work of a device.
  void runOnce(uint32_t device, uint32_t task) { onceAfter.emplace_back(device, task); }
  /// Ends every schedule by finishing the sends.
  std::shared_ptr<plan::Plan> build();

private:
  uint32_t addBuffer() {
    return slotted(DType::F32, {2, 4}, shape.microbatches, plan::Buffer::ACTIVATION);
  }
  void addTask(uint32_t stage, plan::Task::Kind kind, uint32_t from, uint32_t to);

  SchedulePlanShape shape;
  std::map<std::pair<plan::Task::Kind, uint32_t>, uint32_t> tasks; // of a kind and a stage
  struct Sent {
    uint32_t task; // finishes the send
    uint32_t receiver, channel;
  };
  std::map<std::pair<plan::Task::Kind, uint32_t>, Sent> sent;
  std::map<uint32_t, uint32_t> receiving; // by channel: the task that starts the receive
  std::vector<std::pair<uint32_t, uint32_t>> onceAfter; // device and task
  std::vector<std::vector<PipelineWork>> works;         // by device
};

/// All forwards, then all backwards.
std::shared_ptr<plan::Plan> gpipePlan(const SchedulePlanShape &shape);
/// One forward, one backward: device d has at most devices - d microbatches under way.
std::shared_ptr<plan::Plan> oneForwardOneBackwardPlan(const SchedulePlanShape &shape);

} // namespace dtc::runtime::testing

#endif // DTC_TEST_REPORT_SCHEDULEPLANS_H
