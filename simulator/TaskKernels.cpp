//===- TaskKernels.cpp - The kernels of a task as a device runs them ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/TaskKernels.h"

#include "calls/WindowCalls.h"
#include "calls/fusion/CallGroups.h"
#include "calls/fusion/Fusions.h"
#include "calls/fusion/SharedLaunches.h"
#include "plan/PlanTypes.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

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

/// The type of a call's first operand of floats, of any width; f32 without any.
static DType dtypeOf(const plan::Program &program, const plan::KernelCall &call) {
  for (uint32_t buffer : call.inputs())
    if (DType dtype = typeOf(program.buffers(static_cast<int>(buffer))).dtype;
        isFloat(dtype) || isFloat8(dtype))
      return dtype;
  return DType::F32;
}

/// The bytes that a call reads, each once, and writes.
static double bytesOf(const plan::Program &program, const plan::KernelCall &call) {
  std::vector<TensorType> inputs, outputs;
  for (uint32_t buffer : distinctInputs(program, call))
    inputs.push_back(typeOf(program.buffers(static_cast<int>(buffer))));
  for (uint32_t buffer : call.outputs())
    outputs.push_back(typeOf(program.buffers(static_cast<int>(buffer))));
  return static_cast<double>(kernelBytes(call.kernel(), inputs, outputs));
}

KernelWork workOf(const plan::Program &program, const plan::Instruction &instruction) {
  const plan::KernelCall &call = instruction.kernel();
  return {call.kernel(), dtypeOf(program, call), instruction.flops(), bytesOf(program, call)};
}

KernelFusion fusionOf(const cluster::DeviceKind &device) {
  return device.fuses_calls()       ? KernelFusion::Calls
         : device.fuses_pointwise() ? KernelFusion::Pointwise
                                    : KernelFusion::None;
}

TaskKernels::TaskKernels(const plan::Plan &plan, const plan::Program &program,
                         const plan::Task &task, const std::vector<uint32_t> &readers,
                         KernelFusion fusion)
    : program(program), task(task), readers(readers),
      kernels(static_cast<size_t>(task.instructions_size())),
      hosts(static_cast<size_t>(task.instructions_size()), -1) {
  addPointwise(fusion == KernelFusion::Pointwise);
  if (fusion == KernelFusion::Calls)
    addGroups(plan);
}

void TaskKernels::addPointwise(bool fuses) {
  for (int i = 0; i < task.instructions_size(); ++i) {
    const plan::Instruction &instruction = task.instructions(i);
    // Calls of the host take the device nothing, and are a part of none of its kernels.
    const bool isKernel = instruction.has_kernel() && laneOf(program, instruction) == Lane::Compute;
    auto write = [&](uint32_t buffer) {
      writes[storageOf(program, buffer)] = {i, isKernel, bytesOf(buffer)};
    };
    auto read = [&](uint32_t buffer, int kernel) {
      if (auto it = writes.find(storageOf(program, buffer)); it != writes.end())
        it->second.isReadByOthers |= !isOf(it->second, kernel);
    };
    if (instruction.has_kernel()) {
      hosts[static_cast<size_t>(i)] = fuses && isKernel ? findHost(i) : -1;
      if (isKernel)
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

/// The call that a fused kernel is named and timed after: a product, else of those that do not work
/// element by element the one that reads and writes most, else the first.
static int mainCall(const plan::Task &task, const CallGroup &group) {
  int main = group.calls.front();
  int64_t most = -1;
  for (size_t i = 0; i < group.calls.size(); ++i) {
    const KernelSignature &call = group.fused.calls[i].signature;
    if (classOf(call.kernel) == KernelClass::Product)
      return group.calls[i];
    if (findKernel(call.kernel).isPointwise)
      continue;
    int64_t bytes = kernelBytes(call.kernel, call.inputs, call.outputs);
    if (bytes <= most)
      continue;
    main = group.calls[i];
    most = bytes;
  }
  return main;
}

TaskKernels::Kernel TaskKernels::kernelOf(const CallGroup &group) const {
  Kernel kernel{&task.instructions(mainCall(task, group)), 0,
                static_cast<double>(dtc::bytesOf(group.fused))};
  for (int call : group.calls)
    kernel.flops += task.instructions(call).flops();
  if (classOf(kernel.head->kernel().kernel()) != KernelClass::Product)
    return kernel;
  std::optional<FusedProduct> product = matchProduct(group.fused);
  if (!product)
    return kernel;
  const GemmShape &gemm = product->lowering.gemm;
  if (product->epilogue.gelu != MatmulEpilogue::Gelu::None)
    kernel.geluElements = static_cast<double>(gemm.m * gemm.n);
  if (product->epilogue.biasGrad != MatmulEpilogue::BiasGrad::None)
    kernel.biasGradBytes = static_cast<double>(
        gemm.k * (product->epilogue.biasGrad == MatmulEpilogue::BiasGrad::OfA ? gemm.m : gemm.n) *
        static_cast<int64_t>(byteWidth(product->in)));
  return kernel;
}

void TaskKernels::addGroups(const plan::Plan &plan) {
  std::vector<AxisCoordinate> axes;
  for (const plan::Axis &axis : plan.axes())
    axes.push_back({axis.name(), axis.size(), 0, axis.temporal()});
  FusionRules rules{mayHaveFusion, [](const std::vector<int> &, const FusedCalls &calls) {
                      return findFusion(calls).has_value();
                    }};
  CallGroups found = groupCalls(program, task, ValueReaders(program), axes, rules);
  for (size_t i = 0; i < kernels.size(); ++i)
    kernels[i].isPart = found.groupOf[i].has_value();
  for (const CallGroup &group : found.groups)
    kernels[static_cast<size_t>(group.place)] = kernelOf(group);
  shareLaunches(axes);
}

/// Kernels of one kind share a launch until there is work of another kind. Calls of other kinds
/// that share launches may come between them.
void TaskKernels::shareLaunches(const std::vector<AxisCoordinate> &axes) {
  std::set<std::string> held;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i].isPart)
      continue;
    if (!kernels[i].head) {
      held.clear();
      continue;
    }
    const plan::KernelCall &call = kernels[i].head->kernel();
    KernelSignature signature = signatureOf(program, call, axes);
    if (!mayShareLaunch(signature)) {
      held.clear();
      continue;
    }
    std::string key = call.kernel();
    for (const auto *types : {&signature.inputs, &signature.outputs})
      for (const TensorType &type : *types)
        key += fmt::format(" {}", name(type.dtype));
    for (const auto &[name, value] : signature.attributes)
      key += fmt::format(" {}={}", name, call.attributes().at(name).SerializeAsString());
    kernels[i].sharesLaunch = !held.insert(key).second;
  }
}

