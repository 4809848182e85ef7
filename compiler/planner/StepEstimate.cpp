//===- StepEstimate.cpp - A step's time and memory in closed form ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/StepEstimate.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/analysis/PipelineSimulation.h"
#include "compiler/planner/ClusterSpeeds.h"
#include "simulator/cluster/CollectiveTime.h"
#include "simulator/cluster/HostTime.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

using namespace dtc;

static constexpr double kLongMessage = 1 << 20; // bytes

StepEstimator::StepEstimator(const PlannerOptions &options, const ModelProperties &traits)
    : options(options), traits(traits) {
  int64_t devices = usedDevices(*options.cluster, options.devices);
  nodeKinds = kindsOfNodes(*options.cluster, options.devices);
  offloaded = offloadOf(options.base.offload);
  for (const UsedNodes &used : findUsedNodes(*options.cluster, devices))
    if (size_t kind = size_t(llvm::find(nodeKinds, used.node) - nodeKinds.begin());
        kind == kindBytes.size())
      kindBytes.push_back(usableBytes(*used.device));
}

const StepEstimator::Connections &StepEstimator::connectionsOf(const ParallelStrategy &strategy) {
  const bool scattersEach = strategy.zero >= 2;
  auto [it, fresh] =
      known.try_emplace({strategy.dp, strategy.fsdp, strategy.ep, strategy.cp, strategy.tp,
                         strategy.pp, strategy.pipelineInside, scattersEach});
  if (!fresh)
    return it->second;
  std::vector<MeshAxis> axes;
  auto add = [&](const char *name, int64_t size) {
    axes.push_back({name, size, false, llvm::StringRef(name) == kPipelineAxis});
  };
  if (!strategy.pipelineInside)
    add(kPipelineAxis, strategy.pp);
  add(kDataAxis, strategy.dp);
  if (strategy.pipelineInside)
    add(kPipelineAxis, strategy.pp);
  add(kShardedDataAxis, strategy.fsdp);
  add(kExpertAxis, strategy.ep);
  add(kContextAxis, strategy.cp);
  add(kTensorAxis, strategy.tp);
  auto topology = Topology::create(*options.cluster, Mesh(axes));
  Connections &connections = it->second;
  connections.data = slowestGroup(*topology, {kDataAxis, kShardedDataAxis});
  // The costs of a model have one sum of gradients over cp for a step, which with stage 1 of ZeRO
  // is a part of it. With further stages there are collectives over cp for each microbatch.
  connections.zero = strategy.fsdp > 1 ? slowestGroup(*topology, {kShardedDataAxis})
                     : scattersEach    ? slowestGroup(*topology, {kDataAxis, kContextAxis})
                                       : slowestGroup(*topology, {kDataAxis});
  if (strategy.fsdp > 1)
    connections.outer = slowestGroup(*topology, {kDataAxis});
  if (strategy.pp > 1)
    connections.pipeline = topology->slowestPair(0, 1);
  for (int64_t from = 1; from + 1 < strategy.pp; ++from)
    if (GroupShape pair = topology->slowestPair(from, from + 1);
        messageTime(kLongMessage, pair).seconds >
        messageTime(kLongMessage, connections.pipeline).seconds)
      connections.pipeline = pair;
  if (strategy.pp > 1)
    connections.ends = topology->slowestPair(0, strategy.pp - 1);
  const bool isMixed = nodeKinds.size() > 1;
  for (int64_t coordinate = 0; coordinate < (isMixed ? strategy.pp : 1); ++coordinate) {
    llvm::SmallVector<size_t, 2> kinds;
    double bytes = std::numeric_limits<double>::infinity();
    for (int64_t device : topology->devicesOf(coordinate)) {
      size_t kind = 0;
      while (nodeKinds[kind] != &topology->nodeKindOf(device))
        ++kind;
      bytes = std::min(bytes, kindBytes[kind]);
      if (!llvm::is_contained(kinds, kind))
        kinds.push_back(kind);
      if (!isMixed)
        break;
    }
    connections.kinds.push_back(std::move(kinds));
    connections.memoryBytes.push_back(bytes);
  }
  return connections;
}

