//===- InsertReshards.cpp - Insert resharding ops -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Ops are visited in order. Propagation has decided the axes of each op's factors (dist.factors);
// where it did not run, the layouts of the operands and those required of the results vote. An
// operand with another layout gets a reshard; the layout that the op produces is recorded for the
// result, and the users adapt in their turn.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/FactorMerge.h"
#include "compiler/analysis/Layout.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/SignatureAttributes.h"
#include "compiler/passes/sharding/DecidedAxes.h"
#include "compiler/passes/sharding/ReshardReason.h"
#include "compiler/passes/sharding/RuleCache.h"
#include "dialects/dtc/AgreedAttribute.h"

namespace dtc {
#define GEN_PASS_DEF_INSERTRESHARDSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

class ReshardInserter {
public:
  ReshardInserter(func::FuncOp function, const LinkedMesh &mesh)
      : function(function), mesh(mesh), planner(mesh) {}
  LogicalResult run();

private:
  LogicalResult visit(ShardingRuleOpInterface op);
  void visitConstrain(dist::ConstrainOp op);
  void visitSumBatches(dist::SumBatchesOp op);
  LogicalResult visitReturn(func::ReturnOp op);
  /// `value` laid out as `layout`, by a reshard before `user` if it is not so already.
  Value reshard(Value value, const Layout &layout, Operation *user);
  std::optional<Layout> chooseCompletion(Value value);
  /// Whether the op's one result, or what linear ops make of it, is added to a value that is a
  /// partial sum over `axis` anyway, and so is completed together with it.
  bool joinsPartialSum(Operation *op, unsigned axis);
  /// Whether the value is a partial sum over `axis`, or will be one when its op is visited.
  bool isPartialSum(Value value, unsigned axis);
  /// The axes over which operands are partial sums and the op leaves its results so, where the
  /// operands laid out as `required` have at least `resultBytes`, or the values that the results
  /// are added to are partial as well; adds them to `required`.
  AxisList keepPartial(Operation *op, const ShardingRule &rule, ArrayRef<Layout> actual,
                       const FactorAxes &axes, double resultBytes,
                       MutableArrayRef<Layout> required);
  void keepSumsTogether(Operation *op, const ShardingRule &rule, ArrayRef<Layout> actual,
                        FactorAxes &axes);
  /// The layout that propagation gave `value`.
  Layout layoutWanted(Value value) const;
  double localBytes(Type type, const Layout &layout) const;
  /// The layout of a value on which devices agree: complete, and still to be combined with its
  /// copies.
  Layout withCopies(Layout layout) const;
  /// Whether every user of `value` could take it as a partial sum.
  bool usersAreLinear(Value value);
  bool hasLateOperand(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) { return late.contains(operand); });
  }
  /// Notes the stage of a pipeline that computes the op's results as sums over microbatches.
  void noteStage(Operation *op);
  /// Whether sums over microbatches of several stages of a pipeline meet in `op`: they are
  /// completed first, so that they meet once a step.
  bool joinsStages(Operation *op, ArrayRef<unsigned> operands) const;

  func::FuncOp function;
  const LinkedMesh &mesh;
  ReshardCache planner;
  RuleCache rules;
  llvm::DenseMap<Value, Layout> layouts;
  llvm::DenseMap<Value, Layout> wanted; ///< what propagation gave the results of ops
  llvm::DenseMap<Value, std::optional<Layout>> completions;
  /// Sums over all microbatches, and values computed from them: known after the last one.
  llvm::DenseSet<Value> late;
  llvm::DenseMap<Value, int64_t> stages; ///< of a pipeline, where values have one
  llvm::DenseMap<Value, SmallVector<std::pair<Layout, Value>, 1>> reshards;
};

} // namespace

double ReshardInserter::localBytes(Type type, const Layout &layout) const {
  double bytes = double(cast<RankedTensorType>(type).getNumElements()) * elementBytes(type);
  for (const AxisList &dim : layout.dims)
    bytes /= mesh.product(dim);
  return bytes;
}

Layout ReshardInserter::layoutWanted(Value value) const {
  auto it = wanted.find(value);
  return it == wanted.end() ? layouts.at(value).complete() : it->second;
}

