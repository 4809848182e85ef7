//===- BuildOuterStep.cpp - The outer step of replicas --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/outer/OuterStepBuilder.h"
#include "compiler/passes/train/ProximalTerm.h"
#include "compiler/passes/train/RemoveDropout.h"
#include "dialects/dtc/WeightsAttributes.h"
#include "support/OuterEntries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

namespace dtc {
#define GEN_PASS_DEF_BUILDOUTERSTEPPASS
#include "compiler/passes/OuterPasses.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

/// In the order of the parameters.
void OuterStepBuilder::findWeights() {
  llvm::StringMap<BlockArgument> masters;
  llvm::StringMap<SmallVector<BlockArgument, 4>> optimizerStates;
  llvm::DenseMap<unsigned, unsigned> updateOf; // by argument
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (auto updates = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates"))
      updateOf[unsigned(updates.getInt())] = index;
  for (BlockArgument arg : function.getArguments()) {
    auto state = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), "dtc.state");
    if (!state)
      continue;
    auto of = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), "dtc.state_of");
    if (state.getValue() == "master")
      masters[of] = arg;
    else if (updateOf.contains(arg.getArgNumber()))
      optimizerStates[of].push_back(arg);
  }
  for (BlockArgument arg : function.getArguments()) {
    auto name =
        function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), DtcDialect::kParamAttrName);
    auto found = updateOf.find(arg.getArgNumber());
    if (!name || found == updateOf.end())
      continue;
    TrainedWeights trained{name,
                           arg,
                           arg,
                           fragmentOf.lookup(name.getValue()),
                           found->second,
                           std::nullopt,
                           optimizerStates.lookup(name.getValue())};
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

/// A constant of the type of `like`.
Value OuterStepBuilder::splat(Value like, double value) {
  auto type = cast<RankedTensorType>(like.getType());
  Value scalar = ConstantOp::create(builder, like.getLoc(),
                                    RankedTensorType::get({}, type.getElementType()), value);
  return everywhere(scalar, like);
}

/// Broadcasts a scalar, which may be a mask, to the shape of `like`.
Value OuterStepBuilder::everywhere(Value scalar, Value like) {
  auto shape = cast<RankedTensorType>(like.getType()).getShape();
  if (shape.empty())
    return scalar;
  auto type =
      RankedTensorType::get(shape, cast<RankedTensorType>(scalar.getType()).getElementType());
  return BroadcastOp::create(builder, like.getLoc(), type, scalar, ArrayRef<int64_t>());
}

/// The mean over the replicas of a value of the shape of the weights, or with clients the sum of
/// those that are weighted.
Value OuterStepBuilder::averaged(const TrainedWeights &trained, Value value) {
  if (options.clients)
    value = MulOp::create(builder, value.getLoc(), value,
                          everywhere(givenFor(value, clientWeight), value));
  Value sum = reducedOver(builder, value, ReductionKind::Sum, mesh.name, options.axis,
                          trained.name.getValue());
  if (options.compressed)
    sum.getDefiningOp()->setAttr(kOuterGradientAttrName, builder.getUnitAttr());
  int64_t replicas = mesh.axes[*mesh.find(options.axis)].size;
  return options.clients ? sum : multiplied(builder, sum, 1.0 / double(replicas));
}

/// The mean of the weights over the replicas. `outer` may be null.
Value OuterStepBuilder::meanOf(const TrainedWeights &trained, BlockArgument outer) {
  Location loc = trained.weights.getLoc();
  Value own = trained.weights;
  if (options.clients) {
    // Weights that are not finite must not get into a product with 0.
    Value weight = givenFor(own, clientWeight);
    Value isTaken =
        CompareOp::create(builder, loc, weight, splat(weight, 0), ComparePredicate::Greater);
    own = SelectOp::create(builder, loc, everywhere(isTaken, own), own, outer);
  }
  // Changes are small, so that their compressed form loses less than that of the weights.
  // With noise, weights of clients that are clipped add up to less than 1.
  if (!options.compressed && !options.noise)
    return averaged(trained, own);
  Value gradient = averaged(trained, SubOp::create(builder, loc, outer, own));
  if (options.noise)
    gradient = AddOp::create(builder, loc, gradient, noiseOf(trained));
  return SubOp::create(builder, loc, outer, gradient);
}

