//===- QuantityTest.cpp - Tests of quantities with units ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Quantity.h"

#include "test/lib/plans/Expect.h"

#include <gtest/gtest.h>

namespace quantityTest {

using namespace dtc;
using namespace dtc::runtime::testing;

static uint64_t bytesOf(const char *text) {
  Expected<uint64_t> bytes = parseByteSize(text);
  EXPECT_OK(bytes);
  return bytes ? *bytes : 0;
}

TEST(Quantity, ByteSizes) {
  EXPECT_EQ(bytesOf("0"), 0u);
  EXPECT_EQ(bytesOf("1000"), 1000u);
  EXPECT_EQ(bytesOf("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(bytesOf("9007199254740993"), 9007199254740993u); // 2^53 + 1
  EXPECT_EQ(bytesOf("12B"), 12u);
  EXPECT_EQ(bytesOf("3 kB"), 3000u);
  EXPECT_EQ(bytesOf("64MiB"), uint64_t{64} << 20);
  EXPECT_EQ(bytesOf("2GB"), 2000000000u);
  EXPECT_EQ(bytesOf("1.5KiB"), 1536u);
  EXPECT_EQ(bytesOf("1TiB"), uint64_t{1} << 40);
  EXPECT_EQ(bytesOf("1e3"), 1000u);
  EXPECT_EQ(bytesOf("0.9"), 0u);
}

TEST(Quantity, WhatIsNoByteSize) {
  for (const char *text : {"", "MiB", "-1", "-1MiB", "+1", "inf", "nan", "64mib", "64 MiBs",
                           "1e999", "1,5MiB", "0x10", " 1"})
    EXPECT_ERROR(parseByteSize(text), "is no number of bytes; expected") << text;
  EXPECT_ERROR(parseByteSize("18446744073709551616"), "more bytes than 64 bits count");
  EXPECT_ERROR(parseByteSize("16777216TiB"), "more bytes than 64 bits count");
  EXPECT_ERROR(parseByteSize("64 apples"), "\"64 apples\"");
}

TEST(Quantity, Units) {
  static constexpr Unit units[] = {{"m", 1}, {"km", 1000}};
  EXPECT_EQ(parseQuantity("2.5km", units), 2500.0);
  EXPECT_EQ(parseQuantity("7 m", units), 7.0);
  EXPECT_EQ(parseQuantity("7", units), std::nullopt);
  EXPECT_EQ(parseQuantity("1e308km", units), std::nullopt);
}

} // namespace quantityTest
