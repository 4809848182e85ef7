//===- RandomGraphTest.cpp - Partitioned equals unpartitioned -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// DTC_RANDOM_SEED=n runs the one case of that seed and prints it; DTC_RANDOM_CASES=n sets the number of cases.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/plan.pb.h"
#include "test/random/RandomGraph.h"
#include "test/support/CompileAndRun.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace dtc;
using namespace dtc::test;

static void runCase(uint64_t seed, bool verbose) {
  RandomGraph graph = makeRandomGraph(seed);
  if (verbose)
    printf("%s%s", graph.mesh.c_str(), graph.sharded.c_str());
  SCOPED_TRACE("DTC_RANDOM_SEED=" + std::to_string(seed));
  Compiler compiler;
  CompileOptions options;
  options.mode = CompileOptions::Mode::Forward;
  auto plain = compiler.parse(graph.plain);
  ASSERT_TRUE(plain) << compiler.diagnostics() << graph.plain;
  auto sharded = compiler.parse(graph.mesh + graph.sharded);
  ASSERT_TRUE(sharded) << compiler.diagnostics() << graph.mesh << graph.sharded;
  auto expected = compiler.open(*plain, options);
  ASSERT_TRUE(expected) << compiler.diagnostics() << graph.plain;
  auto actual = compiler.open(*sharded, options);
  ASSERT_TRUE(actual) << compiler.diagnostics() << graph.mesh << graph.sharded;
  for (runtime::Session *session : {expected.get(), actual.get()}) {
    auto problem = setRandomInputs(*session, seed);
    if (!problem)
      problem = session->step(0, 1);
    ASSERT_FALSE(problem) << problem->message;
  }
  for (unsigned i = 0; i < graph.numResults; ++i) {
    std::string name = "result" + std::to_string(i);
    auto a = expected->getOutput(name), b = actual->getOutput(name);
    ASSERT_TRUE(bool(a) && bool(b));
    EXPECT_LT(relativeDifference(*a, *b), 1e-9) << name << "\n" << graph.mesh << graph.sharded;
  }
}

TEST(RandomGraph, PartitionedEqualsUnpartitioned) {
  if (const char *seed = std::getenv("DTC_RANDOM_SEED"))
    return runCase(std::strtoull(seed, nullptr, 10), /*verbose=*/true);
  const char *cases = std::getenv("DTC_RANDOM_CASES");
  uint64_t count = cases ? std::strtoull(cases, nullptr, 10) : 300;
  for (uint64_t seed = 1; seed <= count && !HasFatalFailure(); ++seed)
    runCase(seed, /*verbose=*/false);
}
