//===- NonfiniteTest.cpp - Tests of finding infinities and NaN ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Nonfinite.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace nonfiniteTest {

using namespace dtc;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr DType kFloats[] = {DType::F32, DType::F64, DType::BF16, DType::F16};

std::optional<NonfiniteElement> find(const HostTensor &tensor) {
  return findNonfinite(tensor.type.dtype, tensor.bytes);
}

} // namespace

TEST(Nonfinite, FindsTheFirst) {
  for (DType dtype : kFloats)
    for (int64_t size : {1, 7, 4095, 4096, 4097, 10000})
      for (int64_t index : {int64_t{0}, size / 2, size - 1}) {
        HostTensor tensor(TensorType{dtype, {size}});
        EXPECT_FALSE(find(tensor));
        setElement(tensor, size - 1, -kInfinity);
        setElement(tensor, index, kInfinity);
        auto found = find(tensor);
        ASSERT_TRUE(found) << name(dtype) << " " << index << " of " << size;
        EXPECT_EQ(found->index, index);
        EXPECT_EQ(found->value, "inf");
      }
}

TEST(Nonfinite, NamesTheValue) {
  for (DType dtype : kFloats)
    for (auto [value, text] : {std::pair{kNan, "nan"},
                               {std::copysign(kNan, -1.0), "nan"},
                               {kInfinity, "inf"},
                               {-kInfinity, "-inf"}}) {
      HostTensor tensor(TensorType{dtype, {3}});
      setElement(tensor, 1, value);
      auto found = find(tensor);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->value, text);
    }
}

TEST(Nonfinite, TheLargestNumbersAreFinite) {
  for (auto [dtype, largest] : {std::pair{DType::F32, double(std::numeric_limits<float>::max())},
                                {DType::F64, std::numeric_limits<double>::max()},
                                {DType::BF16, 3.3895313892515355e38},
                                {DType::F16, 65504.0}}) {
    HostTensor tensor(TensorType{dtype, {2}});
    setElement(tensor, 0, largest);
    setElement(tensor, 1, -largest);
    EXPECT_FALSE(find(tensor)) << name(dtype);
  }
}

TEST(Nonfinite, ElementsMayBeginAnywhere) {
  HostTensor tensor(TensorType{DType::F32, {5}});
  setElement(tensor, 4, kNan);
  std::vector<std::byte> shifted(tensor.bytes.size() + 1);
  std::copy(tensor.bytes.begin(), tensor.bytes.end(), shifted.begin() + 1);
  auto found = findNonfinite(DType::F32, std::span(shifted).subspan(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->index, 4);
}

TEST(Nonfinite, IntegersAreFinite) {
  for (DType dtype : {DType::I32, DType::Bool}) {
    HostTensor tensor(TensorType{dtype, {8}});
    std::fill(tensor.bytes.begin(), tensor.bytes.end(), std::byte{0xff});
    EXPECT_FALSE(find(tensor));
  }
  EXPECT_FALSE(findNonfinite(DType::F32, {}));
}

} // namespace nonfiniteTest
