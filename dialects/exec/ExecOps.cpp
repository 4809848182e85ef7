//===- ExecOps.cpp - Verifiers of the exec dialect ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/exec/Exec.h"

#include "support/StepStateKinds.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::exec;

LogicalResult ProgramOp::verify() {
  auto mesh = dist::lookupMesh(*this, getMeshAttr());
  if (!mesh)
    return violates(*this, "program-c1")
           << "is on " << getMeshAttr() << ", which is not a dist.mesh";
  llvm::StringSet<> states, inputs, outputs;
  for (Operation &op : getBody().front()) {
    StringRef name;
    bool fresh = true;
    if (auto state = dyn_cast<StateOp>(op))
      fresh = states.insert(name = state.getStateName()).second;
    else if (auto input = dyn_cast<InputOp>(op))
      fresh = inputs.insert(name = input.getInputName()).second;
    else if (auto output = dyn_cast<OutputOp>(op))
      fresh = outputs.insert(name = output.getOutputName()).second;
    else if (!isa<BufferOp, ViewOp, ReuseOp, UpdateOp, TransferOp, TaskOp, RunOp>(op))
      return violates(&op, "program-c2") << "cannot stand in an exec.program";
    if (!fresh)
      return violates(&op, "program-c3") << "repeats the name '" << name << "'";
  }
  return success();
}

int64_t exec::countMicrobatches(ProgramOp program) {
  auto mesh = dist::lookupMesh(program, program.getMeshAttr());
  for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>())
    if (axis.getTemporal())
      return axis.getSize();
  return 1;
}

/// Checks that a buffer's slot map has an entry for each microbatch.
static LogicalResult verifyMapLength(BufferOp buffer, int64_t microbatches) {
  auto map = buffer.getSlotMap();
  if (map && int64_t(map->size()) != microbatches)
    return violates(buffer, "buffer-c5") << "has a map of " << map->size() << " slots, expected "
                                         << microbatches << ", one for each microbatch";
  return success();
}

/// Checks that each update is the new value of one state, in its bytes.
static LogicalResult verifyUpdates(ProgramOp program) {
  llvm::StringMap<StateOp> states;
  for (auto state : program.getOps<StateOp>())
    states[state.getStateName()] = state;
  llvm::StringSet<> updated;
  for (auto update : program.getOps<UpdateOp>()) {
    StateOp state = states.lookup(update.getStateName());
    if (!state)
      return violates(update, "update-c1") << "is of '" << update.getStateName()
                                           << "', which is not an exec.state of this program";
    if (!updated.insert(update.getStateName()).second)
      return violates(update, "update-c2")
             << "is a second one of '" << update.getStateName() << "', expected one at most";
    if (getRoot(update.getBuffer()) != getRoot(state.getBuffer()) ||
        update.getBuffer().getType() != state.getBuffer().getType())
      return violates(update, "update-c3")
             << "is not in the buffer of '" << update.getStateName() << "', expected a reuse of it";
  }
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  if (failed(verifyUpdates(*this)))
    return failure();
  int64_t microbatches = countMicrobatches(*this);
  for (auto buffer : getOps<BufferOp>())
    if (failed(verifyMapLength(buffer, microbatches)))
      return failure();
  // Not in each run: a look-up in a program goes through all its buffers.
  llvm::StringSet<> tasks, transfers;
  for (auto transfer : getOps<TransferOp>())
    transfers.insert(transfer.getSymName());
  for (auto task : getOps<TaskOp>()) {
    tasks.insert(task.getSymName());
    for (Operation &op : task.getBody().front()) {
      auto name = isa<StartOp, FinishOp>(op) ? op.getAttrOfType<FlatSymbolRefAttr>("transfer")
                                             : FlatSymbolRefAttr();
      if (name && !transfers.contains(name.getValue()))
        return violates(&op, isa<StartOp>(op) ? "start-c1" : "finish-c1")
               << "names " << name << ", which is not an exec.transfer of this program";
    }
  }
  bool beforeLoop = true, inLoop = false;
  for (auto run : getOps<RunOp>()) {
    if (!tasks.contains(run.getTask()))
      return violates(run, "run-c1")
             << "runs @" << run.getTask() << ", which is not an exec.task of this program";
    if (run.getInLoop() && !inLoop && !beforeLoop)
      return violates(run, "run-c2") << "is in_loop after a run that is not, expected one loop";
    inLoop = run.getInLoop();
    beforeLoop &= !inLoop;
  }
  return success();
}

LogicalResult TaskOp::verify() {
  for (Operation &op : getBody().front())
    if (!isa<KernelOp, CollectiveOp, WaitOp, StartOp, FinishOp>(op))
      return violates(&op, "task-c1") << "cannot stand in an exec.task";
  return success();
}

