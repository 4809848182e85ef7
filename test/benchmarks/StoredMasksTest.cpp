//===- StoredMasksTest.cpp - Tests of the traffic of stored masks ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/StoredMasks.h"

#include "simulator/TaskKernels.h"
#include "test/lib/plans/PlanBuilder.h"

#include <gtest/gtest.h>

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

/// The bytes that a device moves for the first instruction of the first task.
static double bytesOfFirst(const PlanBuilder &builder, const plan::Program &program) {
  cluster::DeviceKind device;
  device.set_memory_bandwidth(1);
  std::vector<uint32_t> readers = countReaders(program);
  TaskKernels kernels(builder.plan, program, program.tasks(0), readers, KernelFusion::Pointwise);
  KernelSeconds classes{};
  return kernels.seconds(0, device, classes);
}

TEST(StoredMasksTest, AMaskIsAByteAnElement) {
  for (plan::Task::Kind kind : {plan::Task::FORWARD, plan::Task::BACKWARD, plan::Task::OTHER}) {
    PlanBuilder builder;
    builder.task("task", kind);
    uint32_t x = builder.buffer(DType::BF16, {10, 3}), y = builder.buffer(DType::BF16, {10, 3});
    builder.kernel("dropout", {x}, {y});
    builder.kernel("gelu", {y}, {x});
    double before = bytesOfFirst(builder, builder.program());
    benchmarks::addMaskTraffic(builder.plan);
    EXPECT_EQ(bytesOfFirst(builder, builder.program()) - before,
              kind == plan::Task::OTHER ? 0 : 30);
  }
}

TEST(StoredMasksTest, MasksOfLayersAlone) {
  PlanBuilder builder;
  auto wte = static_cast<uint32_t>(builder.plan.locations_size()), attn = wte + 1;
  builder.plan.add_locations("wte");
  builder.plan.add_locations("h.0.attn");
  uint32_t x = builder.buffer(DType::BF16, {10, 3});
  auto dropout = [&](int64_t number, uint32_t location) {
    (*builder.kernel("dropout", {x}, {x}).mutable_attributes())["op"].set_i(number);
    plan::Task &task = *builder.program().mutable_tasks()->rbegin();
    task.mutable_instructions()->rbegin()->set_location(location);
  };
  for (plan::Task::Kind kind : {plan::Task::FORWARD, plan::Task::BACKWARD}) {
    builder.schedule(builder.task("task", kind));
    dropout(0, wte);
    dropout(1, attn);
  }
  EXPECT_EQ(benchmarks::storedMaskBytes(builder.plan, builder.program(), ""), 60);
  EXPECT_EQ(benchmarks::storedMaskBytes(builder.plan, builder.program(), "h."), 30);
  EXPECT_EQ(benchmarks::storedMaskBytes(builder.plan, builder.program(), "x."), 0);
}
