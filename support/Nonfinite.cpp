//===- Nonfinite.cpp - Infinities and NaN in tensors ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Nonfinite.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dtc {

/// Elements that are looked at together, without a branch for each.
static constexpr size_t kBlock = 4096;

/// The first element whose exponent bits are all set. Only infinities and NaN have these.
template <typename Bits>
static std::optional<size_t> findExponent(std::span<const std::byte> elements, Bits exponent) {
  size_t count = elements.size() / sizeof(Bits);
  auto isFound = [&](size_t index) {
    Bits bits;
    std::memcpy(&bits, elements.data() + index * sizeof(Bits), sizeof(Bits));
    return static_cast<Bits>((bits & exponent) == exponent);
  };
  for (size_t begin = 0; begin < count; begin += kBlock) {
    size_t end = std::min(begin + kBlock, count);
    Bits found = 0;
    for (size_t index = begin; index < end; ++index)
      found |= isFound(index);
    for (size_t index = begin; found && index < end; ++index)
      if (isFound(index))
        return index;
  }
  return std::nullopt;
}

static std::optional<size_t> findIndex(DType dtype, std::span<const std::byte> elements) {
  switch (dtype) {
  case DType::F32:
    return findExponent<uint32_t>(elements, 0x7f80'0000);
  case DType::F64:
    return findExponent<uint64_t>(elements, 0x7ff0'0000'0000'0000);
  case DType::BF16:
    return findExponent<uint16_t>(elements, 0x7f80);
  case DType::F16:
    return findExponent<uint16_t>(elements, 0x7c00);
  default:
    return std::nullopt;
  }
}

std::optional<NonfiniteElement> findNonfinite(DType dtype, std::span<const std::byte> elements) {
  std::optional<size_t> index = findIndex(dtype, elements);
  if (!index)
    return std::nullopt;
  HostTensor one(TensorType{dtype, {}});
  std::memcpy(one.bytes.data(), elements.data() + *index * one.bytes.size(), one.bytes.size());
  double value = elementAt(one, 0);
  // The sign of a NaN says nothing to people.
  return NonfiniteElement{static_cast<int64_t>(*index),
                          std::isnan(value) ? "nan" : (value > 0 ? "inf" : "-inf")};
}

} // namespace dtc
