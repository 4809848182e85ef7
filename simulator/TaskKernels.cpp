//===- TaskKernels.cpp - The kernels of a task as a device runs them ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/TaskKernels.h"

#include "plan/PlanTypes.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace dtc {

/// The buffers that a kernel reads, each once.
static std::vector<uint32_t> distinctInputs(const plan::Program &program,
                                            const plan::KernelCall &call) {
  std::vector<uint32_t> buffers, bases;
  for (uint32_t buffer : call.inputs()) {
    uint32_t base = storageOf(program, buffer);
    if (std::find(bases.begin(), bases.end(), base) != bases.end())
      continue;
    bases.push_back(base);
    buffers.push_back(buffer);
  }
  return buffers;
}

std::vector<uint32_t> countReaders(const plan::Program &program) {
  std::vector<uint32_t> readers(static_cast<size_t>(program.buffers_size()), 0);
  auto read = [&](uint32_t buffer) { ++readers[storageOf(program, buffer)]; };
  for (const plan::Task &task : program.tasks())
    for (const plan::Instruction &instruction : task.instructions()) {
      for (uint32_t buffer : distinctInputs(program, instruction.kernel()))
        read(buffer);
      for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
        read(tensor.input());
    }
  for (const plan::Transfer &transfer : program.transfers())
    for (uint32_t buffer : transfer.buffers())
      read(buffer);
  for (const plan::State &state : program.states())
    read(state.buffer());
  for (const plan::Output &output : program.outputs())
    read(output.buffer());
  return readers;
}

TaskKernels::TaskKernels(const plan::Program &program, const plan::Task &task,
                         const std::vector<uint32_t> &readers, bool fuses)
    : program(program), task(task), readers(readers),
      kernels(static_cast<size_t>(task.instructions_size())),
      hosts(static_cast<size_t>(task.instructions_size()), -1) {
  for (int i = 0; i < task.instructions_size(); ++i) {
    const plan::Instruction &instruction = task.instructions(i);
    auto write = [&](uint32_t buffer) {
      writes[storageOf(program, buffer)] = {i, instruction.has_kernel(), bytesOf(buffer)};
    };
    auto read = [&](uint32_t buffer, int kernel) {
      if (auto it = writes.find(storageOf(program, buffer)); it != writes.end())
        it->second.isReadByOthers |= !isOf(it->second, kernel);
    };
    if (instruction.has_kernel()) {
      hosts[static_cast<size_t>(i)] = fuses ? findHost(i) : -1;
      addKernel(i);
      int host = hosts[static_cast<size_t>(i)];
      for (uint32_t buffer : instruction.kernel().inputs())
        read(buffer, host >= 0 ? host : i);
      for (uint32_t buffer : instruction.kernel().outputs())
        write(buffer);
    }
    for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
      read(tensor.input(), i);
    for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
      write(tensor.output());
    if (instruction.has_start_transfer())
      for (uint32_t buffer :
           program.transfers(static_cast<int>(instruction.start_transfer().transfer())).buffers())
        read(buffer, i);
    if (instruction.has_finish_transfer())
      if (const plan::Transfer &transfer =
              program.transfers(static_cast<int>(instruction.finish_transfer().transfer()));
          kindOf(transfer) == TransferKind::Receive)
        for (uint32_t buffer : transfer.buffers())
          write(buffer);
  }
}

double TaskKernels::bytesOf(uint32_t buffer) const {
  return static_cast<double>(typeOf(program.buffers(static_cast<int>(buffer))).numBytes());
}

std::optional<MatrixShape> shapeOfProduct(const plan::Program &program,
                                          const plan::KernelCall &call) {
  auto equation = call.attributes().find("equation");
  if (equation == call.attributes().end() || call.inputs_size() != 2)
    return std::nullopt;
  auto shapeOf = [&](int i) {
    return typeOf(program.buffers(static_cast<int>(call.inputs(i)))).shape;
  };
  return matrixShape(equation->second.s(), shapeOf(0), shapeOf(1));
}

bool TaskKernels::isOf(const Write &write, int kernel) const {
  return write.isKernel &&
         (write.instruction == kernel || hosts[static_cast<size_t>(write.instruction)] == kernel);
}

