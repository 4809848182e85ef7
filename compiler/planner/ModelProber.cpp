//===- ModelProber.cpp - Costs of a model by compiling a part of it -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/ModelProber.h"

#include "compiler/driver/CandidateSearch.h"
#include "compiler/export/ExportPlan.h"
#include "compiler/planner/AxisMaps.h"
#include "compiler/planner/ClusterSpeeds.h"
#include "compiler/planner/StepSections.h"
#include "plan/PlanTypes.h"
#include "simulator/TimedPlan.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

using namespace mlir;
using namespace dtc;

static double bytesOf(const plan::Buffer &buffer) {
  return double(llvm::alignTo(typeOf(buffer).numBytes(), 64));
}

double dtc::keptBytes(const plan::Program &program, bool ofAllMicrobatches) {
  auto baseOf = [&](uint32_t buffer) { return storageOf(program, buffer); };
  std::set<uint32_t> written, kept;
  for (bool isForward : {true, false})
    for (const plan::Task &task : program.tasks()) {
      if ((passOf(task) == StagePass::Forward) != isForward || !passOf(task))
        continue;
      auto read = [&](uint32_t buffer) {
        if (!isForward && written.contains(baseOf(buffer)))
          kept.insert(baseOf(buffer));
      };
      auto write = [&](uint32_t buffer) {
        if (isForward && kindOf(program.buffers(int(baseOf(buffer)))) == BufferKind::Activation)
          written.insert(baseOf(buffer));
      };
      for (const plan::Instruction &instruction : task.instructions()) {
        for (uint32_t buffer : instruction.kernel().inputs())
          read(buffer);
        for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
          read(tensor.input());
        for (uint32_t buffer : instruction.kernel().outputs())
          write(buffer);
        for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
          write(tensor.output());
        if (instruction.has_finish_transfer())
          for (uint32_t buffer :
               program.transfers(int(instruction.finish_transfer().transfer())).buffers())
            write(buffer);
      }
    }
  double bytes = 0;
  std::set<uint64_t> shared; // offsets of slots that buffers share, which count once
  for (uint32_t index : kept) {
    const plan::Buffer &buffer = program.buffers(int(index));
    if (ofAllMicrobatches && buffer.has_slot_map() && !shared.insert(buffer.offset()).second)
      continue;
    bytes += bytesOf(buffer) * (ofAllMicrobatches ? std::max(1.0, double(buffer.slots())) : 1);
  }
  return bytes;
}

/// The parameters that a device of the program holds, by their names.
static std::map<std::string, ParameterKind>
parametersOf(const plan::Program &program, const std::map<std::string, int64_t> &axes) {
  std::map<std::string, ParameterKind> parameters;
  std::map<std::string, double> elements;
  for (const plan::State &state : program.states()) {
    const plan::Buffer &buffer = program.buffers(int(state.buffer()));
    if (state.kind() != plan::State::PARAMETER)
      continue;
    ParameterKind &kind = parameters[state.name()];
    kind.shape.assign(state.shape().begin(), state.shape().end());
    kind.shards.assign(kind.shape.size(), 1);
    for (int dim = 0; dim < state.sharding().dims_size(); ++dim)
      for (const std::string &axis : state.sharding().dims(dim).axes())
        kind.shards[size_t(dim)] *= axes.at(axis);
    kind.parameterBytes = bytesOf(buffer);
    elements[state.name()] = double(typeOf(buffer).numElements());
  }
  auto addGradient = [&](const std::string &name) {
    if (auto it = parameters.find(name); it != parameters.end())
      it->second.gradientBytes = elements[name] * 4; // summed in full precision
  };
  for (const plan::State &state : program.states())
    if (auto it = parameters.find(state.parameter()); it != parameters.end()) {
      it->second.stateBytes += bytesOf(program.buffers(int(state.buffer())));
      addGradient(state.parameter());
    }
  for (const plan::Output &output : program.outputs())
    if (StringRef(output.name()).starts_with("grad:"))
      addGradient(output.name().substr(5));
  return parameters;
}

/// The bytes of the data of a microbatch that a program reads, by their names.
static std::map<std::string, double> inputsOf(const plan::Program &program, double microbatches) {
  std::map<std::string, double> inputs;
  for (const plan::Input &input : program.inputs())
    if (input.role() == plan::Input::DATA)
      inputs[input.name()] = bytesOf(program.buffers(int(input.buffer()))) / microbatches;
  return inputs;
}

static void addParameter(SectionCost &cost, const ParameterKind &kind) {
  cost.parameterBytes += kind.parameterBytes;
  cost.stateBytes += kind.stateBytes;
  cost.gradientBytes += kind.gradientBytes;
  ++cost.parameters[kind];
}

