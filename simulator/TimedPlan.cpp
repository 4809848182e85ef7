//===- TimedPlan.cpp - The work of a plan's step on a cluster -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/TimedPlan.h"

#include "plan/ClosingInstructions.h"
#include "plan/PlanTypes.h"
#include "plan/TransferEnds.h"
#include "simulator/TaskKernels.h"
#include "simulator/cluster/CollectiveTime.h"
#include "simulator/cluster/HostTime.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <utility>

namespace dtc {

namespace {

class Builder {
public:
  Builder(const plan::Plan &plan, const Topology &topology, StepWork &work)
      : plan(plan), topology(topology), work(work) {}

  MaybeError run() {
    Expected<std::map<uint32_t, TransferEnds>> paired = pairTransfers(plan);
    if (!paired)
      return paired.error();
    if (MaybeError error = checkProducts())
      return error;
    for (const auto &[number, ends] : *paired)
      addChannel(number, ends);
    for (int p = 0; p < plan.programs_size(); ++p)
      fillDevice(p);
    return std::nullopt;
  }

private:
  /// Whether the time of every product can be told. findPlanError() does not check attributes;
  /// backends do.
  MaybeError checkProducts() const {
    for (const plan::Program &program : plan.programs())
      for (const plan::Task &task : program.tasks())
        for (int i = 0; i < task.instructions_size(); ++i) {
          const plan::KernelCall &call = task.instructions(i).kernel();
          if (classOf(call.kernel()) == KernelClass::Product && !shapeOfProduct(program, call))
            return Error{fmt::format("{}: found {}; compile the plan again",
                                     describeInstruction(plan, task, i), describeProblem(call))};
        }
    return std::nullopt;
  }

  /// Describes a product without a shape, and the expected form.
  static std::string describeProblem(const plan::KernelCall &call) {
    if (call.attributes().contains("strides"))
      return fmt::format("operands of '{}', a convolution, that do not fit its windows, expected "
                         "those of docs/kernels.md",
                         call.kernel());
    auto equation = call.attributes().find("equation");
    return (equation == call.attributes().end()
                ? "no attribute \"equation\""
                : fmt::format("the equation \"{}\" for {} operands", equation->second.s(),
                              call.inputs_size())) +
           ", expected an equation such as \"bsd,df->bsf\" with a letter for each dimension of two "
           "operands";
  }

  void addChannel(uint32_t number, const TransferEnds &ends) {
    auto pair = std::pair(static_cast<int64_t>(ends.from), static_cast<int64_t>(ends.to));
    auto [shape, fresh] = pairs.try_emplace(pair);
    if (fresh)
      shape->second = topology.slowestPair(pair.first, pair.second);
    MovingTime time = messageTime(static_cast<double>(ends.bytes), shape->second);
    work.channels[number] = {ends.from, ends.to, ends.bytes, time.seconds, portsOf(time)};
  }

  /// Between nodes the network cards limit.
  static DevicePorts portsOf(const MovingTime &time) {
    return time.usesNetwork ? DevicePorts::Network : DevicePorts::Link;
  }

  void fillDevice(int p) {
    kinds = topology.kindsOf(p);
    SimulatedDevice &device = work.devices[static_cast<size_t>(p)];
    for (const cluster::DeviceKind *kind : kinds)
      device.overlapSlowdown = std::max(device.overlapSlowdown, kind->overlap_slowdown());
    int64_t first = topology.devicesOf(p).front(), node = topology.nodeOf(first);
    device.node = node;
    device.sharedCores = static_cast<double>(topology.nodeKindOf(first).shared_cores());
    device.devicesInNode = static_cast<double>(
        std::count_if(topology.devicesOf(p).begin(), topology.devicesOf(p).end(),
                      [&](int64_t other) { return topology.nodeOf(other) == node; }));
    const plan::Program &program = plan.programs(p);
    nodeKinds =
        usesHost(program) ? topology.nodeKindsOf(p) : std::vector<const cluster::NodeKind *>();
    std::vector<uint32_t> readers = countReaders(program);
    const ClosingInstructions closing(program);
    for (int t = 0; t < program.tasks_size(); ++t) {
      auto number = static_cast<uint32_t>(t);
      fillTask(
          p, program, number, readers, [&](int i) { return !closing.contains(number, i); },
          device.tasks[number]);
      if (closing.anyIn(number))
        addClosingTask(p, number, readers, closing);
    }
  }

