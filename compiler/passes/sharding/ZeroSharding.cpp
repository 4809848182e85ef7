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
#include "compiler/passes/train/ProximalTerm.h"
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

/// The bytes of a device of the tensors that ZeRO was asked to split, and the excess over an even
/// part of them.
class UnevenTensors {
public:
  UnevenTensors(Propagation &propagation, const ZeroOptions &options)
      : propagation(propagation), options(options) {}

  /// Counts a parameter that lies as `layout` without ZeRO and as `target` with it, or stays as it
  /// is; `bytes` is the number that the stage splits for each of its elements. A remark names the
  /// rest.
  void count(BlockArgument parameter, int64_t bytes, const Layout &layout,
             const std::optional<Layout> &target);
  /// Warns where a device holds much more than an even part.
  void warn() const;

private:
  StringRef nameOf(BlockArgument parameter) const {
    return propagation.getFunction()
        .getArgAttrOfType<StringAttr>(parameter.getArgNumber(), "dtc.param")
        .getValue();
  }
  /// "the optimizer's state", and what else the stage splits.
  StringRef whatIsSplit() const {
    const char *what[] = {"", "the optimizer's state", "the optimizer's state and gradients",
                          "the optimizer's state, gradients and values"};
    return what[options.stage];
  }

  Propagation &propagation;
  const ZeroOptions &options;
  int64_t heldBytes = 0, evenBytes = 0, largestExcess = -1;
  int64_t largestHeld = 0, largestEven = 0;
  BlockArgument largest; ///< the parameter that exceeds an even part most
};

} // namespace

void UnevenTensors::count(BlockArgument parameter, int64_t bytes, const Layout &layout,
                          const std::optional<Layout> &target) {
  const LinkedMesh &mesh = propagation.getMesh();
  auto shape = cast<RankedTensorType>(parameter.getType()).getShape();
  int64_t before = bytes * localElements(mesh, shape, layout);
  int64_t held = target ? bytes * localElements(mesh, shape, *target) : before;
  int64_t even = llvm::divideCeil(before, mesh.product(freeAxes(layout, options.axes)));
  heldBytes += held;
  evenBytes += even;
  if (held - even > largestExcess) {
    largest = parameter;
    largestExcess = held - even;
    largestHeld = held;
    largestEven = even;
  }
  if (!target)
    emitRemark(parameter.getLoc())
        << "ZeRO stage " << options.stage << " leaves " << whatIsSplit() << " of '"
        << nameOf(parameter) << "' (" << parameter.getType() << ") whole, " << formatBytes(before)
        << " on every device: a device has one element of it";
}

void UnevenTensors::warn() const {
  if (heldBytes - evenBytes <= evenBytes / 10)
    return;
  const LinkedMesh &mesh = propagation.getMesh();
  emitWarning(propagation.getFunction().getLoc())
      << "ZeRO stage " << options.stage << " over " << mesh.str(options.axes) << " leaves "
      << formatBytes(heldBytes) << " of " << whatIsSplit() << " on every device, where "
      << formatBytes(evenBytes) << " would be even; most of that is '" << nameOf(largest) << "' ("
      << largest.getType() << "), " << formatBytes(largestHeld) << " instead of "
      << formatBytes(largestEven) << ", which " << mesh.product(options.axes)
      << " devices do not divide; take a number of devices with smaller prime factors";
}

/// Appends to `value`, which lies as `layout`, the axes that `target` has besides.
static void appendAxes(Propagation &propagation, Value value, const Layout &layout,
                       const Layout &target) {
  for (auto [dim, lists] : llvm::enumerate(llvm::zip_equal(layout.dims, target.dims))) {
    auto [before, after] = lists;
    if (after.size() > before.size())
      propagation.append(value, dim, ArrayRef(after).drop_front(before.size()));
  }
}