/// The cost of the tasks of a program on its device.
static SectionCost costOf(const plan::Program &program, const SimulatedDevice &device,
                          const std::map<std::string, int64_t> &axes, double microbatches) {
  SectionCost cost;
  std::vector<double> once(size_t(program.tasks_size()), 0);
  for (int t = 0; t < program.tasks_size(); ++t) {
    const plan::Task &task = program.tasks(t);
    double seconds = isolatedSeconds(device.tasks[size_t(t)], device.overlapSlowdown);
    if (passOf(task) == StagePass::Forward)
      cost.forward += seconds;
    else if (passOf(task))
      cost.backward += seconds;
    else
      once[size_t(t)] = seconds;
  }
  for (const plan::ScheduleEntry &entry : program.schedule())
    cost.once += once[entry.task()];
  // A task that does more for the last microbatch is another one then.
  auto secondsOf = [&](uint32_t task) {
    return isolatedSeconds(device.tasks[task], device.overlapSlowdown);
  };
  for (size_t e = 0; e < device.schedule.size(); ++e)
    if (uint32_t task = device.schedule[e].task; task >= once.size())
      cost.once += std::max(0.0, secondsOf(task) - secondsOf(program.schedule(int(e)).task()));
  for (const auto &[name, kind] : parametersOf(program, axes))
    addParameter(cost, kind);
  for (const auto &[name, bytes] : inputsOf(program, microbatches))
    cost.inputBytes += bytes;
  cost.keptBytes = keptBytes(program);
  cost.transientBytes =
      std::max(0.0, double(program.arena_lower_bound()) - cost.parameterBytes - cost.stateBytes -
                        cost.gradientBytes - microbatches * cost.inputBytes -
                        keptBytes(program, /*ofAllMicrobatches=*/true));
  return cost;
}

/// The costs that two programs both have, and that are there once.
static SectionCost tiedOf(const plan::Program &one, const plan::Program &other,
                          const SectionCost &cost, const std::map<std::string, int64_t> &axes,
                          double microbatches) {
  SectionCost tied;
  auto parameters = parametersOf(other, axes);
  for (const auto &[name, kind] : parametersOf(one, axes))
    if (parameters.contains(name))
      addParameter(tied, kind);
  auto inputs = inputsOf(other, microbatches);
  for (const auto &[name, bytes] : inputsOf(one, microbatches))
    if (inputs.contains(name))
      tied.inputBytes += bytes;
  // The update takes time in proportion to the state.
  if (cost.stateBytes > 0)
    tied.once = cost.once * tied.stateBytes / cost.stateBytes;
  return tied;
}

static void subtract(SectionCost &part, const SectionCost &layer) {
  for (double SectionCost::*field :
       {&SectionCost::forward, &SectionCost::backward, &SectionCost::once, &SectionCost::keptBytes,
        &SectionCost::parameterBytes, &SectionCost::stateBytes, &SectionCost::gradientBytes})
    part.*field = std::max(0.0, part.*field - layer.*field);
  for (const auto &[kind, count] : layer.parameters) {
    auto it = part.parameters.find(kind);
    if (it == part.parameters.end())
      continue;
    it->second -= count;
    if (it->second <= 0)
      part.parameters.erase(it);
  }
}

/// Returns the first error of some work instead of showing what is said.
static MaybeError runSilently(MLIRContext *context, llvm::function_ref<LogicalResult()> work) {
  std::vector<Diagnostic> said;
  ScopedDiagnosticHandler quiet(context, [&](Diagnostic &diagnostic) {
    said.push_back(std::move(diagnostic));
    return success();
  });
  if (succeeded(work()))
    return std::nullopt;
  return Error{firstErrorOf(said)};
}

bool dtc::mixesSamples(ModuleOp model, const ProbeSetting &setting) {
  int64_t parts = 2;
  while (parts <= setting.batch && setting.batch % parts != 0)
    ++parts;
  if (parts > setting.batch)
    return false;
  auto compiles = [&](int64_t microbatches) {
    CompileOptions options = setting.options;
    options.mesh.clear();
    // As probes of other models have it, where some models may sum later than without it.
    if (microbatches > 1)
      options.mesh.emplace_back(kPipelineAxis, 1);
    options.microbatches = microbatches;
    options.zero = 0;
    options.zeroAxes.clear();
    options.schedule = "1f1b";
    options.chunks = 0;
    options.stages.clear();
    options.memoryLimit = 0;
    options.recompute = Recompute::None;
    options.shard.clear(); // the mesh has none of the axes that its entries name
    llvm::append_range(options.shard, batchEntries(setting.batchDims, options.mesh));
    OwningOpRef<ModuleOp> module = model.clone();
    return !runSilently(module->getContext(), [&] { return partitionModel(*module, options); });
  };
  return !compiles(parts) && compiles(1);
}

ModelProber::PartitionKey ModelProber::partitionKeyOf(const CostKey &key) {
  return {key.tp, key.ep, key.cp, key.contextHeads, key.samples, key.sequenceParallel, key.shard};
}

/// The partitioned model of a key. Its programs with different recomputation share it, as
/// recomputation is decided after the partitioning.
const ModelProber::Partition &ModelProber::partition(const PartitionKey &key,
                                                     const CompileOptions &probed) {
  if (auto it = partitions.find(key); it != partitions.end())
    return it->second;
  OwningOpRef<ModuleOp> module = model.clone();
  MaybeError error = runSilently(
      module->getContext(), [&] { return partitionModel(*module, probed, /*verifies=*/false); });
  Partition made = error ? Partition(*error) : Partition(std::move(module));
  return partitions.emplace(key, std::move(made)).first->second;
}

