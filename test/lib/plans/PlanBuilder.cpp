//===- PlanBuilder.cpp - Plans made by hand -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/plans/PlanBuilder.h"

#include "plan/KernelTable.h"
#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "support/ShardExtent.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/SingleAssignment.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace dtc::runtime::testing {

/// Adds the kernels that the backends of these tests have beside those of docs/kernels.md.
static void addTestKernels() {
  for (const char *name : {"test_throw", "test_sleep", "test_hang", "test_gate"})
    EXPECT_OK(addKernel({.name = name, .inputs = {0, 0}, .outputs = 0}));
  EXPECT_OK(addKernel({.name = "test_position", .inputs = {0, 0}}));
}

PlanBuilder::PlanBuilder() {
  static std::once_flag added;
  std::call_once(added, addTestKernels);
  plan.set_version(kPlanVersion);
  plan.set_producer("a test");
  plan.add_locations("unknown");
  plan.add_programs();
}

void PlanBuilder::axis(const std::string &name, int64_t size, bool temporal) {
  plan::Axis *axis = plan.add_axes();
  axis->set_name(name);
  axis->set_size(size);
  axis->set_temporal(temporal);
}

void PlanBuilder::pipelineAxis(const std::string &name, int64_t size) {
  axis(name, size);
  plan.mutable_axes(plan.axes_size() - 1)->set_pipeline(true);
  while (plan.programs_size() < size)
    plan.add_programs();
}

static void setShape(google::protobuf::RepeatedField<int64_t> *field, const Shape &shape) {
  field->Assign(shape.begin(), shape.end());
}

uint32_t PlanBuilder::buffer(DType dtype, const Shape &shape, plan::Buffer::Kind kind) {
  return slotted(dtype, shape, 0, kind);
}

uint32_t PlanBuilder::slotted(DType dtype, const Shape &shape, uint32_t slots,
                              plan::Buffer::Kind kind) {
  plan::Buffer *buffer = program().add_buffers();
  buffer->set_dtype(toPlan(dtype));
  setShape(buffer->mutable_shape(), shape);
  buffer->set_kind(kind);
  buffer->set_offset(program().arena_bytes());
  uint64_t bytes = (typeOf(*buffer).numBytes() + 63) / 64 * 64;
  buffer->set_slots(slots);
  program().set_arena_bytes(program().arena_bytes() + bytes * std::max<uint32_t>(slots, 1));
  return static_cast<uint32_t>(program().buffers_size() - 1);
}

uint32_t PlanBuilder::view(uint32_t of, DType dtype, const Shape &shape) {
  plan::Buffer whole = program().buffers(static_cast<int>(of));
  plan::Buffer *buffer = program().add_buffers();
  buffer->set_dtype(toPlan(dtype));
  setShape(buffer->mutable_shape(), shape);
  buffer->set_kind(plan::Buffer::ACTIVATION);
  buffer->set_offset(whole.offset());
  buffer->set_slots(whole.slots());
  if (typeOf(*buffer).numBytes() == typeOf(whole).numBytes() && buffer->dtype() == whole.dtype())
    buffer->set_view_of(of);
  return static_cast<uint32_t>(program().buffers_size() - 1);
}

/// Gives the tensors of transfers numbers: those at the same place of the two ends of a channel
/// have the same, and so have all tensors of transfers that are one buffer.
static void numberSentValues(plan::Plan &plan) {
  std::map<std::pair<uint32_t, int>, std::vector<plan::Buffer *>> tensors; // by channel and place
  for (plan::Program &program : *plan.mutable_programs()) {
    for (plan::Buffer &buffer : *program.mutable_buffers())
      buffer.clear_value();
    for (const plan::Transfer &transfer : program.transfers())
      for (int i = 0; i < transfer.buffers_size(); ++i)
        if (static_cast<int64_t>(transfer.buffers(i)) < program.buffers_size())
          tensors[{transfer.channel(), i}].push_back(
              program.mutable_buffers(static_cast<int>(transfer.buffers(i))));
  }
  uint32_t next = 0;
  for (auto &[place, ends] : tensors)
    for (plan::Buffer *end : ends)
      if (!end->has_value())
        end->set_value(next++);
  // The least of the numbers that meet, until none changes.
  for (bool changes = true; std::exchange(changes, false);)
    for (auto &[place, ends] : tensors)
      for (plan::Buffer *a : ends)
        for (plan::Buffer *b : ends)
          if (a->value() < b->value()) {
            b->set_value(a->value());
            changes = true;
          }
}

