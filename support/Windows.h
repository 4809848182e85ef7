//===- Windows.h - The windows of convolutions and poolings ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_WINDOWS_H
#define DTC_SUPPORT_WINDOWS_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace dtc {

/// The windows along one spatial dimension. Element k of window i, for k < size, lies at the place
/// i * stride - padding + k * dilation of the dimension; a place outside of it is padding.
struct Windows {
  int64_t size = 1, stride = 1, padding = 0, dilation = 1;

  /// The number of places from the first element of a window to its last one.
  int64_t extent() const { return (size - 1) * dilation + 1; }
  /// The number of windows that fit into a dimension of `length` elements with its padding on both
  /// sides; 0 if none does.
  int64_t countIn(int64_t length) const {
    int64_t padded = length + 2 * padding;
    return padded < extent() ? 0 : (padded - extent()) / stride + 1;
  }
};

/// The most spatial dimensions of a convolution or a pooling.
inline constexpr size_t kMaxSpatialDims = 3;
/// The largest size, stride, padding and dilation of a window, so that no sum of them overflows.
inline constexpr int64_t kMaxWindowNumber = (int64_t{1} << 31) - 1;

/// Says what is wrong with the attributes of windows, and what is expected; none if they describe
/// windows of 1 to kMaxSpatialDims dimensions. `sizes` is checked where it is given, as for a
/// pooling; those of a convolution are dimensions of its weight.
std::optional<std::string>
findWindowProblem(std::span<const int64_t> strides, std::span<const int64_t> padding,
                  std::span<const int64_t> dilations,
                  std::optional<std::span<const int64_t>> sizes = std::nullopt);

} // namespace dtc

#endif // DTC_SUPPORT_WINDOWS_H