/// Checks that elements of `type` lie one after another and that their number is known.
static LogicalResult verifyDense(Operation *op, StringRef label, MemRefType type) {
  if (!type.hasStaticShape() || !type.getLayout().isIdentity())
    return violates(op, label) << "has type " << type
                               << ", expected a static shape and the row-major layout";
  return success();
}

LogicalResult BufferOp::verify() {
  if (failed(verifyDense(*this, "buffer-c1", cast<MemRefType>(getType()))))
    return failure();
  if (auto attr = getOffsetAttr())
    if (int64_t offset = attr.getInt(); offset < 0 || offset % kBufferAlignment != 0)
      return violates(*this, "buffer-c2")
             << "is at " << offset << ", expected a multiple of " << kBufferAlignment;
  if (auto attr = getSlotsAttr(); attr && attr.getInt() < 0)
    return violates(*this, "buffer-c3") << "has " << attr.getInt() << " slots, expected at least 0";
  for (int64_t slot : getSlotMap().value_or(ArrayRef<int64_t>()))
    if (slot < 0 || slot >= int64_t(getSlots().value_or(0)))
      return violates(*this, "buffer-c4")
             << "maps a microbatch to slot " << slot << ", expected one of its "
             << getSlots().value_or(0) << " slots, which count from 0";
  Attribute space = cast<MemRefType>(getType()).getMemorySpace();
  if (space && space != StringAttr::get(getContext(), kHostSpace))
    return violates(*this, "buffer-c6")
           << "is in the memory space " << space << ", expected \"host\" or none";
  return success();
}

LogicalResult TransferOp::verify() {
  if (getBuffers().empty())
    return violates(*this, "transfer-c1") << "moves no tensor";
  if (int64_t(getPeer()) < 0 || int64_t(getChannel()) < 0)
    return violates(*this, "transfer-c2")
           << "has the peer " << int64_t(getPeer()) << " and the channel " << int64_t(getChannel())
           << ", expected at least 0 of each";
  if (auto numbers = getNumbers();
      numbers && (numbers->size() != getBuffers().size() ||
                  llvm::any_of(*numbers, [](int64_t number) { return number < 0; })))
    return violates(*this, "transfer-c3")
           << "has the numbers [" << *numbers << "] for " << getBuffers().size()
           << " buffers, expected one of at least 0 for each";
  return success();
}

LogicalResult ViewOp::verify() {
  auto source = cast<MemRefType>(getSource().getType()), result = cast<MemRefType>(getType());
  if (failed(verifyDense(*this, "view-c1", result)))
    return failure();
  if (source.getElementType() != result.getElementType() ||
      source.getNumElements() != result.getNumElements() ||
      source.getMemorySpace() != result.getMemorySpace())
    return violates(*this, "view-c2")
           << "views " << source << " as " << result
           << ", expected as many elements of the same type in the same memory";
  return success();
}

/// The labels of the constraints of verifyShard.
struct ShardLabels {
  StringRef shape, buffer;
};

/// Checks that a buffer of `local` shape is a shard of a tensor of `global` shape.
static LogicalResult verifyShard(Operation *op, const ShardLabels &labels, MemRefType local,
                                 ArrayRef<int64_t> global, dist::ShardingAttr sharding) {
  if (llvm::any_of(global, [](int64_t size) { return size < 0; }))
    return violates(op, labels.shape)
           << "has the shape [" << global << "], expected sizes that are not negative";
  auto tensor = RankedTensorType::get(global, local.getElementType());
  if (failed(dist::verifySharding(op, sharding, tensor, "the value")))
    return failure();
  auto mesh = dist::lookupMesh(op, sharding.getMesh());
  SmallVector<int64_t> expected(global);
  for (auto [size, dim] : llvm::zip_equal(expected, sharding.getDims()))
    for (Attribute axis : cast<ArrayAttr>(dim))
      for (auto known : mesh.getAxes().getAsRange<dist::AxisAttr>())
        // A shard has the parts of all microbatches.
        if (known.getName() == axis && !known.getTemporal())
          size = llvm::divideCeil(size, known.getSize());
  if (ArrayRef<int64_t>(expected) != local.getShape())
    return violates(op, labels.buffer)
           << "has a buffer of type " << local << " for a shard of a tensor of shape [" << global
           << "] with sharding " << sharding;
  return success();
}

LogicalResult StateOp::verify() {
  if (auto kind = getStepState(); kind && !findStepStateKind(*kind))
    return violates(*this, "state-c1")
           << "is the step state '" << *kind << "', expected " << listStepStateKinds();
  int64_t elements = 1, inFile = 1;
  for (int64_t size : getShape())
    elements *= size;
  for (int64_t size : getFileShape())
    inFile *= size;
  if (elements != inFile)
    return violates(*this, "state-c2") << "has shape [" << getShape() << "] and file shape ["
                                       << getFileShape() << "], expected as many elements";
  return verifyShard(*this, {"state-c3", "state-c4"}, cast<MemRefType>(getBuffer().getType()),
                     getShape(), getSharding());
}

