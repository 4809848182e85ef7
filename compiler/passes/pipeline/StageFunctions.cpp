//===- StageFunctions.cpp - Functions of the pipeline coordinates ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/pipeline/StageFunctions.h"

#include "compiler/passes/CheckProgram.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"

#include <map>
#include <memory>
#include <set>
#include <utility>

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

/// The device that makes a sum of the loop. What no stage makes, the first one does.
static int64_t makerOf(const PipelineProgram &program, dist::MicrobatchLoopOp loop,
                       unsigned index) {
  Block &body = loop.getBody().front();
  Operation *definer = body.getTerminator()->getOperand(index).getDefiningOp();
  definer = definer ? body.findAncestorOpInBlock(*definer) : nullptr;
  auto it = program.fragmentOf.find(definer);
  return it == program.fragmentOf.end() ? 0 : program.fragments[it->second].device;
}

void StageFunction::emitLoop(ArrayRef<int64_t> schedule) {
  Block &body = wholeLoop.getBody().front();
  SmallVector<unsigned> sums; // of the whole loop's results
  SmallVector<Type> types;
  for (auto [index, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    if (makerOf(program, wholeLoop, index) != device)
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

namespace {
/// Goes over the whole function once and builds those of some devices beside each other.
class StageFunctionBuilder {
public:
  StageFunctionBuilder(func::FuncOp whole, dist::MicrobatchLoopOp loop,
                       const PipelineProgram &program, const OpPlacement &placement,
                       ArrayRef<std::vector<int64_t>> schedules, ArrayRef<int64_t> devices);
  void run();

private:
  using Ends = std::pair<int64_t, int64_t>; ///< the sender and the receiver

  void emitLoops();
  void emitMessages(Operation *op);
  /// Whether the device has the value, as far as this has come.
  bool has(int64_t device, Value value) const {
    return isa<BlockArgument>(value) || made[device].contains(value);
  }

  func::FuncOp whole;
  dist::MicrobatchLoopOp loop;
  const PipelineProgram &program;
  const OpPlacement &placement;
  ArrayRef<std::vector<int64_t>> schedules;
  ValueNumbers numbers;
  std::vector<std::unique_ptr<StageFunction>> functions; ///< by device; null where none is built
  std::vector<llvm::DenseSet<Value>> made;               ///< by device, also where none is built
  std::map<Ends, std::vector<OnceMessage>> pending;      ///< in the order of placement.messages()
  llvm::DenseMap<Operation *, std::set<Ends>> awaitedBy; ///< by the user of a message
  int64_t channel;                                       ///< of the next message
};
} // namespace

StageFunctionBuilder::StageFunctionBuilder(func::FuncOp whole, dist::MicrobatchLoopOp loop,
                                           const PipelineProgram &program,
                                           const OpPlacement &placement,
                                           ArrayRef<std::vector<int64_t>> schedules,
                                           ArrayRef<int64_t> devices)
    : whole(whole), loop(loop), program(program), placement(placement), schedules(schedules),
      functions(schedules.size()), made(schedules.size()), channel(program.transfers.size()) {
  for (int64_t device : devices)
    functions[device] = std::make_unique<StageFunction>(whole, loop, program, device, numbers);
  for (const OnceMessage &message : placement.messages()) {
    const Ends ends = {message.sender, message.receiver};
    pending[ends].push_back(message);
    awaitedBy[message.user].insert(ends);
  }
}

/// Emits what `op` needs from other devices: all that one device has for another by now and that
/// the other will need moves together. Messages have one order that holds for all devices, so that
/// none waits for a message that waits for it.
void StageFunctionBuilder::emitMessages(Operation *op) {
  auto awaited = awaitedBy.find(op);
  if (awaited == awaitedBy.end())
    return;
  std::map<Ends, SmallVector<Value>> due;
  for (const Ends &ends : awaited->second) {
    std::vector<OnceMessage> &waiting = pending[ends];
    if (llvm::none_of(waiting, [&](const OnceMessage &message) { return message.user == op; }))
      continue; // it came with an earlier one
    SmallVector<Value> &moved = due[ends];
    llvm::erase_if(waiting, [&](const OnceMessage &message) {
      if (!has(ends.first, message.value))
        return false;
      moved.push_back(message.value);
      return true;
    });
  }
  for (auto &[ends, moved] : due) {
    Location loc = moved.front().getLoc();
    DenseI64ArrayAttr known = numbers.of(op->getContext(), moved);
    if (StageFunction *sender = functions[ends.first].get()) {
      SmallVector<Value> operands;
      for (Value value : moved)
        operands.push_back(sender->values.lookup(value));
      dist::SendOp::create(sender->builder, loc, operands, ends.second, channel, known);
    }
    if (StageFunction *receiver = functions[ends.second].get()) {
      auto receive = dist::ReceiveOp::create(receiver->builder, loc, TypeRange(ValueRange(moved)),
                                             ends.first, channel, known);
      receiver->values.map(moved, receive.getResults());
    }
    made[ends.second].insert(moved.begin(), moved.end());
    ++channel;
  }
}

void StageFunctionBuilder::emitLoops() {
  for (size_t device = 0; device < functions.size(); ++device) {
    if (functions[device]) {
      functions[device]->emitLoop(schedules[device]);
      continue;
    }
    // Its messages have numbers even so, which are the same for all devices.
    for (BodyOp entry : bodyOf(program, int64_t(device)))
      if (entry.kind != BodyOp::Run)
        numbers.of(whole.getContext(), program.transfers[entry.index].values.getArrayRef());
  }
  for (OpResult sum : loop.getResults())
    made[makerOf(program, loop, sum.getResultNumber())].insert(sum);
}

void StageFunctionBuilder::run() {
  for (Operation &op : whole.front()) {
    emitMessages(&op);
    if (&op == loop.getOperation()) {
      emitLoops();
    } else if (isa<func::ReturnOp>(op)) {
      for (const std::unique_ptr<StageFunction> &function : functions)
        if (function)
          function->emitReturn(placement);
    } else {
      for (unsigned device : placement.of(&op).set_bits()) {
        made[device].insert(op.result_begin(), op.result_end());
        if (functions[device])
          functions[device]->builder.clone(op, functions[device]->values);
      }
    }
  }
}

void dtc::buildStageFunctions(func::FuncOp function, dist::MicrobatchLoopOp loop,
                              const PipelineProgram &program, const OpPlacement &placement,
                              ArrayRef<std::vector<int64_t>> schedules, ArrayRef<int64_t> devices) {
  StageFunctionBuilder(function, loop, program, placement, schedules, devices).run();
  function.erase();
}
