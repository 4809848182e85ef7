//===- LoweringSignature.cpp - States, inputs and outputs ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/collectives/CompressionMethod.h"
#include "compiler/passes/exec/Lowering.h"
#include "support/OuterEntries.h"
#include "support/StepStateKinds.h"

using namespace mlir;
using namespace dtc;

LogicalResult Lowering::lowerArguments() {
  OpBuilder &declare = program.declarations();
  for (BlockArgument arg : function.getArguments()) {
    unsigned index = arg.getArgNumber();
    auto shape = function.getArgAttrOfType<DenseI64ArrayAttr>(index, "dtc.global_shape");
    auto sharding = function.getArgAttrOfType<dist::ShardingAttr>(index, dist::kShardingAttrName);
    auto param = function.getArgAttrOfType<StringAttr>(index, "dtc.param");
    auto state = function.getArgAttrOfType<StringAttr>(index, "dtc.state");
    auto cache = function.getArgAttrOfType<StringAttr>(index, "dtc.cache");
    auto input = function.getArgAttrOfType<StringAttr>(index, "dtc.input");
    auto stepState = function.getArgAttrOfType<StringAttr>(index, DtcDialect::kStepStateAttrName);
    auto scalar = function.getArgAttrOfType<StringAttr>(index, "dtc.scalar");
    if (!shape || !sharding)
      return function.emitOpError() << "is not partitioned: argument " << index
                                    << " has no global shape; run dtc-spmd-partition first";
    if (!param && !state && !cache && !stepState && !input && !scalar)
      return function.emitOpError() << "argument " << index
                                    << " is neither a parameter nor an input; give "
                                       "it dtc.param or dtc.input";
    if (state && !function.getArgAttrOfType<StringAttr>(index, "dtc.state_of"))
      return function.emitOpError() << "argument " << index
                                    << " is a part of the optimizer's state and does not "
                                       "say of which parameter; give it dtc.state_of";
    bool isMaster = state && state.getValue() == "master";
    auto kind = param      ? BufferKind::Parameter
                : isMaster ? BufferKind::MasterWeight
                : state    ? BufferKind::OptimizerState
                : cache    ? BufferKind::Cache
                           : BufferKind::Input;
    Value buffer = buffers.allocate(arg, kind, /*reusable=*/false);
    if (param || state || cache || stepState) {
      auto fileShape = function.getArgAttrOfType<DenseI64ArrayAttr>(index, "dtc.file_shape");
      StringAttr of =
          state ? function.getArgAttrOfType<StringAttr>(index, "dtc.state_of") : StringAttr();
      auto name = state       ? declare.getStringAttr(of.getValue() + "." + state.getValue())
                  : cache     ? cache
                  : stepState ? declare.getStringAttr("dtc." + stepState.getValue())
                              : param;
      Attribute init = function.getArgAttr(index, "dtc.init");
      if (stepState && findStepStateKind(stepState.getValue())->startsAsOne)
        init = OnesAttr::get(function.getContext());
      if (state && state.getValue().starts_with(kFactorStateName))
        init = UniformAttr::get(function.getContext(), 1.0);
      if (state && state.getValue() == kOuterNoiseState)
        init = NormalAttr::get(function.getContext(), 1.0);
      exec::StateOp::create(declare, arg.getLoc(), buffer, name, of, shape,
                            fileShape ? fileShape : shape, sharding, init, isMaster, bool(cache),
                            stepState);
      stateNames[arg] = name;
    } else {
      exec::InputOp::create(declare, arg.getLoc(), buffer, input ? input : scalar,
                            input ? declare.getStringAttr("data") : scalar, shape, sharding,
                            function.getArgAttrOfType<IntegerAttr>(index, "dtc.index_limit"),
                            function.getArgAttrOfType<IntegerAttr>(index, "dtc.ignored_index"));
    }
  }
  return success();
}

LogicalResult Lowering::lowerReturn(func::ReturnOp op) {
  OpBuilder &declare = program.declarations();
  auto copy = [&](Location loc, Value from, Value to) {
    program.kernel(loc, "copy", from, to, declare.getDictionaryAttr({}));
  };
  // Values in the storage of a state that a copy overwrites are saved before.
  llvm::DenseSet<unsigned> overwritten;
  for (auto [index, value] : llvm::enumerate(op.getOperands()))
    if (auto argument = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates")) {
      unsigned state = buffers.storageOf(function.getArgument(argument.getInt()));
      if (buffers.storageOf(value) != state)
        overwritten.insert(state);
    }
  auto saved = [&](Value value, BufferKind kind) {
    Value from = buffers.bufferOf(value);
    if (!overwritten.contains(buffers.storageOf(value)))
      return from;
    Value buffer = exec::BufferOp::create(declare, value.getLoc(), bufferType(value), kind,
                                          IntegerAttr(), IntegerAttr(), DenseI64ArrayAttr());
    copy(op.getLoc(), from, buffer);
    return buffer;
  };
  auto update = [&](BlockArgument state, Value buffer) {
    Value made = buffer;
    while (auto view = made.getDefiningOp<exec::ViewOp>())
      made = view.getSource();
    if (made != buffers.bufferOf(state)) // else the state is returned as it came
      exec::UpdateOp::create(declare, state.getLoc(), buffer, stateNames.at(state));
  };
  SmallVector<std::pair<Value, BlockArgument>> copies;
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    if (auto argument = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates")) {
      BlockArgument state = function.getArgument(argument.getInt());
      if (buffers.storageOf(value) == buffers.storageOf(state))
        update(state, buffers.bufferOf(value));
      else
        copies.push_back({saved(value, BufferKind::Activation), state});
      continue;
    }
    auto metric = function.getResultAttrOfType<StringAttr>(index, DtcDialect::kMetricAttrName);
    auto name = function.getResultAttrOfType<StringAttr>(index, "dtc.output");
    if (!name)
      name = metric;
    auto shape = function.getResultAttrOfType<DenseI64ArrayAttr>(index, "dtc.global_shape");
    auto sharding =
        function.getResultAttrOfType<dist::ShardingAttr>(index, dist::kShardingAttrName);
    if (!shape || !sharding)
      return function.emitOpError() << "is not partitioned: result " << index
                                    << " has no global shape; run dtc-spmd-partition first";
    exec::OutputOp::create(declare, value.getLoc(), saved(value, BufferKind::Output),
                           name ? name : declare.getStringAttr("result" + Twine(index)), shape,
                           sharding, bool(metric),
                           bool(function.getResultAttr(index, DtcDialect::kMustBeZeroAttrName)));
  }
  for (auto [from, state] : copies) {
    Value updated = exec::ReuseOp::create(declare, state.getLoc(), buffers.bufferOf(state));
    copy(op.getLoc(), from, updated);
    update(state, updated);
  }
  return success();
}
