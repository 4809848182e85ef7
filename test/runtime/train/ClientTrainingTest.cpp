//===- ClientTrainingTest.cpp - Tests of the rounds of clients -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ClientTraining.h"

#include <gtest/gtest.h>

namespace clientTrainingTest {

using namespace dtc::runtime;

TEST(ClientTraining, WeightsAreSharesOfThoseThatAreTaken) {
  constexpr UpdateState taken = UpdateState::Taken;
  using Weights = std::vector<double>;
  EXPECT_EQ(clientWeights({10, 30, 60}, {taken, taken, taken}), (Weights{0.1, 0.3, 0.6}));
  EXPECT_EQ(clientWeights({10, 30, 60}, {taken, taken, UpdateState::NotFinite}),
            (Weights{0.25, 0.75, 0}));
  EXPECT_EQ(clientWeights({10, 30}, {UpdateState::NoStep, UpdateState::NotFinite}),
            (Weights{0, 0}));
}

TEST(ClientTraining, ClippedWeightsKeepTheDenominator) {
  constexpr UpdateState taken = UpdateState::Taken;
  EXPECT_EQ(clippedWeights({0.5, 2, 8, 1}, {taken, taken, UpdateState::NoStep, taken}, 1),
            (std::vector<double>{0.25, 0.125, 0, 0.25}));
}

TEST(ClientTraining, DescribesARound) {
  StepMetrics metrics;
  metrics.round = 3;
  metrics.clients = {{"north", 0.5, 0.25}, {"south", std::nullopt, 0.75}};
  EXPECT_EQ(ClientTraining::describe(metrics),
            "round 3: north loss 0.500000 weight 0.25, south weight 0.75");
}

} // namespace clientTrainingTest
