//===- StepEstimate.cpp - A step's time and memory in closed form --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/StepEstimate.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/analysis/PipelineSimulation.h"
#include "runtime/cluster/CollectiveTime.h"

#include <algorithm>

using namespace dtc;
using runtime::CollectiveKind;
using runtime::collectiveTime;
using runtime::GroupShape;

const StepEstimator::Connections &StepEstimator::connectionsOf(const ParallelLayout &layout) {
  bool splits = layout.zero > 0;
  auto [it, fresh] = known.try_emplace(
      {layout.dp, layout.fsdp, layout.tp, layout.pp, layout.pipelineInside, splits});
  if (!fresh)
    return it->second;
  std::vector<runtime::MeshAxis> axes;
  auto add = [&](const char *name, int64_t size) {
    axes.push_back({name, size, false, llvm::StringRef(name) == kPipelineAxis});
  };
  if (!layout.pipelineInside)
    add(kPipelineAxis, layout.pp);
  add("dp", layout.dp);
  if (layout.pipelineInside)
    add(kPipelineAxis, layout.pp);
  add("fsdp", layout.fsdp);
  add("tp", layout.tp);
  auto topology = runtime::Topology::create(*options.cluster, runtime::Mesh(axes));
  Connections &connections = it->second;
  connections.data = topology->slowestGroup(0, {"dp", "fsdp"});
  connections.zero =
      layout.fsdp > 1 ? topology->slowestGroup(0, {"fsdp"}) : topology->slowestGroup(0, {"dp"});
  if (layout.fsdp > 1)
    connections.outer = topology->slowestGroup(0, {"dp"});
  if (layout.pp > 1)
    connections.pipeline = topology->slowestPair(0, 1);
  return connections;
}

/// What of a collective is left when it has run beside something, at least its last bucket.
static double exposed(double seconds, double beside, double bytes, double bucket) {
  double last = bytes > 0 ? seconds * std::min(1.0, bucket / bytes) : 0;
  return std::max(last, seconds - beside);
}

double StepEstimator::dataSeconds(const ParallelLayout &layout, const ModelCosts &costs,
                                  const Connections &connections, double forward, double backward) {
  if (layout.data() == 1)
    return 0;
  double share = 1.0 / double(layout.pp);
  auto sum = [&](double PartCost::*field) {
    return (costs.before.*field + double(costs.layers) * costs.layer.*field + costs.after.*field) *
           share;
  };
  double parameters = sum(&PartCost::parameterBytes), gradients = sum(&PartCost::gradientBytes);
  if (options.base.gradReduceDtype != "f32")
    gradients /= 2;
  double bucket = double(layout.bucketBytes), m = double(layout.microbatches);
  auto n = double(layout.zeroDevices());
  if (layout.zero == 0)
    return exposed(collectiveTime(CollectiveKind::AllReduce, gradients, connections.data).seconds,
                   backward, gradients, bucket);
  double scatter =
      collectiveTime(CollectiveKind::ReduceScatter, gradients, connections.zero).seconds;
  double gather =
      collectiveTime(CollectiveKind::AllGather, parameters / n, connections.zero).seconds;
  // Copies of the parts are summed over the other axes.
  double across =
      connections.outer.members > 1
          ? collectiveTime(CollectiveKind::AllReduce, gradients / n, connections.outer).seconds
          : 0;
  switch (layout.zero) {
  case 1:
    return exposed(scatter + across, backward, gradients, bucket) + gather;
  case 2:
    // With microbatches, the scatters of one are in the way of what the next one waits for.
    return (layout.microbatches > 1 ? m * scatter : exposed(scatter, backward, gradients, bucket)) +
           across + gather;
  default:
    // Small parameters are gathered where they are needed, behind the large ones that are under way
    // by then: little hides.
    return m * (2 * gather + scatter) + across;
  }
}