/// The repeated layers that a coordinate on the pipeline axis has.
static double layersOf(const ParallelStrategy &strategy, const ModelCosts &costs,
                       int64_t coordinate) {
  if (strategy.stageLayers.empty())
    return double(costs.layers) / double(strategy.pp);
  PipelineShape shape{int(strategy.pp), int(strategy.chunks), int(strategy.microbatches)};
  StagePlacement placement = findScheduleRule(strategy.schedule)->placement;
  int64_t layers = 0;
  for (int chunk = 0; chunk < shape.chunks; ++chunk)
    layers += strategy.stageLayers[size_t(deviceStage(shape, placement, int(coordinate), chunk))];
  return double(layers);
}

/// The coordinate on the pipeline axis that the last stage is on.
static int64_t lastCoordinate(const ParallelStrategy &strategy) {
  if (strategy.pp == 1)
    return 0;
  PipelineShape shape{int(strategy.pp), int(strategy.chunks), int(strategy.microbatches)};
  return stageDevice(shape, findScheduleRule(strategy.schedule)->placement, shape.stages() - 1);
}

double StepEstimator::costOf(const ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs,
                             const Connections &connections, size_t coordinate, double layers,
                             Field field) {
  double most = 0;
  for (size_t kind : connections.kinds[coordinate]) {
    const ModelCosts &own = costs[kind];
    if (own.layers == 0) { // `before` is the whole model, and each stage has a part of it
      most = std::max(most, field(own.before) / double(strategy.pp));
      continue;
    }
    const bool isFirst = coordinate == 0, isLast = int64_t(coordinate) == lastCoordinate(strategy);
    double cost = layers * field(own.layer);
    if (isFirst)
      cost += field(own.before);
    if (isLast)
      cost += field(own.after);
    if (isFirst && isLast)
      cost -= field(own.tied);
    most = std::max(most, cost);
  }
  return most;
}

double StepEstimator::mostOf(const ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs,
                             const Connections &connections, Field field) {
  if (connections.kinds.size() == 1 && connections.kinds.front().size() == 1) {
    const ModelCosts &own = costs[connections.kinds.front().front()];
    double all = field(own.before) + double(own.layers) * field(own.layer) + field(own.after);
    if (lastCoordinate(strategy) == 0)
      all -= field(own.tied);
    return all / double(strategy.pp);
  }
  double most = 0;
  for (size_t coordinate = 0; coordinate < connections.kinds.size(); ++coordinate)
    most = std::max(most, costOf(strategy, costs, connections, coordinate,
                                 layersOf(strategy, costs.front(), int64_t(coordinate)), field));
  return most;
}

/// The rest of a collective's time after overlapping with other work, at least its last bucket.
static double exposed(double seconds, double beside, double bytes, double bucket) {
  double last = bytes > 0 ? seconds * std::min(1.0, bucket / bytes) : 0;
  return std::max(last, seconds - beside);
}

/// The time of `bytes` in several collectives of equal size.
static double timeOf(CollectiveKind kind, double bytes, double collectives,
                     const GroupShape &group) {
  if (bytes <= 0)
    return 0;
  collectives = std::max(1.0, collectives);
  return collectives * collectiveTime(kind, bytes / collectives, group).seconds;
}

/// The first and the last stage share tied parameters. If they are on different devices, one sends
/// its part of the gradient and receives the sum; it needs the sum only for the part that it
/// updates.
double StepEstimator::tiedSeconds(const ParallelStrategy &strategy,
                                  llvm::ArrayRef<ModelCosts> costs,
                                  const Connections &connections) const {
  if (lastCoordinate(strategy) == 0)
    return 0;
  double bytes = 0;
  for (const ModelCosts &own : costs)
    bytes = std::max(bytes, own.tied.gradientBytes);
  if (bytes == 0)
    return 0;
  double back = strategy.zero > 0 ? bytes / double(strategy.zeroDevices()) : bytes;
  return messageTime(bytes, connections.ends).seconds + messageTime(back, connections.ends).seconds;
}

