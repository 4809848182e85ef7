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
#include "support/OuterEntries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

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
  SmallVector<BlockArgument, 4> optimizerStates; ///< of the inner optimizer
};

class OuterStepBuilder {
public:
  OuterStepBuilder(func::FuncOp function, const LinkedMesh &mesh,
                   const BuildOuterStepPassOptions &options, unsigned number)
      : function(function), mesh(mesh), options(options), number(number),
        builder(function.getContext()), ret(function.front().getTerminator()) {}

  LogicalResult run();

private:
  bool hasMomentum() const { return options.step == "nesterov"; }
  bool hasMoments() const { return options.step != "mean" && !hasMomentum(); }
  void findWeights();
  BlockArgument addState(const TrainedWeights &trained, StringRef name);
  void update(BlockArgument state, Value value);
  Value splat(Value like, double value);
  Value everywhere(Value scalar, Value like);
  Value addScalarInput(StringRef name, int64_t size, const Layout &layout);
  void addClientInputs();
  Value givenFor(Value like, Value given);
  Value unlessNone(Value updated, Value old);
  Value noiseOf(const TrainedWeights &trained);
  Value meanOf(const TrainedWeights &trained, BlockArgument outer);
  Value nesterov(const TrainedWeights &trained, BlockArgument outer, Value mean);
  Value adaptive(const TrainedWeights &trained, BlockArgument outer, Value mean);
  void begin(const TrainedWeights &trained, BlockArgument outer);
  void build(const TrainedWeights &trained);
  Value squaresOf(const TrainedWeights &trained);
  void addCheck(StringRef name, Value value);
  void buildCheck();
  LogicalResult eraseRest();

  func::FuncOp function;
  const LinkedMesh &mesh;
  const BuildOuterStepPassOptions &options;
  unsigned number; ///< of the function in the module
  OpBuilder builder;
  Operation *ret;
  Value clientWeight, anyClient; ///< scalars of clients: the replica's weight; whether one has some
  Value noiseScale;              ///< a scalar; null without noise
  SmallVector<TrainedWeights> weights;
  llvm::DenseMap<Attribute, BlockArgument> outerParameters; ///< those of the train step
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> resultAttrs;
};

} // namespace

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
    TrainedWeights trained{name,          arg,          arg,
                           found->second, std::nullopt, optimizerStates.lookup(name.getValue())};
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

/// Adds an input of `size` elements, and returns the one element that the layout gives a device, as
/// a scalar.
Value OuterStepBuilder::addScalarInput(StringRef name, int64_t size, const Layout &layout) {
  Type element = builder.getF32Type();
  for (const TrainedWeights &trained : weights)
    if (cast<RankedTensorType>(trained.weights.getType()).getElementType().isF64())
      element = builder.getF64Type();
  const unsigned index = function.getNumArguments();
  NamedAttrList attrs;
  attrs.set("dtc.input", builder.getStringAttr(name));
  attrs.set("dtc.global_shape", builder.getDenseI64ArrayAttr({size}));
  attrs.set(dist::kShardingAttrName, toAttr(builder.getContext(), mesh, layout));
  Location loc = NameLoc::get(builder.getStringAttr(name));
  (void)function.insertArgument(index, RankedTensorType::get({1}, element),
                                attrs.getDictionary(builder.getContext()), loc);
  return ReshapeOp::create(builder, loc, RankedTensorType::get({}, element),
                           function.getArgument(index));
}

/// Adds the inputs that the run gives: a weight for the client of each replica, and the scale of
/// the noise.
void OuterStepBuilder::addClientInputs() {
  const unsigned axis = *mesh.find(options.axis);
  Layout layout = Layout::replicated(1);
  builder.setInsertionPointToStart(&function.front());
  if (options.noise)
    noiseScale = addScalarInput(kNoiseScaleInput, 1, layout);
  layout.dims[0].push_back(axis);
  clientWeight = addScalarInput(kClientWeightsInput, mesh.axes[axis].size, layout);
  Value all = reducedOver(builder, clientWeight, ReductionKind::Sum, mesh.name, options.axis,
                          kClientWeightsInput);
  anyClient =
      CompareOp::create(builder, all.getLoc(), all, splat(all, 0), ComparePredicate::Greater);
}

/// Converts a scalar that the run gives to the element type of `like`.
Value OuterStepBuilder::givenFor(Value like, Value given) {
  Type element = cast<RankedTensorType>(like.getType()).getElementType();
  if (cast<RankedTensorType>(given.getType()).getElementType() == element)
    return given;
  return ConvertOp::create(builder, like.getLoc(), given, element);
}

/// The updated value, or the old one in an outer step that takes no client.
Value OuterStepBuilder::unlessNone(Value updated, Value old) {
  if (!options.clients)
    return updated;
  return SelectOp::create(builder, updated.getLoc(), everywhere(anyClient, old), updated, old);
}

