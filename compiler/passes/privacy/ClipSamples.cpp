//===- ClipSamples.cpp - Clip the gradient of each sample -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/privacy/GaussianNoise.h"
#include "compiler/passes/privacy/PrivacyPasses.h"
#include "compiler/passes/privacy/SampleGradients.h"
#include "dialects/dist/SampleAttributes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <map>
#include <vector>

namespace dtc {
#define GEN_PASS_DEF_CLIPSAMPLESPASS
#include "compiler/passes/PrivacyPasses.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

class SampleClipper {
public:
  SampleClipper(func::FuncOp function, const LinkedMesh &mesh, double clip, double noise,
                StringRef outer)
      : function(function), mesh(mesh), clip(clip), noise(noise), outer(outer) {}
  LogicalResult run();

private:
  LogicalResult findSums();
  FailureOr<AxisList> findBatchAxes();
  FailureOr<Value> squaresOf(OpBuilder &builder, AddOp sum, const SampleValue &gradient,
                             AxisList &split);
  FailureOr<Value> normOf(SampleTracer &tracer);
  FailureOr<Value> lossScaleOf(SampleTracer &tracer);
  FailureOr<Value> factorOf(SampleTracer &tracer);
  Value noiseOf(AddOp sum, Value key);
  LogicalResult addNoise();

  func::FuncOp function;
  const LinkedMesh &mesh;
  double clip, noise;
  StringRef outer; ///< empty: replicas do not differ
  int64_t samples = 0;
  SmallVector<AddOp> sums; ///< of a gradient over all samples, and its noise
  DivOp divided;           ///< the loss, where a sum over samples divides it
  Type element;
};

} // namespace

static Value scalar(OpBuilder &builder, Location loc, Type element, double value) {
  return ConstantOp::create(builder, loc, RankedTensorType::get({}, element), value);
}

LogicalResult SampleClipper::findSums() {
  for (Operation &op : function.front()) {
    if (op.hasAttr(dist::kSampleNoiseAttrName)) {
      auto sum = dyn_cast<AddOp>(op);
      if (!sum || !op.hasAttr(dist::kNoiseShapeAttrName))
        return op.emitOpError() << "has '" << dist::kSampleNoiseAttrName
                                << "', expected it on a dtc.add in the local view; run "
                                   "dtc-spmd-partition first";
      sums.push_back(sum);
    }
    if (auto quotient = dyn_cast<DivOp>(op); quotient && op.hasAttr(dist::kSampleDivisorAttrName))
      divided = quotient;
  }
  if (sums.empty())
    return function.emitOpError() << "has '" << dist::kSamplesAttrName << "' and no gradient with '"
                                  << dist::kSampleNoiseAttrName
                                  << "'; run dtc-build-train-step first";
  element = cast<RankedTensorType>(sums.front().getType()).getElementType();
  return success();
}

/// The axes of devices with different samples, and the temporal one. Each device has one sample in
/// a microbatch.
FailureOr<AxisList> SampleClipper::findBatchAxes() {
  AxisList axes;
  for (BlockArgument arg : function.getArguments()) {
    unsigned index = arg.getArgNumber();
    auto dim = function.getArgAttrOfType<IntegerAttr>(index, dist::kSampleDimAttrName);
    auto sharding = function.getArgAttrOfType<dist::ShardingAttr>(index, dist::kShardingAttrName);
    if (!dim || !sharding)
      continue;
    const Layout layout = getLayout(mesh, sharding); // lives as long as the loop
    for (unsigned axis : layout.dims[dim.getInt()])
      if (mesh.axes[axis].size > 1 && !llvm::is_contained(axes, axis))
        axes.push_back(axis);
  }
  unsigned temporal = *mesh.temporalAxis();
  if (!llvm::is_contained(axes, temporal))
    axes.push_back(temporal);
  int64_t parts = mesh.product(axes);
  if (parts != samples)
    return function.emitError() << "the batch has " << samples << " samples in " << parts
                                << " parts, expected one sample on each device in a microbatch, as "
                                   "the gradient of each is clipped; leave --microbatches out";
  return axes;
}

