//===- RunIdentityTest.cpp - Tests of the identity of a run ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/RunIdentity.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"
#include "test/lib/plans/TestPlans.h"

#include <gtest/gtest.h>

namespace runIdentityTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

TEST(RunIdentity, SaysWhatARunIs) {
  RunIdentity identity = *identityOf(*trainingPlan({2, 2, 2}), 3, 9, nullptr, Sampling::Random);
  EXPECT_EQ(identity.samples, 8);
  EXPECT_EQ(identity.sequence, 6);
  EXPECT_EQ(identity.batches, 3);
  EXPECT_EQ(identity.seed, 9u);
  ASSERT_EQ(identity.optimizer.size(), 1u);
  EXPECT_TRUE(contains(identity.optimizer.begin()->first, "sgd momentum=0.5"));
  // The layout makes no difference.
  RunIdentity other = *identityOf(*trainingPlan(), 3, 9, nullptr, Sampling::Random);
  EXPECT_EQ(other.model, identity.model);
  EXPECT_EQ(other.optimizer, identity.optimizer);
  EXPECT_NE(identityOf(*pipelinePlan(), 3, 9, nullptr, Sampling::Random)->model, identity.model);
}

TEST(RunIdentity, NothingChanged) {
  RunIdentity identity = *identityOf(*trainingPlan(), 1, 0, nullptr, Sampling::Random);
  std::vector<std::string> notes;
  EXPECT_OK(checkIdentity(identity, identity, {}, notes));
  EXPECT_TRUE(notes.empty());
}

TEST(RunIdentity, NamesEachChangeAndTheFlagThatAllowsIt) {
  RunIdentity saved = *identityOf(*trainingPlan(), 1, 0, nullptr, Sampling::Random), now = saved;
  saved.data = "a.txt: 10 bytes";
  now.data = "b.txt: 20 bytes";
  now.batches = 2;
  now.sequence = 12;
  now.seed = 1;
  saved.optimizer = {{"sgd momentum=0.5", {"w"}}};
  now.optimizer = {{"lion", {"w"}}};
  std::vector<std::string> notes;
  MaybeError error = checkIdentity(saved, now, {}, notes);
  for (const char *part :
       {"a step was 8 samples (a batch of 8), and is 16 samples (2 batches of 8)",
        "a sequence was 6 tokens, and is 12 tokens",
        "the data set was a.txt: 10 bytes, and is b.txt: 20 bytes",
        "the optimizer of w was sgd momentum=0.5, and is lion", "the seed was 0, and is 1",
        "--allow-change batch,sequence,data,optimizer,seed"})
    EXPECT_ERROR(error, part);
  EXPECT_ERROR(checkIdentity(saved, now, {"batch", "sequence", "optimizer", "seed"}, notes),
               "--allow-change data");
  EXPECT_EQ(notes.size(), 4u);
  EXPECT_OK(checkIdentity(saved, now, {"batch", "sequence", "optimizer", "seed", "data"}, notes));
}

TEST(RunIdentity, TheSplitOfAStepIsANote) {
  RunIdentity saved{.samples = 8, .batches = 1}, now{.samples = 4, .batches = 2};
  std::vector<std::string> notes;
  EXPECT_OK(checkIdentity(saved, now, {}, notes));
  EXPECT_EQ(notes, std::vector<std::string>{"a step was 8 samples (a batch of 8), and is 8 samples "
                                            "(2 batches of 4)"});
}

TEST(RunIdentity, OperationsAreComparedOfTheSameParameters) {
  auto check = [](const RunIdentity &saved, const RunIdentity &now,
                  const std::set<std::string> &allowed = {}) {
    std::vector<std::string> notes;
    MaybeError error = checkIdentity(saved, now, allowed, notes);
    EXPECT_EQ(notes.size(), allowed.size());
    return error;
  };
  RunIdentity saved{.model = "m", .adapters = "a", .operations = "1"};
  EXPECT_OK(check(saved, saved));
  RunIdentity now = saved;
  now.operations = "2";
  EXPECT_ERROR(check(saved, now), "the operations of the model differ (what they are, how they are "
                                  "connected, or their numbers); give what it had, or allow the "
                                  "change with --allow-change model");
  EXPECT_OK(check(saved, now, {"model"}));
  // Where parameters differ, loading the checkpoint says which.
  now.adapters = "";
  EXPECT_OK(check(saved, now));
  now.adapters = "a";
  now.model = "n";
  EXPECT_OK(check(saved, now));
  // Fields that one of the two does not know.
  now.model = "m";
  now.operations = "";
  EXPECT_OK(check(saved, now));
  EXPECT_OK(check(now, saved));
}

TEST(RunIdentity, SettingsOfUpdatesBelongToTheOptimizer) {
  auto check = [](const std::string &saved, const std::string &now) {
    std::vector<std::string> notes;
    return checkIdentity({.optimizer = {{"adamw", {"w"}}}, .updateSettings = saved},
                         {.optimizer = {{"lion", {"w"}}}, .updateSettings = now}, {}, notes);
  };
  MaybeError error = check("clip=1", "clip=0.01");
  EXPECT_ERROR(error, "what is done to gradients and learning rates was clip=1, and is clip=0.01");
  // Once, though two things differ.
  EXPECT_TRUE(error && error->message.ends_with("--allow-change optimizer"));
  for (auto [saved, now] : {std::pair{"clip=1", "clip=1"}, {"", "clip=1"}, {"clip=1", ""}}) {
    MaybeError other = check(saved, now);
    EXPECT_FALSE(contains(messageOf(other), "gradients")) << saved << " " << now;
  }
}

TEST(RunIdentity, TakesThemFromThePlan) {
  auto plan = trainingPlan();
  plan->set_model_fingerprint("f");
  plan->set_update_settings("clip=2");
  RunIdentity identity = *identityOf(*plan, 1, 0, nullptr, Sampling::Random);
  EXPECT_EQ(identity.operations, "f");
  EXPECT_EQ(identity.updateSettings, "clip=2");
  EXPECT_EQ(identity.adapters, "");
  EXPECT_EQ(samplesOfBatch(*plan), 8);
}

TEST(RunIdentity, OptimizersAreThoseOfParametersThatBothTrain) {
  auto check = [](const decltype(RunIdentity::optimizer) &saved,
                  const decltype(RunIdentity::optimizer) &now) {
    std::vector<std::string> notes;
    return checkIdentity({.optimizer = saved}, {.optimizer = now}, {}, notes);
  };
  EXPECT_OK(
      check({{"adamw decay=0", {"b"}}, {"adamw decay=1", {"w"}}}, {{"adamw decay=1", {"w"}}}));
  EXPECT_OK(check({{"adamw", {"w"}}}, {{"lion", {"adapter"}}}));
  // Another setting of one of them, though both runs have both settings.
  EXPECT_ERROR(check({{"adamw decay=0", {"a", "b"}}, {"adamw decay=1", {"w"}}},
                     {{"adamw decay=0", {"b"}}, {"adamw decay=1", {"a", "w"}}}),
               "the optimizer of a was adamw decay=0, and is adamw decay=1; give what it had, or "
               "allow the change with --allow-change optimizer");
  EXPECT_ERROR(check({{"adamw", {"a", "b", "c"}}}, {{"lion", {"a", "b", "c"}}}),
               "the optimizer of a and 2 more was adamw, and is lion");
}

} // namespace runIdentityTest
