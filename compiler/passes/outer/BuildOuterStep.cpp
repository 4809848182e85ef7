//===- BuildOuterStep.cpp - The outer step of replicas --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/outer/OuterPasses.h"
#include "compiler/passes/train/ProximalTerm.h"
#include "compiler/passes/train/RemoveDropout.h"
#include "dialects/dtc/WeightsAttributes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include <optional>

namespace dtc {
#define GEN_PASS_DEF_BUILDOUTERSTEPPASS
#include "compiler/passes/OuterPasses.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// A parameter that trains. The weights are its master weights, or the parameter itself.
struct TrainedWeights {
  StringAttr name;
  BlockArgument parameter, weights;
  unsigned update = 0;                     ///< the result that is the new value of the weights
  std::optional<unsigned> parameterUpdate; ///< that of the parameter, if it has master weights
};

class OuterStepBuilder {
public:
  OuterStepBuilder(func::FuncOp function, const LinkedMesh &mesh,
                   const BuildOuterStepPassOptions &options)
      : function(function), mesh(mesh), options(options), builder(function.getContext()),
        ret(function.front().getTerminator()) {}

  LogicalResult run();

private:
  void findWeights();
  BlockArgument addState(const TrainedWeights &trained, StringRef name);
  void update(BlockArgument state, Value value);
  void build(const TrainedWeights &trained);
  LogicalResult eraseRest();

  func::FuncOp function;
  const LinkedMesh &mesh;
  const BuildOuterStepPassOptions &options;
  OpBuilder builder;
  Operation *ret;
  SmallVector<TrainedWeights> weights;
  llvm::DenseMap<Attribute, BlockArgument> outerParameters; ///< those of the train step
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> resultAttrs;
};

} // namespace

/// In the order of the parameters.
void OuterStepBuilder::findWeights() {
  llvm::StringMap<BlockArgument> masters;
  llvm::DenseMap<unsigned, unsigned> updateOf; // by argument
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (auto updates = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates"))
      updateOf[unsigned(updates.getInt())] = index;
  for (BlockArgument arg : function.getArguments()) {
    auto state = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), "dtc.state");
    if (state && state.getValue() == "master")
      masters[function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), "dtc.state_of")] = arg;
  }
  for (BlockArgument arg : function.getArguments()) {
    auto name =
        function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), DtcDialect::kParamAttrName);
    auto found = updateOf.find(arg.getArgNumber());
    if (!name || found == updateOf.end())
      continue;
    TrainedWeights trained{name, arg, arg, found->second, std::nullopt};
    if (BlockArgument master = masters.lookup(name.getValue())) {
      trained.weights = master;
      trained.update = updateOf.at(master.getArgNumber());
      trained.parameterUpdate = found->second;
    }
    weights.push_back(trained);
  }
}

/// A new part of the optimizer's state of the parameter, which lies as its weights do.
BlockArgument OuterStepBuilder::addState(const TrainedWeights &trained, StringRef name) {
  unsigned from = trained.weights.getArgNumber(), index = function.getNumArguments();
  NamedAttrList attrs;
  attrs.set("dtc.state", builder.getStringAttr(name));
  attrs.set("dtc.state_of", trained.name);
  for (StringRef kept : {StringRef("dtc.file_shape"), StringRef("dtc.global_shape"),
                         StringRef(dist::kShardingAttrName)})
    if (Attribute attr = function.getArgAttr(from, kept))
      attrs.set(kept, attr);
  (void)function.insertArgument(index, trained.weights.getType(),
                                attrs.getDictionary(builder.getContext()),
                                trained.weights.getLoc());
  return function.getArgument(index);
}

void OuterStepBuilder::update(BlockArgument state, Value value) {
  results.push_back(value);
  resultAttrs.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
      "dtc.updates", builder.getI64IntegerAttr(int64_t(state.getArgNumber())))));
}

