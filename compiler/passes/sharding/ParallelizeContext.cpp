//===- ParallelizeContext.cpp - Split attention along the sequence --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Everything outside of attention works on a part of a sequence as on a whole one. In attention
// either the keys and values are gathered, and each device has queries of its own, or they go round
// (Liu et al., "Ring Attention", arXiv:2310.01889), or heads are split instead of the sequence
// (Jacobs et al., "DeepSpeed Ulysses", arXiv:2309.14509). Nested, groups of neighbours split heads
// and exchange keys and values between the groups (Fang and Zhao, "USP: A Unified Sequence
// Parallelism Approach for Long Context Generative AI", arXiv:2405.07719). The last queries of a
// causal sequence see more keys than the first, so that devices with contiguous parts of queries
// would wait for the last one; in zigzag order all have the same to do.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DimensionClasses.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/sharding/LogicalAxes.h"
#include "compiler/passes/sharding/RuleCache.h"

#include "dialects/dtc/DtcOps.h"

#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <limits>
#include <set>

namespace dtc {
#define GEN_PASS_DEF_PARALLELIZECONTEXTPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// The dimension of the queries in q and out, and of the keys in k and v.
constexpr unsigned kSequenceDim = 1, kHeadDim = 2;

/// The FLOPs of the gradient of attention for one of attention: five products for two.
constexpr double kGradientFlops = 2.5;

/// Puts the sequences of a function into zigzag order.
class ZigzagOrder {
public:
  ZigzagOrder(func::FuncOp function, AttentionOp attention, int64_t parts)
      : function(function), classes(function), sequence(attention.getQ()), parts(parts) {}

  /// Why it cannot be: nothing is changed then.
  std::optional<std::string> findObstacle();
  void apply();

private:
  bool isSequence(Value value, unsigned dim) {
    return classes.areTogether(value, dim, sequence, kSequenceDim);
  }
  std::optional<std::string> findObstacle(Operation *op);
  /// The dimension of the value that is the sequence.
  std::optional<unsigned> dimOf(Value value);
  Value order(OpBuilder &builder, Location loc, Value value, unsigned dim, bool inverse) {
    return ZigzagOp::create(builder, loc, value, int64_t(dim), parts, inverse);
  }
  void orderSource(OpBuilder &builder, Value value, unsigned dim);
  void orderOperand(OpBuilder &builder, OpOperand &operand, unsigned dim);

  func::FuncOp function;
  DimensionClasses classes;
  Value sequence; ///< its dimension kSequenceDim is one of the sequence's
  int64_t parts;
  RuleCache rules;
  llvm::MapVector<Value, unsigned> sources; ///< are not made from values in zigzag order
};

} // namespace

std::optional<unsigned> ZigzagOrder::dimOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  for (unsigned dim = 0; type && dim < type.getRank(); ++dim)
    if (isSequence(value, dim))
      return dim;
  return std::nullopt;
}

/// Whether op is a constant all of whose elements are equal.
static bool isSplat(Operation *op) {
  auto constant = dyn_cast_or_null<ConstantOp>(op);
  return constant && constant.getValue().isSplat();
}

