//===- ModelCosts.cpp - Costs of the sections of a model ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/ModelCosts.h"

#include "compiler/analysis/ZeroSplit.h"
#include "compiler/driver/CandidateSearch.h"
#include "compiler/export/ExportPlan.h"
#include "compiler/passes/sharding/ArgumentDims.h"
#include "compiler/planner/AxisMaps.h"
#include "compiler/planner/ClusterSpeeds.h"
#include "plan/PlanTypes.h"
#include "simulator/TimedPlan.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <set>

using namespace mlir;
using namespace dtc;

/// Probes have a stage of a pipeline for each of a few layers, also where the cluster is too small
/// for these: one of so many nodes of a kind that it is not.
static cluster::Cluster enlarge(cluster::Cluster cluster, const cluster::NodeKind &kind,
                                int64_t times) {
  int64_t devices = countDevices(cluster);
  cluster.clear_nodes();
  cluster::NodeGroup *group = cluster.add_nodes();
  group->set_node(kind.name());
  group->set_count(times * devices);
  // Where there is one node, nothing says what is between nodes. Messages between stages are left
  // out of the costs.
  for (cluster::NodeKind &node : *cluster.mutable_node_kinds())
    if (node.network_bandwidth() == 0 && node.device_network_bandwidth() == 0)
      node.set_device_network_bandwidth(std::max(node.link().bandwidth(), 1e9));
  return cluster;
}

int64_t dtc::usedDevices(const cluster::Cluster &cluster, int64_t asked) {
  return asked > 0 ? asked : countDevices(cluster);
}

std::vector<const cluster::NodeKind *> dtc::kindsOfNodes(const cluster::Cluster &cluster,
                                                         int64_t devices) {
  std::vector<const cluster::NodeKind *> kinds;
  for (const UsedNodes &used : findUsedNodes(cluster, usedDevices(cluster, devices)))
    if (!llvm::is_contained(kinds, used.node))
      kinds.push_back(used.node);
  return kinds;
}

CostProbe::CostProbe(ModuleOp model, const CompileOptions &options, const cluster::Cluster &cluster,
                     int64_t batch, int64_t devices, std::vector<std::string> batchDims)
    : shortened(removeRepeatedLayers(model, 3)), options(options), batch(batch),
      batchDims(std::move(batchDims)) {
  // What the user says of single layers that are taken out is not about those that are left.
  auto function = *shortened.module->getOps<func::FuncOp>().begin();
  llvm::erase_if(this->options.shard, [&](StringRef entry) {
    StringRef key = entry.split('=').first;
    return namesArgumentDims(key) && !findArgumentDims(function, key);
  });
  for (const cluster::NodeKind *kind : kindsOfNodes(cluster, devices))
    clusters.push_back(enlarge(cluster, *kind, std::max<int64_t>(shortened.keptLayers, 1)));
}

ArrayRef<ModelCosts> CostProbe::find(const CostKey &key) {
  auto it = known.find(key);
  if (it == known.end())
    it = known.emplace(key, probe(key)).first;
  return it->second ? ArrayRef(*it->second) : ArrayRef<ModelCosts>();
}

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

/// What part of a parameter, of its gradient and of its state each of the devices holds that ZeRO
/// splits over.
static double zeroShare(const ParameterKind &kind, int64_t devices) {
  LinkedMesh mesh;
  mesh.axes.push_back({"zero", devices});
  Layout layout = Layout::replicated(int64_t(kind.shape.size()));
  for (auto [dim, shards] : llvm::enumerate(kind.shards))
    if (shards > 1) {
      layout.dims[dim] = {unsigned(mesh.axes.size())};
      mesh.axes.push_back({"split", shards});
    }
  unsigned zero = 0;
  std::optional<unsigned> dim =
      chooseZeroDim(mesh, kind.shape, layout, zero, SmallVector<bool>(kind.shape.size(), true));
  if (!dim)
    return 1;
  AxisList axes = layout.dims[*dim];
  double before = double(mesh.localSize(kind.shape[*dim], axes));
  axes.push_back(zero);
  return double(mesh.localSize(kind.shape[*dim], axes)) / before;
}

const SectionCost::Rest &SectionCost::restOf(int64_t devices) const {
  auto [it, fresh] = rests.try_emplace(devices);
  if (!fresh || devices == 1)
    return it->second;
  auto add = [](ParameterBytes &bytes, const ParameterKind &kind, double times) {
    bytes.parameters += times * kind.parameterBytes;
    bytes.states += times * kind.stateBytes;
    bytes.gradients += times * kind.gradientBytes;
  };
  for (const auto &[kind, count] : parameters) {
    double share = zeroShare(kind, devices);
    add(it->second.beyond, kind, double(count) * (share - 1 / double(devices)));
    if (share == 1)
      add(it->second.whole, kind, double(count));
  }
  return it->second;
}

