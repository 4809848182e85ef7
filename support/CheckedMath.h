//===- CheckedMath.h - Arithmetic with overflow checks --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_CHECKEDMATH_H
#define DTC_SUPPORT_CHECKEDMATH_H

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

namespace dtc {

/// The product, or none if it does not fit an int64_t.
inline std::optional<int64_t> checkedMul(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result))
    return std::nullopt;
  return result;
}

/// The number of elements of a shape, or none if a dimension is negative or the product of the
/// dimensions (zeros left out, so that strides fit as well) does not fit an int64_t.
inline std::optional<int64_t> checkedElements(std::span<const int64_t> shape) {
  int64_t product = 1;
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0)
      return std::nullopt;
    empty |= dim == 0;
    std::optional<int64_t> next = checkedMul(product, std::max<int64_t>(dim, 1));
    if (!next)
      return std::nullopt;
    product = *next;
  }
  return empty ? 0 : product;
}

} // namespace dtc

#endif // DTC_SUPPORT_CHECKEDMATH_H