std::optional<std::string> ZigzagOrder::findObstacle(Operation *op) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface)
    return std::nullopt;
  const ShardingRule &rule = rules.of(interface);
  auto attention = dyn_cast<AttentionOp>(op);
  bool isInSequence = false;
  // A dimension that is a product is of the class of its first factor.
  std::set<unsigned> positions;
  for (auto [value, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (factors.size() == 1 && isSequence(value, unsigned(dim)))
        positions.insert(factors.front());
  for (const auto *tensors : {&rule.operands, &rule.results})
    for (const TensorFactors &dims : *tensors)
      for (const auto &factors : dims)
        if (factors.size() > 1 &&
            llvm::any_of(factors, [&](unsigned factor) { return positions.count(factor) > 0; }))
          return "merges positions with another dimension";
  auto visit = [&](ValueRange values, ArrayRef<TensorFactors> tensors,
                   bool areOperands) -> std::optional<std::string> {
    for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(values, tensors))) {
      auto [value, dims] = pair;
      std::optional<unsigned> found;
      for (auto [dim, factors] : llvm::enumerate(dims)) {
        if (!isSequence(value, unsigned(dim)))
          continue;
        if (found)
          return "has the sequence twice in a value";
        found = unsigned(dim);
        if (factors.size() != 1)
          return "merges positions with another dimension";
        bool isWhole = rule.factors[factors.front()].whole;
        if (areOperands) {
          isInSequence = true;
          bool isKey = attention && index != 0 && isWhole;
          if (isWhole && !isKey)
            return "needs the positions of a sequence in their order";
        } else if (isWhole || !isInSequence) {
          if (isInSequence)
            return "needs the positions of a sequence in their order";
          if (!isSplat(op) && !isa<BroadcastOp>(op))
            sources[value] = *found;
        }
      }
    }
    return std::nullopt;
  };
  if (auto reason = visit(op->getOperands(), rule.operands, /*areOperands=*/true))
    return reason;
  if (auto reason = visit(op->getResults(), rule.results, /*areOperands=*/false))
    return reason;
  for (auto [operand, factor] : rule.indexedFactors)
    for (auto [value, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
      for (auto [dim, factors] : llvm::enumerate(dims))
        if (llvm::is_contained(factors, factor) && isSequence(value, unsigned(dim)))
          return "looks positions of a sequence up by their numbers";
  for (auto [operand, dim] : rule.randomDims)
    if (isSequence(op->getOperand(operand), dim))
      return "drops elements by their positions";
  return std::nullopt;
}

std::optional<std::string> ZigzagOrder::findObstacle() {
  for (BlockArgument argument : function.getArguments())
    if (std::optional<unsigned> dim = dimOf(argument))
      sources[argument] = *dim;
  for (Operation &op : function.front().without_terminator())
    if (auto reason = findObstacle(&op))
      return (op.getName().getStringRef() + " " + *reason).str();
  for (Value result : function.front().getTerminator()->getOperands())
    if (dimOf(result))
      return std::string("a result of the function has the positions of a sequence");
  return std::nullopt;
}

/// Moves the logical axis of a dimension from an argument to the op that puts it in order: each
/// device has the argument as a whole, and takes its part of the ordered tensor.
static void moveAxis(func::FuncOp function, BlockArgument argument, Operation *op, unsigned dim) {
  unsigned number = argument.getArgNumber();
  auto names = function.getArgAttrOfType<ArrayAttr>(number, DtcDialect::kAxesAttrName);
  if (!names)
    return;
  op->setDiscardableAttr(DtcDialect::kAxesAttrName, names);
  SmallVector<Attribute> rest(names.getValue());
  rest[dim] = StringAttr::get(function.getContext(), "");
  function.setArgAttr(number, DtcDialect::kAxesAttrName,
                      ArrayAttr::get(function.getContext(), rest));
}

void ZigzagOrder::orderSource(OpBuilder &builder, Value value, unsigned dim) {
  builder.setInsertionPointAfterValue(value);
  Value ordered = order(builder, value.getLoc(), value, dim, /*inverse=*/false);
  value.replaceAllUsesExcept(ordered, ordered.getDefiningOp());
  if (auto argument = dyn_cast<BlockArgument>(value))
    moveAxis(function, argument, ordered.getDefiningOp(), dim);
}

void ZigzagOrder::orderOperand(OpBuilder &builder, OpOperand &operand, unsigned dim) {
  builder.setInsertionPoint(operand.getOwner());
  operand.set(order(builder, operand.getOwner()->getLoc(), operand.get(), dim, /*inverse=*/true));
}

void ZigzagOrder::apply() {
  OpBuilder builder(function.getContext());
  SmallVector<AttentionOp> attentions;
  function.walk([&](Operation *op) {
    if (auto attention = dyn_cast<AttentionOp>(op)) {
      attentions.push_back(attention);
    } else if (auto rotary = dyn_cast<RotaryOp>(op)) {
      if (isSequence(rotary.getOperand(), kSequenceDim) && rules.of(rotary).sequenceFactor)
        rotary.setZigzag(parts);
    }
  });
  for (AttentionOp attention : attentions) {
    if (isSequence(attention.getQ(), kSequenceDim))
      attention.setZigzag(parts);
    for (OpOperand *operand : {&attention.getKMutable(), &attention.getVMutable()})
      if (isSequence(operand->get(), kSequenceDim) && !attention.getKeyShift())
        orderOperand(builder, *operand, kSequenceDim);
    if (Value segments = attention.getSegments(); segments && isSequence(segments, 1))
      orderOperand(builder, *attention.getSegmentsMutable().begin(), 1);
  }
  for (auto [value, dim] : sources)
    orderSource(builder, value, dim);
}

namespace {

enum class Exchange { AllGather, AllToAll, Ring };

class ParallelizeContextPass
    : public dtc::impl::ParallelizeContextPassBase<ParallelizeContextPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    if (failed(forEachFunction(getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) {
          return run(function, mesh);
        })))
      signalPassFailure();
  }