/// The squares of the elements of a gradient of one sample, on this device. `split` are the axes of
/// devices with other elements.
FailureOr<Value> SampleClipper::squaresOf(OpBuilder &builder, AddOp sum,
                                          const SampleValue &gradient, AxisList &split) {
  Location loc = sum.getLoc();
  auto shape = sum->getAttrOfType<DenseI64ArrayAttr>(dist::kNoiseShapeAttrName);
  auto sharding = sum->getAttrOfType<ArrayAttr>(dist::kNoiseShardingAttrName);
  Value value = gradient.value;
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() != shape.size())
    return sum.emitError() << "the gradient of a sample has the type " << type
                           << ", expected a tensor of " << shape.size() << " dimensions";
  std::string letters;
  for (auto [dim, text] : llvm::enumerate(sharding.getAsValueRange<StringAttr>())) {
    letters += char('a' + dim);
    SmallVector<StringRef> names, kept;
    text.split(names, ',', -1, /*KeepEmpty=*/false);
    AxisList axes;
    for (StringRef name : names)
      if (unsigned axis = *mesh.find(name); !llvm::is_contained(gradient.whole, axis)) {
        axes.push_back(axis);
        kept.push_back(name);
      }
    if (!mesh.divides(shape[dim], axes))
      value = dist::MaskPaddingOp::create(builder, loc, value.getType(), PaddingValue::Zero, value,
                                          static_cast<int64_t>(dim), shape[dim], mesh.name,
                                          builder.getStrArrayAttr(kept));
    for (unsigned axis : axes)
      if (mesh.axes[axis].size > 1)
        split.push_back(axis);
  }
  llvm::sort(split);
  return Value(EinsumOp::create(builder, loc, value, value,
                                StringRef(llvm::formatv("{0},{0}->", letters).str())));
}

/// The norm of the gradient of a sample, over all parameters.
FailureOr<Value> SampleClipper::normOf(SampleTracer &tracer) {
  OpBuilder &builder = tracer.builder;
  Location loc = NameLoc::get(builder.getStringAttr("sample_norm"));
  std::map<std::vector<unsigned>, Value> parts; // by the axes that split the gradients
  for (AddOp sum : sums) {
    FailureOr<SampleValue> gradient = tracer.gradientOf(sum->getOpOperand(0));
    if (failed(gradient))
      return failure();
    AxisList split;
    FailureOr<Value> squares = squaresOf(builder, sum, *gradient, split);
    if (failed(squares))
      return failure();
    Value &total = parts[{split.begin(), split.end()}];
    total = total ? Value(AddOp::create(builder, loc, total, *squares)) : *squares;
  }
  Value all;
  for (auto &[axes, total] : parts) {
    Value complete = total;
    if (!axes.empty()) {
      SmallVector<StringRef> names;
      for (unsigned axis : axes)
        names.push_back(mesh.axes[axis].name);
      complete = dist::AllReduceOp::create(builder, loc, total.getType(), ReductionKind::Sum, total,
                                           mesh.name, builder.getStrArrayAttr(names));
    }
    all = all ? Value(AddOp::create(builder, loc, all, complete)) : complete;
  }
  return Value(SqrtOp::create(builder, loc, all));
}

/// What makes the part of a sample in the gradient the gradient of its own loss.
FailureOr<Value> SampleClipper::lossScaleOf(SampleTracer &tracer) {
  OpBuilder &builder = tracer.builder;
  Location loc = NameLoc::get(builder.getStringAttr("sample_norm"));
  if (!divided)
    return scalar(builder, loc, element, static_cast<double>(samples));
  FailureOr<SampleValue> divisor = tracer.valueOf(divided->getOpOperand(1));
  if (failed(divisor))
    return failure();
  return Value(DivOp::create(builder, loc, scalar(builder, loc, element, 1), divisor->value));
}

/// The factor by which the part of a sample in the gradient is multiplied.
FailureOr<Value> SampleClipper::factorOf(SampleTracer &tracer) {
  FailureOr<Value> norm = normOf(tracer);
  if (failed(norm))
    return failure();
  FailureOr<Value> scale = lossScaleOf(tracer);
  if (failed(scale))
    return failure();
  OpBuilder &builder = tracer.builder;
  Location loc = NameLoc::get(builder.getStringAttr("sample_norm"));
  auto number = [&](double value) { return scalar(builder, loc, element, value); };
  Value magnitude = divided ? Value(AbsOp::create(builder, loc, *scale)) : *scale;
  Value own = MulOp::create(builder, loc, *norm, magnitude);
  Value bounded = AddOp::create(builder, loc, own, number(1e-6));
  Value factor = DivOp::create(builder, loc, number(clip), bounded);
  factor = MinimumOp::create(builder, loc, factor, number(1));
  factor = MulOp::create(builder, loc, factor, *scale);
  if (!divided)
    return factor;
  // A sample without a label has no loss.
  Value none = CompareOp::create(builder, loc, magnitude, number(INFINITY), ComparePredicate::Less);
  return Value(SelectOp::create(builder, loc, none, factor, number(0)));
}

