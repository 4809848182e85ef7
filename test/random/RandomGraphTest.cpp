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

#include "test/random/RandomGraph.h"
#include "runtime/plan/plan.pb.h"
#include "test/support/CompileAndRun.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace dtc;
using namespace dtc::test;

/// Compiles and runs both forms of a program and compares all their outputs.
static void compare(const std::string &mesh, const std::string &plainText,
                    const std::string &shardedText, CompileOptions::Mode mode, uint64_t seed) {
  Compiler compiler;
  CompileOptions options;
  options.mode = mode;
  auto plain = compiler.parse(plainText);
  ASSERT_TRUE(plain) << compiler.diagnostics() << plainText;
  auto sharded = compiler.parse(mesh + shardedText);
  ASSERT_TRUE(sharded) << compiler.diagnostics() << mesh << shardedText;
  auto expected = compiler.open(*plain, options);
  ASSERT_TRUE(expected) << compiler.diagnostics() << plainText;
  auto actual = compiler.open(*sharded, options);
  ASSERT_TRUE(actual) << compiler.diagnostics() << mesh << shardedText;
  for (runtime::Session *session : {expected.get(), actual.get()}) {
    auto problem = setRandomInputs(*session, seed);
    for (const plan::State &state : session->plan().programs(0).states())
      if (!problem)
        problem = session->setState(
            state.name(), randomTensor({runtime::DType::F64,
                                        {state.file_shape().begin(), state.file_shape().end()}},
                                       seed, state.name()));
    if (!problem)
      problem = session->step(0, 1);
    ASSERT_FALSE(problem) << problem->message;
  }
  // A gradient may be the small difference of large terms: rounding is measured against the
  // program's largest value.
  double largest = 0;
  for (const plan::Output &output : expected->plan().programs(0).outputs()) {
    auto value = expected->getOutput(output.name());
    for (int64_t i = 0; value && i < value->type.numElements(); ++i)
      largest = std::max(largest, std::abs(element(*value, i)));
  }
  for (const plan::Output &output : expected->plan().programs(0).outputs()) {
    auto a = expected->getOutput(output.name()), b = actual->getOutput(output.name());
    ASSERT_TRUE(bool(a) && bool(b)) << output.name();
    b->type.shape = a->type.shape; // a parameter that is reshaped has its gradient in that shape
    EXPECT_LT(relativeDifference(*a, *b, std::max(1e-8, 1e-2 * largest)), 1e-9)
        << output.name() << "\n"
        << mesh << shardedText;
  }
}

static void runCase(uint64_t seed, bool verbose) {
  RandomGraph graph = makeRandomGraph(seed);
  if (verbose)
    printf("%s%s%s", graph.mesh.c_str(), graph.sharded.c_str(), graph.shardedLoss.c_str());
  SCOPED_TRACE("DTC_RANDOM_SEED=" + std::to_string(seed));
  compare(graph.mesh, graph.plain, graph.sharded, CompileOptions::Mode::Forward, seed);
  compare(graph.mesh, graph.plainLoss, graph.shardedLoss, CompileOptions::Mode::Gradients, seed);
}

TEST(RandomGraph, PartitionedEqualsUnpartitioned) {
  if (const char *seed = std::getenv("DTC_RANDOM_SEED"))
    return runCase(std::strtoull(seed, nullptr, 10), /*verbose=*/true);
  const char *cases = std::getenv("DTC_RANDOM_CASES");
  uint64_t count = cases ? std::strtoull(cases, nullptr, 10) : 300;
  for (uint64_t seed = 1; seed <= count && !HasFatalFailure(); ++seed)
    runCase(seed, /*verbose=*/false);
}
