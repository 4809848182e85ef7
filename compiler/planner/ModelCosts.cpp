//===- ModelCosts.cpp - What the parts of a model cost a device ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/ModelCosts.h"

#include "compiler/export/ExportPlan.h"
#include "compiler/passes/sharding/ArgumentDims.h"
#include "compiler/pipeline/PlanSearch.h"
#include "compiler/planner/AxisMaps.h"
#include "compiler/planner/ClusterSpeeds.h"
#include "runtime/plan/PlanTypes.h"
#include "runtime/simulate/PlanSteps.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>
#include <set>

using namespace mlir;
using namespace dtc;
using runtime::Error;
using runtime::Expected;

/// Probes have a stage of a pipeline for each of a few layers, also where the cluster is too small
/// for these: one of so many nodes of a kind that it is not.
static cluster::Cluster enlarge(cluster::Cluster cluster, const cluster::Node &kind,
                                int64_t times) {
  int64_t devices = runtime::countDevices(cluster);
  cluster.clear_nodes();
  cluster::NodeGroup *group = cluster.add_nodes();
  group->set_node(kind.name());
  group->set_count(times * devices);
  // Where there is one node, nothing says what is between nodes. Messages between stages are left
  // out of the costs.
  for (cluster::Node &node : *cluster.mutable_node_kinds())
    if (node.network_bandwidth() == 0 && node.device_network_bandwidth() == 0)
      node.set_device_network_bandwidth(std::max(node.link().bandwidth(), 1e9));
  return cluster;
}

int64_t dtc::usedDevices(const cluster::Cluster &cluster, int64_t asked) {
  return asked > 0 ? asked : runtime::countDevices(cluster);
}

std::vector<const cluster::Node *> dtc::kindsOfNodes(const cluster::Cluster &cluster,
                                                     int64_t devices) {
  std::vector<const cluster::Node *> kinds;
  for (const runtime::UsedNodes &used :
       runtime::findUsedNodes(cluster, usedDevices(cluster, devices)))
    if (!llvm::is_contained(kinds, used.node))
      kinds.push_back(used.node);
  return kinds;
}

CostProbe::CostProbe(ModuleOp model, const CompileOptions &options, const cluster::Cluster &cluster,
                     int64_t batch, int64_t devices, std::vector<std::string> batchDims)
    : shortened(shortenModel(model, 3)), options(options), batch(batch),
      batchDims(std::move(batchDims)) {
  // What the user says of single layers that are taken out is not about those that are left.
  auto function = *shortened.module->getOps<func::FuncOp>().begin();
  llvm::erase_if(this->options.shard, [&](StringRef entry) {
    StringRef key = entry.split('=').first;
    std::string problem;
    return namesArgumentDims(key) && !findArgumentDims(function, key, problem);
  });
  for (const cluster::Node *kind : kindsOfNodes(cluster, devices))
    clusters.push_back(enlarge(cluster, *kind, std::max<int64_t>(shortened.keptLayers, 1)));
}

ArrayRef<ModelCosts> CostProbe::find(const CostKey &key) {
  auto it = known.find(key);
  if (it == known.end())
    it = known.emplace(key, probe(key)).first;
  return it->second ? ArrayRef(*it->second) : ArrayRef<ModelCosts>();
}

static double bytesOf(const plan::Buffer &buffer) {
  return double(llvm::alignTo(runtime::typeOf(buffer).numBytes(), 64));
}

