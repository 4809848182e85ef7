//===- StagePartitionTest.cpp - Comparison of stage cuts with all others --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
// DTC_RANDOM_SEED=n runs the one chain of that seed; DTC_RANDOM_CASES=n sets their number.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/StagePartition.h"

#include "test/lib/RandomCases.h"
#include "test/lib/plans/Expect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>

namespace stagePartitionTest {

using namespace dtc;
using namespace dtc::test;

/// A chain that may be cut everywhere, at no cost.
static StagePartitionProblem chain(std::vector<double> seconds, int stages) {
  size_t ops = seconds.size();
  return {
      std::move(seconds), std::vector<double>(ops, 0), std::vector<bool>(ops, true), {}, stages};
}

static std::vector<int> sizes(const StagePartition &partition, int ops) {
  std::vector<int> result;
  for (size_t stage = 0; stage < partition.firstOps.size(); ++stage)
    result.push_back((stage + 1 < partition.firstOps.size() ? partition.firstOps[stage + 1] : ops) -
                     partition.firstOps[stage]);
  return result;
}

//===----------------------------------------------------------------------===//
// Against all partitions
//===----------------------------------------------------------------------===//

namespace {

struct Candidate {
  std::vector<int> firstOps;
  std::vector<double> seconds; ///< by stage, cuts included
  double bottleneck = 0, cuts = 0;
};

} // namespace

static Candidate makeCandidate(const StagePartitionProblem &problem, std::vector<int> firstOps) {
  Candidate candidate;
  for (size_t stage = 0; stage < firstOps.size(); ++stage) {
    bool isLast = stage + 1 == firstOps.size();
    size_t begin = firstOps[stage], end = isLast ? problem.seconds.size() : firstOps[stage + 1];
    double seconds =
        std::accumulate(problem.seconds.begin() + begin, problem.seconds.begin() + end, 0.);
    seconds += (stage > 0 ? problem.cutSeconds[begin] : 0) + (isLast ? 0 : problem.cutSeconds[end]);
    candidate.bottleneck = std::max(candidate.bottleneck, seconds);
    candidate.cuts += stage > 0 ? problem.cutSeconds[begin] : 0;
    candidate.seconds.push_back(seconds);
  }
  candidate.firstOps = std::move(firstOps);
  return candidate;
}

/// All allowed partitions that have the least bottleneck and, among these, the least cuts.
static std::vector<Candidate> findBest(const StagePartitionProblem &problem) {
  std::vector<Candidate> best;
  int ops = problem.seconds.size();
  for (unsigned cuts = 0; cuts < 1u << (ops - 1); ++cuts) {
    std::vector<int> firstOps = {0};
    bool allowed = true;
    for (int op = 1; op < ops; ++op) {
      bool isCut = cuts >> (op - 1) & 1;
      if (isCut)
        firstOps.push_back(op);
      allowed &= !isCut || problem.mayCut[op];
      allowed &= isCut || std::find(problem.fixedCuts.begin(), problem.fixedCuts.end(), op) ==
                              problem.fixedCuts.end();
    }
    if (!allowed || int(firstOps.size()) != problem.stages)
      continue;
    Candidate candidate = makeCandidate(problem, firstOps);
    auto key = [](const Candidate &c) { return std::pair(c.bottleneck, c.cuts); };
    if (!best.empty() && key(candidate) < key(best[0]))
      best.clear();
    if (best.empty() || key(candidate) == key(best[0]))
      best.push_back(std::move(candidate));
  }
  return best;
}

/// The rest of `best` when, from the last stage to the first, only those partitions stay whose
/// stage is closest to an even share of the stages up to it, and the longest of these.
static std::vector<int> findMostEven(const StagePartitionProblem &problem,
                                     std::vector<Candidate> best) {
  for (int stage = problem.stages - 1; stage >= 0; --stage) {
    // Up to here all are alike, so any tells what is left.
    const Candidate &any = best[0];
    int end = stage + 1 < problem.stages ? any.firstOps[stage + 1] : int(problem.seconds.size());
    std::vector<double> indivisible;
    for (int op = 0; op < end; ++op) {
      if (op == 0 || problem.mayCut[op])
        indivisible.push_back(0);
      indivisible.back() += problem.seconds[op];
    }
    std::sort(indivisible.rbegin(), indivisible.rend());
    double left = std::accumulate(any.seconds.begin(), any.seconds.begin() + stage + 1, 0.);
    int parts = stage + 1;
    for (double seconds : indivisible)
      if (seconds * parts > left) {
        left -= seconds;
        --parts;
      }
    auto key = [&](const Candidate &c) {
      return std::pair(std::abs(c.seconds[stage] * parts - left), c.firstOps[stage]);
    };
    auto least = key(*std::min_element(best.begin(), best.end(),
                                       [&](auto &a, auto &b) { return key(a) < key(b); }));
    std::erase_if(best, [&](const Candidate &c) { return key(c) != least; });
  }
  return best[0].firstOps;
}

/// Small whole numbers, so that there are many ties and sums are exact; or any.
static StagePartitionProblem randomProblem(uint64_t seed, bool whole) {
  std::mt19937_64 engine(seed);
  auto below = [&](int n) { return int(engine() % n); };
  auto draw = [&](int most) { return whole ? below(most + 1) : below(most * 1000 + 1) / 700.; };
  StagePartitionProblem problem;
  int ops = 1 + below(14), mostCut = below(4);
  bool everywhere = below(2);
  for (int op = 0; op < ops; ++op) {
    problem.seconds.push_back(below(8) == 0 ? draw(20) : draw(5));
    problem.cutSeconds.push_back(draw(mostCut));
    problem.mayCut.push_back(everywhere || below(3) > 0);
    if (op > 0 && problem.mayCut[op] && below(8) == 0)
      problem.fixedCuts.push_back(op);
  }
  problem.stages = 1 + below(ops + 1);
  return problem;
}

static std::string messageOf(const StagePartitionProblem &problem) {
  return runtime::testing::messageOf(checkPartition(problem));
}

TEST(StagePartition, IsTheBestOfAll) {
  uint64_t possible = 0;
  uint64_t count = forEachRandomCase(1000, [&](uint64_t seed) {
    bool whole = seed % 2;
    StagePartitionProblem problem = randomProblem(seed, whole);
    std::vector<Candidate> best = findBest(problem);
    ASSERT_EQ(messageOf(problem).empty(), !best.empty()) << messageOf(problem);
    if (best.empty())
      return;
    ++possible;
    StagePartition partition = partitionStages(problem);
    Candidate found = makeCandidate(problem, partition.firstOps);
    EXPECT_DOUBLE_EQ(partition.bottleneck, found.bottleneck);
    EXPECT_DOUBLE_EQ(partition.cutSeconds, found.cuts);
    EXPECT_NEAR(found.bottleneck, best[0].bottleneck, 1e-6);
    if (whole) {
      EXPECT_EQ(found.cuts, best[0].cuts);
      EXPECT_EQ(partition.firstOps, findMostEven(problem, best));
    }
  });
  EXPECT_TRUE(count == 0 || possible > count / 2);
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

TEST(StagePartition, EqualLayers) {
  StagePartition partition = partitionStages(chain(std::vector<double>(30, 0.1), 4));
  EXPECT_EQ(sizes(partition, 30), (std::vector<int>{7, 8, 7, 8}));
  EXPECT_NEAR(partition.bottleneck, 0.8, 1e-12);
}

TEST(StagePartition, UnevenLayers) {
  EXPECT_EQ(sizes(partitionStages(chain({1, 1, 1, 1, 1, 1, 3}, 3)), 7),
            (std::vector<int>{3, 3, 1}));
  // 6, 5 and 4 seconds; {2, 2, 3} takes 5, 6 and 4, and has the longer second stage.
  EXPECT_EQ(sizes(partitionStages(chain({4, 1, 1, 5, 2, 1, 1}, 3)), 7),
            (std::vector<int>{2, 2, 3}));
}

TEST(StagePartition, StagesBesideTheSlowestAreEven) {
  // The head is the bottleneck, whatever the others are.
  EXPECT_EQ(sizes(partitionStages(chain({1, 1, 1, 1, 1, 1, 9}, 4)), 7),
            (std::vector<int>{2, 2, 2, 1}));
}

TEST(StagePartition, CutsWhereLittleCrosses) {
  StagePartitionProblem problem = chain({1, 1, 1, 1, 1, 1}, 2);
  problem.cutSeconds = {0, 1, 0.25, 3, 0.5, 1};
  // Before op 3 stages would be even, and take 6. Before op 2 the slower one takes 4.25; before op
  // 4 it takes 4.5.
  StagePartition partition = partitionStages(problem);
  EXPECT_EQ(partition.firstOps, (std::vector<int>{0, 2}));
  EXPECT_EQ(partition.bottleneck, 4.25);
  EXPECT_EQ(partition.cutSeconds, 0.25);
  problem.fixedCuts = {4};
  EXPECT_EQ(partitionStages(problem).firstOps, (std::vector<int>{0, 4}));
}

/// An embedding, layers of 12 ops that take a second together, and a head.
static StagePartitionProblem transformer(int layers, double head, int stages, bool withinLayers) {
  const double ops[] = {1, 9, 3, 2, 14, 8, 1, 1, 18, 4, 18, 1}; // their sum is 80
  StagePartitionProblem problem;
  auto add = [&](double seconds, bool mayCut) {
    problem.seconds.push_back(seconds);
    problem.cutSeconds.push_back(mayCut ? 0.005 : 0.015); // more crosses within a layer
    problem.mayCut.push_back(mayCut || withinLayers);
  };
  add(0.1, false);
  for (int layer = 0; layer < layers; ++layer)
    for (double op : ops)
      add(op / 80, &op == ops || op == ops[0]);
  add(head, true);
  problem.stages = stages;
  return problem;
}

TEST(StagePartition, LargeHeadsAreEvenedOutWithinLayers) {
  double mean = (48 + 0.1 + 6) / 8;
  StagePartition fine = partitionStages(transformer(48, 6, 8, true));
  StagePartition coarse = partitionStages(transformer(48, 6, 8, false));
  EXPECT_LE(fine.bottleneck, 1.03 * mean);
  EXPECT_LE(fine.bottleneck, coarse.bottleneck);
  EXPECT_GE(coarse.bottleneck, 7); // 48 layers on 8 stages with a head of 6
  EXPECT_LE(coarse.bottleneck, 7.2);
}

TEST(StagePartition, ThousandsOfOpsOnHundredsOfStages) {
  for (auto [head, stages] : {std::pair{1., 512}, {30., 512}, {120., 512}, {30., 64}, {6., 8}}) {
    StagePartitionProblem problem = transformer(250, head, stages, true);
    auto start = std::chrono::steady_clock::now();
    StagePartition partition = partitionStages(problem);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    printf("%zu ops on %d stages: %.3f s\n", problem.seconds.size(), stages, took.count());
    EXPECT_EQ(partition.firstOps.size(), size_t(stages));
    EXPECT_TRUE(std::is_sorted(partition.firstOps.begin(), partition.firstOps.end()));
    double mean = (250.1 + head) / stages;
    EXPECT_LE(partition.bottleneck, std::max(head + 0.01, mean + 18. / 80 + 0.04));
  }
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(StagePartition, SaysWhatIsImpossible) {
  StagePartitionProblem problem = chain({1, 1, 1, 1}, 5);
  EXPECT_EQ(messageOf(problem),
            "5 stages; the model can be cut at 3 places, into at most 4; ask for fewer");
  problem.mayCut = {true, true, false, false};
  problem.stages = 3;
  EXPECT_EQ(messageOf(problem),
            "3 stages; the model can be cut at 1 place, into at most 2; ask for fewer");
  problem.stages = 0;
  EXPECT_EQ(messageOf(problem), "a model in 0 stages; expected at least one");
  EXPECT_EQ(messageOf(chain({}, 1)), "a model without ops, which cannot be cut into stages");
  problem.stages = 2;
  problem.fixedCuts = {2};
  EXPECT_EQ(messageOf(problem), "a fixed cut before op 2, where the model cannot be cut");
  problem = chain({1, 1, 1, 1}, 2);
  problem.fixedCuts = {1, 2};
  EXPECT_EQ(messageOf(problem),
            "2 fixed cuts, which make 3 stages; expected at most 2; remove cuts or ask for more "
            "stages");
  problem.fixedCuts = {2, 2};
  EXPECT_EQ(messageOf(problem),
            "a fixed cut before op 2 after one before op 2 of 4; expected ascending ones, with an "
            "op in each stage");
  problem.fixedCuts = {4};
  EXPECT_TRUE(checkPartition(problem));
}

} // namespace stagePartitionTest
