//===- Tensor.cpp - Element types and shapes ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Tensor.h"

#include "support/Float8.h"

namespace dtc {

size_t byteWidth(DType dtype) {
  switch (dtype) {
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F64:
    return 8;
  case DType::Bool:
  case DType::F8E4M3:
  case DType::F8E5M2:
    return 1;
  case DType::BF16:
  case DType::F16:
    return 2;
  }
  return 0;
}

bool isFloat(DType dtype) {
  return dtype != DType::I32 && dtype != DType::Bool && !isFloat8(dtype);
}

bool isFloat8(DType dtype) { return dtype == DType::F8E4M3 || dtype == DType::F8E5M2; }

DType wideType(DType dtype) {
  return dtype == DType::BF16 || dtype == DType::F16 ? DType::F32 : dtype;
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

double elementAt(const HostTensor &tensor, int64_t index) {
  switch (tensor.type.dtype) {
  case DType::F32:
    return tensor.as<float>()[index];
  case DType::F64:
    return tensor.as<double>()[index];
  case DType::I32:
    return tensor.as<int32_t>()[index];
  case DType::Bool:
    return tensor.as<uint8_t>()[index];
  case DType::BF16:
    return tensor.as<BFloat16>()[index];
  case DType::F16:
    return tensor.as<Float16>()[index];
  case DType::F8E4M3:
    return tensor.as<Float8E4M3>()[index];
  case DType::F8E5M2:
    return tensor.as<Float8E5M2>()[index];
  }
  return 0;
}

void setElement(HostTensor &tensor, int64_t index, double value) {
  switch (tensor.type.dtype) {
  case DType::F32:
    tensor.as<float>()[index] = static_cast<float>(value);
    return;
  case DType::F64:
    tensor.as<double>()[index] = value;
    return;
  case DType::I32:
    tensor.as<int32_t>()[index] = static_cast<int32_t>(value);
    return;
  case DType::Bool:
    tensor.as<uint8_t>()[index] = value != 0;
    return;
  case DType::BF16:
    tensor.as<BFloat16>()[index] = BFloat16(value);
    return;
  case DType::F16:
    tensor.as<Float16>()[index] = Float16(value);
    return;
  case DType::F8E4M3:
    tensor.as<Float8E4M3>()[index] = Float8E4M3(value);
    return;
  case DType::F8E5M2:
    tensor.as<Float8E5M2>()[index] = Float8E5M2(value);
    return;
  }
}

} // namespace dtc
