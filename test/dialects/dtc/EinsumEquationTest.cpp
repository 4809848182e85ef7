//===- EinsumEquationTest.cpp - Tests of equations ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/EinsumEquation.h"

#include "gtest/gtest.h"

#include <random>

using namespace dtc;

TEST(EinsumEquation, ReadsTerms) {
  std::string error;
  auto equation = EinsumEquation::parse("bsd,df->bsf", error);
  ASSERT_TRUE(succeeded(equation));
  EXPECT_EQ(equation->lhs, "bsd");
  EXPECT_EQ(equation->rhs, "df");
  EXPECT_EQ(equation->result, "bsf");
  EXPECT_EQ(equation->str(), "bsd,df->bsf");
}

TEST(EinsumEquation, ReadsScalars) {
  std::string error;
  auto equation = EinsumEquation::parse(",->", error);
  ASSERT_TRUE(succeeded(equation));
  EXPECT_EQ(equation->str(), ",->");
}

/// Strings of the characters that matter: what is read prints as it was, and its gradients'
/// equations can be read.
TEST(EinsumEquation, RandomStrings) {
  std::mt19937 random(7);
  const std::string alphabet = "aabbcc,,->->AZ.( \xff";
  unsigned numRead = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string text;
    for (unsigned length = random() % 10; length > 0; --length)
      text += alphabet[random() % alphabet.size()];
    if (random() % 2)
      text.insert(random() % (text.size() + 1), "->");
    std::string error;
    auto equation = EinsumEquation::parse(text, error);
    if (failed(equation)) {
      EXPECT_FALSE(error.empty()) << text;
      continue;
    }
    ++numRead;
    EXPECT_EQ(equation->str(), text);
    EinsumEquation byLhs{equation->result, equation->rhs, equation->lhs};
    EinsumEquation byRhs{equation->lhs, equation->result, equation->rhs};
    EXPECT_TRUE(succeeded(EinsumEquation::parse(byLhs.str(), error))) << text << ": " << error;
    EXPECT_TRUE(succeeded(EinsumEquation::parse(byRhs.str(), error))) << text << ": " << error;
  }
  EXPECT_GT(numRead, 100u);
}
