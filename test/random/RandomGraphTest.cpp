//===- RandomGraphTest.cpp - Partitioned equals unpartitioned -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// DTC_RANDOM_SEED=n runs the one case of that seed and prints it; DTC_RANDOM_CASES=n sets the
// number of cases.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"
#include "test/lib/RandomCases.h"
#include "test/random/RunProgram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace randomGraphTest {

using namespace dtc;
using namespace dtc::test;

/// Compiles and runs both forms of a program and compares all their outputs and states.
static void compare(const RandomGraph &graph, const std::string &plainText,
                    const std::string &shardedText, CompileMode mode, uint64_t seed) {
  const std::string &mesh = graph.mesh;
  Compiler compiler;
  CompileOptions options;
  options.mode = mode;
  options.keepDropout = mode == CompileMode::Forward; // and so the masks on shards
  options.optimizer = Optimizer::SGD;                 // AdamW makes full steps of what is rounding
  auto plain = compiler.parse(plainText);
  ASSERT_TRUE(plain) << compiler.diagnostics() << plainText;
  auto sharded = compiler.parse(mesh + shardedText);
  ASSERT_TRUE(sharded) << compiler.diagnostics() << mesh << shardedText;
  auto expected = compiler.open(*plain, options);
  ASSERT_TRUE(expected) << compiler.diagnostics() << plainText;
  if (mode == CompileMode::Train) {
    options.zero = graph.zero;
    options.zeroAxes = graph.zeroAxes;
  }
  auto actual = compiler.open(*sharded, options);
  ASSERT_TRUE(actual) << compiler.diagnostics() << mesh << shardedText;
  for (runtime::Session *session : {expected.get(), actual.get()}) {
    auto problem = runProgram(*session, graph.indexLimits, mode, seed);
    ASSERT_FALSE(problem) << problem->message << mesh << shardedText;
  }
  auto results = resultsOf(*expected), others = resultsOf(*actual);
  ASSERT_EQ(results.size(), others.size());
  size_t outputs = distinctOutputs(expected->plan()).size();
  ASSERT_EQ(results.size(), outputs + distinctStates(expected->plan()).size());
  ASSERT_GT(outputs, 0u);
  // A gradient may be the small difference of large terms: rounding is measured against the
  // program's largest value.
  double largest = 0;
  for (const auto &[name, value] : results)
    for (int64_t i = 0; i < value.type.numElements(); ++i)
      largest = std::max(largest, std::abs(element(value, i)));
  double floor = 1e-8;
  if (mode != CompileMode::Forward) {
    ASSERT_TRUE(std::isfinite(largest)) << mesh << shardedText;
    floor = std::max(floor, 1e-2 * largest);
  }
  for (auto &[name, value] : results) {
    ASSERT_TRUE(others.count(name)) << name;
    HostTensor &other = others.at(name);
    if (mode == CompileMode::Gradients) {
      // A parameter that is reshaped has its gradient in that shape.
      ASSERT_EQ(value.type.numElements(), other.type.numElements()) << name;
      other.type.shape = value.type.shape;
    }
    EXPECT_LT(relativeDifference(value, other, floor), 1e-9) << name << "\n" << mesh << shardedText;
  }
}

static void runCase(uint64_t seed, bool verbose) {
  RandomGraph graph = makeRandomGraph(seed);
  if (verbose) {
    printf("%s%s%s", graph.mesh.c_str(), graph.sharded.c_str(), graph.shardedLoss.c_str());
    fflush(stdout); // before a crash
  }
  compare(graph, graph.plain, graph.sharded, CompileMode::Forward, seed);
  compare(graph, graph.plainLoss, graph.shardedLoss, CompileMode::Gradients, seed);
  SCOPED_TRACE("ZeRO stage " + std::to_string(graph.zero));
  compare(graph, graph.plainLoss, graph.shardedLoss, CompileMode::Train, seed);
}

TEST(RandomGraph, PartitionedEqualsUnpartitioned) { forEachRandomCase(300, runCase); }

/// Errors that random graphs have found, reduced.
static void runReduced(const char *mesh, const char *plain, const char *sharded) {
  RandomGraph graph;
  graph.mesh = mesh;
  compare(graph, plain, sharded, CompileMode::Forward, /*seed=*/1);
}

