//===- SeparateReplicas.cpp - Replicas that train on their own ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/outer/OuterPasses.h"
#include "dialects/dtc/AgreedAttribute.h"
#include "support/OuterEntries.h"

#include <cmath>

namespace dtc {
#define GEN_PASS_DEF_SEPARATEREPLICASPASS
#include "compiler/passes/OuterPasses.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

/// Puts an op onto the stage of another.
static Value place(Operation *made, Operation *like) {
  if (Attribute stage = like ? like->getAttr(dist::kStageAttrName) : Attribute())
    made->setAttr(dist::kStageAttrName, stage);
  return made->getResult(0);
}

Value dtc::multiplied(OpBuilder &builder, Value value, double factor, Operation *like) {
  auto type = cast<RankedTensorType>(value.getType());
  Location loc = value.getLoc();
  Value by = place(
      ConstantOp::create(builder, loc, RankedTensorType::get({}, type.getElementType()), factor),
      like);
  if (type.getRank() > 0)
    by = place(BroadcastOp::create(builder, loc, type, by, ArrayRef<int64_t>()), like);
  return place(MulOp::create(builder, loc, value, by), like);
}

Value dtc::reducedOver(OpBuilder &builder, Value value, ReductionKind kind, StringRef mesh,
                       StringRef axis, StringRef what, StringRef each) {
  auto sum = dist::AllReduceOp::create(builder, value.getLoc(), value.getType(), kind, value, mesh,
                                       builder.getStrArrayAttr({axis}));
  auto text = [&](StringRef name, const Twine &is) {
    return builder.getNamedAttr(name, builder.getStringAttr(is));
  };
  sum->setAttr(dist::kReasonAttrName,
               builder.getDictionaryAttr(
                   {text("value", what), text("from", "one for each " + each + " along " + axis),
                    text("to", "one for all"), text("consumer", ("all " + each).str() + "s"),
                    text("remedy", "")}));
  return sum;
}

namespace {

class ReplicaSeparation {
public:
  ReplicaSeparation(func::FuncOp function, const LinkedMesh &mesh, unsigned axis, bool clients)
      : function(function), mesh(mesh), axis(axis), clients(clients), name(mesh.axes[axis].name) {}

  LogicalResult run();

private:
  LogicalResult checkArgument(BlockArgument arg);
  LogicalResult refuse(Operation *op);
  void separate(dist::AllReduceOp op);
  Value activeBound(OpBuilder &builder, Value norm, Operation *like);
  void decideAlone(OpBuilder &builder, Value norm, Operation *like);
  bool trainsAlone();
  LogicalResult averageOutputs();
  void addReplicaLosses(Value loss);

  func::FuncOp function;
  const LinkedMesh &mesh;
  unsigned axis;
  bool clients;
  StringRef name;
};

} // namespace

/// The name of the argument, for messages.
static std::string describe(func::FuncOp function, BlockArgument arg) {
  for (StringRef key : {"dtc.param", "dtc.state_of", "dtc.input"})
    if (auto name = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), key))
      return ("'" + name.getValue() + "'").str();
  return "argument " + std::to_string(arg.getArgNumber());
}

LogicalResult ReplicaSeparation::checkArgument(BlockArgument arg) {
  unsigned index = arg.getArgNumber();
  auto sharding = function.getArgAttrOfType<dist::ShardingAttr>(index, dist::kShardingAttrName);
  auto shape = function.getArgAttrOfType<DenseI64ArrayAttr>(index, "dtc.global_shape");
  if (!sharding || !shape)
    return function.emitOpError() << "is not partitioned: argument " << index
                                  << " has no global shape; run dtc-spmd-partition first";
  Layout layout = getLayout(mesh, sharding);
  if (!layout.isShardedOver(axis))
    return success();
  if (isStateArgument(function, index))
    return emitError(arg.getLoc())
           << describe(function, arg) << " is split over \"" << name
           << "\", expected whole: the replicas along the outer axis each have a copy of all "
              "states; split states over another axis (--zero-axes, --shard)";
  if (!llvm::is_contained(layout.dims.front(), axis))
    return emitError(arg.getLoc())
           << describe(function, arg) << " is split over \"" << name
           << "\" in another dimension than the first; the replicas along the outer axis have "
              "different samples, so that the axis splits the batch alone";
  if (!mesh.divides(shape[0], layout.dims.front()))
    return emitError(arg.getLoc())
           << "the batch of " << describe(function, arg) << " has " << shape[0]
           << " samples, expected a multiple of the " << mesh.product(layout.dims.front())
           << " devices that split it, as the replicas along \"" << name
           << "\" have equally many samples";
  return success();
}