double StepEstimator::dataSeconds(const ParallelStrategy &strategy,
                                  llvm::ArrayRef<ModelCosts> costs, const Connections &connections,
                                  double forward, double backward) {
  // Gradients outside of experts are summed over ep too; their own costs include that.
  const int64_t zeroDevices = strategy.zeroDevices();
  if (strategy.expertData() == 1 && (strategy.zero < 2 || zeroDevices == 1))
    return 0;
  auto sum = [&](Field field) { return mostOf(strategy, costs, connections, field); };
  double parameters = sum([](const SectionCost &part) { return part.parameterBytes; });
  double gradients = sum([](const SectionCost &part) { return part.gradientBytes; });
  // Parameters that ZeRO leaves whole are summed as without it.
  double wholeParameters =
      sum([&](const SectionCost &part) { return part.keptWhole(zeroDevices).parameters; });
  double wholeGradients =
      sum([&](const SectionCost &part) { return part.keptWhole(zeroDevices).gradients; });
  if (options.base.gradReduceDtype != ComputeType::F32) {
    gradients /= 2;
    wholeGradients /= 2;
  }
  // The collectives of gradients that are split into `parts` parts, one on each device.
  auto sumsOf = [&](int64_t parts) {
    int64_t bucketBytes = strategy.bucketBytes * parts;
    if (options.base.gradReduceDtype != ComputeType::F32)
      bucketBytes *= 2;
    return sum([&](const SectionCost &part) { return part.collectivesOf(bucketBytes).gradients; });
  };
  const double sums = sumsOf(1);
  const double gathers = sum([&](const SectionCost &part) {
    double count = part.collectivesOf(strategy.bucketBytes).parameters;
    return strategy.zero == 3 && count > 0 ? std::max(1.0, count) : count; // at each use
  });
  double bucket = double(strategy.bucketBytes), m = double(strategy.microbatches);
  auto n = double(zeroDevices);
  auto reduceAll = [&](double bytes, double collectives) {
    return timeOf(CollectiveKind::AllReduce, bytes, collectives, connections.data);
  };
  if (strategy.zero == 0)
    return exposed(reduceAll(gradients, sums), backward, gradients, bucket);
  parameters -= wholeParameters;
  gradients -= wholeGradients;
  double scatter = timeOf(CollectiveKind::ReduceScatter, gradients, sums, connections.zero);
  double gather = timeOf(CollectiveKind::AllGather, parameters / n, gathers, connections.zero);
  // Copies of the parts are summed over the other axes.
  double across = connections.outer.members > 1 ? timeOf(CollectiveKind::AllReduce, gradients / n,
                                                         sumsOf(zeroDevices), connections.outer)
                                                : 0;
  if (wholeGradients > 0)
    across += exposed(reduceAll(wholeGradients, wholeGradients / std::max(bucket, 1.0)), backward,
                      wholeGradients, bucket);
  if (strategy.zero == 1)
    return exposed(scatter + across, backward, gradients, bucket) + gather;
  if (strategy.zero == 2 && strategy.microbatches == 1)
    return exposed(scatter, backward, gradients, bucket) + across + gather;
  // The data that each microbatch moves delays the data that the next one or, with stage 3, the
  // next layer waits for, the more the larger it is. A stage of a pipeline waits for all of it: its
  // passes are short, and messages come between.
  double moved = scatter, left = exposed(scatter, backward, gradients, bucket);
  if (strategy.zero == 3) {
    moved += 2 * gather;
    left = exposed(gather, forward, parameters, bucket) +
           exposed(gather + scatter, backward, parameters + gradients, bucket);
  }
  double share = strategy.pp > 1 ? 1 : std::min(1.0, moved / (forward + backward));
  return m * (left + share * std::max(0.0, moved - left)) + across +
         (strategy.zero == 2 ? gather : 0);
}

