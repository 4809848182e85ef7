//===- PipelineProgram.cpp - Fragments and messages of a pipeline ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/pipeline/PipelineProgram.h"

#include <map>
#include <optional>
#include <tuple>

using namespace mlir;
using namespace dtc;

namespace {

class FragmentBuilder {
public:
  FragmentBuilder(dist::MicrobatchLoopOp loop, const StageAssignment &assignment)
      : body(loop.getBody().front()), assignment(assignment) {}
  FailureOr<PipelineProgram> run(function_ref<int64_t(int64_t)> deviceOf);

private:
  LogicalResult addUse(Value value, Operation *user, size_t fragment);
  /// Notes what a fragment reads through an op, and through the ops without a stage that follow it.
  LogicalResult addUses(Operation *op, size_t fragment);

  Block &body;
  const StageAssignment &assignment;
  PipelineProgram program;
  StageTransfer &transferFor(size_t producer, size_t user);
  /// The transfer of each producer, receiver, and fragment where one has a message of its own.
  std::map<std::tuple<size_t, int64_t, std::optional<size_t>>, size_t> transferOf;
};

} // namespace

LogicalResult FragmentBuilder::addUse(Value value, Operation *user, size_t fragment) {
  Operation *definer = value.getDefiningOp();
  definer = definer ? body.findAncestorOpInBlock(*definer) : nullptr;
  if (!definer)
    return success(); // from outside the loop
  auto it = program.fragmentOf.find(definer);
  if (it == program.fragmentOf.end())
    return addUses(definer, fragment); // is made here as well
  size_t producer = it->second;
  if (producer == fragment)
    return success();
  Fragment &from = program.fragments[producer], &to = program.fragments[fragment];
  if (producer > fragment) {
    InFlightDiagnostic diag = user->emitOpError()
                              << "runs in the " << name(to.pass) << " pass of stage " << to.stage
                              << " and needs a value of the " << name(from.pass)
                              << " pass of stage " << from.stage << ", which comes later";
    diag.attachNote(definer->getLoc()) << "the value is made here";
    return failure();
  }
  from.results.insert(value);
  if (from.device == to.device) {
    if (from.stage != to.stage)
      program.handovers.insert({producer, fragment});
    return success();
  }
  StageTransfer &transfer = transferFor(producer, fragment);
  transfer.values.insert(value);
  transfer.users.insert(fragment);
  return success();
}

/// A device waits for a message in the fragment that uses it first here. Schedules keep that order
/// for all passes but weights, which run any time after their own stage's backward pass: weights
/// share the message of a fragment before them, or have their own.
StageTransfer &FragmentBuilder::transferFor(size_t producer, size_t user) {
  const Fragment &to = program.fragments[user];
  auto find = [&](std::optional<size_t> own) -> StageTransfer * {
    auto it = transferOf.find({producer, to.device, own});
    return it == transferOf.end() ? nullptr : &program.transfers[it->second];
  };
  std::optional<size_t> own;
  if (to.pass == StagePass::Weight) {
    StageTransfer *shared = find(std::nullopt);
    if (shared && *llvm::min_element(shared->users) < user)
      return *shared;
    own = user;
  }
  if (StageTransfer *known = find(own))
    return *known;
  transferOf[{producer, to.device, own}] = program.transfers.size();
  program.transfers.push_back({producer, to.device, {}, {}});
  return program.transfers.back();
}

LogicalResult FragmentBuilder::addUses(Operation *op, size_t fragment) {
  auto result = op->walk([&](Operation *inner) -> WalkResult {
    for (Value operand : inner->getOperands())
      if (!op->isAncestor(operand.getParentBlock()->getParentOp()))
        if (failed(addUse(operand, op, fragment)))
          return failure();
    return success();
  });
  return failure(result.wasInterrupted());
}

FailureOr<PipelineProgram> FragmentBuilder::run(function_ref<int64_t(int64_t)> deviceOf) {
  // Forward along the stages, then back.
  std::map<std::pair<int64_t, int>, size_t> places;
  for (Operation &op : body.without_terminator())
    if (dist::StageAttr stage = assignment.of(&op)) {
      bool isForward = stage.getPass() == StagePass::Forward;
      int64_t back = 2 * assignment.numStages() - 1 - stage.getIndex();
      places[{isForward ? stage.getIndex() : back, int(stage.getPass())}];
    }
  for (auto &[key, place] : places) {
    place = program.fragments.size();
    auto pass = StagePass(key.second);
    int64_t stage =
        pass == StagePass::Forward ? key.first : 2 * assignment.numStages() - 1 - key.first;
    program.fragments.push_back({stage, pass, deviceOf(stage), {}, {}});
  }
  for (Operation &op : body.without_terminator())
    if (dist::StageAttr stage = assignment.of(&op)) {
      bool isForward = stage.getPass() == StagePass::Forward;
      int64_t back = 2 * assignment.numStages() - 1 - stage.getIndex();
      size_t place = places.at({isForward ? stage.getIndex() : back, int(stage.getPass())});
      program.fragments[place].ops.push_back(&op);
      program.fragmentOf[&op] = place;
    }
  for (bool weights : {false, true})
    for (size_t index = 0; index < program.fragments.size(); ++index)
      for (Operation *op : program.fragments[index].ops)
        if ((program.fragments[index].pass == StagePass::Weight) == weights &&
            failed(addUses(op, index)))
          return failure();
  for (Value value : body.getTerminator()->getOperands()) {
    Operation *definer = value.getDefiningOp();
    definer = definer ? body.findAncestorOpInBlock(*definer) : nullptr;
    if (auto it = program.fragmentOf.find(definer); it != program.fragmentOf.end())
      program.fragments[it->second].results.insert(value);
  }
  auto key = [](const StageTransfer &transfer) {
    return std::tuple(transfer.producer, transfer.receiver, *llvm::min_element(transfer.users));
  };
  llvm::sort(program.transfers,
             [&](const StageTransfer &a, const StageTransfer &b) { return key(a) < key(b); });
  return std::move(program);
}

FailureOr<PipelineProgram> dtc::cutLoop(dist::MicrobatchLoopOp loop,
                                        const StageAssignment &assignment,
                                        function_ref<int64_t(int64_t)> deviceOf) {
  return FragmentBuilder(loop, assignment).run(deviceOf);
}

std::vector<BodyOp> dtc::bodyOf(const PipelineProgram &program, int64_t device) {
  std::vector<BodyOp> body;
  for (size_t index = 0; index < program.fragments.size(); ++index) {
    if (program.fragments[index].device != device)
      continue;
    for (size_t m = 0; m < program.transfers.size(); ++m)
      if (const StageTransfer &transfer = program.transfers[m];
          transfer.receiver == device && *llvm::min_element(transfer.users) == index)
        body.push_back({BodyOp::Receive, m});
    body.push_back({BodyOp::Run, index});
    for (size_t m = 0; m < program.transfers.size(); ++m)
      if (program.transfers[m].producer == index)
        body.push_back({BodyOp::Send, m});
  }
  return body;
}