LogicalResult ReplicaSeparation::refuse(Operation *op) {
  return op->emitOpError() << "goes over \"" << name
                           << "\", along which replicas train on their own between outer steps: "
                              "a step of this model needs more of the other samples than sums "
                              "over the batch; choose another axis for --outer, or split no other "
                              "dimension over this one";
}

/// The layout of a tensor with an element for each replica.
static dist::ShardingAttr oneForEach(MLIRContext *context, const LinkedMesh &mesh, unsigned axis) {
  Layout layout = Layout::replicated(1);
  layout.dims[0].push_back(axis);
  return toAttr(context, mesh, layout);
}

/// The norm of a replica that takes the step, else an infinite one, by which nothing is applied.
Value ReplicaSeparation::activeBound(OpBuilder &builder, Value norm, Operation *like) {
  Location loc = NameLoc::get(builder.getStringAttr(kClientActiveInput));
  Type element = cast<RankedTensorType>(norm.getType()).getElementType();
  auto scalar = RankedTensorType::get({}, element);
  NamedAttrList attrs;
  attrs.set("dtc.input", builder.getStringAttr(kClientActiveInput));
  attrs.set("dtc.global_shape", builder.getDenseI64ArrayAttr({mesh.axes[axis].size}));
  attrs.set(dist::kShardingAttrName, oneForEach(builder.getContext(), mesh, axis));
  const unsigned index = function.getNumArguments();
  (void)function.insertArgument(index, RankedTensorType::get({1}, element),
                                attrs.getDictionary(builder.getContext()), loc);
  auto constant = [&](double value) {
    return place(ConstantOp::create(builder, loc, scalar, value), like);
  };
  Value active = place(ReshapeOp::create(builder, loc, scalar, function.getArgument(index)), like);
  Value isActive =
      place(CompareOp::create(builder, loc, active, constant(0), ComparePredicate::Greater), like);
  return place(SelectOp::create(builder, loc, isActive, norm, constant(INFINITY)), like);
}

/// Lets what compares the norm apply the step where the replica takes it, but for what says whether
/// some replica could.
void ReplicaSeparation::decideAlone(OpBuilder &builder, Value norm, Operation *like) {
  SmallVector<CompareOp> compares;
  for (Operation *user : norm.getUsers())
    if (auto compare = dyn_cast<CompareOp>(user))
      compares.push_back(compare);
  Value bound = activeBound(builder, norm, like);
  for (CompareOp compare : compares) {
    builder.setInsertionPointAfter(compare);
    auto own = cast<CompareOp>(builder.clone(*compare));
    own->replaceUsesOfWith(norm, bound);
    compare.getResult().replaceUsesWithIf(
        own.getResult(), [&](OpOperand &use) { return !use.getOwner()->hasAttr(kAgreedAttrName); });
  }
}

/// Replaces a value of all replicas by one of this replica.
void ReplicaSeparation::separate(dist::AllReduceOp op) {
  OpBuilder builder(op);
  builder.setInsertionPointAfter(op);
  SmallVector<Attribute> others;
  for (Attribute other : op.getAxes())
    if (cast<StringAttr>(other).getValue() != name)
      others.push_back(other);
  Operation *made = op.getInput().getDefiningOp();
  Value all = op.getResult(), own = others.empty() ? op.getInput() : all;
  const bool isAgreed = made && made->hasAttr(kAgreedAttrName);
  // Of clients, all agree on whether one of them applies the step, but each decides for itself.
  if (isAgreed && clients && isa<ConvertOp>(made))
    return;
  if (!isAgreed && op.getKind() == ReductionKind::Sum) {
    Value part = own;
    own = multiplied(builder, part, double(mesh.axes[axis].size), op);
    if (part == all)
      all.replaceAllUsesExcept(own, own.getDefiningOp());
  }
  if (isAgreed && clients)
    decideAlone(builder, all, op);
  if (others.empty()) {
    all.replaceAllUsesWith(own);
    op.erase();
  } else {
    op.setAxesAttr(builder.getArrayAttr(others));
  }
}