Expected<std::vector<ModelCosts>> ModelProber::probe(const CostKey &key) {
  // A pipeline tells forward from backward also where all of the model is one stage.
  CompileOptions probed = setting.options;
  int64_t stages = setting.prefix.empty() ? 1 : setting.keptLayers;
  probed.mesh.clear();
  if (!setting.mixesSamples)
    probed.mesh.emplace_back(kPipelineAxis, stages);
  // Most of the batch is split over devices, so that there is little to schedule.
  int64_t all = setting.batch / (key.samples * key.ep);
  probed.microbatches = setting.mixesSamples ? 1
                        : all % 4 == 0       ? 4
                        : all % 3 == 0       ? 3
                        : all % 2 == 0       ? 2
                                             : 1;
  if (probed.microbatches < all)
    probed.mesh.emplace_back(kDataAxis, all / probed.microbatches);
  if (key.ep > 1)
    probed.mesh.emplace_back(kExpertAxis, key.ep);
  if (key.cp > 1)
    probed.mesh.emplace_back(kContextAxis, key.cp);
  if (key.tp > 1)
    probed.mesh.emplace_back(kTensorAxis, key.tp);
  probed.contextHeads = key.contextHeads;
  probed.sequenceParallel = key.sequenceParallel;
  llvm::append_range(probed.shard, key.shard);
  llvm::append_range(probed.shard, batchEntries(setting.batchDims, probed.mesh));
  probed.recompute = key.recompute;
  probed.zero = 0;
  probed.zeroAxes.clear();
  probed.schedule = "1f1b";
  probed.chunks = 0;
  probed.memoryLimit = 0;
  probed.stages.clear();
  for (int64_t stage = 0; stage < stages && stages > 1; ++stage)
    probed.stages += fmt::format("{}{}{}", stage > 0 ? "|" : "", setting.prefix, stage);

  // Two of dp's devices have its link, which the cluster need not have as many of as a probe.
  CompileOptions paired = probed;
  for (auto &[name, size] : paired.mesh)
    if (name == kDataAxis)
      size = 2;
  useClusterSpeeds(setting.clusters.front(), paired);
  probed.links = paired.links;
  probed.deviceFlops = paired.deviceFlops;
  probed.deviceBandwidth = paired.deviceBandwidth;

  const Partition &partitioned = partition(partitionKeyOf(key), probed);
  if (!partitioned)
    return partitioned.error();
  ModuleOp front = partitioned->get();
  plan::Plan plan;
  if (MaybeError error = runSilently(front.getContext(), [&] {
        std::vector<DeviceSavedBytes> keeps;
        OwningOpRef<ModuleOp> module =
            lowerEntryPoint({"", probed}, front.clone(), /*plansMemory=*/true, {}, keeps,
                            /*verifies=*/false);
        return success(module && succeeded(exportPlan(*module, "probe", plan)));
      }))
    return *error;
  if (setting.mixesSamples)
    for (plan::Program &program : *plan.mutable_programs())
      splitStep(program);
  // Communication over that axis belongs to a strategy, not to the model.
  for (plan::Axis &axis : *plan.mutable_axes())
    if (axis.name() == kDataAxis)
      axis.set_size(1);
  if (setting.changePlan)
    setting.changePlan(plan);
  std::vector<ModelCosts> costs;
  for (const cluster::Cluster &cluster : setting.clusters) {
    Expected<ModelCosts> timed = timeOn(cluster, plan);
    if (!timed)
      return timed.error();
    costs.push_back(*timed);
  }
  return costs;
}

Expected<ModelCosts> ModelProber::timeOn(const cluster::Cluster &cluster,
                                         const plan::Plan &plan) const {
  auto topology = Topology::create(cluster, meshOf(plan));
  if (!topology)
    return topology.error();
  auto work = workOnCluster(plan, *topology);
  if (!work)
    return work.error();

  ModelCosts costs;
  std::vector<SectionCost> parts;
  std::map<std::string, int64_t> axes;
  double microbatches = 1;
  for (const plan::Axis &axis : plan.axes()) {
    axes[axis.name()] = axis.size();
    if (axis.temporal())
      microbatches = double(axis.size());
  }
  for (int p = 0; p < plan.programs_size(); ++p)
    parts.push_back(costOf(plan.programs(p), work->devices[size_t(p)], axes, microbatches));
  costs.before = parts.front();
  const int stages = plan.programs_size();
  if (stages > 1) {
    costs.layers = setting.layers;
    costs.tied =
        tiedOf(plan.programs(0), plan.programs(stages - 1), parts.front(), axes, microbatches);
    costs.layer = parts[1];
    subtract(costs.before, costs.layer);
    costs.after = parts.back();
    subtract(costs.after, costs.layer);
    for (const auto &[number, channel] : work->channels)
      if (channel.from == 0 && channel.to == 1)
        costs.boundaryBytes += double(channel.bytes);
  }
  return costs;
}
