//===- DeviceRecompute.cpp - Recomputation on one device ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/recompute/DeviceRecompute.h"

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/analysis/LocalCost.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace dtc;

/// Keeping the result of such an op is keeping its operand.
static bool isView(Operation *op) { return op->hasTrait<dtc::OpTrait::IsView>(); }

int DeviceRecompute::valueIndex(Value value, int64_t stage) {
  for (Operation *view = value.getDefiningOp();
       view && isView(view) && isForward(view) && assignment.of(view).getIndex() == stage;
       view = value.getDefiningOp())
    value = view->getOperand(0);
  auto [it, fresh] = indexOf.try_emplace({value, stage}, int(problem.values.size()));
  if (!fresh)
    return it->second;
  RecomputeValue entry;
  // Values from outside the loop are there, values without a stage are made again anyway, and those
  // that the backward pass makes are not kept for it.
  Operation *definer = value.getDefiningOp();
  definer = definer ? body.findAncestorOpInBlock(*definer) : nullptr;
  dist::StageAttr made = definer ? assignment.of(definer) : dist::StageAttr();
  if (made && made.getPass() == StagePass::Forward)
    entry.bytes = llvm::alignTo(tensorBytes(value.getType()), 64) * inFlight[stage];
  problem.values.push_back(entry);
  return it->second;
}

void DeviceRecompute::buildProblem() {
  for (Operation *op : work) {
    dist::StageAttr stage = assignment.of(op);
    if (stage.getPass() == StagePass::Forward && isView(op))
      continue;
    RecomputeOp entry;
    for (Value operand : op->getOperands())
      entry.operands.push_back(valueIndex(operand, stage.getIndex()));
    if (stage.getPass() != StagePass::Forward) {
      for (int operand : entry.operands)
        problem.values[operand].usedBackward = true;
      continue;
    }
    for (Value result : op->getResults()) {
      entry.results.push_back(valueIndex(result, stage.getIndex()));
      problem.values[entry.results.back()].producer = int(ops.size());
    }
    entry.seconds = localSeconds(mesh, op);
    ops.push_back(op);
    problem.ops.push_back(std::move(entry));
  }
}

static double flopsOf(Operation *op) {
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  return rule ? rule.getFlops() : 0;
}

static double bytesOf(TypeRange types) {
  double bytes = 0;
  for (Type type : types)
    bytes += double(tensorBytes(type));
  return bytes;
}

/// Whether the op takes fewer than two floating point operations for each byte that it reads or
/// writes. Contractions take more.
static bool isLight(Operation *op) {
  return flopsOf(op) < 2 * (bytesOf(op->getOperandTypes()) + bytesOf(op->getResultTypes()));
}

/// Whether the value is made of parameters alone.
bool DeviceRecompute::isWeight(Value value) {
  auto [it, fresh] = weights.try_emplace(value, false);
  if (!fresh)
    return it->second;
  bool result = false;
  if (Operation *definer = value.getDefiningOp()) {
    result = llvm::all_of(definer->getOperands(), [&](Value operand) { return isWeight(operand); });
  } else if (auto function = dyn_cast<func::FuncOp>(value.getParentBlock()->getParentOp())) {
    unsigned index = cast<BlockArgument>(value).getArgNumber();
    result = bool(function.getArgAttr(index, DtcDialect::kParamAttrName));
  }
  return weights[value] = result; // the map may have grown
}

/// The floating point operations that a byte costs which the layers make by their weights: as many
/// as the model is wide, by and large.
double DeviceRecompute::findWeightFlopsPerByte() {
  double flops = 0, bytes = 0;
  for (Operation *op : ops) {
    if (isLight(op) ||
        llvm::none_of(op->getOperands(), [&](Value operand) { return isWeight(operand); }))
      continue;
    flops += flopsOf(op);
    bytes += bytesOf(op->getResultTypes());
  }
  return bytes > 0 ? flops / bytes : 0;
}