/// Returns the loss of each replica, an element of a tensor that the axis splits.
void ReplicaSeparation::addReplicaLosses(Value loss) {
  Operation *ret = function.front().getTerminator();
  OpBuilder builder(ret);
  auto type = RankedTensorType::get({1}, cast<RankedTensorType>(loss.getType()).getElementType());
  Value own = BroadcastOp::create(builder, loss.getLoc(), type, loss, ArrayRef<int64_t>());
  NamedAttrList attrs;
  attrs.set("dtc.output", builder.getStringAttr(kClientLossesOutput));
  attrs.set("dtc.global_shape", builder.getDenseI64ArrayAttr({mesh.axes[axis].size}));
  attrs.set(dist::kShardingAttrName, oneForEach(builder.getContext(), mesh, axis));
  ret->insertOperands(ret->getNumOperands(), own);
  (void)function.insertResult(function.getNumResults(), type,
                              attrs.getDictionary(builder.getContext()));
}

/// Whether the function trains replicas that send each other nothing.
bool ReplicaSeparation::trainsAlone() {
  const unsigned count = function.getNumResults();
  return !clients && llvm::any_of(llvm::seq(count), [&](unsigned index) {
    return bool(function.getResultAttr(index, "dtc.updates"));
  });
}

LogicalResult ReplicaSeparation::averageOutputs() {
  Operation *ret = function.front().getTerminator();
  OpBuilder builder(ret);
  const unsigned count = function.getNumResults();
  for (unsigned index = 0; index < count; ++index) {
    auto output = function.getResultAttrOfType<StringAttr>(index, "dtc.output");
    if (!output)
      output = function.getResultAttrOfType<StringAttr>(index, DtcDialect::kMetricAttrName);
    if (!output)
      continue;
    if (auto sharding =
            function.getResultAttrOfType<dist::ShardingAttr>(index, dist::kShardingAttrName);
        sharding && getLayout(mesh, sharding).isShardedOver(axis))
      continue; // a value of each sample
    Value value = ret->getOperand(index);
    if (!isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType()))
      return emitError(value.getLoc())
             << "the output '" << output.getValue() << "' has type " << value.getType()
             << ", expected floats: it is reported as the mean over the replicas along \"" << name
             << "\"";
    if (trainsAlone())
      continue; // a run takes the mean of those that it has
    if (clients && output.getValue() == "loss")
      addReplicaLosses(value);
    Value sum = reducedOver(builder, value, ReductionKind::Sum, mesh.name, name, output.getValue());
    ret->setOperand(index, multiplied(builder, sum, 1.0 / double(mesh.axes[axis].size)));
  }
  return success();
}

LogicalResult ReplicaSeparation::run() {
  if (failed(checkProgram(function, mesh.name)))
    return failure();
  for (BlockArgument arg : function.getArguments())
    if (failed(checkArgument(arg)))
      return failure();
  SmallVector<Operation *> over;
  function.walk([&](dist::CollectiveOpInterface op) {
    auto axes = op->getAttrOfType<ArrayAttr>("axes");
    if (llvm::is_contained(axes.getAsValueRange<StringAttr>(), name))
      over.push_back(op);
  });
  for (Operation *op : over) {
    auto sum = dyn_cast<dist::AllReduceOp>(op);
    if (!sum)
      return refuse(op);
    separate(sum);
  }
  return averageOutputs();
}

namespace {
struct SeparateReplicasPass : dtc::impl::SeparateReplicasPassBase<SeparateReplicasPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(forEachFunction(
            getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) -> LogicalResult {
              if (failed(checkDataAxis(getOperation(), mesh, axis, "replicas cannot differ along")))
                return failure();
              return ReplicaSeparation(function, mesh, *mesh.find(axis), clients).run();
            })))
      signalPassFailure();
  }
};
} // namespace
