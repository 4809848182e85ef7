//===- BuildTrainStep.cpp - Build the train step of a loss ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/train/Gradients.h"
#include "compiler/passes/train/LossQuotient.h"
#include "compiler/passes/train/Optimizers.h"
#include "compiler/passes/train/ProximalTerm.h"
#include "compiler/passes/train/SampleNoise.h"
#include "compiler/passes/train/TrainedLoss.h"
#include "dialects/dist/SampleAttributes.h"
#include "dialects/dtc/AgreedAttribute.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/FormatVariadic.h"

#include <optional>
#include <utility>

namespace dtc {
#define GEN_PASS_DEF_BUILDTRAINSTEPPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

class TrainStepBuilder : TrainedLoss {
public:
  TrainStepBuilder(TrainedLoss of, const BuildTrainStepPassOptions &options)
      : TrainedLoss(std::move(of)), options(options), builder(function.getContext()),
        differentiated(loss) {}
  LogicalResult run();

private:
  void peelDivisor();
  void buildQuotient();
  LogicalResult markSums(MutableArrayRef<Value> gradients);
  bool clipsSamples() const { return options.sampleClip > 0; }
  LogicalResult addSampleNoise(MutableArrayRef<Value> gradients);
  LogicalResult addGradients(Value summand, Value factor, MutableArrayRef<Value> gradients);
  void buildArguments();
  void buildScalars();
  void buildUpdates(SmallVector<Value> gradients);
  void buildModelUpdates();
  void updateStepState();
  void buildOutputs(ArrayRef<Value> gradients);
  Value scalar(double value) {
    return ConstantOp::create(builder, function.getLoc(), RankedTensorType::get({}, elementType),
                              value);
  }
  Value integer(int64_t value) {
    return ConstantOp::create(builder, function.getLoc(),
                              RankedTensorType::get({}, builder.getI32Type()),
                              static_cast<double>(value));
  }
  Value sumOverBatches(Value value, bool overSamples = false) {
    return dist::SumBatchesOp::create(builder, value.getLoc(), value.getType(), value, overSamples);
  }
  Value gradientFactor();
  Value gradientNorm(ArrayRef<Value> gradients, Value factor);
  Value infiniteUnlessZero(const ModelMetric &metric);
  void addMetrics();
  void declareState(BlockArgument param, StringRef state);
  void declareInnerSteps(BlockArgument param);
  Value appliedByAny();
  void countInnerStep(BlockArgument steps, Location loc, OptimizerScalars &own);
  /// Declares an argument that has the attribute `key` with the value `name`.
  void declare(StringRef key, StringRef name, Type element, ArrayRef<int64_t> shape = {});
  /// Appends what was declared to the function's arguments, all at once, and returns them.
  SmallVector<BlockArgument> insertArguments();
  void addResult(Value value, StringRef key, Attribute attr) {
    results.push_back(value);
    resultAttrs.push_back(builder.getDictionaryAttr(builder.getNamedAttr(key, attr)));
  }
  void update(BlockArgument state, Value value) {
    addResult(value, "dtc.updates", builder.getI64IntegerAttr(state.getArgNumber()));
  }

  const BuildTrainStepPassOptions &options;
  OpBuilder builder;
  /// The differentiated value, and the divisor of its gradients (null: 1).
  Value differentiated, divisor;
  /// The parts of the loss that count once in a step of several batches (see LossQuotient).
  Value once, rest;
  OptimizerScalars scalars;
  BlockArgument learningRates, firstStep, appliedSteps, skippedSteps;
  /// Null: the loss is not scaled.
  BlockArgument lossScale, goodSteps, growthInterval;
  /// The number of batches in the sums of a step; null: nothing depends on it. A loss with a
  /// divisor does not.
  BlockArgument batches;
  int64_t samples = 0;               ///< of a batch, where the gradient of each is clipped
  SmallVector<BlockArgument> states; ///< those of the first parameter, then of the next
  /// Of each parameter the one that the proximal term draws to; empty without such a term.
  SmallVector<BlockArgument> outerParameters;
  /// Of each parameter the steps that were applied to it; empty if replicas train for no clients.
  SmallVector<BlockArgument> innerSteps;
  struct NewArgument {
    Type type;
    DictionaryAttr attrs;
    Location loc;
  };
  SmallVector<NewArgument> newArguments;
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> resultAttrs;
};

} // namespace