uint32_t PlanBuilder::transfer(plan::Transfer::Kind kind, uint32_t peer, uint32_t channel,
                               const std::vector<uint32_t> &buffers) {
  plan::Transfer *transfer = program().add_transfers();
  transfer->set_kind(kind);
  transfer->set_peer(peer);
  transfer->set_channel(channel);
  transfer->mutable_buffers()->Assign(buffers.begin(), buffers.end());
  numberSentValues(plan);
  return static_cast<uint32_t>(program().transfers_size() - 1);
}

uint32_t PlanBuilder::task(const std::string &name, plan::Task::Kind kind, uint32_t stage) {
  plan::Task *task = program().add_tasks();
  task->set_name(name);
  task->set_kind(kind);
  task->set_stage(stage);
  return static_cast<uint32_t>(program().tasks_size() - 1);
}

plan::Task &PlanBuilder::lastTask() { return *program().mutable_tasks(program().tasks_size() - 1); }

/// 0, false or empty.
static plan::Attribute emptyAttribute(AttributeKind kind) {
  plan::Attribute attribute;
  switch (kind) {
  case AttributeKind::Bool:
    attribute.set_b(false);
    break;
  case AttributeKind::Int:
    attribute.set_i(0);
    break;
  case AttributeKind::Float:
    attribute.set_f(0);
    break;
  case AttributeKind::String:
    attribute.set_s("");
    break;
  case AttributeKind::Ints:
    attribute.mutable_ints();
    break;
  case AttributeKind::Strings:
    attribute.mutable_strings();
    break;
  case AttributeKind::Data:
    attribute.set_data("");
    break;
  }
  return attribute;
}

void addRequiredAttributes(plan::KernelCall &call) {
  for (const KernelAttribute &attribute : findKernel(call.kernel()).attributes)
    if (!attribute.isOptional)
      (*call.mutable_attributes())[std::string(attribute.name)] = emptyAttribute(attribute.kind);
}

plan::KernelCall &PlanBuilder::kernel(const std::string &name, const std::vector<uint32_t> &inputs,
                                      const std::vector<uint32_t> &outputs) {
  plan::KernelCall *call = lastTask().add_instructions()->mutable_kernel();
  call->set_kernel(name);
  call->mutable_inputs()->Assign(inputs.begin(), inputs.end());
  call->mutable_outputs()->Assign(outputs.begin(), outputs.end());
  addRequiredAttributes(*call);
  return *call;
}

plan::CollectiveTensor &PlanBuilder::collective(plan::Collective::Kind kind, const Axes &axes,
                                                uint32_t input, uint32_t output) {
  return *bucket(kind, axes, {{input, output}}).mutable_tensors(0);
}

plan::Collective &PlanBuilder::bucket(plan::Collective::Kind kind, const Axes &axes,
                                      const std::vector<std::pair<uint32_t, uint32_t>> &tensors) {
  plan::Collective *collective = lastTask().add_instructions()->mutable_collective();
  collective->set_kind(kind);
  if (kind == plan::Collective::ALL_REDUCE || kind == plan::Collective::REDUCE_SCATTER)
    collective->set_reduction(plan::Collective::SUM);
  collective->mutable_axes()->Assign(axes.begin(), axes.end());
  for (auto [input, output] : tensors) {
    plan::CollectiveTensor *tensor = collective->add_tensors();
    tensor->set_input(input);
    tensor->set_output(output);
  }
  return *collective;
}

plan::Collective &PlanBuilder::permute(const Axes &axes, const Axes &sourceAxes, uint32_t input,
                                       uint32_t output) {
  plan::Collective &collective = bucket(plan::Collective::PERMUTE, axes, {{input, output}});
  collective.mutable_source_axes()->Assign(sourceAxes.begin(), sourceAxes.end());
  return collective;
}

