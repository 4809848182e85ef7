//===- DropoutMaskTest.cpp - Tests of dropout masks on every sharding -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A model from whose results masks can be read. Forward: dropout works on ones; attention has
// scores of zero and one-hot values, so that its output is a row of its mask, up to a factor.
// Backward: sample b counts 16^b times in the loss, so that a gradient is a number whose digits are
// the masks of the samples.
//
//===----------------------------------------------------------------------===//

#include "plan/plan.pb.h"
#include "test/equivalence/Training.h"
#include "test/lib/plans/TrainStep.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <gtest/gtest.h>

namespace dropoutMaskTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// The sizes of the model. Heads are as wide as sequences are long.
struct Sizes {
  int64_t batch, seq, embed, heads;
  double rate;
};

/// The random ops in the order of their numbers.
struct RandomOp {
  const char *layer;
  bool isAttention;
};
const RandomOp kOps[] = {
    {"wpe", false}, {"h.0.attn", true}, {"h.0.mlp", false}, {"h.1.attn", true}, {"h.1.mlp", false}};
constexpr int kNumOps = int(std::size(kOps));

/// Whether each element was kept.
using Mask = std::vector<bool>;
using Masks = std::vector<Mask>; ///< of all ops

using Key = std::array<uint32_t, 2>;
const Key kKey = {7, 3};

/// Fills in `$B`, `$S`, `$D`, `$H` and `$R`, and `$i` and `$L` for op `i`.
std::string fill(std::string text, const Sizes &sizes, int i = 0) {
  auto replace = [&](llvm::StringRef name, const std::string &value) {
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
      text.replace(at, name.size(), value);
  };
  replace("$B", std::to_string(sizes.batch));
  replace("$S", std::to_string(sizes.seq));
  replace("$D", std::to_string(sizes.embed));
  replace("$H", std::to_string(sizes.heads));
  replace("$R", llvm::formatv("{0:e17}", sizes.rate).str());
  replace("$i", std::to_string(i));
  replace("$L", std::string("loc(\"") + kOps[i].layer + "\")");
  return text;
}

/// The parameters: ones, and what attention mixes, [keys, heads, values].
const char *kDropoutParameter =
    R"(%w$i: tensor<$Sx$Dxf64> {dtc.param = "w$i", dtc.axes = ["", "embed"]})";
const char *kAttentionParameter =
    R"(%w$i: tensor<$Sx$Hx$Sxf64> {dtc.param = "w$i", dtc.axes = ["", "heads", ""]})";

const char *kDropout = R"mlir(
  %x$i = dtc.broadcast %w$i dims [1, 2] {dtc.axes = ["batch", "residual_seq", "embed"]}
      : (tensor<$Sx$Dxf64>) -> tensor<$Bx$Sx$Dxf64> $L
  %y$i = dtc.dropout %x$i, %key {number = $i, rate = $R}
      : (tensor<$Bx$Sx$Dxf64>, tensor<2xi32>) -> tensor<$Bx$Sx$Dxf64> $L)mlir";
const char *kAttention = R"mlir(
  %v$i = dtc.broadcast %w$i dims [1, 2, 3] {dtc.axes = ["batch", "", "heads", ""]}
      : (tensor<$Sx$Hx$Sxf64>) -> tensor<$Bx$Sx$Hx$Sxf64> $L
  %q$i = dtc.constant dense<0.0> : tensor<$Bx$Sx$Hx$Sxf64> $L
  %y$i, %lse$i = dtc.attention %q$i, %q$i, %v$i key %key
      {causal = false, scale = 1.0, dropout = $R, number = $i}
      : (tensor<$Bx$Sx$Hx$Sxf64>, tensor<$Bx$Sx$Hx$Sxf64>, tensor<$Bx$Sx$Hx$Sxf64>, tensor<2xi32>)
      -> (tensor<$Bx$Sx$Hx$Sxf64>, tensor<$Bx$Hx$Sxf64>) $L)mlir";

/// sum over b of c[b] times the squares of y; for attention, only the terms in which query and
/// value agree.
const char *kDropoutLoss = R"mlir(
  %square$i = dtc.mul %y$i, %y$i : tensor<$Bx$Sx$Dxf64> $L
  %c$i = dtc.broadcast %c dims [0] : (tensor<$Bxf64>) -> tensor<$Bx$Sx$Dxf64> $L
  %each$i = dtc.mul %square$i, %c$i : tensor<$Bx$Sx$Dxf64> $L
  %sum$i = dtc.reduce sum %each$i dims [0, 1, 2] : (tensor<$Bx$Sx$Dxf64>) -> tensor<f64> $L)mlir";
