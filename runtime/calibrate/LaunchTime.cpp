//===- LaunchTime.cpp - Overhead of an instruction ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Measurements.h"

#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "runtime/executor/Session.h"

#include <algorithm>

namespace dtc::runtime {

namespace {

/// One task that adds scalars, `count` times, on `devices` devices.
std::shared_ptr<const plan::Plan> additions(int64_t devices, int count) {
  auto plan = std::make_shared<plan::Plan>();
  plan->set_version(kPlanVersion);
  plan->set_producer("dtc-run calibrate");
  plan->add_locations("unknown");
  plan->add_reasons();
  plan::Axis *axis = plan->add_axes();
  axis->set_name("device");
  axis->set_size(devices);
  plan::Program *program = plan->add_programs();
  auto addScalar = [&] {
    plan::Buffer *buffer = program->add_buffers();
    buffer->set_dtype(toPlan(DType::F32));
    buffer->set_kind(toPlan(BufferKind::Activation));
    buffer->set_offset(program->arena_bytes());
    program->set_arena_bytes(program->arena_bytes() + 64);
    return static_cast<uint32_t>(program->buffers_size() - 1);
  };
  plan::Task *task = program->add_tasks();
  task->set_name("additions");
  auto addCall = [&](const char *kernel, std::vector<uint32_t> inputs, uint32_t output) {
    plan::KernelCall *call = task->add_instructions()->mutable_kernel();
    call->set_kernel(kernel);
    call->mutable_inputs()->Assign(inputs.begin(), inputs.end());
    call->add_outputs(output);
    return call;
  };
  uint32_t one = addScalar(), sum = addScalar();
  // Each sum takes the place of the one before the last.
  const uint32_t places[2] = {addScalar(), sum};
  for (uint32_t scalar : {one, sum}) {
    plan::Attribute value;
    value.set_f(1);
    (*addCall("fill", {}, scalar)->mutable_attributes())["value"] = value;
  }
  for (int i = 0; i < count; ++i) {
    uint32_t next = places[i % 2];
    if (i > 0) {
      next = static_cast<uint32_t>(program->buffers_size());
      plan::Buffer buffer = program->buffers(static_cast<int>(places[i % 2]));
      buffer.set_reuses(places[i % 2]);
      *program->add_buffers() = buffer;
    }
    addCall("add", {sum, one}, next);
    sum = next;
  }
  program->add_schedule();
  program->set_loop_begin(0);
  program->set_loop_end(1);
  return plan;
}

/// The median seconds of a step.
Expected<double> stepSeconds(const CoreContext &context, int64_t devices, int count) {
  SessionOptions options;
  options.threadsPerDevice = context.options.threadsPerDevice;
  Expected<std::unique_ptr<Session>> session =
      Session::create(additions(devices, count), context.backend, options);
  if (!session)
    return session.error();
  MaybeError failure;
  Expected<double> seconds =
      BusyCores(1, context.speed)
          .measure(
              [&](size_t) -> Expected<BusyCores::Work> {
                return BusyCores::Work([&] {
                  if (MaybeError error = (*session)->step())
                    failure = error;
                });
              },
              10 * context.options.secondsPerPoint, BusyCores::Time::Passing);
  if (failure)
    return *failure;
  return seconds;
}

} // namespace

MaybeError measureLaunch(CoreContext &context, cluster::DeviceKind &device) {
  constexpr int few = 100, many = 4100;
  context.announce("the executor", 20);
  int64_t devices =
      std::max<int64_t>(1, usableCores() / std::max(1, context.options.threadsPerDevice));
  double seconds[2];
  for (int i = 0; i < 2; ++i) {
    Expected<double> step = stepSeconds(context, devices, i == 0 ? few : many);
    if (!step)
      return step.error();
    seconds[i] = *step;
  }
  TensorType scalar{DType::F32, {}};
  Expected<double> kernel =
      context.timer.secondsOf({{"add", {scalar, scalar}, {scalar}, {}, {}}}, {});
  if (!kernel)
    return kernel.error();
  // On a machine that does other work, the difference may come out as nothing.
  double instruction = (seconds[1] - seconds[0]) / (many - few);
  device.set_launch_seconds(rounded(std::max(1e-9, instruction - *kernel)));
  return std::nullopt;
}

} // namespace dtc::runtime