Value ReshardInserter::reshard(Value value, const Layout &layout, Operation *user) {
  const Layout from = layouts.at(value); // a copy: the map grows
  if (from == layout)
    return value;
  if (!from.partial.empty() && layout.partial.empty() && !value.hasOneUse()) {
    auto [it, fresh] = completions.try_emplace(value);
    if (fresh)
      it->second = chooseCompletion(value);
    if (std::optional<Layout> middle = it->second; middle && *middle != layout)
      return reshard(reshard(value, *middle, user), layout, user);
  }
  auto &known = reshards[value];
  for (auto &[target, result] : known)
    if (target == layout)
      return result;
  OpBuilder builder(user);
  MLIRContext *context = user->getContext();
  // Its place is that of the value that moves: the user wants to know that one.
  Location loc = isa<BlockArgument>(value) ? user->getLoc() : value.getLoc();
  auto op = dist::ReshardOp::create(builder, loc, value.getType(), value,
                                    toAttr(context, mesh, from), toAttr(context, mesh, layout));
  dist::setSharding(op.getResult(), op.getTo());
  op->setAttr(dist::kReasonAttrName, describeReason(mesh, value, from, layout, user));
  layouts[op.getResult()] = layout;
  reshards[value].push_back({layout, op.getResult()});
  auto isSummedLater = [&](unsigned axis) {
    return mesh.isTemporal(axis) && !layout.isPartialOver(axis);
  };
  if (late.contains(value) || llvm::any_of(from.partial, isSummedLater))
    late.insert(op.getResult());
  noteStage(op);
  return op.getResult();
}

Layout ReshardInserter::withCopies(Layout layout) const {
  for (unsigned axis = 0; axis < mesh.axes.size(); ++axis)
    if (mesh.axes[axis].size > 1 && !mesh.axes[axis].temporal && !mesh.axes[axis].pipeline &&
        !layout.isShardedOver(axis))
      layout.partial.push_back(axis);
  layout.partialKind = ReductionKind::Max;
  return layout;
}

bool ReshardInserter::usersAreLinear(Value value) {
  for (OpOperand &use : value.getUses()) {
    auto user = dyn_cast<ShardingRuleOpInterface>(use.getOwner());
    if (!user)
      return false;
    const auto &sets = rules.of(user).linearOperands;
    if (llvm::none_of(sets,
                      [&](auto &set) { return llvm::is_contained(set, use.getOperandNumber()); }))
      return false;
  }
  return true;
}

/// The set of operands, partial over `axis` and linear together, through which `axis` may stay
/// partial; empty if none.
static ArrayRef<unsigned> partialSet(const ShardingRule &rule, ArrayRef<Layout> operands,
                                     unsigned axis) {
  for (const auto &set : rule.linearOperands) {
    bool fits = true;
    for (auto [index, layout] : llvm::enumerate(operands))
      fits &= layout.isPartialOver(axis) == llvm::is_contained(set, index) &&
              (!layout.isPartialOver(axis) || layout.partialKind == ReductionKind::Sum);
    if (fits)
      return set;
  }
  return {};
}

/// The layouts in which an op of decided axes takes its operands.
static SmallVector<Layout> requiredLayouts(const LinkedMesh &mesh, const ShardingRule &rule,
                                           FactorAxes axes) {
  SmallVector<FactorTensor> tensors;
  for (const TensorFactors &factors : rule.operands)
    tensors.push_back({&factors, nullptr, 0});
  for (const TensorFactors &factors : rule.results)
    tensors.push_back({&factors, nullptr, 0});
  dropInexpressible(mesh, rule, tensors, axes);
  SmallVector<Layout> layouts;
  for (const TensorFactors &factors : rule.operands)
    layouts.push_back(*layoutFromFactors(mesh, rule, factors, axes));
  return layouts;
}

