//===- OpPlacement.cpp - Placement of ops outside the microbatch loop -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/pipeline/OpPlacement.h"

#include "compiler/analysis/LocalCost.h"
#include "dialects/dtc/AgreedAttribute.h"

#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace dtc;

/// The operands of the op, and those of the ops in it that come from outside: a bucket has no
/// operands.
static SmallVector<Value> readBy(Operation &op) {
  llvm::SetVector<Value> values(op.operand_begin(), op.operand_end());
  getUsedValuesDefinedAbove(op.getRegions(), values);
  return values.takeVector();
}

OpPlacement::OpPlacement(func::FuncOp function, dist::MicrobatchLoopOp loop,
                         const PipelineProgram &program, int64_t devices)
    : function(function), loop(loop), program(program), devices(devices) {
  findHomes();
  findCommon();
  findNeeds();
  place();
}

DeviceSet &OpPlacement::needOf(Value value) {
  return needed.try_emplace(value, none()).first->second;
}

void OpPlacement::findCommon() {
  auto isCommon = [&](Value value) { return common.contains(value); };
  for (BlockArgument arg : function.getArguments())
    if (available(arg).all())
      common.insert(arg);
  for (Operation &op : function.front().without_terminator())
    if (&op != loop.getOperation() && llvm::all_of(readBy(op), isCommon))
      common.insert(op.result_begin(), op.result_end());
}

/// Whether the op makes fewer elements than its largest operand has, unless all devices have all of
/// its operands; also where the result must be identical on all stages' devices (`dtc.agreed`).
/// Elements, not bytes: a scalar made of scalars is made again rather than sent.
bool OpPlacement::runsOnce(Operation &op) const {
  if (op.hasAttr(kAgreedAttrName))
    return true;
  if (llvm::all_of(readBy(op), [&](Value operand) { return common.contains(operand); }))
    return false;
  auto elements = [](Type type) { return cast<RankedTensorType>(type).getNumElements(); };
  int64_t results = 0, largest = 0;
  for (Type type : op.getResultTypes())
    results += elements(type);
  for (Value operand : readBy(op))
    largest = std::max(largest, elements(operand.getType()));
  return results < largest;
}

/// Where each state lives: on the devices whose part of the loop reads it, through what is made of
/// it before the loop.
void OpPlacement::findHomes() {
  auto note = [&](Value value, const DeviceSet &where) {
    inLoop.try_emplace(value, none()).first->second |= where;
  };
  Block &body = loop.getBody().front();
  // An op without a stage is made again by each fragment that uses it: from the last to the first.
  llvm::DenseMap<Operation *, DeviceSet> runsOn;
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    DeviceSet where = none();
    if (auto it = program.fragmentOf.find(&op); it != program.fragmentOf.end()) {
      where.set(program.fragments[it->second].device);
    } else {
      for (Operation *user : op.getUsers())
        if (Operation *inBody = body.findAncestorOpInBlock(*user))
          if (auto it = runsOn.find(inBody); it != runsOn.end())
            where |= it->second;
    }
    runsOn[&op] = where;
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentRegion() == &function.getBody())
          note(operand, where);
    });
  }
  for (Operation &op : llvm::reverse(
           llvm::make_range(function.front().begin(), Block::iterator(loop.getOperation()))))
    for (Value result : op.getResults())
      if (auto it = inLoop.find(result); it != inLoop.end()) {
        DeviceSet where = it->second;
        for (Value operand : readBy(op))
          note(operand, where);
      }

  llvm::StringMap<DeviceSet> homes;
  auto home = [&](Value value) {
    DeviceSet where = none();
    if (auto it = inLoop.find(value); it != inLoop.end())
      where = it->second;
    if (where.none())
      where.set(0); // a parameter that the loss does not depend on
    return where;
  };
  for (BlockArgument arg : function.getArguments()) {
    auto attr = [&](StringRef name) {
      return function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), name);
    };
    if (auto param = attr("dtc.param"))
      made[arg] = homes[param.getValue()] = home(arg);
    else if (attr("dtc.cache"))
      made[arg] = home(arg);
    else if (!attr("dtc.state"))
      made[arg] = all(); // data, the learning rate: the caller hands them to all readers
  }
  for (BlockArgument arg : function.getArguments())
    if (auto of = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), "dtc.state_of"))
      made[arg] = homes.lookup(of.getValue()).empty() ? home(arg) : homes.lookup(of.getValue());
}

