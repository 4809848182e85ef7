//===- ZeroSplitTest.cpp - Tests of what ZeRO splits where ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Memory and traffic of models whose sizes few numbers of devices divide, against the formulas of
// Rajbhandari et al. 2020, section 5.
//
// DTC_RANDOM_SEED=n runs the one model of that seed; DTC_RANDOM_CASES=n sets their number.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/ZeroSplit.h"

#include "compiler/analysis/ReshardSteps.h"
#include "test/lib/RandomCases.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>
#include <random>

namespace zeroSplitTest {

using namespace dtc;
using namespace dtc::test;

namespace {

LinkedMesh meshOf(std::initializer_list<int64_t> sizes) {
  LinkedMesh mesh;
  for (int64_t size : sizes)
    mesh.axes.push_back({"a" + std::to_string(mesh.axes.size()), size});
  return mesh;
}

/// Where ZeRO over the first axis puts a tensor that nothing else splits; "whole" where it leaves
/// it.
std::string split(const LinkedMesh &mesh, const std::vector<int64_t> &shape,
                  const AxisList &axes = {0}, llvm::SmallVector<bool> splittable = {}) {
  splittable.resize(shape.size(), true);
  auto after =
      splitForZero(mesh, shape, Layout::replicated(int64_t(shape.size())), axes, splittable);
  return after ? after->str(mesh) : "whole";
}

/// The parts of a Transformer's stage, by GPT-2's shapes; the weight of each is how many there are.
std::vector<ZeroTensor> transformer(int64_t width, int64_t layers, int64_t vocab, unsigned tp) {
  auto tensor = [](llvm::SmallVector<int64_t> shape, llvm::SmallVector<AxisList, 4> dims,
                   int64_t count) {
    Layout layout;
    layout.dims = std::move(dims);
    return ZeroTensor{std::move(shape), layout, double(count)};
  };
  AxisList t = {tp}, no = {};
  return {tensor({vocab, width}, {t, no}, 1),
          tensor({2048, width}, {no, no}, 1),
          tensor({width}, {no}, 6 * layers + 2),
          tensor({width, 3 * width}, {no, t}, layers),
          tensor({3 * width}, {t}, layers),
          tensor({width, width}, {t, no}, layers),
          tensor({width, 4 * width}, {no, t}, layers),
          tensor({4 * width}, {t}, layers),
          tensor({4 * width, width}, {t, no}, layers)};
}

int64_t largestPrimeFactor(int64_t n) {
  int64_t largest = 1;
  for (int64_t factor = 2; n > 1; ++factor)
    for (; n % factor == 0; n /= factor)
      largest = factor;
  return largest;
}

/// A stage of a model on one of its devices.
struct Case {
  int64_t width, layers, dp, tp, pp;
  int stage;
  std::string str() const {
    return "width " + std::to_string(width) + ", " + std::to_string(layers) +
           " layers, dp=" + std::to_string(dp) + ",tp=" + std::to_string(tp) +
           ",pp=" + std::to_string(pp) + " zero=" + std::to_string(stage);
  }
};

Case randomCase(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto upTo = [&](int64_t limit) { return 1 + int64_t(random() % uint64_t(limit)); };
  Case c;
  c.width = 64 * (3 + upTo(317));
  c.dp = 1 + upTo(2047);
  c.tp = 1 << (upTo(4) - 1);
  c.pp = 1 << (upTo(4) - 1);
  c.stage = int(upTo(3));
  c.layers = upTo(12); // of a stage of the pipeline
  return c;
}

/// Bytes of what ZeRO splits, and bytes that a device sends for it in a step, with what an even
/// part would be.
struct Cost {
  double held = 0, even = 0, sent = 0, formula = 0;
};

/// In mixed precision: 12 bytes of states, 4 of a gradient, 2 of a parameter.
Cost costOf(const Case &c) {
  LinkedMesh mesh = meshOf({c.dp, c.tp});
  AxisList axes = {0};
  std::vector<ZeroTensor> tensors = transformer(c.width, c.layers, 51200, /*tp=*/1);
  if (auto cut = findZeroCut(mesh, tensors, axes))
    applyZeroCut(*cut, mesh, axes);
  int64_t bytes = c.stage == 1 ? 12 : c.stage == 2 ? 16 : 18;
  Cost cost;
  for (const ZeroTensor &tensor : tensors) {
    auto after = splitForZero(mesh, tensor.shape, tensor.layout, axes,
                              llvm::SmallVector<bool>(tensor.shape.size(), true));
    Layout to = after.value_or(tensor.layout), partial = tensor.layout;
    partial.partial = axes;
    llvm::sort(partial.partial);
    double count = tensor.weight, whole = double(localElements(mesh, tensor.shape, tensor.layout));
    cost.held += count * double(bytes * localElements(mesh, tensor.shape, to));
    cost.even += count * double(bytes) * whole / double(c.dp);
    auto scatter = findReshardSteps(mesh, 4, tensor.shape, partial, to);
    auto gather = findReshardSteps(mesh, 2, tensor.shape, to, tensor.layout);
    double times = c.stage == 3 ? 2 : 1; // before the forward and before the backward pass
    cost.sent += count * (scatter->bytes + times * gather->bytes);
    cost.formula += count * whole * (4 + 2 * times) * double(c.dp - 1) / double(c.dp);
  }
  return cost;
}

} // namespace

TEST(ZeroSplit, TakesTheFirstDimensionThatDivides) {
  LinkedMesh mesh = meshOf({4});
  EXPECT_EQ(split(mesh, {8, 12}), R"([{"a0"}, {}])");
  EXPECT_EQ(split(mesh, {7, 12}), R"([{}, {"a0"}])");
  // Of those, one that the gradient's op can split; another one that divides is better than
  // padding.
  EXPECT_EQ(split(mesh, {8, 12}, {0}, {false, true}), R"([{}, {"a0"}])");
  EXPECT_EQ(split(mesh, {7, 12}, {0}, {true, false}), R"([{}, {"a0"}])");
}

TEST(ZeroSplit, PadsWhereNothingDivides) {
  LinkedMesh mesh = meshOf({4});
  EXPECT_EQ(split(mesh, {5, 13}), R"([{}, {"a0"}])");
  // 20,480 elements are 1,078 shards of 19; the other 42 devices have nothing.
  EXPECT_EQ(split(meshOf({1120}), {20480}), R"([{"a0"}])");
  // Only one element is not to be split.
  EXPECT_EQ(split(mesh, {1, 1}), "whole");
  EXPECT_EQ(split(mesh, {}), "whole");
  EXPECT_EQ(split(mesh, {1, 2}), R"([{}, {"a0"}])");
}

TEST(ZeroSplit, SplitsTwoDimensionsWhereThatSaves) {
  LinkedMesh mesh = meshOf({7, 160});
  EXPECT_EQ(split(mesh, {20480, 20480}, {0, 1}), R"([{"a0"}, {"a1"}])");
  EXPECT_EQ(split(mesh, {1120, 20480}, {0, 1}), R"([{"a0", "a1"}, {}])");
  // The second dimension saves less than 1 %: 20,480 * 4 over 1,120 pads 0.2 %.
  EXPECT_EQ(split(mesh, {3, 81760}, {0, 1}), R"([{}, {"a0", "a1"}])");
}

TEST(ZeroSplit, CutsAnAxisOnlyWhereThatSaves) {
  LinkedMesh mesh = meshOf({1120, 8});
  AxisList axes = {0};
  auto cut = findZeroCut(mesh, transformer(20480, 2, 51200, 1), axes);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->axis, 0u);
  EXPECT_EQ(cut->first, 7);
  applyZeroCut(*cut, mesh, axes);
  EXPECT_EQ(axes, (AxisList{0, 2}));
  EXPECT_EQ(mesh.product(axes), 1120);
  for (int64_t even : {2, 64, 512})
    EXPECT_FALSE(findZeroCut(meshOf({even, 8}), transformer(20480, 2, 51200, 1), {0}));
  // A prime number has no parts.
  EXPECT_FALSE(findZeroCut(meshOf({1009, 8}), transformer(5120, 2, 51200, 1), {0}));
}