/// A partial value that its users need in several complete layouts is completed once: the layout in
/// which that is cheapest, with the reshards that follow; nullopt where each user is served best by
/// itself.
std::optional<Layout> ReshardInserter::chooseCompletion(Value value) {
  const Layout &from = layouts.at(value);
  if (llvm::any_of(from.partial, [&](unsigned axis) { return mesh.isTemporal(axis); }))
    return std::nullopt;
  SmallVector<Layout> targets;
  for (OpOperand &use : value.getUses()) {
    std::optional<Layout> target;
    if (auto constrain = dyn_cast<dist::ConstrainOp>(use.getOwner())) {
      target = getLayout(mesh, constrain.getSharding());
    } else if (auto op = dyn_cast<ShardingRuleOpInterface>(use.getOwner())) {
      const ShardingRule &rule = rules.of(op);
      if (auto axes = decidedAxes(op, mesh, rule))
        target = requiredLayouts(mesh, rule, *axes)[use.getOperandNumber()];
    }
    if (!target)
      return std::nullopt;
    if (!llvm::is_contained(targets, *target))
      targets.push_back(*target);
  }
  if (targets.size() < 2)
    return std::nullopt;
  auto type = cast<RankedTensorType>(value.getType());
  auto seconds = [&](const Layout &a, const Layout &b) {
    const auto &plan = planner.plan(elementBytes(type), type.getShape(), a, b);
    return plan ? plan->seconds : std::numeric_limits<double>::infinity();
  };
  double best = 0;
  for (const Layout &target : targets)
    best += seconds(from, target);
  std::optional<Layout> choice;
  targets.push_back(layoutWanted(value));
  for (const Layout &middle : targets) {
    double total = seconds(from, middle);
    for (const Layout &target : ArrayRef(targets).drop_back())
      total += seconds(middle, target);
    if (total < best) {
      best = total;
      choice = middle;
    }
  }
  return choice;
}

/// Where an op adds or joins several sums that are partial over an axis, and the axis is to split
/// it, it works on the whole of them instead and the result is split: one sum is completed, not
/// several. On the way to such an op a sum passes reshapes, which cost nothing, as it is.
void ReshardInserter::keepSumsTogether(Operation *op, const ShardingRule &rule,
                                       ArrayRef<Layout> actual, FactorAxes &axes) {
  bool passesOn = isa<ReshapeOp>(op) && usersAreLinear(op->getResult(0));
  for (AxisList &list : axes) {
    auto *end = llvm::find_if(list, [&](unsigned axis) {
      ArrayRef<unsigned> set = partialSet(rule, actual, axis);
      return (set.size() > 1 || (set.size() == 1 && passesOn)) &&
             llvm::all_of(set,
                          [&](unsigned index) { return usersAreLinear(op->getOperand(index)); });
    });
    list.erase(end, list.end());
  }
}

void ReshardInserter::noteStage(Operation *op) {
  std::optional<int64_t> stage;
  if (auto attr = dist::getStage(op))
    stage = attr.getIndex();
  for (Value operand : op->getOperands())
    if (auto it = stages.find(operand); !stage && it != stages.end())
      stage = it->second;
  if (stage)
    for (Value result : op->getResults())
      stages[result] = *stage;
}

bool ReshardInserter::joinsStages(Operation *op, ArrayRef<unsigned> operands) const {
  if (dist::getStage(op))
    return false;
  std::optional<int64_t> first;
  for (unsigned index : operands)
    if (auto it = stages.find(op->getOperand(index)); it != stages.end()) {
      if (first && *first != it->second)
        return true;
      first = it->second;
    }
  return false;
}

void ReshardInserter::visitConstrain(dist::ConstrainOp op) {
  Layout layout = getLayout(mesh, op.getSharding());
  // A constraint says how a value lies on devices. A sum over microbatches goes on through it.
  const Layout &from = layouts.at(op.getInput());
  if (from.partialKind == ReductionKind::Sum)
    for (unsigned axis : from.partial)
      if (mesh.isTemporal(axis))
        layout.partial.push_back(axis);
  layouts[op.getResult()] = layout;
  dist::setSharding(op.getResult(), toAttr(op.getContext(), mesh, layout));
  op.getInputMutable().assign(reshard(op.getInput(), layout, op));
  noteStage(op);
}

/// Sums over batches and sums over devices come in any order: partial values stay so.
void ReshardInserter::visitSumBatches(dist::SumBatchesOp op) {
  Layout layout = layouts.at(op.getInput());
  if (!layout.partial.empty() && layout.partialKind != ReductionKind::Sum)
    layout = layout.complete();
  op.getInputMutable().assign(reshard(op.getInput(), layout, op));
  layouts[op.getResult()] = layout;
  dist::setSharding(op.getResult(), toAttr(op.getContext(), mesh, layout));
  if (hasLateOperand(op))
    late.insert(op.getResult());
  noteStage(op);
}

