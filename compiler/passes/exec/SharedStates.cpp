//===- SharedStates.cpp - States of several entry points ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/exec/SharedStates.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace dtc;

namespace {
using States = llvm::MapVector<StringAttr, exec::StateOp>;
} // namespace

/// A state that a program does not touch lies in the memory where the others have it.
static void followMemory(exec::StateOp state, exec::StateOp other) {
  auto type = state.getBuffer().getType(), found = other.getBuffer().getType();
  if (state.getBuffer().hasOneUse() && state.getBuffer().getDefiningOp<exec::BufferOp>())
    state.getBuffer().setType(MemRefType::get(type.getShape(), type.getElementType(),
                                              type.getLayout(), found.getMemorySpace()));
}

/// Adds the program's states to those of its coordinate.
static LogicalResult collect(exec::ProgramOp program, States &states) {
  for (auto state : program.getOps<exec::StateOp>()) {
    auto [it, fresh] = states.insert({state.getStateNameAttr(), state});
    exec::StateOp other = it->second;
    if (fresh)
      continue;
    followMemory(state, other);
    if (state.getBuffer().getType() != other.getBuffer().getType() ||
        state.getShape() != other.getShape() || state.getSharding() != other.getSharding()) {
      auto error = state.emitError()
                   << "the state '" << state.getStateName() << "' is "
                   << state.getBuffer().getType() << " " << state.getSharding()
                   << " in the entry point " << program.getSymNameAttr() << ", and "
                   << other.getBuffer().getType() << " " << other.getSharding() << " in "
                   << other->getParentOfType<exec::ProgramOp>().getSymNameAttr()
                   << "; all entry points of a plan find it in one place";
      error.attachNote(other.getLoc()) << "the other one is here";
      return failure();
    }
  }
  return success();
}

/// Declares the states that the program lacks, and puts all in the order of `states`.
static void complete(exec::ProgramOp program, States &states) {
  llvm::DenseMap<StringAttr, exec::StateOp> own;
  for (auto state : program.getOps<exec::StateOp>())
    own[state.getStateNameAttr()] = state;
  Block &body = program.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  SmallVector<exec::StateOp> order;
  for (auto &[name, state] : states) {
    if (exec::StateOp mine = own.lookup(name)) {
      order.push_back(mine);
      continue;
    }
    auto root = cast<exec::BufferOp>(exec::getRoot(state.getBuffer()));
    auto buffer = exec::BufferOp::create(builder, root.getLoc(), root.getType(), root.getKind(),
                                         IntegerAttr(), IntegerAttr(), DenseI64ArrayAttr());
    IRMapping map;
    map.map(state.getBuffer(), buffer);
    order.push_back(cast<exec::StateOp>(builder.clone(*state, map)));
  }
  // States are declared after all buffers.
  Operation *last = nullptr;
  for (Operation &op : body)
    if (llvm::any_of(op.getResultTypes(), llvm::IsaPred<MemRefType>))
      last = &op;
  for (exec::StateOp state : order) {
    state->moveAfter(last);
    last = state;
  }
}

LogicalResult dtc::shareStates(ModuleOp module) {
  llvm::MapVector<StringAttr, SmallVector<exec::ProgramOp>> entries;
  for (auto program : module.getOps<exec::ProgramOp>())
    entries[program.getEntryAttr()].push_back(program);
  if (entries.size() < 2)
    return success();
  size_t coordinates = entries.front().second.size();
  std::vector<States> states(coordinates);
  for (auto &[entry, programs] : entries) {
    if (programs.size() != coordinates)
      return programs.front().emitError()
             << "the entry point '" << entry.getValue() << "' has " << programs.size()
             << " programs, expected " << coordinates << ", as the plan has";
    for (auto [program, shared] : llvm::zip_equal(programs, states))
      if (failed(collect(program, shared)))
        return failure();
  }
  for (auto &[entry, programs] : entries)
    for (auto [program, shared] : llvm::zip_equal(programs, states))
      complete(program, shared);
  return success();
}
