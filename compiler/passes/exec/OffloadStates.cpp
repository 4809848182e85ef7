//===- OffloadStates.cpp - Optimizer states in the memory of the host -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/LocalCost.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

namespace dtc {
#define GEN_PASS_DEF_OFFLOADSTATESPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// The update of one parameter, with the states of the optimizer that only it changes.
struct Update {
  Operation *op;
  SmallVector<BlockArgument> states;
  int64_t stateBytes = 0; ///< of a device
};

/// Moves the updates of some parameters of one function to the host.
class Offload {
public:
  explicit Offload(func::FuncOp function) : function(function) {}

  void run(double fraction) {
    SmallVector<Update> updates = findUpdates();
    for (const Update &update : chosen(updates, fraction))
      place(update);
    hoist();
  }

private:
  SmallVector<Update> findUpdates();
  SmallVector<Update> chosen(SmallVector<Update> updates, double fraction) const;
  /// The argument that a value is the new value of; null for others.
  BlockArgument updatedBy(Value value);
  bool isHostArgument(Value value);

  void place(const Update &update);
  /// Gives the uses of a value of the host, beside the host's own, a copy in the device's memory.
  /// `hoists`: the ops of the copy are moved with those of the host.
  void bringBack(Value value, bool hoists);
  /// The copy is at the first place where both values are there.
  Value copyToHost(Value value, Value notBefore);
  Value copy(Value value, Value notBefore, StringRef to);
  /// Moves the ops of the host, in their order, to where their operands are there.
  void hoist();

  func::FuncOp function;
  llvm::DenseMap<Value, Value> onHost; ///< copies
  llvm::SetVector<Operation *> moved;  ///< ops of the host, and the ops that they need
};

} // namespace

BlockArgument Offload::updatedBy(Value value) {
  for (OpOperand &use : value.getUses())
    if (isa<func::ReturnOp>(use.getOwner()))
      if (auto index =
              function.getResultAttrOfType<IntegerAttr>(use.getOperandNumber(), "dtc.updates"))
        return function.getArgument(index.getInt());
  return {};
}

bool Offload::isHostArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner() == &function.front() &&
         function.getArgAttr(argument.getArgNumber(), dist::kHostAttrName);
}

SmallVector<Update> Offload::findUpdates() {
  SmallVector<Update> updates;
  for (Operation &op : function.front()) {
    if (!isa<OptimizerOpInterface>(op))
      continue;
    Update update{&op, {}};
    for (Value result : op.getResults()) {
      BlockArgument state = updatedBy(result);
      if (!state || !function.getArgAttr(state.getArgNumber(), "dtc.state") ||
          !llvm::is_contained(op.getOperands(), state))
        continue;
      update.states.push_back(state);
      update.stateBytes += tensorBytes(state.getType());
    }
    if (!update.states.empty())
      updates.push_back(std::move(update));
  }
  return updates;
}

/// Whole parameters, those with the most bytes first, until the fraction is reached.
SmallVector<Update> Offload::chosen(SmallVector<Update> updates, double fraction) const {
  double all = 0, taken = 0;
  for (const Update &update : updates)
    all += double(update.stateBytes);
  SmallVector<const Update *> largestFirst;
  for (const Update &update : updates)
    largestFirst.push_back(&update);
  llvm::stable_sort(largestFirst,
                    [](const Update *a, const Update *b) { return a->stateBytes > b->stateBytes; });
  llvm::DenseSet<Operation *> ops;
  for (const Update *update : largestFirst) {
    if (taken >= fraction * all)
      break;
    taken += double(update->stateBytes);
    ops.insert(update->op);
  }
  llvm::erase_if(updates, [&](const Update &update) { return !ops.contains(update.op); });
  return updates;
}

Value Offload::copy(Value value, Value notBefore, StringRef to) {
  Operation *def = value.getDefiningOp(), *other = notBefore.getDefiningOp();
  bool isLater = other && (!def || def->isBeforeInBlock(other));
  OpBuilder builder(function.getContext());
  builder.setInsertionPointAfterValue(isLater ? notBefore : value);
  return dist::CopyOp::create(builder, value.getLoc(), value.getType(), value, to);
}

Value Offload::copyToHost(Value value, Value notBefore) {
  Value &known = onHost[value];
  if (!known)
    known = copy(value, notBefore, "host");
  return known;
}

void Offload::place(const Update &update) {
  auto unit = UnitAttr::get(function.getContext());
  for (BlockArgument state : update.states)
    function.setArgAttr(state.getArgNumber(), dist::kHostAttrName, unit);
  Operation *op = update.op;
  op->setAttr(dist::kHostAttrName, unit);
  auto optimizer = cast<OptimizerOpInterface>(op);
  Value gradient =
      copyToHost(optimizer.getGradientMutable().get(), optimizer.getGradientMutable().get());
  // The parameter follows its gradient: before, the link is of no use to it, and its task may end.
  OpOperand &parameter = optimizer.getParameterMutable();
  if (!isHostArgument(parameter.get()))
    parameter.set(copyToHost(parameter.get(), gradient));
  for (OpOperand &operand : op->getOpOperands())
    if (&operand != &parameter && !isHostArgument(operand.get()))
      operand.set(copyToHost(operand.get(), operand.get()));
  moved.insert(op);
  for (BlockArgument state : update.states)
    bringBack(state, /*hoists=*/false);
  for (Value result : op->getResults())
    bringBack(result, /*hoists=*/true);
}

void Offload::bringBack(Value value, bool hoists) {
  Value onDevice;
  SmallVector<Operation *> narrowed;
  for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
    Operation *user = use.getOwner();
    if (user->hasAttr(dist::kHostAttrName))
      continue;
    auto updates =
        isa<func::ReturnOp>(user)
            ? function.getResultAttrOfType<IntegerAttr>(use.getOperandNumber(), "dtc.updates")
            : IntegerAttr();
    if (updates && isHostArgument(function.getArgument(updates.getInt())))
      continue;
    // Fewer bytes go back where the host rounds the parameter.
    if (auto convert = dyn_cast<ConvertOp>(user);
        convert && convert->getBlock() == &function.front() &&
        tensorBytes(convert.getType()) < tensorBytes(value.getType())) {
      convert->setAttr(dist::kHostAttrName, UnitAttr::get(function.getContext()));
      narrowed.push_back(convert);
      continue;
    }
    if (!onDevice)
      onDevice = copy(value, value, "device");
    use.set(onDevice);
  }
  if (hoists)
    moved.insert_range(narrowed);
  if (hoists && onDevice)
    moved.insert(onDevice.getDefiningOp());
  for (Operation *convert : narrowed)
    bringBack(convert->getResult(0), hoists);
}

void Offload::hoist() {
  Operation *last = nullptr; // of the moved ops
  for (Operation *op : moved) {
    Operation *after = last;
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && (!after || after->isBeforeInBlock(def)))
        after = def;
    if (after && after->getNextNode() != op && after->isBeforeInBlock(op))
      op->moveAfter(after);
    last = op;
  }
}

namespace {
struct OffloadStatesPass : dtc::impl::OffloadStatesPassBase<OffloadStatesPass> {
  using Base::Base;

  void runOnOperation() override {
    if (!(fraction > 0 && fraction <= 1)) {
      getOperation().emitError() << "the fraction of states to offload is " << double(fraction)
                                 << ", expected above 0 and at most 1";
      return signalPassFailure();
    }
    if (failed(forEachFunction(getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) {
          if (failed(checkProgram(function, mesh.name)))
            return failure();
          Offload(function).run(fraction);
          return success();
        })))
      signalPassFailure();
  }
};
} // namespace
