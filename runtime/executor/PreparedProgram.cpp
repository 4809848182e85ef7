//===- PreparedProgram.cpp - A plan ready to run --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/PreparedProgram.h"

#include "runtime/plan/PlanTypes.h"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <map>

namespace dtc::runtime {

static AttributeValue toAttributeValue(const plan::Attribute &attribute) {
  switch (attribute.value_case()) {
  case plan::Attribute::kI:
    return attribute.i();
  case plan::Attribute::kF:
    return attribute.f();
  case plan::Attribute::kS:
    return attribute.s();
  case plan::Attribute::kB:
    return attribute.b();
  case plan::Attribute::kInts:
    return toVector(attribute.ints().values());
  case plan::Attribute::kStrings:
    return toVector(attribute.strings().values());
  case plan::Attribute::kData:
    return RawBytes{attribute.data()};
  case plan::Attribute::VALUE_NOT_SET:
    break;
  }
  return int64_t{0};
}

namespace {

class Preparer {
public:
  Preparer(PreparedProgram &result, const Backend &backend, int threads)
      : result(result), backend(backend), threads(threads) {
    for (const MeshAxis &axis : result.mesh.axes())
      position.push_back({axis.name, axis.size, 0, axis.temporal});
  }

  MaybeError run() {
    const plan::Plan &plan = *result.plan;
    for (const plan::Task &task : result.program().tasks()) {
      result.taskBegin.push_back(result.instructions.size());
      asyncInTask = 0;
      for (int i = 0; i < task.instructions_size(); ++i)
        if (MaybeError error = prepare(task.instructions(i)))
          return error->inContext(describeInstruction(plan, task, i));
    }
    result.taskBegin.push_back(result.instructions.size());
    for (const plan::ScheduleEntry &entry : result.program().schedule())
      result.schedule.push_back({entry.task(), entry.microbatch()});
    return std::nullopt;
  }

private:
  using AxisNames = std::vector<std::string>;

  uint64_t offsetOf(uint32_t buffer) const {
    return result.program().buffers(static_cast<int>(buffer)).offset();
  }
  TensorType typeOfBuffer(uint32_t buffer) const {
    return typeOf(result.program().buffers(static_cast<int>(buffer)));
  }

  MaybeError prepare(const plan::Instruction &instruction) {
    if (instruction.has_collective()) {
      prepareCollective(instruction.collective());
      return std::nullopt;
    }
    if (instruction.has_wait()) {
      result.instructions.push_back(
          PreparedWait{result.taskBegin.back() + instruction.wait().instruction()});
      return std::nullopt;
    }
    return prepareKernel(instruction.kernel());
  }

  MaybeError prepareKernel(const plan::KernelCall &call) {
    KernelSignature signature{call.kernel(), {}, {}, {}, position};
    PreparedKernel prepared;
    for (uint32_t buffer : call.inputs()) {
      signature.inputs.push_back(typeOfBuffer(buffer));
      prepared.inputs.push_back(offsetOf(buffer));
    }
    for (uint32_t buffer : call.outputs()) {
      signature.outputs.push_back(typeOfBuffer(buffer));
      prepared.outputs.push_back(offsetOf(buffer));
    }
    for (const auto &[name, attribute] : call.attributes())
      signature.attributes.emplace(name, toAttributeValue(attribute));
    std::shared_ptr<const Kernel> &shared = kernels[keyOf(call, signature)];
    if (!shared) {
      Expected<std::unique_ptr<Kernel>> kernel = prepareChecked(signature);
      if (!kernel)
        return kernel.error();
      shared = std::move(*kernel);
      result.workspaceBytes = std::max(result.workspaceBytes, shared->workspaceBytes(threads));
    }
    prepared.kernel = shared;
    result.instructions.push_back(std::move(prepared));
    return std::nullopt;
  }

