//===- ReshardEmission.cpp - Reshards as collectives ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/spmd/Partitioner.h"

using namespace mlir;
using namespace dtc;

/// `value` with dimension `dim` grown to `size` elements.
static Value padTo(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getDimSize(dim) == size)
    return value;
  SmallVector<int64_t> low(type.getRank(), 0), high(type.getRank(), 0);
  high[dim] = size - type.getDimSize(dim);
  return PadOp::create(builder, loc, value, low, high, 0.0);
}

/// The first `size` elements of dimension `dim`.
static Value cutTo(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getDimSize(dim) == size)
    return value;
  SmallVector<int64_t> offsets(type.getRank(), 0), sizes(type.getShape());
  sizes[dim] = size;
  return SliceOp::create(builder, loc, value, offsets, sizes);
}

Value Partitioner::emitStep(OpBuilder &builder, Location loc, Value value, const ReshardStep &step,
                            ReductionKind kind, DictionaryAttr reason) {
  int64_t group = mesh.product(step.axes);
  if (group == 1)
    return value; // axes of size one split nothing
  if (step.collective == CollectiveKind::ReduceScatter)
    value = padTo(builder, loc, value, step.dim, step.splitSize * group);
  if (step.collective == CollectiveKind::AllToAll)
    value = padTo(builder, loc, value, step.splitDim, step.splitSize * group);
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  ArrayAttr axes = axisNames(step.axes);
  auto resized = [&] { return RankedTensorType::get(shape, type.getElementType()); };
  auto explained = [&](auto op) -> Value {
    if (reason)
      op->setAttr(dist::kReasonAttrName, reason);
    return op;
  };
  if (!step.collective) {
    shape[step.dim] = step.splitSize;
    return dist::ShardSliceOp::create(builder, loc, resized(), value, step.dim, mesh.name, axes);
  }
  switch (*step.collective) {
  case CollectiveKind::AllReduce:
    return explained(dist::AllReduceOp::create(builder, loc, type, kind, value, mesh.name, axes));
  case CollectiveKind::ReduceScatter:
    shape[step.dim] = step.splitSize;
    return explained(dist::ReduceScatterOp::create(builder, loc, resized(), kind, value, step.dim,
                                                   mesh.name, axes));
  case CollectiveKind::AllGather:
    shape[step.dim] *= group;
    value = explained(
        dist::AllGatherOp::create(builder, loc, resized(), value, step.dim, mesh.name, axes));
    return cutTo(builder, loc, value, step.dim, step.gatheredSize);
  case CollectiveKind::AllToAll:
    shape[step.splitDim] /= group;
    shape[step.dim] *= group;
    value = explained(dist::AllToAllOp::create(builder, loc, resized(), value, step.splitDim,
                                               step.dim, mesh.name, axes));
    return cutTo(builder, loc, value, step.dim, step.gatheredSize);
  case CollectiveKind::Permute:
    return explained(dist::PermuteOp::create(builder, loc, type, value, mesh.name, axes,
                                             axisNames(step.sourceAxes)));
  }
  llvm_unreachable("unknown step");
}

LogicalResult Partitioner::emitReshard(dist::ReshardOp op, OpBuilder &builder) {
  Layout from = layoutOf(op.getInput()), to = layoutOf(op.getResult());
  if (from != getLayout(mesh, op.getFrom()) || to != getLayout(mesh, op.getTo()))
    return op.emitOpError() << "goes from " << from.str(mesh) << " to " << to.str(mesh)
                            << ", and says otherwise";
  Value value = locals.lookup(op.getInput());
  // The loop has summed over microbatches.
  if (phases.at(op) == Phase::After && accumulated.contains(op.getInput()))
    llvm::erase(from.partial, *temporalAxis);
  auto type = cast<RankedTensorType>(op.getType());
  const auto &plan = planner.plan(elementBytes(type), type.getShape(), from, to);
  if (!plan)
    return refuseGather(op);
  for (const ReshardStep &step : plan->steps)
    value = emitStep(builder, op.getLoc(), value, step, from.partialKind,
                     op->getAttrOfType<DictionaryAttr>(dist::kReasonAttrName));
  locals.map(op.getResult(), value);
  return success();
}
