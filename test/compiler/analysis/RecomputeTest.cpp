//===- RecomputeTest.cpp - Tests of the choice of activations -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
// DTC_RANDOM_SEED=n runs the one graph of that seed; DTC_RANDOM_CASES=n sets their number.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Recompute.h"
#include "compiler/analysis/RecomputeSearch.h"
#include "test/lib/RandomCases.h"
#include "test/lib/Times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <utility>

namespace recomputeTest {

using namespace dtc;
using namespace dtc::test;

namespace {
struct Graph : RecomputeProblem {
  int addInput(int64_t bytes, bool usedBackward = false) {
    values.push_back({bytes, usedBackward, -1});
    return int(values.size()) - 1;
  }
  /// Returns the index of the op; getResult() that of its value.
  int addOp(double seconds, std::vector<int> operands) {
    ops.push_back({seconds, std::move(operands), {}, true});
    return int(ops.size()) - 1;
  }
  int addResult(int op, int64_t bytes, bool usedBackward) {
    values.push_back({bytes, usedBackward, op});
    ops[op].results.push_back(int(values.size()) - 1);
    return ops[op].results.back();
  }
  int addOp(double seconds, std::vector<int> operands, int64_t bytes, bool usedBackward) {
    return addResult(addOp(seconds, std::move(operands)), bytes, usedBackward);
  }

  double getTotalSeconds() const {
    double total = 0;
    for (const RecomputeOp &op : ops)
      total += op.seconds;
    return total;
  }
};

/// All choices, by going from the last op to the first. At most 64 values.
class AllChoices {
public:
  explicit AllChoices(const RecomputeProblem &problem) : problem(problem) {
    for (size_t i = 0; i < problem.values.size(); ++i)
      start |= uint64_t(problem.values[i].usedBackward) << i;
  }

  /// The fewest seconds with at most `keepBytes`; infinite where no choice has.
  double findFewestSeconds(int64_t keepBytes) {
    limit = keepBytes;
    fewestSeconds = std::numeric_limits<double>::infinity();
    fewestBytes = 0;
    minimizeBytes = false;
    decide(int(problem.ops.size()), start, 0, bytesOf(start, -1));
    return fewestSeconds;
  }

  /// The fewest bytes, and the fewest seconds with these.
  std::pair<int64_t, double> findFewestBytes() {
    limit = fewestBytes = std::numeric_limits<int64_t>::max();
    fewestSeconds = std::numeric_limits<double>::infinity();
    minimizeBytes = true;
    decide(int(problem.ops.size()), start, 0, bytesOf(start, -1));
    return {fewestBytes, fewestSeconds};
  }

private:
  int64_t bytesOf(uint64_t needed, int producer) const {
    int64_t bytes = 0;
    if (producer >= 0) {
      for (int value : problem.ops[producer].results)
        bytes += needed >> value & 1 ? problem.values[value].bytes : 0;
      return bytes;
    }
    for (size_t i = 0; i < problem.values.size(); ++i)
      bytes += problem.values[i].producer < 0 && (needed >> i & 1) ? problem.values[i].bytes : 0;
    return bytes;
  }

  void decide(int count, uint64_t needed, double seconds, int64_t bytes) {
    if (bytes > limit || (!minimizeBytes && seconds >= fewestSeconds))
      return;
    if (count == 0) {
      if (!minimizeBytes || bytes < fewestBytes || seconds < fewestSeconds)
        fewestSeconds = seconds;
      fewestBytes = bytes;
      if (minimizeBytes)
        limit = bytes;
      return;
    }
    const RecomputeOp &op = problem.ops[count - 1];
    decide(count - 1, needed, seconds, bytes + bytesOf(needed, count - 1));
    bool isNeeded = std::any_of(op.results.begin(), op.results.end(),
                                [&](int value) { return needed >> value & 1; });
    if (!op.allowed || !isNeeded)
      return;
    uint64_t more = needed;
    for (int value : op.operands)
      more |= uint64_t(1) << value;
    decide(count - 1, more, seconds + op.seconds, bytes + bytesOf(more & ~needed, -1));
  }

