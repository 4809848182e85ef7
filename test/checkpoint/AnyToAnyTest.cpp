//===- AnyToAnyTest.cpp - From any strategy to any other ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A run that goes on in another strategy has the states that were saved, to the bit, and the losses
// of the undisturbed run. In f64 the bound is 1e-9, so that a state that is lost or in a wrong
// place stands out from rounding.
//
// See RandomCases.h for the environment variables.
//
//===----------------------------------------------------------------------===//

#include "test/checkpoint/RandomStrategies.h"
#include "test/checkpoint/SavedTraining.h"
#include "test/lib/RandomCases.h"
#include "test/lib/plans/Expect.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace anyToAnyTest {

using namespace dtc;
using namespace dtc::test;

namespace {

constexpr int64_t kSaved = 3, kSteps = kSaved + 5;

/// A pair of strategies of a model.
struct Pair {
  std::string config;
  SavedModel model;
  std::string from, to;
  double tolerance;
};

Pair randomPair(uint64_t seed) {
  std::mt19937_64 random(seed);
  Pair pair;
  pair.config = randomConfig(random);
  pair.model = {pair.config.c_str()};
  pair.model.batch = std::uniform_int_distribution(16, 21)(random);
  pair.model.seq = std::uniform_int_distribution(3, 7)(random);
  pair.from = randomStrategy(random, pair.model.batch);
  pair.to = randomStrategy(random, pair.model.batch);
  switch (random() % 4) {
  case 0:
    pair.tolerance = 1e-4;
    break;
  case 1: // master weights from parameters, or the other way round
    (random() % 2 ? pair.from : pair.to) += " dtype=bf16";
    pair.tolerance = 1.0 / 128;
    break;
  default:
    pair.model.isDouble = true;
    pair.tolerance = 1e-9;
  }
  return pair;
}

/// Trains on the first strategy, and goes on in the second after kSaved steps.
void expectSameTraining(const Pair &pair) {
  SavedTraining undisturbed, moved;
  for (SavedTraining *training : {&undisturbed, &moved})
    training->options.steps = kSteps;
  ASSERT_TRUE(undisturbed.compile(pair.model, pair.from));
  ASSERT_TRUE(moved.compile(pair.model, pair.to));
  ASSERT_OK(undisturbed.runUntil(kSaved));
  moved.copyFrom(undisturbed);
  undisturbed.options.resume = true;
  ASSERT_OK(undisturbed.run());

  ASSERT_NO_FATAL_FAILURE(moved.expectLoadedAsSaved(kSaved));
  moved.options.resume = true;
  ASSERT_OK(moved.run());
  // Neither is anything missing nor anything left over.
  EXPECT_FALSE(runtime::testing::contains(moved.notes(), "checkpoint and")) << moved.notes();
  std::vector<double> expected = undisturbed.losses(kSaved + 1, kSteps);
  std::vector<double> actual = moved.losses(kSaved + 1, kSteps);
  ASSERT_EQ(expected.size(), size_t(kSteps - kSaved));
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], pair.tolerance * expected[i])
        << "in step " << kSaved + 1 + int64_t(i);
}

} // namespace

TEST(AnyToAny, RandomPairsOfStrategies) {
  forEachRandomCase(60, [](uint64_t seed, bool alone) {
    Pair pair = randomPair(seed);
    std::string text = fmt::format("{}, batch {}, sequence {}{}:\n  from {}\n  to   {}",
                                   pair.config, pair.model.batch, pair.model.seq,
                                   pair.model.isDouble ? ", f64" : "", pair.from, pair.to);
    SCOPED_TRACE(text);
    if (alone)
      std::cout << text << '\n' << std::flush;
    expectSameTraining(pair);
  });
}

// A state that ZeRO splits along two dimensions, or with shards of nothing but padding, is saved
// like any other state.
TEST(AnyToAny, UnevenZero) {
  Pair pair;
  pair.config = R"({"model_type": "gpt2", "vocab_size": 23, "n_positions": 6, "n_embd": 10,
    "n_layer": 2, "n_head": 2, "n_inner": 14, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})";
  pair.model = {pair.config.c_str()};
  pair.model.batch = 24;
  pair.model.seq = 6;
  pair.model.isDouble = true;
  pair.tolerance = 1e-9;
  const std::pair<const char *, const char *> kMoves[] = {
      {"dp=12 zero=3", "dp=7 zero=2"},
      {"dp=7 zero=1", "dp=6,tp=2 zero=3"},
      {"dp=4,pp=2 m=2 zero=2", "dp=24 zero=1"},
  };
  for (auto [from, to] : kMoves) {
    pair.from = from;
    pair.to = to;
    SCOPED_TRACE(pair.from + " to " + pair.to);
    expectSameTraining(pair);
  }
}

} // namespace anyToAnyTest
