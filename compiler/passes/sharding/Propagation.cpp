//===- Propagation.cpp - State of the propagation in a function -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/sharding/Propagation.h"

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/SignatureAttributes.h"
#include "dialects/dtc/ShardsAttribute.h"

#include "llvm/ADT/SmallBitVector.h"

#include <cmath>

using namespace mlir;
using namespace dtc;

Layout &Propagation::layoutOf(Value value) {
  auto it = layouts.find(value);
  if (it != layouts.end())
    return it->second;
  return layouts
      .try_emplace(value, Layout::replicated(cast<RankedTensorType>(value.getType()).getRank()))
      .first->second;
}

void Propagation::close(Value value) {
  closed[value].assign(cast<RankedTensorType>(value.getType()).getRank(), true);
}

void Propagation::append(Value value, unsigned dim, ArrayRef<unsigned> axes) {
  llvm::append_range(layoutOf(value).dims[dim], axes);
  enqueueAround(value);
}

void Propagation::add(Operation *op) {
  numbers[op] = ops.size();
  ops.push_back(op);
  enqueue(op);
}

//===----------------------------------------------------------------------===//
// Visiting ops
//===----------------------------------------------------------------------===//

void Propagation::enqueue(Operation *op) {
  auto it = numbers.find(op);
  if (it == numbers.end())
    return; // the return, or an op that is gone
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  if (!rule)
    return;
  worklist.insert({PassThrough, it->second});
}

void Propagation::enqueueAround(Value value) {
  if (Operation *definer = value.getDefiningOp())
    enqueue(definer);
  for (Operation *user : value.getUsers())
    enqueue(user);
}

std::vector<Value> Propagation::tensorsOf(Operation *op) const {
  std::vector<Value> values(op->operand_begin(), op->operand_end());
  values.insert(values.end(), op->result_begin(), op->result_end());
  return values;
}

/// Whether every tensor of the op that has a dimension has it through the op unchanged.
static bool passesThrough(const ShardingRule &rule) {
  return llvm::none_of(rule.factors, [](const Factor &factor) { return factor.reduction; });
}

/// Where a user finds a factor: "dimension 1 of result 0".
static std::string describeFactor(const ShardingRule &rule, unsigned factor) {
  auto find = [&](ArrayRef<TensorFactors> tensors, StringRef kind) -> std::string {
    for (auto [index, tensor] : llvm::enumerate(tensors))
      for (auto [dim, factors] : llvm::enumerate(tensor))
        if (llvm::is_contained(factors, factor))
          return ("dimension " + Twine(dim) + " of " + kind + " " + Twine(index)).str();
    return "";
  };
  std::string text = find(rule.results, "result");
  return text.empty() ? find(rule.operands, "operand") : text;
}

static void describeFactorAxes(Diagnostic &os, const LinkedMesh &mesh, const ShardingRule &rule,
                               const FactorAxes &axes) {
  bool first = true;
  for (auto [factor, list] : llvm::enumerate(axes)) {
    if (list.empty())
      continue;
    os << (first ? "" : ", ") << describeFactor(rule, factor) << " over " << mesh.str(list);
    first = false;
  }
  if (first)
    os << "nothing";
}

void Propagation::settle(Operation *op, const ShardingRule &rule, ArrayRef<FactorTensor> tensors,
                         FactorAxes &axes) {
  double flops = cast<ShardingRuleOpInterface>(op).getFlops();
  ConflictResolution choice = resolveFactorAxes(mesh, planner, rule, tensors, axes, flops);
  if (choice.axes != axes && std::isfinite(choice.seconds) &&
      std::isfinite(choice.runnerUpSeconds)) {
    auto remark = emitRemark(op->getLoc());
    Diagnostic &text = *remark.getUnderlyingDiagnostic();
    text << "'" << op->getName().getStringRef()
         << "' has tensors with contradicting shardings; split is ";
    describeFactorAxes(text, mesh, rule, choice.axes);
    text << " (" << choice.seconds * 1e6 << " us) rather than ";
    describeFactorAxes(text, mesh, rule, choice.runnerUp);
    text << " (" << choice.runnerUpSeconds * 1e6 << " us)";
  }
  axes = choice.axes;
}

