//===- CheckProgram.cpp - Checks of the preconditions of passes -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dtc;

LogicalResult
dtc::forEachFunction(ModuleOp module,
                     llvm::function_ref<LogicalResult(func::FuncOp, const LinkedMesh &)> body) {
  FailureOr<dist::MeshOp> op = findMesh(module);
  if (failed(op))
    return failure();
  LinkedMesh mesh = getMesh(*op);
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (!function.isExternal() && failed(body(function, mesh)))
      return failure();
  return success();
}

bool dtc::isStateArgument(func::FuncOp function, unsigned index) {
  return function.getArgAttr(index, DtcDialect::kParamAttrName) ||
         function.getArgAttr(index, "dtc.state") || function.getArgAttr(index, "dtc.cache") ||
         isStepState(function, index);
}

bool dtc::isStepState(func::FuncOp function, unsigned index) {
  return bool(function.getArgAttr(index, DtcDialect::kStepStateAttrName));
}

void dtc::eraseArguments(func::FuncOp function, const llvm::BitVector &unused) {
  Builder builder(function.getContext());
  SmallVector<int64_t> numbers;
  int64_t next = 0;
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    numbers.push_back(next);
    next += !unused[index];
  }
  (void)function.eraseArguments(unused);
  for (unsigned result = 0; result < function.getNumResults(); ++result)
    if (auto updates = function.getResultAttrOfType<IntegerAttr>(result, "dtc.updates"))
      function.setResultAttr(result, "dtc.updates",
                             builder.getI64IntegerAttr(numbers[updates.getInt()]));
}

LogicalResult dtc::checkOption(ModuleOp module, StringRef name, int64_t value, int64_t least,
                               int64_t most) {
  if (value >= least && value <= most)
    return success();
  Block &body = *module.getBody();
  auto error = emitError(body.empty() ? module.getLoc() : body.front().getLoc())
               << "the option " << name << " is " << value << ", expected ";
  if (value < least)
    return error << "at least " << least;
  return error << "at most " << most;
}

LogicalResult dtc::checkDataAxis(ModuleOp module, const LinkedMesh &mesh, StringRef axis,
                                 StringRef what) {
  std::optional<unsigned> found = mesh.find(axis);
  if (found && !mesh.isTemporal(*found) && !mesh.axes[*found].pipeline)
    return success();
  SmallVector<StringRef> names;
  for (const LinkedAxis &each : mesh.axes)
    if (!each.temporal && !each.pipeline)
      names.push_back(each.name);
  auto error = module.emitError() << what << " \"" << axis << "\", ";
  if (AxisList parts = mesh.findAll(axis); !found && !parts.empty())
    return error << "which is cut into " << mesh.str(parts)
                 << "; leave the dimension whole that cuts it";
  return error << "expected an axis of devices with different samples: the mesh has "
               << (names.empty() ? "none" : llvm::join(names, ", "));
}

static LogicalResult checkType(Operation *op, const Twine &what, Type type, Location loc) {
  auto error = [&] { return emitError(loc) << "'" << op->getName() << "' op " << what << " has "; };
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor && tensor.getRank() > kMaxRank)
    return error() << tensor.getRank() << " dimensions, expected at most " << kMaxRank
                   << ", which is what plans hold";
  // In the local view, passes may have given a tensor 8 bits.
  if (isStoredTensor(type))
    return success();
  // The one rule of the dialect's tensors that their type does not show.
  auto one = tensor ? RankedTensorType::get({}, tensor.getElementType(), tensor.getEncoding())
                    : RankedTensorType();
  if (tensor && isAnyTensor(one) && tensor.hasStaticShape() &&
      llvm::all_of(tensor.getShape(), [](int64_t size) { return size > 0; }))
    return error() << "type " << type
                   << ", more than 2^56 elements, so that their bytes cannot be counted; make it "
                      "smaller";
  return error()
         << "type " << type
         << ", expected a ranked tensor of f32, f64, bf16, f16, i32 or i1 with static sizes "
            "of at least 1";
}

