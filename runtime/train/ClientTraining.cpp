//===- ClientTraining.cpp - Rounds of federated learning -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ClientTraining.h"

#include "plan/PlanTypes.h"
#include "runtime/executor/InitialValues.h"
#include "support/OuterEntries.h"
#include "support/Philox.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

namespace dtc::runtime {

std::vector<double> clientWeights(const std::vector<double> &samples,
                                  const std::vector<UpdateState> &states) {
  double all = 0;
  for (size_t i = 0; i < samples.size(); ++i)
    all += states[i] == UpdateState::Taken ? samples[i] : 0;
  std::vector<double> weights;
  for (size_t i = 0; i < samples.size(); ++i)
    weights.push_back(states[i] == UpdateState::Taken ? samples[i] / all : 0);
  return weights;
}

bool ClientTraining::takes(size_t replica, int64_t step) const {
  size_t client = source.getRounds().clientOf(roundOf(step), replica);
  return (step - 1) % source.stepsOfRound() < source.stepsOf(client);
}

/// An input with an element for each replica; none if there is no such input.
static std::optional<HostTensor> forReplicas(const plan::Plan &plan, const char *name,
                                             const std::function<double(size_t)> &valueOf) {
  for (const plan::Input *input : distinctInputs(plan))
    if (input->name() == name) {
      HostTensor value(typeOf(*input));
      for (int64_t replica = 0; replica < value.type.numElements(); ++replica)
        setElement(value, replica, valueOf(static_cast<size_t>(replica)));
      return value;
    }
  return std::nullopt;
}

MaybeError ClientTraining::giveActive(int64_t step) {
  std::optional<HostTensor> active =
      forReplicas(session.plan(), kClientActiveInput,
                  [&](size_t replica) { return takes(replica, step) ? 1.0 : 0.0; });
  return active ? session.setInput(kClientActiveInput, std::move(*active)) : std::nullopt;
}

Expected<std::optional<double>> ClientTraining::addStep(int64_t step) {
  Expected<HostTensor> found = session.getOutput(kClientLossesOutput);
  if (!found)
    return found.error();
  if ((step - 1) % source.stepsOfRound() == 0 || losses.empty()) {
    losses.assign(numReplicas(), 0);
    steps.assign(numReplicas(), 0);
  }
  double sum = 0;
  int64_t finite = 0;
  bool isTaken = false;
  for (size_t replica = 0; replica < losses.size(); ++replica) {
    if (!takes(replica, step))
      continue;
    isTaken = true;
    double loss = elementAt(*found, static_cast<int64_t>(replica));
    losses[replica] += loss;
    ++steps[replica];
    if (!std::isfinite(loss))
      continue;
    sum += loss;
    ++finite;
  }
  if (!isTaken)
    return std::optional<double>();
  return std::optional(finite ? sum / static_cast<double>(finite)
                              : std::numeric_limits<double>::quiet_NaN());
}

Expected<ClientTraining::Updates> ClientTraining::checkUpdates() {
  Session *check = session.findEntry(kOuterCheckEntry);
  if (MaybeError error = check->step())
    return *error;
  Updates updates{std::vector<UpdateState>(numReplicas(), UpdateState::Taken),
                  std::vector<double>(numReplicas())};
  for (const plan::Output *output : distinctOutputs(check->plan())) {
    Expected<HostTensor> values = check->getOutput(output->name());
    if (!values)
      return values.error();
    bool isSquares = output->name().starts_with(kUpdateSquaresOutput);
    for (size_t replica = 0; replica < numReplicas(); ++replica) {
      double value = elementAt(*values, static_cast<int64_t>(replica));
      UpdateState &state = updates.states[replica];
      if (isSquares)
        updates.squares[replica] += value;
      if (isSquares && !std::isfinite(value))
        state = UpdateState::NotFinite;
      else if (!isSquares && value == 0 && state == UpdateState::Taken)
        state = UpdateState::NoStep;
    }
  }
  return updates;
}

std::vector<double> clippedWeights(const std::vector<double> &norms,
                                   const std::vector<UpdateState> &states, double clip) {
  std::vector<double> weights;
  for (size_t i = 0; i < norms.size(); ++i) {
    double factor = norms[i] > clip ? clip / norms[i] : 1;
    weights.push_back(states[i] == UpdateState::Taken ? factor / static_cast<double>(norms.size())
                                                      : 0);
  }
  return weights;
}

std::vector<double> ClientTraining::weightsOf(const Updates &updates, int64_t round) const {
  std::vector<double> samples, norms;
  for (size_t replica = 0; replica < numReplicas(); ++replica) {
    samples.push_back(source.weightOf(source.getRounds().clientOf(round, replica)));
    norms.push_back(std::sqrt(updates.squares[replica]));
  }
  return noise ? clippedWeights(norms, updates.states, noise->clip)
               : clientWeights(samples, updates.states);
}

/// Puts new values of a normal distribution into the states that hold the noise. They depend on the
/// seed, the round and the place in the whole parameter, and not on the layout.
MaybeError ClientTraining::drawNoise(int64_t round) {
  // Set apart from initial parameters.
  PhiloxCounter words = philox4x32(philoxCounter(static_cast<uint64_t>(round), 0),
                                   philoxKey(noise->seed ^ 0x636c6965'6e6f6973));
  uint64_t seed = words[0] | uint64_t{words[1]} << 32;
  for (const StateShard &shard : session.stateShards()) {
    if (!shard.state->name().ends_with(std::string(".") + kOuterNoiseState))
      continue;
    ShardRegion drawn = shard.region;
    drawn.local = drawn.size;
    HostTensor values(TensorType{toDType(shard.state->dtype()), drawn.size});
    writeInitialValues(*shard.state, drawn, seed, values.bytes.data());
    HostShard box{shard, values.bytes.data()};
    box.shard.region.global = drawn.size;
    box.shard.region.offset.assign(drawn.size.size(), 0);
    if (MaybeError error = session.writeShards({&box, 1}))
      return error;
  }
  return std::nullopt;
}

MaybeError ClientTraining::giveNoise(Session &outer, int64_t round) {
  if (!noise)
    return std::nullopt;
  if (MaybeError error = drawNoise(round))
    return error;
  // The mean is the sum over the number of clients.
  double scale = noise->multiplier * noise->clip / static_cast<double>(numReplicas());
  auto value = forReplicas(outer.plan(), kNoiseScaleInput, [&](size_t) { return scale; });
  return value ? outer.setInput(kNoiseScaleInput, std::move(*value)) : std::nullopt;
}

MaybeError ClientTraining::takeOuterStep(Session &outer, StepMetrics &metrics) {
  Expected<Updates> updates = checkUpdates();
  if (!updates)
    return updates.error();
  int64_t round = roundOf(metrics.step);
  std::vector<double> weights = weightsOf(*updates, round);
  if (auto value = forReplicas(outer.plan(), kClientWeightsInput,
                               [&](size_t replica) { return weights[replica]; }))
    if (MaybeError error = outer.setInput(kClientWeightsInput, std::move(*value)))
      return error;
  if (MaybeError error = giveNoise(outer, round))
    return error;
  if (MaybeError error = outer.step())
    return error;
  left.clear();
  metrics.round = round + 1;
  for (size_t replica = 0; replica < weights.size(); ++replica) {
    const std::string &name = source.nameOf(source.getRounds().clientOf(round, replica));
    ClientMetric &client = metrics.clients.emplace_back(ClientMetric{name});
    if (replica < steps.size() && steps[replica] > 0)
      client.loss = losses[replica] / static_cast<double>(steps[replica]);
    client.weight = weights[replica];
    if (UpdateState state = updates->states[replica]; state != UpdateState::Taken)
      left.push_back(fmt::format("round {}: client \"{}\" is left out: {}", round + 1, name,
                                 state == UpdateState::NotFinite
                                     ? "its parameters have changed by values that are not finite"
                                     : "all its steps were skipped, whose gradients were not "
                                       "finite"));
  }
  return std::nullopt;
}

std::string ClientTraining::describe(const StepMetrics &metrics) {
  std::vector<std::string> parts;
  for (const ClientMetric &client : metrics.clients)
    parts.push_back(fmt::format("{} {}weight {:.4g}", client.name,
                                client.loss ? fmt::format("loss {:.6f} ", *client.loss) : "",
                                client.weight));
  return fmt::format("round {}: {}", metrics.round.value_or(0), fmt::join(parts, ", "));
}

} // namespace dtc::runtime
