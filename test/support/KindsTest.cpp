//===- KindsTest.cpp - Tests of the names of kinds ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Kinds.h"
#include "support/Tensor.h"

#include <gtest/gtest.h>

namespace kindsTest {

using namespace dtc;

/// Every value up to the last has a name by which it is found, and no number after it has one.
template <typename Enum> static void checkNames(Enum last) {
  for (int number = 1; number <= static_cast<int>(last); ++number) {
    auto value = static_cast<Enum>(number);
    EXPECT_TRUE(isNamed(value)) << number;
    EXPECT_EQ(findByName<Enum>(name(value)), value) << number;
  }
  for (int number : {-1, 0, static_cast<int>(last) + 1}) {
    EXPECT_FALSE(isNamed(static_cast<Enum>(number))) << number;
    EXPECT_STREQ(name(static_cast<Enum>(number)), "unknown") << number;
  }
  EXPECT_FALSE(findByName<Enum>("unknown"));
  EXPECT_FALSE(findByName<Enum>(""));
}

TEST(Kinds, HaveNames) {
  checkNames(CollectiveKind::Permute);
  checkNames(ReductionKind::Min);
  checkNames(StagePass::Weight);
  checkNames(BufferKind::Cache);
  checkNames(TransferKind::Receive);
  checkNames(PaddingValue::Highest);
  checkNames(DType::F8E5M2);
}

TEST(Kinds, NamesAreThoseOfTheirValues) {
  EXPECT_STREQ(name(CollectiveKind::ReduceScatter), "reduce_scatter");
  EXPECT_STREQ(name(ReductionKind::Max), "max");
  EXPECT_STREQ(name(StagePass::Backward), "backward");
  EXPECT_STREQ(name(BufferKind::OptimizerState), "optimizer_state");
  EXPECT_STREQ(name(TransferKind::Send), "send_to");
  EXPECT_STREQ(name(PaddingValue::Lowest), "lowest");
  EXPECT_STREQ(name(DType::Bool), "bool");
}

} // namespace kindsTest
