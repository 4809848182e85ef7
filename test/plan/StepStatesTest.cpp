//===- StepStatesTest.cpp - Kinds of step state in a plan -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/StepStates.h"

#include <gtest/gtest.h>
#include <set>

using namespace dtc;

TEST(StepStates, EachHasAKindOfItsOwn) {
  std::set<plan::State::Kind> kinds;
  for (const StepStateKind &state : stepStateKinds()) {
    SCOPED_TRACE(state.name);
    EXPECT_TRUE(kinds.insert(kindOf(state)).second);
    EXPECT_EQ(stepStateKindOf(kindOf(state)), &state);
    EXPECT_EQ(findStepStateKind(state.name), &state);
  }
}

TEST(StepStates, OtherKindsAreNone) {
  std::set<plan::State::Kind> others;
  for (int value = plan::State::Kind_MIN; value <= plan::State::Kind_MAX; ++value)
    if (auto kind = static_cast<plan::State::Kind>(value); !stepStateKindOf(kind))
      others.insert(kind);
  EXPECT_EQ(others, (std::set{plan::State::PARAMETER, plan::State::OPTIMIZER,
                              plan::State::MASTER_WEIGHTS, plan::State::CACHE}));
  EXPECT_EQ(findStepStateKind("learning_rates"), nullptr);
  EXPECT_EQ(stepStateKindOf(static_cast<plan::State::Kind>(1000)), nullptr);
}

TEST(StepStates, TypesAreThoseOfThePlan) {
  EXPECT_EQ(findStepStateKind("loss_scale")->typeWith(DType::F64).str(), "f64[]");
  EXPECT_EQ(findStepStateKind("applied_steps")->typeWith(DType::F64).str(), "i32[]");
  EXPECT_EQ(findStepStateKind("random_key")->typeWith(DType::F32).str(), "i32[2]");
}