double dtc::keptBytes(const plan::Program &program, bool ofAllMicrobatches) {
  auto baseOf = [&](uint32_t buffer) { return runtime::storageOf(program, buffer); };
  std::set<uint32_t> written, kept;
  for (bool isForward : {true, false})
    for (const plan::Task &task : program.tasks()) {
      if ((task.kind() == plan::Task::FORWARD) != isForward || task.kind() == plan::Task::OTHER)
        continue;
      auto read = [&](uint32_t buffer) {
        if (!isForward && written.contains(baseOf(buffer)))
          kept.insert(baseOf(buffer));
      };
      auto write = [&](uint32_t buffer) {
        if (isForward && program.buffers(int(baseOf(buffer))).kind() == plan::Buffer::ACTIVATION)
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

/// What the tasks of a program cost its device.
static PartCost costOf(const plan::Program &program, const runtime::SimulatedDevice &device) {
  PartCost cost;
  std::vector<double> once(size_t(program.tasks_size()), 0);
  for (int t = 0; t < program.tasks_size(); ++t) {
    const plan::Task &task = program.tasks(t);
    double seconds = runtime::isolatedSeconds(device.tasks[size_t(t)], device.overlapSlowdown);
    if (task.kind() == plan::Task::FORWARD)
      cost.forward += seconds;
    else if (task.kind() != plan::Task::OTHER)
      cost.backward += seconds;
    else
      once[size_t(t)] = seconds;
  }
  for (const plan::ScheduleEntry &entry : program.schedule())
    cost.once += once[entry.task()];
  for (const plan::State &state : program.states()) {
    const plan::Buffer &buffer = program.buffers(int(state.buffer()));
    (buffer.kind() == plan::Buffer::PARAMETER ? cost.parameterBytes : cost.stateBytes) +=
        bytesOf(buffer);
    if (buffer.kind() == plan::Buffer::PARAMETER)
      cost.gradientBytes += 4 * double(runtime::typeOf(buffer).numElements());
  }
  cost.keptBytes = keptBytes(program);
  return cost;
}

static void subtract(PartCost &part, const PartCost &layer) {
  for (double PartCost::*field :
       {&PartCost::forward, &PartCost::backward, &PartCost::once, &PartCost::keptBytes,
        &PartCost::parameterBytes, &PartCost::stateBytes, &PartCost::gradientBytes})
    part.*field = std::max(0.0, part.*field - layer.*field);
}

/// Works on a module and returns the first error instead of showing what is said of it.
static runtime::MaybeError runSilently(ModuleOp module, llvm::function_ref<LogicalResult()> work) {
  std::vector<Diagnostic> said;
  ScopedDiagnosticHandler quiet(module.getContext(), [&](Diagnostic &diagnostic) {
    said.push_back(std::move(diagnostic));
    return success();
  });
  if (succeeded(work()))
    return std::nullopt;
  return Error{firstErrorOf(said)};
}

/// What is computed again is decided after the program was split.
const CostProbe::Partition &CostProbe::partition(const PartitionKey &key,
                                                 const CompileOptions &probed) {
  if (auto it = partitions.find(key); it != partitions.end())
    return it->second;
  OwningOpRef<ModuleOp> module = shortened.module->clone();
  runtime::MaybeError error = runSilently(*module, [&] {
    return success(succeeded(declareMesh(*module, probed)) &&
                   succeeded(runPasses(*module, [&](OpPassManager &manager) {
                     buildPartitioning(manager, probed);
                   })));
  });
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
  OwningOpRef<ModuleOp> module = partitioned->get().clone();
  plan::Plan plan;
  if (runtime::MaybeError error = runSilently(*module, [&] {
        return success(
            succeeded(runPasses(*module,
                                [&](OpPassManager &manager) { buildLowering(manager, probed); })) &&
            succeeded(exportPlan(*module, "probe", plan)));
      }))
    return *error;
  // What is moved over that axis belongs to a layout, not to the model.
  for (plan::Axis &axis : *plan.mutable_axes())
    if (axis.name() == "dp")
      axis.set_size(1);
  std::vector<ModelCosts> costs;
  for (const cluster::Cluster &machines : clusters) {
    Expected<ModelCosts> timed = timeOn(machines, plan);
    if (!timed)
      return timed.error();
    costs.push_back(*timed);
  }
  return costs;
}

Expected<ModelCosts> CostProbe::timeOn(const cluster::Cluster &machines,
                                       const plan::Plan &plan) const {
  auto topology = runtime::Topology::create(machines, runtime::meshOf(plan));
  if (!topology)
    return topology.error();
  auto steps = runtime::PlanSteps::create(plan, *topology);
  if (!steps)
    return steps.error();

  ModelCosts costs;
  std::vector<PartCost> parts;
  for (int p = 0; p < plan.programs_size(); ++p)
    parts.push_back(costOf(plan.programs(p), steps->devices[size_t(p)]));
  costs.before = parts.front();
  const int stages = plan.programs_size();
  if (stages > 1) {
    costs.layers = shortened.layers;
    costs.layer = parts[1];
    subtract(costs.before, costs.layer);
    costs.after = parts.back();
    subtract(costs.after, costs.layer);
    for (const auto &[number, channel] : steps->channels)
      if (channel.from == 0 && channel.to == 1)
        costs.boundaryBytes += double(channel.bytes);
  }
  // Of a stage in the middle: the ends' own needs are in what they keep.
  const plan::Program &middle = plan.programs(stages > 1 ? 1 : 0);
  const PartCost &part = parts[stages > 1 ? 1 : 0];
  double inFlight = 1;
  for (const plan::Buffer &buffer : middle.buffers())
    inFlight = std::max(inFlight, double(buffer.slots()));
  costs.transientBytes =
      std::max(0.0, double(middle.arena_lower_bound()) - part.parameterBytes - part.stateBytes -
                        part.gradientBytes - part.keptBytes * std::min(inFlight, double(stages)));
  return costs;
}
