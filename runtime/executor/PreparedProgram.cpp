//===- PreparedProgram.cpp - Prepared programs of a plan ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/PreparedProgram.h"

#include "calls/fusion/CallGroups.h"
#include "calls/fusion/Fusions.h"
#include "calls/fusion/ValueReaders.h"
#include "plan/ClosingInstructions.h"
#include "plan/KernelTable.h"
#include "plan/PlanTypes.h"
#include "plan/PlanVerifier.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/executor/EmptyRows.h"
#include "support/OuterEntries.h"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <utility>

namespace dtc::runtime {

namespace {

/// Prepares the programs of a plan, one after the other.
class Preparer {
public:
  Preparer(PreparedPlan &plan, const Backend &backend, bool fuses)
      : plan(plan), backend(backend), fuses(fuses), host(plan.hostBackend.get()) {
    for (const MeshAxis &axis : plan.mesh.axes())
      position.push_back({axis.name, axis.size, 0, axis.temporal});
  }

  /// The groups of all collectives of a program.
  void addGroups(const plan::Program &program) {
    for (const plan::Task &task : program.tasks())
      for (const plan::Instruction &instruction : task.instructions())
        if (instruction.has_collective())
          groupOf(toVector(instruction.collective().axes()));
  }

  MaybeError run(PreparedProgram &prepared) {
    result = &prepared;
    result->isPrepared = true;
    const plan::Program &program = *result->program;
    result->usesHost = dtc::usesHost(program);
    readers.emplace(program);
    emptyRows.reset();
    if (fuses && backend.leavesOutRows())
      emptyRows.emplace(program);
    for (const plan::Transfer &transfer : program.transfers())
      prepareTransfer(transfer);
    for (const plan::Task &task : program.tasks()) {
      result->taskBegin.push_back(result->instructions.size());
      asyncInTask = 0;
      CallGroups groups;
      groups.groupOf.resize(static_cast<size_t>(task.instructions_size()));
      if (fuses && backend.fusesCalls())
        groups = groupTask(task);
      for (int i = 0; i < task.instructions_size(); ++i) {
        std::optional<size_t> group = groups.groupOf[static_cast<size_t>(i)];
        if (group)
          addPart(task, groups.groups[*group], i);
        else if (MaybeError error = prepare(task, i))
          return error->inContext(describeInstruction(*plan.plan, task, i));
      }
    }
    result->taskBegin.push_back(result->instructions.size());
    for (const plan::ScheduleEntry &entry : program.schedule())
      result->schedule.push_back({entry.task(), entry.microbatch()});
    countStartedTransfers();
    markClosing();
    return std::nullopt;
  }

private:
  using AxisNames = std::vector<std::string>;

