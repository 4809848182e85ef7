//===- ZeroSharding.cpp - ZeRO as a sharding ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// ZeRO (Rajbhandari et al. 2020, section 5) splits what data parallelism replicates: ZeRO stage 1
// the optimizer state, ZeRO stage 2 the gradients as well, ZeRO stage 3 the parameters. All that is
// said here is where they lie. That gradients are then reduce-scattered and parameters all-gathered
// follows as every other reshard does.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/sharding/ZeroSharding.h"

#include "compiler/analysis/ZeroSplit.h"
#include "support/Format.h"

using namespace mlir;
using namespace dtc;

/// The dimensions that the op that makes the gradient can split: a sum is completed there.
static SmallVector<bool> splittableDims(Value gradient, int64_t rank) {
  SmallVector<bool> splittable(rank, true);
  auto op = gradient.getDefiningOp<ShardingRuleOpInterface>();
  if (!op)
    return splittable;
  ShardingRule rule = op.getShardingRule();
  const TensorFactors &factors = rule.results[cast<OpResult>(gradient).getResultNumber()];
  for (auto [dim, list] : llvm::enumerate(factors))
    splittable[dim] = !list.empty() && !rule.factors[list.front()].whole;
  return splittable;
}

/// The parameter that an optimizer updates, be it by its master weights; null if that is no
/// argument.
static BlockArgument getUpdatedParameter(func::FuncOp function, OptimizerOpInterface op) {
  auto updated = dyn_cast<BlockArgument>(op.getParameterMutable().get());
  if (!updated)
    return {};
  auto master = function.getArgAttrOfType<StringAttr>(updated.getArgNumber(), "dtc.state_of");
  if (!master)
    return updated;
  for (BlockArgument arg : function.getArguments())
    if (function.getArgAttr(arg.getArgNumber(), "dtc.param") == master)
      return arg;
  return {};
}

/// Those of the axes that do not split the layout yet.
static AxisList freeAxes(const Layout &layout, ArrayRef<unsigned> axes) {
  AxisList free;
  for (unsigned axis : axes)
    if (!layout.isShardedOver(axis))
      free.push_back(axis);
  return free;
}

namespace {

/// The tensors that ZeRO was asked to split, and those of them that stay whole on every device.
class ReplicatedTensors {
public:
  ReplicatedTensors(Propagation &propagation, const ZeroOptions &options)
      : propagation(propagation), options(options) {}

  /// Counts a parameter with what the stage splits of it: and the bytes that a device has of it.
  void count(BlockArgument parameter, int64_t bytes, bool isSplit) {
    (isSplit ? splitBytes : wholeBytes) += bytes;
    ++parameters;
    if (isSplit)
      return;
    ++whole;
    if (bytes > largestBytes)
      largest = parameter;
    largestBytes = std::max(largestBytes, bytes);
  }

  /// Warns where what stays whole is no small addition to a device's part of the rest.
  void warn() const {
    const LinkedMesh &mesh = propagation.getMesh();
    int64_t shards = mesh.product(options.axes), part = llvm::divideCeil(splitBytes, shards);
    if (shards == 1 || wholeBytes <= part / 10)
      return;
    func::FuncOp function = propagation.getFunction();
    auto name = function.getArgAttrOfType<StringAttr>(largest.getArgNumber(), "dtc.param");
    auto warning = emitWarning(function.getLoc());
    const char *what[] = {"", "the optimizer's state of", "the optimizer's state and gradients of",
                          "the optimizer's state, gradients and values of"};
    warning << "ZeRO stage " << options.stage << " over " << mesh.str(options.axes) << " leaves "
            << what[options.stage] << " " << whole << " of " << parameters
            << (parameters == 1 ? " parameter" : " parameters")
            << " whole: " << formatBytes(wholeBytes) << " on every device, besides "
            << formatBytes(part) << " for its part of the others; no dimension of the largest, '"
            << name.getValue() << "' (" << largest.getType() << "), can be split so that each of "
            << shards << " devices has a part; take a number of devices that divides one";
  }

private:
  Propagation &propagation;
  const ZeroOptions &options;
  int64_t parameters = 0, whole = 0, splitBytes = 0, wholeBytes = 0, largestBytes = -1;
  BlockArgument largest;
};

} // namespace

/// The bytes of a value on a device if it lies as `layout`.
static int64_t localBytes(const LinkedMesh &mesh, Value value, const Layout &layout) {
  int64_t bytes = elementBytes(value.getType());
  for (int64_t size : layout.localShape(mesh, cast<RankedTensorType>(value.getType()).getShape()))
    bytes *= size;
  return bytes;
}

/// Splits the parameters that do not train. They have no gradient and no state, but they have
/// memory.
static void splitFrozen(Propagation &propagation, const ZeroOptions &options,
                        const llvm::DenseSet<Value> &trained, ReplicatedTensors &tensors) {
  func::FuncOp function = propagation.getFunction();
  for (BlockArgument arg : function.getArguments()) {
    if (!function.getArgAttr(arg.getArgNumber(), "dtc.param") || trained.contains(arg))
      continue;
    Layout layout = propagation.layoutOf(arg);
    AxisList axes = freeAxes(layout, options.axes);
    auto type = cast<RankedTensorType>(arg.getType());
    std::optional<unsigned> dim = chooseZeroDim(propagation.getMesh(), type.getShape(), layout,
                                                axes, SmallVector<bool>(type.getRank(), true));
    if (!axes.empty())
      tensors.count(arg, localBytes(propagation.getMesh(), arg, layout), dim.has_value());
    if (dim && !axes.empty())
      propagation.append(arg, *dim, axes);
    propagation.close(arg);
  }
}

