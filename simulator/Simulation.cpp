//===- Simulation.cpp - Simulation of a plan on a cluster -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/Simulation.h"

#include "plan/ParentAxes.h"
#include "plan/PlanTypes.h"
#include "simulator/TimedPlan.h"
#include "simulator/cluster/DeviceTime.h"
#include "simulator/cluster/HostTime.h"
#include "simulator/cluster/Topology.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>

namespace dtc {

namespace {

/// The input that holds tokens: integers of samples and positions, and the largest. (One integer
/// for each sample is a class.)
const plan::Input *findTokens(const std::vector<const plan::Input *> &inputs) {
  const plan::Input *tokens = nullptr;
  for (const plan::Input *input : inputs)
    if (input->role() == plan::Input::DATA && toDType(input->dtype()) == DType::I32 &&
        input->shape_size() > 1 &&
        (!tokens || typeOf(*input).numElements() > typeOf(*tokens).numElements()))
      tokens = input;
  return tokens;
}

/// The element type with the most FLOPs of products in the plan.
std::string findProductType(const plan::Plan &plan) {
  std::map<std::string, double> flops;
  for (const plan::Program &program : plan.programs())
    for (const plan::Task &task : program.tasks())
      for (const plan::Instruction &instruction : task.instructions())
        if (KernelClass kernel = classOf(instruction.kernel().kernel());
            instruction.flops() > 0 && instruction.kernel().inputs_size() > 0 &&
            (kernel == KernelClass::Product || kernel == KernelClass::Attention)) {
          auto buffer = static_cast<int>(instruction.kernel().inputs(0));
          DType dtype = toDType(program.buffers(buffer).dtype());
          // Products of both types of 8 bits have one rate.
          flops[isFloat8(dtype) ? "fp8" : name(dtype)] += instruction.flops();
        }
  auto most = std::max_element(flops.begin(), flops.end(),
                               [](auto &a, auto &b) { return a.second < b.second; });
  return most == flops.end() ? "f32" : most->first;
}

/// The price and the power of the devices, summed over the mesh.
void addCosts(const Topology &topology, Simulation &simulation) {
  const cluster::Cluster &cluster = topology.cluster();
  double hours = simulation.stepSeconds / 3600, watts = 0;
  int64_t lastNode = -1;
  for (int64_t d = 0; d < simulation.devices; ++d) {
    const cluster::DeviceKind &kind = topology.deviceKindOf(d);
    const StageSimulation &stage =
        simulation.stages[static_cast<size_t>(topology.mesh().programOf(d))];
    double busy = simulation.stepSeconds > 0 ? stage.times.computing / simulation.stepSeconds : 0;
    watts += kind.idle_watts() + busy * std::max(0.0, kind.busy_watts() - kind.idle_watts());
    simulation.cost += kind.price_per_hour() * hours;
    if (int64_t node = topology.nodeOf(d); node != lastNode)
      watts += topology.nodeKindOf(d).watts();
    lastNode = topology.nodeOf(d);
    simulation.peakFlops += peakFlops(kind, simulation.peakDtype);
  }
  if (cluster.power_usage_effectiveness() > 0)
    watts *= cluster.power_usage_effectiveness();
  simulation.joules = watts * simulation.stepSeconds;
  simulation.grams = simulation.joules / 3.6e6 * cluster.grams_co2_per_kwh();
  simulation.hasPrice = simulation.cost > 0;
  simulation.hasPower = simulation.joules > 0;
  simulation.hasCarbon = simulation.grams > 0;
}

/// Adds the memory of their host that the devices of each node need.
void addHostMemory(const Topology &topology, Simulation &simulation) {
  auto stageOf = [&](int64_t device) -> StageSimulation & {
    return simulation.stages[static_cast<size_t>(topology.mesh().programOf(device))];
  };
  std::map<int64_t, double> needed; // by node
  for (int64_t d = 0; d < simulation.devices; ++d)
    needed[topology.nodeOf(d)] += static_cast<double>(stageOf(d).hostArenaBytes);
  for (int64_t d = 0; d < simulation.devices; ++d) {
    StageSimulation &stage = stageOf(d);
    double bytes = needed[topology.nodeOf(d)];
    if (stage.hostArenaBytes == 0)
      continue;
    double usable = usableHostBytes(topology.cluster(), topology.nodeKindOf(d));
    if (stage.nodeHostBytes == 0 || usable - bytes < stage.hostMemoryBytes - stage.nodeHostBytes) {
      stage.nodeHostBytes = bytes;
      stage.hostMemoryBytes = usable;
    }
  }
}

void addStages(const plan::Plan &plan, const StepWork &work, const Topology &topology,
               Simulation &simulation) {
  PlanSummary summary = summarizePlan(plan);
  double stages = static_cast<double>(work.devices.size());
  std::map<std::string, double> exposed;
  for (size_t p = 0; p < work.devices.size(); ++p) {
    StageSimulation stage;
    stage.times = simulation.step.devices[p];
    for (const SimulatedExecution &execution : work.devices[p].schedule)
      for (size_t c = 0; c < kNumKernelClasses; ++c)
        stage.kernels[c] += work.devices[p].tasks[execution.task].kernels[c];
    const ProgramSummary &program = summary.programs[p];
    stage.memory = program.peak;
    stage.arenaBytes = program.arenaBytes;
    stage.hostArenaBytes = program.hostArenaBytes;
    stage.flops = program.flops;
    stage.memoryBytes = std::numeric_limits<double>::infinity();
    for (const cluster::DeviceKind *kind : topology.kindsOf(static_cast<int64_t>(p))) {
      stage.deviceKinds.push_back(kind->name());
      stage.memoryBytes = std::min(stage.memoryBytes, usableBytes(*kind));
    }
    simulation.computing += stage.times.computing / stages;
    simulation.exposedTransfers += stage.times.exposedTransfers / stages;
    simulation.exposedHost += stage.times.exposedHost / stages;
    simulation.idle += stage.times.idle / stages;
    for (size_t c = 0; c < kNumKernelClasses; ++c)
      simulation.kernels[c] += stage.kernels[c] / stages;
    for (size_t a = 0; a < work.axes.size(); ++a)
      exposed[fmt::format("{}", fmt::join(parentAxes(plan, work.axes[a]), "+"))] +=
          stage.times.exposed[a] / stages;
    simulation.executedFlops +=
        stage.flops * static_cast<double>(topology.devicesOf(static_cast<int64_t>(p)).size());
    simulation.stages.push_back(std::move(stage));
  }
  for (const auto &[axes, seconds] : exposed)
    simulation.exposed.push_back({axes, seconds});
  std::stable_sort(
      simulation.exposed.begin(), simulation.exposed.end(),
      [](const AxesSeconds &a, const AxesSeconds &b) { return a.seconds > b.seconds; });
}

} // namespace

Expected<Simulation> simulateOnCluster(const plan::Plan &plan, const cluster::Cluster &cluster,
                                       const SimulationOptions &options) {
  Expected<Topology> topology = Topology::create(cluster, meshOf(plan));
  if (!topology)
    return topology.error();
  Expected<StepWork> work = workOnCluster(plan, *topology);
  if (!work)
    return work.error();
  Expected<StepSimulation> step = simulateStep(*work, options.keepCollectives);
  if (!step)
    return step.error();
  Simulation simulation;
  simulation.cluster = cluster.name();
  simulation.model = plan.model();
  simulation.devices = topology->mesh().numDevices();
  simulation.nodes = topology->numNodes();
  simulation.microbatches = step->timeline.microbatches;
  simulation.stepSeconds = step->seconds;
  simulation.bubbleShare = step->timeline.bubbleShare();
  simulation.step = std::move(*step);
  simulation.axes = work->axes;
  simulation.trainingTokens = options.tokens;
  if (const plan::Input *tokens = findTokens(distinctInputs(plan)))
    simulation.tokens = static_cast<double>(typeOf(*tokens).numElements());
  simulation.peakDtype = findProductType(plan);
  simulation.modelFlops = plan.model_flops();
  simulation.causalModelFlops = plan.model_flops() - plan.masked_flops();
  addStages(plan, *work, *topology, simulation);
  addHostMemory(*topology, simulation);
  addCosts(*topology, simulation);
  return simulation;
}

} // namespace dtc