/// The bytes of a device on a coordinate of the pipeline axis that has `layers` layers of the
/// model. `estimate` is told what a stage keeps.
double StepEstimator::bytesOf(const ParallelStrategy &strategy, const ModelCosts &costs,
                              int64_t coordinate, double layers, StepEstimate &estimate) const {
  const int64_t n = strategy.zeroDevices();
  const bool isFirst = coordinate == 0, isLast = coordinate == lastCoordinate(strategy);
  auto held = [&](Field field) {
    if (costs.layers == 0)
      return field(costs.before) / double(strategy.pp);
    return layers * field(costs.layer) + (isFirst ? field(costs.before) : 0) +
           (isLast ? field(costs.after) : 0) - (isFirst && isLast ? field(costs.tied) : 0);
  };
  double bytes = held([&](const SectionCost &part) {
    return strategy.zero >= 3 ? part.underZero(n).parameters : part.parameterBytes;
  });
  bytes += (1 - offloaded.optimizer) *
           held([&](const SectionCost &part) { return part.underZero(n).states; });
  double gradients = held([](const SectionCost &part) { return part.gradientBytes; });
  if (strategy.zero >= 2) {
    // Those that are not scattered yet come on top.
    double whole = held([&](const SectionCost &part) { return part.keptWhole(n).gradients; });
    double waiting = std::min(3.0 * double(strategy.bucketBytes), gradients - whole);
    gradients =
        held([&](const SectionCost &part) { return part.underZero(n).gradients; }) + waiting;
  }
  if (strategy.zero >= 3) {
    // A visit of a layer and the next one have their parameters whole.
    auto gathered = [&](const SectionCost &part) {
      return part.parameterBytes - part.keptWhole(n).parameters;
    };
    double layer = gathered(costs.layer);
    double before = costs.layers > 0
                        ? gathered(costs.before)
                        : std::min(gathered(costs.before), costs.before.largestParameterBytes(2));
    bytes += std::max({layer, isFirst ? before : 0, isLast ? gathered(costs.after) : 0}) + layer;
  }
  // Data are there for the whole step.
  double inputs = costs.layer.inputBytes;
  if (isFirst || isLast)
    inputs = (isFirst ? costs.before.inputBytes : 0) + (isLast ? costs.after.inputBytes : 0) -
             (isFirst && isLast ? costs.tied.inputBytes : 0);
  bytes += double(strategy.microbatches) * inputs;
  bytes += std::max({costs.layer.transientBytes,
                     isFirst || costs.layers == 0 ? costs.before.transientBytes : 0,
                     isLast ? costs.after.transientBytes : 0});

  estimate.inFlight = 1;
  // Until the weights' gradients are computed, some of those of the results are kept as well.
  double times = 1;
  if (strategy.pp > 1) {
    auto rule = findScheduleRule(strategy.schedule);
    PipelineShape shape{int(strategy.pp), int(strategy.chunks), int(strategy.microbatches)};
    // Some schedules have no limit of their own.
    estimate.inFlight = std::min(double(rule->inFlight(shape, int(coordinate))),
                                 double(strategy.microbatches * strategy.chunks));
    times = rule->splitsWeight ? 1.5 : 1;
  }
  estimate.keptBytes = held([](const SectionCost &part) { return part.keptBytes; }) /
                       double(strategy.chunks) * times;
  estimate.keptBytes *= 1 - offloaded.activations;
  // A layer's values leave under the kernels of the next one, and are fetched under those of the
  // layer before.
  double moving = 2 * offloaded.activations * costs.layer.keptBytes;
  double kept = estimate.inFlight * estimate.keptBytes + moving;
  // With one microbatch, kept values are freed as gradients are made; sums over several
  // microbatches are there throughout.
  if (strategy.microbatches == 1 && !options.base.accumulates)
    return bytes + std::max(kept, gradients);
  return bytes + kept + gradients;
}

void StepEstimator::addBytes(const ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs,
                             const Connections &connections, StepEstimate &estimate) {
  const bool isMixed = nodeKinds.size() > 1;
  llvm::SmallVector<int64_t, 8> coordinates{0};
  if (isMixed)
    for (int64_t coordinate = 1; coordinate < strategy.pp; ++coordinate)
      coordinates.push_back(coordinate);
  else if (lastCoordinate(strategy) != 0)
    coordinates.push_back(lastCoordinate(strategy));
  for (int64_t coordinate : coordinates) {
    StepEstimate one;
    one.bytes = bytesOf(strategy, costs.front(), coordinate,
                        layersOf(strategy, costs.front(), coordinate), one);
    one.memoryBytes = connections.memoryBytes[isMixed ? size_t(coordinate) : 0];
    if (estimate.memoryBytes > 0 && one.memoryShare() <= estimate.memoryShare())
      continue;
    estimate.bytes = one.bytes;
    estimate.memoryBytes = one.memoryBytes;
    estimate.keptBytes = one.keptBytes;
    estimate.inFlight = one.inFlight;
  }
}

/// "h.0-h.9|h.10-h.31": the layers of each stage, as --stages has them.
static std::string formatStages(const std::string &prefix, llvm::ArrayRef<int64_t> layers) {
  std::string text;
  int64_t first = 0;
  for (int64_t count : layers) {
    text += fmt::format("{}{}{}", first > 0 ? "|" : "", prefix, first);
    if (count > 1)
      text += fmt::format("-{}{}", prefix, first + count - 1);
    first += count;
  }
  return text;
}