  /// A task that does more for the last microbatch is another one then.
  void addClosingTask(int p, uint32_t number, const std::vector<uint32_t> &readers,
                      const ClosingInstructions &closing) {
    SimulatedDevice &device = work.devices[static_cast<size_t>(p)];
    auto all = static_cast<uint32_t>(device.tasks.size());
    device.tasks.push_back({{}, device.tasks[number].pass, device.tasks[number].stage, {}});
    std::vector<std::string> &names = work.names.taskNames[static_cast<size_t>(p)];
    names.push_back(names[number]);
    fillTask(
        p, plan.programs(p), number, readers, [](int) { return true; }, device.tasks[all]);
    for (SimulatedExecution &execution : device.schedule)
      if (execution.task == number && execution.microbatch == closing.lastMicrobatch())
        execution.task = all;
  }

  /// `runs` says which instructions an execution has.
  void fillTask(int p, const plan::Program &program, uint32_t number,
                const std::vector<uint32_t> &readers, const std::function<bool(int)> &runs,
                SimulatedTask &result) {
    const plan::Task &task = program.tasks(static_cast<int>(number));
    std::vector<TaskKernels> kernels;
    for (const cluster::DeviceKind *kind : kinds)
      kernels.emplace_back(plan, program, task, readers, fusionOf(*kind));
    double computing = 0, sinceMeeting = 0;
    auto flush = [&] {
      sinceMeeting += computing;
      if (computing > 0)
        result.steps.push_back({.seconds = computing});
      computing = 0;
    };
    for (int i = 0; i < task.instructions_size(); ++i) {
      const plan::Instruction &instruction = task.instructions(i);
      if (!runs(i))
        continue;
      SimulatedOperation step;
      if (instruction.has_kernel() && laneOf(program, instruction) == Lane::Compute) {
        computing += slowest(kernels, i, result.kernels);
        continue;
      }
      if (instruction.has_kernel()) {
        step = makeHostCall(program, instruction, static_cast<uint32_t>(i));
      } else if (instruction.has_collective()) {
        auto collective = makeCollective(p, program, instruction, static_cast<uint32_t>(i));
        if (!collective)
          continue; // over one device
        step = *collective;
      } else if (instruction.has_wait()) {
        step.kind = SimulatedOperation::Kind::Wait;
        step.id = instruction.wait().instruction();
      } else if (instruction.has_start_transfer()) {
        step.kind = SimulatedOperation::Kind::StartTransfer;
        step.id = instruction.start_transfer().transfer();
      } else if (instruction.has_finish_transfer()) {
        step.kind = SimulatedOperation::Kind::FinishTransfer;
        step.id = instruction.finish_transfer().transfer();
      } else {
        continue;
      }
      flush();
      if (instruction.has_collective() && !step.isAsync) {
        // This device stands for the mean member.
        step.seconds += waitForLast(sinceMeeting, groups.at({p, step.axes}));
        sinceMeeting = 0;
      }
      result.steps.push_back(step);
    }
    flush();
  }

  /// The kernel on the kind of device that takes longest for it.
  double slowest(const std::vector<TaskKernels> &kernels, int index, KernelSeconds &classes) {
    double most = -1;
    KernelSeconds ofMost{};
    for (size_t k = 0; k < kinds.size(); ++k) {
      KernelSeconds own{};
      double seconds = kernels[k].seconds(index, *kinds[k], own);
      if (seconds <= most)
        continue;
      most = seconds;
      ofMost = own;
    }
    for (size_t c = 0; c < classes.size(); ++c)
      classes[c] += ofMost[c];
    return most;
  }

