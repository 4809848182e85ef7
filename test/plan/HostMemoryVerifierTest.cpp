//===- HostMemoryVerifierTest.cpp - Plans that use the host's memory ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanVerifier.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"

#include <gtest/gtest.h>
#include <string>
#include <utility>

namespace hostMemoryVerifierTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

/// A parameter p, whose gradient g goes to the host, where the moment m is; the host adds both to
/// the parameter's copy, which comes back.
struct HostPlan : PlanBuilder {
  HostPlan() {
    axis("a", 2);
    p = state("p", DType::F32, {16}, {{}}).buffer();
    m = state("m", DType::F32, {16}, {{}}).buffer();
    g = buffer(DType::F32, {16});
    hostG = buffer(DType::F32, {16});
    hostP = buffer(DType::F32, {16});
    sum = buffer(DType::F32, {16});
    back = buffer(DType::F32, {16});
    // The device's buffers, then the host's: the offsets of both memories count from 0.
    uint64_t offset = 0;
    for (uint32_t each : {m, hostG, hostP, sum})
      moveToHost(each, std::exchange(offset, offset + 64));
    program().set_host_arena_bytes(offset);
    task("t");
    kernel("copy", {p}, {g});
    gradient = start("copy", {g}, {hostG});
    parameter = start("copy", {p}, {hostP});
    update = start("add", {hostP, hostG}, {sum}, {parameter});
    result = start("copy", {sum}, {back}, {update});
    schedule(0);
  }

  void moveToHost(uint32_t buffer, uint64_t offset) {
    plan::Buffer &moved = *program().mutable_buffers(static_cast<int>(buffer));
    moved.set_memory(plan::Buffer::HOST);
    moved.set_offset(offset);
  }
  plan::Instruction &instruction(uint32_t number) {
    return *program().mutable_tasks(0)->mutable_instructions(static_cast<int>(number));
  }
  /// An async call that comes after others; its number.
  uint32_t start(const std::string &name, const std::vector<uint32_t> &inputs,
                 const std::vector<uint32_t> &outputs, const std::vector<uint32_t> &after = {}) {
    kernel(name, inputs, outputs).set_async(true);
    auto number = static_cast<uint32_t>(program().tasks(0).instructions_size() - 1);
    for (uint32_t before : after)
      instruction(number).add_after(before);
    return number;
  }
  void waitForAll() {
    for (uint32_t each : {gradient, parameter, update, result})
      wait(each);
  }
  std::string error() { return messageOf(findPlanError(*build())); }

  uint32_t p, m, g, hostG, hostP, sum, back;
  uint32_t gradient, parameter, update, result;
};

} // namespace

TEST(HostMemoryVerifier, AcceptsLanesThatComeAfterEachOther) {
  HostPlan plan;
  // The device goes on meanwhile, with what nobody else touches.
  plan.kernel("copy", {plan.p}, {plan.buffer(DType::F32, {16})});
  plan.waitForAll();
  plan.kernel("copy", {plan.back}, {plan.buffer(DType::F32, {16})});
  EXPECT_EQ(plan.error(), "");
}

TEST(HostMemoryVerifier, ALaneIsThroughWithAllBeforeItsLastInstruction) {
  // The copy of the gradient, which the update reads too, comes before that of the parameter.
  HostPlan plan;
  plan.instruction(plan.update).set_after(0, plan.gradient);
  plan.waitForAll();
  EXPECT_TRUE(contains(plan.error(), "which shares bytes of the arena with buffer"))
      << plan.error();
  EXPECT_TRUE(contains(plan.error(), "instruction 2 (kernel copy) writes until the wait for it"))
      << plan.error();
}

TEST(HostMemoryVerifier, AMissingOrderBetweenLanesIsRefused) {
  HostPlan unordered;
  unordered.instruction(unordered.update).clear_after();
  unordered.waitForAll();
  EXPECT_TRUE(contains(unordered.error(), "instruction 3 (kernel add): reads buffer"));
  HostPlan back;
  back.instruction(back.result).clear_after();
  back.waitForAll();
  EXPECT_TRUE(contains(back.error(), "instruction 4 (kernel copy): reads buffer"));
  // The update is done after the copy that it comes after: what comes after the update knows it.
  HostPlan transitive;
  transitive.start("copy", {transitive.p}, {transitive.hostP}, {});
  transitive.waitForAll();
  transitive.wait(5);
  EXPECT_TRUE(contains(transitive.error(), "writes buffer")) << transitive.error();
}

