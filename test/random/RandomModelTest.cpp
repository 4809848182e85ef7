//===- RandomModelTest.cpp - Models that mix samples, with any strategy ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Random models whose ops may cut, join and sum samples are trained with four strategies each. A
// strategy gives the numbers of one device, or is refused with a reason that is known to be a true
// one. A step of two batches is compared with the mean over steps of one; a model that mixes
// samples is refused there.
//
// DTC_RANDOM_SEED=n runs the one case of that seed and prints it; DTC_RANDOM_CASES=n sets the
// number of cases.
//
//===----------------------------------------------------------------------===//

#include "test/random/RandomModel.h"
#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"
#include "test/lib/RandomCases.h"
#include "test/lib/plans/TrainStep.h"
#include "test/random/RandomConstants.h"
#include "test/random/RunProgram.h"

#include <gtest/gtest.h>

#include <cmath>

namespace randomModelTest {

using namespace dtc;
using namespace dtc::test;
using Mode = CompileMode;

namespace {

struct Counts {
  int ran = 0;
  std::map<std::string, int> refused; ///< by reason
};

class ModelCase {
public:
  ModelCase(RandomModel model, uint64_t seed, Counts &counts)
      : seed(seed), counts(counts), model(std::move(model)) {
    plain.optimizer = Optimizer::SGD; // AdamW makes full steps of what is rounding
  }
  /// `comparesBatches`: a step of several batches gives the mean over steps of one.
  void run(bool verbose, bool comparesBatches = true);

private:
  void compareSingleBatch(runtime::Session &actual);
  void compareTwoBatches(runtime::Session &actual);
  /// The results of a step on one device over batch `batch`.
  std::map<std::string, HostTensor> stepAlone(Mode mode, int64_t batch);
  void noteRefusal(const std::string &diagnostics);

