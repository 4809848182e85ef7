//===- BuildGeneration.cpp - Build the programs of generation -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A model that is described by its loss over whole sequences also says how to go on with a
// sequence: the logits of a position depend on earlier positions through attention alone. So the
// program for one position is the model's with every dimension of positions cut to one row, keys
// and values of earlier positions kept in caches, and rows of tables of positions selected.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/DeadOps.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/generate/SequenceDims.h"
#include "compiler/passes/generate/UnpackSequences.h"
#include "compiler/passes/generate/WidenExperts.h"
#include "compiler/passes/train/RemoveDropout.h"

#include "llvm/ADT/StringSet.h"

namespace dtc {
#define GEN_PASS_DEF_BUILDGENERATIONPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

class GenerationBuilder {
public:
  GenerationBuilder(func::FuncOp function, bool isPrefill)
      : function(function), builder(function.getContext()), isPrefill(isPrefill) {}
  LogicalResult run();

private:
  LogicalResult findLogits();
  LogicalResult findTokens();
  LogicalResult checkSamples();
  BlockArgument addArgument(RankedTensorType type, const NamedAttrList &attrs, const Twine &name);
  void addPositions();
  BlockArgument addCache(Value like, const Twine &name);
  Value updateCache(AttentionOp op, Value rows, StringRef suffix, Value positions);
  void narrowAttention(AttentionOp op);
  LogicalResult narrow(ShardingRuleOpInterface op);
  FailureOr<Value> rowOf(Value value, unsigned dim, Operation *user);
  Value positionIds();
  RankedTensorType oneRow(Value value, unsigned dim) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = 1;
    return RankedTensorType::get(shape, type.getElementType());
  }

  func::FuncOp function;
  OpBuilder builder;
  bool isPrefill;
  Value logits;
  BlockArgument tokens;
  /// The position of each sample whose logits are wanted.
  BlockArgument positions;
  std::optional<SequenceDims> dims;
  llvm::DenseMap<Value, Value> rows; ///< values cut to those positions
  /// The same for values that do not depend on the tokens, by the dimension of positions.
  llvm::DenseMap<std::pair<Value, unsigned>, Value> tableRows;
  Value ids;               ///< positions as [batch, 1]
  llvm::StringSet<> names; ///< of states
  SmallVector<std::pair<BlockArgument, Value>> updates;
};

} // namespace

LogicalResult GenerationBuilder::findLogits() {
  auto losses = llvm::to_vector(function.front().getOps<CrossEntropyOp>());
  if (losses.size() != 1)
    return function.emitOpError() << "has " << losses.size()
                                  << " dtc.cross_entropy, expected one, of the logits of tokens";
  logits = losses.front().getLogits();
  unpackSequences(function);
  // The numbers let the programs of both phases be cut into the same stages.
  for (auto [number, op] : llvm::enumerate(function.front().without_terminator()))
    op.setAttr(kOpNumberAttrName, builder.getI64IntegerAttr(number));
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  ret->setOperands(logits);
  function.setType(
      FunctionType::get(function.getContext(), function.getArgumentTypes(), logits.getType()));
  function.setAllResultAttrs(ArrayRef<DictionaryAttr>(builder.getDictionaryAttr({})));
  removeDropout(function);
  logits = ret.getOperand(0);
  eraseDeadOps(function.front());
  eraseUnusedInputs(function);
  return success();
}

LogicalResult GenerationBuilder::findTokens() {
  for (BlockArgument arg : function.getArguments()) {
    auto name =
        function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), DtcDialect::kInputAttrName);
    if (!name)
      continue;
    auto type = cast<RankedTensorType>(arg.getType());
    if (tokens || name != "tokens" || type.getRank() != 2 || !type.getElementType().isInteger(32))
      return function.emitOpError()
             << "needs the input " << name << " of type " << type
             << " for its logits; generation gives one input alone, \"tokens\" of i32[batch, seq]";
    tokens = arg;
  }
  if (!tokens)
    return function.emitOpError() << "has logits that depend on no input, expected tokens";
  return success();
}