private:
  /// The axes that attention is split over.
  struct Split {
    AxisList batch, heads;
    AxisList groups;  ///< of devices that split heads, between which keys and values are exchanged
    AxisList members; ///< of a group; none where attention is not nested
  };
  LogicalResult run(func::FuncOp function, const LinkedMesh &mesh);
  /// Takes the members of a group from the axes of the groups.
  LogicalResult nest(func::FuncOp function, const LinkedMesh &mesh, Split &split);
  /// Fails where a form was asked for that cannot be.
  FailureOr<Exchange> choose(AttentionOp op, const LinkedMesh &mesh, const Split &split);
  /// Has `devices` split heads instead of the sequence. `rest` split the sequence all the same:
  /// that of the queries, and in a ring that of keys and values.
  void splitHeads(AttentionOp op, const LinkedMesh &mesh, const Split &split, const AxisList &rest,
                  const AxisList &devices, bool isRing);
};

} // namespace

FailureOr<Exchange> ParallelizeContextPass::choose(AttentionOp op, const LinkedMesh &mesh,
                                                   const Split &split) {
  bool isNested = !split.members.empty();
  int64_t parts = mesh.product(split.groups);
  int64_t tensor = mesh.product(split.heads) * mesh.product(split.members);
  RankedTensorType q = op.getQ().getType(), k = op.getK().getType();
  int64_t query = q.getDimSize(kHeadDim), key = k.getDimSize(kHeadDim);
  bool divides = query % (parts * tensor) == 0 && key % (parts * tensor) == 0;
  if (isNested && (query % tensor != 0 || key % tensor != 0))
    return op.emitError() << "groups of " << headDevices.getValue() << " devices along " << axis
                          << " split heads, and " << tensor << " devices do not divide the "
                          << query << " heads and " << key
                          << " key-value heads; use smaller groups: --context-heads";
  // Masks of dropout are over all keys in order, and a ring is of one sequence.
  bool goesRound = op.getDropout() == 0 && q.getDimSize(kSequenceDim) == k.getDimSize(kSequenceDim);
  if (exchange == "all-gather")
    return Exchange::AllGather;
  if (exchange == "all-to-all") {
    if (divides)
      return Exchange::AllToAll;
    return op.emitError() << "context parallelism by all-to-all splits heads over " << axis
                          << ", and " << parts * tensor << " devices do not divide the " << query
                          << " heads and " << key
                          << " key-value heads; use fewer, or gather keys and values: "
                             "--context-exchange all-gather";
  }
  if (exchange == "ring") {
    if (goesRound)
      return Exchange::Ring;
    return op.emitError() << "context parallelism by a ring has each query see shards of keys one "
                             "after the other, and here there is "
                          << (op.getDropout() != 0 ? "dropout, whose mask is over all keys"
                                                   : "another number of keys than of queries")
                          << "; gather keys and values: --context-exchange all-gather";
  }
  // Seconds that a device waits in both passes: for the keys and values of all others and then for
  // their gradients; for its share of queries, keys, values and results from each, twice; or for
  // what a step round takes longer than the work on a shard, backward with the gradients, which at
  // last go home.
  double position = double(q.getDimSize(0)) * double(q.getDimSize(kSequenceDim)) / double(parts) *
                    double(q.getDimSize(3)) * double(elementBytes(q)) / double(tensor);
  double bandwidth = std::numeric_limits<double>::infinity(), latency = 0;
  for (unsigned each : split.groups) {
    bandwidth = std::min(bandwidth, mesh.axes[each].bandwidth);
    latency = std::max(latency, mesh.axes[each].latency);
  }
  double others = double(parts - 1), shard = 2 * double(key) * position / bandwidth;
  double gather = 2 * others * (shard + latency);
  double swap =
      2 * others * (2 * double(query + key) * position / double(parts) / bandwidth + latency);
  double tile = op.getFlops() / double(parts * parts * tensor) / mesh.deviceFlops;
  double ring = others * (std::max(shard + latency - tile, 0.0) +
                          std::max(2 * shard + latency - kGradientFlops * tile, 0.0)) +
                shard + latency;
  bool canSwap = divides && !isNested;
  if (goesRound && ring < gather && (!canSwap || ring < swap))
    return Exchange::Ring;
  return canSwap && swap < gather ? Exchange::AllToAll : Exchange::AllGather;
}

