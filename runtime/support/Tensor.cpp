//===- Tensor.cpp - Element types and shapes ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/support/Tensor.h"

namespace dtc::runtime {

size_t byteWidth(DType dtype) {
  switch (dtype) {
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F64:
    return 8;
  case DType::Bool:
    return 1;
  }
  return 0;
}

const char *name(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return "f32";
  case DType::F64:
    return "f64";
  case DType::I32:
    return "i32";
  case DType::Bool:
    return "bool";
  }
  return "unknown";
}

int64_t TensorType::numElements() const {
  // Unsigned, so that a shape that nobody has checked yet cannot overflow.
  uint64_t product = 1;
  for (int64_t dim : shape)
    product *= static_cast<uint64_t>(dim);
  return static_cast<int64_t>(product);
}

std::string TensorType::str() const {
  std::string text = name(dtype);
  text += '[';
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + ']';
}

} // namespace dtc::runtime