  uint64_t seed;
  Counts &counts;
  RandomModel model;
  CompileOptions plain;
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Reasons for which a strategy may be refused.
const char *const kReasons[] = {
    "microbatches cannot see each other",
    "needs a sum over all microbatches",
    "only sums are carried from one microbatch to the next",
    "would leave a value that is partly a sum and partly a maximum",
    "some of them empty",
    "ask for fewer",
    "which comes later",
    "no op works on a microbatch",
    "compile a larger batch and do not accumulate",
};

} // namespace

void ModelCase::noteRefusal(const std::string &diagnostics) {
  for (const char *reason : kReasons)
    if (diagnostics.find(reason) != std::string::npos) {
      ++counts.refused[reason];
      return;
    }
  ADD_FAILURE() << "refused: " << diagnostics << model.loss;
}

std::map<std::string, HostTensor> ModelCase::stepAlone(Mode mode, int64_t batch) {
  CompileOptions options = plain;
  options.mode = mode;
  auto session = compiler.open(*module, options);
  EXPECT_TRUE(session) << compiler.diagnostics() << model.loss;
  if (!session)
    return {};
  auto problem = setStates(*session, seed);
  if (!problem)
    problem = setInputs(*session, model.indexLimits, seed + batch);
  if (!problem)
    problem = trainStep(*session, 0.1);
  EXPECT_FALSE(problem) << problem->message << model.loss;
  return problem ? std::map<std::string, HostTensor>() : resultsOf(*session);
}

void ModelCase::compareSingleBatch(runtime::Session &actual) {
  auto expected = compiler.open(*module, plain);
  ASSERT_TRUE(expected) << compiler.diagnostics() << model.loss;
  for (runtime::Session *session : {expected.get(), &actual}) {
    auto problem = runProgram(*session, model.indexLimits, Mode::Train, seed);
    ASSERT_FALSE(problem) << problem->message << model.loss;
  }
  auto results = resultsOf(*expected), others = resultsOf(actual);
  ASSERT_EQ(results.size(), others.size());
  ASSERT_TRUE(std::isfinite(element(results.at("output loss")))) << model.loss;
  for (const auto &[name, value] : results) {
    ASSERT_TRUE(others.count(name)) << name;
    // Gradients have a norm of at most 1 after clipping; what is less than a thousandth of that may
    // be the small difference of large terms.
    EXPECT_LT(relativeDifference(value, others.at(name), /*floor=*/1e-3), 1e-9) << name << "\n"
                                                                                << model.loss;
  }
}

void ModelCase::compareTwoBatches(runtime::Session &actual) {
  auto problem = setStates(actual, seed);
  for (int64_t batch = 0; batch < 2 && !problem; ++batch)
    problem = setInputs(actual, model.indexLimits, seed + batch, batch);
  if (!problem)
    problem = trainStep(actual, 0.1);
  ASSERT_FALSE(problem) << problem->message << model.loss;
  auto first = stepAlone(Mode::Gradients, 0), second = stepAlone(Mode::Gradients, 1);
  ASSERT_FALSE(first.empty() || second.empty());
  double loss = 0, squares = 0, largest = 0;
  for (const auto &[name, value] : first) {
    if (name.rfind("output grad:", 0) == 0)
      for (int64_t i = 0; i < value.type.numElements(); ++i) {
        double a = element(value, i), b = element(second.at(name), i);
        squares += (a + b) * (a + b) / 4;
        largest = std::max({largest, std::abs(a), std::abs(b)});
      }
    else if (name == "output loss")
      loss = (element(value) + element(second.at(name))) / 2;
  }
  auto results = resultsOf(actual);
  EXPECT_NEAR(element(results.at("output loss")), loss, 1e-9 * std::max(1e-3, std::abs(loss)))
      << model.loss;
  double norm = std::sqrt(squares);
  EXPECT_NEAR(element(results.at("output grad_norm")), norm, 1e-9 * std::max({1e-3, norm, largest}))
      << model.loss;
}

void ModelCase::run(bool verbose, bool comparesBatches) {
  if (verbose) {
    for (const std::string &text : model.strategies)
      printf("%s\n", text.c_str());
    printf("%s", model.loss.c_str());
    fflush(stdout); // before a crash
  }
  module = compiler.parse(model.loss);
  ASSERT_TRUE(module) << compiler.diagnostics() << model.loss;
  for (const std::string &text : model.strategies) {
    SCOPED_TRACE(text);
    CompileOptions options = strategy(text);
    options.optimizer = plain.optimizer;
    Compiler fresh; // with diagnostics of its own
    auto own = fresh.parse(model.loss);
    auto session = fresh.open(*own, options);
    if (!session) {
      noteRefusal(fresh.diagnostics());
      continue;
    }
    ++counts.ran;
    ASSERT_NO_FATAL_FAILURE(compareSingleBatch(*session));
    if (!options.accumulates || !comparesBatches)
      continue;
    auto several = fresh.open(*own, options, /*threadsPerDevice=*/1, /*batches=*/2);
    ASSERT_TRUE(several) << fresh.diagnostics() << model.loss;
    ASSERT_NO_FATAL_FAILURE(compareTwoBatches(*several));
  }
}

TEST(RandomModel, StrategiesEqualOneDeviceOrSayWhyNot) {
  Counts counts;
  uint64_t cases = forEachRandomCase(100, [&](uint64_t seed, bool alone) {
    ModelCase(makeRandomModel(seed), seed, counts).run(/*verbose=*/alone);
  });
  printf("%d strategies equal one device\n", counts.ran);
  int refused = 0;
  for (const auto &[reason, times] : counts.refused) {
    printf("%d refused: %s\n", times, reason.c_str());
    refused += times;
  }
  // Most models can be laid out in most ways.
  if (cases > 0) {
    EXPECT_LT(refused, counts.ran);
  }
}

/// The microbatches of a batch have parts of a value that the parameters need as a whole.
TEST(RandomModel, SharedConstantsServeMicrobatchesAndParameters) {
  Counts counts;
  forEachRandomCase(26, [&](uint64_t seed, bool alone) {
    RandomModel model = makeConstantModel(seed % kNumConstantKinds, seed);
    // Each batch draws masks of its own, and the step of a batch alone those of the first.
    bool draws = model.loss.find("dtc.dropout") != std::string::npos;
    ModelCase(std::move(model), seed, counts).run(/*verbose=*/alone, /*comparesBatches=*/!draws);
    EXPECT_TRUE(counts.refused.empty()) << counts.refused.begin()->first;
  });
  printf("%d strategies equal one device\n", counts.ran);
}

/// Every strategy of one microbatch must do, and `further` ones. Several batches of a model that
/// mixes samples are refused.
static void runReduced(const char *loss, const std::vector<std::string> &further = {},
                       bool mixesSamples = false) {
  RandomModel model;
  model.loss = loss;
  model.strategies = {"accumulate",
                      "recompute=full",
                      "accumulate recompute=full",
                      "recompute=selective",
                      "pp=1",
                      "pp=1 accumulate",
                      "dp=2 accumulate",
                      "dp=2 zero=3 recompute=full",
                      "dp=2 zero=2 accumulate"};
  model.strategies.insert(model.strategies.end(), further.begin(), further.end());
  Counts counts;
  ModelCase(model, /*seed=*/1, counts).run(/*verbose=*/false);
  int refused = 0, accumulating = 0;
  for (const auto &[reason, times] : counts.refused)
    refused += times;
  for (const std::string &text : model.strategies)
    accumulating += strategy(text).accumulates;
  EXPECT_EQ(refused, mixesSamples ? accumulating : 0);
}

// Crashed: a value that only needs data was summed over microbatches like a gradient.
TEST(RandomModelReduced, SliceOfTheData) {
  runReduced(R"(func.func @loss(
      %x: tensor<4x6xf64> {dtc.input = "x", dtc.axes = ["batch", ""]},
      %w: tensor<f64> {dtc.param = "w"}) -> tensor<f64> {
    %0 = dtc.slice %x offsets [1, 0] sizes [2, 6] : (tensor<4x6xf64>) -> tensor<2x6xf64>
    %1 = dtc.reduce sum %0 dims [0, 1] : (tensor<2x6xf64>) -> tensor<f64>
    %2 = dtc.mul %1, %w : tensor<f64>
    return %2 : tensor<f64>
  })",
             {}, /*mixesSamples=*/true);
}

