//===- Tensor.h - Element types and shapes --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_TENSOR_H
#define DTC_SUPPORT_TENSOR_H

#include "support/EnumNames.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dtc {

/// Element types, with the numbers of plan.proto's DType.
enum class DType : int {
  F32 = 1,
  F64 = 2,
  I32 = 3,
  Bool = 4,
  BF16 = 5,
  F16 = 6,
  F8E4M3 = 7,
  F8E5M2 = 8
};
template <> struct EnumNames<DType> {
  static constexpr std::array list = {"f32",  "f64", "i32",    "bool",
                                      "bf16", "f16", "f8e4m3", "f8e5m2"};
};

/// Bytes of one element.
size_t byteWidth(DType dtype);

/// Whether the elements are floating-point numbers that kernels compute with: of 16 bits or more.
bool isFloat(DType dtype);

/// Whether the elements are numbers of 8 bits, which have a scale for the whole tensor.
bool isFloat8(DType dtype);

/// The type for sums and statistics of numbers of a type: f32 for bf16 and f16, every other type
/// itself.
DType wideType(DType dtype);

/// The type of a dense row-major tensor. A scalar has an empty shape and one element.
struct TensorType {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;

  bool operator==(const TensorType &) const = default;
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t numElements() const;
  size_t numBytes() const { return static_cast<size_t>(numElements()) * byteWidth(dtype); }
  /// "f32[2,3]".
  std::string str() const;
};

/// A tensor in host memory that owns its bytes.
struct HostTensor {
  TensorType type;
  std::vector<std::byte> bytes;

  HostTensor() = default;
  explicit HostTensor(TensorType type) : type(std::move(type)), bytes(this->type.numBytes()) {}

  template <typename T> T *as() { return reinterpret_cast<T *>(bytes.data()); }
  template <typename T> const T *as() const { return reinterpret_cast<const T *>(bytes.data()); }
};

/// Element `index` as a double, which holds all values of all types; false is 0, true is 1.
double elementAt(const HostTensor &tensor, int64_t index);
/// Makes element `index` that value, rounded once where the type is a float type. An i32 truncates
/// it, and must hold it; a bool becomes whether it is not zero.
void setElement(HostTensor &tensor, int64_t index, double value);

} // namespace dtc

#endif // DTC_SUPPORT_TENSOR_H
