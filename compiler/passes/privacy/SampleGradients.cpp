//===- SampleGradients.cpp - Gradients of one sample ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A gradient is a sum over microbatches and over the devices of each axis that splits the batch.
// Before the first of these sums it is that of one sample, as each device has one in a microbatch.
// What comes after, up to the whole gradient, is repeated for one sample without these sums: so a
// parameter that is used twice has one gradient, and its norm is that of the sum.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/privacy/SampleGradients.h"

#include "compiler/analysis/DescribeLocation.h"
#include "dialects/dtc/DtcInterfaces.h"
#include "dialects/dtc/DtcOps.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace dtc;

SampleTracer::SampleTracer(dist::MicrobatchLoopOp loop, const LinkedMesh &mesh, AxisList batchAxes)
    : builder(loop.getBody().front().getTerminator()), loop(loop), mesh(mesh),
      batchAxes(std::move(batchAxes)) {
  for (Operation &op : loop.getBody().front())
    before.insert(&op);
}

bool SampleTracer::isInLoop(Value value) const {
  return value.getParentRegion() == &dist::MicrobatchLoopOp(loop).getBody();
}

bool SampleTracer::dependsOnLoop(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (op == loop || isInLoop(value))
    return true;
  if (auto it = dependent.find(value); it != dependent.end())
    return it->second;
  bool depends =
      llvm::any_of(op->getOperands(), [&](Value operand) { return dependsOnLoop(operand); });
  return dependent[value] = depends;
}

AxisList SampleTracer::axesOf(Operation *op) const {
  AxisList axes;
  for (StringRef name : op->getAttrOfType<ArrayAttr>("axes").getAsValueRange<StringAttr>())
    axes.push_back(*mesh.find(name));
  return axes;
}

InFlightDiagnostic SampleTracer::refuse(Operation *op) const {
  return op->emitError() << "'" << op->getName().getStringRef() << "' makes the gradient of "
                         << describeLocation(op->getLoc())
                         << " of more than one sample, and the gradient of each sample is clipped";
}

FailureOr<SampleValue> SampleTracer::gradientOf(OpOperand &use) {
  isGradient = true;
  return trace(use, batchAxes);
}

FailureOr<SampleValue> SampleTracer::valueOf(OpOperand &use) {
  isGradient = false;
  return trace(use, batchAxes);
}

/// `missing` are the axes of other samples over which no sum was found yet.
FailureOr<SampleValue> SampleTracer::trace(OpOperand &use, AxisList missing) {
  Value value = use.get();
  if (isGradient)
    uses.insert(&use);
  if (isInLoop(value) && missing.empty()) {
    if (isGradient)
      leaves.insert(&use);
    return SampleValue{value, {}};
  }
  if (auto it = known.find(value); it != known.end())
    return it->second;
  FailureOr<SampleValue> found = failure();
  if (Operation *op = value.getDefiningOp(); op == loop) {
    llvm::erase(missing, *mesh.temporalAxis());
    Operation *yield = loop.getBody().front().getTerminator();
    found = trace(yield->getOpOperand(cast<OpResult>(value).getResultNumber()), std::move(missing));
  } else if (op) {
    found = traceOp(op, missing);
  }
  if (succeeded(found))
    known[value] = *found;
  return found;
}

FailureOr<SampleValue> SampleTracer::traceOp(Operation *op, const AxisList &missing) {
  if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op))
    if (auto reduction = collective.getReduction())
      return reduction.getValue() == ReductionKind::Sum ? traceSum(op, missing)
                                                        : FailureOr<SampleValue>(refuse(op));
  if (isa<dist::CollectiveOpInterface, dist::ShardSliceOp>(op))
    return traceMove(op, missing);
  return traceOther(op, missing);
}

/// Leaves out the sum over other samples, and completes that over parts of this one.
FailureOr<SampleValue> SampleTracer::traceSum(Operation *op, AxisList missing) {
  AxisList own, all = axesOf(op);
  for (unsigned axis : all) {
    if (splitsBatch(axis))
      llvm::erase(missing, axis);
    else
      own.push_back(axis);
  }
  FailureOr<SampleValue> input = trace(op->getOpOperand(0), std::move(missing));
  if (failed(input))
    return failure();
  if (isa<dist::ReduceScatterOp>(op))
    llvm::append_range(input->whole, all);
  if (own.empty())
    return input;
  SmallVector<StringRef> names;
  for (unsigned axis : own)
    names.push_back(mesh.axes[axis].name);
  Value part = input->value;
  auto sum = dist::AllReduceOp::create(builder, op->getLoc(), part.getType(), ReductionKind::Sum,
                                       part, mesh.name, builder.getStrArrayAttr(names));
  if (Attribute reason = op->getAttr(dist::kReasonAttrName))
    sum->setAttr(dist::kReasonAttrName, reason);
  return SampleValue{sum, input->whole};
}

