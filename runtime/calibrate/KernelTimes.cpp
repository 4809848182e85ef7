//===- KernelTimes.cpp - Times of kernels ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/KernelCases.h"
#include "runtime/calibrate/Measurements.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

static size_t operandBytes(const std::vector<KernelSignature> &calls) {
  size_t bytes = 0;
  for (const KernelSignature &call : calls)
    for (const auto *types : {&call.inputs, &call.outputs})
      for (const TensorType &type : *types)
        bytes += type.numBytes();
  return bytes;
}

namespace {

/// Adds the points of one kernel: its time at each size.
class PointsOf {
public:
  PointsOf(CalibrationContext &context, cluster::DeviceKind &device, const char *kernel,
           DType dtype)
      : context(context), rate(*device.add_kernels()) {
    rate.set_kernel(kernel);
    rate.set_dtype(name(dtype));
  }

  MaybeError add(const std::vector<KernelSignature> &calls, KernelRunOptions run) {
    run.workingSetBytes = context.options.workingSetBytes;
    double bytes = meanBytes(calls);
    // Operands that do not shrink make two sizes the same.
    if (!rate.points().empty() && (bytes <= rate.points(rate.points_size() - 1).bytes() ||
                                   operandBytes(calls) > context.timer.mostOperandBytes()))
      return std::nullopt;
    Expected<double> seconds = context.timer.secondsOf(calls, run);
    if (!seconds)
      return seconds.error();
    cluster::TimePoint *point = rate.add_points();
    point->set_bytes(bytes);
    point->set_seconds(rounded(*seconds));
    return std::nullopt;
  }

  cluster::KernelRate &result() { return rate; }

private:
  CalibrationContext &context;
  cluster::KernelRate &rate;
};

} // namespace

static MaybeError measureCase(CalibrationContext &context, cluster::DeviceKind &device,
                              const KernelCase &kernel, DType dtype) {
  PointsOf points(context, device, kernel.name, dtype);
  KernelRunOptions run;
  run.inPlace = kernel.inPlace;
  run.indices = kernel.indices;
  for (int64_t bytes : context.options.kernelBytes)
    if (MaybeError error = points.add(callsOfSize(kernel, dtype, bytes), run))
      return error;
  return std::nullopt;
}

/// The time of short sequences by their bytes, and the rate of long ones by their FLOPs. The longer
/// of the two is the time of a call: the rate rises with the length, up to some hundred
/// positions.
static MaybeError measureAttention(CalibrationContext &context, cluster::DeviceKind &device,
                                   bool grad, DType dtype) {
  const CalibrationOptions &options = context.options;
  PointsOf points(context, device, grad ? "attention_grad" : "attention", dtype);
  AttentionCase shape = options.shortAttention;
  const int64_t mostHeads = shape.heads;
  double ofHead = meanBytes({attentionCall(grad, dtype, {1, 1, shape.positions, shape.headSize})});
  for (int64_t bytes :
       options.attentionBytes.empty() ? options.kernelBytes : options.attentionBytes) {
    auto heads = static_cast<int64_t>(static_cast<double>(bytes) / ofHead);
    shape.heads = heads < mostHeads ? 1 : mostHeads;
    shape.batch = std::max<int64_t>(1, heads / shape.heads);
    if (MaybeError error = points.add({attentionCall(grad, dtype, shape)}, {}))
      return error;
  }
  KernelRunOptions run;
  run.workingSetBytes = options.workingSetBytes;
  const AttentionCase &longest = options.longAttention;
  Expected<double> seconds = context.timer.secondsOf({attentionCall(grad, dtype, longest)}, run);
  if (!seconds)
    return seconds.error();
  points.result().set_flops(rounded(attentionFlops(grad, longest) / *seconds));
  return std::nullopt;
}

MaybeError measureKernels(CalibrationContext &context, cluster::DeviceKind &device) {
  const CalibrationOptions &options = context.options;
  std::vector<KernelCase> cases = kernelCases();
  for (DType dtype : options.dtypes) {
    auto skips = [&](const KernelCase &kernel) {
      return wideType(dtype) != dtype && !kernel.in16Bits;
    };
    context.announce(
        fmt::format("kernels of {}", name(dtype)),
        (cases.size() + 2 - static_cast<size_t>(std::count_if(cases.begin(), cases.end(), skips))) *
            options.kernelBytes.size());
    for (const KernelCase &kernel : cases)
      if (!skips(kernel))
        if (MaybeError error = measureCase(context, device, kernel, dtype))
          return error;
    for (bool grad : {false, true})
      if (MaybeError error = measureAttention(context, device, grad, dtype))
        return error;
  }
  for (const cluster::KernelRate &rate : device.kernels())
    if (rate.kernel() == "copy") {
      const cluster::TimePoint &most = rate.points(rate.points_size() - 1);
      device.set_memory_bandwidth(
          std::max(device.memory_bandwidth(), rounded(most.bytes() / most.seconds())));
    }
  return std::nullopt;
}

} // namespace dtc::runtime