/// Caches and positions have an entry for each sample.
LogicalResult GenerationBuilder::checkSamples() {
  SequenceDims samples = SequenceDims::findSamples(function, tokens);
  for (auto op : function.front().getOps<AttentionOp>())
    for (Value operand : {op.getQ(), op.getK(), op.getV()})
      if (samples.of(operand) != 0u)
        return op.emitError() << "'dtc.attention' has an operand of type " << operand.getType()
                              << " whose dimension 0 does not count the samples; what generation "
                                 "keeps of earlier positions is kept for each sample";
  auto type = cast<RankedTensorType>(logits.getType());
  if (type.getRank() != 3 || samples.of(logits) != 0u || dims->of(logits) != 1u)
    return function.emitOpError() << "has logits of type " << type
                                  << ", expected [batch, seq, vocabulary] made from the tokens";
  return success();
}

BlockArgument GenerationBuilder::addArgument(RankedTensorType type, const NamedAttrList &attrs,
                                             const Twine &name) {
  unsigned index = function.getNumArguments();
  (void)function.insertArgument(index, type, attrs.getDictionary(function.getContext()),
                                NameLoc::get(builder.getStringAttr(name)));
  return function.getArgument(index);
}

/// Declares the positions, and, for one position, the tokens there.
void GenerationBuilder::addPositions() {
  unsigned index = tokens.getArgNumber();
  auto type = cast<RankedTensorType>(tokens.getType());
  NamedAttrList attrs;
  attrs.set(DtcDialect::kInputAttrName, builder.getStringAttr("positions"));
  if (auto axes = function.getArgAttrOfType<ArrayAttr>(index, DtcDialect::kAxesAttrName))
    attrs.set(DtcDialect::kAxesAttrName, builder.getArrayAttr(axes.getValue().take_front(1)));
  positions = addArgument(RankedTensorType::get({type.getDimSize(0)}, type.getElementType()), attrs,
                          "positions");
  if (isPrefill)
    return;
  NamedAttrList same(function.getArgAttrDict(index));
  // Once only: names of inputs are unique.
  function.setArgAttr(index, DtcDialect::kInputAttrName, builder.getStringAttr("all tokens"));
  rows[tokens] = addArgument(oneRow(tokens, 1), same, "tokens");
}

BlockArgument GenerationBuilder::addCache(Value like, const Twine &name) {
  std::string unique = name.str();
  for (int64_t next = 2; !names.insert(unique).second; ++next)
    unique = (name + "." + Twine(next)).str();
  NamedAttrList attrs;
  attrs.set("dtc.cache", builder.getStringAttr(unique));
  return addArgument(cast<RankedTensorType>(like.getType()), attrs, unique);
}

/// The op's cache of keys or values, with new rows in their place.
Value GenerationBuilder::updateCache(AttentionOp op, Value fresh, StringRef suffix,
                                     Value positions) {
  std::string name = nameOf(op.getLoc()).str();
  BlockArgument cache = addCache(suffix == "keys" ? op.getK() : op.getV(),
                                 (name.empty() ? "attention" : name) + "." + suffix);
  auto updated = CacheUpdateOp::create(builder, op.getLoc(), cache, fresh, positions);
  // It has the attention's number, so that both phases update the cache in one stage.
  updated->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  updates.push_back({cache, updated});
  return updated;
}

void GenerationBuilder::narrowAttention(AttentionOp op) {
  Value keys = updateCache(op, rows.at(op.getK()), "keys", positions);
  Value values = updateCache(op, rows.at(op.getV()), "values", positions);
  auto cached = CachedAttentionOp::create(builder, op.getLoc(), rows.at(op.getQ()), keys, values,
                                          positions, op.getSinks(), op.getScaleAttr(),
                                          op.getWindowAttr(), op.getSoftcapAttr());
  cached->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  rows[op.getOut()] = cached;
}