double TaskKernels::bytesOf(uint32_t buffer) const {
  return static_cast<double>(typeOf(program.buffers(static_cast<int>(buffer))).numBytes());
}

/// The product that a convolution or a gradient is for each group, with the windows unfolded; none
/// for other calls.
static std::optional<MatrixShape> shapeOfConv(const plan::Program &program,
                                              const plan::KernelCall &call) {
  using Check = Expected<ConvCall> (*)(const KernelSignature &);
  static constexpr std::pair<std::string_view, Check> kinds[] = {
      {"conv", checkConv},
      {"conv_input_grad", checkConvInputGrad},
      {"conv_weight_grad", checkConvWeightGrad}};
  const auto *kind = std::find_if(std::begin(kinds), std::end(kinds),
                                  [&](const auto &each) { return each.first == call.kernel(); });
  if (kind == std::end(kinds))
    return std::nullopt;
  Expected<ConvCall> conv = kind->second(signatureOf(program, call, {}));
  if (!conv)
    return std::nullopt;
  auto places = static_cast<double>(conv->batch * outElements(conv->dims));
  auto inputs = static_cast<double>(conv->inChannels * windowElements(conv->dims));
  auto outputs = static_cast<double>(conv->outChannels), groups = static_cast<double>(conv->groups);
  switch (conv->kind) {
  case ConvKind::InputGrad:
    return MatrixShape{groups, inputs, places, outputs};
  case ConvKind::WeightGrad:
    return MatrixShape{groups, outputs, inputs, places};
  case ConvKind::Forward:
    break;
  }
  return MatrixShape{groups, outputs, places, inputs};
}

std::optional<MatrixShape> shapeOfProduct(const plan::Program &program,
                                          const plan::KernelCall &call) {
  if (std::optional<MatrixShape> conv = shapeOfConv(program, call))
    return conv;
  auto equation = call.attributes().find("equation");
  // The third operand of a grouped product is its indices.
  if (equation == call.attributes().end() || call.inputs_size() < 2)
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
  // A value written after the host began may depend on it.
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
  kernel.bytes += dtc::bytesOf(program, call);
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
  KernelWork work{call.kernel(), dtypeOf(program, call), kernel.flops, kernel.bytes};
  double seconds = 0;
  const KernelClass kernelClass = classOf(call.kernel());
  if (kernelClass == KernelClass::Product) {
    seconds = std::max(productSeconds(device, work.dtype, *shapeOfProduct(program, call)),
                       memorySeconds(device, kernel.bytes));
  } else {
    seconds = kernelSeconds(device, work);
  }
  double launch = kernel.sharesLaunch ? 0 : device.launch_seconds();
  classes[static_cast<size_t>(kernelClass)] += seconds;
  classes[static_cast<size_t>(KernelClass::Launch)] += launch;
  return seconds + launch + epilogueSeconds(kernel, work.dtype, device, classes);
}

double TaskKernels::epilogueSeconds(const Kernel &kernel, DType dtype,
                                    const cluster::DeviceKind &device, KernelSeconds &classes) {
  double gelu = kernel.geluElements * device.gelu_epilogue_seconds(), biasGrad = 0, launch = 0;
  if (kernel.biasGradBytes > 0 && device.bias_grad_kernels()) {
    biasGrad = kernelSeconds(device, {"reduce", dtype, 0, kernel.biasGradBytes});
    launch = device.launch_seconds();
  }
  classes[static_cast<size_t>(KernelClass::Product)] += gelu;
  classes[static_cast<size_t>(KernelClass::Other)] += biasGrad;
  classes[static_cast<size_t>(KernelClass::Launch)] += launch;
  return gelu + biasGrad + launch;
}

} // namespace dtc
