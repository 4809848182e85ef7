//===- StageFunctions.cpp - Functions of the pipeline coordinates ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/pipeline/StageFunctions.h"

#include "compiler/passes/CheckProgram.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/BitVector.h"

#include <map>

using namespace mlir;
using namespace dtc;

namespace {

/// Numbers the values of the whole function that are sent, for all devices alike.
class ValueNumbers {
public:
  DenseI64ArrayAttr of(MLIRContext *context, ArrayRef<Value> values) {
    SmallVector<int64_t> result;
    for (Value value : values)
      result.push_back(numbers.try_emplace(value, numbers.size()).first->second);
    return DenseI64ArrayAttr::get(context, result);
  }

private:
  llvm::DenseMap<Value, int64_t> numbers;
};

/// The function of one device, while it is built.
class StageFunction {
public:
  StageFunction(func::FuncOp whole, dist::MicrobatchLoopOp wholeLoop,
                const PipelineProgram &program, int64_t device, ValueNumbers &numbers);
  void emitLoop(ArrayRef<int64_t> schedule);
  void emitReturn(const OpPlacement &placement);

  OpBuilder builder;
  IRMapping values; ///< of the whole function outside its loop, to those here

private:
  void emitFragment(OpBuilder &at, const Fragment &fragment);
  /// Clones `op` with `local`, and before it the ops without a stage that it reads.
  void cloneInto(OpBuilder &at, Operation &op, IRMapping &local);
  void eraseUnusedArguments(const OpPlacement &placement);

  func::FuncOp whole, function;
  dist::MicrobatchLoopOp wholeLoop;
  const PipelineProgram &program;
  int64_t device;
  ValueNumbers &numbers;
  IRMapping carried; ///< values of the loop that fragments hand on or messages bring
};

} // namespace

StageFunction::StageFunction(func::FuncOp whole, dist::MicrobatchLoopOp wholeLoop,
                             const PipelineProgram &program, int64_t device, ValueNumbers &numbers)
    : builder(whole), whole(whole), wholeLoop(wholeLoop), program(program), device(device),
      numbers(numbers) {
  function = func::FuncOp::create(builder, whole.getLoc(),
                                  (whole.getSymName() + "." + Twine(device)).str(),
                                  whole.getFunctionType());
  function.setAllArgAttrs(whole.getArgAttrsAttr());
  if (Attribute pipeline = whole->getAttr(dist::kPipelineAttrName))
    function->setAttr(dist::kPipelineAttrName, pipeline);
  Block *body = function.addEntryBlock();
  for (auto [from, to] : llvm::zip_equal(whole.getArguments(), body->getArguments())) {
    to.setLoc(from.getLoc());
    values.map(from, to);
  }
  builder.setInsertionPointToEnd(body);
}

void StageFunction::cloneInto(OpBuilder &at, Operation &op, IRMapping &local) {
  Block &body = wholeLoop.getBody().front();
  op.walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      if (local.contains(operand) || op.isAncestor(operand.getParentBlock()->getParentOp()))
        continue;
      if (Value value = carried.lookupOrNull(operand)) {
        local.map(operand, value);
        continue;
      }
      Operation *definer = operand.getDefiningOp();
      definer = definer ? body.findAncestorOpInBlock(*definer) : nullptr;
      if (definer)
        cloneInto(at, *definer, local);
      else
        local.map(operand, values.lookup(operand));
    }
  });
  Operation *clone = at.clone(op, local);
  clone->removeAttr(dist::kStageAttrName);
}

void StageFunction::emitFragment(OpBuilder &at, const Fragment &fragment) {
  SmallVector<Type> types;
  for (Value value : fragment.results)
    types.push_back(value.getType());
  auto op = dist::FragmentOp::create(at, fragment.ops.front()->getLoc(), types, fragment.pass,
                                     fragment.stage);
  OpBuilder inner(at.getContext());
  inner.createBlock(&op.getBody());
  IRMapping local;
  for (Operation *original : fragment.ops)
    cloneInto(inner, *original, local);
  SmallVector<Value> results;
  for (Value value : fragment.results)
    results.push_back(local.lookup(value));
  dist::YieldOp::create(inner, op.getLoc(), results);
  carried.map(fragment.results.getArrayRef(), op.getResults());
}