/// The noise of a gradient. With replicas that differ, its tensor has a first dimension of them.
Value SampleClipper::noiseOf(AddOp sum, Value key) {
  OpBuilder builder(sum);
  Location loc = sum.getLoc();
  RankedTensorType type = sum.getType(), drawn = type;
  SmallVector<int64_t> shape(
      sum->getAttrOfType<DenseI64ArrayAttr>(dist::kNoiseShapeAttrName).asArrayRef());
  auto sharding = sum->getAttrOfType<ArrayAttr>(dist::kNoiseShardingAttrName);
  double deviation = noise * clip;
  if (!outer.empty()) {
    const int64_t replicas = mesh.axes[*mesh.find(outer)].size;
    SmallVector<Attribute> dims{builder.getStringAttr(outer)};
    llvm::append_range(dims, sharding);
    sharding = builder.getArrayAttr(dims);
    shape.insert(shape.begin(), replicas);
    SmallVector<int64_t> local(type.getShape());
    local.insert(local.begin(), 1);
    drawn = type.clone(local);
    deviation *= static_cast<double>(replicas);
  }
  auto name = sum->getAttrOfType<StringAttr>(dist::kSampleNoiseAttrName);
  Value normal = drawNormal(builder, loc, drawn, key, name.getValue(), {shape, sharding});
  if (drawn != type)
    normal = ReshapeOp::create(builder, loc, type, normal);
  Value by = scalar(builder, loc, type.getElementType(), deviation);
  if (type.getRank() > 0)
    by = BroadcastOp::create(builder, loc, type, by, ArrayRef<int64_t>());
  return MulOp::create(builder, loc, normal, by);
}

/// Puts noise in the place of what stands for it.
LogicalResult SampleClipper::addNoise() {
  Value key;
  for (BlockArgument arg : function.getArguments())
    if (auto state = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                           DtcDialect::kStepStateAttrName);
        state && state.getValue() == "random_key")
      key = arg;
  if (noise > 0 && !key)
    return function.emitError() << "the step has no random key, from which noise is drawn; run "
                                   "dtc-advance-random-key with always";
  for (AddOp sum : sums) {
    Operation *stands = sum.getRhs().getDefiningOp();
    if (noise > 0) {
      sum->setOperand(1, noiseOf(sum, key));
      for (StringRef attribute :
           {dist::kSampleNoiseAttrName, dist::kNoiseShapeAttrName, dist::kNoiseShardingAttrName})
        sum->removeAttr(attribute);
    } else {
      sum.getResult().replaceAllUsesWith(sum.getLhs());
      sum.erase();
    }
    while (stands && stands->use_empty()) {
      Operation *operand =
          stands->getNumOperands() ? stands->getOperand(0).getDefiningOp() : nullptr;
      stands->erase();
      stands = operand;
    }
  }
  return success();
}

LogicalResult SampleClipper::run() {
  auto count = function->getAttrOfType<IntegerAttr>(dist::kSamplesAttrName);
  if (!count)
    return success();
  samples = count.getInt();
  if (failed(checkProgram(function, mesh.name)) || failed(findSums()))
    return failure();
  if (mesh.pipelineAxis())
    return function.emitError()
           << "the mesh has a pipeline, whose devices have the gradient of a sample at different "
              "times, and its norm is over all of them; use tp, fsdp or dp for --dp-sgd";
  auto loops = llvm::to_vector(function.getOps<dist::MicrobatchLoopOp>());
  if (loops.size() != 1)
    return function.emitOpError() << "has " << loops.size()
                                  << " loops over microbatches, expected one";
  FailureOr<AxisList> batchAxes = findBatchAxes();
  if (failed(batchAxes))
    return failure();
  SampleTracer tracer(loops.front(), mesh, *batchAxes);
  FailureOr<Value> factor = factorOf(tracer);
  if (failed(factor) || failed(tracer.scale(*factor)) || failed(addNoise()))
    return failure();
  tracer.setStages();
  function->removeAttr(dist::kSamplesAttrName);
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    function.removeArgAttr(index, dist::kSampleDimAttrName);
  if (divided)
    divided->removeAttr(dist::kSampleDivisorAttrName);
  return success();
}

namespace {
struct ClipSamplesPass : dtc::impl::ClipSamplesPassBase<ClipSamplesPass> {
  using Base::Base;

  void runOnOperation() override {
    if (!(clip > 0 && std::isfinite(clip) && noise >= 0 && std::isfinite(noise))) {
      getOperation().emitError() << "the options clip and noise are " << double(clip) << " and "
                                 << double(noise)
                                 << ", expected finite numbers, clip above 0 and noise at least 0";
      return signalPassFailure();
    }
    if (failed(forEachFunction(
            getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) -> LogicalResult {
              if (!outer.empty() && !mesh.find(outer))
                return function.emitError() << "the mesh has no axis \"" << outer << "\"";
              return SampleClipper(function, mesh, clip, noise, outer).run();
            })))
      signalPassFailure();
  }
};
} // namespace