/// Checks the results that are the new values of arguments.
static LogicalResult checkUpdates(func::FuncOp function) {
  llvm::DenseMap<int64_t, unsigned> updatedBy;
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    auto updates = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates");
    if (!updates)
      continue;
    unsigned argument = updates.getInt(); // in range: the dialect checks it
    auto error = [&] {
      return function.emitOpError() << "result " << index << " updates argument " << argument;
    };
    if (!isStateArgument(function, argument))
      return error()
             << ", expected a parameter, a part of the optimizer's state, a cache or a step "
                "state";
    Type found = function.getResultTypes()[index], expected = function.getArgumentTypes()[argument];
    if (found != expected)
      return error() << " and has type " << found << ", expected the argument's, " << expected;
    auto [it, fresh] = updatedBy.try_emplace(argument, index);
    if (!fresh)
      return error() << ", which result " << it->second << " does already";
  }
  return success();
}

LogicalResult dtc::checkProgram(func::FuncOp function) {
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitOpError() << "has branches, expected straight-line code";
  if (!isa<func::ReturnOp>(function.front().back()))
    return function.front().back().emitOpError() << "ends a function, expected a return";
  for (BlockArgument arg : function.getArguments())
    if (failed(checkType(function, "argument " + Twine(arg.getArgNumber()), arg.getType(),
                         arg.getLoc())))
      return failure();
  auto checked = function.front().walk([](Operation *op) -> WalkResult {
    for (OpResult result : op->getResults())
      if (failed(checkType(op, "result " + Twine(result.getResultNumber()), result.getType(),
                           op->getLoc())))
        return failure();
    return success();
  });
  return checked.wasInterrupted() ? failure() : checkUpdates(function);
}

LogicalResult dtc::checkProgram(func::FuncOp function, StringRef mesh) {
  if (failed(checkProgram(function)))
    return failure();
  auto check = [&](Operation *op, FlatSymbolRefAttr used) -> LogicalResult {
    if (!used || used.getValue() == mesh)
      return success();
    return op->emitOpError() << "uses the mesh " << used << ", expected @" << mesh
                             << ", the one of the module";
  };
  auto checkSharding = [&](Operation *op, Attribute attr) {
    auto sharding = dyn_cast_or_null<dist::ShardingAttr>(attr);
    return check(op, sharding ? sharding.getMesh() : FlatSymbolRefAttr());
  };
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (failed(checkSharding(function, function.getArgAttr(index, dist::kShardingAttrName))))
      return failure();
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (failed(checkSharding(function, function.getResultAttr(index, dist::kShardingAttrName))))
      return failure();
  auto checked = function.front().walk([&](Operation *op) -> WalkResult {
    for (Value result : op->getResults())
      if (failed(checkSharding(op, dist::getSharding(result))))
        return failure();
    if (!isa_and_nonnull<dist::DistDialect>(op->getDialect()))
      return success();
    for (NamedAttribute attr : op->getAttrs()) {
      auto name = dyn_cast<FlatSymbolRefAttr>(attr.getValue());
      if (failed(checkSharding(op, attr.getValue())) || failed(check(op, name)))
        return failure();
    }
    return success();
  });
  return failure(checked.wasInterrupted());
}

FailureOr<dist::MicrobatchLoopOp>
dtc::findMicrobatchLoop(func::FuncOp function, const LinkedMesh &mesh, StringRef before) {
  if (failed(checkProgram(function, mesh.name)))
    return failure();
  auto loops = llvm::to_vector(function.getOps<dist::MicrobatchLoopOp>());
  if (loops.size() == 1 && !loops.front().getSchedule())
    return loops.front();
  function.emitOpError() << "has " << loops.size()
                         << " loops over microbatches, expected one without a schedule; run "
                         << before << " first";
  return failure();
}

LogicalResult dtc::checkShardings(func::FuncOp function) {
  auto check = [&](Operation *op, const Twine &what, Value value) -> LogicalResult {
    auto sharding = dist::getSharding(value);
    if (!sharding)
      return op->emitOpError() << what << " has no sharding; run dtc-propagate-shardings first";
    return success();
  };
  for (BlockArgument arg : function.getArguments())
    if (failed(check(function, "argument " + Twine(arg.getArgNumber()), arg)))
      return failure();
  for (Operation &op : function.front().without_terminator()) {
    if (!isa<ShardingRuleOpInterface, dist::ReshardOp>(op))
      return op.emitOpError() << "has no sharding rule; implement ShardingRuleOpInterface";
    for (OpResult result : op.getResults())
      if (failed(check(&op, "result " + Twine(result.getResultNumber()), result)))
        return failure();
  }
  return success();
}