void ParallelizeContextPass::splitHeads(AttentionOp op, const LinkedMesh &mesh, const Split &split,
                                        const AxisList &rest, const AxisList &devices,
                                        bool isRing) {
  OpBuilder builder(op);
  auto symbol = FlatSymbolRefAttr::get(builder.getContext(), mesh.name);
  auto names = [&](const AxisList &list) {
    SmallVector<StringRef> all;
    for (unsigned axis : list)
      all.push_back(mesh.axes[axis].name);
    return builder.getStrArrayAttr(all);
  };
  AxisList context = rest, all = split.heads;
  llvm::append_range(context, devices);
  llvm::append_range(all, devices);
  ArrayAttr none = builder.getArrayAttr({});
  auto sharding = [&](ArrayAttr sequence, ArrayAttr heads) {
    return dist::ShardingAttr::get(
        builder.getContext(), symbol,
        builder.getArrayAttr({names(split.batch), sequence, heads, none}), ReductionKind::Sum, none,
        {true, false, false, false}, ArrayRef<int64_t>());
  };
  dist::ShardingAttr byHead = sharding(names(rest), names(all));
  dist::ShardingAttr keysByHead = isRing ? byHead : sharding(none, names(all));
  dist::ShardingAttr byPosition = sharding(names(context), names(split.heads));
  auto constrain = [&](Value value, dist::ShardingAttr to) -> Value {
    return dist::ConstrainOp::create(builder, op.getLoc(), value.getType(), value, to);
  };
  // Both sides of an exchange are fixed, so that nothing else is done in the other's layout.
  for (OpOperand *operand : {&op.getQMutable(), &op.getKMutable(), &op.getVMutable()}) {
    bool isQuery = operand == &op.getQMutable();
    operand->set(constrain(constrain(operand->get(), byPosition), isQuery ? byHead : keysByHead));
  }
  builder.setInsertionPointAfter(op);
  Value own = constrain(op.getOut(), byHead), back = constrain(own, byPosition);
  op.getOut().replaceAllUsesExcept(back, own.getDefiningOp());
}

/// The dimensions with logical axes that `context` splits.
static SmallVector<std::pair<Value, unsigned>>
findSplit(func::FuncOp function, const LogicalAxisMap &map, const AxisList &context) {
  SmallVector<std::pair<Value, unsigned>> found;
  auto add = [&](Value value, ArrayAttr names) {
    if (!names || !isa<RankedTensorType>(value.getType()))
      return;
    for (auto [dim, name] : llvm::enumerate(names.getAsRange<StringAttr>()))
      if (auto it = map.find(name.getValue()); it != map.end())
        if (llvm::any_of(it->second.axes,
                         [&](unsigned axis) { return llvm::is_contained(context, axis); }))
          found.emplace_back(value, unsigned(dim));
  };
  for (BlockArgument argument : function.getArguments())
    add(argument,
        function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), DtcDialect::kAxesAttrName));
  for (Operation &op : function.front())
    if (op.getNumResults() == 1)
      add(op.getResult(0), op.getAttrOfType<ArrayAttr>(DtcDialect::kAxesAttrName));
  return found;
}