// Was refused: the einsum handed "w" to `c` before it learns, from the other
// einsum, that the batch is split over {"w", "time"}; without "w" the batch cannot be split over
// "time" either, and all of it would be needed in each microbatch. Gathering `c` is possible.
TEST(RandomGraphReduced, BatchKeepsItsAxesWhereTimeComesLate) {
  const char *body = R"(
    %0 = dtc.einsum "ab,ab->" %x, %y : (tensor<14x12xf64>, tensor<14x12xf64>) -> tensor<f64>
    %1 = dtc.einsum "ab,c->bca" %x, %c : (tensor<14x12xf64>, tensor<8xf64>) -> tensor<12x8x14xf64>
    %2 = dtc.reduce sum %1 dims [2] : (tensor<12x8x14xf64>) -> tensor<12x8xf64>
    return %0, %2 : tensor<f64>, tensor<12x8xf64>
  })";
  std::string plain = std::string(R"(func.func @f(%x: tensor<14x12xf64> {dtc.input = "x"},
      %y: tensor<14x12xf64> {dtc.input = "y"}, %c: tensor<8xf64> {dtc.input = "c"})
      -> (tensor<f64>, tensor<12x8xf64>) {)") +
                      body;
  std::string sharded = std::string(R"(func.func @f(%x: tensor<14x12xf64> {dtc.input = "x"},
      %y: tensor<14x12xf64> {dtc.input = "y",
                             dist.sharding = #dist.sharding<@mesh, [{"w", "time"}, {}]>},
      %c: tensor<8xf64> {dtc.input = "c", dist.sharding = #dist.sharding<@mesh, [{"w"}]>})
      -> (tensor<f64>, tensor<12x8xf64>) {)") +
                        body;
  runReduced("dist.mesh @mesh <\"time\"=2 temporal, \"w\"=2>\n", plain.c_str(), sharded.c_str());
}

// Was refused: the sum has "w" from its result when the einsum learns that
// the batch is split over {"w", "time"}.
TEST(RandomGraphReduced, SumOverBatchIntoItsSpatialAxis) {
  const char *plain = R"(func.func @f(%t: tensor<4x8xf64> {dtc.input = "t"},
      %u: tensor<14x4xf64> {dtc.input = "u"}) -> tensor<8xf64> {
    %0 = dtc.einsum "bv,vd->bd" %u, %t : (tensor<14x4xf64>, tensor<4x8xf64>) -> tensor<14x8xf64>
    %1 = dtc.reduce sum %0 dims [0] : (tensor<14x8xf64>) -> tensor<8xf64>
    return %1 : tensor<8xf64>
  })";
  const char *sharded = R"(func.func @f(
      %t: tensor<4x8xf64> {dtc.input = "t", dist.sharding = #dist.sharding<@mesh, [{"w"}, {}]>},
      %u: tensor<14x4xf64> {dtc.input = "u",
                            dist.sharding = #dist.sharding<@mesh, [{"w", "time"}, {}]>})
      -> tensor<8xf64> {
    %0 = dtc.einsum "bv,vd->bd" %u, %t : (tensor<14x4xf64>, tensor<4x8xf64>) -> tensor<14x8xf64>
    %1 = dtc.reduce sum %0 dims [0] {dist.sharding = #dist.sharding<@mesh, [{"w"}]>}
        : (tensor<14x8xf64>) -> tensor<8xf64>
    return %1 : tensor<8xf64>
  })";
  runReduced("dist.mesh @mesh <\"time\"=3 temporal, \"w\"=2>\n", plain, sharded);
}

// Crashed: to keep the sum over "w" as it is through the reshape, it
// takes "w" from the factor of size 4; then "y" splits the minor factor, and nothing the major one
// completely, which is no layout.
TEST(RandomGraphReduced, SumThroughReshapeOfSplitFactors) {
  const char *plain = R"(func.func @f(%k: tensor<6x4x2xf64> {dtc.input = "k"}) -> tensor<8xf64> {
    %0 = dtc.reduce sum %k dims [0] : (tensor<6x4x2xf64>) -> tensor<4x2xf64>
    %1 = dtc.reshape %0 : (tensor<4x2xf64>) -> tensor<8xf64>
    return %1 : tensor<8xf64>
  })";
  const char *sharded = R"(func.func @f(%k: tensor<6x4x2xf64> {dtc.input = "k",
        dist.sharding = #dist.sharding<@mesh, [{"w"}, {}, {}]>}) -> tensor<8xf64> {
    %0 = dtc.reduce sum %k dims [0] : (tensor<6x4x2xf64>) -> tensor<4x2xf64>
    %1 = dtc.reshape %0 {dist.sharding = #dist.sharding<@mesh, [{"x", "w", "y"}]>}
        : (tensor<4x2xf64>) -> tensor<8xf64>
    return %1 : tensor<8xf64>
  })";
  runReduced("dist.mesh @mesh <\"w\"=2, \"x\"=2, \"y\"=2>\n", plain, sharded);
}

// Was refused: the gradient of q is a slice of the gradient of p;
// ZeRO's own constraint on the one is taken for a constraint that the user put before the slice.
TEST(RandomGraphReduced, ZeroWhereAGradientHasOtherUsers) {
  const char *body = R"(
    %0 = dtc.pad %q low [4] high [0] value 0.0 : (tensor<4xf64>) -> tensor<8xf64>
    %1 = dtc.add %p, %0 : tensor<8xf64>
    %2 = dtc.einsum "bi,i->b" %x, %1 : (tensor<8x8xf64>, tensor<8xf64>) -> tensor<8xf64>
    %3 = dtc.einsum "b,b->" %2, %2 : (tensor<8xf64>, tensor<8xf64>) -> tensor<f64>
    return %3 : tensor<f64>
  })";
  const char *parameters =
      R"(func.func @loss(%p: tensor<8xf64> {dtc.param = "p"}, %q: tensor<4xf64> {dtc.param = "q"},
      %x: tensor<8x8xf64> {dtc.input = "x")";
  std::string plain = std::string(parameters) + "}) -> tensor<f64> {" + body;
  std::string sharded =
      std::string(parameters) +
      ", dist.sharding = #dist.sharding<@mesh, [{\"dp\"}, {}]>}) -> tensor<f64> {" + body;
  RandomGraph graph;
  graph.mesh = "dist.mesh @mesh <\"dp\"=2>\n";
  graph.zeroAxes = {"dp"};
  for (graph.zero = 0; graph.zero <= 3; ++graph.zero)
    compare(graph, plain, sharded, CompileMode::Train, /*seed=*/1);
}

} // namespace randomGraphTest
