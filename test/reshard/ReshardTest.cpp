//===- ReshardTest.cpp - Reshards, compiled and executed ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Random tensors in random layouts, with and without partial sums, are brought to other layouts by
// whole programs, and compared with what they hold. Elements are small integers, so that sums are
// exact in any order.
//
// DTC_RANDOM_SEED=n runs the one program of that seed and prints it; DTC_RANDOM_CASES=n sets the
// number of programs.
//
//===----------------------------------------------------------------------===//

#include "plan/plan.pb.h"
#include "test/lib/RandomCases.h"
#include "test/lib/compile/CompileAndRun.h"
#include "test/lib/plans/TrainStep.h"
#include "test/reshard/RandomReshards.h"

#include <gtest/gtest.h>

#include <random>

namespace reshardTest {

using namespace dtc;
using namespace dtc::test;

namespace {

HostTensor integers(const std::vector<int64_t> &shape, bool f64, std::mt19937_64 &engine) {
  HostTensor tensor({f64 ? DType::F64 : DType::F32, shape});
  for (int64_t i = 0, n = tensor.type.numElements(); i < n; ++i)
    setElement(tensor, i, double(engine() % 2001) - 1000);
  return tensor;
}

/// The elements of the value, from its definition alone.
std::vector<double> expectedElements(const ReshardedValue &value, const HostTensor &input,
                                     const HostTensor &weights) {
  int64_t count = 1, terms = 1;
  for (int64_t size : value.shape)
    count *= size;
  for (int64_t size : value.summed)
    terms *= size;
  std::vector<double> result(count);
  for (int64_t i = 0; i < count; ++i) {
    result[i] = element(input, i);
    if (value.source == Source::Weighted)
      result[i] *= element(weights, 0);
    for (int64_t k = 1; k < terms; ++k) {
      double x = element(input, k * count + i);
      switch (value.source) {
      case Source::Max:
        result[i] = std::max(result[i], x);
        break;
      case Source::Min:
        result[i] = std::min(result[i], x);
        break;
      case Source::Weighted:
        result[i] += x * element(weights, k);
        break;
      default:
        result[i] += x;
      }
    }
  }
  return result;
}

void countCollectives(const plan::Plan &plan, std::map<int, int> &kinds) {
  for (const plan::Task &task : plan.programs(0).tasks())
    for (const plan::Instruction &instruction : task.instructions())
      if (instruction.has_collective())
        ++kinds[instruction.collective().kind()];
}

} // namespace

static void runCase(uint64_t seed, bool verbose, std::map<int, int> &kinds) {
  ReshardProgram program = makeReshardProgram(seed);
  if (verbose)
    printf("%s", program.text.c_str());
  Compiler compiler;
  auto module = compiler.parse(program.text);
  ASSERT_TRUE(module) << compiler.diagnostics() << program.text;
  CompileOptions options;
  options.mode = CompileMode::Forward;
  auto session = compiler.open(*module, options);
  ASSERT_TRUE(session) << compiler.diagnostics() << program.text;
  countCollectives(session->plan(), kinds);

  std::mt19937_64 engine(seed);
  std::vector<std::vector<double>> expected;
  for (const ReshardedValue &value : program.values) {
    std::vector<int64_t> whole = value.summed;
    whole.insert(whole.end(), value.shape.begin(), value.shape.end());
    HostTensor input = integers(whole, value.f64, engine), weights;
    auto problem = session->setInput(value.input, input);
    if (!problem && value.source == Source::Weighted) {
      weights = integers(value.summed, value.f64, engine);
      problem = session->setInput(value.weights, weights);
    }
    ASSERT_FALSE(problem) << problem->message;
    expected.push_back(expectedElements(value, input, weights));
  }
  auto problem = trainStep(*session, 0);
  ASSERT_FALSE(problem) << problem->message << program.text;
  for (size_t index = 0; index < expected.size(); ++index)
    for (const std::string &name : {program.values[index].result, program.values[index].witness}) {
      auto output = session->getOutput(name);
      ASSERT_TRUE(bool(output)) << name << ": " << output.error().message;
      ASSERT_EQ(output->type.shape, program.values[index].shape) << name;
      int64_t wrong = 0, first = -1;
      for (size_t i = 0; i < expected[index].size(); ++i)
        if (element(*output, int64_t(i)) != expected[index][i]) {
          ++wrong;
          first = first < 0 ? int64_t(i) : first;
        }
      ASSERT_EQ(wrong, 0) << "elements of " << name << ", the first one " << first << ": "
                          << element(*output, first) << " instead of " << expected[index][first]
                          << "\n"
                          << program.text;
    }
}

TEST(ExecutedReshard, KeepsEveryElement) {
  std::map<int, int> kinds;
  uint64_t count = forEachRandomCase(
      300, [&](uint64_t seed, bool alone) { runCase(seed, /*verbose=*/alone, kinds); });
  if (HasFailure())
    return;
  // The programs are about something: hundreds of each kind of collective, but for permutations.
  using plan::Collective;
  for (auto kind : {Collective::ALL_REDUCE, Collective::ALL_GATHER, Collective::REDUCE_SCATTER,
                    Collective::ALL_TO_ALL, Collective::PERMUTE})
    EXPECT_GE(kinds[kind], int(count / 6)) << Collective::Kind_Name(kind);
}

} // namespace reshardTest