LogicalResult InputOp::verify() {
  StringRef known[] = {"data", "learning_rates", "first_step", "batches"};
  if (!llvm::is_contained(known, getRole()))
    return violates(*this, "input-c1")
           << "has the role '" << getRole()
           << "', expected data, learning_rates, first_step or batches"
           << (getRole() == "random_key" ? "; run dtc-advance-random-key first" : "");
  return verifyShard(*this, {"input-c2", "input-c3"}, cast<MemRefType>(getBuffer().getType()),
                     getShape(), getSharding());
}

LogicalResult OutputOp::verify() {
  if (getMustBeZero() && (!getMetric() || !isa<FloatType>(getBuffer().getType().getElementType())))
    return violates(*this, "output-c3")
           << "must be zero and is " << (getMetric() ? "no metric of floats" : "no metric");
  return verifyShard(*this, {"output-c1", "output-c2"}, cast<MemRefType>(getBuffer().getType()),
                     getShape(), getSharding());
}

LogicalResult KernelOp::verify() {
  if (getKernel().empty())
    return violates(*this, "kernel-c1") << "has an empty kernel name";
  if (getOutputs().empty())
    return violates(*this, "kernel-c2") << "writes no buffer";
  auto operands = llvm::concat<Value>(getInputs(), getOutputs());
  bool anyOnHost = llvm::any_of(operands, isOnHost);
  if (getKernel() != "copy" && anyOnHost && !llvm::all_of(operands, isOnHost))
    return violates(*this, "kernel-c3") << "has buffers in the memory of the device and in that of "
                                           "the host, expected all in one";
  if (getToken() && !anyOnHost)
    return violates(*this, "kernel-c4") << "has a token and no buffer in the memory of the host";
  if (!getAfter().empty() && !getToken())
    return violates(*this, "kernel-c5")
           << "comes after " << getAfter().size() << " tokens and has none itself";
  return success();
}

LogicalResult CollectiveOp::verify() {
  bool reduces =
      getKind() == CollectiveKind::AllReduce || getKind() == CollectiveKind::ReduceScatter;
  if (reduces != getReduction().has_value())
    return violates(*this, "collective-c1")
           << name(getKind()) << (reduces ? " needs a reduction" : " has no use for a reduction");
  bool permutes = getKind() == CollectiveKind::Permute;
  if (permutes != getSourceAxes().has_value())
    return violates(*this, "collective-c2")
           << name(getKind()) << (permutes ? " needs source axes" : " has no use for source axes");
  if (!permutes && getShift().value_or(0) != 0)
    return violates(*this, "collective-c2") << name(getKind()) << " has no use for a shift";
  size_t count = getInputs().size();
  if (count == 0)
    return violates(*this, "collective-c3") << "moves no tensor";
  if (getOutputs().size() != count || getDims().size() != count || getSplitDims().size() != count ||
      (getReasons() && getReasons()->size() != count))
    return violates(*this, "collective-c4")
           << "has " << count << " inputs, " << getOutputs().size() << " outputs, "
           << getDims().size() << " dims and " << getSplitDims().size()
           << " split dims, expected as many of each";
  if (llvm::any_of(llvm::concat<Value>(getInputs(), getOutputs()), isOnHost))
    return violates(*this, "collective-c6") << "has a buffer in the memory of the host";
  if (!getAfter().empty() && !getToken())
    return violates(*this, "collective-c7")
           << "comes after " << getAfter().size() << " tokens and has none itself";
  if (getKind() == CollectiveKind::AllReduce || permutes)
    return success();
  for (auto [value, dim, splitDim] : llvm::zip_equal(getInputs(), getDims(), getSplitDims())) {
    auto input = cast<MemRefType>(value.getType());
    auto exists = [&](int64_t dim) { return dim >= 0 && dim < input.getRank(); };
    if (!exists(dim) || !exists(splitDim))
      return violates(*this, "collective-c5") << "names a dimension that " << input << " lacks";
  }
  return success();
}

LogicalResult WaitOp::verify() {
  Operation *started = getToken().getDefiningOp();
  if (!started || started->getBlock() != (*this)->getBlock())
    return violates(*this, "wait-c1") << "waits for a token of another task";
  if (llvm::count_if(getToken().getUsers(), llvm::IsaPred<WaitOp>) != 1)
    return violates(*this, "wait-c1")
           << "waits for an instruction that is waited for elsewhere too";
  return success();
}

LogicalResult RunOp::verify() {
  if (int64_t microbatch = getMicrobatch(); microbatch < 0)
    return violates(*this, "run-c3") << "has microbatch " << microbatch << ", expected at least 0";
  return success();
}

#define GET_OP_CLASSES
#include "dialects/exec/ExecOps.cpp.inc"
