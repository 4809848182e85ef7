//===- DeviceTransfersTest.cpp - Places of the tensors of messages --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/executor/Session.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace deviceTransfersTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

TEST(DeviceTransfers, FindTensorsOfDifferentNumbersOfSlots) {
  // In 7 microbatches, a message of all tensors, which have 2, 3 and no slots.
  constexpr int64_t microbatches = 7;
  const std::vector<uint32_t> slots = {2, 3, 0};
  PlanBuilder builder;
  builder.pipelineAxis("pp", 2);
  builder.axis("micro", microbatches, /*temporal=*/true);
  std::vector<uint32_t> sent, received, sums;
  uint32_t x = builder.input("x", DType::F32, {microbatches}, {{}}).buffer();
  for (uint32_t count : slots)
    sent.push_back(builder.slotted(DType::F32, {1}, count));
  builder.transfer(plan::Transfer::SEND, 1, 0, sent);
  builder.task("send");
  for (uint32_t buffer : sent) {
    plan::KernelCall &slice = builder.kernel("shard_slice", {x}, {buffer});
    (*slice.mutable_attributes())["dim"] = intAttribute(0);
    (*slice.mutable_attributes())["axes"] = stringsAttribute({"micro"});
  }
  builder.startTransfer(0);
  builder.finishTransfer(0);
  builder.inProgram(1);
  // The other way round.
  for (size_t i = 0; i < slots.size(); ++i)
    received.push_back(builder.slotted(DType::F32, {1}, slots[slots.size() - 1 - i]));
  builder.transfer(plan::Transfer::RECEIVE, 0, 0, received);
  builder.task("receive");
  builder.startTransfer(0);
  builder.finishTransfer(0);
  for (size_t i = 0; i < slots.size(); ++i) {
    sums.push_back(builder.buffer(DType::F32, {1}, plan::Buffer::OUTPUT));
    (*builder.kernel("accumulate", {received[i]}, {sums[i]}).mutable_attributes())["axis"] =
        stringAttribute("micro");
    builder.output("sum" + std::to_string(i), DType::F32, {1}, {{}}, sums[i]);
  }
  for (int program : {0, 1}) {
    builder.inProgram(program);
    for (uint32_t microbatch = 0; microbatch < microbatches; ++microbatch)
      builder.schedule(0, microbatch);
  }
  auto session = take(Session::create(builder.build(), createCpuBackend()));
  HostTensor values(TensorType{DType::F32, {microbatches}});
  for (int64_t i = 0; i < microbatches; ++i)
    values.as<float>()[i] = static_cast<float>(1 << i);
  ASSERT_OK(session->setInput("x", values));
  for (int step = 0; step < 2; ++step) {
    ASSERT_OK(session->step());
    for (size_t i = 0; i < slots.size(); ++i)
      EXPECT_EQ(*take(session->getOutput("sum" + std::to_string(i))).as<float>(), 127);
  }
}

/// The most memory that the process has had so far.
static int64_t peakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{1024} * usage.ru_maxrss;
}

TEST(DeviceTransfers, DoNotTakeMemoryForMicrobatchesThatTheScheduleDoesNotName) {
  // The places of all tensors for each of the microbatches would take 2 GiB.
  constexpr int64_t microbatches = 1 << 20;
  constexpr size_t tensors = 64;
  for (uint32_t slots : {0, 1}) {
    PlanBuilder builder;
    builder.pipelineAxis("pp", 2);
    builder.axis("micro", microbatches, /*temporal=*/true);
    for (uint32_t program : {0, 1}) {
      builder.inProgram(static_cast<int>(program));
      bool sends = program == 0;
      std::vector<uint32_t> buffers;
      builder.task("t");
      for (size_t i = 0; i < tensors; ++i) {
        buffers.push_back(builder.slotted(DType::F32, {1}, slots));
        if (sends)
          builder.kernel("fill", {}, {buffers.back()});
      }
      builder.transfer(sends ? plan::Transfer::SEND : plan::Transfer::RECEIVE, 1 - program, 0,
                       buffers);
      builder.startTransfer(0);
      builder.finishTransfer(0);
      builder.schedule(0, microbatches - 1);
    }
    int64_t before = peakBytes();
    auto session = take(Session::create(builder.build(), createCpuBackend()));
    EXPECT_OK(session->step());
    EXPECT_LT(peakBytes() - before, int64_t{256} << 20);
  }
}

} // namespace deviceTransfersTest