/// The weights after an outer step that makes the outer parameters `outer`.
///
/// Source: Douillard et al. 2025, "Streaming DiLoCo with overlapping communication", algorithm 2.
Value OuterStepBuilder::blended(const TrainedWeights &trained, Value outer) {
  if (options.blend == 0)
    return outer;
  Value own = multiplied(builder, trained.weights, options.blend);
  return AddOp::create(builder, outer.getLoc(), own, multiplied(builder, outer, 1 - options.blend));
}

void OuterStepBuilder::build(const TrainedWeights &trained) {
  Value old = ret->getOperand(trained.update);
  // The ops that round the new weights to the parameter come after the op that made these.
  if (Operation *made = old.getDefiningOp())
    builder.setInsertionPointAfter(made);
  else
    builder.setInsertionPoint(clientWeight ? ret : &function.front().front());
  // The train step has them for its proximal term.
  BlockArgument outer = outerParameters.lookup(trained.name);
  if (!outer && (options.begins || options.step != "mean" || options.compressed ||
                 options.clients || options.part != "whole"))
    outer = addState(trained, kOuterParametersState);
  if (options.begins)
    return begin(trained, outer);
  Location loc = trained.weights.getLoc();
  BlockArgument pending =
      options.part == "whole" ? BlockArgument() : addState(trained, kOuterPendingState);
  if (options.part == "take")
    return update(pending, SubOp::create(builder, loc, outer, trained.weights));
  if (options.part == "send")
    return update(pending, averaged(trained, pending));
  Value updated =
      pending ? SubOp::create(builder, loc, outer, pending).getResult() : meanOf(trained, outer);
  if (hasMomentum())
    updated = nesterov(trained, outer, updated);
  else if (hasMoments())
    updated = adaptive(trained, outer, updated);
  updated = outer ? unlessNone(updated, outer) : updated;
  if (outer)
    update(outer, updated);
  Value own = blended(trained, updated);
  old.replaceAllUsesWith(own);
  update(trained.weights, own);
  if (trained.parameterUpdate)
    update(trained.parameter, ret->getOperand(*trained.parameterUpdate));
  if (options.clients)
    for (BlockArgument state : trained.optimizerStates)
      update(state, splat(state, 0));
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
  if (options.clients && !options.begins && !options.checks)
    addClientInputs();
  if (options.checks)
    buildCheck();
  else
    for (const TrainedWeights &trained : weights)
      if (options.begins || trained.fragment == options.fragment)
        build(trained);
  std::string part = options.begins   ? "begin_"
                     : options.checks ? "check_"
                     : options.part == "whole"
                         ? ""
                         : options.part + "_" + std::to_string(options.fragment) + "_";
  function.setSymName(("outer_" + part + function.getSymName()).str());
  return eraseRest();
}

namespace {
struct BuildOuterStepPass : dtc::impl::BuildOuterStepPassBase<BuildOuterStepPass> {
  using Base::Base;

  void runOnOperation() override {
    if (!llvm::is_contained({"mean", "nesterov", "adam", "yogi", "adagrad"}, StringRef(step))) {
      getOperation().emitError() << "unknown outer step '" << step
                                 << "'; known are mean, nesterov, adam, yogi and adagrad";
      return signalPassFailure();
    }
    if (noise && !clients) {
      getOperation().emitError() << "noise is for clients; set clients as well";
      return signalPassFailure();
    }
    if (!llvm::is_contained({"whole", "take", "send", "apply"}, StringRef(part)) ||
        (clients && part != "whole")) {
      getOperation().emitError() << "part is '" << part << "', expected whole"
                                 << (clients ? ", as with clients" : ", take, send or apply");
      return signalPassFailure();
    }
    BuildOuterStepPassOptions given{axis,   step,      learningRate, momentum,   beta2,
                                    tau,    clients,   noise,        compressed, begins,
                                    checks, fragments, fragment,     part,       blend};
    auto fragmentOf = assignFragments(getOperation(), fragments);
    if (failed(fragmentOf) ||
        failed(checkOption(getOperation(), "fragment", fragment, 0, fragments - 1)))
      return signalPassFailure();
    unsigned number = 0;
    llvm::StringSet<> measured;
    if (failed(forEachFunction(
            getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) -> LogicalResult {
              if (!begins && !mesh.find(axis))
                return function.emitError() << "the mesh has no axis \"" << axis << "\"";
              return OuterStepBuilder(function, mesh, given, *fragmentOf, number++, measured).run();
            })))
      signalPassFailure();
  }
};
} // namespace