Value GenerationBuilder::positionIds() {
  if (!ids) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.front());
    auto type = cast<RankedTensorType>(positions.getType());
    auto column = RankedTensorType::get({type.getDimSize(0), 1}, type.getElementType());
    ids = ReshapeOp::create(builder, positions.getLoc(), column, positions);
  }
  return ids;
}

/// The first rows of a tensor are those of the tensor itself.
static Value withoutTruncation(Value table) {
  auto slice = table.getDefiningOp<SliceOp>();
  if (!slice || llvm::any_of(slice.getOffsets(), [](int64_t offset) { return offset != 0; }))
    return table;
  return slice.getOperand().getType().getShape().drop_front() ==
                 slice.getType().getShape().drop_front()
             ? Value(slice.getOperand())
             : table;
}

/// The value at the positions alone, where `dim` counts positions.
FailureOr<Value> GenerationBuilder::rowOf(Value value, unsigned dim, Operation *user) {
  if (Value known = rows.lookup(value))
    return known;
  Value &entry = dims->of(value) ? rows[value] : tableRows[{value, dim}];
  if (entry)
    return entry;
  OpBuilder::InsertionGuard guard(builder);
  Value row = resizeUniform(builder, value, dim, 1);
  if (auto broadcast = value.getDefiningOp<BroadcastOp>(); broadcast && !row) {
    ArrayRef<int64_t> of = broadcast.getDims();
    Value table = broadcast.getOperand();
    if (cast<RankedTensorType>(table.getType()).getRank() == 2 && of[0] == 1 && of[1] == 2 &&
        isFloatTensor(table.getType()) && cast<RankedTensorType>(value.getType()).getRank() == 3)
      row =
          EmbeddingOp::create(builder, broadcast.getLoc(), withoutTruncation(table), positionIds());
  }
  auto type = cast<RankedTensorType>(value.getType());
  if (!row && dim == 1 &&
      type.getDimSize(0) == cast<RankedTensorType>(positions.getType()).getDimSize(0))
    // It runs in the layer of its user, which may be another one than the value's.
    row = SelectRowOp::create(builder, user->getLoc(), value, positions);
  if (!row)
    return user->emitError()
           << "reads a value of type " << type << " whose dimension " << dim
           << " counts positions; of such values, generation can select rows where "
              "the dimensions before it are the batch";
  return entry = row;
}

/// Builds the op for one position.
LogicalResult GenerationBuilder::narrow(ShardingRuleOpInterface op) {
  builder.setInsertionPoint(op);
  if (auto attention = dyn_cast<AttentionOp>(op.getOperation()))
    return narrowAttention(attention), success();
  ShardingRule rule = op.getShardingRule();
  unsigned factor = dims->factorOf(rule, op);
  bool exchanges = dims->exchangesPlaces(op);
  SmallVector<Value> operands;
  for (auto [operand, factors] : llvm::zip_equal(op->getOperands(), rule.operands)) {
    operands.push_back(operand);
    for (auto [dim, list] : llvm::enumerate(factors)) {
      if (exchanges ? dims->of(operand) != dim : !llvm::is_contained(list, factor))
        continue;
      FailureOr<Value> row = rowOf(operand, dim, op);
      if (failed(row))
        return failure();
      operands.back() = *row;
    }
  }
  if (auto rotary = dyn_cast<RotaryOp>(op.getOperation())) {
    auto turned = RotaryOp::create(builder, op->getLoc(), operands.front(), positions,
                                   rotary.getThetaAttr(), rotary.getFrequenciesAttr(),
                                   rotary.getFactorAttr(), rotary.getInverseAttr(),
                                   /*zigzag=*/IntegerAttr(), /*sequence=*/IntegerAttr(),
                                   /*sequence_axes=*/ArrayAttr());
    turned->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rows[rotary.getResult()] = turned;
    return success();
  }
  SmallVector<Type> types;
  for (Value result : op->getResults())
    types.push_back(oneRow(result, *dims->of(result)));
  Operation *local = op.buildLocal(builder, operands, types);
  for (auto [from, to] : llvm::zip_equal(op->getResults(), local->getResults()))
    rows[from] = to;
  return success();
}