void Propagation::visit(Operation *op, Level level) {
  const ShardingRule &rule = rules.of(cast<ShardingRuleOpInterface>(op));
  unsigned number = numbers.at(op);
  if (level == PassThrough && !passesThrough(rule)) {
    worklist.insert({Agreement, number});
    return;
  }
  std::vector<Value> values = tensorsOf(op);
  for (Value value : values)
    layoutOf(value); // the map must not grow while it is pointed into
  SmallVector<FactorTensor> tensors;
  for (auto [index, value] : llvm::enumerate(values)) {
    bool isResult = index >= rule.operands.size();
    auto type = cast<RankedTensorType>(value.getType());
    int64_t width = elementBytes(type);
    tensors.push_back(
        {isResult ? &rule.results[index - rule.operands.size()] : &rule.operands[index],
         &layoutOf(value), double(type.getNumElements()) * width, width, isResult});
    if (auto it = closed.find(value); it != closed.end())
      tensors.back().closed = it->second;
  }
  FactorAxes &axes = committed.try_emplace(op, FactorAxes(rule.factors.size())).first->second;
  if (level == Resolution) {
    settle(op, rule, tensors, axes);
  } else {
    FactorAgreement agreement = agreeOnFactorAxes(mesh, rule, tensors, axes);
    axes = agreement.axes;
    if (agreement.conflict)
      worklist.insert({Resolution, number});
  }
  for (auto [value, tensor] : llvm::zip_equal(values, tensors)) {
    auto it = closed.find(value);
    if (extendLayout(mesh, rule, *tensor.factors, axes, layoutOf(value),
                     it == closed.end() ? ArrayRef<bool>() : ArrayRef<bool>(it->second)))
      enqueueAround(value);
  }
}

void Propagation::visitAll() {
  while (!worklist.empty()) {
    auto [level, number] = *worklist.begin();
    worklist.erase(worklist.begin());
    if (Operation *op = ops[number])
      visit(op, Level(level));
  }
}

void Propagation::fixpoint() {
  do
    visitAll();
  while (decomposeSplitOps());
}

void Propagation::propagateTimeFirst() {
  std::optional<unsigned> temporalAxis = mesh.temporalAxis();
  auto mentionsTemporalAxis = [&](const auto &entry) {
    return temporalAxis && entry.second.mentions(*temporalAxis);
  };
  if (llvm::none_of(layouts, mentionsTemporalAxis))
    return;
  // Everything else steps aside, and comes back as it was.
  llvm::DenseMap<Value, Layout> seeds = layouts;
  llvm::DenseMap<Value, SmallVector<bool, 4>> closedBefore = closed;
  for (const auto &[value, layout] : seeds)
    if (!layout.mentions(*temporalAxis)) {
      layouts[value] = Layout::replicated(layout.dims.size());
      close(value);
    }
  visitAll();
  closed = closedBefore;
  for (const auto &[value, layout] : seeds)
    if (!layout.mentions(*temporalAxis)) {
      layouts[value] = layout;
      enqueueAround(value);
    }
}