bool ReshardInserter::isPartialSum(Value value, unsigned axis) {
  auto isPartial = [&](const Layout &layout) {
    return layout.isPartialOver(axis) && layout.partialKind == ReductionKind::Sum;
  };
  if (auto known = layouts.find(value); known != layouts.end())
    return isPartial(known->second);
  auto op = value.getDefiningOp<ShardingRuleOpInterface>();
  if (!op)
    return false;
  const ShardingRule &rule = rules.of(op);
  std::optional<FactorAxes> axes = decidedAxes(op, mesh, rule);
  if (!axes)
    return false;
  unsigned number = cast<OpResult>(value).getResultNumber();
  std::optional<Layout> produced = producedLayout(mesh, rule, rule.results[number], *axes);
  return produced && isPartial(*produced);
}

bool ReshardInserter::joinsPartialSum(Operation *op, unsigned axis) {
  if (mesh.isTemporal(axis) || op->getNumResults() != 1)
    return false;
  Value value = op->getResult(0);
  while (value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    if (auto add = dyn_cast<AddOp>(use.getOwner())) {
      Value other = add->getOperand(1 - use.getOperandNumber());
      return other.hasOneUse() && isPartialSum(other, axis);
    }
    auto user = dyn_cast<ShardingRuleOpInterface>(use.getOwner());
    if (!user || user->getNumResults() != 1 ||
        !llvm::is_contained(rules.of(user).linearOperands, ArrayRef(use.getOperandNumber())))
      return false;
    value = user->getResult(0); // such as an adapter's input that drops out, backward
  }
  return false;
}

AxisList ReshardInserter::keepPartial(Operation *op, const ShardingRule &rule,
                                      ArrayRef<Layout> actual, const FactorAxes &axes,
                                      double resultBytes, MutableArrayRef<Layout> required) {
  auto splits = [&](unsigned axis) {
    return llvm::any_of(axes, [&](const AxisList &list) { return llvm::is_contained(list, axis); });
  };
  AxisList kept;
  for (unsigned axis = 0; axis < mesh.axes.size(); ++axis) {
    ArrayRef<unsigned> set = splits(axis) ? ArrayRef<unsigned>() : partialSet(rule, actual, axis);
    // With a sum over all microbatches an op works on sums over all of them.
    if (set.empty() || (mesh.isTemporal(axis) && (joinsStages(op, set) || hasLateOperand(op))))
      continue;
    double operandBytes = 0;
    bool linearUsers = true;
    for (unsigned index : set) {
      operandBytes += localBytes(op->getOperand(index).getType(), required[index]);
      linearUsers &= usersAreLinear(op->getOperand(index));
    }
    if (!linearUsers || (resultBytes > operandBytes && !joinsPartialSum(op, axis)))
      continue;
    kept.push_back(axis);
    for (unsigned index : set)
      required[index].partial.push_back(axis);
  }
  return kept;
}

