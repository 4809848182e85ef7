//===- Nonfinite.h - Infinities and NaN in tensors ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_NONFINITE_H
#define DTC_SUPPORT_NONFINITE_H

#include "support/Tensor.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace dtc {

struct NonfiniteElement {
  int64_t index = 0;
  std::string value; ///< "nan", "inf" or "-inf"
};

/// The first of dense elements that is no finite number; none where the type has no others. The
/// elements may begin anywhere.
std::optional<NonfiniteElement> findNonfinite(DType dtype, std::span<const std::byte> elements);

} // namespace dtc

#endif // DTC_SUPPORT_NONFINITE_H