/// Leaves out what moves a sum between devices with other samples.
FailureOr<SampleValue> SampleTracer::traceMove(Operation *op, const AxisList &missing) {
  FailureOr<SampleValue> input = trace(op->getOpOperand(0), missing);
  if (failed(input))
    return failure();
  AxisList axes = axesOf(op);
  if (llvm::any_of(axes, [&](unsigned axis) { return splitsBatch(axis); }) ||
      input->value.getType() != op->getOperand(0).getType()) {
    if (isa<dist::ShardSliceOp>(op))
      llvm::append_range(input->whole, axes);
    else if (input->value.getType() != op->getResult(0).getType())
      return refuse(op);
    else
      llvm::erase_if(input->whole, [&](unsigned axis) { return llvm::is_contained(axes, axis); });
    return input;
  }
  IRMapping mapping;
  mapping.map(op->getOperand(0), input->value);
  return SampleValue{builder.clone(*op, mapping)->getResult(0), input->whole};
}

/// Repeats an op that is linear in sums, or, for a value, any op.
FailureOr<SampleValue> SampleTracer::traceOther(Operation *op, const AxisList &missing) {
  const bool inLoop = isInLoop(op->getResult(0));
  if (inLoop && !op->hasTrait<dtc::OpTrait::CarriesSums>())
    return refuse(op) << "; use a model that does not mix samples, and keep parameters whole on "
                         "devices with different samples";
  IRMapping mapping;
  SampleValue found;
  bool changes = false;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (!dependsOnLoop(value) && isGradient && isa<AddOp, SubOp>(op)) {
      if (matchPattern(value, m_AnyZeroFloat()))
        continue;
      return refuse(op) << "; it adds what is of no sample: use weight decay (--weight-decay) for "
                           "a part of the loss that depends on parameters alone";
    }
    if (!dependsOnLoop(value)) {
      mapping.map(value, hoist(value));
      continue;
    }
    FailureOr<SampleValue> sample = trace(operand, missing);
    if (failed(sample))
      return failure();
    found = *sample;
    changes |= found.value.getType() != value.getType();
    mapping.map(value, found.value);
  }
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  auto shape = cast<RankedTensorType>(found.value.getType()).getShape();
  // What makes equal parts for a sum that is left out, or takes them away again.
  const bool resizes = isa<PadOp, SliceOp, dist::MaskPaddingOp>(op);
  bool scatters = isa<PadOp>(op) && llvm::all_of(op->getUsers(), [](Operation *user) {
                    return isa<dist::ReduceScatterOp>(user);
                  });
  if (scatters || (resizes && (shape == result.getShape() || changes)))
    return found;
  if (llvm::any_of(op->getOperands(), [&](Value value) { return !mapping.contains(value); }))
    return found; // 0 was added
  if (changes && !isa<AddOp, SubOp, NegOp, ConvertOp, MulOp>(op))
    return refuse(op);
  Operation *copy = builder.clone(*op, mapping);
  copy->getResult(0).setType(RankedTensorType::get(shape, result.getElementType()));
  if (!changes)
    copy->getResult(0).setType(result);
  return SampleValue{copy->getResult(0), found.whole};
}

/// A value that the loop can read, in place of one that is computed after it of no sample.
Value SampleTracer::hoist(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->isBeforeInBlock(loop))
    return value;
  if (Value found = hoisted.lookup(value))
    return found;
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, hoist(operand));
  Operation *copy = builder.clone(*op, mapping);
  copy->removeAttr(dist::kStageAttrName);
  return hoisted[value] = copy->getResult(cast<OpResult>(value).getResultNumber());
}

LogicalResult SampleTracer::scale(Value factor) {
  // Another reader of such a sum would get that of clipped gradients.
  llvm::SetVector<Operation *> carriers;
  for (OpOperand *use : uses) {
    if (leaves.contains(use))
      continue;
    for (OpOperand &other : use->get().getUses())
      if (!uses.contains(&other))
        return other.getOwner()->emitError()
               << "'" << other.getOwner()->getName().getStringRef()
               << "' reads a sum of gradients of samples that the optimizer reads as well, where "
                  "they are clipped; expected a metric that is no gradient";
    if (isInLoop(use->get()))
      carriers.insert(use->get().getDefiningOp());
  }
  for (OpOperand *leaf : leaves) {
    Value value = leaf->get();
    Value by = factor;
    if (auto type = cast<RankedTensorType>(value.getType()); type.getRank() > 0)
      by = BroadcastOp::create(builder, value.getLoc(), type, factor, ArrayRef<int64_t>());
    leaf->set(MulOp::create(builder, value.getLoc(), value, by));
  }
  // Sums over samples inside the loop come after the factor.
  SmallVector<Operation *> order = carriers.takeVector();
  llvm::sort(order, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : order)
    op->moveBefore(loop.getBody().front().getTerminator());
  return success();
}

void SampleTracer::setStages() {
  dist::StageAttr stage;
  for (Operation *op : before)
    if (dist::StageAttr own = dist::getStage(op))
      stage = own;
  if (!stage)
    return;
  for (Operation &op : loop.getBody().front())
    if (!before.contains(&op))
      op.setAttr(dist::kStageAttrName, stage);
}
