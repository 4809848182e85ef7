//===- LowerToExec.cpp - From tensors to kernels on buffers ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"

#include "mlir/IR/Builders.h"

#define DEBUG_TYPE "dtc-lower-to-exec"

namespace dtc {
#define GEN_PASS_DEF_LOWERTOEXECPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// Memory that one or more values share: an in-place result, a reshape.
struct Storage {
  int lastUse = -1;      ///< of any value in it, as an op's number
  bool inLoop = false;   ///< belongs to one microbatch
  bool reusable = false; ///< holds an intermediate value that may be overwritten after its last use
};

class Lowering {
public:
  Lowering(func::FuncOp function, FlatSymbolRefAttr mesh)
      : function(function), mesh(mesh), builder(function.getContext()),
        declare(function.getContext()) {}
  LogicalResult run();

private:
  void number();
  void markGradients();
  LogicalResult lowerArguments();
  LogicalResult lowerOp(Operation &op);
  LogicalResult lowerKernel(Operation &op);
  LogicalResult lowerCollective(Operation &op, exec::CollectiveKind kind,
                                std::optional<dist::ReductionKind> reduction, ArrayAttr axes,
                                int64_t dim = 0, int64_t splitDim = 0);
  LogicalResult lowerLoop(dist::MicrobatchLoopOp loop);
  LogicalResult lowerReturn(func::ReturnOp op);

  bool isFolded(BroadcastOp op);
  /// The value that an operand reads once broadcasts are folded.
  Value source(OpOperand &operand);
  MemRefType bufferType(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return MemRefType::get(tensor.getShape(), tensor.getElementType());
  }
  Value allocate(Value value, exec::BufferKind kind, bool reusable = true);
  exec::BufferKind kindOf(Value value);
  /// The buffer for result `index` of `op`: an operand's where that is allowed, else a new one.
  Value allocateResult(Operation &op, unsigned index,
                       ArrayRef<std::pair<unsigned, unsigned>> inPlacePairs);
  void share(Value value, unsigned storage, Value buffer);
  void kernel(Location loc, StringRef name, ValueRange inputs, ValueRange outputs,
              DictionaryAttr attributes, double flops = 0);
  /// Further instructions go to a new task, which runs `count` times.
  void beginTask(StringRef name, int64_t count = 1);

  func::FuncOp function;
  FlatSymbolRefAttr mesh;
  OpBuilder builder; ///< in the task that is being filled
  OpBuilder declare; ///< before the first task
  exec::ProgramOp program;
  SmallVector<exec::TaskOp> tasks;
  bool inLoop = false;

  llvm::DenseMap<Operation *, int> numbers;
  llvm::DenseMap<Value, int> lastUse;
  llvm::DenseSet<Value> gradients, returned;
  /// The argument that a returned value updates.
  llvm::DenseMap<Value, BlockArgument> updates;
  SmallVector<Storage> storages;
  llvm::DenseMap<Value, unsigned> storageOf;
  llvm::DenseMap<Value, Value> bufferOf;
  SmallVector<int64_t> repetitions; ///< of each task
};

} // namespace

bool Lowering::isFolded(BroadcastOp op) {
  return llvm::all_of(op->getUses(), [](OpOperand &use) {
    auto user = dyn_cast<KernelOpInterface>(use.getOwner());
    return user && !user.getBroadcastAttribute(use.getOperandNumber()).empty();
  });
}

Value Lowering::source(OpOperand &operand) {
  auto broadcast = operand.get().getDefiningOp<BroadcastOp>();
  return broadcast && isFolded(broadcast) ? broadcast.getOperand() : operand.get();
}

/// Numbers the ops and finds the last use of each value. A use in the loop of a value from outside
/// lasts until the loop's end, and what views or folded broadcasts read is read by their users.
void Lowering::number() {
  int next = 0;
  function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) { numbers[op] = next++; });
  function.getBody().walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = source(operand);
      int at = numbers[op];
      if (auto loop = dyn_cast<dist::MicrobatchLoopOp>(op->getParentOp());
          loop && value.getParentBlock() != op->getBlock())
        at = numbers[loop.getBody().front().getTerminator()];
      int &last = lastUse.try_emplace(value, -1).first->second;
      last = std::max(last, at);
    }
  });
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  for (auto [index, value] : llvm::enumerate(ret.getOperands())) {
    returned.insert(value);
    if (auto argument = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates"))
      updates[value] = function.getArgument(argument.getInt());
  }
}

/// A gradient is what an optimizer reads, on its whole way there: before and after its sums.
void Lowering::markGradients() {
  SmallVector<Value> worklist;
  function.getBody().walk([&](Operation *op) {
    if (isa<AdamwOp, SgdOp>(op))
      worklist.push_back(op->getOperand(1));
  });
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!gradients.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (!op)
      continue;
    if (auto loop = dyn_cast<dist::MicrobatchLoopOp>(op))
      worklist.push_back(loop.getBody().front().getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber()));
    else if (isa<ReshapeOp>(op) || isa<dist::DistDialect>(op->getDialect()))
      worklist.push_back(op->getOperand(0));
  }
}

