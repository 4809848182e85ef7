//===- TaskKernelsTest.cpp - The kernels of a task as a device runs them --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/TaskKernels.h"

#include "test/lib/plans/PlanBuilder.h"
#include "test/simulator/cluster/ParsedCluster.h"

#include <gtest/gtest.h>

namespace taskKernelsTest {

using namespace dtc;
using namespace dtc::runtime::testing;

namespace {

/// A task of values of 10 elements (40 bytes), on a device that reads or writes a byte a second and
/// whose products take next to no time.
class TaskKernelsTest : public ::testing::Test {
protected:
  TaskKernelsTest() {
    builder.axis("dp", 2);
    builder.task("all");
    device.set_memory_bandwidth(1);
    cluster::MatrixRate &rate = *device.add_matrix();
    rate.set_dtype("f32");
    rate.set_flops(1e18);
  }

  uint32_t value(DType dtype = DType::F32) { return builder.buffer(dtype, {10}); }
  /// The result of a kernel.
  uint32_t call(const std::string &kernel, const std::vector<uint32_t> &inputs) {
    uint32_t result = value();
    builder.kernel(kernel, inputs, {result});
    return result;
  }
  uint32_t product(uint32_t lhs, uint32_t rhs) {
    uint32_t result = value();
    (*builder.kernel("einsum", {lhs, rhs}, {result}).mutable_attributes())["equation"] =
        stringAttribute("a,a->a");
    return result;
  }
  /// Makes a value one that later tasks read.
  void keep(uint32_t buffer) { builder.program().add_outputs()->set_buffer(buffer); }

  /// The seconds of each instruction: its bytes.
  std::vector<double> bytes(KernelFusion fusion = KernelFusion::Pointwise,
                            KernelSeconds *classes = nullptr) {
    std::vector<uint32_t> readers = countReaders(builder.program());
    const plan::Task &task = builder.program().tasks(0);
    TaskKernels kernels(builder.plan, builder.program(), task, readers, fusion);
    std::vector<double> result;
    KernelSeconds sums{};
    for (int i = 0; i < task.instructions_size(); ++i)
      result.push_back(kernels.seconds(i, device, sums));
    if (classes)
      *classes = sums;
    return result;
  }