/// Splits a divisor off the loss that depends on data and on no parameter.
void TrainStepBuilder::peelDivisor() {
  if (options.accumulates) {
    if (std::optional<LossQuotient> quotient = findLossQuotient(builder, *this, loss);
        quotient && quotient->divisor && quotient->sums) {
      differentiated = quotient->sums;
      divisor = quotient->divisor;
      once = quotient->once;
      rest = quotient->rest;
    }
    return;
  }
  auto quotient = loss.getDefiningOp<DivOp>();
  if (!quotient || quotient.getRhs().getDefiningOp<ConstantOp>() ||
      dependsOnParameters(quotient.getRhs()))
    return;
  differentiated = quotient.getLhs();
  divisor = quotient.getRhs();
}

/// Computes the loss after all batches, with the divisor of all batches. Its sums must be sums over
/// samples alone: otherwise the gradients would not be those of this loss.
void TrainStepBuilder::buildQuotient() {
  Location loc = loss.getLoc();
  loss = sumOverBatches(differentiated, /*overSamples=*/true);
  if (once)
    loss = AddOp::create(builder, loc, loss, once);
  loss = DivOp::create(builder, loc, loss, divisor);
  if (clipsSamples())
    loss.getDefiningOp()->setAttr(dist::kSampleDivisorAttrName, builder.getUnitAttr());
  if (rest)
    loss = AddOp::create(builder, loc, loss, rest);
}

/// Marks the sums over all batches of the step: the gradients, and the loss or its sums.
LogicalResult TrainStepBuilder::markSums(MutableArrayRef<Value> gradients) {
  if (options.separateBatches)
    for (Value &gradient : gradients)
      gradient = sumOverBatches(gradient);
  for (ModelMetric &metric : metrics)
    metric.value = sumOverBatches(metric.value);
  if (!divisor) {
    loss = sumOverBatches(loss);
  } else if (!options.accumulates) {
    divisor = sumOverBatches(divisor);
    loss = DivOp::create(builder, loss.getLoc(), sumOverBatches(differentiated), divisor);
  }
  return success(succeeded(addGradients(once, {}, gradients)) &&
                 succeeded(addGradients(rest, divisor, gradients)));
}

/// Adds the gradients of a summand of the loss that depends on no data, times a factor (null: 1).
/// The gradients are divided by the divisor later.
LogicalResult TrainStepBuilder::addGradients(Value summand, Value factor,
                                             MutableArrayRef<Value> gradients) {
  if (!summand || !dependsOnParameters(summand))
    return success();
  SmallVector<Value> wrt(params.begin(), params.end());
  FailureOr<SmallVector<Value>> further =
      buildGradients(builder, function.front(), summand, wrt, lossScale);
  if (failed(further))
    return failure();
  for (auto [gradient, own] : llvm::zip_equal(gradients, *further)) {
    if (matchPattern(own, m_AnyZeroFloat()))
      continue;
    Location loc = gradient.getLoc();
    Value part = own;
    if (factor)
      part = MulOp::create(builder, loc, part,
                           BroadcastOp::create(builder, loc,
                                               cast<RankedTensorType>(gradient.getType()), factor,
                                               ArrayRef<int64_t>()));
    gradient = AddOp::create(builder, loc, gradient, part);
  }
  return success();
}