LogicalResult ReshardInserter::visit(ShardingRuleOpInterface op) {
  const ShardingRule &rule = rules.of(op);
  SmallVector<Layout> actual, asked;
  SmallVector<FactorTensor> tensors;
  for (Value operand : op->getOperands())
    actual.push_back(layouts.at(operand));
  for (Value result : op->getResults()) {
    auto sharding = dist::getSharding(result);
    if (!sharding)
      return op->emitOpError() << "has no sharding; run dtc-propagate-shardings first";
    asked.push_back(getLayout(mesh, sharding));
    wanted[result] = asked.back();
  }
  for (auto [operand, factors, layout] : llvm::zip_equal(op->getOperands(), rule.operands, actual))
    tensors.push_back({&factors, &layout, localBytes(operand.getType(), layout)});
  for (auto [result, factors, layout] : llvm::zip_equal(op->getResults(), rule.results, asked))
    tensors.push_back({&factors, &layout, localBytes(result.getType(), layout)});
  std::optional<FactorAxes> decided = decidedAxes(op, mesh, rule);
  FactorAxes axes = decided ? *decided : mergeFactorAxes(mesh, rule, tensors);
  keepSumsTogether(op, rule, actual, axes);
  dropInexpressible(mesh, rule, tensors, axes);

  // The layouts of the op's results, and whether all of these are sums to be completed anyway.
  SmallVector<Layout> results;
  double resultBytes = 0;
  bool sums = true;
  auto refuseMixture = [&] {
    return op->emitOpError() << "would leave a value that is partly a sum and partly a maximum";
  };
  auto isSum = [](const Layout &layout) {
    return !layout.partial.empty() && layout.partialKind == ReductionKind::Sum;
  };
  for (auto [result, factors] : llvm::zip_equal(op->getResults(), rule.results)) {
    std::optional<Layout> produced = producedLayout(mesh, rule, factors, axes);
    if (!produced)
      return refuseMixture();
    resultBytes += localBytes(result.getType(), *produced);
    sums &= isSum(*produced);
    results.push_back(*produced);
  }

  // Which partial axes of the operands stay partial through this op.
  SmallVector<Layout> required;
  for (const TensorFactors &factors : rule.operands)
    required.push_back(*layoutFromFactors(mesh, rule, factors, axes));
  const bool isAgreed = op->hasAttr(kAgreedAttrName);
  AxisList kept;
  // A larger result is worth it where it is a sum that has to be completed anyway.
  if (!isAgreed)
    kept = keepPartial(op, rule, actual, axes, sums ? 0 : resultBytes, required);

  for (auto [result, layout] : llvm::zip_equal(op->getResults(), results)) {
    if (!kept.empty() && !layout.partial.empty() && !isSum(layout))
      return refuseMixture();
    if (!kept.empty())
      layout.partialKind = ReductionKind::Sum;
    layout.partial.append(kept);
    llvm::sort(layout.partial);
    if (isAgreed && layout.partial.empty())
      layout = withCopies(layout);
    layouts[result] = layout;
    dist::setSharding(result, toAttr(op->getContext(), mesh, layout));
  }
  for (auto [index, layout] : llvm::enumerate(required))
    op->setOperand(index, reshard(op->getOperand(index), layout, op));
  if (hasLateOperand(op))
    late.insert(op->result_begin(), op->result_end());
  noteStage(op);
  return success();
}

LogicalResult ReshardInserter::visitReturn(func::ReturnOp op) {
  SignatureAttributes attributes(function);
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    // An updated state goes back to where it came from; other results are complete, sharded as they
    // are.
    Layout target = layouts.at(value).complete();
    if (auto updates = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates"))
      target = layouts.at(function.getArgument(updates.getInt()));
    else if (auto asked =
                 function.getResultAttrOfType<dist::ShardingAttr>(index, dist::kShardingAttrName))
      target = getLayout(mesh, asked);
    // Nothing outlives the step that exists once a microbatch: a result is never split over a
    // temporal axis.
    for (AxisList &dim : target.dims)
      llvm::erase_if(dim, [&](unsigned axis) { return mesh.isTemporal(axis); });
    op->setOperand(index, reshard(value, target, op));
    attributes.result(index).set(dist::kShardingAttrName, toAttr(op.getContext(), mesh, target));
  }
  attributes.commit();
  return success();
}

LogicalResult ReshardInserter::run() {
  if (failed(checkProgram(function, mesh.name)))
    return failure();
  for (BlockArgument arg : function.getArguments()) {
    auto sharding = dist::getSharding(arg);
    if (!sharding)
      return function.emitOpError() << "has no sharding for argument " << arg.getArgNumber()
                                    << "; run dtc-propagate-shardings first";
    layouts[arg] = getLayout(mesh, sharding);
  }
  for (Operation &op : llvm::make_early_inc_range(function.front())) {
    if (auto ret = dyn_cast<func::ReturnOp>(op)) {
      if (failed(visitReturn(ret)))
        return failure();
    } else if (auto constrain = dyn_cast<dist::ConstrainOp>(op)) {
      visitConstrain(constrain);
    } else if (auto sum = dyn_cast<dist::SumBatchesOp>(op)) {
      visitSumBatches(sum);
    } else if (auto rule = dyn_cast<ShardingRuleOpInterface>(op)) {
      if (failed(visit(rule)))
        return failure();
    } else {
      return op.emitOpError() << "has no sharding rule; implement ShardingRuleOpInterface";
    }
  }
  // Not before: the users of a value are asked what they need.
  for (Operation &op : function.front())
    op.removeAttr(dist::kFactorsAttrName);
  return success();
}

namespace {
struct InsertReshardsPass : dtc::impl::InsertReshardsPassBase<InsertReshardsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(forEachFunction(getOperation(), [](func::FuncOp function, const LinkedMesh &mesh) {
          return ReshardInserter(function, mesh).run();
        })))
      signalPassFailure();
  }
};
} // namespace