void StepEstimator::balance(ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs) {
  int64_t stages = strategy.pp * strategy.chunks;
  if (nodeKinds.size() == 1 || strategy.pp == 1 || traits.layers < stages)
    return;
  const Connections &connections = connectionsOf(strategy);
  auto secondsOf = [&](size_t coordinate, int64_t layers) {
    auto sum = [&](double SectionCost::*field) {
      return costOf(strategy, costs, connections, coordinate, double(layers),
                    [&](const SectionCost &part) { return part.*field; });
    };
    return sum(&SectionCost::forward) + sum(&SectionCost::backward);
  };
  auto fits = [&](size_t coordinate, int64_t layers) {
    StepEstimate one;
    return bytesOf(strategy, costs.front(), int64_t(coordinate), double(layers), one) <=
           connections.memoryBytes[coordinate];
  };
  // Each stage has a layer, and each other layer goes where it makes the least maximum. All layers
  // cost a device the same, so that no other order makes a smaller one.
  std::vector<int64_t> layers(size_t(strategy.pp), strategy.chunks);
  auto keyOf = [&](size_t coordinate) {
    int64_t more = layers[coordinate] + 1;
    return std::pair(!fits(coordinate, more), secondsOf(coordinate, more));
  };
  std::vector<std::pair<bool, double>> keys;
  for (size_t coordinate = 0; coordinate < layers.size(); ++coordinate)
    keys.push_back(keyOf(coordinate));
  for (int64_t left = traits.layers - stages; left > 0; --left) {
    size_t best = size_t(llvm::min_element(keys) - keys.begin());
    ++layers[best];
    keys[best] = keyOf(best);
  }
  PipelineShape shape{int(strategy.pp), int(strategy.chunks), int(strategy.microbatches)};
  StagePlacement placement = findScheduleRule(strategy.schedule)->placement;
  strategy.stageLayers.assign(size_t(stages), 0);
  for (int device = 0; device < shape.devices; ++device)
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      int64_t all = layers[size_t(device)];
      strategy.stageLayers[size_t(deviceStage(shape, placement, device, chunk))] =
          all / strategy.chunks + (chunk < all % strategy.chunks ? 1 : 0);
    }
  strategy.stages = formatStages(traits.layerPrefix, strategy.stageLayers);
}

double StepEstimator::hostSeconds(const ParallelStrategy &strategy,
                                  llvm::ArrayRef<ModelCosts> costs,
                                  const Connections &connections) const {
  if (offloaded.optimizer == 0)
    return 0;
  const int64_t n = strategy.zeroDevices();
  auto perDevice = [&](double ParameterBytes::*field) {
    return offloaded.optimizer * mostOf(strategy, costs, connections, [&](const SectionCost &part) {
             return part.underZero(n).*field;
           });
  };
  double states = perDevice(&ParameterBytes::states);
  double gradients = perDevice(&ParameterBytes::gradients);
  double parameters = perDevice(&ParameterBytes::parameters);
  double most = 0;
  for (const cluster::NodeKind *node : nodeKinds) {
    auto sharing =
        double(std::min(node->devices(), usedDevices(*options.cluster, options.devices)));
    // A copy reads one memory and writes the other; the devices of a node update at the same time.
    double out =
        hostTime(*options.cluster, *node, {"copy", DType::F32, 0, 2 * gradients}, Lane::ToHost)
            .seconds;
    double back =
        hostTime(*options.cluster, *node, {"copy", DType::F32, 0, 2 * parameters}, Lane::ToDevice)
            .seconds;
    double update = memorySeconds(hostOf(*options.cluster, *node),
                                  sharing * (2 * states + gradients + parameters));
    most = std::max(most, std::max({out, back, update}));
  }
  return most;
}

double StepEstimator::activationSeconds(const ParallelStrategy &strategy,
                                        llvm::ArrayRef<ModelCosts> costs,
                                        const Connections &connections, double forward,
                                        double backward) const {
  if (offloaded.activations == 0)
    return 0;
  double bytes =
      offloaded.activations *
      mostOf(strategy, costs, connections, [](const SectionCost &part) { return part.keptBytes; });
  double most = 0;
  for (const cluster::NodeKind *node : nodeKinds) {
    // A copy reads one memory and writes the other.
    auto late = [&](Lane lane, double pass) {
      double copy =
          hostTime(*options.cluster, *node, {"copy", DType::F32, 0, 2 * bytes}, lane).seconds;
      return std::max(0.0, copy - pass);
    };
    most = std::max(most, late(Lane::ToHost, forward) + late(Lane::ToDevice, backward));
  }
  return double(strategy.microbatches) * most;
}

