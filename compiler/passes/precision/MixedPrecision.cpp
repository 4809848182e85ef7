//===- MixedPrecision.cpp - Mixed precision with master weights -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Works on the whole step, forward and backward, in which every float is f32 so far. Parameters
// become 16 bits wide; from there each op takes the types that its PrecisionClass asks for, and
// conversions appear where an op and its operand disagree. Two things run against that flow: what
// leads to a gradient that an optimizer reads, or to a result of the function, stays wide from the
// op that makes it on; and constants take whatever type their user has, unless they would leave its
// range, which keeps the user wide.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "dialects/dtc/WeightsAttributes.h"

#include "mlir/IR/Builders.h"

namespace dtc {
#define GEN_PASS_DEF_MIXEDPRECISIONPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}
static bool isFloat(Value value) { return isa<FloatType>(elementOf(value)); }

namespace {

class PrecisionAssigner {
public:
  PrecisionAssigner(func::FuncOp function, Type low)
      : function(function), builder(function.getContext()), low(low), wide(builder.getF32Type()) {}
  LogicalResult run();

private:
  LogicalResult check();
  void demand();
  void retypeParameters();
  LogicalResult retype(Operation *op);
  LogicalResult inferResults(Operation *op);
  bool isNeutral(Value value);
  bool leavesRange(Value value);
  Value as(Value value, Type element, Operation *user);
  Value copyNeutral(Value value, Type element, Operation *user);
  void keepMasters();

  func::FuncOp function;
  OpBuilder builder;
  Type low, wide;
  /// Values that have to be wide, and are so without having been rounded on the way.
  llvm::DenseSet<Value> demanded;
  llvm::DenseMap<std::pair<Value, Type>, Value> converted;
  SmallVector<OptimizerOpInterface> optimizers;
};

} // namespace

LogicalResult PrecisionAssigner::check() {
  if (failed(checkProgram(function)))
    return failure();
  auto checkType = [&](Value value) -> LogicalResult {
    Type element = elementOf(value);
    if (!isa<FloatType>(element) || element == wide)
      return success();
    return emitError(value.getLoc())
           << "has elements of " << element << "; mixed precision starts from a model in f32";
  };
  for (BlockArgument arg : function.getArguments())
    if (failed(checkType(arg)))
      return failure();
  for (Operation &op : function.front().without_terminator()) {
    for (Value result : op.getResults())
      if (failed(checkType(result)))
        return failure();
    if (!isa<PrecisionOpInterface>(op))
      return op.emitOpError() << "says nothing of 16-bit floats; implement PrecisionOpInterface";
    if (auto optimizer = dyn_cast<OptimizerOpInterface>(op))
      optimizers.push_back(optimizer);
  }
  return success();
}

/// Finds what has to stay wide, from the gradients that optimizers read and the results of the
/// function, back through ops that follow their operands.
void PrecisionAssigner::demand() {
  SmallVector<Value> worklist;
  for (OptimizerOpInterface optimizer : optimizers)
    worklist.push_back(optimizer.getGradientMutable().get());
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  for (auto [index, value] : llvm::enumerate(ret.getOperands()))
    if (!function.getResultAttr(index, "dtc.updates"))
      worklist.push_back(value);
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!isFloat(value) || isa<BlockArgument>(value) || !demanded.insert(value).second)
      continue;
    auto op = cast<PrecisionOpInterface>(value.getDefiningOp());
    if (op.getPrecisionClass() == PrecisionClass::Follow && !op.widenResults())
      llvm::append_range(worklist, op->getOperands());
  }
}

/// Whether all users of the value are conversions that the model itself has.
static bool isAlwaysConverted(Value value) {
  return !value.use_empty() &&
         llvm::all_of(value.getUsers(), [](Operation *user) { return isa<ConvertOp>(user); });
}

/// The frozen parameters whose new values the model computes, such as running means.
static llvm::DenseSet<Value> findRunningStates(func::FuncOp function) {
  llvm::DenseSet<Value> states;
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (auto updates = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates");
        updates && function.getArgAttr(updates.getInt(), DtcDialect::kFrozenAttrName))
      states.insert(function.getArgument(updates.getInt()));
  return states;
}

/// Parameters and caches that the function computes with get 16 bits. A parameter that the model
/// converts wherever it uses it stays f32: with these conversions the model asks for that. So do
/// running means, to which a step adds less than 16 bits can tell.
void PrecisionAssigner::retypeParameters() {
  llvm::DenseSet<Value> running = findRunningStates(function);
  for (BlockArgument arg : function.getArguments())
    if (isStateArgument(function, arg.getArgNumber()) && !running.contains(arg) &&
        !function.getArgAttr(arg.getArgNumber(), "dtc.state") &&
        !isStepState(function, arg.getArgNumber()) && !isAlwaysConverted(arg))
      arg.setType(cast<RankedTensorType>(arg.getType()).clone(low));
}