/// Independent values of a normal distribution, times the scale.
Value OuterStepBuilder::noiseOf(const TrainedWeights &trained) {
  BlockArgument noise = addState(trained, kOuterNoiseState);
  return MulOp::create(builder, noise.getLoc(), noise,
                       everywhere(givenFor(noise, noiseScale), noise));
}

/// The mean of the weights over the replicas. `outer` may be null.
Value OuterStepBuilder::meanOf(const TrainedWeights &trained, BlockArgument outer) {
  Location loc = trained.weights.getLoc();
  int64_t replicas = mesh.axes[*mesh.find(options.axis)].size;
  Value own = trained.weights;
  if (options.clients) {
    // Weights that are not finite must not get into a product with 0.
    Value weight = givenFor(own, clientWeight);
    Value isTaken =
        CompareOp::create(builder, loc, weight, splat(weight, 0), ComparePredicate::Greater);
    own = SelectOp::create(builder, loc, everywhere(isTaken, own), own, outer);
  }
  auto mean = [&](Value value) -> Value {
    if (options.clients)
      value = MulOp::create(builder, loc, value, everywhere(givenFor(value, clientWeight), value));
    Value sum = reducedOver(builder, value, ReductionKind::Sum, mesh.name, options.axis,
                            trained.name.getValue());
    if (options.compressed)
      sum.getDefiningOp()->setAttr(kOuterGradientAttrName, builder.getUnitAttr());
    return options.clients ? sum : multiplied(builder, sum, 1.0 / double(replicas));
  };
  // Changes are small, so that their compressed form loses less than that of the weights.
  // With noise, weights of clients that are clipped add up to less than 1.
  if (!options.compressed && !options.noise)
    return mean(own);
  Value gradient = mean(SubOp::create(builder, loc, outer, own));
  if (options.noise)
    gradient = AddOp::create(builder, loc, gradient, noiseOf(trained));
  return SubOp::create(builder, loc, outer, gradient);
}

/// The outer parameters after a step of SGD with Nesterov momentum.
Value OuterStepBuilder::nesterov(const TrainedWeights &trained, BlockArgument outer, Value mean) {
  Location loc = trained.weights.getLoc();
  BlockArgument momentum = addState(trained, "outer_momentum");
  // The mean of changes is there where the mean was computed from them.
  auto difference = mean.getDefiningOp<SubOp>();
  Value gradient =
      difference ? difference.getRhs() : Value(SubOp::create(builder, loc, outer, mean));
  Value newMomentum =
      AddOp::create(builder, loc, multiplied(builder, momentum, options.momentum), gradient);
  Value direction =
      AddOp::create(builder, loc, gradient, multiplied(builder, newMomentum, options.momentum));
  update(momentum, unlessNone(newMomentum, momentum));
  return SubOp::create(builder, loc, outer, multiplied(builder, direction, options.learningRate));
}

/// The outer parameters after a step of an adaptive optimizer.
///
/// Source: Reddi et al., "Adaptive federated optimization" (ICLR 2021), algorithm 2.
Value OuterStepBuilder::adaptive(const TrainedWeights &trained, BlockArgument outer, Value mean) {
  Location loc = trained.weights.getLoc();
  BlockArgument first = addState(trained, "outer_exp_avg");
  BlockArgument second = addState(trained, "outer_exp_avg_sq");
  auto add = [&](Value a, Value b) -> Value { return AddOp::create(builder, loc, a, b); };
  auto times = [&](Value a, double by) { return multiplied(builder, a, by); };
  Value change = SubOp::create(builder, loc, mean, outer);
  Value square = MulOp::create(builder, loc, change, change);
  Value newFirst = add(times(first, options.momentum), times(change, 1 - options.momentum));
  Value newSecond;
  if (options.step == "adam") {
    newSecond = add(times(second, options.beta2), times(square, 1 - options.beta2));
  } else if (options.step == "adagrad") {
    newSecond = add(second, square);
  } else {
    Value part = times(square, 1 - options.beta2);
    Value isLess = CompareOp::create(builder, loc, second, square, ComparePredicate::Less);
    Value isMore = CompareOp::create(builder, loc, second, square, ComparePredicate::Greater);
    Value smaller =
        SelectOp::create(builder, loc, isMore, SubOp::create(builder, loc, second, part), second);
    newSecond = SelectOp::create(builder, loc, isLess, add(second, part), smaller);
  }
  update(first, unlessNone(newFirst, first));
  update(second, unlessNone(newSecond, second));
  Value root = SqrtOp::create(builder, loc, newSecond);
  Value direction = DivOp::create(builder, loc, newFirst, add(root, splat(root, options.tau)));
  return add(outer, times(direction, options.learningRate));
}