exec::BufferKind Lowering::kindOf(Value value) {
  if (updates.contains(value))
    return function.getArgAttr(updates[value].getArgNumber(), "dtc.param")
               ? exec::BufferKind::Parameter
               : exec::BufferKind::OptimizerState;
  if (returned.contains(value))
    return exec::BufferKind::Output;
  if (gradients.contains(value))
    return exec::BufferKind::Gradient;
  if (value.getDefiningOp<ConstantOp>())
    return exec::BufferKind::Constant;
  return exec::BufferKind::Activation;
}

void Lowering::share(Value value, unsigned storage, Value buffer) {
  storageOf[value] = storage;
  bufferOf[value] = buffer;
  auto it = lastUse.find(value);
  int last = it == lastUse.end() ? -1 : it->second;
  storages[storage].lastUse = std::max(storages[storage].lastUse, last);
}

Value Lowering::allocate(Value value, exec::BufferKind kind, bool reusable) {
  Value buffer = exec::BufferOp::create(declare, value.getLoc(), bufferType(value.getType()), kind,
                                        IntegerAttr());
  storages.push_back({-1, inLoop, reusable});
  share(value, storages.size() - 1, buffer);
  return buffer;
}

Value Lowering::allocateResult(Operation &op, unsigned index,
                               ArrayRef<std::pair<unsigned, unsigned>> inPlacePairs) {
  Value result = op.getResult(index);
  // The storage of an earlier result is taken, also where an operand's buffer is used twice.
  auto isTaken = [&](unsigned storage) {
    return llvm::any_of(op.getResults().take_front(index),
                        [&](Value earlier) { return storageOf.at(earlier) == storage; });
  };
  for (auto [operandIndex, resultIndex] : inPlacePairs) {
    if (resultIndex != index)
      continue;
    Value operand = source(op.getOpOperand(operandIndex));
    if (operand.getType() != result.getType())
      continue;
    unsigned storage = storageOf.at(operand);
    // A state's own storage takes its update once nothing reads the old value any more.
    auto update = updates.find(result);
    bool isOwnState = update != updates.end() && storageOf.at(update->second) == storage;
    bool isFree = storages[storage].reusable && storages[storage].inLoop == inLoop &&
                  !returned.contains(result);
    if ((!isOwnState && !isFree) || isTaken(storage) || storages[storage].lastUse > numbers.at(&op))
      continue;
    Value buffer = bufferOf.at(operand);
    share(result, storage, buffer);
    return buffer;
  }
  return allocate(result, kindOf(result), !returned.contains(result));
}

void Lowering::kernel(Location loc, StringRef name, ValueRange inputs, ValueRange outputs,
                      DictionaryAttr attributes, double flops) {
  exec::KernelOp::create(builder, loc, builder.getStringAttr(name), inputs, outputs, attributes,
                         builder.getF64FloatAttr(flops));
}

LogicalResult Lowering::lowerArguments() {
  for (BlockArgument arg : function.getArguments()) {
    unsigned index = arg.getArgNumber();
    auto shape = function.getArgAttrOfType<DenseI64ArrayAttr>(index, "dtc.global_shape");
    auto sharding = function.getArgAttrOfType<dist::ShardingAttr>(index, dist::kShardingAttrName);
    auto param = function.getArgAttrOfType<StringAttr>(index, "dtc.param");
    auto slot = function.getArgAttrOfType<StringAttr>(index, "dtc.slot");
    auto input = function.getArgAttrOfType<StringAttr>(index, "dtc.input");
    auto scalar = function.getArgAttrOfType<StringAttr>(index, "dtc.scalar");
    if (!shape || !sharding)
      return function.emitOpError() << "is not partitioned: argument " << index
                                    << " has no global shape; run dtc-spmd-partition first";
    if (!param && !slot && !input && !scalar)
      return function.emitOpError() << "argument " << index
                                    << " is neither a parameter nor an input; give "
                                       "it dtc.param or dtc.input";
    if (slot && !function.getArgAttrOfType<StringAttr>(index, "dtc.slot_of"))
      return function.emitOpError() << "argument " << index
                                    << " is a part of the optimizer's state and does not "
                                       "say of which parameter; give it dtc.slot_of";
    auto kind = param  ? exec::BufferKind::Parameter
                : slot ? exec::BufferKind::OptimizerState
                       : exec::BufferKind::Input;
    Value buffer = allocate(arg, kind, /*reusable=*/false);
    if (param || slot) {
      auto fileShape = function.getArgAttrOfType<DenseI64ArrayAttr>(index, "dtc.file_shape");
      StringAttr of =
          slot ? function.getArgAttrOfType<StringAttr>(index, "dtc.slot_of") : StringAttr();
      auto name = slot ? builder.getStringAttr(of.getValue() + "." + slot.getValue()) : param;
      exec::StateOp::create(declare, arg.getLoc(), buffer, name, of, shape,
                            fileShape ? fileShape : shape, sharding,
                            function.getArgAttr(index, "dtc.init"));
    } else {
      exec::InputOp::create(declare, arg.getLoc(), buffer, input ? input : scalar,
                            input ? builder.getStringAttr("data") : scalar, shape, sharding,
                            function.getArgAttrOfType<IntegerAttr>(index, "dtc.index_limit"));
    }
  }
  return success();
}