/// Whether the value has no type of its own: a constant, a conversion of integers, or what is made
/// from them by changes of shape.
bool PrecisionAssigner::isNeutral(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<ConstantOp>(op))
    return true;
  if (auto convert = dyn_cast<ConvertOp>(op))
    return !isFloat(convert.getOperand());
  return (op->hasTrait<dtc::OpTrait::MovesElements>() || op->hasTrait<dtc::OpTrait::IsView>()) &&
         isNeutral(op->getOperand(0));
}

/// The element in that type; `lost` where it became 0 or infinite.
static APFloat round(APFloat number, const llvm::fltSemantics &semantics, bool &lost) {
  bool wasZero = number.isZero(), wasInfinite = number.isInfinity(), losesInfo;
  number.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
  lost |= number.isZero() != wasZero || number.isInfinity() != wasInfinite;
  return number;
}

/// Whether the value is made from a constant that the 16-bit type has no number for but 0 or
/// infinity. An epsilon that is 0 would not keep anything from a division by 0.
bool PrecisionAssigner::leavesRange(Value value) {
  if (!isNeutral(value))
    return false;
  Operation *op = value.getDefiningOp();
  if (!isa<ConstantOp>(op))
    return isFloat(op->getOperand(0)) && leavesRange(op->getOperand(0));
  auto elements = cast<DenseFPElementsAttr>(cast<ConstantOp>(op).getValue());
  bool lost = false;
  auto check = [&](const APFloat &number) {
    round(number, cast<FloatType>(low).getFloatSemantics(), lost);
    return lost;
  };
  return elements.isSplat() ? check(elements.getSplatValue<APFloat>())
                            : llvm::any_of(elements.getValues<APFloat>(), check);
}

Value PrecisionAssigner::copyNeutral(Value value, Type element, Operation *user) {
  Operation *op = value.getDefiningOp();
  auto type = cast<RankedTensorType>(value.getType()).clone(element);
  Value operand;
  if (isNeutral(value) && op->getNumOperands() > 0 && isFloat(op->getOperand(0)))
    operand = as(op->getOperand(0), element, user);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(user);
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto elements = cast<DenseFPElementsAttr>(constant.getValue());
    auto rounded = elements.mapValues(element, [&](const APFloat &number) {
      bool lost = false;
      return round(number, cast<FloatType>(element).getFloatSemantics(), lost).bitcastToAPInt();
    });
    return ConstantOp::create(builder, op->getLoc(), cast<DenseElementsAttr>(rounded));
  }
  Operation *copy = cloneWithTypes(builder, op, operand ? ValueRange(operand) : op->getOperands(),
                                   TypeRange(type));
  return copy->getResult(0);
}

/// The value with elements of that type, for `user`. Conversions count as the user's own work: they
/// are found again by users that come later.
Value PrecisionAssigner::as(Value value, Type element, Operation *user) {
  if (elementOf(value) == element)
    return value;
  Value &entry = converted[{value, element}];
  if (entry)
    return entry;
  Value result;
  if (isNeutral(value)) {
    result = copyNeutral(value, element, user);
  } else {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(user);
    result = ConvertOp::create(builder, value.getLoc(), value, element);
  }
  for (StringRef name : {StringRef(kOpNumberAttrName), StringRef(kGradientOfAttrName)})
    if (Attribute attr = user->getAttr(name))
      result.getDefiningOp()->setAttr(name, attr);
  // Making it may have added other entries.
  return converted[{value, element}] = result;
}

LogicalResult PrecisionAssigner::inferResults(Operation *op) {
  if (auto inferring = dyn_cast<InferTypeOpInterface>(op)) {
    SmallVector<Type> types;
    if (failed(inferring.inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(),
                                          op->getDiscardableAttrDictionary(),
                                          op->getPropertiesStorage(), op->getRegions(), types)))
      return failure();
    for (auto [result, type] : llvm::zip_equal(op->getResults(), types))
      result.setType(type);
    return success();
  }
  // The results of the others have the element types of the operands; sums over many elements are
  // wide.
  for (Value operand : op->getOperands())
    if (isFloat(operand)) {
      Type element = elementOf(operand);
      if (cast<PrecisionOpInterface>(op).widenResults())
        element = getWideType(element);
      for (Value result : op->getResults())
        result.setType(cast<RankedTensorType>(result.getType()).clone(element));
      return success();
    }
  return success();
}

LogicalResult PrecisionAssigner::retype(Operation *op) {
  auto precision = cast<PrecisionOpInterface>(op);
  if (isa<ConvertOp>(op))
    return success(); // the model's own: it says what it gives
  bool anyLow = false, anyWide = false, staysWide = false;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (!isFloat(value) || precision.isWideOperand(operand.getOperandNumber()))
      continue;
    if (!isNeutral(value))
      (elementOf(value) == low ? anyLow : anyWide) = true;
    else
      staysWide |= leavesRange(value);
  }
  bool isDemanded =
      llvm::any_of(op->getResults(), [&](Value result) { return demanded.contains(result); });
  PrecisionClass kind = precision.getPrecisionClass();
  // An op that can sum 16-bit operands into a wide result keeps them as they are.
  bool widened = isDemanded && anyLow && precision.widenResults();
  bool computesLow = anyLow && kind == PrecisionClass::Low;
  if (kind == PrecisionClass::Follow)
    computesLow = anyLow && !anyWide && (widened || !isDemanded);
  computesLow &= !staysWide;
  for (OpOperand &operand : op->getOpOperands())
    if (isFloat(operand.get())) {
      bool isLow = computesLow && !precision.isWideOperand(operand.getOperandNumber());
      operand.set(as(operand.get(), isLow ? low : wide, op));
    }
  return inferResults(op);
}