/// Splits the parameters that do not train. They have no gradient and no state, but they have
/// memory.
static void splitFrozen(Propagation &propagation, const ZeroOptions &options,
                        const llvm::DenseSet<Value> &trained, UnevenTensors &tensors) {
  func::FuncOp function = propagation.getFunction();
  for (BlockArgument arg : function.getArguments()) {
    if (!function.getArgAttr(arg.getArgNumber(), "dtc.param") || trained.contains(arg))
      continue;
    Layout layout = propagation.layoutOf(arg);
    AxisList axes = freeAxes(layout, options.axes);
    auto type = cast<RankedTensorType>(arg.getType());
    std::optional<Layout> target = splitForZero(propagation.getMesh(), type.getShape(), layout,
                                                axes, SmallVector<bool>(type.getRank(), true));
    if (!axes.empty())
      tensors.count(arg, elementBytes(type), layout, target);
    if (target)
      appendAxes(propagation, arg, layout, *target);
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
  // Their votes come from their present operands.
  for (Value changed : {Value(constrain.getResult()), op.getGradientMutable().get()})
    for (Operation *user : changed.getUsers())
      propagation.revisit(user);
}

/// Splits what the stage splits of a parameter that an optimizer updates, and its outer parameter
/// (null: it has none).
static void splitTrained(Propagation &propagation, const ZeroOptions &options,
                         OptimizerOpInterface op, BlockArgument parameter, Value outer,
                         UnevenTensors &tensors) {
  const LinkedMesh &mesh = propagation.getMesh();
  Layout layout = propagation.layoutOf(parameter);
  AxisList axes = freeAxes(layout, options.axes);
  auto type = cast<RankedTensorType>(parameter.getType());
  // Where the gradient is made, before it is summed over batches.
  auto batches = op.getGradientMutable().get().getDefiningOp<dist::SumBatchesOp>();
  OpOperand &gradient = batches ? batches.getInputMutable() : op.getGradientMutable();
  std::optional<Layout> target = splitForZero(mesh, type.getShape(), layout, axes,
                                              splittableDims(gradient.get(), type.getRank()));
  SmallVector<Value> states;
  for (OpOperand &operand : op->getOpOperands())
    if (isa<BlockArgument>(operand.get()) && operand.get() != parameter &&
        cast<RankedTensorType>(operand.get().getType()).getShape() == type.getShape())
      states.push_back(operand.get());
  // An outer step computes with it and with the weights, so that it lies as they do.
  SmallVector<Value> parameters = {parameter};
  if (outer)
    (op.getParameterMutable().get() == parameter ? parameters : states).push_back(outer);
  int64_t bytes = 0;
  for (Value state : states)
    bytes += elementBytes(state.getType());
  if (options.stage >= 2)
    bytes += elementBytes(gradient.get().getType());
  if (options.stage >= 3)
    bytes += elementBytes(type);
  if (!axes.empty())
    tensors.count(parameter, bytes, layout, target);
  // Parameters that a ZeRO stage leaves whole must not follow the optimizer's state.
  if (options.stage < 3 || !target)
    for (Value each : parameters)
      propagation.close(each);
  if (!target)
    return;
  auto split = [&](Value value) {
    if (propagation.layoutOf(value) == layout)
      appendAxes(propagation, value, layout, *target);
    propagation.close(value);
  };
  llvm::for_each(states, split);
  if (options.stage >= 3)
    llvm::for_each(parameters, split);
  if (options.stage >= 2)
    splitGradient(propagation, op, gradient, *target);
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
  llvm::DenseMap<Attribute, BlockArgument> outer = findOuterParameters(propagation.getFunction());
  UnevenTensors tensors(propagation, options);
  for (OptimizerOpInterface op : optimizers) {
    BlockArgument parameter = getUpdatedParameter(propagation.getFunction(), op);
    if (!parameter)
      continue;
    trained.insert(parameter);
    Attribute name =
        propagation.getFunction().getArgAttr(parameter.getArgNumber(), DtcDialect::kParamAttrName);
    splitTrained(propagation, options, op, parameter, outer.lookup(name), tensors);
  }
  if (options.stage >= 3)
    splitFrozen(propagation, options, trained, tensors);
  tensors.warn();
  return success();
}
