//===- InsertReshards.cpp - Make every change of sharding explicit --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Ops are visited in order. At each, the layouts that its operands really have (partial sums
// included) are known; the layouts that propagation gave its results are what their users would
// like. Both vote for the axes of the op's factors. What an operand lacks is a reshard; what the op
// produces is recorded as the result's layout, and the users adapt in their turn.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/FactorMerge.h"
#include "compiler/analysis/Layout.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/SignatureAttributes.h"

#define DEBUG_TYPE "dtc-insert-reshards"

namespace dtc {
#define GEN_PASS_DEF_INSERTRESHARDSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

class ReshardInserter {
public:
  ReshardInserter(func::FuncOp function, const Mesh &mesh) : function(function), mesh(mesh) {}
  LogicalResult run();

private:
  LogicalResult visit(ShardingRuleOpInterface op);
  void visitConstrain(dist::ConstrainOp op);
  LogicalResult visitReturn(func::ReturnOp op);
  /// `value` laid out as `layout`, by a reshard before `user` if it is not so already.
  Value reshard(Value value, const Layout &layout, Operation *user);
  double localBytes(Type type, const Layout &layout) const;
  /// Whether every user of `value` could take it as a partial sum.
  bool usersAreLinear(Value value);

  func::FuncOp function;
  const Mesh &mesh;
  llvm::DenseMap<Value, Layout> layouts;
  llvm::DenseMap<Value, SmallVector<std::pair<Layout, Value>, 1>> reshards;
};

} // namespace

double ReshardInserter::localBytes(Type type, const Layout &layout) const {
  auto tensor = cast<RankedTensorType>(type);
  double bytes =
      double(tensor.getNumElements()) * std::max(8u, tensor.getElementTypeBitWidth()) / 8;
  for (const AxisList &dim : layout.dims)
    bytes /= mesh.product(dim);
  return bytes;
}

Value ReshardInserter::reshard(Value value, const Layout &layout, Operation *user) {
  const Layout &from = layouts.at(value);
  if (from == layout)
    return value;
  auto &known = reshards[value];
  for (auto &[target, result] : known)
    if (target == layout)
      return result;
  OpBuilder builder(user);
  MLIRContext *context = user->getContext();
  // Its place is that of the value that moves: that is what the user wants to know.
  Location loc = isa<BlockArgument>(value) ? user->getLoc() : value.getLoc();
  auto op = dist::ReshardOp::create(builder, loc, value.getType(), value,
                                    toAttr(context, mesh, from), toAttr(context, mesh, layout));
  dist::setSharding(op.getResult(), op.getTo());
  layouts[op.getResult()] = layout;
  reshards[value].push_back({layout, op.getResult()});
  return op.getResult();
}

bool ReshardInserter::usersAreLinear(Value value) {
  for (OpOperand &use : value.getUses()) {
    auto user = dyn_cast<ShardingRuleOpInterface>(use.getOwner());
    if (!user)
      return false;
    auto sets = user.getShardingRule().linearOperands;
    if (llvm::none_of(sets,
                      [&](auto &set) { return llvm::is_contained(set, use.getOperandNumber()); }))
      return false;
  }
  return true;
}

/// Gives up axes of factors that no list of equal blocks can express for some tensor: a minor
/// factor of a dimension can be split only where the major ones are split completely. Giving one up
/// can do that to another tensor, hence the loop.
static void dropInexpressible(const Mesh &mesh, const ShardingRule &rule,
                              ArrayRef<FactorTensor> tensors, FactorAxes &axes) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const FactorTensor &tensor : tensors)
      for (const auto &dim : *tensor.factors) {
        bool majorSplit = true;
        for (unsigned factor : dim) {
          if (!majorSplit && !axes[factor].empty()) {
            axes[factor].clear();
            changed = true;
          }
          majorSplit &= mesh.product(axes[factor]) == rule.factors[factor].size;
        }
      }
  }
}

/// The set of operands, partial over `axis` and linear together, through which `axis` may stay
/// partial; empty if none.
static ArrayRef<unsigned> partialSet(const ShardingRule &rule, ArrayRef<Layout> operands,
                                     unsigned axis) {
  for (const auto &set : rule.linearOperands) {
    bool fits = true;
    for (auto [index, layout] : llvm::enumerate(operands))
      fits &= layout.isPartialOver(axis) == llvm::is_contained(set, index) &&
              (!layout.isPartialOver(axis) || layout.partialKind == dist::ReductionKind::Sum);
    if (fits)
      return set;
  }
  return {};
}