TEST(RandomModelReduced, DataJoinedWithThemselves) {
  runReduced(R"(func.func @loss(
      %x: tensor<3x5xf64> {dtc.input = "x", dtc.axes = ["batch", ""]},
      %w: tensor<f64> {dtc.param = "w"}) -> tensor<f64> {
    %0 = dtc.concat %x, %x dim 0 : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<6x5xf64>
    %1 = dtc.tanh %0 : tensor<6x5xf64>
    %2 = dtc.reduce sum %1 dims [0, 1] : (tensor<6x5xf64>) -> tensor<f64>
    %3 = dtc.mul %2, %w : tensor<f64>
    return %3 : tensor<f64>
  })",
             {}, /*mixesSamples=*/true);
}

TEST(RandomModelReduced, PaddedData) {
  runReduced(R"(func.func @loss(
      %x: tensor<4x3xf64> {dtc.input = "x", dtc.axes = ["batch", ""]},
      %w: tensor<3xf64> {dtc.param = "w"}) -> tensor<f64> {
    %0 = dtc.pad %x low [1, 0] high [2, 0] value 0.5 : (tensor<4x3xf64>) -> tensor<7x3xf64>
    %1 = dtc.einsum "bi,i->b" %0, %w : (tensor<7x3xf64>, tensor<3xf64>) -> tensor<7xf64>
    %2 = dtc.einsum "b,b->" %1, %1 : (tensor<7xf64>, tensor<7xf64>) -> tensor<f64>
    return %2 : tensor<f64>
  })",
             {}, /*mixesSamples=*/true);
}

// Was refused, with the advice to do what was done.
TEST(RandomModelReduced, SimilarityOfSamples) {
  runReduced(R"(func.func @loss(
      %x: tensor<4x3xf64> {dtc.input = "x", dtc.axes = ["batch", ""]},
      %w: tensor<3x2xf64> {dtc.param = "w"}) -> tensor<f64> {
    %0 = dtc.einsum "bi,ij->bj" %x, %w : (tensor<4x3xf64>, tensor<3x2xf64>) -> tensor<4x2xf64>
    %1 = dtc.einsum "aj,bj->ab" %0, %0 : (tensor<4x2xf64>, tensor<4x2xf64>) -> tensor<4x4xf64>
    %2 = dtc.softmax %1 : tensor<4x4xf64>
    %3 = dtc.einsum "ab,ab->" %2, %1 : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<f64>
    return %3 : tensor<f64>
  })",
             {"pp=2", "pp=2 accumulate", "pp=2 recompute=full", "pp=2 schedule=zb-h1"},
             /*mixesSamples=*/true);
}

// A function of the sum over a batch is not one of the sum over all batches of the step.
TEST(RandomModelReduced, BatchStatistics) {
  runReduced(R"(func.func @loss(
      %x: tensor<4x3xf64> {dtc.input = "x", dtc.axes = ["batch", ""]},
      %w: tensor<3x2xf64> {dtc.param = "w"}) -> tensor<f64> {
    %0 = dtc.einsum "bi,ij->bj" %x, %w : (tensor<4x3xf64>, tensor<3x2xf64>) -> tensor<4x2xf64>
    %1 = dtc.reduce sum %0 dims [0] : (tensor<4x2xf64>) -> tensor<2xf64>
    %2 = dtc.broadcast %1 dims [1] : (tensor<2xf64>) -> tensor<4x2xf64>
    %3 = dtc.sub %0, %2 : tensor<4x2xf64>
    %4 = dtc.einsum "bj,bj->" %3, %3 : (tensor<4x2xf64>, tensor<4x2xf64>) -> tensor<f64>
    %5 = dtc.exp %4 : tensor<f64>
    %6 = dtc.log %5 : tensor<f64>
    %7 = dtc.tanh %6 : tensor<f64>
    %8 = dtc.einsum "ij,ij->" %w, %w : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<f64>
    %9 = dtc.add %7, %8 : tensor<f64>
    return %9 : tensor<f64>
  })",
             {"pp=2", "pp=2 accumulate"}, /*mixesSamples=*/true);
}

