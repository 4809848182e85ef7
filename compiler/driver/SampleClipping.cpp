//===- SampleClipping.cpp - The option --dp-sgd ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/SampleClipping.h"

#include "compiler/driver/GradientCompression.h"
#include "dialects/dtc/DtcOps.h"
#include "support/MeshAxes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallVector.h"

#include <fmt/format.h>

#include <cmath>

using namespace mlir;
using namespace dtc;

Expected<SampleClipping> dtc::parseSampleClipping(StringRef text) {
  SampleClipping clipping;
  bool hasClip = false, hasNoise = false;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    auto [key, value] = part.split('=');
    const bool isClip = key == "clip";
    if (!isClip && key != "noise")
      return Error{fmt::format("\"{}\" is no setting, expected clip=C,noise=S", part.str())};
    double number = 0;
    if (value.getAsDouble(number) || !std::isfinite(number) || number < 0 ||
        (isClip && number == 0))
      return Error{fmt::format("{} is \"{}\", expected a number {}", key.str(), value.str(),
                               isClip ? "above 0" : "of at least 0")};
    (isClip ? clipping.clip : clipping.noise) = number;
    (isClip ? hasClip : hasNoise) = true;
  }
  if (!hasClip || !hasNoise)
    return Error{
        fmt::format("there is no {}, expected clip=C,noise=S", hasClip ? "noise" : "clip")};
  return clipping;
}

std::optional<SampleClipping> dtc::sampleClippingOf(const CompileOptions &options) {
  auto clipping = parseSampleClipping(options.dpSgd);
  if (options.dpSgd.empty() || !clipping)
    return std::nullopt;
  return *clipping;
}

MaybeError dtc::findSampleClippingConflict(const CompileOptions &options, OptionSpelling spelling,
                                           MeshSource source) {
  if (options.dpSgd.empty())
    return std::nullopt;
  auto given = [&](StringRef name) { return spell(name, spelling); };
  std::string found = fmt::format("{} is \"{}\"", given("dp_sgd"), options.dpSgd);
  if (auto clipping = parseSampleClipping(options.dpSgd); !clipping)
    return Error{fmt::format("{}: {}", found, clipping.error().message)};
  if (options.mode != CompileMode::Train)
    return Error{
        fmt::format("{}, but only plans of --mode train clip gradients; leave it out", found)};
  if (source != MeshSource::Options)
    return Error{fmt::format("{}, and the gradient of a sample is one of a microbatch of the mesh "
                             "of the options; give the mesh by {}",
                             found, given("mesh"))};
  if (options.hasAxis(kPipelineAxis))
    return Error{
        fmt::format("{}, and the mesh has \"{}\", along which a device has the gradient "
                    "of a sample before the norm of all of it is known; use tp, fsdp or dp",
                    found, kPipelineAxis)};
  const CompileOptions defaults;
  for (auto [name, isGiven, why] :
       {std::tuple("clip", options.clip != defaults.clip && options.clip != 0,
                   "the gradients of samples are clipped, and not their mean"),
        std::tuple("compress", !options.compress.empty() && !outerCompressionOf(options),
                   "what is lost of a sum would change how far a sample moves it"),
        std::tuple("grad_reduce_dtype", options.gradReduceDtype != ComputeType::F32,
                   "a rounded sum would change how far a sample moves it")})
    if (isGiven)
      return Error{fmt::format("{}, and {} is given, but {}; leave one of them out", found,
                               given(name), why)};
  if (options.dtype == ComputeType::F8)
    return Error{fmt::format("{}, and {} is \"fp8\", whose scales follow from all samples; choose "
                             "bf16",
                             found, given("dtype"))};
  if (options.dtype == ComputeType::F16)
    return Error{fmt::format("{}, and {} is \"f16\", whose scale of the loss is in the gradients "
                             "that are clipped; choose bf16",
                             found, given("dtype"))};
  return std::nullopt;
}

/// The size of the dimension "batch" of an input; 0 where there is none.
static int64_t batchOf(func::FuncOp function) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    auto axes = function.getArgAttrOfType<ArrayAttr>(index, DtcDialect::kAxesAttrName);
    auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[index]);
    if (!axes || !type || !function.getArgAttr(index, DtcDialect::kInputAttrName))
      continue;
    for (auto [dim, axis] : llvm::enumerate(axes))
      if (auto name = dyn_cast<StringAttr>(axis); name && name.getValue() == "batch")
        return type.getDimSize(static_cast<unsigned>(dim));
  }
  return 0;
}

int64_t dtc::microbatchesOfSamples(ModuleOp model, const CompileOptions &options) {
  int64_t devices = 1;
  for (const auto &[axis, size] : options.mesh)
    if (splitsBatch(axis))
      devices *= size;
  for (auto function : model.getOps<func::FuncOp>())
    if (int64_t batch = batchOf(function); batch > 0 && batch % devices == 0)
      return batch / devices;
  return 1;
}