/// Marks where noise is added to the sums of the gradients of samples. What depends on no sample
/// would be clipped and counted with each.
LogicalResult TrainStepBuilder::addSampleNoise(MutableArrayRef<Value> gradients) {
  for (Value part : {once, rest})
    if (part && dependsOnParameters(part))
      return emitError(part.getLoc())
             << "a part of the loss depends on parameters and on no sample, expected a sum or mean "
                "over samples, as the gradient of each sample is clipped; use weight decay "
                "(--weight-decay), or leave --dp-sgd out";
  for (auto [gradient, param] : llvm::zip_equal(gradients, params)) {
    auto name = function.getArgAttrOfType<StringAttr>(param.getArgNumber(), "dtc.param");
    gradient = markSampleNoise(builder, gradient, name);
  }
  return success();
}

/// The factor of the gradients: the divisor of the loss, its scale, and the number of batches.
/// Null: 1.
Value TrainStepBuilder::gradientFactor() {
  Location loc = NameLoc::get(builder.getStringAttr("grad_norm"));
  if (clipsSamples())
    return MulOp::create(builder, loc, batches, scalar(static_cast<double>(samples)));
  Value factor = divisor;
  for (BlockArgument further : {lossScale, divisor ? BlockArgument() : batches})
    if (further)
      factor = factor ? Value(MulOp::create(builder, loc, factor, further)) : further;
  return factor;
}

/// The norm of all gradients together, divided by their factor (null: 1).
Value TrainStepBuilder::gradientNorm(ArrayRef<Value> gradients, Value factor) {
  Location loc = NameLoc::get(builder.getStringAttr("grad_norm"));
  // Joined and then summed, not added one after another: devices then complete all parts of the sum
  // together.
  auto part = RankedTensorType::get({1}, elementType);
  SmallVector<Value> parts;
  for (Value gradient : gradients) {
    std::string letters;
    for (int64_t dim = 0; dim < cast<RankedTensorType>(gradient.getType()).getRank(); ++dim)
      letters += char('a' + dim);
    std::string equation = llvm::formatv("{0},{0}->", letters);
    Value squares = EinsumOp::create(builder, loc, gradient, gradient, StringRef(equation));
    parts.push_back(ReshapeOp::create(builder, loc, part, squares));
  }
  for (const ModelMetric &metric : metrics)
    if (metric.mustBeZero)
      parts.push_back(ReshapeOp::create(builder, loc, part, infiniteUnlessZero(metric)));
  Value joined = ConcatOp::create(builder, loc, parts, 0);
  Value total = ReduceOp::create(builder, loc, joined, ReductionKind::Sum, ArrayRef<int64_t>{0});
  Value norm = SqrtOp::create(builder, loc, total);
  if (!factor)
    return norm;
  // A divisor may be negative; a norm is not.
  Value magnitude = divisor ? Value(AbsOp::create(builder, loc, factor)) : factor;
  return DivOp::create(builder, loc, norm, magnitude);
}

