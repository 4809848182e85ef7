//===- VerifyInstructions.cpp - Verification of instructions --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/KernelTable.h"
#include "plan/OperandOverlap.h"
#include "plan/PlanChecks.h"
#include "plan/PlanTypes.h"
#include "support/CheckedMath.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <set>

namespace dtc {

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The device computes on buffers in its memory, the host on those in its own; only a copy goes
/// from one to the other.
static MaybeError checkMemory(const PlanContext &context, const plan::KernelCall &call) {
  std::optional<uint32_t> onDevice, onHost;
  for (const auto *operands : {&call.inputs(), &call.outputs()})
    for (uint32_t buffer : *operands)
      (isOnHost(context.program.buffers(static_cast<int>(buffer))) ? onHost : onDevice) = buffer;
  if (onDevice && onHost && call.kernel() != "copy")
    return Error{fmt::format("has buffer {} in the memory of the device and buffer {} in that of "
                             "the host; expected all operands in one, or the kernel copy",
                             *onDevice, *onHost)};
  if (call.async() && !onHost)
    return Error{"is async and runs on the compute queue of the device; expected an operand in the "
                 "memory of the host"};
  return std::nullopt;
}

static MaybeError checkKernel(const PlanContext &context, const plan::KernelCall &call) {
  if (MaybeError error = checkKernelCall(call))
    return error;
  for (int i = 0; i < call.inputs_size(); ++i)
    if (MaybeError error = checkBufferIndex(context, call.inputs(i)))
      return Error{fmt::format("input {} {}", i, error->message)};
  for (int i = 0; i < call.outputs_size(); ++i)
    if (MaybeError error = checkBufferIndex(context, call.outputs(i)))
      return Error{fmt::format("output {} {}", i, error->message)};
  if (MaybeError error = checkMemory(context, call))
    return error;
  return checkKernelOverlap(context, call);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static MaybeError checkDim(const char *field, int64_t dim, const TensorType &type) {
  if (dim < 0 || dim >= type.rank())
    return Error{fmt::format("{} is {}, but the input {} has {} dimensions", field, dim, type.str(),
                             type.rank())};
  return std::nullopt;
}

/// The shape of the output that kind, dim and group size give.
static Expected<TensorType> expectedOutput(const plan::Collective &collective,
                                           const plan::CollectiveTensor &tensor,
                                           const TensorType &input, int64_t members) {
  TensorType output = input;
  if (kindOf(collective) == CollectiveKind::AllReduce ||
      kindOf(collective) == CollectiveKind::Permute)
    return output;
  if (MaybeError error = checkDim("dim", tensor.dim(), input))
    return *error;
  auto dim = static_cast<size_t>(tensor.dim());
  int64_t splitDim =
      kindOf(collective) == CollectiveKind::AllToAll ? tensor.split_dim() : tensor.dim();
  if (MaybeError error = checkDim("split_dim", splitDim, input))
    return *error;
  auto split = static_cast<size_t>(splitDim);
  if (kindOf(collective) != CollectiveKind::AllGather) {
    if (input.shape[split] % members != 0)
      return Error{fmt::format("dimension {} of the input {} is not divisible by the {} members "
                               "of the group",
                               split, input.str(), members)};
    output.shape[split] /= members;
  }
  if (kindOf(collective) != CollectiveKind::ReduceScatter) {
    std::optional<int64_t> size = checkedMul(output.shape[dim], members);
    if (!size)
      return Error{fmt::format("dimension {} of the input {} times {} members overflows", dim,
                               input.str(), members)};
    output.shape[dim] = *size;
  }
  return output;
}

static MaybeError checkReduction(const plan::Collective &collective, const TensorType &type) {
  if (kindOf(collective) != CollectiveKind::AllReduce &&
      kindOf(collective) != CollectiveKind::ReduceScatter)
    return std::nullopt;
  if (!isNamed(reductionOf(collective)))
    return Error{fmt::format("needs a reduction (sum, max or min), found {}",
                             static_cast<int>(collective.reduction()))};
  if (type.dtype == DType::Bool || isFloat8(type.dtype))
    return Error{fmt::format("cannot reduce elements of type {}", name(type.dtype))};
  return std::nullopt;
}

static MaybeError checkGroupAxes(const PlanContext &context, const plan::Collective &collective) {
  if (collective.axes_size() == 0)
    return Error{"names no mesh axis"};
  std::set<std::string> seen;
  for (const std::string &name : collective.axes()) {
    const MeshAxis *axis = context.mesh.find(name);
    if (!axis)
      return Error{fmt::format("the mesh has no axis \"{}\"", name)};
    if (axis->temporal)
      return Error{
          fmt::format("axis \"{}\" is temporal; a group of devices spans spatial axes", name)};
    // So the members of a group all run one program and meet their collectives in one order.
    if (axis->pipeline)
      return Error{fmt::format("axis \"{}\" is the pipeline axis, whose devices run different "
                               "programs; a collective spans devices of one program",
                               name)};
    if (!seen.insert(name).second)
      return Error{fmt::format("names axis \"{}\" twice", name)};
  }
  return std::nullopt;
}

static MaybeError checkCollectiveTensor(const PlanContext &context,
                                        const plan::Collective &collective,
                                        const plan::CollectiveTensor &tensor, int64_t members) {
  if (MaybeError error = checkBufferIndex(context, tensor.input()))
    return Error{"input " + error->message};
  if (MaybeError error = checkBufferIndex(context, tensor.output()))
    return Error{"output " + error->message};
  for (uint32_t buffer : {tensor.input(), tensor.output()})
    if (MaybeError error = checkOnDevice(context, buffer, "the tensors of a collective"))
      return error;
  const TensorType &input = context.types[tensor.input()];
  const TensorType &output = context.types[tensor.output()];
  if (MaybeError error = checkReduction(collective, input))
    return error;
  Expected<TensorType> expected = expectedOutput(collective, tensor, input, members);
  if (!expected)
    return expected.error();
  if (output != *expected)
    return Error{fmt::format("the output is {}; the input {} and a group of {} give {}",
                             output.str(), input.str(), members, expected->str())};
  bool inPlace = kindOf(collective) == CollectiveKind::AllReduce &&
                 context.areSameBytes(tensor.input(), tensor.output());
  if (context.mayShareBytes(tensor.input(), tensor.output()) && !inPlace)
    return Error{fmt::format("input and output (buffers {} and {}) share bytes of the arena",
                             tensor.input(), tensor.output())};
  return std::nullopt;
}

/// The axes of a permute come in a second order; other kinds have none.
static MaybeError checkSourceAxes(const plan::Collective &collective) {
  if (kindOf(collective) != CollectiveKind::Permute) {
    if (collective.source_axes_size() > 0)
      return Error{fmt::format("has source_axes, which only a permute has, found {}",
                               name(kindOf(collective)))};
    if (collective.shift() != 0)
      return Error{
          fmt::format("has a shift, which only a permute has, found {}", name(kindOf(collective)))};
    return std::nullopt;
  }
  if (collective.shift() < 0)
    return Error{fmt::format("shift is {}, expected at least 0", collective.shift())};
  std::vector<std::string> axes = toVector(collective.axes());
  std::vector<std::string> sourceAxes = toVector(collective.source_axes());
  std::sort(axes.begin(), axes.end());
  std::sort(sourceAxes.begin(), sourceAxes.end());
  if (axes != sourceAxes)
    return Error{fmt::format("source_axes are [{}]; expected the axes [{}] in some order",
                             fmt::join(collective.source_axes(), ", "),
                             fmt::join(collective.axes(), ", "))};
  return std::nullopt;
}

static MaybeError checkCollective(const PlanContext &context, const plan::Collective &collective) {
  if (!isNamed(kindOf(collective)))
    return Error{fmt::format("unknown kind of collective {}", static_cast<int>(collective.kind()))};
  if (MaybeError error = checkGroupAxes(context, collective))
    return error;
  if (MaybeError error = checkSourceAxes(collective))
    return error;
  if (collective.tensors().empty())
    return Error{"moves no tensor"};
  int64_t members = context.mesh.groupSize(toVector(collective.axes()));
  for (int i = 0; i < collective.tensors_size(); ++i)
    if (MaybeError error =
            checkCollectiveTensor(context, collective, collective.tensors(i), members))
      return collective.tensors_size() > 1 ? error->inContext(fmt::format("tensor {}", i)) : error;
  return checkBucketOverlap(context, collective);
}

//===----------------------------------------------------------------------===//
// Tasks and schedule
//===----------------------------------------------------------------------===//

static MaybeError checkTransferIndex(const PlanContext &context, uint32_t transfer) {
  if (static_cast<int64_t>(transfer) >= context.program.transfers_size())
    return Error{fmt::format("names transfer {}, but the program has {} transfers", transfer,
                             context.program.transfers_size())};
  return std::nullopt;
}

static MaybeError checkInstruction(const PlanContext &context,
                                   const plan::Instruction &instruction) {
  auto location = static_cast<int64_t>(instruction.location());
  if (location != 0 && location >= context.plan.locations_size())
    return Error{fmt::format("names location {}, but the plan has {} locations", location,
                             context.plan.locations_size())};
  if (!(instruction.flops() >= 0))
    return Error{fmt::format("flops is {}; expected 0 or more", instruction.flops())};
  if (instruction.has_kernel())
    return checkKernel(context, instruction.kernel());
  if (instruction.has_collective())
    return checkCollective(context, instruction.collective());
  if (instruction.has_wait())
    return std::nullopt; // needs the task; see checkAsync()
  if (instruction.has_start_transfer())
    return checkTransferIndex(context, instruction.start_transfer().transfer());
  if (instruction.has_finish_transfer())
    return checkTransferIndex(context, instruction.finish_transfer().transfer());
  return Error{"is neither a kernel, a collective, a wait nor part of a transfer"};
}

/// The stage of a task that works on a stage; its estimated time.
static MaybeError checkTask(const PlanContext &context, const plan::Task &task) {
  auto error = [&](const std::string &text) {
    return Error{text}.inContext(fmt::format("task \"{}\"", task.name()));
  };
  if (std::optional<StagePass> pass = passOf(task); pass && !isNamed(*pass))
    return error(fmt::format("unknown kind of task {}", static_cast<int>(task.kind())));
  uint32_t stages = std::max<uint32_t>(context.plan.pipeline().stages(), 1);
  if (passOf(task) && task.stage() >= stages)
    return error(fmt::format("is for stage {}, but the model has {} (stages count from 0)",
                             task.stage(), stages));
  if (!(std::isfinite(task.seconds()) && task.seconds() >= 0))
    return error(fmt::format("is taken to last {} seconds; expected a finite number of 0 or more",
                             task.seconds()));
  return std::nullopt;
}

/// A kernel of the host has the same operands in every execution.
static MaybeError checkLoopTask(const PlanContext &context, const plan::Task &task) {
  for (int i = 0; i < task.instructions_size(); ++i)
    if (laneOf(context.program, task.instructions(i)) == Lane::Host)
      return Error{
          "runs on the host in the loop over microbatches; expected it outside of the loop"}
          .inContext(describeInstruction(context.plan, task, i));
  return std::nullopt;
}

static MaybeError checkSchedule(const PlanContext &context) {
  int64_t microbatches = microbatchesOf(context.mesh);
  const plan::Program &program = context.program;
  if (program.loop_begin() > program.loop_end() ||
      static_cast<int64_t>(program.loop_end()) > program.schedule_size())
    return Error{fmt::format("the loop is entries {} to {} of a schedule of {}",
                             program.loop_begin(), program.loop_end(), program.schedule_size())};
  std::vector<int> entryOf(static_cast<size_t>(program.tasks_size()), -1); // the first of a task
  for (int i = 0; i < program.schedule_size(); ++i) {
    const plan::ScheduleEntry &entry = program.schedule(i);
    if (static_cast<int64_t>(entry.task()) >= program.tasks_size())
      return Error{fmt::format("schedule entry {} names task {}, but the program has {} tasks", i,
                               entry.task(), program.tasks_size())};
    if (static_cast<int64_t>(entry.microbatch()) >= microbatches)
      return Error{fmt::format("schedule entry {} is for microbatch {}, but there are {} "
                               "(microbatches count from 0)",
                               i, entry.microbatch(), microbatches)};
    if (entry.microbatch() > 0 && !isInLoop(program, i))
      return Error{fmt::format("schedule entry {} is for microbatch {}, but stands outside of the "
                               "loop over microbatches, entries {} to {}",
                               i, entry.microbatch(), program.loop_begin(), program.loop_end())};
    int &first = entryOf[entry.task()];
    if (first < 0)
      first = i;
    if (first == i && isInLoop(program, i))
      if (MaybeError error = checkLoopTask(context, program.tasks(static_cast<int>(entry.task()))))
        return error;
    if (isInLoop(program, first) != isInLoop(program, i))
      return Error{fmt::format("task \"{}\" runs in the loop over microbatches and outside of it, "
                               "as schedule entries {} and {}; expected one of the two",
                               program.tasks(static_cast<int>(entry.task())).name(), first, i)};
  }
  return std::nullopt;
}

MaybeError checkInstructions(const PlanContext &context) {
  for (const plan::Task &task : context.program.tasks()) {
    if (MaybeError error = checkTask(context, task))
      return error;
    for (int i = 0; i < task.instructions_size(); ++i)
      if (MaybeError error = checkInstruction(context, task.instructions(i)))
        return error->inContext(describeInstruction(context.plan, task, i));
  }
  return checkSchedule(context);
}

} // namespace dtc