/// Whether the op is a contraction whose result is much larger than its operands, like the product
/// of queries and keys: it makes more bytes than it reads, and a byte costs less than a quarter of
/// one that a product with a weight makes.
static bool isInflating(Operation *op, double weightFlopsPerByte) {
  double bytes = bytesOf(op->getResultTypes());
  return !isa<dist::CollectiveOpInterface>(op) && !isLight(op) &&
         bytes > bytesOf(op->getOperandTypes()) && flopsOf(op) < bytes * weightFlopsPerByte / 4;
}

/// Whether the op makes a whole of an activation that each device has a part of.
bool DeviceRecompute::isGatheredActivation(Operation *op) {
  return isa<dist::AllGatherOp>(op) && !isWeight(op->getOperand(0));
}

/// Whether the op makes each element of its result of the same element of one operand, as an
/// activation function or a conversion does: it reads no more than is kept instead.
static bool isUnaryElementwise(Operation *op) {
  return isa<ConvertOp>(op) || (op->hasTrait<mlir::OpTrait::SameOperandsAndResultType>() &&
                                op->getNumOperands() == 1 && isLight(op) && !isa<SoftmaxOp>(op));
}

/// The ops that selective recomputation may recompute (Korthikanti et al. 2022): where contractions
/// have results much larger than their operands, these and the light ops up to the next
/// contraction, so that nothing of that size is kept (section 5); in other models light ops. In
/// both, gathers of activations that the device has a part of (section 4.2.2).
std::vector<bool> DeviceRecompute::findSelective() {
  double weightFlopsPerByte = findWeightFlopsPerByte();
  bool inflates =
      llvm::any_of(ops, [&](Operation *op) { return isInflating(op, weightFlopsPerByte); });
  llvm::DenseSet<Value> inflated;
  auto isInflated = [&](Value value) {
    while (Operation *view = value.getDefiningOp()) {
      if (!isView(view))
        break;
      value = view->getOperand(0);
    }
    return inflated.contains(value);
  };
  std::vector<bool> allowed;
  for (Operation *op : ops) {
    bool isAllowed = false;
    if (isa<dist::AllGatherOp>(op))
      isAllowed = isGatheredActivation(op);
    else if (!isa<dist::CollectiveOpInterface>(op) && isLight(op))
      isAllowed = !inflates || llvm::any_of(op->getOperands(), isInflated);
    else
      isAllowed = isInflating(op, weightFlopsPerByte);
    if (isAllowed && !isa<dist::AllGatherOp>(op))
      inflated.insert(op->result_begin(), op->result_end());
    allowed.push_back(isAllowed);
  }
  return allowed;
}

/// The ops that read the op's results, also as views.
static SmallVector<Operation *> readersOf(Operation *op) {
  SmallVector<Operation *> readers, worklist{op};
  while (!worklist.empty())
    for (Operation *user : worklist.pop_back_val()->getUsers())
      (isView(user) ? worklist : readers).push_back(user);
  return readers;
}

/// Segments are the layers that locations name. Where they name none, they are about as many as
/// each has ops that take time (Chen et al. 2016, section 4.1), cut where the fewest values cross.
void DeviceRecompute::findSegments() {
  auto layerOf = [](Operation *op) { return LayerName(nameOf(op->getLoc())); };
  if (llvm::any_of(ops, [&](Operation *op) { return !layerOf(op).prefix.empty(); })) {
    int segment = 0;
    for (auto [index, op] : llvm::enumerate(ops)) {
      segment += index > 0 && layerOf(op).layer() != layerOf(ops[index - 1]).layer();
      segmentOf[op] = segment;
    }
    return;
  }
  llvm::DenseMap<Operation *, size_t> numbers;
  for (auto [index, op] : llvm::enumerate(ops))
    numbers[op] = index;
  std::vector<int> change(ops.size() + 1, 0), crossing(ops.size(), 0);
  for (auto [index, op] : llvm::enumerate(ops)) {
    size_t last = index;
    for (Operation *user : readersOf(op))
      if (auto it = numbers.find(user); it != numbers.end())
        last = std::max(last, it->second);
    change[index + 1] += last > index;
    change[last + 1] -= last > index;
  }
  int sum = 0, fewest = std::numeric_limits<int>::max();
  for (size_t index = 0; index < ops.size(); ++index) {
    crossing[index] = sum += change[index];
    if (index > 0)
      fewest = std::min(fewest, sum);
  }
  auto takesTime = [&](size_t index) { return problem.ops[index].seconds > 0; };
  int all = 0, passed = 0, segment = 0;
  for (size_t index = 0; index < ops.size(); ++index)
    all += takesTime(index);
  int each = std::max(1, int(std::lround(std::sqrt(double(all)))));
  for (auto [index, op] : llvm::enumerate(ops)) {
    if (index > 0 && crossing[index] == fewest && passed >= each) {
      ++segment;
      passed = 0;
    }
    segmentOf[op] = segment;
    passed += takesTime(index);
  }
}