// An axis that splits a tensor already does so in both parts.
TEST(ZeroSplit, CutsAnAxisThatSplitsOtherTensors) {
  Layout byBoth = Layout::replicated(2);
  byBoth.dims[0] = {0};
  LinkedMesh mesh = meshOf({14});
  std::vector<ZeroTensor> tensors = {{{28, 4}, byBoth, 1}, {{4, 7}, Layout::replicated(2), 1}};
  auto cut = findZeroCut(mesh, tensors, {0});
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->first, 2);
}

// A prime factor p pads a dimension of d elements by at most p / d. So memory is within 2 % of the
// formula, and a bucket, of every model here, and traffic where p is at most a fiftieth of the
// smallest dimension.
TEST(ZeroSplit, IsEvenForAllSizes) {
  int all = 0, memory = 0, traffic = 0;
  double worst = 0;
  std::string worstCase;
  forEachRandomCase(200, [&](uint64_t seed, bool alone) {
    Case c = randomCase(seed);
    SCOPED_TRACE(c.str());
    Cost cost = costOf(c);
    EXPECT_LE(cost.held, 1.02 * cost.even + 25 * 1024 * 1024);
    if (largestPrimeFactor(c.dp) <= c.width / c.tp / 50) {
      EXPECT_LE(cost.held, 1.02 * cost.even);
      EXPECT_LE(cost.sent, 1.02 * cost.formula);
    }
    ++all;
    memory += cost.held <= 1.02 * cost.even;
    traffic += cost.sent <= 1.02 * cost.formula;
    if (cost.held / cost.even > worst) {
      worst = cost.held / cost.even;
      worstCase = c.str();
    }
    if (alone)
      std::printf("%s: holds %.0f bytes, formula %.0f; sends %.0f, formula %.0f\n", c.str().c_str(),
                  cost.held, cost.even, cost.sent, cost.formula);
  });
  std::printf("of %d models, %d hold and %d send within 2 %% of the formulas; the worst holds %.3f "
              "times its even part: %s\n",
              all, memory, traffic, worst, worstCase.c_str());
}

} // namespace zeroSplitTest