LogicalResult ParallelizeContextPass::nest(func::FuncOp function, const LinkedMesh &mesh,
                                           Split &split) {
  while (mesh.product(split.members) < headDevices && !split.groups.empty())
    split.members.insert(split.members.begin(), split.groups.pop_back_val());
  if (mesh.product(split.members) == headDevices && !split.groups.empty())
    return success();
  return function.emitError() << "head-devices is " << headDevices.getValue()
                              << ", expected the devices along the last sub-axes of " << axis
                              << ", but not along all of them";
}

LogicalResult ParallelizeContextPass::run(func::FuncOp function, const LinkedMesh &mesh) {
  AxisList context = mesh.findAll(axis);
  int64_t parts = mesh.product(context);
  if (parts <= 1)
    return success();
  LogicalAxisMap map;
  std::vector<std::string> asked(shard.begin(), shard.end()),
      defaults(defaultShard.begin(), defaultShard.end());
  Location at = FileLineColLoc::get(&getContext(), "<command line>", 1, 1);
  if (failed(parseLogicalAxes(at, mesh, asked, /*asked=*/true, map)) ||
      failed(parseLogicalAxes(at, mesh, defaults, /*asked=*/false, map)) ||
      failed(completeBatch(getOperation(), at, mesh, batchAxes, map)))
    return failure();
  Split split;
  split.groups = context;
  if (headDevices > 1 && failed(nest(function, mesh, split)))
    return failure();
  if (map.contains("heads"))
    split.heads = map["heads"].axes;
  for (auto &entry : map)
    if (entry.second.isBatch)
      split.batch = entry.second.axes;
  // In attention, an axis that splits sequences splits nothing else.
  for (AxisList *list : {&split.heads, &split.batch})
    llvm::erase_if(*list, [&](unsigned each) { return llvm::is_contained(context, each); });
  SmallVector<std::pair<Value, unsigned>> sequences = findSplit(function, map, context);
  DimensionClasses classes(function);
  auto attentions = llvm::to_vector(function.getOps<AttentionOp>());
  llvm::erase_if(attentions, [&](AttentionOp op) {
    return llvm::none_of(sequences, [&](const auto &found) {
      return classes.areTogether(op.getQ(), kSequenceDim, found.first, found.second);
    });
  });
  SmallVector<AttentionOp> byPosition; // causal ones whose queries are split
  for (AttentionOp op : attentions) {
    FailureOr<Exchange> form = choose(op, mesh, split);
    if (failed(form))
      return failure();
    if (*form == Exchange::AllToAll)
      splitHeads(op, mesh, split, {}, context, /*isRing=*/false);
    else if (!split.members.empty())
      splitHeads(op, mesh, split, split.groups, split.members, *form == Exchange::Ring);
    if (*form == Exchange::Ring)
      op.setKeyShift(0);
    // With a window alone, all queries but the first see as many keys, and neighbours are enough.
    if (*form != Exchange::AllToAll && op.getCausal() && !op.getWindow())
      byPosition.push_back(op);
  }
  if (byPosition.empty() || !zigzag)
    return success();
  parts = mesh.product(split.groups);
  std::optional<std::string> obstacle;
  int64_t size = byPosition.front().getQ().getType().getDimSize(kSequenceDim);
  ZigzagOrder order(function, byPosition.front(), parts);
  if (size % (2 * parts) != 0)
    obstacle =
        std::to_string(2 * parts) + " chunks do not divide " + std::to_string(size) + " positions";
  else
    obstacle = order.findObstacle();
  if (!obstacle) {
    order.apply();
    return success();
  }
  emitRemark(byPosition.front().getLoc())
      << "the devices of " << axis << " do not have the same to do: queries stay in the order of "
      << "their sequence, and the last ones see most keys, as " << *obstacle;
  return success();
}