/// Splits a gradient from the start, where `gradient` reads it before any sum over batches.
static void splitGradient(Propagation &propagation, OptimizerOpInterface op, OpOperand &gradient,
                          const Layout &target) {
  Value value = gradient.get();
  OpBuilder builder(gradient.getOwner());
  if (Operation *definer = value.getDefiningOp())
    builder.setInsertionPointAfter(definer);
  auto constrain =
      dist::ConstrainOp::create(builder, value.getLoc(), value.getType(), value,
                                toAttr(op.getContext(), propagation.getMesh(), target));
  // For the optimizer and the norm; a gradient may also be a part of another one.
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses()) {
    auto product = dyn_cast<EinsumOp>(use.getOwner());
    if (use.getOwner() == gradient.getOwner() ||
        (product && llvm::all_equal(product->getOperands())))
      uses.push_back(&use);
  }
  for (OpOperand *use : uses)
    use->set(constrain.getResult());
  auto place = [&](Value split) {
    propagation.layoutOf(split) = target;
    propagation.close(split);
  };
  place(constrain.getResult());
  propagation.addOwnConstraint(constrain);
  if (auto batches = dyn_cast<dist::SumBatchesOp>(gradient.getOwner()))
    place(batches.getResult());
  // Their votes come from what they read now.
  for (Value changed : {Value(constrain.getResult()), op.getGradientMutable().get()})
    for (Operation *user : changed.getUsers())
      propagation.revisit(user);
}

/// Splits what the stage splits of a parameter that an optimizer updates.
static void splitTrained(Propagation &propagation, const ZeroOptions &options,
                         OptimizerOpInterface op, BlockArgument parameter,
                         ReplicatedTensors &tensors) {
  const LinkedMesh &mesh = propagation.getMesh();
  Layout layout = propagation.layoutOf(parameter);
  AxisList axes = freeAxes(layout, options.axes);
  auto type = cast<RankedTensorType>(parameter.getType());
  // Where the gradient is made, before it is summed over batches.
  auto batches = op.getGradientMutable().get().getDefiningOp<dist::SumBatchesOp>();
  OpOperand &gradient = batches ? batches.getInputMutable() : op.getGradientMutable();
  std::optional<unsigned> dim = chooseZeroDim(mesh, type.getShape(), layout, axes,
                                              splittableDims(gradient.get(), type.getRank()));
  SmallVector<Value> states;
  for (OpOperand &operand : op->getOpOperands())
    if (isa<BlockArgument>(operand.get()) && operand.get() != parameter &&
        cast<RankedTensorType>(operand.get().getType()).getShape() == type.getShape())
      states.push_back(operand.get());
  int64_t bytes = 0;
  for (Value state : states)
    bytes += localBytes(mesh, state, layout);
  if (options.stage >= 2)
    bytes += localBytes(mesh, gradient.get(), layout);
  if (options.stage >= 3)
    bytes += localBytes(mesh, parameter, layout);
  if (!axes.empty())
    tensors.count(parameter, bytes, dim.has_value());
  // What a stage leaves alone must not follow the optimizer's state.
  if (options.stage < 3 || !dim)
    propagation.close(parameter);
  if (!dim || axes.empty())
    return;
  auto split = [&](Value value) {
    if (propagation.layoutOf(value) == layout)
      propagation.append(value, *dim, axes);
    propagation.close(value);
  };
  llvm::for_each(states, split);
  if (options.stage >= 3)
    split(parameter);
  if (options.stage >= 2) {
    Layout target = layout;
    target.dims[*dim].append(axes);
    splitGradient(propagation, op, gradient, target);
  }
}

LogicalResult dtc::enterZero(Propagation &propagation, const ZeroOptions &options) {
  if (options.stage == 0)
    return success();
  SmallVector<OptimizerOpInterface> optimizers;
  for (auto op : propagation.getFunction().front().getOps<OptimizerOpInterface>())
    optimizers.push_back(op);
  if (optimizers.empty())
    return emitError(propagation.getFunction().getLoc())
           << "ZeRO stage " << options.stage
           << " splits the optimizer's state, but the function has no optimizer; compile a train "
              "step, or leave ZeRO out";
  llvm::DenseSet<Value> trained;
  ReplicatedTensors tensors(propagation, options);
  for (OptimizerOpInterface op : optimizers) {
    BlockArgument parameter = getUpdatedParameter(propagation.getFunction(), op);
    if (!parameter)
      continue;
    trained.insert(parameter);
    splitTrained(propagation, options, op, parameter, tensors);
  }
  if (options.stage >= 3)
    splitFrozen(propagation, options, trained, tensors);
  tensors.warn();
  return success();
}
