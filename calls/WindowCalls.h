//===- WindowCalls.h - Calls of convolutions and poolings -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_WINDOWCALLS_H
#define DTC_CALLS_WINDOWCALLS_H

#include "calls/KernelSignature.h"
#include "support/Error.h"
#include "support/Windows.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace dtc {

/// A spatial dimension of `in` elements with `out` windows.
struct SpatialDim {
  int64_t in = 1, out = 1;
  Windows windows;

  /// The place of element k of the first window.
  int64_t firstPlace(int64_t k) const { return k * windows.dilation - windows.padding; }
  /// The windows [begin, end) whose element k is in the dimension.
  int64_t beginOf(int64_t k) const {
    int64_t before = -firstPlace(k);
    return before <= 0 ? 0 : std::min(out, (before + windows.stride - 1) / windows.stride);
  }
  int64_t endOf(int64_t k) const {
    int64_t left = in - firstPlace(k);
    int64_t end = left <= 0 ? 0 : std::min(out, (left + windows.stride - 1) / windows.stride);
    return std::max(end, beginOf(k));
  }
};

/// As many spatial dimensions as there may be; the first ones have one element if there are fewer.
using SpatialDims = std::array<SpatialDim, kMaxSpatialDims>;

/// The elements of x, of y and of a window in these dimensions.
inline int64_t inElements(const SpatialDims &dims) { return dims[0].in * dims[1].in * dims[2].in; }
inline int64_t outElements(const SpatialDims &dims) {
  return dims[0].out * dims[1].out * dims[2].out;
}
inline int64_t windowElements(const SpatialDims &dims) {
  return dims[0].windows.size * dims[1].windows.size * dims[2].windows.size;
}

/// Which of the three tensors of a convolution a kernel computes of the other two: y of x and w, x
/// of y and w, or w of x and y.
enum class ConvKind { Forward, InputGrad, WeightGrad };

/// A convolution of x [batch, groups, inChannels, in...] and w [groups, outChannels, inChannels,
/// size...] with the result y [batch, groups, outChannels, out...].
struct ConvCall {
  ConvKind kind = ConvKind::Forward;
  DType dtype = DType::F32; ///< of the operands
  DType out = DType::F32;   ///< of the result
  int64_t batch = 0, groups = 1, inChannels = 0, outChannels = 0;
  SpatialDims dims;

  int64_t xElements() const { return batch * groups * inChannels * inElements(dims); }
  int64_t yElements() const { return batch * groups * outChannels * outElements(dims); }
  int64_t wElements() const { return groups * outChannels * inChannels * windowElements(dims); }
};

/// Windows of `planes` tensors of the spatial dimensions.
struct PoolCall {
  DType dtype = DType::F32;
  int64_t planes = 0;
  SpatialDims dims;
};

// Each checks a call against its row of docs/kernels.md.
Expected<ConvCall> checkConv(const KernelSignature &signature);
Expected<ConvCall> checkConvInputGrad(const KernelSignature &signature);
Expected<ConvCall> checkConvWeightGrad(const KernelSignature &signature);
Expected<PoolCall> checkMaxPool(const KernelSignature &signature);
Expected<PoolCall> checkMaxPoolGrad(const KernelSignature &signature);

} // namespace dtc

#endif // DTC_CALLS_WINDOWCALLS_H