static dist::ReductionKind toKind(FactorReduction reduction) {
  switch (reduction) {
  case FactorReduction::Max:
    return dist::ReductionKind::Max;
  case FactorReduction::Min:
    return dist::ReductionKind::Min;
  default:
    return dist::ReductionKind::Sum;
  }
}

void ReshardInserter::visitConstrain(dist::ConstrainOp op) {
  Layout layout = getLayout(mesh, op.getSharding());
  layouts[op.getResult()] = layout;
  dist::setSharding(op.getResult(), op.getSharding());
  op.getInputMutable().assign(reshard(op.getInput(), layout, op));
}

LogicalResult ReshardInserter::visit(ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  SmallVector<Layout> actual, wanted;
  SmallVector<FactorTensor> tensors;
  for (Value operand : op->getOperands())
    actual.push_back(layouts.at(operand));
  for (Value result : op->getResults()) {
    auto sharding = dist::getSharding(result);
    if (!sharding)
      return op->emitOpError() << "has no sharding; run dtc-propagate-shardings first";
    wanted.push_back(getLayout(mesh, sharding));
  }
  for (auto [operand, factors, layout] : llvm::zip_equal(op->getOperands(), rule.operands, actual))
    tensors.push_back({&factors, &layout, localBytes(operand.getType(), layout)});
  for (auto [result, factors, layout] : llvm::zip_equal(op->getResults(), rule.results, wanted))
    tensors.push_back({&factors, &layout, localBytes(result.getType(), layout)});
  FactorAxes axes = mergeFactorAxes(mesh, rule, tensors);

  dropInexpressible(mesh, rule, tensors, axes);
  auto splits = [&](unsigned axis) {
    return llvm::any_of(axes, [&](const AxisList &list) { return llvm::is_contained(list, axis); });
  };

  SmallVector<Layout> results;
  for (const TensorFactors &factors : rule.results)
    results.push_back(*layoutFromFactors(mesh, rule, factors, axes));
  double resultBytes = 0, operandBytes = 0;
  for (auto [result, layout] : llvm::zip_equal(op->getResults(), results))
    resultBytes += localBytes(result.getType(), layout);

  // Which partial axes of the operands stay partial through this op.
  SmallVector<Layout> required;
  for (const TensorFactors &factors : rule.operands)
    required.push_back(*layoutFromFactors(mesh, rule, factors, axes));
  AxisList kept;
  for (unsigned axis = 0; axis < mesh.axes.size(); ++axis) {
    ArrayRef<unsigned> set = splits(axis) ? ArrayRef<unsigned>() : partialSet(rule, actual, axis);
    if (set.empty())
      continue;
    operandBytes = 0;
    bool linearUsers = true;
    for (unsigned index : set) {
      operandBytes += localBytes(op->getOperand(index).getType(), required[index]);
      linearUsers &= usersAreLinear(op->getOperand(index));
    }
    if (resultBytes > operandBytes || !linearUsers)
      continue;
    kept.push_back(axis);
    for (unsigned index : set)
      required[index].partial.push_back(axis);
  }

  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    Layout &layout = results[index];
    std::optional<dist::ReductionKind> kind;
    if (!kept.empty())
      kind = dist::ReductionKind::Sum;
    layout.partial = kept;
    llvm::SmallBitVector present(rule.factors.size());
    for (const auto &dim : rule.results[index])
      for (unsigned factor : dim)
        present.set(factor);
    for (auto [factor, list] : llvm::enumerate(axes)) {
      if (list.empty() || present.test(factor) ||
          rule.factors[factor].reduction == FactorReduction::None)
        continue;
      dist::ReductionKind own = toKind(rule.factors[factor].reduction);
      if (kind && *kind != own)
        return op->emitOpError() << "would leave a value that is partly a sum and partly a maximum";
      kind = own;
      layout.partial.append(list);
    }
    llvm::sort(layout.partial);
    layout.partialKind = kind.value_or(dist::ReductionKind::Sum);
    layouts[result] = layout;
    dist::setSharding(result, toAttr(op->getContext(), mesh, layout));
  }
  for (auto [index, layout] : llvm::enumerate(required))
    op->setOperand(index, reshard(op->getOperand(index), layout, op));
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
    } else if (auto rule = dyn_cast<ShardingRuleOpInterface>(op)) {
      if (failed(visit(rule)))
        return failure();
    } else {
      return op.emitOpError() << "has no sharding rule; implement ShardingRuleOpInterface";
    }
  }
  return success();
}

namespace {
struct InsertReshardsPass : dtc::impl::InsertReshardsPassBase<InsertReshardsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(forEachFunction(getOperation(), [](func::FuncOp function, const Mesh &mesh) {
          return ReshardInserter(function, mesh).run();
        })))
      signalPassFailure();
  }
};
} // namespace
