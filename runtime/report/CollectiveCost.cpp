//===- CollectiveCost.cpp - What a collective sends and takes -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/report/CollectiveCost.h"

#include "runtime/communicators/Communicator.h"
#include "runtime/plan/PlanTypes.h"

#include <algorithm>
#include <cassert>

namespace dtc::runtime {

const char *collectiveName(plan::Collective::Kind kind) {
  return kind == plan::Collective::PERMUTE ? "permute" : name(kind);
}

uint64_t sentBytes(const plan::Program &program, const plan::Collective &collective,
                   const plan::CollectiveTensor &tensor, int64_t members) {
  CollectiveSpec spec;
  spec.input = typeOf(program.buffers(static_cast<int>(tensor.input())));
  if (collective.kind() == plan::Collective::PERMUTE)
    return spec.input.numBytes();
  spec.kind = static_cast<CollectiveKind>(collective.kind());
  spec.members = members;
  return spec.ringBytes();
}

LinkSpeed slowestLink(const std::vector<LinkSpeed> &links) {
  assert(!links.empty() && "a group spans an axis");
  LinkSpeed slowest = links.front();
  for (const LinkSpeed &link : links) {
    slowest.bandwidth = std::min(slowest.bandwidth, link.bandwidth);
    slowest.latency = std::max(slowest.latency, link.latency);
  }
  return slowest;
}

double estimateSeconds(plan::Collective::Kind kind, int64_t members, uint64_t bytes,
                       const LinkSpeed &link) {
  if (members <= 1)
    return 0;
  auto messages = static_cast<double>(members - 1);
  if (kind == plan::Collective::ALL_REDUCE)
    messages *= 2;
  else if (kind == plan::Collective::PERMUTE)
    messages = 1;
  return messages * link.latency + static_cast<double>(bytes) / link.bandwidth;
}

} // namespace dtc::runtime
