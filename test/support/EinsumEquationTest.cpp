//===- EinsumEquationTest.cpp - Tests of equations ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/EinsumEquation.h"

#include "gtest/gtest.h"

#include <random>

namespace einsumEquationTest {

using namespace dtc;

TEST(EinsumEquation, ReadsTerms) {
  auto equation = EinsumEquation::parse("bsd,df->bsf");
  ASSERT_TRUE(equation);
  EXPECT_EQ(equation->lhs(), "bsd");
  EXPECT_EQ(equation->rhs(), "df");
  EXPECT_EQ(equation->result(), "bsf");
  EXPECT_EQ(equation->str(), "bsd,df->bsf");
}

TEST(EinsumEquation, ReadsScalars) {
  auto equation = EinsumEquation::parse(",->");
  ASSERT_TRUE(equation);
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
    EinsumEquation::Violation violation;
    auto equation = EinsumEquation::parse(text, &violation);
    if (!equation) {
      EXPECT_FALSE(violation.text.empty()) << text;
      continue;
    }
    ++numRead;
    EXPECT_EQ(equation->str(), text);
    auto [lhs, rhs, result] = equation->terms;
    EXPECT_TRUE(EinsumEquation::parse(EinsumEquation{{result, rhs, lhs}}.str())) << text;
    EXPECT_TRUE(EinsumEquation::parse(EinsumEquation{{lhs, result, rhs}}.str())) << text;
  }
  EXPECT_GT(numRead, 100u);
}

} // namespace einsumEquationTest