  PlanBuilder builder;
  cluster::DeviceKind device;
};

using Bytes = std::vector<double>;

} // namespace

TEST_F(TaskKernelsTest, ADeviceThatDoesNotFuse) {
  uint32_t x = value(), y = call("gelu", {x});
  call("add", {y, x});
  device.set_launch_seconds(1000);
  KernelSeconds classes;
  EXPECT_EQ(bytes(KernelFusion::None, &classes), (Bytes{1080, 1120}));
  EXPECT_EQ(classes[static_cast<size_t>(KernelClass::Other)], 200);
  EXPECT_EQ(classes[static_cast<size_t>(KernelClass::Launch)], 2000);
}

TEST_F(TaskKernelsTest, AChainIsOneKernel) {
  uint32_t x = value(), y = value();
  keep(call("tanh", {call("mul", {call("gelu", {x}), y})}));
  device.set_launch_seconds(1000);
  // x and y are read, the last result written; one kernel is started.
  EXPECT_EQ(bytes(), (Bytes{1120, 0, 0}));
  EXPECT_EQ(bytes(KernelFusion::None), (Bytes{1080, 1120, 1080}));
}

TEST_F(TaskKernelsTest, WhatOthersReadIsWritten) {
  uint32_t x = value(), y = call("gelu", {x});
  keep(call("tanh", {y}));
  call("softmax", {y});
  // y is still written, but not read by tanh.
  EXPECT_EQ(bytes(), (Bytes{120, 0, 80}));
}

TEST_F(TaskKernelsTest, OneInstructionThatReadsAValueTwice) {
  uint32_t x = value(), y = call("gelu", {x});
  keep(call("mul", {y, y}));
  EXPECT_EQ(bytes(), (Bytes{80, 0}));
  // Not fused, it is in the cache when it is read again.
  EXPECT_EQ(bytes(KernelFusion::None), (Bytes{80, 80}));
}

TEST_F(TaskKernelsTest, ProductsTakeConversionsAndSums) {
  uint32_t a = value(), b = value();
  uint32_t sum = value();
  builder.kernel("accumulate", {product(a, b)}, {sum});
  // Two operands, and the sum is read and written.
  EXPECT_EQ(bytes(), (Bytes{160, 0}));
  EXPECT_EQ(bytes(KernelFusion::None), (Bytes{120, 120}));
}

TEST_F(TaskKernelsTest, ProductsTakeNothingElse) {
  uint32_t a = value(), b = value();
  keep(call("gelu", {call("convert", {product(a, b)})}));
  EXPECT_EQ(bytes(), (Bytes{120, 0, 80}));
}

TEST_F(TaskKernelsTest, OtherKernelsTakeNothing) {
  keep(call("gelu", {call("softmax", {value()})}));
  EXPECT_EQ(bytes(), (Bytes{80, 80}));
}

TEST_F(TaskKernelsTest, InPlace) {
  uint32_t x = value();
  builder.kernel("gelu", {x}, {x});
  builder.kernel("tanh", {x}, {x});
  keep(x);
  // Between the parts nothing is read or written.
  EXPECT_EQ(bytes(), (Bytes{80, 0}));
}

TEST_F(TaskKernelsTest, ChainsInPlaceAreWrittenOnce) {
  uint32_t x = value(), y = call("gelu", {x});
  builder.kernel("add", {y, x}, {y});
  builder.kernel("mul", {y, x}, {y});
  keep(y);
  // x is read by each part, and only the last y is written.
  EXPECT_EQ(bytes(), (Bytes{160, 0, 0}));
}

TEST_F(TaskKernelsTest, WhatIsReadBeforeItIsOverwrittenIsWritten) {
  uint32_t x = value(), y = call("gelu", {x});
  call("softmax", {y});
  builder.kernel("add", {y, x}, {y});
  keep(y);
  EXPECT_EQ(bytes(), (Bytes{160, 80, 0}));
}

TEST_F(TaskKernelsTest, ViewsAreTheirBuffer) {
  uint32_t y = call("gelu", {value()});
  uint32_t view = builder.view(y, DType::F32, {5, 2});
  uint32_t z = builder.buffer(DType::F32, {5, 2});
  builder.kernel("tanh", {view}, {z});
  keep(z);
  EXPECT_EQ(bytes(), (Bytes{80, 0}));
}

/// The CUDA backend has a kernel for the calls of a gate, and none for two additions.
TEST_F(TaskKernelsTest, CallsThatAreOneKernelOnAGpu) {
  uint32_t x = value(), gate = value();
  keep(call("add", {call("add", {call("mul", {call("silu", {x}), gate}), x}), x}));
  // x and the gate are read, the product written; each addition is a kernel. A compiler of kernels
  // has one for all, whose parts each read x.
  EXPECT_EQ(bytes(KernelFusion::Calls), (Bytes{120, 0, 120, 120}));
  EXPECT_EQ(bytes(), (Bytes{200, 0, 0, 0}));
}

TEST_F(TaskKernelsTest, AProductWithTheCallsAroundItIsTimedAsAProduct) {
  uint32_t a = builder.buffer(DType::F32, {4, 8}), b = builder.buffer(DType::F32, {8, 16});
  uint32_t bias = builder.buffer(DType::F32, {16});
  uint32_t c = builder.buffer(DType::F32, {4, 16}), sum = builder.buffer(DType::F32, {4, 16});
  (*builder.kernel("einsum", {a, b}, {c}).mutable_attributes())["equation"] =
      stringAttribute("ab,bc->ac");
  (*builder.kernel("add", {c, bias}, {sum}).mutable_attributes())["rhs_dims"] = intsAttribute({1});
  keep(sum);
  KernelSeconds classes;
  EXPECT_EQ(bytes(KernelFusion::Calls, &classes), (Bytes{4 * (32 + 128 + 16 + 64), 0}));
  EXPECT_EQ(classes[static_cast<size_t>(KernelClass::Product)], 960);
  EXPECT_EQ(bytes(KernelFusion::None), (Bytes{4 * (32 + 128 + 64), 4 * (64 + 16 + 64)}));
}

/// The task keeps both the product and its GELU.
TEST_F(TaskKernelsTest, AGeluTakesTimeAfterItsProduct) {
  uint32_t a = builder.buffer(DType::F32, {4, 8}), b = builder.buffer(DType::F32, {8, 16});
  uint32_t c = builder.buffer(DType::F32, {4, 16}), gelu = builder.buffer(DType::F32, {4, 16});
  (*builder.kernel("einsum", {a, b}, {c}).mutable_attributes())["equation"] =
      stringAttribute("ab,bc->ac");
  (*builder.kernel("gelu", {c}, {gelu}).mutable_attributes())["approximate"] =
      stringAttribute("tanh");
  keep(c);
  keep(gelu);
  double moved = 4 * (32 + 128 + 64 + 64);
  EXPECT_EQ(bytes(KernelFusion::Calls), (Bytes{moved, 0}));
  device.set_gelu_epilogue_seconds(10);
  KernelSeconds classes;
  EXPECT_EQ(bytes(KernelFusion::Calls, &classes), (Bytes{moved + 640, 0}));
  EXPECT_EQ(classes[static_cast<size_t>(KernelClass::Product)], moved + 640);
  // A GELU that is a kernel of its own has no epilogue.
  EXPECT_EQ(bytes(KernelFusion::None), (Bytes{4 * (32 + 128 + 64), 4 * (64 + 64)}));
}

/// The gradient of a weight and that of a bias, which both read the gradient of the result.
TEST_F(TaskKernelsTest, TheGradientOfABiasIsAKernelWhereTheDeviceSaysSo) {
  uint32_t x = builder.buffer(DType::F32, {4, 8}), dy = builder.buffer(DType::F32, {4, 16});
  uint32_t dw = builder.buffer(DType::F32, {8, 16}), db = builder.buffer(DType::F32, {16});
  (*builder.kernel("einsum", {x, dy}, {dw}).mutable_attributes())["equation"] =
      stringAttribute("ab,ac->bc");
  plan::KernelCall &sum = builder.kernel("reduce", {dy}, {db});
  (*sum.mutable_attributes())["kind"] = stringAttribute("sum");
  (*sum.mutable_attributes())["dims"] = intsAttribute({0});
  keep(dw);
  keep(db);
  double moved = 4 * (32 + 64 + 128 + 16);
  EXPECT_EQ(bytes(KernelFusion::Calls), (Bytes{moved, 0}));
  device.set_launch_seconds(1000);
  device.set_bias_grad_kernels(true);
  KernelSeconds classes;
  EXPECT_EQ(bytes(KernelFusion::Calls, &classes), (Bytes{moved + 4 * 64 + 2000, 0}));
  EXPECT_EQ(classes[static_cast<size_t>(KernelClass::Product)], moved);
  EXPECT_EQ(classes[static_cast<size_t>(KernelClass::Other)], 4 * 64);
  EXPECT_EQ(classes[static_cast<size_t>(KernelClass::Launch)], 2000);
  // At the rate of sums, where it was measured.
  cluster::KernelRate &rate = *device.add_kernels();
  rate.set_kernel("reduce");
  cluster::TimePoint &point = *rate.add_points();
  point.set_bytes(1);
  point.set_seconds(3);
  EXPECT_EQ(bytes(KernelFusion::Calls), (Bytes{moved + 3 * 4 * 64 + 2000, 0}));
}

/// The loss reads the logits, and its gradient reads and writes them: the latter is what takes the
/// time.
TEST_F(TaskKernelsTest, ALossWithItsGradientIsTimedAsTheGradient) {
  uint32_t logits = builder.buffer(DType::F32, {4, 8}), ids = builder.buffer(DType::I32, {4});
  uint32_t loss = builder.buffer(DType::F32, {4}), lse = builder.buffer(DType::F32, {4});
  uint32_t seed = builder.buffer(DType::F32, {4}), grad = builder.buffer(DType::F32, {4, 8});
  auto smoothing = [](plan::KernelCall &call) {
    (*call.mutable_attributes())["label_smoothing"].set_f(0);
  };
  smoothing(builder.kernel("cross_entropy", {logits, ids}, {loss, lse}));
  smoothing(builder.kernel("cross_entropy_grad", {logits, ids, lse, seed}, {grad}));
  keep(loss);
  keep(grad);
  for (auto [kernel, seconds] : {std::pair("cross_entropy", 1e6), {"cross_entropy_grad", 7.}}) {
    cluster::KernelRate &rate = *device.add_kernels();
    rate.set_kernel(kernel);
    cluster::TimePoint &point = *rate.add_points();
    point.set_bytes(1e9);
    point.set_seconds(seconds);
  }
  EXPECT_EQ(bytes(KernelFusion::Calls), (Bytes{7, 0}));
}

TEST_F(TaskKernelsTest, NeighboursOfAKindShareALaunch) {
  auto convert = [&](DType to) {
    uint32_t narrow = value(to);
    builder.kernel("convert", {value()}, {narrow});
    return narrow;
  };
  convert(DType::BF16);
  convert(DType::F16);
  uint32_t narrow = convert(DType::BF16);
  call("softmax", {value()});
  convert(DType::BF16);
  keep(narrow);
  device.set_launch_seconds(1000);
  // Not with a kernel of another type, nor past one that shares no launch.
  EXPECT_EQ(bytes(KernelFusion::Calls), (Bytes{1060, 1060, 60, 1080, 1060}));
  EXPECT_EQ(bytes(), (Bytes{1060, 1060, 1060, 1080, 1060}));
}

/// The operands of a call must be there when the kernel begins that the call would be a part of.
TEST_F(TaskKernelsTest, NothingIsFusedAcrossWhatItWaitsFor) {
  uint32_t x = value(), y = call("gelu", {x}), z = value(), sum = value();
  builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, z, sum);
  keep(call("add", {y, sum}));
  EXPECT_EQ(bytes(), (Bytes{80, 0, 120}));
}

