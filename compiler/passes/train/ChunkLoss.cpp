//===- ChunkLoss.cpp - Losses of chunks of tokens -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The logits of all tokens are the largest tensor of many models. A loss that is a sum over tokens
// is the sum of the losses of chunks of them, and if each chunk's gradients directly follow its
// loss, the logits of one chunk exist at a time. After Hsu et al., "Liger Kernel"
// (arXiv:2410.10989), section 3.2, and Wijmans et al., "Cut Your Losses" (arXiv:2411.09009).
//
// A chunk of an op is like a shard of it: the sharding rule says which dimensions of its
// tensors are the tokens.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "dialects/dtc/LossChunkAttribute.h"

#include "llvm/ADT/MapVector.h"

namespace dtc {
#define GEN_PASS_DEF_CHUNKLOSSPASS
#define GEN_PASS_DEF_DELAYLOSSCHUNKSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static void mark(Operation *op) {
  op->setAttr(kLossChunkAttrName, UnitAttr::get(op->getContext()));
}

//===----------------------------------------------------------------------===//
// ChunkLossPass
//===----------------------------------------------------------------------===//

namespace {

/// Divides the operands of a cross-entropy, and the values computed from it, into chunks of
/// tokens. The tokens are the last dimension of the labels.
class LossChunker {
public:
  LossChunker(CrossEntropyOp entropy, int64_t chunks)
      : entropy(entropy), chunks(chunks), block(entropy->getBlock()) {}

  LogicalResult run() {
    if (failed(checkTokens()) || failed(collectLogits()) || failed(collectSums()) ||
        failed(moveOthers()))
      return failure();
    emit();
    return success();
  }

private:
  /// An op that is cloned for each chunk: its sharding rule, and the factor of the tokens in it.
  struct Part {
    ShardingRule rule;
    unsigned tokens;
  };

  /// The dimension that is the factor alone; none if the tensor lacks the factor.
  static std::optional<unsigned> dimOf(const TensorFactors &dims, unsigned factor) {
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (factors.size() == 1 && factors.front() == factor)
        return dim;
    return std::nullopt;
  }

  LogicalResult checkTokens();
  LogicalResult addPart(Operation *op, const TensorFactors &dims, ShardingRule rule, unsigned dim);
  LogicalResult collectLogits();
  LogicalResult collectSums();
  LogicalResult moveOthers();
  void emit();
  Value chunkOf(OpBuilder &builder, Location loc, Value value, unsigned dim, int64_t chunk);

  CrossEntropyOp entropy;
  int64_t chunks;
  Block *block;
  llvm::MapVector<Operation *, Part> parts;
  /// Results of parts that are sums over tokens, in the order of the users that were found.
  llvm::SetVector<Value> sums;
  /// [.., n, ..] as [.., n / chunks, chunks, ..], by tensor and dimension.
  llvm::DenseMap<std::pair<Value, unsigned>, Value> interleaved;
};

} // namespace

LogicalResult LossChunker::checkTokens() {
  RankedTensorType labels = typeOf(entropy.getLabels());
  if (labels.getRank() > 0 && labels.getShape().back() % chunks == 0)
    return success();
  return entropy.emitOpError() << "is to be computed in " << chunks
                               << " chunks of tokens, but its labels have type " << labels
                               << ", expected a last dimension that " << chunks
                               << " divides; choose another number of chunks (--loss-chunks)";
}

/// Adds the op to the parts. `dims` are the factors of one of its tensors, whose dimension `dim`
/// holds the tokens.
LogicalResult LossChunker::addPart(Operation *op, const TensorFactors &dims, ShardingRule rule,
                                   unsigned dim) {
  auto refuse = [&](const Twine &why) {
    return op->emitOpError()
           << why
           << ", so that the loss cannot be computed in chunks of tokens; compile "
              "without --loss-chunks";
  };
  if (dims[dim].size() != 1)
    return refuse("has tokens in one dimension with something else");
  unsigned tokens = dims[dim].front();
  auto isMerged = [&](const TensorFactors &tensor) {
    return llvm::any_of(tensor, [&](const auto &list) {
      return list.size() > 1 && llvm::is_contained(list, tokens);
    });
  };
  if (llvm::any_of(rule.operands, isMerged) || llvm::any_of(rule.results, isMerged))
    return refuse("has tokens in one dimension with something else");
  bool isIndexed =
      llvm::any_of(rule.indexedFactors, [&](const auto &entry) { return entry.factor == tokens; });
  const Factor &factor = rule.factors[tokens];
  if (factor.whole || isIndexed || !rule.randomDims.empty() || rule.sequenceFactor == tokens ||
      (factor.reduction && factor.reduction != ReductionKind::Sum))
    return refuse("needs all tokens together");
  auto [it, isNew] = parts.try_emplace(op, Part{std::move(rule), tokens});
  if (!isNew && it->second.tokens != tokens)
    return refuse("has tokens in two dimensions");
  return success();
}

