//===- Tensor.h - Element types and shapes --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_SUPPORT_TENSOR_H
#define DTC_RUNTIME_SUPPORT_TENSOR_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dtc::runtime {

/// Element types, with the numbers of plan.proto's DType.
enum class DType : int { F32 = 1, F64 = 2, I32 = 3, Bool = 4 };

/// Bytes of one element.
size_t byteWidth(DType dtype);

/// "f32", "f64", "i32", "bool".
const char *name(DType dtype);

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

} // namespace dtc::runtime

#endif // DTC_RUNTIME_SUPPORT_TENSOR_H
