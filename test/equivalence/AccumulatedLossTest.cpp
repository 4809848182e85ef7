//===- AccumulatedLossTest.cpp - Hand-written losses over several batches --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A step over several batches of a loss that a user wrote is one over a batch of all their samples,
// compiled for one device, or the loss is refused. All in f64.
//
// DTC_RANDOM_SEED=n runs the one random case of that seed and prints it; DTC_RANDOM_CASES=n sets
// the number of cases.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"
#include "test/equivalence/Training.h"
#include "test/lib/RandomCases.h"
#include "test/lib/plans/TrainStep.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>

namespace accumulatedLossTest {

using namespace dtc;
using namespace dtc::test;

namespace {

constexpr int64_t kBatch = 4;

/// A model of `batch` samples, whose loss the ops `last` make of
///
/// * S, the sum over samples of a function of w and of the sample, if it counts
/// * N, how many samples count
/// * U and V, sums of a tensor that depends on no data, b, with the data and times the data
/// * Q, a penalty of p and of b
/// * C, 1 by the number of samples
///
/// each named by its letter, as in "%loss = dtc.div %S, %N : tensor<f64>".
std::string modelOf(const std::string &last, int64_t batch) {
  std::string text = R"(func.func @loss(
    %x: tensor<@x3xf64> {dtc.input = "x", dtc.axes = ["batch", ""]},
    %m: tensor<@xf64> {dtc.input = "m", dtc.axes = ["batch"]},
    %p: tensor<5xf64> {dtc.param = "p", dtc.init = #dtc.normal<0.5>},
    %b: tensor<3xf64> {dtc.param = "b", dtc.init = #dtc.normal<0.5>},
    %w: tensor<3x4xf64> {dtc.param = "w", dtc.init = #dtc.normal<0.5>}) -> tensor<f64> {
  %h = dtc.einsum "bi,ij->bj" %x, %w : (tensor<@x3xf64>, tensor<3x4xf64>) -> tensor<@x4xf64>
  %t = dtc.tanh %h : tensor<@x4xf64>
  %e = dtc.einsum "bj,bj->b" %t, %t : (tensor<@x4xf64>, tensor<@x4xf64>) -> tensor<@xf64>
  %S = dtc.einsum "b,b->" %e, %m : (tensor<@xf64>, tensor<@xf64>) -> tensor<f64>
  %N = dtc.reduce sum %m dims [0] : (tensor<@xf64>) -> tensor<f64>
  %d = dtc.tanh %b : tensor<3xf64>
  %bb = dtc.broadcast %d dims [1] : (tensor<3xf64>) -> tensor<@x3xf64>
  %y = dtc.add %x, %bb : tensor<@x3xf64>
  %U = dtc.reduce sum %y dims [0, 1] : (tensor<@x3xf64>) -> tensor<f64>
  %z = dtc.mul %y, %bb : tensor<@x3xf64>
  %v = dtc.reduce sum %z dims [1] : (tensor<@x3xf64>) -> tensor<@xf64>
  %V = dtc.einsum "b,b->" %v, %m : (tensor<@xf64>, tensor<@xf64>) -> tensor<f64>
  %pp = dtc.einsum "a,a->" %p, %p : (tensor<5xf64>, tensor<5xf64>) -> tensor<f64>
  %dd = dtc.einsum "a,a->" %d, %b : (tensor<3xf64>, tensor<3xf64>) -> tensor<f64>
  %Q = dtc.add %pp, %dd : tensor<f64>
  %C = dtc.constant dense<#> : tensor<f64>
  %half = dtc.constant dense<0.5> : tensor<f64>
  %zero = dtc.constant dense<0.0> : tensor<f64>
  %one = dtc.constant dense<1.0> : tensor<f64>
  %seven = dtc.constant dense<7.0> : tensor<f64>
  )" + last + R"(
  return %loss : tensor<f64>
})";
  auto replaceAll = [&](const std::string &from, const std::string &to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replaceAll("@x", std::to_string(batch) + "x");
  replaceAll("#>", fmt::format("{:.17e}>", 1.0 / double(batch)));
  return text;
}

/// Which samples count: in the batches of this step, `counting` gives a bit for each sample.
struct Samples {
  int64_t batches;
  uint64_t counting;
  HostTensor x, m;

  Samples(int64_t batches, uint64_t counting)
      : batches(batches), counting(counting),
        x(randomTensor({DType::F64, {batches * kBatch, 3}}, counting, "x")),
        m(TensorType{DType::F64, {batches * kBatch}}) {
    for (int64_t sample = 0; sample < batches * kBatch; ++sample)
      m.as<double>()[sample] = double(counting >> sample & 1);
  }
};

std::map<std::string, HostTensor> resultsOf(runtime::Session &session) {
  std::map<std::string, HostTensor> results;
  for (const char *output : {"loss", "grad_norm"})
    results.emplace(output, *session.getOutput(output));
  for (const plan::State *state : distinctStates(session.plan()))
    if (state->kind() == plan::State::PARAMETER)
      results.emplace(state->name(), *session.getState(state->name()));
  return results;
}

/// A step of SGD on the samples in `batches` batches; no results if the model is refused.
std::map<std::string, HostTensor> step(const std::string &last, const std::string &text,
                                       const Samples &samples, int64_t batches,
                                       std::string *refusal = nullptr) {
  CompileOptions options = strategy(text + " optimizer=sgd");
  options.clip = 0;
  options.weightDecay = 0;
  int64_t batch = samples.batches * kBatch / batches;
  Compiler compiler;
  std::string model = modelOf(last, batch);
  auto module = compiler.parse(model);
  EXPECT_TRUE(module) << compiler.diagnostics() << model;
  if (!module)
    return {};
  auto session = compiler.open(*module, options, /*threadsPerDevice=*/1, batches);
  if (!session) {
    if (refusal)
      *refusal = compiler.diagnostics();
    else
      ADD_FAILURE() << compiler.diagnostics() << model;
    return {};
  }
  EXPECT_FALSE(session->initializeStates(7));
  for (int64_t index = 0; index < batches; ++index) {
    auto part = [&](const HostTensor &all, std::vector<int64_t> shape) {
      HostTensor own(TensorType{DType::F64, std::move(shape)});
      std::memcpy(own.bytes.data(), all.bytes.data() + index * own.bytes.size(), own.bytes.size());
      return own;
    };
    EXPECT_FALSE(session->setInput("x", part(samples.x, {batch, 3}), index));
    EXPECT_FALSE(session->setInput("m", part(samples.m, {batch}), index));
  }
  auto problem = trainStep(*session, 0.1);
  EXPECT_FALSE(problem) << problem->message;
  return problem ? std::map<std::string, HostTensor>() : resultsOf(*session);
}

void expectSame(const std::map<std::string, HostTensor> &expected,
                const std::map<std::string, HostTensor> &actual, const std::string &last) {
  ASSERT_FALSE(expected.empty());
  ASSERT_EQ(expected.size(), actual.size());
  for (const auto &[name, value] : expected)
    EXPECT_LT(relativeDifference(value, actual.at(name), /*floor=*/1e-3), 1e-11)
        << name << " of " << last;
}

const char *const kStrategies[] = {"accumulate",
                                   "accumulate recompute=full",
                                   "m=2",
                                   "m=2 accumulate",
                                   "m=4",
                                   "dp=2 accumulate",
                                   "dp=2 m=2",
                                   "dp=2 m=2 zero=1",
                                   "dp=2 m=2 zero=2",
                                   "dp=2 m=2 zero=3",
                                   "dp=2 accumulate zero=2",
                                   "dp=2 accumulate zero=3",
                                   "pp=2 accumulate",
                                   "pp=2 m=2",
                                   "pp=2 m=4 schedule=zb-h1"};

/// A sum over samples: its name is "%s".
struct Numerator {
  const char *ops;
};
const Numerator kNumerators[] = {
    {"%s = dtc.add %S, %zero : tensor<f64>"},
    {"%s = dtc.add %S, %U : tensor<f64>"},
    {"%s0 = dtc.sub %V, %U : tensor<f64> %s1 = dtc.mul %s0, %half : tensor<f64> "
     "%s = dtc.add %s1, %S : tensor<f64>"},
    {"%s = dtc.neg %V : tensor<f64>"},
    // A factor that trains.
    {"%s = dtc.mul %S, %Q : tensor<f64>"},
};

/// The mean of samples "%r", by what divides "%s".
const char *const kMeans[] = {
    "%r = dtc.mul %s, %C : tensor<f64>",
    "%r = dtc.div %s, %N : tensor<f64>",
    "%c = dtc.maximum %N, %one : tensor<f64> %r = dtc.div %s, %c : tensor<f64>",
    "%c = dtc.add %N, %half : tensor<f64> %r = dtc.div %s, %c : tensor<f64>",
    "%c = dtc.maximum %N, %seven : tensor<f64> %r = dtc.div %s, %c : tensor<f64>",
    "%c = dtc.sqrt %N : tensor<f64> %r = dtc.div %s, %c : tensor<f64>",
    "%c = dtc.div %one, %N : tensor<f64> %r = dtc.mul %c, %s : tensor<f64>",
    // A term that is added before the division counts once.
    "%n = dtc.add %s, %Q : tensor<f64> %r = dtc.div %n, %N : tensor<f64>",
    R"(%n0 = dtc.mul %Q, %half : tensor<f64> %n = dtc.sub %n0, %s : tensor<f64>
       %r = dtc.div %n, %N : tensor<f64>)",
};

/// The loss, of "%r".
const char *const kLosses[] = {
    "%loss = dtc.mul %r, %half : tensor<f64>",
    "%loss = dtc.add %r, %Q : tensor<f64>",
    "%l = dtc.sub %Q, %r : tensor<f64> %loss = dtc.mul %l, %half : tensor<f64>",
    "%k = dtc.mul %Q, %half : tensor<f64> %l = dtc.neg %r : tensor<f64> "
    "%loss = dtc.sub %l, %k : tensor<f64>",
};

std::string lossOf(const Numerator &numerator, const char *mean, const char *loss) {
  return fmt::format("{}\n  {}\n  {}", numerator.ops, mean, loss);
}

/// The first of three batches has no sample that counts, the second one, the third all.
constexpr uint64_t kFewCount = 0xf10;

TEST(AccumulatedLoss, EqualsThatOfOneBatch) {
  Samples samples(3, kFewCount);
  for (const char *mean : kMeans)
    for (const char *text : {"accumulate", "m=2", "dp=2 m=2 zero=1"}) {
      SCOPED_TRACE(text);
      std::string last = lossOf(kNumerators[2], mean, kLosses[1]);
      auto expected = step(last, "", samples, 1);
      ASSERT_NO_FATAL_FAILURE(expectSame(expected, step(last, text, samples, 3), last));
    }
}

TEST(AccumulatedLoss, EqualsThatOfOneBatchWithAnyStrategy) {
  Samples samples(3, kFewCount);
  for (const char *text : kStrategies)
    for (const char *mean : {kMeans[0], kMeans[2]}) {
      SCOPED_TRACE(text);
      std::string last = lossOf(kNumerators[1], mean, kLosses[1]);
      auto expected = step(last, "", samples, 1);
      ASSERT_NO_FATAL_FAILURE(expectSame(expected, step(last, text, samples, 3), last));
    }
}

/// Random samples of some batches. A sample of the last batch counts, so that the mean exists.
Samples randomSamples(std::mt19937_64 &engine) {
  int64_t batches = 2 + int64_t(engine() % 3);
  uint64_t counting = engine() & engine() & ((uint64_t(1) << batches * kBatch) - 1);
  if (engine() % 2)
    counting &= ~uint64_t(0) << kBatch; // none in the first batch
  return Samples(batches, counting | uint64_t(1) << (batches * kBatch - 1));
}

TEST(AccumulatedLoss, RandomOnesEqualThoseOfOneBatch) {
  forEachRandomCase(40, [&](uint64_t seed, bool alone) {
    std::mt19937_64 engine(seed);
    auto oneOf = [&](const auto &list) { return list[engine() % std::size(list)]; };
    Samples samples = randomSamples(engine);
    std::string last = lossOf(oneOf(kNumerators), oneOf(kMeans), oneOf(kLosses));
    const char *text = oneOf(kStrategies);
    if (alone)
      printf("%s, %d batches, counting %llx\n%s\n", text, int(samples.batches),
             (unsigned long long)samples.counting, last.c_str());
    SCOPED_TRACE(text);
    auto expected = step(last, "", samples, 1);
    ASSERT_NO_FATAL_FAILURE(expectSame(expected, step(last, text, samples, samples.batches), last));
  });
}

/// A random formula of scalars, as ops of a model.
class Formula {
public:
  explicit Formula(uint64_t seed) : engine(seed) {}
  uint64_t draw(uint64_t count) { return engine() % count; }
  std::string apply(const char *op, const std::string &operands) {
    std::string name = fmt::format("%f{}", ++count);
    text += fmt::format("{} = dtc.{} {} : tensor<f64>\n  ", name, op, operands);
    return name;
  }
  /// An expression of values from `leaves`.
  std::string tree(const std::vector<const char *> &leaves, int depth) {
    if (depth == 0 || draw(4) == 0)
      return leaves[draw(leaves.size())];
    static const char *const binary[] = {"add", "add", "sub", "mul", "mul", "maximum", "div"};
    static const char *const unary[] = {"neg", "neg", "tanh", "exp"};
    if (draw(5) == 0)
      return apply(unary[draw(std::size(unary))], tree(leaves, depth - 1));
    const char *op = binary[draw(std::size(binary))];
    std::string first = tree(leaves, depth - 1), second = tree(leaves, depth - 1);
    return apply(op, first + ", " + second);
  }

  std::mt19937_64 engine;
  std::string text;
  int count = 0;
};

/// Formulas that the compiler accepts have the value and the gradients of one batch. The means of a
/// formula are either over all samples (C), or over those that count: a divisor that has N.
TEST(AccumulatedLoss, RandomFormulasEqualOneBatchOrAreRefused) {
  int accepted = 0, refused = 0;
  uint64_t cases = forEachRandomCase(120, [&](uint64_t seed, bool alone) {
    Formula formula(seed);
    Samples samples = randomSamples(formula.engine);
    std::string value;
    if (formula.draw(4) == 0) {
      for (const char *sum : {"S", "U", "V"})
        formula.text += fmt::format("%m{0} = dtc.mul %{0}, %C : tensor<f64>\n  ", sum);
      value = formula.apply("add", "%mS, " + formula.tree({"%mS", "%mU", "%mV", "%Q", "%half"}, 2));
    } else {
      std::string sums = formula.tree({"%S", "%S", "%U", "%V", "%N", "%Q", "%half"}, 2);
      std::string by = formula.apply(
          formula.draw(2) ? "add" : "maximum",
          "%N, " + formula.tree({"%N", "%one", "%half", "%seven"}, int(formula.draw(3))));
      // A sum of what counts, so that the quotient is never without data.
      value = formula.apply("div", formula.apply("add", "%S, " + sums) + ", " + by);
      if (formula.draw(2))
        value = formula.apply("sub", value + ", " + formula.tree({"%Q", "%half", "%Q", "%one"}, 2));
    }
    std::string last = formula.text + "%loss = dtc.mul " + value + ", %half : tensor<f64>";
    const char *text = kStrategies[formula.draw(std::size(kStrategies))];
    if (alone)
      printf("%s, %d batches, counting %llx\n%s\n", text, int(samples.batches),
             (unsigned long long)samples.counting, last.c_str());
    SCOPED_TRACE(text);
    auto expected = step(last, "", samples, 1);
    if (expected.empty() || !std::isfinite(element(expected.at("loss"))) ||
        !std::isfinite(element(expected.at("grad_norm"))))
      return;
    std::string refusal;
    auto actual = step(last, text, samples, samples.batches, &refusal);
    if (actual.empty()) {
      // Several microbatches may be refused, also in a step of one batch.
      EXPECT_TRUE(refusal.find("do not accumulate") != std::string::npos ||
                  refusal.find("use one microbatch") != std::string::npos)
          << refusal << last;
      ++refused;
      return;
    }
    ++accepted;
    ASSERT_NO_FATAL_FAILURE(expectSame(expected, actual, last));
  });
  printf("%d formulas equal one batch, %d are refused\n", accepted, refused);
  if (cases > 20) {
    EXPECT_GT(accepted, int(cases) / 5);
    EXPECT_GT(refused, int(cases) / 5);
  }
}

/// A loss that several batches cannot compute as one does is refused, where it is written; as one
/// batch, several microbatches compute it.
TEST(AccumulatedLoss, IsRefusedWhereItIsNoSum) {
  Samples samples(2, 0xff), oneBatch(1, 0xf);
  struct Example {
    const char *last, *op;
    bool microbatches; ///< several can compute it
  };
  for (const Example &example : {
           Example{"%loss = dtc.log %S : tensor<f64>", "dtc.log", false},
           Example{"%l = dtc.mul %S, %C : tensor<f64> %loss = dtc.sqrt %l : tensor<f64>",
                   "dtc.sqrt", false},
           Example{"%loss = dtc.mul %S, %V : tensor<f64>", "dtc.mul", false},
           // Two divisors of what trains.
           Example{"%k = dtc.div %S, %N : tensor<f64> %o = dtc.add %N, %one : tensor<f64> "
                   "%l = dtc.div %V, %o : tensor<f64> %loss = dtc.add %k, %l : tensor<f64>",
                   "dtc.div", false},
           // The value of the loss is not linear, though its gradient is.
           Example{"%k = dtc.log %N : tensor<f64> %loss = dtc.add %S, %k : tensor<f64>", "dtc.log",
                   true},
           Example{"%k = dtc.reduce max %m dims [0] : (tensor<4xf64>) -> tensor<f64> "
                   "%loss = dtc.div %S, %k : tensor<f64>",
                   "dtc.reduce", false},
           // A term that is added once to a vector of sums counts once, which its gradient does not
           // know.
           Example{"%k = dtc.reduce sum %y dims [0] : (tensor<4x3xf64>) -> tensor<3xf64> "
                   "%a = dtc.add %k, %d : tensor<3xf64> "
                   "%l = dtc.reduce sum %a dims [0] : (tensor<3xf64>) -> tensor<f64> "
                   "%loss = dtc.div %l, %N : tensor<f64>",
                   "dtc.add", true},
           // A vector of sums, and samples that are mixed.
           Example{
               "%k = dtc.reduce sum %t dims [0] : (tensor<4x4xf64>) -> tensor<4xf64> "
               "%l = dtc.einsum \"j,j->\" %k, %k : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64> "
               "%loss = dtc.div %l, %N : tensor<f64>",
               "dtc.einsum", false},
           Example{
               "%k = dtc.softmax %m : tensor<4xf64> "
               "%l = dtc.einsum \"b,b->\" %k, %e : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64> "
               "%loss = dtc.mul %l, %half : tensor<f64>",
               "", false},
       })
    for (const char *text : {"accumulate", "m=2", "m=2 accumulate"}) {
      SCOPED_TRACE(fmt::format("{} {}", text, example.last));
      std::string refusal;
      EXPECT_TRUE(step(example.last, text, samples, 2, &refusal).empty());
      EXPECT_FALSE(refusal.empty());
      if (text == std::string("accumulate") || example.microbatches) {
        EXPECT_NE(refusal.find(example.op), std::string::npos) << refusal;
        EXPECT_NE(refusal.find("do not accumulate"), std::string::npos) << refusal;
        // The line of the op, the last one before the return.
        EXPECT_NE(refusal.find(":27:"), std::string::npos) << refusal;
      }
      auto expected = step(example.last, "", oneBatch, 1);
      if (text == std::string("m=2") && example.microbatches)
        expectSame(expected, step(example.last, text, oneBatch, 1), example.last);
    }
}

/// Data that have no dimension of samples are taken as each batch has them, or refused.
TEST(AccumulatedLoss, DataWithoutSamples) {
  auto run = [](const char *use, const char *text, std::string &refusal) -> std::optional<double> {
    Compiler compiler;
    auto module = compiler.parse(fmt::format(R"(func.func @loss(
    %x: tensor<4xf64> {{dtc.input = "x", dtc.axes = ["batch"]}},
    %k: tensor<f64> {{dtc.input = "k"}},
    %w: tensor<f64> {{dtc.param = "w", dtc.init = #dtc.ones}}) -> tensor<f64> {{
  %kk = dtc.broadcast %k dims [] : (tensor<f64>) -> tensor<4xf64>
  %ww = dtc.broadcast %w dims [] : (tensor<f64>) -> tensor<4xf64>
  %xk = dtc.mul %x, %kk : tensor<4xf64>
  %y = dtc.mul %xk, %ww : tensor<4xf64>
  %s = dtc.reduce sum %y dims [0] : (tensor<4xf64>) -> tensor<f64>
  {}
  return %loss : tensor<f64>
}})",
                                             use));
    EXPECT_TRUE(module) << compiler.diagnostics();
    if (!module)
      return {};
    auto session = compiler.open(*module, strategy(std::string(text) + " optimizer=sgd"), 1, 2);
    refusal = compiler.diagnostics();
    if (!session)
      return {};
    EXPECT_FALSE(session->initializeStates(1));
    for (int64_t batch = 0; batch < 2; ++batch) {
      HostTensor x(TensorType{DType::F64, {4}}), k(TensorType{DType::F64, {}});
      std::fill_n(x.as<double>(), 4, 1.0);
      *k.as<double>() = batch == 0 ? 3 : 5;
      EXPECT_FALSE(session->setInput("x", std::move(x), batch));
      EXPECT_FALSE(session->setInput("k", std::move(k), batch));
    }
    auto problem = trainStep(*session, 0.0);
    EXPECT_FALSE(problem) << problem->message;
    EXPECT_NEAR(element(*session->getOutput("grad_norm")),
                std::abs(element(*session->getOutput("loss"))), 1e-12);
    return element(*session->getOutput("loss"));
  };
  std::string refusal;
  for (const char *text : {"accumulate", "m=2", "m=2 accumulate", "dp=2 accumulate"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(run("%loss = dtc.neg %s : tensor<f64>", text, refusal).value_or(0), -16) << refusal;
    EXPECT_EQ(run("%loss = dtc.mul %s, %k : tensor<f64>", text, refusal).value_or(0), 68)
        << refusal;
    EXPECT_FALSE(run("%loss = dtc.div %s, %k : tensor<f64>", text, refusal));
    EXPECT_NE(refusal.find("do not accumulate"), std::string::npos) << refusal;
  }
}

/// A temporal axis of the model's own mesh is as one of --microbatches.
TEST(AccumulatedLoss, OwnMesh) {
  for (int64_t size : {1, 2}) {
    SCOPED_TRACE(size);
    Compiler compiler;
    auto module = compiler.parse(fmt::format(
        R"(dist.mesh @mesh <"own"={} temporal>
func.func @loss(
    %x: tensor<4x3xf64> {{dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{{"own"}}, {{}}]>}},
    %b: tensor<3xf64> {{dtc.param = "b", dtc.init = #dtc.ones}}) -> tensor<f64> {{
  %bb = dtc.broadcast %b dims [1] : (tensor<3xf64>) -> tensor<4x3xf64>
  %y = dtc.add %x, %bb : tensor<4x3xf64>
  %s = dtc.reduce sum %y dims [0, 1] : (tensor<4x3xf64>) -> tensor<f64>
  %c = dtc.constant dense<0.25> : tensor<f64>
  %loss = dtc.mul %s, %c : tensor<f64>
  return %loss : tensor<f64>
}})",
        size));
    ASSERT_TRUE(module) << compiler.diagnostics();
    const char *text = size == 1 ? "accumulate optimizer=sgd" : "optimizer=sgd";
    auto session = compiler.open(*module, strategy(text), 1, 3);
    ASSERT_TRUE(session) << compiler.diagnostics();
    ASSERT_FALSE(session->initializeStates(1));
    for (int64_t batch = 0; batch < 3; ++batch) {
      HostTensor x(TensorType{DType::F64, {4, 3}});
      std::fill_n(x.as<double>(), 12, double(batch));
      ASSERT_FALSE(session->setInput("x", std::move(x), batch));
    }
    auto problem = trainStep(*session, 0.0);
    ASSERT_FALSE(problem) << problem->message;
    EXPECT_NEAR(element(*session->getOutput("loss")), 6, 1e-12);
    EXPECT_NEAR(element(*session->getOutput("grad_norm")), std::sqrt(3.0), 1e-12);
  }
}

} // namespace

} // namespace accumulatedLossTest