const char *kAttentionLoss = R"mlir(
  %square$i = dtc.mul %y$i, %y$i : tensor<$Bx$Sx$Hx$Sxf64> $L
  %c$i = dtc.broadcast %c dims [0] : (tensor<$Bxf64>) -> tensor<$Bx$Sx$Hx$Sxf64> $L
  %scaled$i = dtc.mul %square$i, %c$i : tensor<$Bx$Sx$Hx$Sxf64> $L
  %one$i = dtc.constant dense<$eye> : tensor<$Sx$Sxf64> $L
  %eye$i = dtc.broadcast %one$i dims [1, 3] : (tensor<$Sx$Sxf64>) -> tensor<$Bx$Sx$Hx$Sxf64> $L
  %each$i = dtc.mul %scaled$i, %eye$i : tensor<$Bx$Sx$Hx$Sxf64> $L
  %sum$i = dtc.reduce sum %each$i dims [0, 1, 2, 3] : (tensor<$Bx$Sx$Hx$Sxf64>) -> tensor<f64> $L)mlir";

std::string identity(int64_t size) {
  std::string text = "[";
  for (int64_t row = 0; row < size; ++row) {
    text += row == 0 ? "[" : ", [";
    for (int64_t column = 0; column < size; ++column)
      text += std::string(column == 0 ? "" : ", ") + (row == column ? "1.0" : "0.0");
    text += "]";
  }
  return text + "]";
}

/// The function that returns what the ops make, or the loss.
std::string modelText(const Sizes &sizes, bool withLoss) {
  std::string arguments, body, results, types, last;
  for (int i = 0; i < kNumOps; ++i) {
    bool attention = kOps[i].isAttention;
    arguments += fill(attention ? kAttentionParameter : kDropoutParameter, sizes, i) + ", ";
    body += fill(attention ? kAttention : kDropout, sizes, i);
    if (!withLoss) {
      results += std::string(i ? ", " : "") + "%y" + std::to_string(i);
      types += std::string(i ? ", " : "") +
               fill(attention ? "tensor<$Bx$Sx$Hx$Sxf64>" : "tensor<$Bx$Sx$Dxf64>", sizes);
      continue;
    }
    std::string loss = attention ? kAttentionLoss : kDropoutLoss;
    if (size_t at = loss.find("$eye"); at != std::string::npos)
      loss.replace(at, 4, identity(sizes.seq));
    body += fill(loss, sizes, i);
    if (i > 0)
      body += fill("\n  %total$i = dtc.add " + last + ", %sum$i : tensor<f64> $L", sizes, i);
    last = (i == 0 ? "%sum" : "%total") + std::to_string(i);
  }
  if (withLoss) {
    arguments += fill(R"(%c: tensor<$Bxf64> {dtc.input = "c", dtc.axes = ["batch"]}, )", sizes);
    results = last;
    types = "tensor<f64>";
  }
  return "func.func @loss(" + arguments + R"(%key: tensor<2xi32> {dtc.scalar = "random_key"}))" +
         " -> (" + types + ") {" + body + "\n  return " + results + " : " + types + "\n}";
}

std::unique_ptr<runtime::Session> openModel(const Sizes &sizes, CompileOptions options,
                                            bool withLoss, int threads = 1) {
  Compiler compiler;
  auto module = compiler.parse(modelText(sizes, withLoss));
  EXPECT_TRUE(module) << compiler.diagnostics();
  if (!module)
    return nullptr;
  if (!withLoss) {
    options.mode = CompileMode::Forward;
    options.keepDropout = true;
  }
  // The momentum is then the gradient as it is.
  options.optimizer = Optimizer::SGD;
  options.momentum = options.weightDecay = options.clip = 0;
  auto session = compiler.open(*module, options, threads);
  EXPECT_TRUE(session) << compiler.diagnostics();
  return session;
}

/// Ones, or one-hot values for each key.
void setParameters(runtime::Session &session, const Sizes &sizes, bool oneHot) {
  for (int i = 0; i < kNumOps; ++i) {
    std::string name = "w" + std::to_string(i);
    auto value = session.getState(name);
    ASSERT_TRUE(value) << value.error().message;
    for (int64_t at = 0, n = value->type.numElements(); at < n; ++at) {
      int64_t key = at / (sizes.heads * sizes.seq), column = at % sizes.seq;
      setElement(*value, at, kOps[i].isAttention && oneHot ? key == column : 1);
    }
    ASSERT_FALSE(session.setState(name, *value));
  }
}