StepEstimate StepEstimator::estimate(const ParallelStrategy &strategy,
                                     llvm::ArrayRef<ModelCosts> costs) {
  const Connections &connections = connectionsOf(strategy);
  double p = double(strategy.pp), v = double(strategy.chunks), m = double(strategy.microbatches);
  auto perDevice = [&](Field field) { return mostOf(strategy, costs, connections, field); };
  double forward = perDevice([](const SectionCost &part) { return part.forward; });
  double backward = perDevice([](const SectionCost &part) { return part.backward; });
  StepEstimate estimate;
  estimate.forward = forward;
  estimate.backward = backward;
  estimate.computing = m * (forward + backward);
  if (strategy.pp > 1) {
    double both = forward + backward;
    if (strategy.schedule == "naive")
      estimate.bubble = (p - 1) * m * both;
    else if (strategy.schedule == "interleaved")
      estimate.bubble = (m >= p ? p - 1 : v * p + m - 1 - m * v) * both / v;
    else if (strategy.schedule == "zb-h1")
      estimate.bubble = m >= p ? (p - 1) * forward : (2 * p - m - 1) * both / 3;
    else if (strategy.schedule == "zb-v")
      estimate.bubble = (m >= p ? p - 1 : 4 * p - 2 * m - 3) * forward / v;
    else
      estimate.bubble = (p - 1) * both;
    estimate.message = messageTime(costs.front().boundaryBytes, connections.pipeline).seconds;
    estimate.transfers = 2 * (p * v - 1) * estimate.message;
  }
  // In proportion to the state that a device updates.
  estimate.update = perDevice([&](const SectionCost &part) {
    int64_t n = strategy.zeroDevices();
    return part.stateBytes > 0
               ? (1 - offloaded.optimizer) * part.once * part.underZero(n).states / part.stateBytes
               : part.once / double(n);
  });
  estimate.update += hostSeconds(strategy, costs, connections);
  estimate.update += activationSeconds(strategy, costs, connections, forward, backward);
  estimate.update += tiedSeconds(strategy, costs, connections);
  estimate.data = dataSeconds(strategy, costs, connections, forward, backward);
  addBytes(strategy, costs, connections, estimate);
  return estimate;
}

void StepEstimator::refine(const ParallelStrategy &strategy, llvm::ArrayRef<ModelCosts> costs,
                           StepEstimate &estimate) {
  if (strategy.pp == 1)
    return;
  auto rule = findScheduleRule(strategy.schedule);
  PipelineShape shape{int(strategy.pp), int(strategy.chunks), int(strategy.microbatches)};
  PipelineSchedule schedule = buildSchedule(shape, *rule);
  double v = double(strategy.chunks);
  std::vector<StageSeconds> stages(
      size_t(shape.stages()),
      {estimate.forward / v, estimate.backward / v / 2, estimate.backward / v / 2});
  if (!strategy.stageLayers.empty()) {
    const Connections &connections = connectionsOf(strategy);
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      int device = schedule.device(int(stage));
      auto secondsOf = [&](double SectionCost::*field) {
        double most = 0;
        for (size_t kind : connections.kinds[size_t(device)])
          most = std::max(most, double(strategy.stageLayers[stage]) * costs[kind].layer.*field +
                                    (stage == 0 ? costs[kind].before.*field : 0) +
                                    (stage + 1 == stages.size() ? costs[kind].after.*field : 0));
        return most;
      };
      double backward = secondsOf(&SectionCost::backward);
      stages[stage] = {secondsOf(&SectionCost::forward), backward / 2, backward / 2};
    }
  }
  PipelineSimulation simulation =
      simulateSchedule(schedule, stages, linkValues(schedule, chainEdges(shape, estimate.message)));
  estimate.bubble = std::max(0.0, simulation.span - estimate.computing);
  estimate.transfers = 0; // they are in the bubble
  // The stages of a device share their slots.
  auto most =
      double(*std::max_element(simulation.deviceInFlight.begin(), simulation.deviceInFlight.end()));
  estimate.bytes += (most - estimate.inFlight) * estimate.keptBytes;
  estimate.inFlight = most;
}