/// Gives each parameter that trains a copy in full precision, which the optimizer updates:
/// the parameter is that copy, rounded once a step, on the shards that the optimizer has. All of
/// them are added to the function at once: its type has all arguments and results.
void PrecisionAssigner::keepMasters() {
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  llvm::DenseMap<Value, SmallVector<unsigned, 1>> returned;
  for (OpOperand &operand : ret->getOpOperands())
    returned[operand.get()].push_back(operand.getOperandNumber());
  const unsigned first = function.getNumArguments(), firstResult = ret.getNumOperands();
  SmallVector<OpOperand *> parameters;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes, updates;
  SmallVector<Location> locations;
  SmallVector<Value> masters; // updated
  for (OptimizerOpInterface optimizer : optimizers) {
    Operation *op = optimizer;
    OpOperand &parameter = optimizer.getParameterMutable();
    // Where the parameter was converted for its optimizer, the master takes the place of that.
    auto convert = parameter.get().getDefiningOp<ConvertOp>();
    auto arg = dyn_cast<BlockArgument>(convert ? convert.getOperand() : parameter.get());
    if (!arg || elementOf(arg) != low)
      continue;
    unsigned from = arg.getArgNumber();
    NamedAttrList attrs;
    attrs.set("dtc.state", builder.getStringAttr("master"));
    attrs.set("dtc.state_of", function.getArgAttr(from, DtcDialect::kParamAttrName));
    for (StringRef inherited :
         {StringRef("dtc.axes"), StringRef("dtc.file_shape"), StringRef(dist::kShardingAttrName)})
      if (Attribute attr = function.getArgAttr(from, inherited))
        attrs.set(inherited, attr);
    updates.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        "dtc.updates", builder.getI64IntegerAttr(int64_t(first + types.size())))));
    types.push_back(cast<RankedTensorType>(arg.getType()).clone(wide));
    attributes.push_back(attrs.getDictionary(builder.getContext()));
    locations.push_back(arg.getLoc());
    parameters.push_back(&parameter);
    Value updated = optimizer.getNewParameter();
    builder.setInsertionPointAfter(op);
    Value rounded = ConvertOp::create(builder, updated.getLoc(), updated, low);
    for (unsigned result : returned.lookup(updated))
      ret.setOperand(result, rounded);
    masters.push_back(updated);
  }
  (void)function.insertArguments(SmallVector<unsigned>(types.size(), first), types, attributes,
                                 locations);
  for (auto [number, parameter] : llvm::enumerate(parameters)) {
    auto convert = parameter->get().getDefiningOp<ConvertOp>();
    BlockArgument master = function.getArgument(first + unsigned(number));
    parameter->set(master);
    if (!convert)
      continue;
    convert.getResult().replaceUsesWithIf(
        master, [](OpOperand &use) { return use.getOwner()->hasAttr(kReadsMasterAttrName); });
    if (!convert.use_empty())
      continue;
    // Returned values may ask for the same conversion later.
    converted.erase({convert.getOperand(), elementOf(convert)});
    convert.erase();
  }
  (void)function.insertResults(SmallVector<unsigned>(types.size(), firstResult),
                               TypeRange(ValueRange(masters)), updates);
  ret.getOperandsMutable().append(masters);
}

LogicalResult PrecisionAssigner::run() {
  if (failed(check()))
    return failure();
  demand();
  retypeParameters();
  SmallVector<Operation *> ops;
  for (Operation &op : function.front().without_terminator())
    ops.push_back(&op);
  for (Operation *op : ops)
    if (failed(retype(op)))
      return failure();
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  keepMasters();
  for (OpOperand &operand : ret->getOpOperands())
    if (isFloat(operand.get()) &&
        !function.getResultAttr(operand.getOperandNumber(), "dtc.updates"))
      operand.set(as(operand.get(), wide, ret));
  function.setType(FunctionType::get(function.getContext(), function.front().getArgumentTypes(),
                                     ret.getOperandTypes()));
  return success();
}

namespace {
struct MixedPrecisionPass : dtc::impl::MixedPrecisionPassBase<MixedPrecisionPass> {
  using Base::Base;

  void runOnOperation() override {
    Type low;
    if (dtype == "bf16")
      low = BFloat16Type::get(&getContext());
    else if (dtype == "f16")
      low = Float16Type::get(&getContext());
    if (!low) {
      getOperation().emitError() << "unknown dtype '" << dtype << "'; known are bf16 and f16";
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(PrecisionAssigner(function, low).run()))
        return signalPassFailure();
  }
};
} // namespace
