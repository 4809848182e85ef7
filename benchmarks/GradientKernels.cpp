//===- GradientKernels.cpp - Megatron-LM's own kernels over gradients -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/GradientKernels.h"

#include "plan/PlanTypes.h"
#include "simulator/TaskKernels.h"

#include <algorithm>
#include <utility>

using namespace dtc;

namespace {

/// Makes calls of kernels on operands of `elements` elements.
class KernelCalls {
public:
  KernelCalls(plan::Program &program, int64_t elements, uint32_t location)
      : program(program), elements(elements), location(location) {}

  void zero(DType dtype) {
    plan::KernelCall &call = add("fill");
    (*call.mutable_attributes())["value"].set_f(0);
    call.add_outputs(buffer(dtype));
  }

  /// Multiplies by a scalar, in place.
  void scale(DType dtype) {
    plan::KernelCall &call = add("mul");
    (*call.mutable_attributes())["rhs_dims"].mutable_ints();
    uint32_t gradients = buffer(dtype);
    call.add_inputs(gradients);
    call.add_inputs(buffer(dtype, /*isScalar=*/true));
    call.add_outputs(gradients);
  }

  void convert(DType from, DType to) {
    plan::KernelCall &call = add("convert");
    call.add_inputs(buffer(from));
    call.add_outputs(buffer(to));
  }

  const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions() const {
    return task.instructions();
  }

private:
  plan::KernelCall &add(const char *kernel) {
    plan::Instruction &instruction = *task.add_instructions();
    instruction.set_location(location);
    instruction.mutable_kernel()->set_kernel(kernel);
    return *instruction.mutable_kernel();
  }

  /// Each call has its own: kernels that follow each other on one buffer would be simulated as one
  /// where the device fuses what works element by element. Calls of PyTorch and Apex were not
  /// fused.
  uint32_t buffer(DType dtype, bool isScalar = false) {
    plan::Buffer &buffer = *program.add_buffers();
    buffer.set_dtype(toPlan(dtype));
    buffer.set_kind(toPlan(BufferKind::Gradient));
    if (!isScalar)
      buffer.add_shape(elements);
    return static_cast<uint32_t>(program.buffers_size() - 1);
  }

  plan::Program &program;
  int64_t elements;
  uint32_t location;
  plan::Task task; // its instructions
};

} // namespace

static bool isOptimizer(const plan::Instruction &instruction) {
  return classOf(instruction.kernel().kernel()) == KernelClass::Optimizer;
}

/// Whether the program's parameters are f16.
static bool hasF16Parameters(const plan::Program &program) {
  return std::any_of(
      program.buffers().begin(), program.buffers().end(), [](const plan::Buffer &buffer) {
        return kindOf(buffer) == BufferKind::Parameter && toDType(buffer.dtype()) == DType::F16;
      });
}

/// Puts instructions before the one with that number.
static void insertBefore(plan::Task &task, int index,
                         const google::protobuf::RepeatedPtrField<plan::Instruction> &added) {
  plan::Task whole;
  for (int i = 0; i < task.instructions_size(); ++i) {
    if (i == index)
      whole.mutable_instructions()->MergeFrom(added);
    plan::Instruction instruction = task.instructions(i);
    if (instruction.has_wait())
      if (uint32_t started = instruction.wait().instruction();
          started >= static_cast<uint32_t>(index))
        instruction.mutable_wait()->set_instruction(started + static_cast<uint32_t>(added.size()));
    *whole.add_instructions() = std::move(instruction);
  }
  task.mutable_instructions()->Swap(whole.mutable_instructions());
}

static void addPasses(plan::Program &program, plan::Task &task) {
  int64_t elements = 0;
  int first = -1;
  for (int i = 0; i < task.instructions_size(); ++i) {
    const plan::Instruction &instruction = task.instructions(i);
    if (!isOptimizer(instruction))
      continue;
    if (first < 0)
      first = i;
    auto gradient = static_cast<int>(instruction.kernel().inputs(1));
    elements += typeOf(program.buffers(gradient)).numElements();
  }
  if (first < 0)
    return;
  KernelCalls calls(program, elements, task.instructions(first).location());
  bool isF16 = hasF16Parameters(program);
  DType summedIn = isF16 ? DType::F16 : DType::F32;
  // Megatron-LM begins the step with this. The step is as long if it is here: the device that
  // begins first is also the one that ends last, with nothing to wait for in which it could be
  // done.
  calls.zero(summedIn);
  calls.scale(summedIn); // by one over the number of replicas
  if (isF16) {
    calls.convert(DType::F16, DType::F32);
    calls.scale(DType::F32); // by one over the loss scale
  }
  calls.scale(DType::F32); // to the largest norm
  insertBefore(task, first, calls.instructions());
}

void benchmarks::addGradientKernels(plan::Plan &plan) {
  for (plan::Program &program : *plan.mutable_programs())
    for (plan::Task &task : *program.mutable_tasks())
      addPasses(program, task);
}
