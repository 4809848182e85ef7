//===- SharedResources.cpp - Shared resources of a simulation -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/SharedResources.h"

#include <algorithm>

namespace dtc {

SharedResources::Resource SharedResources::addResource(double capacity) {
  resources.push_back({capacity, 0, {}});
  return static_cast<Resource>(resources.size() - 1);
}

void SharedResources::update(double now, Flow number, std::vector<End> &ends) {
  State &flow = flows[number];
  flow.remaining = std::max(0.0, flow.remaining - (now - flow.updated) * flow.rate);
  flow.updated = now;
  double rate = 1;
  for (size_t i = 0; i < flow.uses.count; ++i) {
    const Shared &shared = resources[flow.uses.uses[i].resource];
    rate = std::min(rate, shared.capacity / shared.demand);
  }
  rate *= flow.factor;
  if (rate == flow.rate)
    return;
  flow.rate = rate;
  ends.push_back({now + flow.remaining / rate, number, ++flow.version});
}

void SharedResources::updateOthers(double now, const Uses &uses, Flow except,
                                   std::vector<End> &ends) {
  for (size_t i = 0; i < uses.count; ++i)
    for (Flow other : resources[uses.uses[i].resource].flows)
      if (other != except)
        update(now, other, ends);
}

SharedResources::Flow SharedResources::start(double now, double seconds, const Uses &uses,
                                             double factor, std::vector<End> &ends) {
  Flow number;
  if (unused.empty()) {
    number = static_cast<Flow>(flows.size());
    flows.emplace_back();
  } else {
    number = unused.back();
    unused.pop_back();
  }
  State &flow = flows[number];
  flow.remaining = seconds;
  flow.updated = now;
  flow.rate = 0;
  flow.factor = factor;
  flow.isActive = true;
  flow.uses = uses;
  for (size_t i = 0; i < uses.count; ++i) {
    Shared &shared = resources[uses.uses[i].resource];
    shared.demand += uses.uses[i].demand;
    shared.flows.push_back(number);
  }
  update(now, number, ends);
  updateOthers(now, uses, number, ends);
  return number;
}

bool SharedResources::finish(const End &end, std::vector<End> &ends) {
  State &flow = flows[end.flow];
  if (!flow.isActive || flow.version != end.version)
    return false;
  flow.isActive = false;
  ++flow.version; // ends that were told before do not hold for the next flow of this number
  Uses uses = flow.uses;
  for (size_t i = 0; i < uses.count; ++i) {
    Shared &shared = resources[uses.uses[i].resource];
    shared.flows.erase(std::find(shared.flows.begin(), shared.flows.end(), end.flow));
    shared.demand -= uses.uses[i].demand;
    if (shared.flows.empty())
      shared.demand = 0; // without the rounding errors
  }
  updateOthers(end.time, uses, end.flow, ends);
  unused.push_back(end.flow);
  return true;
}

void SharedResources::setFactor(double now, Flow flow, double factor, std::vector<End> &ends) {
  if (flows[flow].factor == factor)
    return;
  flows[flow].factor = factor;
  update(now, flow, ends);
}

} // namespace dtc