LogicalResult Lowering::lowerKernel(Operation &op) {
  auto kernelOp = dyn_cast<KernelOpInterface>(op);
  if (!kernelOp)
    return op.emitOpError() << "has no kernel; implement KernelOpInterface";
  NamedAttrList attributes(kernelOp.getKernelAttributes());
  SmallVector<Value> inputs, outputs;
  for (OpOperand &operand : op.getOpOperands()) {
    Value value = source(operand);
    if (value != operand.get())
      attributes.set(kernelOp.getBroadcastAttribute(operand.getOperandNumber()),
                     operand.get().getDefiningOp<BroadcastOp>().getDimsAttr());
    inputs.push_back(bufferOf.at(value));
  }
  auto pairs = kernelOp.getInPlacePairs();
  for (unsigned index = 0; index < op.getNumResults(); ++index)
    outputs.push_back(allocateResult(op, index, pairs));
  double flops = 0;
  if (auto rule = dyn_cast<ShardingRuleOpInterface>(op))
    flops = rule.getFlops();
  kernel(op.getLoc(), kernelOp.getKernelName(), inputs, outputs,
         attributes.getDictionary(op.getContext()), flops);
  return success();
}

LogicalResult Lowering::lowerCollective(Operation &op, exec::CollectiveKind kind,
                                        std::optional<dist::ReductionKind> reduction,
                                        ArrayAttr axes, int64_t dim, int64_t splitDim) {
  Value input = bufferOf.at(op.getOperand(0));
  SmallVector<std::pair<unsigned, unsigned>> inPlace;
  if (kind == exec::CollectiveKind::AllReduce)
    inPlace.push_back({0, 0});
  Value output = allocateResult(op, 0, inPlace);
  exec::CollectiveOp::create(
      builder, op.getLoc(), exec::CollectiveKindAttr::get(op.getContext(), kind),
      reduction ? dist::ReductionKindAttr::get(op.getContext(), *reduction)
                : dist::ReductionKindAttr(),
      axes, input, output, builder.getI64IntegerAttr(dim), builder.getI64IntegerAttr(splitDim));
  return success();
}

LogicalResult Lowering::lowerOp(Operation &op) {
  if (auto broadcast = dyn_cast<BroadcastOp>(op); broadcast && isFolded(broadcast))
    return success();
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    Value view = exec::ViewOp::create(declare, op.getLoc(), bufferType(reshape.getType()),
                                      bufferOf.at(reshape.getOperand()));
    share(reshape.getResult(), storageOf.at(reshape.getOperand()), view);
    return success();
  }
  using exec::CollectiveKind;
  if (auto reduce = dyn_cast<dist::AllReduceOp>(op))
    return lowerCollective(op, CollectiveKind::AllReduce, reduce.getKind(), reduce.getAxes());
  if (auto gather = dyn_cast<dist::AllGatherOp>(op))
    return lowerCollective(op, CollectiveKind::AllGather, {}, gather.getAxes(), gather.getDim());
  if (auto scatter = dyn_cast<dist::ReduceScatterOp>(op))
    return lowerCollective(op, CollectiveKind::ReduceScatter, scatter.getKind(), scatter.getAxes(),
                           scatter.getDim());
  if (auto exchange = dyn_cast<dist::AllToAllOp>(op))
    return lowerCollective(op, CollectiveKind::AllToAll, {}, exchange.getAxes(), exchange.getDim(),
                           exchange.getSplitDim());
  if (auto loop = dyn_cast<dist::MicrobatchLoopOp>(op))
    return lowerLoop(loop);
  if (auto ret = dyn_cast<func::ReturnOp>(op))
    return lowerReturn(ret);
  return lowerKernel(op);
}

void Lowering::beginTask(StringRef name, int64_t count) {
  builder.setInsertionPointToEnd(&program.getBody().front());
  auto task = exec::TaskOp::create(builder, function.getLoc(), name);
  builder.createBlock(&task.getBody());
  tasks.push_back(task);
  repetitions.push_back(count);
}