ParameterBytes SectionCost::underZero(int64_t devices) const {
  const ParameterBytes &beyond = restOf(devices).beyond;
  auto n = double(devices);
  return {parameterBytes / n + beyond.parameters, stateBytes / n + beyond.states,
          gradientBytes / n + beyond.gradients};
}

double SectionCost::largestParameterBytes(int64_t count) const {
  std::vector<double> bytes;
  for (const auto &[kind, number] : parameters)
    bytes.insert(bytes.end(), size_t(std::min(number, count)), kind.parameterBytes);
  llvm::sort(bytes, std::greater<>());
  bytes.resize(std::min(bytes.size(), size_t(count)));
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
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

/// What the tasks of a program cost its device.
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

/// What two programs both have, of what is there once.
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
  for (const auto &[kind, count] : layer.parameters)
    if (auto it = part.parameters.find(kind);
        it != part.parameters.end() && (it->second -= count) <= 0)
      part.parameters.erase(it);
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

/// What is recomputed is decided after the program was split.
const CostProbe::Partition &CostProbe::partition(const PartitionKey &key,
                                                 const CompileOptions &probed) {
  if (auto it = partitions.find(key); it != partitions.end())
    return it->second;
  OwningOpRef<ModuleOp> module = shortened.module->clone();
  MaybeError error =
      runSilently(module->getContext(), [&] { return partitionModel(*module, probed); });
  Partition made = error ? Partition(*error) : Partition(std::move(module));
  return partitions.emplace(key, std::move(made)).first->second;
}

Expected<std::vector<ModelCosts>> CostProbe::probe(const CostKey &key) {
  // A pipeline tells forward from backward also where all of the model is one stage.
  CompileOptions probed = options;
  int64_t stages = shortened.prefix.empty() ? 1 : shortened.keptLayers;
  probed.mesh = {{kPipelineAxis, stages}};
  // Most of the batch is split over devices, so that there is little to schedule.
  int64_t all = batch / key.samples;
  probed.microbatches = all % 4 == 0 ? 4 : all % 3 == 0 ? 3 : all % 2 == 0 ? 2 : 1;
  if (probed.microbatches < all)
    probed.mesh.emplace_back("dp", all / probed.microbatches);
  if (key.tp > 1)
    probed.mesh.emplace_back("tp", key.tp);
  probed.sequenceParallel = key.sequenceParallel;
  llvm::append_range(probed.shard, key.shard);
  llvm::append_range(probed.shard, batchEntries(batchDims, probed.mesh));
  probed.recompute = key.recompute;
  probed.zero = 0;
  probed.zeroAxes.clear();
  probed.schedule = "1f1b";
  probed.chunks = 0;
  probed.memoryLimit = 0;
  probed.stages.clear();
  for (int64_t stage = 0; stage < stages && stages > 1; ++stage)
    probed.stages += fmt::format("{}{}{}", stage > 0 ? "|" : "", shortened.prefix, stage);

  // Two of dp's devices have its link, which the cluster need not have as many of as a probe.
  CompileOptions paired = probed;
  for (auto &[name, size] : paired.mesh)
    if (name == "dp")
      size = 2;
  useClusterSpeeds(clusters.front(), paired);
  probed.links = paired.links;
  probed.deviceFlops = paired.deviceFlops;
  probed.deviceBandwidth = paired.deviceBandwidth;

  const Partition &partitioned =
      partition({key.tp, key.samples, key.sequenceParallel, key.shard}, probed);
  if (!partitioned)
    return partitioned.error();
  ModuleOp front = partitioned->get();
  plan::Plan plan;
  if (MaybeError error = runSilently(front.getContext(), [&] {
        std::vector<DeviceSavedBytes> keeps;
        OwningOpRef<ModuleOp> module =
            lowerEntryPoint({"", probed}, front.clone(), /*plansMemory=*/true, {}, keeps);
        return success(module && succeeded(exportPlan(*module, "probe", plan)));
      }))
    return *error;
  // What is moved over that axis belongs to a strategy, not to the model.
  for (plan::Axis &axis : *plan.mutable_axes())
    if (axis.name() == "dp")
      axis.set_size(1);
  std::vector<ModelCosts> costs;
  for (const cluster::Cluster &cluster : clusters) {
    Expected<ModelCosts> timed = timeOn(cluster, plan);
    if (!timed)
      return timed.error();
    costs.push_back(*timed);
  }
  return costs;
}

Expected<ModelCosts> CostProbe::timeOn(const cluster::Cluster &cluster,
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
    costs.layers = shortened.layers;
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