/// Finds what is as large as the logits, and the products that make it of something smaller.
LogicalResult LossChunker::collectLogits() {
  int64_t size = typeOf(entropy.getLogits()).getNumElements();
  unsigned last = typeOf(entropy.getLabels()).getRank() - 1;
  ShardingRule ofEntropy = entropy.getShardingRule();
  if (failed(addPart(entropy, ofEntropy.operands[0], ofEntropy, last)))
    return failure();
  bool hasProduct = false;
  SmallVector<std::pair<Value, unsigned>> worklist{{entropy.getLogits(), last}};
  while (!worklist.empty()) {
    auto [value, dim] = worklist.pop_back_val();
    auto op = value.getDefiningOp<ShardingRuleOpInterface>();
    if (!op || typeOf(value).getNumElements() < size || parts.contains(op))
      continue;
    ShardingRule rule = op.getShardingRule();
    unsigned number = cast<OpResult>(value).getResultNumber();
    if (failed(addPart(op, rule.results[number], rule, dim)))
      return failure();
    if (isa<EinsumOp>(op)) {
      hasProduct = true;
      continue;
    }
    const Part &part = parts.find(op)->second;
    for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), part.rule.operands))
      if (std::optional<unsigned> tokens = dimOf(dims, part.tokens))
        worklist.push_back({operand, *tokens});
  }
  if (hasProduct)
    return success();
  return entropy.emitOpError() << "has logits that no dtc.einsum computes, expected a product of "
                                  "smaller tensors, which is then computed for chunks of tokens; "
                                  "compile without --loss-chunks";
}

/// Finds what is computed from values with tokens, up to sums over them.
LogicalResult LossChunker::collectSums() {
  SmallVector<Value> worklist;
  auto addResults = [&](Operation *op) {
    const Part &part = parts.find(op)->second;
    for (auto [result, dims] : llvm::zip_equal(op->getResults(), part.rule.results))
      if (dimOf(dims, part.tokens))
        worklist.push_back(result);
      else
        sums.insert(result);
  };
  for (Operation *op : llvm::to_vector(llvm::make_first_range(parts)))
    addResults(op);
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *definer = value.getDefiningOp();
    const Part &part = parts.find(definer)->second;
    unsigned number = cast<OpResult>(value).getResultNumber();
    unsigned dim = *dimOf(part.rule.results[number], part.tokens);
    for (OpOperand &use : value.getUses()) {
      auto user = dyn_cast<ShardingRuleOpInterface>(use.getOwner());
      if (!user)
        return definer->emitOpError()
               << "has a result for each token that the function returns, so that the loss cannot "
                  "be computed in chunks of tokens; compile without --loss-chunks";
      bool isKnown = parts.contains(user);
      ShardingRule rule = user.getShardingRule();
      if (failed(addPart(user, rule.operands[use.getOperandNumber()], rule, dim)))
        return failure();
      if (!isKnown)
        addResults(user);
    }
  }
  return success();
}

/// Moves what does not depend on the parts before the first of them, so that the chunks can take
/// its place.
LogicalResult LossChunker::moveOthers() {
  Operation *first = parts.begin()->first;
  for (Operation *op : llvm::make_first_range(parts))
    if (op->isBeforeInBlock(first))
      first = op;
  llvm::DenseSet<Operation *> dependent;
  for (Operation &op : llvm::make_early_inc_range(
           llvm::make_range(first->getIterator(), block->without_terminator().end()))) {
    bool depends = llvm::any_of(op.getOperands(), [&](Value operand) {
      Operation *definer = operand.getDefiningOp();
      return definer && (parts.contains(definer) || dependent.contains(definer));
    });
    auto part = parts.find(&op);
    if (part == parts.end()) {
      if (depends)
        dependent.insert(&op);
      else
        op.moveBefore(first);
      continue;
    }
    for (Value operand : op.getOperands())
      if (dependent.contains(operand.getDefiningOp()) || sums.contains(operand))
        return op.emitOpError() << "needs a sum over all tokens, so that the loss cannot be "
                                   "computed in chunks of tokens; compile without --loss-chunks";
  }
  return success();
}