LogicalResult Lowering::lowerLoop(dist::MicrobatchLoopOp loop) {
  if (tasks.size() > 1)
    return loop.emitOpError() << "is a second loop over microbatches, expected one in a program";
  auto meshOp = dist::lookupMesh(loop, mesh);
  int64_t count = 1;
  for (auto axis : meshOp.getAxes().getAsRange<dist::AxisAttr>())
    if (axis.getName() == loop.getAxisAttr())
      count = axis.getSize();

  beginTask("microbatch", count);
  for (Value result : loop.getResults())
    allocate(result, kindOf(result), !returned.contains(result));
  inLoop = true;
  for (Operation &op : loop.getBody().front().without_terminator())
    if (failed(lowerOp(op)))
      return failure();
  auto yield = cast<dist::YieldOp>(loop.getBody().front().getTerminator());
  for (auto [value, result] : llvm::zip_equal(yield.getValues(), loop.getResults()))
    kernel(value.getLoc(), "accumulate", bufferOf.at(value), bufferOf.at(result),
           builder.getDictionaryAttr(builder.getNamedAttr("axis", loop.getAxisAttr())));
  inLoop = false;
  beginTask("update");
  return success();
}

LogicalResult Lowering::lowerReturn(func::ReturnOp op) {
  auto copy = [&](Location loc, Value from, Value to) {
    kernel(loc, "copy", from, to, builder.getDictionaryAttr({}));
  };
  // What lies in the storage of a state that a copy overwrites is saved before.
  llvm::DenseSet<unsigned> overwritten;
  for (auto [index, value] : llvm::enumerate(op.getOperands()))
    if (auto argument = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates")) {
      unsigned state = storageOf.at(function.getArgument(argument.getInt()));
      if (storageOf.at(value) != state)
        overwritten.insert(state);
    }
  auto saved = [&](Value value, exec::BufferKind kind) {
    Value from = bufferOf.at(value);
    if (!overwritten.contains(storageOf.at(value)))
      return from;
    Value buffer = exec::BufferOp::create(declare, value.getLoc(), bufferType(value.getType()),
                                          kind, IntegerAttr());
    copy(op.getLoc(), from, buffer);
    return buffer;
  };
  SmallVector<std::pair<Value, Value>> copies;
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    if (auto argument = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates")) {
      BlockArgument state = function.getArgument(argument.getInt());
      if (storageOf.at(value) == storageOf.at(state))
        continue;
      copies.push_back({saved(value, exec::BufferKind::Activation), bufferOf.at(state)});
      continue;
    }
    auto name = function.getResultAttrOfType<StringAttr>(index, "dtc.output");
    auto shape = function.getResultAttrOfType<DenseI64ArrayAttr>(index, "dtc.global_shape");
    auto sharding =
        function.getResultAttrOfType<dist::ShardingAttr>(index, dist::kShardingAttrName);
    if (!shape || !sharding)
      return function.emitOpError() << "is not partitioned: result " << index
                                    << " has no global shape; run dtc-spmd-partition first";
    exec::OutputOp::create(declare, value.getLoc(), saved(value, exec::BufferKind::Output),
                           name ? name : builder.getStringAttr("result" + Twine(index)), shape,
                           sharding);
  }
  for (auto [from, to] : copies)
    copy(op.getLoc(), from, to);
  return success();
}

LogicalResult Lowering::run() {
  if (failed(checkProgram(function, mesh.getValue())))
    return failure();
  declare.setInsertionPoint(function);
  program = exec::ProgramOp::create(declare, function.getLoc(),
                                    builder.getStringAttr(function.getSymName()), mesh,
                                    IntegerAttr(), IntegerAttr(), DictionaryAttr());
  declare.createBlock(&program.getBody());
  beginTask(function.getOps<dist::MicrobatchLoopOp>().empty() ? "step" : "prepare");
  declare.setInsertionPoint(tasks.front());
  number();
  markGradients();
  if (failed(lowerArguments()))
    return failure();
  for (Operation &op : function.front())
    if (failed(lowerOp(op)))
      return failure();

  builder.setInsertionPointToEnd(&program.getBody().front());
  for (auto [task, count] : llvm::zip_equal(tasks, repetitions)) {
    if (task.getBody().front().empty()) {
      task.erase();
      continue;
    }
    for (int64_t microbatch = 0; microbatch < count; ++microbatch)
      exec::RunOp::create(builder, function.getLoc(), task.getSymName(), microbatch);
  }
  function.erase();
  return success();
}

namespace {
struct LowerToExecPass : dtc::impl::LowerToExecPassBase<LowerToExecPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(forEachFunction(getOperation(), [](func::FuncOp function, const Mesh &mesh) {
          auto ref = FlatSymbolRefAttr::get(function.getContext(), mesh.name);
          return Lowering(function, ref).run();
        })))
      signalPassFailure();
  }
};
} // namespace