/// Finds where results are needed, from the last op to the first.
void OpPlacement::findNeeds() {
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  for (auto [index, value] : llvm::enumerate(ret.getOperands()))
    if (auto updates = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates"))
      needOf(value) |= available(function.getArgument(updates.getInt()));
  for (auto &[value, where] : inLoop)
    needOf(value) |= where;
  for (Operation &op : llvm::reverse(function.front().without_terminator())) {
    if (&op == loop.getOperation())
      continue;
    bool isBefore = op.isBeforeInBlock(loop);
    if (!isBefore && runsOnce(op))
      continue; // runs where its operands are
    DeviceSet where = usersOf(&op);
    for (Value operand : readBy(op))
      needOf(operand) |= where;
  }
}

/// The devices on which some result of the op is needed.
DeviceSet OpPlacement::usersOf(Operation *op) {
  DeviceSet where = none();
  for (Value result : op->getResults())
    if (auto it = needed.find(result); it != needed.end())
      where |= it->second;
  return where;
}

void OpPlacement::placeOp(Operation &op) {
  DeviceSet where = usersOf(&op);
  bool isBefore = op.isBeforeInBlock(loop);
  bool isReturned = llvm::any_of(op.getUsers(), llvm::IsaPred<func::ReturnOp>);
  if ((where.none() && (isReturned || !op.use_empty())) || (!isBefore && runsOnce(op))) {
    // Where all that it reads is, or else where the largest of that is.
    DeviceSet common = all();
    const DeviceSet *largest = nullptr;
    int64_t most = -1;
    for (Value operand : readBy(op)) {
      common &= available(operand);
      if (int64_t bytes = tensorBytes(operand.getType()); bytes > most) {
        most = bytes;
        largest = &available(operand);
      }
    }
    DeviceSet candidates = common.any() || !largest ? common : *largest;
    bool isThere = where.any() && !where.test(candidates); // where is a part of candidates
    if (!isThere) {
      DeviceSet wanted = where;
      wanted &= candidates;
      where = none();
      where.set((wanted.any() ? wanted : candidates).find_first());
    }
  }
  places.insert({&op, where});
  for (Value operand : readBy(op)) {
    DeviceSet missing = where;
    missing.reset(available(operand));
    for (unsigned device : missing.set_bits())
      stepMessages.push_back({operand, available(operand).find_first(), int64_t(device), &op});
    // The sender stays the first of those that made it.
    made[operand] |= missing;
  }
  for (Value result : op.getResults())
    made[result] = where;
}

void OpPlacement::place() {
  Block &body = loop.getBody().front();
  for (Operation &op : function.front().without_terminator()) {
    if (&op != loop.getOperation()) {
      placeOp(op);
      continue;
    }
    DeviceSet everywhere = all();
    places.insert({&op, everywhere});
    for (auto [value, sum] :
         llvm::zip_equal(body.getTerminator()->getOperands(), loop.getResults())) {
      Operation *definer = value.getDefiningOp();
      definer = definer ? body.findAncestorOpInBlock(*definer) : nullptr;
      DeviceSet where = none();
      auto it = program.fragmentOf.find(definer);
      // The first device adds up values that no stage makes.
      where.set(it == program.fragmentOf.end() ? 0 : program.fragments[it->second].device);
      made[sum] = where;
    }
  }
  // An updated state is needed wherever it lives.
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  for (auto [index, value] : llvm::enumerate(ret.getOperands()))
    if (auto updates = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates")) {
      DeviceSet missing = available(function.getArgument(updates.getInt()));
      missing.reset(available(value));
      for (unsigned device : missing.set_bits())
        stepMessages.push_back({value, available(value).find_first(), int64_t(device), ret});
      made[value] |= missing;
    }
}