void StageFunction::emitLoop(ArrayRef<int64_t> schedule) {
  Block &body = wholeLoop.getBody().front();
  SmallVector<unsigned> sums; // of the whole loop's results
  SmallVector<Type> types;
  for (auto [index, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    Operation *definer = value.getDefiningOp();
    definer = definer ? body.findAncestorOpInBlock(*definer) : nullptr;
    auto it = program.fragmentOf.find(definer);
    int64_t maker = it == program.fragmentOf.end() ? 0 : program.fragments[it->second].device;
    if (maker != device)
      continue;
    sums.push_back(index);
    types.push_back(value.getType());
  }
  auto loop = dist::MicrobatchLoopOp::create(builder, wholeLoop.getLoc(), types,
                                             wholeLoop.getMeshAttr(), wholeLoop.getAxisAttr(),
                                             builder.getDenseI64ArrayAttr(schedule));
  OpBuilder inner(builder.getContext());
  inner.createBlock(&loop.getBody());
  for (BodyOp entry : bodyOf(program, device)) {
    if (entry.kind == BodyOp::Run) {
      emitFragment(inner, program.fragments[entry.index]);
      continue;
    }
    const StageTransfer &transfer = program.transfers[entry.index];
    ArrayRef<Value> moved = transfer.values.getArrayRef();
    Location loc = moved.front().getLoc();
    DenseI64ArrayAttr known = numbers.of(builder.getContext(), moved);
    if (entry.kind == BodyOp::Send) {
      SmallVector<Value> operands;
      for (Value value : moved)
        operands.push_back(carried.lookup(value));
      dist::SendOp::create(inner, loc, operands, transfer.receiver, entry.index, known);
    } else {
      auto receive =
          dist::ReceiveOp::create(inner, loc, TypeRange(ValueRange(moved)),
                                  program.fragments[transfer.producer].device, entry.index, known);
      carried.map(moved, receive.getResults());
    }
  }
  SmallVector<Value> yields;
  for (unsigned index : sums) {
    Value value = body.getTerminator()->getOperand(index);
    Value here = carried.lookupOrNull(value);
    yields.push_back(here ? here : values.lookup(value));
    values.map(wholeLoop.getResult(index), loop.getResult(yields.size() - 1));
  }
  dist::YieldOp::create(inner, loop.getLoc(), yields);
}

void StageFunction::emitReturn(const OpPlacement &placement) {
  auto ret = cast<func::ReturnOp>(whole.front().getTerminator());
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> dictionaries;
  for (auto [index, value] : llvm::enumerate(ret.getOperands())) {
    auto updates = whole.getResultAttrOfType<IntegerAttr>(index, "dtc.updates");
    // One device returns an output: the last that has it, where the loss is.
    bool isHere = updates ? placement.isAvailable(whole.getArgument(updates.getInt()), device)
                          : placement.available(value).find_last() == device;
    if (!isHere)
      continue;
    results.push_back(values.lookup(value));
    NamedAttrList attributes(whole.getResultAttrDict(index));
    // Numbers of results are the whole function's.
    if (!updates && !attributes.get("dtc.output") && !attributes.get(DtcDialect::kMetricAttrName))
      attributes.set("dtc.output", builder.getStringAttr("result" + Twine(index)));
    dictionaries.push_back(attributes.getDictionary(builder.getContext()));
  }
  func::ReturnOp::create(builder, ret.getLoc(), results);
  function.setType(FunctionType::get(builder.getContext(), function.getArgumentTypes(),
                                     TypeRange(ValueRange(results))));
  function.setAllResultAttrs(dictionaries);
  eraseUnusedArguments(placement);
}

void StageFunction::eraseUnusedArguments(const OpPlacement &placement) {
  llvm::BitVector unused(function.getNumArguments());
  for (BlockArgument arg : function.getArguments()) {
    unsigned index = arg.getArgNumber();
    bool isState = isStateArgument(whole, index);
    unused[index] =
        arg.use_empty() && !(isState && placement.isAvailable(whole.getArgument(index), device));
  }
  eraseArguments(function, unused);
}

/// Emits what `op` needs from other devices: all that one device has for another by now and that
/// the other will need moves together. Messages have one order that holds for all devices, so that
/// none waits for a message that waits for it.
static void emitMessages(MutableArrayRef<StageFunction *> devices,
                         std::vector<OnceMessage> &pending, Operation *op, int64_t &channel,
                         ValueNumbers &numbers) {
  std::map<std::pair<int64_t, int64_t>, SmallVector<Value>> due;
  for (const OnceMessage &transfer : pending)
    if (transfer.user == op)
      due[{transfer.sender, transfer.receiver}];
  llvm::erase_if(pending, [&](const OnceMessage &transfer) {
    auto it = due.find({transfer.sender, transfer.receiver});
    if (it == due.end() || !devices[transfer.sender]->values.contains(transfer.value))
      return false;
    it->second.push_back(transfer.value);
    return true;
  });
  for (auto &[ends, moved] : due) {
    StageFunction &sender = *devices[ends.first], &receiver = *devices[ends.second];
    SmallVector<Value> operands;
    for (Value value : moved)
      operands.push_back(sender.values.lookup(value));
    Location loc = moved.front().getLoc();
    DenseI64ArrayAttr known = numbers.of(op->getContext(), moved);
    dist::SendOp::create(sender.builder, loc, operands, ends.second, channel, known);
    auto receive = dist::ReceiveOp::create(receiver.builder, loc, TypeRange(ValueRange(moved)),
                                           ends.first, channel, known);
    receiver.values.map(moved, receive.getResults());
    ++channel;
  }
}

void dtc::buildStageFunctions(func::FuncOp function, dist::MicrobatchLoopOp loop,
                              const PipelineProgram &program, const OpPlacement &placement,
                              ArrayRef<std::vector<int64_t>> schedules) {
  ValueNumbers numbers;
  std::vector<std::unique_ptr<StageFunction>> owned;
  SmallVector<StageFunction *> devices;
  for (size_t device = 0; device < schedules.size(); ++device) {
    owned.push_back(std::make_unique<StageFunction>(function, loop, program, device, numbers));
    devices.push_back(owned.back().get());
  }
  std::vector<OnceMessage> pending(placement.messages().begin(), placement.messages().end());
  int64_t channel = program.transfers.size();
  for (Operation &op : function.front()) {
    emitMessages(devices, pending, &op, channel, numbers);
    for (auto [number, device] : llvm::enumerate(devices)) {
      if (&op == loop.getOperation())
        device->emitLoop(schedules[number]);
      else if (isa<func::ReturnOp>(op))
        device->emitReturn(placement);
      else if (placement.of(&op).test(number))
        device->builder.clone(op, device->values);
    }
  }
  function.erase();
}