  /// An instruction on a lane, without its time.
  static SimulatedOperation makeOnLane(const plan::Instruction &instruction, uint32_t index,
                                       Lane lane) {
    return {.kind = SimulatedOperation::Kind::OnLane,
            .lane = lane,
            .isAsync = isAsync(instruction),
            .id = index,
            .after = {instruction.after().begin(), instruction.after().end()}};
  }

  /// A copy between the device and its host, or a kernel there, on the slowest of the nodes.
  SimulatedOperation makeHostCall(const plan::Program &program,
                                  const plan::Instruction &instruction, uint32_t index) const {
    SimulatedOperation step = makeOnLane(instruction, index, laneOf(program, instruction));
    KernelWork kernel = workOf(program, instruction);
    for (const cluster::NodeKind *node : nodeKinds) {
      HostTime time = hostTime(topology.cluster(), *node, kernel, step.lane);
      if (time.seconds > step.seconds) {
        step.seconds = time.seconds;
        step.hostShare = time.share;
      }
    }
    return step;
  }

  /// None if its groups have one member.
  std::optional<SimulatedOperation> makeCollective(int p, const plan::Program &program,
                                                   const plan::Instruction &instruction,
                                                   uint32_t index) {
    const plan::Collective &collective = instruction.collective();
    SimulatedOperation step = makeOnLane(instruction, index, Lane::Communication);
    std::vector<std::string> axes = toVector(collective.axes());
    auto known = std::find(work.axes.begin(), work.axes.end(), axes);
    step.axes = static_cast<uint32_t>(known - work.axes.begin());
    if (known == work.axes.end())
      work.axes.push_back(axes);
    auto [shape, fresh] = groups.try_emplace({p, step.axes});
    if (fresh)
      shape->second = topology.slowestGroup(p, axes);
    if (shape->second.members == 1)
      return std::nullopt;
    double bytes = 0;
    for (const plan::CollectiveTensor &tensor : collective.tensors())
      bytes +=
          static_cast<double>(typeOf(program.buffers(static_cast<int>(tensor.input()))).numBytes());
    MovingTime time = collectiveTime(kindOf(collective), bytes, shape->second);
    step.seconds = time.seconds;
    step.ports = portsOf(time);
    // Measured while the members shared the cores.
    const SimulatedDevice &device = work.devices[static_cast<size_t>(p)];
    if (device.sharedCores > 0 && time.algorithm == CollectiveAlgorithm::Measured)
      step.seconds *=
          std::min(1.0, device.sharedCores / static_cast<double>(shape->second.members));
    return step;
  }

  const plan::Plan &plan;
  const Topology &topology;
  StepWork &work;
  // Of the present program; the nodes only where it uses their hosts.
  std::vector<const cluster::DeviceKind *> kinds;
  std::vector<const cluster::NodeKind *> nodeKinds;
  std::map<std::pair<int, uint32_t>, GroupShape> groups;
  std::map<std::pair<int64_t, int64_t>, GroupShape> pairs;
};

/// The error of a plan whose states lie in the memory of hosts that the cluster does not describe.
MaybeError findUnknownHost(const plan::Plan &plan, const Topology &topology) {
  for (int p = 0; p < plan.programs_size(); ++p) {
    // A program may claim memory there, and have nothing in it.
    if (!usesHost(plan.programs(p)) && plan.programs(p).host_arena_bytes() == 0)
      continue;
    for (const cluster::NodeKind *node : topology.nodeKindsOf(p))
      if (MaybeError error = findMissingHost(*node))
        return error;
  }
  return std::nullopt;
}

} // namespace

Expected<StepWork> workOnCluster(const plan::Plan &plan, const Topology &topology) {
  if (MaybeError error = findUnknownHost(plan, topology))
    return *error;
  StepWork work = StepWork::ofSchedule(plan);
  if (MaybeError error = Builder(plan, topology, work).run())
    return *error;
  return work;
}

} // namespace dtc