/// The masks of one run forward: [B, S, D] for dropout, [B, S, H, keys] for attention.
Masks masksOf(runtime::Session &session, const Key &key) {
  Masks masks;
  // The words as they are, signed.
  auto problem = setStepState(session, plan::State::RANDOM_KEY,
                              {double(int32_t(key[0])), double(int32_t(key[1]))});
  if (!problem)
    problem = trainStep(session, 0);
  EXPECT_FALSE(problem) << problem->message;
  if (problem)
    return masks;
  for (const plan::Output &output : session.plan().programs(0).outputs()) {
    auto value = session.getOutput(output.name());
    EXPECT_TRUE(value) << value.error().message;
    Mask &mask = masks.emplace_back();
    for (int64_t i = 0, n = value->type.numElements(); i < n; ++i)
      mask.push_back(element(*value, i) != 0);
  }
  EXPECT_EQ(masks.size(), size_t(kNumOps));
  return masks;
}

Masks forwardMasks(const Sizes &sizes, const CompileOptions &options, const Key &key = kKey,
                   int threads = 1) {
  auto session = openModel(sizes, options, /*withLoss=*/false, threads);
  if (!session)
    return {};
  setParameters(*session, sizes, /*oneHot=*/true);
  return masksOf(*session, key);
}

/// Eleven samples and six heads: hardly any mesh divides them.
const Sizes kSmall = {11, 8, 10, 6, 0.25};

const Masks &referenceMasks() {
  static const Masks masks = forwardMasks(kSmall, strategy(""));
  return masks;
}

/// The gradient that the masks lead to, by element of the parameter, in the unit of its last digit.
std::vector<double> expectedDigits(const Mask &mask, bool attention) {
  const auto &[batch, seq, embed, heads, rate] = kSmall;
  std::vector<double> digits(size_t(attention ? seq * heads * seq : seq * embed), 0);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < int64_t(digits.size()); ++i) {
      double place = std::pow(16, b);
      if (!attention) {
        digits[i] += place * mask[b * seq * embed + i];
        continue;
      }
      // For the element [key, head, value] of the weight: the row of the query with the number of
      // the value.
      int64_t key = i / (heads * seq), head = i / seq % heads, query = i % seq;
      auto row = mask.begin() + ((b * seq + query) * heads + head) * seq;
      if (row[key])
        digits[i] += place * double(std::count(row, row + seq, true));
    }
  return digits;
}

/// Trains a step and compares all digits of all gradients.
void expectMasksInGradients(const std::string &text, int threads) {
  SCOPED_TRACE(text + ", threads " + std::to_string(threads));
  auto session = openModel(kSmall, strategy(text), /*withLoss=*/true, threads);
  ASSERT_TRUE(session);
  setParameters(*session, kSmall, /*oneHot=*/false);
  HostTensor places(TensorType{DType::F64, {kSmall.batch}});
  for (int64_t b = 0; b < kSmall.batch; ++b)
    setElement(places, b, std::pow(16, b));
  ASSERT_FALSE(session->setInput("c", places));
  ASSERT_FALSE(setStepState(*session, plan::State::RANDOM_KEY, {double(kKey[0]), double(kKey[1])}));
  auto problem = trainStep(*session, 0);
  ASSERT_FALSE(problem) << problem->message;
  for (int i = 0; i < kNumOps; ++i) {
    bool attention = kOps[i].isAttention;
    auto gradient = session->getState("w" + std::to_string(i) + ".momentum_buffer");
    ASSERT_TRUE(gradient) << gradient.error().message;
    std::vector<double> digits = expectedDigits(referenceMasks()[i], attention);
    ASSERT_EQ(gradient->type.numElements(), int64_t(digits.size()));
    // d/dw of (w r mask)^2, and of (sum over keys of w r mask / S)^2.
    double factor = 1 / (1 - kSmall.rate) / (attention ? double(kSmall.seq) : 1);
    double unit = 2 * factor * factor;
    int64_t wrong = 0;
    for (size_t at = 0; at < digits.size(); ++at)
      wrong += !(std::abs(element(*gradient, int64_t(at)) / unit - digits[at]) < 0.25);
    EXPECT_EQ(wrong, 0) << "elements of the gradient of w" << i << ", in " << kOps[i].layer;
  }
}

/// How many kernels of the plan draw a mask going forward.
int64_t countForwardMasks(const std::string &text) {
  auto session = openModel(kSmall, strategy(text), /*withLoss=*/true);
  int64_t count = 0;
  if (session)
    for (const plan::Program &program : session->plan().programs())
      for (const plan::Task &task : program.tasks())
        for (const plan::Instruction &instruction : task.instructions())
          count += instruction.kernel().kernel() == "dropout" ||
                   instruction.kernel().kernel() == "attention";
  return count;
}