TEST(HostMemoryVerifier, TheDeviceWaitsForWhatItUses) {
  HostPlan reads;
  reads.kernel("copy", {reads.back}, {reads.buffer(DType::F32, {16})});
  reads.waitForAll();
  EXPECT_TRUE(contains(reads.error(), "instruction 5 (kernel copy): reads buffer"));
  HostPlan overwrites;
  overwrites.kernel("fill", {}, {overwrites.g});
  overwrites.waitForAll();
  EXPECT_TRUE(contains(overwrites.error(), "instruction 1 (kernel copy) reads until the wait"));
  HostPlan unfinished;
  unfinished.wait(unfinished.gradient);
  EXPECT_TRUE(contains(unfinished.error(), "instruction 2 (kernel copy): is async, but the task "
                                           "does not wait for it"));
}

TEST(HostMemoryVerifier, AnInstructionComesAfterEarlierAsyncOnes) {
  auto errorOf = [](uint32_t after) {
    HostPlan plan;
    plan.instruction(plan.update).add_after(after);
    plan.waitForAll();
    return plan.error();
  };
  EXPECT_TRUE(contains(errorOf(0), "comes after instruction 0 (kernel copy); expected an async"));
  EXPECT_TRUE(contains(errorOf(3), "comes after instruction 3; expected one before it"));
  HostPlan synchronous;
  synchronous.waitForAll();
  synchronous.kernel("copy", {synchronous.p}, {synchronous.buffer(DType::F32, {16})});
  synchronous.instruction(9).add_after(1);
  EXPECT_TRUE(contains(synchronous.error(), "comes after other instructions and is not async"));
}

TEST(HostMemoryVerifier, OnlyCopiesGoFromOneMemoryToTheOther) {
  HostPlan mixed;
  mixed.waitForAll();
  mixed.kernel("add", {mixed.p, mixed.hostG}, {mixed.buffer(DType::F32, {16})});
  EXPECT_TRUE(contains(mixed.error(), "in the memory of the device and buffer")) << mixed.error();
  HostPlan async;
  async.waitForAll();
  async.wait(async.start("copy", {async.p}, {async.buffer(DType::F32, {16})}));
  EXPECT_TRUE(contains(async.error(), "is async and runs on the compute queue of the device"));
}

TEST(HostMemoryVerifier, BytesLieInTheArenaOfTheirMemory) {
  HostPlan beyond;
  beyond.waitForAll();
  beyond.program().set_host_arena_bytes(192);
  EXPECT_TRUE(contains(beyond.error(),
                       "64 bytes at offset 192 reach beyond the arena in the memory "
                       "of the host of 192 bytes"));
  HostPlan overlaps; // the gradient's copy in the bytes of the state
  overlaps.waitForAll();
  overlaps.moveToHost(overlaps.hostG, 0);
  EXPECT_TRUE(contains(overlaps.error(), "state \"m\", after the step")) << overlaps.error();
  HostPlan slots;
  slots.waitForAll();
  slots.program().mutable_buffers(static_cast<int>(slots.hostG))->set_slots(1);
  EXPECT_TRUE(contains(slots.error(), "lies in the memory of the host; expected none there"));
}

TEST(HostMemoryVerifier, CollectivesInputsAndOutputsAreOfTheDevice) {
  HostPlan collective;
  collective.waitForAll();
  collective.collective(plan::Collective::ALL_REDUCE, {"a"}, collective.hostG, collective.hostG);
  EXPECT_TRUE(contains(collective.error(), "expected the tensors of a collective in that of the "
                                           "device"));
  HostPlan output;
  output.waitForAll();
  output.output("y", DType::F32, {16}, {{}}, output.hostG);
  EXPECT_TRUE(contains(output.error(), "expected an output in that of the device"));
  HostPlan input;
  input.waitForAll();
  uint32_t buffer = input.input("x", DType::F32, {16}, {{}}).buffer();
  input.moveToHost(buffer, 256);
  input.program().set_host_arena_bytes(320);
  EXPECT_TRUE(contains(input.error(), "expected an input in that of the device"));
}

} // namespace hostMemoryVerifierTest