void OuterStepBuilder::build(const TrainedWeights &trained) {
  Value old = ret->getOperand(trained.update);
  // What rounds the new weights to the parameter comes after what made them.
  if (Operation *made = old.getDefiningOp())
    builder.setInsertionPointAfter(made);
  else
    builder.setInsertionPointToStart(&function.front());
  const bool hasMomentum = options.step == "nesterov";
  // The train step has them for its proximal term.
  BlockArgument outer = outerParameters.lookup(trained.name);
  if (!outer && (options.begins || hasMomentum || options.compressed))
    outer = addState(trained, kOuterParametersState);
  if (options.begins) {
    update(outer, trained.weights);
    return;
  }
  Location loc = trained.weights.getLoc();
  int64_t replicas = mesh.axes[*mesh.find(options.axis)].size;
  auto mean = [&](Value value) {
    Value sum = reducedOver(builder, value, ReductionKind::Sum, mesh.name, options.axis,
                            trained.name.getValue());
    if (options.compressed)
      sum.getDefiningOp()->setAttr(kOuterGradientAttrName, builder.getUnitAttr());
    return multiplied(builder, sum, 1.0 / double(replicas));
  };
  // What has changed is small, so that less of it is lost in a compressed form than of the weights.
  Value gradient, weights;
  if (options.compressed) {
    gradient = mean(SubOp::create(builder, loc, outer, trained.weights));
    weights = SubOp::create(builder, loc, outer, gradient);
  } else {
    weights = mean(trained.weights);
  }
  if (hasMomentum) {
    BlockArgument momentum = addState(trained, "outer_momentum");
    if (!gradient)
      gradient = SubOp::create(builder, loc, outer, weights);
    Value newMomentum =
        AddOp::create(builder, loc, multiplied(builder, momentum, options.momentum), gradient);
    Value direction =
        AddOp::create(builder, loc, gradient, multiplied(builder, newMomentum, options.momentum));
    weights =
        SubOp::create(builder, loc, outer, multiplied(builder, direction, options.learningRate));
    update(momentum, newMomentum);
  }
  if (outer)
    update(outer, weights);
  old.replaceAllUsesWith(weights);
  update(trained.weights, weights);
  if (trained.parameterUpdate)
    update(trained.parameter, ret->getOperand(*trained.parameterUpdate));
}

/// Leaves what the results need.
LogicalResult OuterStepBuilder::eraseRest() {
  ret->setOperands(results);
  function.setType(FunctionType::get(builder.getContext(), function.getArgumentTypes(),
                                     TypeRange(ValueRange(results))));
  function.setAllResultAttrs(resultAttrs);
  SmallVector<Operation *> ops;
  for (Operation &op : function.front().without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
  for (Operation &op : function.front())
    if (isa<dist::MicrobatchLoopOp, dist::SendOp, dist::ReceiveOp>(op))
      return op.emitOpError() << "is needed to round the parameters of an outer step, which has "
                                 "no microbatches";
  eraseUnusedInputs(function);
  return success();
}

LogicalResult OuterStepBuilder::run() {
  if (failed(checkProgram(function, mesh.name)))
    return failure();
  findWeights();
  outerParameters = findOuterParameters(function);
  for (const TrainedWeights &trained : weights)
    build(trained);
  function.setSymName(((options.begins ? "outer_begin_" : "outer_") + function.getSymName()).str());
  return eraseRest();
}

namespace {
struct BuildOuterStepPass : dtc::impl::BuildOuterStepPassBase<BuildOuterStepPass> {
  using Base::Base;

  void runOnOperation() override {
    if (step != "mean" && step != "nesterov") {
      getOperation().emitError() << "unknown outer step '" << step
                                 << "'; known are mean and nesterov";
      return signalPassFailure();
    }
    BuildOuterStepPassOptions given{axis, step, learningRate, momentum, compressed, begins};
    if (failed(forEachFunction(
            getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) -> LogicalResult {
              if (!begins && !mesh.find(axis))
                return function.emitError() << "the mesh has no axis \"" << axis << "\"";
              return OuterStepBuilder(function, mesh, given).run();
            })))
      signalPassFailure();
  }
};
} // namespace
