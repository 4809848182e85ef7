//===- LocalCost.cpp - Cost model of ops on one device --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/LocalCost.h"

#include "dialects/dist/Dist.h"
#include "simulator/cluster/CollectiveTime.h"

using namespace mlir;
using namespace dtc;

int64_t dtc::tensorBytes(Type tensor) {
  return cast<RankedTensorType>(tensor).getNumElements() * elementBytes(tensor);
}

double dtc::localSeconds(const LinkedMesh &mesh, Operation *op) {
  if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op)) {
    AxisList axes;
    for (auto name : collective.getAxes().getAsRange<StringAttr>())
      axes.push_back(*mesh.find(name));
    auto bytes = double(tensorBytes(op->getOperand(0).getType()));
    return dtc::collectiveTime(collective.getCollectiveKind(), bytes, mesh.groupOver(axes)).seconds;
  }
  double seconds = 0;
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps())
      seconds += localSeconds(mesh, &inner);
  if (!isa<KernelOpInterface>(op))
    return seconds;
  double bytes = 0, flops = 0;
  for (Type type : op->getOperandTypes())
    bytes += double(tensorBytes(type));
  for (Type type : op->getResultTypes())
    bytes += double(tensorBytes(type));
  if (auto rule = dyn_cast<ShardingRuleOpInterface>(op))
    flops = rule.getFlops();
  return seconds + std::max(flops / mesh.deviceFlops, bytes / mesh.deviceBandwidth);
}

double dtc::transferSeconds(const LinkedMesh &mesh, double bytes) {
  std::optional<unsigned> axis = mesh.pipelineAxis();
  return axis ? messageTime(bytes, mesh.groupOver({*axis})).seconds : 0;
}