/// Gives the states of the outer step the values that they have before the first one.
void OuterStepBuilder::begin(const TrainedWeights &trained, BlockArgument outer) {
  update(outer, trained.weights);
  if (hasMoments())
    update(addState(trained, "outer_exp_avg_sq"),
           splat(trained.weights, options.tau * options.tau));
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
  if (!outer && (options.begins || options.step != "mean" || options.compressed || options.clients))
    outer = addState(trained, kOuterParametersState);
  if (options.begins)
    return begin(trained, outer);
  Value updated = meanOf(trained, outer);
  if (hasMomentum())
    updated = nesterov(trained, outer, updated);
  else if (hasMoments())
    updated = adaptive(trained, outer, updated);
  updated = outer ? unlessNone(updated, outer) : updated;
  if (outer)
    update(outer, updated);
  old.replaceAllUsesWith(updated);
  update(trained.weights, updated);
  if (trained.parameterUpdate)
    update(trained.parameter, ret->getOperand(*trained.parameterUpdate));
  if (options.clients)
    for (BlockArgument state : trained.optimizerStates)
      update(state, splat(state, 0));
}

//===----------------------------------------------------------------------===//
// Changes of clients
//===----------------------------------------------------------------------===//

/// The sum of the squares of the changes of all elements of the replica's weights.
Value OuterStepBuilder::squaresOf(const TrainedWeights &trained) {
  Location loc = trained.weights.getLoc();
  unsigned index = trained.weights.getArgNumber();
  BlockArgument outer = outerParameters.lookup(trained.name);
  if (!outer)
    outer = addState(trained, kOuterParametersState);
  Value change = SubOp::create(builder, loc, trained.weights, outer);
  Layout layout = getLayout(
      mesh, function.getArgAttrOfType<dist::ShardingAttr>(index, dist::kShardingAttrName));
  auto shape = function.getArgAttrOfType<DenseI64ArrayAttr>(index, "dtc.global_shape");
  SmallVector<StringRef> over;
  std::string letters;
  for (auto [dim, axes] : llvm::enumerate(layout.dims)) {
    letters += char('a' + dim);
    SmallVector<StringRef> names;
    for (unsigned axis : axes)
      names.push_back(mesh.axes[axis].name);
    if (!mesh.divides(shape[dim], axes))
      change =
          dist::MaskPaddingOp::create(builder, loc, change.getType(), PaddingValue::Zero, change,
                                      dim, shape[dim], mesh.name, builder.getStrArrayAttr(names));
    llvm::append_range(over, names);
  }
  Value squares = EinsumOp::create(builder, loc, change, change,
                                   StringRef(llvm::formatv("{0},{0}->", letters).str()));
  for (StringRef axis : over)
    squares = reducedOver(builder, squares, ReductionKind::Sum, mesh.name, axis,
                          trained.name.getValue(), "shard");
  return squares;
}

/// Returns a scalar of each replica.
void OuterStepBuilder::addCheck(StringRef name, Value value) {
  auto type = RankedTensorType::get({1}, cast<RankedTensorType>(value.getType()).getElementType());
  const unsigned axis = *mesh.find(options.axis);
  Layout layout = Layout::replicated(1);
  layout.dims[0].push_back(axis);
  NamedAttrList attrs;
  attrs.set("dtc.output", builder.getStringAttr(name + Twine(number)));
  attrs.set("dtc.global_shape", builder.getDenseI64ArrayAttr({mesh.axes[axis].size}));
  attrs.set(dist::kShardingAttrName, toAttr(builder.getContext(), mesh, layout));
  results.push_back(ReshapeOp::create(builder, value.getLoc(), type, value));
  resultAttrs.push_back(attrs.getDictionary(builder.getContext()));
}

void OuterStepBuilder::buildCheck() {
  builder.setInsertionPoint(ret);
  Value total;
  for (const TrainedWeights &trained : weights) {
    Value squares = squaresOf(trained);
    total = total ? Value(AddOp::create(builder, total.getLoc(), total, squares)) : squares;
  }
  if (!total)
    return;
  addCheck(kUpdateSquaresOutput, total);
  for (const TrainedWeights &trained : weights)
    for (BlockArgument state : trained.optimizerStates)
      if (function.getArgAttrOfType<StringAttr>(state.getArgNumber(), "dtc.state").getValue() ==
          kInnerStepsState)
        return addCheck(kInnerStepsOutput, state);
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
      build(trained);
  StringRef prefix = options.begins ? "outer_begin_" : options.checks ? "outer_check_" : "outer_";
  function.setSymName((prefix + function.getSymName()).str());
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
    BuildOuterStepPassOptions given{axis,    step,  learningRate, momentum, beta2, tau,
                                    clients, noise, compressed,   begins,   checks};
    unsigned number = 0;
    if (failed(forEachFunction(
            getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) -> LogicalResult {
              if (!begins && !mesh.find(axis))
                return function.emitError() << "the mesh has no axis \"" << axis << "\"";
              return OuterStepBuilder(function, mesh, given, number++).run();
            })))
      signalPassFailure();
  }
};
} // namespace
