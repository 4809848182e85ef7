//===- CollectiveCost.cpp - What moving bytes is taken to cost ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/CollectiveCost.h"

#include <limits>

using namespace dtc;

CollectiveCost dtc::collectiveCost(const Mesh &mesh, CollectiveKind kind,
                                   llvm::ArrayRef<unsigned> axes, double localBytes) {
  double n = 1, delay = 0, latency = 0, bandwidth = std::numeric_limits<double>::infinity();
  for (unsigned index : axes) {
    const MeshAxis &axis = mesh.axes[index];
    if (axis.size == 1)
      continue; // an axis of size one has no links
    n *= double(axis.size);
    delay += double(axis.size - 1) * axis.latency;
    latency = std::max(latency, axis.latency);
    bandwidth = std::min(bandwidth, axis.bandwidth);
  }
  if (n == 1)
    return {};
  double bytes = 0;
  switch (kind) {
  case CollectiveKind::AllGather:
    bytes = localBytes * (n - 1);
    break;
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    bytes = localBytes * (n - 1) / n;
    break;
  case CollectiveKind::AllReduce:
    bytes = 2 * localBytes * (n - 1) / n;
    delay *= 2;
    break;
  case CollectiveKind::Permute:
    bytes = localBytes;
    delay = latency;
    break;
  }
  return {bytes, bytes / bandwidth + delay};
}

double dtc::collectiveSeconds(const Mesh &mesh, CollectiveKind kind, llvm::ArrayRef<unsigned> axes,
                              double localBytes) {
  return collectiveCost(mesh, kind, axes, localBytes).seconds;
}