  /// Equal for calls that one kernel object can serve: the layers of a model repeat.
  static std::string keyOf(const plan::KernelCall &call, const KernelSignature &signature) {
    std::string key = call.kernel();
    for (const TensorType &type : signature.inputs)
      key += '|' + type.str();
    key += "->";
    for (const TensorType &type : signature.outputs)
      key += '|' + type.str();
    // The map of the signature is sorted; that of the message is not.
    for (const auto &[name, value] : signature.attributes) {
      std::string bytes = call.attributes().at(name).SerializeAsString();
      key += fmt::format("|{}:{}={}:{}", name.size(), name, bytes.size(), bytes);
    }
    return key;
  }

  Expected<std::unique_ptr<Kernel>> prepareChecked(const KernelSignature &signature) const {
    // A library below the backend may throw.
    try {
      return backend.prepare(signature);
    } catch (const std::exception &exception) {
      return Error{fmt::format("the {} backend cannot prepare the kernel: {}", backend.name(),
                               exception.what())};
    }
  }

  void prepareCollective(const plan::Collective &collective) {
    AxisNames axes = toVector(collective.axes());
    auto group = std::find(result.groups.begin(), result.groups.end(), axes);
    PreparedCollective prepared;
    prepared.group = static_cast<size_t>(group - result.groups.begin());
    prepared.firstOperand = result.operands.size();
    if (collective.async()) {
      prepared.asyncIndex = asyncInTask++;
      result.maxAsync = std::max(result.maxAsync, asyncInTask);
    }
    CollectiveSpec spec;
    spec.kind = static_cast<CollectiveKind>(collective.kind());
    spec.reduction = static_cast<Reduction>(collective.reduction());
    spec.members = result.mesh.groupSize(axes);
    if (spec.kind == CollectiveKind::Permute)
      spec.sources = sourcesOf(axes, toVector(collective.source_axes()));
    for (const plan::CollectiveTensor &tensor : collective.tensors()) {
      spec.input = typeOfBuffer(tensor.input());
      spec.dim = tensor.dim();
      spec.splitDim = spec.kind == CollectiveKind::AllToAll ? tensor.split_dim() : tensor.dim();
      prepared.specs.push_back(spec);
      result.operands.push_back({offsetOf(tensor.input()), offsetOf(tensor.output())});
    }
    if (group == result.groups.end())
      result.groups.push_back(std::move(axes));
    result.instructions.push_back(std::move(prepared));
  }

  /// For each rank over `axes`, the number of its block over `sourceAxes`: the same in all groups.
  std::shared_ptr<const std::vector<int64_t>> sourcesOf(const AxisNames &axes,
                                                        const AxisNames &sourceAxes) {
    std::shared_ptr<const std::vector<int64_t>> &shared = sources[{axes, sourceAxes}];
    if (!shared) {
      std::vector<int64_t> ranks;
      for (int64_t member : result.mesh.group(0, axes))
        ranks.push_back(result.mesh.blockIndex(member, sourceAxes));
      shared = std::make_shared<const std::vector<int64_t>>(std::move(ranks));
    }
    return shared;
  }

  PreparedProgram &result;
  const Backend &backend;
  int threads;
  std::vector<AxisPosition> position;
  std::map<std::string, std::shared_ptr<const Kernel>> kernels;
  std::map<std::pair<AxisNames, AxisNames>, std::shared_ptr<const std::vector<int64_t>>> sources;
  size_t asyncInTask = 0; // so far
};

} // namespace

const plan::Instruction &PreparedProgram::source(size_t index) const {
  // The last task that begins at or before the index; empty tasks begin where the next one does.
  auto next = std::upper_bound(taskBegin.begin(), taskBegin.end(), index);
  auto task = static_cast<size_t>(next - taskBegin.begin()) - 1;
  return program()
      .tasks(static_cast<int>(task))
      .instructions(static_cast<int>(index - taskBegin[task]));
}

Expected<std::shared_ptr<const PreparedProgram>>
PreparedProgram::create(std::shared_ptr<const plan::Plan> plan, const Backend &backend,
                        int threads) {
  auto result = std::make_shared<PreparedProgram>();
  result->plan = std::move(plan);
  result->mesh = meshOf(*result->plan);
  if (MaybeError error = Preparer(*result, backend, threads).run())
    return *error;
  return std::shared_ptr<const PreparedProgram>(std::move(result));
}

} // namespace dtc::runtime
