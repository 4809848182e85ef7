//===- GradientKernelsTest.cpp - Tests of Megatron-LM's gradient kernels --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/GradientKernels.h"

#include "plan/PlanTypes.h"
#include "simulator/TaskKernels.h"
#include "test/lib/plans/PlanBuilder.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// The update of two parameters of 100 and 30 elements: a collective over their gradients, and for
/// each the optimizer and the rounding of its result.
class GradientKernelsTest : public ::testing::Test {
protected:
  void build(DType dtype) {
    builder.axis("tp", 2);
    builder.task("update");
    uint32_t rate = builder.buffer(DType::F32, {}), apply = builder.buffer(DType::Bool, {});
    std::vector<uint32_t> gradients;
    for (const Shape &shape : {Shape{10, 10}, Shape{30}})
      gradients.push_back(builder.buffer(DType::F32, shape, plan::Buffer::GRADIENT));
    builder.collective(plan::Collective::ALL_REDUCE, {"tp"}, gradients[1], gradients[1]);
    uint32_t first = builder.async();
    builder.wait(first);
    for (uint32_t gradient : gradients) {
      TensorType type = typeOf(builder.program().buffers(static_cast<int>(gradient)));
      uint32_t p = builder.buffer(DType::F32, type.shape, plan::Buffer::MASTER_WEIGHT);
      uint32_t m = builder.buffer(DType::F32, type.shape),
               v = builder.buffer(DType::F32, type.shape);
      builder.kernel("adamw", {p, gradient, m, v, rate, rate, rate, apply}, {p, m, v});
      builder.kernel("convert", {p}, {builder.buffer(dtype, type.shape, plan::Buffer::PARAMETER)});
    }
    // After these kernels, so that its number grows by theirs.
    builder.collective(plan::Collective::ALL_REDUCE, {"tp"}, gradients[0], gradients[0]);
    builder.wait(builder.async());
  }

  const plan::Task &task() { return builder.program().tasks(0); }

  /// The names of the kernels, in order; "" for what is none.
  std::vector<std::string> kernels() {
    std::vector<std::string> names;
    for (const plan::Instruction &instruction : task().instructions())
      names.push_back(instruction.kernel().kernel());
    return names;
  }

  /// The time of each instruction on a device that fuses as much as possible and moves a byte a
  /// second.
  std::vector<double> bytes() {
    cluster::DeviceKind device;
    device.set_memory_bandwidth(1);
    std::vector<uint32_t> readers = countReaders(builder.program());
    TaskKernels kernels(builder.plan, builder.program(), task(), readers, KernelFusion::Pointwise);
    KernelSeconds classes{};
    std::vector<double> result;
    for (int i = 0; i < task().instructions_size(); ++i)
      result.push_back(kernels.seconds(i, device, classes));
    return result;
  }

  double sum() {
    std::vector<double> each = bytes();
    return std::accumulate(each.begin(), each.end(), 0.0);
  }

  PlanBuilder builder;
};

} // namespace

TEST_F(GradientKernelsTest, OfBf16) {
  build(DType::BF16);
  double before = sum();
  // 28 bytes of the optimizer, 6 of rounding; three scalars and a bool for each parameter.
  EXPECT_EQ(before, 130 * (28 + 6) + 2 * (4 + 1));
  benchmarks::addGradientKernels(builder.plan);
  EXPECT_EQ(kernels(), (std::vector<std::string>{"", "", "fill", "mul", "mul", "adamw", "convert",
                                                 "adamw", "convert", "", ""}));
  std::vector<double> each = bytes();
  EXPECT_EQ(each[2], 130 * 4);
  EXPECT_EQ(each[3], 130 * 8 + 4);
  EXPECT_EQ(each[4], 130 * 8 + 4);
  EXPECT_EQ(sum() - before, 130 * 20 + 2 * 4);
}

TEST_F(GradientKernelsTest, OfF32AsOfBf16) {
  build(DType::F32);
  double before = sum();
  benchmarks::addGradientKernels(builder.plan);
  EXPECT_EQ(sum() - before, 130 * 20 + 2 * 4);
}

TEST_F(GradientKernelsTest, OfF16) {
  build(DType::F16);
  double before = sum();
  benchmarks::addGradientKernels(builder.plan);
  std::vector<double> each = bytes();
  EXPECT_EQ(kernels(), (std::vector<std::string>{"", "", "fill", "mul", "convert", "mul", "mul",
                                                 "adamw", "convert", "adamw", "convert", "", ""}));
  EXPECT_EQ(std::vector<double>(each.begin() + 2, each.begin() + 7),
            (std::vector<double>{130 * 2, 130 * 4 + 2, 130 * 6, 130 * 8 + 4, 130 * 8 + 4}));
  EXPECT_EQ(sum() - before, 130 * 28 + 2 + 2 * 4);
}

TEST_F(GradientKernelsTest, WaitsAreForTheSameCollectives) {
  build(DType::BF16);
  benchmarks::addGradientKernels(builder.plan);
  EXPECT_EQ(task().instructions(1).wait().instruction(), 0u);
  EXPECT_TRUE(task().instructions(9).has_collective());
  EXPECT_EQ(task().instructions(10).wait().instruction(), 9u);
}

TEST_F(GradientKernelsTest, TasksWithoutAnOptimizerStay) {
  builder.task("forward", plan::Task::FORWARD);
  uint32_t x = builder.buffer(DType::F32, {4});
  builder.kernel("gelu", {x}, {x});
  std::string before = builder.plan.SerializeAsString();
  benchmarks::addGradientKernels(builder.plan);
  EXPECT_EQ(builder.plan.SerializeAsString(), before);
}