  const plan::Buffer &bufferOf(uint32_t index) const {
    return result->program->buffers(static_cast<int>(index));
  }
  TensorType typeOfBuffer(uint32_t index) const { return typeOf(bufferOf(index)); }
  ArenaRange rangeOf(uint32_t index) const {
    const plan::Buffer &buffer = bufferOf(index);
    uint64_t bytes = typeOf(buffer).numBytes();
    const uint32_t *slotMap =
        buffer.has_slot_map()
            ? result->program->slot_maps(static_cast<int>(buffer.slot_map())).slots().data()
            : nullptr;
    return {buffer.offset(), (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment,
            buffer.slots(), slotMap, isOnHost(buffer)};
  }

  MaybeError prepare(const plan::Task &task, int index) {
    const plan::Instruction &instruction = task.instructions(index);
    switch (instruction.op_case()) {
    case plan::Instruction::kCollective:
      prepareCollective(instruction);
      return std::nullopt;
    case plan::Instruction::kWait: {
      size_t started = result->taskBegin.back() + instruction.wait().instruction();
      result->instructions.push_back(PreparedWait{started, *asyncIndexOf(started)});
      return std::nullopt;
    }
    case plan::Instruction::kStartTransfer:
      result->instructions.push_back(
          PreparedStartTransfer{instruction.start_transfer().transfer()});
      return std::nullopt;
    case plan::Instruction::kFinishTransfer:
      result->instructions.push_back(
          PreparedFinishTransfer{instruction.finish_transfer().transfer()});
      return std::nullopt;
    default:
      return laneOf(*result->program, instruction) == Lane::Compute ? prepareKernel(task, index)
                                                                    : prepareHostCall(instruction);
    }
  }

  /// Of an instruction of the program that is prepared.
  std::optional<size_t> asyncIndexOf(size_t index) const {
    const PreparedInstruction &instruction = result->instructions[index];
    if (const auto *call = std::get_if<PreparedHostCall>(&instruction))
      return call->asyncIndex;
    return std::get<PreparedCollective>(instruction).asyncIndex;
  }

  /// The number of an async instruction in its task, and those that it comes after.
  template <typename Prepared>
  void countAsync(const plan::Instruction &instruction, Prepared &prepared) {
    if (!isAsync(instruction))
      return;
    prepared.asyncIndex = asyncInTask++;
    result->maxAsync = std::max(result->maxAsync, asyncInTask);
    for (uint32_t before : instruction.after())
      prepared.after.push_back(*asyncIndexOf(result->taskBegin.back() + before));
  }

  /// A copy from one memory to the other, or a kernel of the host.
  MaybeError prepareHostCall(const plan::Instruction &instruction) {
    const plan::KernelCall &call = instruction.kernel();
    PreparedHostCall prepared;
    prepared.lane = laneOf(*result->program, instruction);
    for (uint32_t buffer : call.inputs())
      prepared.inputs.push_back(rangeOf(buffer));
    for (uint32_t buffer : call.outputs())
      prepared.outputs.push_back(rangeOf(buffer));
    countAsync(instruction, prepared);
    KernelSignature signature = signatureOf(call);
    // Also for a copy: an error of a call does not depend on who executes it.
    Expected<std::unique_ptr<Kernel>> kernel = prepareChecked(*host, signature);
    if (!kernel)
      return kernel.error();
    if (prepared.lane != Lane::Host)
      prepared.bytes = typeOfBuffer(call.outputs(0)).numBytes();
    else if (microbatchUseOf(signature) != MicrobatchUse::None)
      return Error{
          fmt::format("the kernel {} does another thing for each microbatch; the host runs "
                      "kernels that are the same for all",
                      call.kernel())};
    else if (!makesNothing(call)) {
      result->hostWorkspaceBytes =
          std::max(result->hostWorkspaceBytes, (*kernel)->workspaceBytes());
      prepared.kernel = std::move(*kernel);
    }
    result->instructions.push_back(std::move(prepared));
    return std::nullopt;
  }

  void prepareTransfer(const plan::Transfer &transfer) {
    PreparedTransfer prepared;
    prepared.sends = kindOf(transfer) == TransferKind::Send;
    prepared.peer = transfer.peer();
    prepared.channel = transfer.channel();
    for (uint32_t buffer : transfer.buffers())
      prepared.tensors.push_back({rangeOf(buffer), typeOfBuffer(buffer).numBytes()});
    result->transfers.push_back(std::move(prepared));
  }

  void markClosing() {
    const plan::Program &program = *result->program;
    const ClosingInstructions closing(program);
    result->lastMicrobatch = closing.lastMicrobatch();
    for (int t = 0; closing.any() && t < program.tasks_size(); ++t)
      for (int i = 0; i < program.tasks(t).instructions_size(); ++i)
        result->isClosing.push_back(closing.contains(static_cast<uint32_t>(t), i));
  }

  /// Follows the schedule to see how many transfers are on their way at one time.
  void countStartedTransfers() {
    std::vector<size_t> started(result->transfers.size(), 0);
    for (const PreparedProgram::ScheduleEntry &entry : result->schedule)
      for (size_t i = result->taskBegin[entry.task]; i < result->taskBegin[entry.task + 1]; ++i) {
        const PreparedInstruction &instruction = result->instructions[i];
        if (const auto *start = std::get_if<PreparedStartTransfer>(&instruction)) {
          size_t &most = result->transfers[start->transfer].maxStarted;
          most = std::max(most, ++started[start->transfer]);
        } else if (const auto *finish = std::get_if<PreparedFinishTransfer>(&instruction)) {
          if (started[finish->transfer] > 0)
            --started[finish->transfer];
        }
      }
  }

  KernelSignature signatureOf(const plan::KernelCall &call) const {
    return dtc::signatureOf(*result->program, call, position);
  }

  /// Whether all results are empty. The other dimensions of an empty tensor may be of any size: a
  /// kernel that goes through its rows would never come to the end of 2^60 of them.
  bool makesNothing(const plan::KernelCall &call) const {
    return !call.outputs().empty() && std::ranges::all_of(call.outputs(), [&](uint32_t buffer) {
      return typeOfBuffer(buffer).numBytes() == 0;
    });
  }

  MaybeError prepareKernel(const plan::Task &task, int index) {
    const plan::KernelCall &call = task.instructions(index).kernel();
    KernelSignature signature = signatureOf(call);
    PreparedKernel prepared;
    for (uint32_t buffer : call.inputs())
      prepared.inputs.push_back(rangeOf(buffer));
    for (uint32_t buffer : call.outputs())
      prepared.outputs.push_back(rangeOf(buffer));
    // Prepared in any case: an error of a call does not depend on who needs its results.
    std::shared_ptr<const Kernel> &shared = kernels[keyOf(call, signature)];
    if (!shared) {
      Expected<std::unique_ptr<Kernel>> kernel = prepareChecked(backend, signature);
      if (!kernel)
        return kernel.error();
      shared = std::move(*kernel);
    }
    if (!makesNothing(call)) {
      prepared.kernel = shared;
      if (emptyRows)
        leaveOutRows(task, index, signature, prepared);
      result->workspaceBytes = std::max(result->workspaceBytes, prepared.kernel->workspaceBytes());
      prepared.microbatchUse = microbatchUseOf(signature);
    }
    result->instructions.push_back(std::move(prepared));
    return std::nullopt;
  }

  /// Takes a kernel that leaves out the rows of zeros, and gives it their indices, if there are
  /// any.
  void leaveOutRows(const plan::Task &task, int index, const KernelSignature &signature,
                    PreparedKernel &prepared) {
    std::optional<RowIndices> rows = emptyRows->ofCall(task, index);
    if (!rows)
      return;
    auto [known, isNew] = kernels.try_emplace(
        fmt::format("{} rows {} of {}", keyOf(task.instructions(index).kernel(), signature),
                    rows->rows, rows->rowsOfGroup));
    if (isNew)
      known->second = backend.prepareOfRows(signature, rows->rows, rows->rowsOfGroup);
    if (!known->second)
      return;
    prepared.kernel = known->second;
    prepared.inputs.push_back(rangeOf(rows->buffer));
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

  CallGroups groupTask(const plan::Task &task) {
    auto isEmpty = [&](int call) { return makesNothing(task.instructions(call).kernel()); };
    FusionRules rules{mayHaveFusion, [&](const std::vector<int> &calls, const FusedCalls &fused) {
                        return std::ranges::none_of(calls, isEmpty) &&
                               prepareGroup(task, calls, fused) != nullptr;
                      }};
    return groupCalls(*result->program, task, *readers, position, rules);
  }

  /// Null if the backend has no kernel for these calls. An error of one of them is found when it is
  /// prepared by itself.
  std::shared_ptr<const Kernel> prepareGroup(const plan::Task &task, const std::vector<int> &calls,
                                             const FusedCalls &fused) {
    std::string key;
    for (size_t i = 0; i < calls.size(); ++i) {
      const FusedCalls::Call &part = fused.calls[i];
      key += fmt::format("{} {} {};", keyOf(task.instructions(calls[i]).kernel(), part.signature),
                         fmt::join(part.inputs, ","), fmt::join(part.outputs, ","));
    }
    for (const FusedCalls::Value &value : fused.values)
      key += value.isKept ? 'k' : '-';
    for (const FusedCalls::Overlap &each : fused.overlaps)
      key += fmt::format(" {}{}{}", each.before, each.isSame ? '=' : '~', each.made);
    auto [known, isNew] = groupKernels.try_emplace(std::move(key));
    if (isNew)
      known->second = backend.prepareFused(fused);
    return known->second;
  }

  /// The instruction at the place of the group has its kernel and the operands of all its calls,
  /// the others have none.
  void addPart(const plan::Task &task, const CallGroup &group, int instruction) {
    PreparedKernel part;
    std::vector<uint32_t> inputs, outputs; // by value
    auto add = [&](std::vector<uint32_t> &values, uint32_t buffer) {
      uint32_t value = readers->valueOf(buffer);
      for (const std::vector<uint32_t> *known : {&inputs, &outputs})
        if (std::ranges::find(*known, value) != known->end())
          return;
      values.push_back(value);
    };
    for (int call : group.calls) {
      const plan::KernelCall &kernel = task.instructions(call).kernel();
      for (uint32_t buffer : kernel.inputs())
        add(inputs, buffer);
      for (uint32_t buffer : kernel.outputs())
        add(outputs, buffer);
      part.microbatchUse = std::max(part.microbatchUse, microbatchUseOf(signatureOf(kernel)));
    }
    if (instruction == group.place) {
      part.kernel = prepareGroup(task, group.calls, group.fused);
      result->workspaceBytes = std::max(result->workspaceBytes, part.kernel->workspaceBytes());
      for (uint32_t buffer : inputs)
        part.inputs.push_back(rangeOf(buffer));
      for (uint32_t buffer : outputs)
        part.outputs.push_back(rangeOf(buffer));
    }
    result->instructions.push_back(std::move(part));
  }

  /// A kernel knows the number of a microbatch by the name of the temporal axis. The keys of random
  /// masks are others in each batch of a step.
  MicrobatchUse microbatchUseOf(const KernelSignature &signature) const {
    const KernelInfo &info = findKernel(signature.kernel);
    if (info.name.empty() || (info.drawsMask && signature.attributes.count("op")))
      return MicrobatchUse::Each;
    for (const AxisCoordinate &axis : position) {
      auto isNamed = [&](const std::string &text) {
        return text.find(axis.name) != std::string::npos;
      };
      for (const auto &[name, value] : signature.attributes) {
        const auto *text = std::get_if<std::string>(&value);
        const auto *texts = std::get_if<std::vector<std::string>>(&value);
        if (axis.temporal && ((text && isNamed(*text)) ||
                              (texts && std::any_of(texts->begin(), texts->end(), isNamed))))
          return info.traffic == KernelTraffic::Accumulate ? MicrobatchUse::First
                                                           : MicrobatchUse::Each;
      }
    }
    return MicrobatchUse::None;
  }

  static Expected<std::unique_ptr<Kernel>> prepareChecked(const Backend &backend,
                                                          const KernelSignature &signature) {
    // A library below the backend may throw.
    try {
      return backend.prepare(signature);
    } catch (const std::exception &exception) {
      return Error{fmt::format("the {} backend cannot prepare the kernel: {}", backend.name(),
                               exception.what())};
    }
  }

  void prepareCollective(const plan::Instruction &instruction) {
    const plan::Collective &collective = instruction.collective();
    AxisNames axes = toVector(collective.axes());
    PreparedCollective prepared;
    prepared.group = groupOf(axes);
    prepared.firstOperand = result->operands.size();
    countAsync(instruction, prepared);
    result->hasAsyncCollectives |= collective.async();
    CollectiveSpec spec;
    spec.kind = kindOf(collective);
    spec.reduction = reductionOf(collective);
    spec.members = plan.mesh.groupSize(axes);
    if (spec.kind == CollectiveKind::Permute)
      spec.sources = sourcesOf(axes, toVector(collective.source_axes()), collective.shift());
    for (const plan::CollectiveTensor &tensor : collective.tensors()) {
      spec.input = typeOfBuffer(tensor.input());
      spec.dim = tensor.dim();
      spec.splitDim = spec.kind == CollectiveKind::AllToAll ? tensor.split_dim() : tensor.dim();
      prepared.specs.push_back(spec);
      PreparedProgram::Operands operands{rangeOf(tensor.input()), rangeOf(tensor.output())};
      prepared.hasSlots |= operands.input.slots > 0 || operands.output.slots > 0;
      result->operands.push_back(operands);
    }
    result->instructions.push_back(std::move(prepared));
  }

  /// For each rank over `axes`, the number of its block over `sourceAxes` less `shift`: the same in
  /// all groups.
  std::shared_ptr<const std::vector<int64_t>>
  sourcesOf(const AxisNames &axes, const AxisNames &sourceAxes, int64_t shift) {
    std::shared_ptr<const std::vector<int64_t>> &shared = sources[{axes, sourceAxes, shift}];
    if (!shared) {
      std::vector<int64_t> ranks;
      int64_t members = plan.mesh.groupSize(axes);
      for (int64_t member : plan.mesh.group(0, axes))
        ranks.push_back((plan.mesh.blockIndex(member, sourceAxes) + members - shift % members) %
                        members);
      shared = std::make_shared<const std::vector<int64_t>>(std::move(ranks));
    }
    return shared;
  }

  /// The number of the group over `axes`.
  size_t groupOf(const AxisNames &axes) {
    auto group = std::find(plan.groups.begin(), plan.groups.end(), axes);
    if (group == plan.groups.end())
      group = plan.groups.insert(group, axes);
    return static_cast<size_t>(group - plan.groups.begin());
  }

  PreparedPlan &plan;
  PreparedProgram *result = nullptr; // the one being prepared
  const Backend &backend;
  const bool fuses;
  const Backend *host; // of kernels in the memory of the host
  std::vector<AxisCoordinate> position;
  std::map<std::string, std::shared_ptr<const Kernel>> kernels, groupKernels; // of all programs
  std::map<std::tuple<AxisNames, AxisNames, int64_t>, std::shared_ptr<const std::vector<int64_t>>>
      sources;
  size_t asyncInTask = 0; // so far
  std::optional<ValueReaders> readers;
  std::optional<EmptyRows> emptyRows; // where the backend leaves them out
};

} // namespace

size_t PreparedProgram::taskOf(size_t index) const {
  // The last task that begins at or before the index; empty tasks begin where the next one does.
  auto next = std::upper_bound(taskBegin.begin(), taskBegin.end(), index);
  return static_cast<size_t>(next - taskBegin.begin()) - 1;
}

const plan::Instruction &PreparedProgram::instruction(size_t index) const {
  size_t task = taskOf(index);
  return program->tasks(static_cast<int>(task))
      .instructions(static_cast<int>(index - taskBegin[task]));
}

/// The most that a program of the plan or of its entry points needs.
template <typename Need> static uint64_t mostOf(const PreparedPlan &plan, const Need &need) {
  uint64_t most = need(plan);
  for (const auto &entryPoint : plan.entryPoints)
    most = std::max<uint64_t>(most, need(*entryPoint));
  return most;
}

uint64_t PreparedPlan::arenaBytes(size_t index) const {
  return mostOf(*this, [&](const PreparedPlan &plan) -> uint64_t {
    return plan.programs[index].program->arena_bytes();
  });
}

uint64_t PreparedPlan::workspaceBytes(size_t index) const {
  return mostOf(*this, [&](const PreparedPlan &plan) -> uint64_t {
    return plan.programs[index].workspaceBytes;
  });
}

uint64_t PreparedPlan::workspaceBeside(size_t index) const {
  uint64_t most = 0;
  for (const std::shared_ptr<const PreparedPlan> &entry : entryPoints)
    if (entry->runsBeside())
      most = std::max<uint64_t>(most, entry->programs[index].workspaceBytes);
  return most;
}

uint64_t PreparedPlan::hostArenaBytes(size_t index) const {
  return mostOf(*this, [&](const PreparedPlan &plan) -> uint64_t {
    return plan.programs[index].program->host_arena_bytes();
  });
}

uint64_t PreparedPlan::hostWorkspaceBytes(size_t index) const {
  return mostOf(*this, [&](const PreparedPlan &plan) -> uint64_t {
    return plan.programs[index].hostWorkspaceBytes;
  });
}

bool PreparedPlan::hasAsync(size_t index) const {
  return mostOf(*this, [&](const PreparedPlan &plan) -> uint64_t {
    return plan.programs[index].hasAsyncCollectives;
  });
}

bool PreparedPlan::runsBeside() const { return plan->entry().starts_with(kOuterSendEntry); }

bool PreparedPlan::usesHost(size_t index) const {
  return mostOf(
      *this, [&](const PreparedPlan &plan) -> uint64_t { return plan.programs[index].usesHost; });
}

/// Prepares the plan with the kernels of a backend that has the right number of threads.
static Expected<std::shared_ptr<PreparedPlan>>
createWith(std::shared_ptr<const plan::Plan> plan, const Backend &backend,
           std::shared_ptr<const Backend> host, std::span<const int64_t> devices, bool fuses) {
  auto result = std::make_shared<PreparedPlan>();
  result->hostBackend = std::move(host);
  result->plan = std::move(plan);
  result->mesh = meshOf(*result->plan);
  result->replicas = replicasOf(*result->plan);
  int count = result->plan->programs_size();
  result->programs.resize(static_cast<size_t>(count));
  std::vector<bool> isHeld(static_cast<size_t>(count), devices.empty());
  for (int64_t device : devices)
    isHeld[static_cast<size_t>(result->mesh.programOf(device))] = true;
  Preparer preparer(*result, backend, fuses);
  for (int p = 0; p < count; ++p) {
    result->programs[static_cast<size_t>(p)].program = &result->plan->programs(p);
    preparer.addGroups(result->plan->programs(p));
  }
  for (size_t p = 0; p < isHeld.size(); ++p)
    if (isHeld[p])
      if (MaybeError error = preparer.run(result->programs[p]))
        return count > 1 ? error->inContext(fmt::format("program {}", p)) : *error;
  for (const plan::Plan &entryPoint : result->plan->entry_points()) {
    // It lives as long as the plan that it is a part of.
    auto prepared =
        createWith({result->plan, &entryPoint}, backend, result->hostBackend, devices, fuses);
    if (!prepared)
      return prepared.error().inContext(fmt::format("entry point \"{}\"", entryPoint.entry()));
    result->entryPoints.push_back(std::move(*prepared));
  }
  return result;
}

Expected<std::shared_ptr<const PreparedPlan>>
PreparedPlan::create(std::shared_ptr<const plan::Plan> plan, const Backend &backend, int threads,
                     std::span<const int64_t> devices, bool fuses) {
  std::shared_ptr<const Backend> threaded = backend.withThreads(threads);
  std::shared_ptr<const Backend> host;
  auto needsHost = [](const plan::Plan &each) {
    return std::any_of(each.programs().begin(), each.programs().end(), dtc::usesHost);
  };
  if (needsHost(*plan) ||
      std::any_of(plan->entry_points().begin(), plan->entry_points().end(), needsHost))
    host = createCpuBackend(threads);
  auto prepared = createWith(std::move(plan), threaded ? *threaded : backend, host, devices, fuses);
  if (!prepared)
    return prepared.error();
  (*prepared)->threads = threads;
  (*prepared)->backend = std::move(threaded);
  return std::shared_ptr<const PreparedPlan>(std::move(*prepared));
}

} // namespace dtc::runtime