uint32_t PlanBuilder::async() {
  int last = lastTask().instructions_size() - 1;
  lastTask().mutable_instructions(last)->mutable_collective()->set_async(true);
  return static_cast<uint32_t>(last);
}

void PlanBuilder::wait(uint32_t instruction) {
  lastTask().add_instructions()->mutable_wait()->set_instruction(instruction);
}

void PlanBuilder::startTransfer(uint32_t transfer) {
  lastTask().add_instructions()->mutable_start_transfer()->set_transfer(transfer);
}

void PlanBuilder::finishTransfer(uint32_t transfer) {
  lastTask().add_instructions()->mutable_finish_transfer()->set_transfer(transfer);
}

void PlanBuilder::schedule(uint32_t task, uint32_t microbatch) {
  plan::ScheduleEntry *entry = program().add_schedule();
  entry->set_task(task);
  entry->set_microbatch(microbatch);
}

Shape PlanBuilder::localShape(const Shape &shape, const DimAxes &sharding) const {
  Mesh mesh = meshOf(plan);
  Shape local = shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    Axes axes = sharding[d];
    std::erase_if(axes, [&](const std::string &axis) { return mesh.find(axis)->temporal; });
    local[d] = paddedShardSize(local[d], mesh.groupSize(axes));
  }
  return local;
}

template <typename T>
void PlanBuilder::bind(T &binding, const std::string &name, DType dtype, const Shape &shape,
                       const DimAxes &sharding, uint32_t buffer) {
  binding.set_name(name);
  binding.set_dtype(toPlan(dtype));
  setShape(binding.mutable_shape(), shape);
  for (const Axes &axes : sharding)
    binding.mutable_sharding()->add_dims()->mutable_axes()->Assign(axes.begin(), axes.end());
  binding.set_buffer(buffer);
}

plan::State &PlanBuilder::state(const std::string &name, DType dtype, const Shape &shape,
                                const DimAxes &sharding) {
  uint32_t index = buffer(dtype, localShape(shape, sharding), plan::Buffer::PARAMETER);
  plan::State &state = *program().add_states();
  bind(state, name, dtype, shape, sharding, index);
  setShape(state.mutable_file_shape(), shape);
  return state;
}

plan::Input &PlanBuilder::input(const std::string &name, DType dtype, const Shape &shape,
                                const DimAxes &sharding) {
  uint32_t index = buffer(dtype, localShape(shape, sharding), plan::Buffer::INPUT);
  plan::Input &input = *program().add_inputs();
  bind(input, name, dtype, shape, sharding, index);
  return input;
}

plan::Output &PlanBuilder::output(const std::string &name, DType dtype, const Shape &shape,
                                  const DimAxes &sharding, uint32_t buffer) {
  plan::Output &output = *program().add_outputs();
  bind(output, name, dtype, shape, sharding, buffer);
  return output;
}

std::shared_ptr<plan::Plan> PlanBuilder::build() const {
  auto built = std::make_shared<plan::Plan>(plan);
  for (plan::Program &program : *built->mutable_programs()) {
    markLoop(program);
    toSingleAssignment(program);
  }
  numberSentValues(*built); // toSingleAssignment() may have chosen other buffers
  return built;
}

plan::Attribute intAttribute(int64_t value) {
  plan::Attribute attribute;
  attribute.set_i(value);
  return attribute;
}

plan::Attribute floatAttribute(double value) {
  plan::Attribute attribute;
  attribute.set_f(value);
  return attribute;
}

plan::Attribute boolAttribute(bool value) {
  plan::Attribute attribute;
  attribute.set_b(value);
  return attribute;
}

plan::Attribute stringAttribute(const std::string &value) {
  plan::Attribute attribute;
  attribute.set_s(value);
  return attribute;
}

plan::Attribute intsAttribute(const std::vector<int64_t> &values) {
  plan::Attribute attribute;
  attribute.mutable_ints()->mutable_values()->Assign(values.begin(), values.end());
  return attribute;
}

plan::Attribute stringsAttribute(const std::vector<std::string> &values) {
  plan::Attribute attribute;
  attribute.mutable_strings()->mutable_values()->Assign(values.begin(), values.end());
  return attribute;
}

} // namespace dtc::runtime::testing