/// Without microbatches: the result of a model is whole.
const char *kForwardStrategies[] = {
    "dp=2",    "dp=3", "dp=4",      "dp=11",     "tp=2",         "tp=2 sp",
    "tp=3 sp", "tp=4", "dp=2,tp=2", "dp=4,tp=2", "dp=2,tp=3 sp", "dp=3,tp=2 sp",
};

const char *kTrainingStrategies[] = {
    "",
    "m=2",
    "m=4",
    "dp=2",
    "dp=3 m=2",
    "dp=2 m=4",
    "tp=2 sp m=2",
    "tp=3 sp m=4",
    "tp=4",
    "dp=2,tp=2 zero=1 m=2",
    "dp=4 zero=2 m=2",
    "dp=2,tp=3 zero=3 m=2 sp",
    "pp=2 m=4",
    "pp=2,tp=2 m=2 sp",
    "dp=2,tp=2,pp=2 m=2 zero=1 sp",
    "pp=2 m=4 schedule=zb-h1",
};

class DropoutMasks : public testing::TestWithParam<const char *> {};

std::string nameOf(const testing::TestParamInfo<const char *> &info) {
  return info.param[0] ? strategyName(info.param) : "one";
}

} // namespace

TEST(DropoutMask, IsTheSameForwardOnAllStrategies) {
  ASSERT_EQ(referenceMasks().size(), size_t(kNumOps));
  for (const Mask &mask : referenceMasks()) {
    EXPECT_TRUE(std::count(mask.begin(), mask.end(), true) > 0);
    EXPECT_TRUE(std::count(mask.begin(), mask.end(), false) > 0);
  }
  for (const char *text : kForwardStrategies)
    for (int threads : {1, 2})
      EXPECT_EQ(forwardMasks(kSmall, strategy(text), kKey, threads), referenceMasks())
          << text << ", threads " << threads;
}

/// Kept and recomputed values have the masks that were drawn first.
TEST_P(DropoutMasks, AreTheSameBackward) {
  for (const char *mode : {"none", "selective", "full"})
    expectMasksInGradients(std::string(GetParam()) + " recompute=" + mode, /*threads=*/1);
  expectMasksInGradients(GetParam(), /*threads=*/2);
}

INSTANTIATE_TEST_SUITE_P(Masks, DropoutMasks, testing::ValuesIn(kTrainingStrategies), nameOf);

/// Otherwise the test of that is none.
TEST(DropoutMask, IsDrawnAgain) {
  int64_t none = countForwardMasks("recompute=none");
  EXPECT_GT(countForwardMasks("recompute=selective"), none);
  EXPECT_GT(countForwardMasks("recompute=full"), none);
}

/// The share of zeros is the rate, and masks of different ops, seeds and iterations agree no more
/// often than chance has it: within four standard deviations.
TEST(DropoutMask, IsRandom) {
  constexpr double deviations = 4;
  const Key keys[] = {{7, 0}, {7, 1}, {8, 0}, {0x80000007, 1}};
  for (double rate : {0.1, 0.5, 0.9}) {
    Sizes sizes = {16, 16, 96, 6, rate}; // 24576 elements in all masks
    auto session = openModel(sizes, strategy(""), /*withLoss=*/false);
    ASSERT_TRUE(session);
    setParameters(*session, sizes, /*oneHot=*/true);
    Masks masks;
    for (const Key &key : keys)
      for (Mask &mask : masksOf(*session, key))
        masks.push_back(std::move(mask));
    ASSERT_EQ(masks.size(), std::size(keys) * kNumOps);
    double count = double(masks[0].size());
    auto expectShare = [&](double found, double share, const std::string &what) {
      EXPECT_NEAR(found, share * count, deviations * std::sqrt(count * share * (1 - share)))
          << what << " at rate " << rate;
    };
    double agreement = rate * rate + (1 - rate) * (1 - rate);
    for (size_t i = 0; i < masks.size(); ++i) {
      ASSERT_EQ(masks[i].size(), masks[0].size());
      expectShare(double(std::count(masks[i].begin(), masks[i].end(), false)), rate,
                  "zeros of mask " + std::to_string(i));
      for (size_t j = 0; j < i; ++j) {
        int64_t same = 0;
        for (size_t at = 0; at < masks[i].size(); ++at)
          same += masks[i][at] == masks[j][at];
        expectShare(double(same), agreement,
                    "agreement of masks " + std::to_string(j) + " and " + std::to_string(i));
      }
    }
  }
}

} // namespace dropoutMaskTest