LogicalResult GenerationBuilder::run() {
  if (failed(checkProgram(function)) || failed(findLogits()) || failed(findTokens()))
    return failure();
  auto found = SequenceDims::findPositions(function, tokens);
  if (failed(found))
    return failure();
  dims = std::move(*found);
  if (failed(checkSamples()) || failed(widenExperts(function, *dims, tokens)))
    return failure();
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (auto name = function.getArgAttrOfType<StringAttr>(index, DtcDialect::kParamAttrName))
      names.insert(name.getValue());
  addPositions();

  // In a prefill all positions go as far as the last attention; after it one row is enough.
  llvm::DenseSet<Operation *> feeds;
  for (Operation &op : llvm::reverse(function.front().without_terminator()))
    if (isa<AttentionOp>(op) ||
        llvm::any_of(op.getUsers(), [&](Operation *user) { return feeds.contains(user); }))
      feeds.insert(&op);
  for (Operation &op : llvm::make_early_inc_range(function.front().without_terminator())) {
    bool followsTokens = llvm::any_of(op.getOperands(),
                                      [&](Value operand) { return dims->of(operand).has_value(); });
    if (!followsTokens)
      continue;
    if (isPrefill && feeds.contains(&op)) {
      if (auto attention = dyn_cast<AttentionOp>(op)) {
        builder.setInsertionPoint(&op);
        auto type = cast<RankedTensorType>(positions.getType());
        Value first = ConstantOp::create(builder, op.getLoc(), type, 0.0);
        updateCache(attention, attention.getK(), "keys", first);
        updateCache(attention, attention.getV(), "values", first);
      }
      continue;
    }
    if (failed(narrow(cast<ShardingRuleOpInterface>(op))))
      return failure();
  }

  Operation *ret = function.front().getTerminator();
  builder.setInsertionPoint(ret);
  FailureOr<Value> last = rowOf(logits, *dims->of(logits), ret);
  if (failed(last))
    return failure();
  SmallVector<Value> results{*last};
  SmallVector<DictionaryAttr> attributes{builder.getDictionaryAttr(
      builder.getNamedAttr("dtc.output", builder.getStringAttr("logits")))};
  for (auto [cache, value] : updates) {
    results.push_back(value);
    attributes.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr("dtc.updates", builder.getI64IntegerAttr(cache.getArgNumber()))));
  }
  ret->setOperands(results);
  function.setType(FunctionType::get(function.getContext(), function.front().getArgumentTypes(),
                                     TypeRange(ValueRange(results))));
  function.setAllResultAttrs(attributes);
  eraseDeadOps(function.front());
  eraseUnusedInputs(function);
  function.setSymName(isPrefill ? "prefill" : "decode");
  return success();
}

namespace {
struct BuildGenerationPass : dtc::impl::BuildGenerationPassBase<BuildGenerationPass> {
  using Base::Base;

  void runOnOperation() override {
    if (phase != "prefill" && phase != "decode") {
      getOperation().emitError() << "the option phase is '" << phase
                                 << "', expected prefill or decode";
      return signalPassFailure();
    }
    auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
    if (functions.size() != 1 || functions.front().isExternal()) {
      getOperation().emitError() << "the module has " << functions.size()
                                 << " functions, expected one with a body, of a loss";
      return signalPassFailure();
    }
    if (failed(GenerationBuilder(functions.front(), phase == "prefill").run()))
      signalPassFailure();
  }
};
} // namespace