/// Whether a result of the op is used in the forward pass of another segment or stage.
bool DeviceRecompute::leavesSegment(Operation *op) const {
  return llvm::any_of(readersOf(op), [&](Operation *user) {
    auto it = segmentOf.find(user);
    return it != segmentOf.end() && it->second != segmentOf.lookup(op);
  });
}

RecomputeChoice DeviceRecompute::choose(RecomputeMode mode, int64_t keepBytes) {
  std::vector<bool> all(ops.size(), true);
  switch (mode) {
  case RecomputeMode::None:
    return evaluateRecompute(problem, std::vector<bool>(ops.size(), false));
  case RecomputeMode::Gathers:
    for (auto [index, op] : llvm::enumerate(ops))
      problem.ops[index].allowed = isGatheredActivation(op);
    return keepLeast(problem);
  case RecomputeMode::Elementwise:
    for (auto [index, op] : llvm::enumerate(ops))
      problem.ops[index].allowed = isGatheredActivation(op) || isUnaryElementwise(op);
    return keepLeast(problem);
  case RecomputeMode::Full:
    for (auto [index, op] : llvm::enumerate(ops))
      all[index] = !leavesSegment(op);
    return evaluateRecompute(problem, all);
  case RecomputeMode::Selective:
    for (auto [op, isAllowed] : llvm::zip_equal(problem.ops, findSelective()))
      op.allowed = isAllowed;
    return keepLeast(problem);
  case RecomputeMode::Auto:
    for (auto [index, op] : llvm::enumerate(ops))
      problem.ops[index].allowed = !leavesSegment(op);
    return chooseRecompute(problem, keepBytes);
  }
  llvm_unreachable("unknown mode");
}

double DeviceRecompute::forwardSeconds() const {
  double seconds = 0;
  for (const RecomputeOp &op : problem.ops)
    seconds += op.seconds;
  return seconds;
}

/// The value, recomputed if that was chosen, before `before`.
Value DeviceRecompute::recomputed(Value value, int64_t stage, Operation *before) {
  Operation *definer = value.getDefiningOp();
  if (!definer || !isForward(definer) || assignment.of(definer).getIndex() != stage)
    return value;
  if (!isView(definer) && !again.contains(definer))
    return value;
  if (Value clone = clones.lookup(value))
    return clone;
  IRMapping map;
  for (Value operand : definer->getOperands())
    map.map(operand, recomputed(operand, stage, before));
  // A view of a kept value stays.
  if (isView(definer) && map.lookup(definer->getOperand(0)) == definer->getOperand(0))
    return value;
  OpBuilder builder(before);
  Operation *clone = builder.clone(*definer, map);
  clone->setAttr(dist::kStageAttrName,
                 dist::StageAttr::get(before->getContext(), stage, StagePass::Backward));
  for (auto [from, to] : llvm::zip_equal(definer->getResults(), clone->getResults()))
    clones[from] = to;
  return clones.lookup(value);
}

void DeviceRecompute::apply(const RecomputeChoice &choice) {
  for (auto [index, op] : llvm::enumerate(ops))
    if (choice.recompute[index])
      again.insert(op);
  // Just before the first op that needs it: so little is there at once.
  for (Operation *op : work) {
    dist::StageAttr stage = assignment.of(op);
    if (stage.getPass() == StagePass::Forward)
      continue;
    for (OpOperand &operand : op->getOpOperands())
      operand.set(recomputed(operand.get(), stage.getIndex(), op));
  }
}