  const RecomputeProblem &problem;
  uint64_t start = 0;
  bool minimizeBytes = false;
  int64_t limit = 0, fewestBytes = 0;
  double fewestSeconds = 0;
};
} // namespace

/// With reshapes (no seconds), views (no bytes), ops of two results, and ops that must not be
/// recomputed.
static Graph makeRandomGraph(std::mt19937_64 &random, int numOps) {
  auto draw = [&](int range) { return int(random() % range); };
  Graph graph;
  // Few sizes make ties and groups; many make every choice different.
  int sizes = draw(2) ? 4 : 1000;
  int locality = 1 + draw(8);
  for (int i = 0, end = 1 + draw(3); i < end; ++i)
    graph.addInput(draw(3) ? 0 : 1 + draw(sizes), draw(2));
  for (int i = 0; i < numOps; ++i) {
    std::vector<int> operands;
    for (int j = 0, end = 1 + draw(3); j < end; ++j)
      operands.push_back(std::max(0, int(graph.values.size()) - 1 - draw(locality)));
    int op = graph.addOp(draw(8) ? (1 + draw(sizes)) * 1e-4 : 0, operands);
    graph.ops[op].allowed = draw(12) != 0;
    for (int j = 0, end = draw(6) ? 1 : 2; j < end; ++j)
      graph.addResult(op, draw(8) ? 1 + draw(sizes) : 0, draw(5) < 3);
  }
  return graph;
}

static int64_t getAllBytes(const RecomputeProblem &problem) {
  return evaluateRecompute(problem, std::vector<bool>(problem.ops.size())).keptBytes;
}

/// Seeds begin at 1, those of the engine at 0.
static std::mt19937_64 makeEngine(uint64_t seed) { return std::mt19937_64(seed - 1); }

/// The numbers of a choice are its actual costs, and it obeys the problem.
static void expectConsistent(const RecomputeProblem &problem, const RecomputeChoice &choice) {
  RecomputeChoice again = evaluateRecompute(problem, choice.recompute);
  EXPECT_EQ(again.recompute, choice.recompute);
  EXPECT_EQ(again.keptBytes, choice.keptBytes);
  EXPECT_EQ(again.seconds, choice.seconds);
  for (size_t op = 0; op < problem.ops.size(); ++op)
    EXPECT_TRUE(problem.ops[op].allowed || !choice.recompute[op]) << op;
}

//===----------------------------------------------------------------------===//
// Costs of choices
//===----------------------------------------------------------------------===//

TEST(RecomputeTest, EvaluateTakesOutWhatNothingNeeds) {
  Graph graph;
  int input = graph.addInput(5);
  int a = graph.addOp(1, {input}, 10, false);
  int b = graph.addOp(2, {a}, 20, false);
  int c = graph.addOp(4, {b}, 40, true);
  graph.addOp(8, {c}, 80, false);

  RecomputeChoice choice = evaluateRecompute(graph, {true, true, true, true});
  EXPECT_EQ(choice.recompute, (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(choice.seconds, 7);
  EXPECT_EQ(choice.keptBytes, 5);

  choice = evaluateRecompute(graph, {true, false, true, false});
  EXPECT_EQ(choice.recompute, (std::vector<bool>{false, false, true, false}));
  EXPECT_EQ(choice.seconds, 4);
  EXPECT_EQ(choice.keptBytes, 20);

  graph.ops[1].allowed = false;
  EXPECT_EQ(evaluateRecompute(graph, {true, true, true, true}).recompute,
            (std::vector<bool>{false, false, true, false}));
  EXPECT_EQ(evaluateRecompute(graph, {true, true, false, true}).keptBytes, 40);
  EXPECT_EQ(evaluateRecompute({}, {}).keptBytes, 0);
}

TEST(RecomputeTest, ResultsAreComputedTogether) {
  Graph graph;
  int input = graph.addInput(0);
  int op = graph.addOp(3, {input});
  int first = graph.addResult(op, 10, true);
  graph.addResult(op, 20, true);
  graph.addResult(op, 40, false);
  graph.addOp(1, {first, first}, 80, true);
  EXPECT_EQ(getAllBytes(graph), 110);
  // Neither result alone can be saved: 3 seconds are for both.
  for (int64_t keepBytes : {29, 15, 0}) {
    RecomputeChoice choice = chooseRecompute(graph, keepBytes);
    EXPECT_EQ(choice.recompute, (std::vector<bool>{true, true}));
    EXPECT_EQ(choice.seconds, 4);
    EXPECT_EQ(choice.keptBytes, 0);
  }
  RecomputeChoice choice = chooseRecompute(graph, 30);
  EXPECT_EQ(choice.recompute, (std::vector<bool>{false, true}));
  EXPECT_EQ(choice.keptBytes, 30);
}

TEST(RecomputeTest, AnOperandThatStandsTwiceIsKeptOnce) {
  Graph graph;
  int input = graph.addInput(10);
  int small = graph.addOp(1, {input, input}, 30, true);
  graph.addOp(8, {small}, 20, true);
  std::vector<bool> best = {true, false};
  RecomputeChoice choice = chooseRecompute(graph, 30);
  EXPECT_EQ(choice.recompute, best);
  EXPECT_EQ(choice.keptBytes, 30);
  EXPECT_EQ(searchRecompute(RecomputeInput(graph), {true, true}, 30, {1, 1}), best);
}

TEST(RecomputeTest, KeepLeastTakesNoTimeThatSavesNothing) {
  Graph graph;
  int input = graph.addInput(16);
  int small = graph.addOp(1, {input}, 8, false);
  int same = graph.addOp(2, {small}, 8, true); // from `small`, of the same size
  graph.addOp(4, {same}, 64, true);
  RecomputeChoice least = keepLeast(graph);
  EXPECT_EQ(least.recompute, (std::vector<bool>{false, false, true}));
  EXPECT_EQ(least.keptBytes, 8);
  EXPECT_EQ(least.seconds, 4);
  // Nothing keeps less.
  EXPECT_EQ(chooseRecompute(graph, 7).recompute, least.recompute);
  EXPECT_EQ(chooseRecompute(graph, -1).recompute, least.recompute);
}

TEST(RecomputeTest, WhatIsFreeIsComputedFirst) {
  Graph graph;
  int input = graph.addInput(0, true);
  int made = graph.addOp(1, {input}, 8, true);
  graph.addOp(0, {made}, 8, true); // a reshape
  EXPECT_EQ(chooseRecompute(graph, 16).recompute, (std::vector<bool>{false, false}));
  EXPECT_EQ(chooseRecompute(graph, 15).recompute, (std::vector<bool>{false, true}));
  EXPECT_EQ(chooseRecompute(graph, 8).seconds, 0);
  EXPECT_EQ(chooseRecompute(graph, 7).seconds, 1);
}

//===----------------------------------------------------------------------===//
// Against all choices
//===----------------------------------------------------------------------===//

TEST(RecomputeTest, SmallGraphsAreOptimal) {
  forEachRandomCase(1000, [](uint64_t seed) {
    std::mt19937_64 random = makeEngine(seed);
    Graph graph = makeRandomGraph(random, 1 + int(random() % 14));
    AllChoices all(graph);
    auto [leastBytes, leastSeconds] = all.findFewestBytes();
    RecomputeChoice least = keepLeast(graph);
    expectConsistent(graph, least);
    EXPECT_EQ(least.keptBytes, leastBytes);
    EXPECT_NEAR(least.seconds, leastSeconds, 1e-9);
    int64_t most = getAllBytes(graph);
    for (int i = 0; i < 4; ++i) {
      int64_t keepBytes = leastBytes + int64_t(random() % (most - leastBytes + 2));
      RecomputeChoice choice = chooseRecompute(graph, keepBytes);
      expectConsistent(graph, choice);
      EXPECT_LE(choice.keptBytes, keepBytes);
      EXPECT_NEAR(choice.seconds, all.findFewestSeconds(keepBytes), 1e-9)
          << "keepBytes=" << keepBytes;
    }
    if (leastBytes > 0) {
      EXPECT_EQ(chooseRecompute(graph, leastBytes - 1).recompute, least.recompute);
      EXPECT_TRUE(std::isinf(all.findFewestSeconds(leastBytes - 1)));
    }
  });
}

TEST(RecomputeTest, RefinementAloneIsNearTheOptimum) {
  double worst = 0, sum = 0;
  int numOptimal = 0, numChoices = 0;
  forEachRandomCase(200, [&](uint64_t seed) {
    std::mt19937_64 random = makeEngine(seed);
    Graph graph = makeRandomGraph(random, 15 + int(random() % 6));
    AllChoices all(graph);
    int64_t least = keepLeast(graph).keptBytes, most = getAllBytes(graph);
    int64_t keepBytes = least + int64_t(random() % (most - least + 1));
    RecomputeChoice choice = chooseRecompute(graph, keepBytes, /*maxExactOps=*/0);
    expectConsistent(graph, choice);
    EXPECT_LE(choice.keptBytes, keepBytes);
    double optimum = all.findFewestSeconds(keepBytes);
    EXPECT_GE(choice.seconds, optimum - 1e-9);
    // The backward pass takes twice as long as the forward pass.
    double step = 3 * graph.getTotalSeconds();
    EXPECT_LE(step + choice.seconds, 1.03 * (step + optimum));
    double above = (step + choice.seconds) / (step + optimum) - 1;
    worst = std::max(worst, above);
    sum += above;
    numOptimal += choice.seconds <= optimum + 1e-9;
    ++numChoices;
    EXPECT_NEAR(chooseRecompute(graph, keepBytes).seconds, optimum, 1e-9);
  });
  printf("%d of %d optimal, %.4f%% above on average, %.2f%% at most\n", numOptimal, numChoices,
         100 * sum / numChoices, 100 * worst);
}

//===----------------------------------------------------------------------===//
// Minimum cuts
//===----------------------------------------------------------------------===//

TEST(RecomputeTest, ChoicesOfRisingPricesAreNested) {
  forEachRandomCase(200, [](uint64_t seed) {
    std::mt19937_64 random = makeEngine(seed);
    Graph graph = makeRandomGraph(random, 1 + int(random() % 60));
    RecomputeInput input(graph);
    std::vector<bool> before[2] = {std::vector<bool>(graph.ops.size()),
                                   std::vector<bool>(graph.ops.size())};
    for (int64_t price = 1; price < input.totalTicks; price *= 3) {
      RecomputeCut cut(input, {1, price});
      for (bool isLargest : {false, true}) {
        std::vector<bool> choice = cut.getChoice(isLargest ? cut.graph.largestSourceSide()
                                                           : cut.graph.smallestSourceSide());
        for (size_t op = 0; op < choice.size(); ++op)
          EXPECT_TRUE(choice[op] || !before[isLargest][op]) << "price=" << price << " op=" << op;
        before[isLargest] = choice;
        RecomputeSelection selection(input, choice);
        EXPECT_TRUE(cut.cost ==
                    MinimumCut::Capacity(price) * selection.getBytes() + selection.getTicks());
      }
    }
  });
}

TEST(RecomputeTest, SelectionsGoBack) {
  forEachRandomCase(200, [](uint64_t seed) {
    std::mt19937_64 random = makeEngine(seed);
    Graph graph = makeRandomGraph(random, 1 + int(random() % 40));
    RecomputeInput input(graph);
    std::vector<bool> choice;
    for (const RecomputeOp &op : graph.ops)
      choice.push_back(op.allowed && random() % 2);
    RecomputeSelection selection(input, choice);
    RecomputeChoice expected = evaluateRecompute(graph, choice);
    EXPECT_EQ(selection.getChoice(), expected.recompute);
    EXPECT_EQ(selection.getBytes(), expected.keptBytes);
    for (size_t op = 0; op < graph.ops.size(); ++op) {
      if (!selection.isComputed(op))
        continue;
      std::vector<bool> without = selection.getChoice();
      without[op] = false;
      size_t mark = selection.getMark();
      selection.keep(op);
      RecomputeChoice kept = evaluateRecompute(graph, without);
      EXPECT_EQ(selection.getChoice(), kept.recompute);
      EXPECT_EQ(selection.getBytes(), kept.keptBytes);
      selection.rollback(mark);
      EXPECT_EQ(selection.getChoice(), expected.recompute);
      EXPECT_EQ(selection.getBytes(), expected.keptBytes);
    }
  });
}

//===----------------------------------------------------------------------===//
// Chains of layers
//===----------------------------------------------------------------------===//

/// Transformer layers of 12 ops: two norms, three projections, attention of two results, an
/// output projection, two sums, three ops of the feed-forward part. Matrix products have different
/// times, elementwise ops hardly any.
static Graph makeLayers(int numLayers) {
  Graph graph;
  int64_t size = 1 << 20;
  int stream = graph.addInput(0);
  for (int layer = 0; layer < numLayers; ++layer) {
    int norm = graph.addOp(1e-4, {stream}, size, true);
    int q = graph.addOp(1e-3, {norm}, size, true);
    int k = graph.addOp(1e-3, {norm}, size, true);
    int v = graph.addOp(1e-3, {norm}, size, true);
    int attention = graph.addOp(2e-3, {q, k, v});
    int mixed = graph.addResult(attention, size, true);
    graph.addResult(attention, size / 64, true);
    int projected = graph.addOp(1e-3, {mixed}, size, false);
    int sum = graph.addOp(5e-5, {stream, projected}, size, true);
    int norm2 = graph.addOp(1e-4, {sum}, size, true);
    int wide = graph.addOp(4e-3, {norm2}, 4 * size, true);
    int activation = graph.addOp(2e-4, {wide}, 4 * size, true);
    int narrow = graph.addOp(4e-3, {activation}, size, false);
    stream = graph.addOp(5e-5, {sum, narrow}, size, true);
  }
  return graph;
}

TEST(RecomputeTest, LayersFillTheMemory) {
  for (int numLayers : {1, 8, 96, 250}) {
    SCOPED_TRACE(numLayers);
    Graph graph = makeLayers(numLayers);
    int64_t all = getAllBytes(graph);
    RecomputeChoice before, choice;
    double slowest = 0;
    for (int percent : {100, 90, 60, 30, 5}) {
      int64_t keepBytes = all * percent / 100;
      double start = dtc::test::cpuSeconds();
      choice = chooseRecompute(graph, keepBytes);
      slowest = std::max(slowest, dtc::test::cpuSeconds() - start);
      expectConsistent(graph, choice);
      EXPECT_LE(choice.keptBytes, keepBytes);
      EXPECT_GE(choice.seconds, before.seconds);
      // Fewer bytes than a layer has are left free.
      EXPECT_GE(choice.keptBytes, keepBytes - all / numLayers);
      EXPECT_EQ(chooseRecompute(graph, keepBytes).recompute, choice.recompute);
      before = choice;
    }
    printf("%zu ops: %.0f ms\n", graph.ops.size(), 1e3 * slowest);
    EXPECT_LT(slowest, 5); // sanitizers, and slow machines
  }
}

TEST(RecomputeTest, LayersRecomputeWhatIsCheapFirst) {
  Graph graph = makeLayers(96);
  // Sums, norms and activations: 0.3 ms and 7 MiB of a layer, of 14.5 ms and 16 MiB.
  RecomputeChoice choice = chooseRecompute(graph, getAllBytes(graph) * 65 / 100);
  for (size_t op = 0; op < graph.ops.size(); ++op)
    EXPECT_TRUE(!choice.recompute[op] || graph.ops[op].seconds < 1e-3) << op;
  EXPECT_LT(choice.seconds, 0.03 * graph.getTotalSeconds());
}

} // namespace recomputeTest