int TaskKernels::findHost(int index) const {
  const plan::KernelCall &call = task.instructions(index).kernel();
  const KernelInfo &own = findKernel(call.kernel());
  if (!own.isPointwise)
    return -1;
  std::vector<Write> read;
  auto add = [&](uint32_t buffer) {
    if (auto it = writes.find(storageOf(program, buffer)); it != writes.end())
      read.push_back(it->second);
  };
  for (uint32_t buffer : call.inputs())
    add(buffer);
  auto last = std::max_element(read.begin(), read.end(), [](const Write &a, const Write &b) {
    return a.instruction < b.instruction;
  });
  if (last == read.end() || !last->isKernel)
    return -1;
  int host = hosts[static_cast<size_t>(last->instruction)];
  if (host < 0)
    host = last->instruction;
  const KernelInfo &head = findKernel(kernels[static_cast<size_t>(host)].head->kernel().kernel());
  if (!head.isPointwise && !(head.kernelClass == KernelClass::Product && own.isEpilogue))
    return -1;
  if (readsOwnOutput(call.kernel()))
    for (uint32_t buffer : call.outputs())
      add(buffer);
  // What was written after the host began may depend on it.
  for (const Write &write : read)
    if (!isOf(write, host) && write.instruction > host)
      return -1;
  return host;
}

void TaskKernels::addKernel(int index) {
  const plan::Instruction &instruction = task.instructions(index);
  const plan::KernelCall &call = instruction.kernel();
  Kernel &own = kernels[static_cast<size_t>(index)];
  own.head = &instruction;
  int host = hosts[static_cast<size_t>(index)];
  own.isPart = host >= 0;
  Kernel &kernel = own.isPart ? kernels[static_cast<size_t>(host)] : own;
  kernel.flops += instruction.flops();
  std::vector<TensorType> inputs, outputs;
  for (uint32_t buffer : distinctInputs(program, call))
    inputs.push_back(typeOf(program.buffers(static_cast<int>(buffer))));
  for (uint32_t buffer : call.outputs())
    outputs.push_back(typeOf(program.buffers(static_cast<int>(buffer))));
  kernel.bytes += static_cast<double>(kernelBytes(call.kernel(), inputs, outputs));
  if (!own.isPart)
    return;
  for (uint32_t buffer : distinctInputs(program, call)) {
    uint32_t base = storageOf(program, buffer);
    auto write = writes.find(base);
    if (write == writes.end() || !isOf(write->second, host))
      continue;
    kernel.bytes -= bytesOf(buffer);
    // If no other kernel reads it, or only before it is overwritten, it is not written to memory.
    bool isOverwritten = std::any_of(call.outputs().begin(), call.outputs().end(),
                                     [&](uint32_t out) { return storageOf(program, out) == base; });
    if (isOverwritten ? !write->second.isReadByOthers : readers[base] == 1)
      kernel.bytes -= write->second.bytes;
  }
}

double TaskKernels::seconds(int index, const cluster::DeviceKind &device,
                            KernelSeconds &classes) const {
  const Kernel &kernel = kernels[static_cast<size_t>(index)];
  if (!kernel.head || kernel.isPart)
    return 0;
  const plan::KernelCall &call = kernel.head->kernel();
  auto typeOfInput = [&](int i) {
    return typeOf(program.buffers(static_cast<int>(call.inputs(i))));
  };
  KernelWork work{call.kernel(), DType::F32, kernel.flops, kernel.bytes};
  for (int i = 0; i < call.inputs_size(); ++i)
    if (DType dtype = typeOfInput(i).dtype; isFloat(dtype)) {
      work.dtype = dtype;
      break;
    }
  double seconds = 0;
  const KernelClass kernelClass = classOf(call.kernel());
  if (kernelClass == KernelClass::Product) {
    seconds = std::max(productSeconds(device, work.dtype, *shapeOfProduct(program, call)),
                       memorySeconds(device, kernel.bytes));
  } else {
    seconds = kernelSeconds(device, work);
  }
  classes[static_cast<size_t>(kernelClass)] += seconds;
  classes[static_cast<size_t>(KernelClass::Launch)] += device.launch_seconds();
  return seconds + device.launch_seconds();
}

} // namespace dtc
