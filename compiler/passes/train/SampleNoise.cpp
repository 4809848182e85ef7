//===- SampleNoise.cpp - Steps that clip the gradient of each sample ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/train/SampleNoise.h"

#include "dialects/dist/SampleAttributes.h"

using namespace mlir;
using namespace dtc;

FailureOr<int64_t> dtc::countSamples(const TrainedLoss &loss,
                                     const BuildTrainStepPassOptions &options) {
  func::FuncOp function = loss.function;
  if (!loss.optimizer || !options.accumulates || !options.separateBatches || options.lossScale)
    return function.emitError() << "a step that clips the gradients of samples has an optimizer, "
                                   "accumulates and separate-batches, and no loss-scale";
  if (!loss.updates.empty())
    return emitError(loss.updates.front().value.getLoc())
           << "the model updates a parameter itself, which would tell of the samples what no noise "
              "hides; expected a model without running statistics (a batch norm has them) for "
              "--dp-sgd";
  Builder builder(function.getContext());
  std::optional<int64_t> samples;
  for (BlockArgument arg : function.getArguments()) {
    unsigned index = arg.getArgNumber();
    auto axes = function.getArgAttrOfType<ArrayAttr>(index, DtcDialect::kAxesAttrName);
    if (!function.getArgAttr(index, DtcDialect::kInputAttrName) || !axes)
      continue;
    for (auto [dim, axis] : llvm::enumerate(axes.getAsValueRange<StringAttr>())) {
      if (axis != "batch")
        continue;
      int64_t size = cast<RankedTensorType>(arg.getType()).getDimSize(static_cast<unsigned>(dim));
      if (samples.value_or(size) != size)
        return emitError(arg.getLoc()) << "an input has " << size << " samples and another one "
                                       << *samples << ", expected as many in all";
      samples = size;
      function.setArgAttr(index, dist::kSampleDimAttrName, builder.getI64IntegerAttr(dim));
    }
  }
  if (!samples)
    return function.emitError() << "no input has a dimension \"batch\" (dtc.axes), expected one, "
                                   "as the gradient of each sample is clipped";
  function->setAttr(dist::kSamplesAttrName, builder.getI64IntegerAttr(*samples));
  return *samples;
}

Value dtc::markSampleNoise(OpBuilder &builder, Value gradient, StringAttr parameter) {
  Location loc = gradient.getLoc();
  auto type = cast<RankedTensorType>(gradient.getType());
  // Not 0, which a canonicalization would drop.
  Value noise =
      ConstantOp::create(builder, loc, RankedTensorType::get({}, type.getElementType()), 1.0);
  if (type.getRank() > 0)
    noise = BroadcastOp::create(builder, loc, type, noise, ArrayRef<int64_t>());
  Value sum = AddOp::create(builder, loc, gradient, noise);
  sum.getDefiningOp()->setAttr(dist::kSampleNoiseAttrName, parameter);
  return sum;
}