void StepEstimator::addBytes(const ParallelLayout &layout, const ModelCosts &costs,
                             StepEstimate &estimate) {
  auto rule = findScheduleRule(layout.schedule);
  PipelineShape shape{int(layout.pp), int(layout.chunks), int(layout.microbatches)};
  double stages = double(layout.pp * layout.chunks);
  auto n = double(layout.zeroDevices());
  for (bool isLast : {false, true}) {
    double inFlight = 1;
    if (layout.pp > 1) // some schedules have no limit of their own
      inFlight = std::min(double(rule->inFlight(shape, isLast ? int(layout.pp) - 1 : 0)),
                          double(layout.microbatches * layout.chunks));
    const PartCost &end = isLast ? costs.after : costs.before;
    auto held = [&](double PartCost::*field) {
      double here = end.*field + double(costs.layers) / double(layout.pp) * costs.layer.*field;
      if (layout.pp == 1)
        here += isLast ? costs.before.*field : costs.after.*field;
      return here;
    };
    double parameters = held(&PartCost::parameterBytes), states = held(&PartCost::stateBytes);
    double gradients = held(&PartCost::gradientBytes);
    if (layout.microbatches == 1 && !options.base.accumulates)
      gradients /= 2; // they live from the backward pass to the update
    double bytes = layout.zero >= 3 ? parameters / n : parameters;
    bytes += layout.zero >= 1 ? states / n : states;
    bytes += layout.zero >= 2 ? gradients / n : gradients;
    if (layout.zero >= 2)
      bytes += std::min(3.0 * double(layout.bucketBytes), gradients);
    if (layout.zero >= 3)
      bytes += 2 * costs.layer.parameterBytes;
    // Until the weights' gradients are computed, some of those of the results are kept as well.
    double kept = double(costs.layers) / stages * costs.layer.keptBytes *
                  (layout.pp > 1 && rule->splitsWeight ? 1.5 : 1);
    bytes += inFlight * kept + end.keptBytes;
    if (layout.pp == 1)
      bytes += isLast ? costs.before.keptBytes : costs.after.keptBytes;
    bytes += costs.transientBytes;
    if (bytes <= estimate.bytes)
      continue;
    estimate.bytes = bytes;
    estimate.keptBytes = kept;
    estimate.inFlight = inFlight;
  }
}

StepEstimate StepEstimator::estimate(const ParallelLayout &layout, const ModelCosts &costs) {
  const Connections &connections = connectionsOf(layout);
  double p = double(layout.pp), v = double(layout.chunks), m = double(layout.microbatches);
  auto perDevice = [&](double PartCost::*field) {
    return (costs.before.*field + double(costs.layers) * costs.layer.*field + costs.after.*field) /
           p;
  };
  double forward = perDevice(&PartCost::forward), backward = perDevice(&PartCost::backward);
  StepEstimate estimate;
  estimate.forward = forward;
  estimate.backward = backward;
  estimate.computing = m * (forward + backward);
  if (layout.pp > 1) {
    double both = forward + backward;
    if (layout.schedule == "naive")
      estimate.bubble = (p - 1) * m * both;
    else if (layout.schedule == "interleaved")
      estimate.bubble = (m >= p ? p - 1 : v * p + m - 1 - m * v) * both / v;
    else if (layout.schedule == "zb-h1")
      estimate.bubble = m >= p ? (p - 1) * forward : (2 * p - m - 1) * both / 3;
    else if (layout.schedule == "zb-v")
      estimate.bubble = (m >= p ? p - 1 : 4 * p - 2 * m - 3) * forward / v;
    else
      estimate.bubble = (p - 1) * both;
    estimate.message = runtime::messageTime(costs.boundaryBytes, connections.pipeline).seconds;
    estimate.transfers = 2 * (p * v - 1) * estimate.message;
  }
  estimate.update = perDevice(&PartCost::once) / double(layout.zeroDevices());
  estimate.data = dataSeconds(layout, costs, connections, forward, backward);
  addBytes(layout, costs, estimate);
  return estimate;
}

void StepEstimator::refine(const ParallelLayout &layout, StepEstimate &estimate) {
  if (layout.pp == 1)
    return;
  auto rule = findScheduleRule(layout.schedule);
  PipelineShape shape{int(layout.pp), int(layout.chunks), int(layout.microbatches)};
  PipelineSchedule schedule = buildSchedule(shape, *rule);
  double v = double(layout.chunks);
  std::vector<StageSeconds> stages(
      size_t(shape.stages()),
      {estimate.forward / v, estimate.backward / v / 2, estimate.backward / v / 2});
  PipelineSimulation simulation = simulateSchedule(
      schedule, stages, linkChannels(schedule, chainLinks(shape, estimate.message)));
  estimate.bubble = std::max(0.0, simulation.span - estimate.computing);
  estimate.transfers = 0; // they are in the bubble
  // The stages of a device share their slots.
  auto most =
      double(*std::max_element(simulation.deviceInFlight.begin(), simulation.deviceInFlight.end()));
  estimate.bytes += (most - estimate.inFlight) * estimate.keptBytes;
  estimate.inFlight = most;
}