TEST_F(TaskKernelsTest, NothingIsFusedAcrossWhatDependsOnIt) {
  uint32_t y = call("gelu", {value()}), n = call("softmax", {y}), u = call("tanh", {y});
  keep(call("add", {u, n}));
  // add needs the softmax, which needs the kernel that tanh is a part of.
  EXPECT_EQ(bytes(), (Bytes{120, 80, 0, 120}));
}

TEST_F(TaskKernelsTest, WhatComesFromOtherDevicesIsInMemory) {
  uint32_t y = call("gelu", {value()});
  builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, y, y);
  keep(call("tanh", {y}));
  EXPECT_EQ(bytes(), (Bytes{80, 0, 80}));
}

TEST_F(TaskKernelsTest, PartsOfWhatTheyRead) {
  uint32_t table = builder.buffer(DType::F32, {1000, 10}), rows = builder.buffer(DType::I32, {3});
  uint32_t result = builder.buffer(DType::F32, {3, 10});
  builder.kernel("embedding", {table, rows}, {result});
  // Three rows, read and written, and their numbers.
  EXPECT_EQ(bytes(), (Bytes{252}));
}

TEST_F(TaskKernelsTest, ACacheIsWrittenWhereItIsNew) {
  uint32_t cache = builder.buffer(DType::F32, {1, 1000, 10}), at = builder.buffer(DType::I32, {1});
  uint32_t rows = builder.buffer(DType::F32, {1, 2, 10});
  builder.kernel("cache_update", {cache, rows, at}, {cache});
  // Two rows, read and written, and where to.
  EXPECT_EQ(bytes(), (Bytes{164}));
}

