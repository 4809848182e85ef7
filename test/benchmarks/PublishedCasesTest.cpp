//===- PublishedCasesTest.cpp - Tables of published configurations ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/PublishedCases.h"

#include "test/lib/plans/Expect.h"

#include <gtest/gtest.h>

using namespace dtc;
using namespace dtc::benchmarks;

/// The error of a table; empty if there is none.
static std::string problemOf(const std::string &table) {
  auto cases = parsePublishedCases(table);
  return cases ? "" : cases.error().message;
}

TEST(PublishedCases, ExecutedByDtcUnlessTheTableSaysOtherwise) {
  auto cases = parsePublishedCases("name,executed_by\na\nb,\nc,dtc\nd,megatron-lm-2022\n");
  ASSERT_OK(cases);
  ASSERT_EQ(cases->size(), 4u);
  for (int i : {0, 1, 2}) {
    EXPECT_EQ((*cases)[static_cast<size_t>(i)].executedBy, "dtc");
    EXPECT_FALSE((*cases)[static_cast<size_t>(i)].isMegatron());
  }
  EXPECT_TRUE((*cases)[3].isMegatron());
}

TEST(PublishedCases, WhatNobodyIsKnownToExecute) {
  EXPECT_EQ(problemOf("name,executed_by\na,Megatron-LM\n"),
            "line 2, column executed_by: found \"Megatron-LM\", expected dtc, megatron-lm-2022");
}

TEST(PublishedCases, AnUpdateThatIsNotKnown) {
  EXPECT_EQ(problemOf("executed_by,zero\nmegatron-lm-2022,1\n"),
            "line 2, column executed_by: found megatron-lm-2022 with zero 1, expected zero 0, "
            "whose update is the one that is known here; give that, or dtc");
  EXPECT_EQ(problemOf("executed_by,zero\ndtc,1\n"), "");
}
