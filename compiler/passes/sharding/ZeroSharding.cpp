//===- ZeroSharding.cpp - ZeRO as a sharding ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// ZeRO (Rajbhandari et al. 2020, section 5) splits what data parallelism copies: stage 1 the
// optimizer's state, stage 2 the gradients as well, stage 3 the parameters. All that is said here
// is where they lie. That gradients are then reduce-scattered and parameters all-gathered follows
// as every other reshard does.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/sharding/ZeroSharding.h"

#include "compiler/passes/sharding/Propagation.h"

#define DEBUG_TYPE "dtc-propagate-shardings"

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

std::optional<unsigned> dtc::chooseZeroDim(const Mesh &mesh, ArrayRef<int64_t> shape,
                                           const Layout &layout, ArrayRef<unsigned> axes,
                                           ArrayRef<bool> splittable) {
  int64_t shards = mesh.product(axes);
  SmallVector<int64_t> local = layout.localShape(mesh, shape);
  for (bool any : {false, true})
    for (auto [dim, size] : llvm::enumerate(local))
      if ((any || splittable[dim]) && shape[dim] % (shards * mesh.product(layout.dims[dim])) == 0)
        return dim;
  auto *largest = llvm::max_element(local);
  if (largest == local.end() || mesh.leavesEmptyShards(*largest, axes))
    return std::nullopt;
  return largest - local.begin();
}

/// The parameter that an optimizer updates, be it by its master weights; null if that is no
/// argument.
static BlockArgument getUpdatedParameter(func::FuncOp function, OptimizerOpInterface op) {
  auto updated = dyn_cast<BlockArgument>(op.getParameterMutable().get());
  if (!updated)
    return {};
  auto master = function.getArgAttrOfType<StringAttr>(updated.getArgNumber(), "dtc.slot_of");
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

/// Splits the parameters that do not train. They have no gradient and no state, but they have
/// memory.
static void splitFrozen(Propagation &propagation, const ZeroOptions &options,
                        const llvm::DenseSet<Value> &trained) {
  func::FuncOp function = propagation.getFunction();
  for (BlockArgument arg : function.getArguments()) {
    if (!function.getArgAttr(arg.getArgNumber(), "dtc.param") || trained.contains(arg))
      continue;
    Layout layout = propagation.layoutOf(arg);
    AxisList axes = freeAxes(layout, options.axes);
    auto type = cast<RankedTensorType>(arg.getType());
    std::optional<unsigned> dim = chooseZeroDim(propagation.getMesh(), type.getShape(), layout,
                                                axes, SmallVector<bool>(type.getRank(), true));
    if (dim && !axes.empty())
      propagation.append(arg, *dim, axes);
    propagation.close(arg);
  }
}

LogicalResult dtc::seedZero(Propagation &propagation, const ZeroOptions &options) {
  const Mesh &mesh = propagation.getMesh();
  llvm::DenseSet<Value> trained;
  SmallVector<OptimizerOpInterface> optimizers;
  for (auto op : propagation.getFunction().front().getOps<OptimizerOpInterface>())
    optimizers.push_back(op);
  if (optimizers.empty())
    return emitError(propagation.getFunction().getLoc())
           << "ZeRO stage " << options.stage
           << " splits the optimizer's state, but the function has no optimizer; compile a train "
              "step, or leave ZeRO out";
  for (OptimizerOpInterface op : optimizers) {
    BlockArgument parameter = getUpdatedParameter(propagation.getFunction(), op);
    if (!parameter)
      continue;
    trained.insert(parameter);
    Layout layout = propagation.layoutOf(parameter);
    AxisList axes = freeAxes(layout, options.axes);
    auto type = cast<RankedTensorType>(parameter.getType());
    std::optional<unsigned> dim =
        chooseZeroDim(mesh, type.getShape(), layout, axes,
                      splittableDims(op.getGradientMutable().get(), type.getRank()));
    // What a stage leaves alone must not follow the optimizer's state.
    if (options.stage < 3 || !dim)
      propagation.close(parameter);
    if (!dim || axes.empty())
      continue;

    auto split = [&](Value value) {
      if (propagation.layoutOf(value) == layout)
        propagation.append(value, *dim, axes);
      propagation.close(value);
    };
    OpOperand &gradient = op.getGradientMutable();
    for (OpOperand &operand : op->getOpOperands())
      if (isa<BlockArgument>(operand.get()) && operand.get() != parameter &&
          cast<RankedTensorType>(operand.get().getType()).getShape() == type.getShape())
        split(operand.get());
    if (options.stage >= 3)
      split(parameter);
    if (options.stage >= 2) {
      // Where the gradient is made, so that it is split from the start.
      Value value = gradient.get();
      Layout target = layout;
      target.dims[*dim].append(axes);
      OpBuilder builder(op);
      if (Operation *definer = value.getDefiningOp())
        builder.setInsertionPointAfter(definer);
      auto constrain = dist::ConstrainOp::create(builder, value.getLoc(), value.getType(), value,
                                                 toAttr(op.getContext(), mesh, target));
      // For the optimizer and the norm; a gradient may also be a part of another one.
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : value.getUses()) {
        auto product = dyn_cast<EinsumOp>(use.getOwner());
        if (use.getOwner() == op.getOperation() ||
            (product && llvm::all_equal(product->getOperands())))
          uses.push_back(&use);
      }
      for (OpOperand *use : uses)
        use->set(constrain.getResult());
      propagation.layoutOf(constrain.getResult()) = target;
      propagation.close(constrain.getResult());
      propagation.addOwnConstraint(constrain);
      // Their votes come from what they read now.
      for (Operation *user : constrain.getResult().getUsers())
        propagation.revisit(user);
    }
  }
  if (options.stage >= 3)
    splitFrozen(propagation, options, trained);
  return success();
}