/// Chunk i has the tokens i, i + chunks, i + 2 chunks, ..., so that axes may split the dimension.
Value LossChunker::chunkOf(OpBuilder &builder, Location loc, Value value, unsigned dim,
                           int64_t chunk) {
  RankedTensorType type = typeOf(value);
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= chunks;
  RankedTensorType result = type.clone(shape);
  shape.insert(shape.begin() + dim + 1, chunks);
  Value &all = interleaved[{value, dim}];
  if (!all)
    all = ReshapeOp::create(builder, loc, type.clone(shape), value);
  SmallVector<int64_t> offsets(shape.size());
  offsets[dim + 1] = chunk;
  shape[dim + 1] = 1;
  auto slice = SliceOp::create(builder, loc, all, offsets, shape);
  auto reshape = ReshapeOp::create(builder, loc, result, slice);
  mark(slice);
  mark(reshape);
  return reshape;
}

void LossChunker::emit() {
  SmallVector<Operation *> order = llvm::to_vector(llvm::make_first_range(parts));
  llvm::sort(order, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  OpBuilder builder(order.front());
  llvm::DenseMap<Value, Value> totals;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    llvm::DenseMap<Value, Value> locals;
    for (Operation *op : order) {
      const Part &part = parts.find(op)->second;
      SmallVector<Value> operands;
      for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), part.rule.operands)) {
        Value local = locals.lookup(operand);
        std::optional<unsigned> dim = dimOf(dims, part.tokens);
        if (!local && dim)
          local = locals[operand] = chunkOf(builder, op->getLoc(), operand, *dim, chunk);
        operands.push_back(local && dim ? local : operand);
      }
      SmallVector<Type> types;
      for (auto [result, dims] : llvm::zip_equal(op->getResults(), part.rule.results)) {
        SmallVector<int64_t> shape(typeOf(result).getShape());
        if (std::optional<unsigned> dim = dimOf(dims, part.tokens))
          shape[*dim] /= chunks;
        types.push_back(typeOf(result).clone(shape));
      }
      Operation *local = cast<ShardingRuleOpInterface>(op).buildLocal(builder, operands, types);
      mark(local);
      for (auto [from, to] : llvm::zip_equal(op->getResults(), local->getResults())) {
        if (!sums.contains(from)) {
          locals[from] = to;
          continue;
        }
        Value &total = totals[from];
        total = total ? Value(AddOp::create(builder, op->getLoc(), total, to)) : Value(to);
        mark(total.getDefiningOp());
      }
    }
  }
  for (Value sum : sums) {
    Value total = totals.lookup(sum);
    sum.replaceAllUsesWith(total);
    SmallVector<Operation *> users(total.getUsers());
    while (!users.empty()) {
      Operation *user = users.pop_back_val();
      if (user->hasTrait<mlir::OpTrait::IsTerminator>() || user->hasAttr(kLossChunkAttrName))
        continue;
      mark(user);
      llvm::append_range(users, user->getUsers());
    }
  }
  for (Operation *op : llvm::reverse(order))
    op->erase();
}

namespace {
struct ChunkLossPass : dtc::impl::ChunkLossPassBase<ChunkLossPass> {
  using Base::Base;

  void runOnOperation() override {
    if (chunks < 2)
      return;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      auto losses = llvm::to_vector(function.front().getOps<CrossEntropyOp>());
      if (losses.empty()) {
        function.emitOpError()
            << "has no dtc.cross_entropy, which is what is computed in chunks of "
               "tokens; compile without --loss-chunks";
        return signalPassFailure();
      }
      for (CrossEntropyOp loss : losses)
        if (failed(LossChunker(loss, chunks).run()))
          return signalPassFailure();
    }
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// DelayLossChunksPass
//===----------------------------------------------------------------------===//

/// Moves marked ops, and ops that use them before the first gradient of a loss, to where
/// they are first used.
static void delayChunks(Block &block) {
  auto grads = block.getOps<CrossEntropyGradOp>();
  SmallVector<Operation *> late;
  llvm::DenseSet<Operation *> isLate;
  if (!grads.empty())
    for (Operation &op : llvm::make_range(block.begin(), (*grads.begin())->getIterator()))
      if (op.hasAttr(kLossChunkAttrName) || llvm::any_of(op.getOperands(), [&](Value operand) {
            return isLate.contains(operand.getDefiningOp());
          })) {
        late.push_back(&op);
        isLate.insert(&op);
      }
  for (Operation *op : llvm::reverse(late)) {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers())
      if (!first || user->isBeforeInBlock(first))
        first = user;
    if (first)
      op->moveBefore(first);
  }
  for (Operation &op : block)
    op.removeAttr(kLossChunkAttrName);
}

namespace {
struct DelayLossChunksPass : dtc::impl::DelayLossChunksPassBase<DelayLossChunksPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        delayChunks(function.front());
  }
};
} // namespace