// The loss of a step of several batches is their mean, also where a term is the same for all.
TEST(RandomModelReduced, PenaltyOfParameters) {
  runReduced(R"(func.func @loss(
      %x: tensor<4x3xf64> {dtc.input = "x", dtc.axes = ["batch", ""]},
      %w: tensor<3x2xf64> {dtc.param = "w"}) -> tensor<f64> {
    %0 = dtc.einsum "bi,ij->bj" %x, %w : (tensor<4x3xf64>, tensor<3x2xf64>) -> tensor<4x2xf64>
    %1 = dtc.einsum "bj,bj->" %0, %0 : (tensor<4x2xf64>, tensor<4x2xf64>) -> tensor<f64>
    %2 = dtc.einsum "ij,ij->" %w, %w : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<f64>
    %3 = dtc.add %1, %2 : tensor<f64>
    return %3 : tensor<f64>
  })",
             {"m=2 accumulate", "m=4 accumulate", "dp=2 m=2 zero=1 accumulate",
              "m=2 recompute=full accumulate", "pp=2 accumulate"});
}

// Crashed: no stage makes the gradient of a parameter that the loss does not depend on.
TEST(RandomModelReduced, UnusedParameter) {
  runReduced(R"(func.func @loss(
      %x: tensor<4x3xf64> {dtc.input = "x", dtc.axes = ["batch", ""]},
      %u: tensor<8x2xf64> {dtc.param = "u"}, %v: tensor<8x2xf64> {dtc.param = "v"},
      %w: tensor<3x2xf64> {dtc.param = "w"}) -> tensor<f64> {
    %0 = dtc.einsum "bi,ij->bj" %x, %w : (tensor<4x3xf64>, tensor<3x2xf64>) -> tensor<4x2xf64>
    %1 = dtc.tanh %0 : tensor<4x2xf64>
    %2 = dtc.einsum "bj,bj->" %1, %0 : (tensor<4x2xf64>, tensor<4x2xf64>) -> tensor<f64>
    %3 = dtc.einsum "ij,ij->" %v, %v : (tensor<8x2xf64>, tensor<8x2xf64>) -> tensor<f64>
    %4 = dtc.add %2, %3 : tensor<f64>
    return %4 : tensor<f64>
  })",
             {"pp=2", "pp=2 accumulate", "dp=2,pp=2 zero=2 accumulate"});
}

// The gradients were not added up where a pipeline's loop did not make them.
TEST(RandomModelReduced, GradientsWithoutData) {
  runReduced(R"(func.func @loss(
      %x: tensor<4x3xf64> {dtc.input = "x", dtc.axes = ["batch", ""]},
      %g: tensor<2xf64> {dtc.param = "g"}, %b: tensor<2xf64> {dtc.param = "b"},
      %w: tensor<3x2xf64> {dtc.param = "w"}) -> tensor<f64> {
    %0 = dtc.tanh %x : tensor<4x3xf64>
    %1 = dtc.einsum "bi,bi->" %0, %0 : (tensor<4x3xf64>, tensor<4x3xf64>) -> tensor<f64>
    %2:3 = dtc.layer_norm %w, %g, %b {eps = 1.0e-1 : f64}
        : (tensor<3x2xf64>, tensor<2xf64>, tensor<2xf64>) -> (tensor<3x2xf64>, tensor<3xf64>, tensor<3xf64>)
    %3 = dtc.einsum "ij,ij->" %2#0, %2#0 : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<f64>
    %4 = dtc.einsum "ij,ij->" %w, %w : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<f64>
    %5 = dtc.add %1, %3 : tensor<f64>
    %6 = dtc.add %5, %4 : tensor<f64>
    return %6 : tensor<f64>
  })",
             {"pp=2", "pp=2 accumulate", "dp=2,pp=2 zero=2 accumulate"});
}

} // namespace randomModelTest