/// A scalar that is infinite if an element of the metric is at least 1, and 0 if all are 0. It is
/// linear in the metric, so that parts of it that devices have need not be added up before.
Value TrainStepBuilder::infiniteUnlessZero(const ModelMetric &metric) {
  Location loc = metric.value.getLoc();
  Value sum = metric.value;
  int64_t rank = cast<RankedTensorType>(sum.getType()).getRank();
  if (rank > 0)
    sum = ReduceOp::create(builder, loc, sum, ReductionKind::Sum,
                           llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  double largest =
      llvm::APFloat::getLargest(cast<FloatType>(elementType).getFloatSemantics()).convertToDouble();
  for (int i = 0; i < 2; ++i)
    sum = MulOp::create(builder, loc, sum, scalar(largest));
  return sum;
}

/// Returns the metrics of the model.
void TrainStepBuilder::addMetrics() {
  for (const ModelMetric &metric : metrics) {
    Value value = metric.value;
    if (batches && metric.isMean) {
      Value count = BroadcastOp::create(builder, value.getLoc(), value.getType(), batches,
                                        ArrayRef<int64_t>());
      value = DivOp::create(builder, value.getLoc(), value, count);
    }
    results.push_back(value);
    NamedAttrList attributes;
    attributes.set("dtc.output", metric.name);
    attributes.set(DtcDialect::kMetricAttrName, metric.name);
    if (metric.mustBeZero)
      attributes.set(DtcDialect::kMustBeZeroAttrName, builder.getUnitAttr());
    resultAttrs.push_back(attributes.getDictionary(builder.getContext()));
  }
}

void TrainStepBuilder::declareState(BlockArgument param, StringRef state) {
  unsigned from = param.getArgNumber();
  NamedAttrList attrs;
  attrs.set("dtc.state", builder.getStringAttr(state));
  attrs.set("dtc.state_of", function.getArgAttr(from, "dtc.param"));
  for (StringRef inherited :
       {StringRef("dtc.axes"), StringRef("dtc.file_shape"), StringRef(dist::kShardingAttrName)})
    if (Attribute attr = function.getArgAttr(from, inherited))
      attrs.set(inherited, attr);
  newArguments.push_back(
      {param.getType(), attrs.getDictionary(builder.getContext()), param.getLoc()});
}

void TrainStepBuilder::declareInnerSteps(BlockArgument param) {
  NamedAttrList attrs;
  attrs.set("dtc.state", builder.getStringAttr(kInnerStepsState));
  attrs.set("dtc.state_of", function.getArgAttr(param.getArgNumber(), "dtc.param"));
  newArguments.push_back({RankedTensorType::get({}, builder.getI32Type()),
                          attrs.getDictionary(builder.getContext()), param.getLoc()});
}

void TrainStepBuilder::declare(StringRef key, StringRef name, Type element,
                               ArrayRef<int64_t> shape) {
  newArguments.push_back(
      {RankedTensorType::get(shape, element),
       builder.getDictionaryAttr(builder.getNamedAttr(key, builder.getStringAttr(name))),
       NameLoc::get(builder.getStringAttr(name))});
}

SmallVector<BlockArgument> TrainStepBuilder::insertArguments() {
  unsigned first = function.getNumArguments();
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attrs;
  SmallVector<Location> locs;
  for (const NewArgument &argument : newArguments) {
    types.push_back(argument.type);
    attrs.push_back(argument.attrs);
    locs.push_back(argument.loc);
  }
  (void)function.insertArguments(SmallVector<unsigned>(types.size(), first), types, attrs, locs);
  return SmallVector<BlockArgument>(function.getArguments().drop_front(first));
}

/// How many learning rates the caller gives at once: more than the steps that can be under way, as
/// each needs its data, and few enough to be copied to the device with these.
static constexpr int64_t kNumLearningRates = 64;

/// Adds the arguments of a train step: scalars, the step state, then the state of each parameter.
void TrainStepBuilder::buildArguments() {
  StringRef stepState = DtcDialect::kStepStateAttrName;
  Type i32 = builder.getI32Type();
  declare("dtc.scalar", "learning_rates", elementType, kNumLearningRates);
  declare("dtc.scalar", "first_step", i32);
  // A divisor is of all batches, as the gradients are.
  auto isMean = [](const ModelMetric &metric) { return metric.isMean; };
  bool countsBatches =
      options.accumulates && (!divisor || clipsSamples() || llvm::any_of(metrics, isMean));
  if (countsBatches)
    declare("dtc.scalar", "batches", elementType);
  declare(stepState, "applied_steps", i32);
  declare(stepState, "skipped_steps", i32);
  if (options.lossScale) {
    declare(stepState, "loss_scale", elementType);
    declare(stepState, "good_steps", i32);
    declare(stepState, "growth_interval", i32);
  }
  for (BlockArgument param : params)
    for (StringRef state : optimizer->states)
      declareState(param, state);
  const size_t numStates = params.size() * optimizer->states.size();
  if (options.proximal > 0)
    for (BlockArgument param : params)
      declareState(param, kOuterParametersState);
  if (options.clients)
    for (BlockArgument param : params)
      declareInnerSteps(param);
  SmallVector<BlockArgument> added = insertArguments();
  ArrayRef<BlockArgument> next = added;
  auto take = [&] {
    BlockArgument argument = next.front();
    next = next.drop_front();
    return argument;
  };
  learningRates = take();
  firstStep = take();
  if (countsBatches)
    batches = take();
  appliedSteps = take();
  skippedSteps = take();
  if (options.lossScale) {
    lossScale = take();
    goodSteps = take();
    growthInterval = take();
  }
  llvm::append_range(states, next.take_front(numStates));
  next = next.drop_front(numStates);
  const size_t numOuter = options.proximal > 0 ? params.size() : 0;
  llvm::append_range(outerParameters, next.take_front(numOuter));
  llvm::append_range(innerSteps, next.drop_front(numOuter));
}

/// Computes the scalars that all updates share from the step state.
void TrainStepBuilder::buildScalars() {
  Location loc = NameLoc::get(builder.getStringAttr("step_state"));
  Value steps = AddOp::create(builder, loc, appliedSteps, skippedSteps);
  Value index = SubOp::create(builder, loc, steps, firstStep);
  scalars.learningRate = PickOp::create(builder, loc, learningRates, index);
  if (optimizer->countsSteps && !options.clients) {
    // Skipped steps were none to the optimizer. Its first one is 1.
    Value step = AddOp::create(builder, loc, appliedSteps, integer(1));
    scalars.step = ConvertOp::create(builder, loc, step, elementType);
  }
}

/// Whether the step is applied; with clients, by at least one replica.
Value TrainStepBuilder::appliedByAny() {
  if (!options.clients)
    return scalars.apply;
  Location loc = NameLoc::get(builder.getStringAttr("step_state"));
  Value own = ConvertOp::create(builder, loc, scalars.apply, elementType);
  own.getDefiningOp()->setAttr(kAgreedAttrName, builder.getUnitAttr());
  return CompareOp::create(builder, loc, own, scalar(0), ComparePredicate::Greater);
}

/// Counts the step of a parameter where it is applied, and gives its number, from 1, to an
/// optimizer that needs it.
void TrainStepBuilder::countInnerStep(BlockArgument steps, Location loc, OptimizerScalars &own) {
  Value applied = ConvertOp::create(builder, loc, scalars.apply, builder.getI32Type());
  update(steps, AddOp::create(builder, loc, steps, applied));
  if (optimizer->countsSteps)
    own.step = ConvertOp::create(builder, loc, AddOp::create(builder, loc, steps, integer(1)),
                                 elementType);
}

/// Adds the new step state. The loss scale halves after each step that was skipped, because a
/// gradient overflowed, and doubles after `growthInterval` consecutive steps that were not; it
/// stays within [1, 2^24].
///
/// Source: Micikevicius et al., "Mixed precision training" (ICLR 2018), section 3.2.
void TrainStepBuilder::updateStepState() {
  Location loc = NameLoc::get(builder.getStringAttr("step_state"));
  Value one = integer(1);
  Value applied = ConvertOp::create(builder, loc, appliedByAny(), builder.getI32Type());
  Value skipped = SubOp::create(builder, loc, one, applied);
  update(appliedSteps, AddOp::create(builder, loc, appliedSteps, applied));
  update(skippedSteps, AddOp::create(builder, loc, skippedSteps, skipped));
  if (!lossScale)
    return;
  Value good = AddOp::create(builder, loc, goodSteps, one);
  good = MulOp::create(builder, loc, good, applied); // 0 after a skipped step
  Value grows =
      CompareOp::create(builder, loc, good, growthInterval, ComparePredicate::GreaterOrEqual);
  Value grown = ConvertOp::create(builder, loc, grows, builder.getI32Type());
  Value stays = SubOp::create(builder, loc, one, grown);
  update(goodSteps, MulOp::create(builder, loc, good, stays));
  Value twice = MulOp::create(builder, loc, lossScale, scalar(2));
  twice = MinimumOp::create(builder, loc, twice, scalar(16777216));
  Value half = MulOp::create(builder, loc, lossScale, scalar(0.5));
  half = MaximumOp::create(builder, loc, half, scalar(1));
  Value kept = SelectOp::create(builder, loc, grows, twice, lossScale);
  update(lossScale, SelectOp::create(builder, loc, scalars.apply, kept, half));
}

/// Returns the new values that the model computes of frozen parameters, and the old ones where the
/// step is skipped.
void TrainStepBuilder::buildModelUpdates() {
  for (const ModelUpdate &own : updates) {
    Location loc = own.value.getLoc();
    auto type = cast<RankedTensorType>(own.state.getType()).clone(builder.getI1Type());
    Value apply = BroadcastOp::create(builder, loc, type, scalars.apply, ArrayRef<int64_t>());
    update(own.state, SelectOp::create(builder, loc, apply, own.value, own.state));
  }
}

/// Adds the norm of the gradients and all updates. `gradients` are the gradients times a known
/// factor.
void TrainStepBuilder::buildUpdates(SmallVector<Value> gradients) {
  buildScalars();
  Value factor = gradientFactor();
  for (auto [gradient, param, outer] : llvm::zip(gradients, params, outerParameters))
    gradient = addProximalTerm(builder, gradient, param, outer, options.proximal, factor);
  Value norm = gradientNorm(gradients, factor);
  Location loc = norm.getLoc();
  // It says whether the step is skipped, to each device and to the caller.
  norm.getDefiningOp()->setAttr(kAgreedAttrName, builder.getUnitAttr());
  addResult(norm, "dtc.output", builder.getStringAttr("grad_norm"));
  // False of infinity and of NaN.
  scalars.apply = CompareOp::create(builder, loc, norm, scalar(INFINITY), ComparePredicate::Less);
  Value scale = scalar(1.0);
  if (options.clip > 0) {
    Value bounded = AddOp::create(builder, loc, norm, scalar(1e-6));
    scale = MinimumOp::create(builder, loc, scale,
                              DivOp::create(builder, loc, scalar(options.clip), bounded));
  }
  scalars.gradScale = factor ? Value(DivOp::create(builder, loc, scale, factor)) : scale;

  ArrayRef<BlockArgument> next = states;
  for (auto [number, param, gradient] : llvm::enumerate(params, gradients)) {
    unsigned index = param.getArgNumber();
    auto fileShape = function.getArgAttrOfType<DenseI64ArrayAttr>(index, "dtc.file_shape");
    int64_t rank = fileShape ? fileShape.size() : cast<RankedTensorType>(param.getType()).getRank();
    ParameterGroup group = settings.groupOf(param);
    OptimizerSettings own{options.beta1, options.beta2, options.eps,
                          group.weightDecay.value_or(rank >= 2 ? options.weightDecay : 0.0),
                          options.momentum};
    Location at = NameLoc::get(function.getArgAttrOfType<StringAttr>(index, "dtc.param"));
    OptimizerScalars ownScalars = scalars;
    if (group.learningRateScale != 1)
      ownScalars.learningRate =
          MulOp::create(builder, at, scalars.learningRate, scalar(group.learningRateScale));
    if (options.clients)
      countInnerStep(innerSteps[number], at, ownScalars);
    auto parts = next.take_front(optimizer->states.size());
    next = next.drop_front(parts.size());
    SmallVector<Value> state(parts.begin(), parts.end());
    ValueRange updated = optimizer->build(builder, at, param, gradient, state, ownScalars, own);
    update(param, updated.front());
    for (auto [state, value] : llvm::zip_equal(parts, updated.drop_front()))
      update(state, value);
  }
  buildModelUpdates();
  updateStepState();
}

/// Returns the gradients themselves.
void TrainStepBuilder::buildOutputs(ArrayRef<Value> gradients) {
  for (auto [param, gradient] : llvm::zip_equal(params, gradients)) {
    auto name = function.getArgAttrOfType<StringAttr>(param.getArgNumber(), "dtc.param");
    Value value = gradient;
    if (divisor) {
      Value all = BroadcastOp::create(builder, param.getLoc(), gradient.getType(), divisor,
                                      ArrayRef<int64_t>());
      value = DivOp::create(builder, param.getLoc(), gradient, all);
    }
    addResult(value, "dtc.output", builder.getStringAttr("grad:" + name.getValue()));
  }
}

LogicalResult TrainStepBuilder::run() {
  Block &block = function.front();
  Operation *ret = block.getTerminator();
  builder.setInsertionPoint(ret);
  if (optimizer && failed(checkTrains()))
    return failure();
  if (clipsSamples()) {
    FailureOr<int64_t> count = countSamples(*this, options);
    if (failed(count))
      return failure();
    samples = *count;
  }
  peelDivisor();
  if (optimizer)
    buildArguments();
  if (divisor && options.accumulates)
    buildQuotient();
  SmallVector<Value> wrt(params.begin(), params.end());
  FailureOr<SmallVector<Value>> gradients =
      buildGradients(builder, block, differentiated, wrt, lossScale, options.numberOps);
  if (failed(gradients))
    return failure();
  if ((options.separateBatches || options.accumulates) && failed(markSums(*gradients)))
    return failure();
  if (clipsSamples() && failed(addSampleNoise(*gradients)))
    return failure();
  if (batches && !divisor)
    loss = DivOp::create(builder, loss.getLoc(), loss, batches);
  addResult(loss, "dtc.output", builder.getStringAttr("loss"));
  addMetrics();
  if (optimizer)
    buildUpdates(*gradients);
  else
    buildOutputs(*gradients);
  function.setSymName(optimizer ? "train_step" : "gradients");

  func::ReturnOp::create(builder, ret->getLoc(), results);
  ret->erase();
  function.setType(FunctionType::get(builder.getContext(), block.getArgumentTypes(),
                                     TypeRange(ValueRange(results))));
  function.setAllResultAttrs(resultAttrs);
  return success();
}

namespace {
struct BuildTrainStepPass : dtc::impl::BuildTrainStepPassBase<BuildTrainStepPass> {
  using Base::Base;

  void runOnOperation() override {
    BuildTrainStepPassOptions options;
    options.optimizer = optimizer;
    options.clip = clip;
    options.beta1 = beta1;
    options.beta2 = beta2;
    options.eps = eps;
    options.weightDecay = weightDecay;
    options.momentum = momentum;
    options.proximal = proximal;
    options.clients = clients;
    options.sampleClip = sampleClip;
    options.sampleNoise = sampleNoise;
    options.freeze.assign(freeze.begin(), freeze.end());
    options.paramGroup.assign(paramGroup.begin(), paramGroup.end());
    options.lossScale = lossScale;
    options.accumulates = accumulates;
    options.separateBatches = separateBatches;
    options.numberOps = numberOps;
    auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
    if (functions.size() != 1) {
      getOperation().emitError() << "the module has " << functions.size()
                                 << " functions, expected one that computes the loss";
      return signalPassFailure();
    }
    if (functions.front().isExternal()) {
      functions.front().emitOpError() << "has no body, expected one that computes the loss";
      return signalPassFailure();
    }
    auto loss = TrainedLoss::read(functions.front(), options);
    if (failed(loss) || failed(TrainStepBuilder(std::move(*loss), options).run()))
      return signalPassFailure();
  }
};
} // namespace
