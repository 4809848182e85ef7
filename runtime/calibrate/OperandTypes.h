//===- OperandTypes.h - Types of operands made from others ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_OPERANDTYPES_H
#define DTC_RUNTIME_CALIBRATE_OPERANDTYPES_H

#include "support/Tensor.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace dtc::runtime {

/// The rows and the width of a matrix.
inline int64_t rowsOf(const TensorType &x) { return x.shape[0]; }
inline int64_t widthOf(const TensorType &x) { return x.shape[1]; }
/// The element type of `x`, with another shape.
inline TensorType like(const TensorType &x, std::vector<int64_t> shape) {
  return {x.dtype, std::move(shape)};
}

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_OPERANDTYPES_H
