//===- NearestNameTest.cpp - Tests of suggestions for names ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/NearestName.h"

#include <gtest/gtest.h>
#include <vector>

namespace nearestNameTest {

using namespace dtc;

static const std::vector<std::string> kNames = {"show", "shows", "explain", "memory_bandwidth"};

TEST(NearestName, FindsTheNearest) {
  EXPECT_EQ(nearestName("shoe", kNames), "show");
  EXPECT_EQ(nearestName("shows", kNames), "shows");
  EXPECT_EQ(nearestName("shosw", kNames), "show"); // one letter added; also one from "shows"
  EXPECT_EQ(nearestName("shwo", kNames), "show");
  EXPECT_EQ(nearestName("bf61", std::vector<std::string>{"f64", "bf16"}), "bf16");
  EXPECT_EQ(nearestName("xplain", kNames), "explain");
  EXPECT_EQ(nearestName("memory_bandwith", kNames), "memory_bandwidth");
  EXPECT_EQ(nearestName("mem_bandwidth", kNames), "memory_bandwidth");
}

TEST(NearestName, FindsNothingFarAway) {
  EXPECT_EQ(nearestName("verify", kNames), "");
  EXPECT_EQ(nearestName("bandwidth", kNames), "");
  EXPECT_EQ(nearestName("", kNames), "");
  EXPECT_EQ(nearestName("a", std::vector<std::string>{"b", "cd"}), "");
  EXPECT_EQ(nearestName("a", {}), "");
  // Too long to be compared.
  EXPECT_EQ(nearestName(std::string(100, 'a'), std::vector<std::string>{std::string(99, 'a')}), "");
}

TEST(NearestName, IsPartOfASentence) {
  EXPECT_EQ(didYouMean("shoe", kNames), "; did you mean \"show\"?");
  EXPECT_EQ(didYouMean("verify", kNames), "");
}

TEST(NearestName, QuotesLists) {
  EXPECT_EQ(quoteNames({}), "");
  EXPECT_EQ(quoteNames(std::vector<std::string>{"a", "b"}), "\"a\", \"b\"");
  std::string text = quoteNames(std::vector<std::string>(40, "a"));
  EXPECT_TRUE(text.ends_with("\"a\" and 8 more")) << text;
}

} // namespace nearestNameTest