/// Replaces the ops that would need a dimension whole that is now sharded by simpler ones, where
/// they have such a form.
bool Propagation::decomposeSplitOps() {
  SmallVector<std::pair<ShardingRuleOpInterface, int64_t>> split;
  for (auto op : function.front().getOps<ShardingRuleOpInterface>()) {
    const ShardingRule &rule = rules.of(op);
    // Axes that split the op by another dimension do not count: a norm of a batch shard gathers its
    // weight, where that is split over the same axis.
    llvm::SmallBitVector taken(mesh.axes.size());
    for (const AxisList &axes : committed.lookup(op))
      for (unsigned axis : axes)
        taken.set(axis);
    // Over how many shards.
    auto splitsWhole = [&](Value value, const TensorFactors &factors) -> int64_t {
      for (auto [dim, axes] : llvm::zip_equal(factors, layoutOf(value).dims)) {
        AxisList free = axes;
        llvm::erase_if(free, [&](unsigned axis) { return taken.test(axis); });
        for (unsigned factor : dim)
          if (rule.factors[factor].whole && mesh.product(free) > 1)
            return mesh.product(free);
      }
      return 1;
    };
    for (auto [operand, factors] : llvm::zip_equal(op->getOperands(), rule.operands))
      if (int64_t shards = splitsWhole(operand, factors); shards > 1) {
        split.push_back({op, shards});
        break;
      }
  }
  bool changed = false;
  for (auto [op, shards] : split) {
    Operation *before = op->getPrevNode();
    OpBuilder builder(op);
    op->setAttr(kShardsAttrName, builder.getI64IntegerAttr(shards));
    FailureOr<SmallVector<Value>> replacements = op.decompose(builder);
    op->removeAttr(kShardsAttrName);
    if (failed(replacements))
      continue;
    for (auto [from, to] : llvm::zip_equal(op->getResults(), *replacements)) {
      Layout layout = layoutOf(from); // a copy: the map grows
      layouts[to] = layout;
      layouts.erase(from);
      if (auto it = closed.find(from); it != closed.end()) {
        SmallVector<bool, 4> dims = it->second;
        closed.erase(it);
        closed[to] = dims;
      }
      from.replaceAllUsesWith(to);
      for (auto &[priority, list] : requests)
        for (ShardingRequest &request : list)
          if (request.value == from)
            request.value = to;
    }
    Operation *first = before ? before->getNextNode() : &function.front().front();
    for (Operation *fresh = first; fresh != op; fresh = fresh->getNextNode())
      add(fresh);
    for (Value value : *replacements)
      for (Operation *user : value.getUsers())
        enqueue(user);
    ops[numbers.at(op)] = nullptr;
    numbers.erase(op);
    committed.erase(op);
    rules.forget(op);
    op.erase();
    changed = true;
  }
  return changed;
}

/// Emits an error where an op needs a dimension whole that the user asked to be split right at its
/// operand: the whole of it would come to every device.
LogicalResult Propagation::checkWholeFactors() {
  for (auto op : function.front().getOps<ShardingRuleOpInterface>()) {
    const ShardingRule &rule = rules.of(op);
    for (auto [index, operand, factors] : llvm::enumerate(op->getOperands(), rule.operands)) {
      auto constrain = operand.getDefiningOp<dist::ConstrainOp>();
      if (!constrain || ownConstraints.contains(constrain))
        continue;
      for (auto [dim, axes] : llvm::enumerate(layoutOf(operand).dims)) {
        bool whole = factors[dim].empty() || llvm::any_of(factors[dim], [&](unsigned factor) {
                       return rule.factors[factor].whole;
                     });
        if (!whole || mesh.product(axes) == 1)
          continue;
        auto diagnostic = op->emitError()
                          << "'" << op->getName().getStringRef() << "' needs dimension " << dim
                          << " of its operand " << index
                          << " whole, but the operand is constrained to be split over "
                          << mesh.str(axes) << " there; constrain another dimension, or none";
        diagnostic.attachNote(constrain.getLoc())
            << "the constraint asks for " << layoutOf(operand).str(mesh);
        return failure();
      }
    }
  }
  return success();
}

LogicalResult Propagation::write() {
  if (failed(checkWholeFactors()))
    return failure();
  MLIRContext *context = function.getContext();
  Builder b(context);
  SignatureAttributes attributes(function);
  for (BlockArgument arg : function.getArguments())
    attributes.argument(arg.getArgNumber())
        .set(dist::kShardingAttrName, toAttr(context, mesh, layoutOf(arg)));
  attributes.commit();
  for (Operation &op : function.front()) {
    for (Value result : op.getResults())
      dist::setSharding(result, toAttr(context, mesh, layoutOf(result)));
    auto it = committed.find(&op);
    if (it == committed.end() || isa<dist::ConstrainOp>(op))
      continue;
    SmallVector<Attribute> factors;
    for (const AxisList &axes : it->second) {
      SmallVector<StringRef> names;
      for (unsigned axis : axes)
        names.push_back(mesh.axes[axis].name);
      factors.push_back(b.getStrArrayAttr(names));
    }
    op.setAttr(dist::kFactorsAttrName, b.getArrayAttr(factors));
  }
  return success();
}

LogicalResult Propagation::enterRequests() {
  if (failed(checkProgram(function, mesh.name)) || failed(seed()))
    return failure();
  for (Operation &op : function.front().without_terminator())
    add(&op);
  propagateTimeFirst();
  requests.try_emplace(0);
  for (const auto &[priority, list] : requests) {
    for (const ShardingRequest &request : list)
      enter(request);
    fixpoint();
  }
  return success();
}