TEST_F(TaskKernelsTest, ProductsTakeTheLongerOfFlopsAndBytes) {
  uint32_t a = builder.buffer(DType::F32, {2, 3}), b = builder.buffer(DType::F32, {3, 5});
  uint32_t c = builder.buffer(DType::F32, {2, 5});
  (*builder.kernel("einsum", {a, b}, {c}).mutable_attributes())["equation"] =
      stringAttribute("ab,bc->ac");
  EXPECT_EQ(bytes(), (Bytes{4 * (6 + 15 + 10)}));
  device.mutable_matrix(0)->set_flops(0.1);
  KernelSeconds classes;
  EXPECT_NEAR(bytes(KernelFusion::Pointwise, &classes)[0], 600, 1e-9);
  EXPECT_NEAR(classes[static_cast<size_t>(KernelClass::Product)], 600, 1e-9);
}

TEST(KernelClass, ByName) {
  EXPECT_EQ(classOf("einsum"), KernelClass::Product);
  EXPECT_EQ(classOf("attention_grad"), KernelClass::Attention);
  EXPECT_EQ(classOf("cached_attention"), KernelClass::Attention);
  EXPECT_EQ(classOf("adamw"), KernelClass::Optimizer);
  EXPECT_EQ(classOf("softmax"), KernelClass::Other);
}

} // namespace taskKernelsTest
