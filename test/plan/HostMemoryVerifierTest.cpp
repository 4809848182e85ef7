//===- HostMemoryVerifierTest.cpp - Plans that use the host's memory ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanVerifier.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/HostPlan.h"

#include <gtest/gtest.h>
#include <string>

namespace hostMemoryVerifierTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

/// The plan with what the verifier says of it.
struct VerifiedHostPlan : HostPlan {
  std::string error() { return messageOf(findPlanError(*build())); }
};

} // namespace

TEST(HostMemoryVerifier, AcceptsLanesThatComeAfterEachOther) {
  VerifiedHostPlan plan;
  // The device goes on meanwhile, with what nobody else touches.
  plan.kernel("copy", {plan.p}, {plan.buffer(DType::F32, {16})});
  plan.waitForAll();
  plan.kernel("copy", {plan.back}, {plan.buffer(DType::F32, {16})});
  EXPECT_EQ(plan.error(), "");
}

TEST(HostMemoryVerifier, ALaneIsThroughWithAllBeforeItsLastInstruction) {
  // The copy of the gradient, which the update reads too, comes before that of the parameter.
  VerifiedHostPlan plan;
  plan.instruction(plan.update).set_after(0, plan.gradient);
  plan.waitForAll();
  EXPECT_TRUE(contains(plan.error(), "which shares bytes of the arena with buffer"))
      << plan.error();
  EXPECT_TRUE(contains(plan.error(), "instruction 2 (kernel copy) writes until the wait for it"))
      << plan.error();
}

TEST(HostMemoryVerifier, AMissingOrderBetweenLanesIsRefused) {
  VerifiedHostPlan unordered;
  unordered.instruction(unordered.update).clear_after();
  unordered.waitForAll();
  EXPECT_TRUE(contains(unordered.error(), "instruction 3 (kernel add): reads buffer"));
  VerifiedHostPlan back;
  back.instruction(back.result).clear_after();
  back.waitForAll();
  EXPECT_TRUE(contains(back.error(), "instruction 4 (kernel copy): reads buffer"));
  // The update is done after the copy that it comes after: what comes after the update knows it.
  VerifiedHostPlan transitive;
  transitive.start("copy", {transitive.p}, {transitive.hostP}, {});
  transitive.waitForAll();
  transitive.wait(5);
  EXPECT_TRUE(contains(transitive.error(), "writes buffer")) << transitive.error();
}

TEST(HostMemoryVerifier, TheDeviceWaitsForWhatItUses) {
  VerifiedHostPlan reads;
  reads.kernel("copy", {reads.back}, {reads.buffer(DType::F32, {16})});
  reads.waitForAll();
  EXPECT_TRUE(contains(reads.error(), "instruction 5 (kernel copy): reads buffer"));
  VerifiedHostPlan overwrites;
  overwrites.kernel("fill", {}, {overwrites.g});
  overwrites.waitForAll();
  EXPECT_TRUE(contains(overwrites.error(), "instruction 1 (kernel copy) reads until the wait"));
  VerifiedHostPlan unfinished;
  unfinished.wait(unfinished.gradient);
  EXPECT_TRUE(contains(unfinished.error(), "instruction 2 (kernel copy): is async, but the task "
                                           "does not wait for it"));
}

TEST(HostMemoryVerifier, AnInstructionComesAfterEarlierAsyncOnes) {
  auto errorOf = [](uint32_t after) {
    VerifiedHostPlan plan;
    plan.instruction(plan.update).add_after(after);
    plan.waitForAll();
    return plan.error();
  };
  EXPECT_TRUE(contains(errorOf(0), "comes after instruction 0 (kernel copy); expected an async"));
  EXPECT_TRUE(contains(errorOf(3), "comes after instruction 3; expected one before it"));
  VerifiedHostPlan synchronous;
  synchronous.waitForAll();
  synchronous.kernel("copy", {synchronous.p}, {synchronous.buffer(DType::F32, {16})});
  synchronous.instruction(9).add_after(1);
  EXPECT_TRUE(contains(synchronous.error(), "comes after other instructions and is not async"));
}

TEST(HostMemoryVerifier, OnlyCopiesGoFromOneMemoryToTheOther) {
  VerifiedHostPlan mixed;
  mixed.waitForAll();
  mixed.kernel("add", {mixed.p, mixed.hostG}, {mixed.buffer(DType::F32, {16})});
  EXPECT_TRUE(contains(mixed.error(), "in the memory of the device and buffer")) << mixed.error();
  VerifiedHostPlan async;
  async.waitForAll();
  async.wait(async.start("copy", {async.p}, {async.buffer(DType::F32, {16})}));
  EXPECT_TRUE(contains(async.error(), "is async and runs on the compute queue of the device"));
}

TEST(HostMemoryVerifier, BytesLieInTheArenaOfTheirMemory) {
  VerifiedHostPlan beyond;
  beyond.waitForAll();
  beyond.program().set_host_arena_bytes(192);
  EXPECT_TRUE(contains(beyond.error(),
                       "64 bytes at offset 192 reach beyond the arena in the memory "
                       "of the host of 192 bytes"));
  VerifiedHostPlan overlaps; // the gradient's copy in the bytes of the state
  overlaps.waitForAll();
  overlaps.moveToHost(overlaps.hostG, 0);
  EXPECT_TRUE(contains(overlaps.error(), "state \"m\", after the step")) << overlaps.error();
}

TEST(HostMemoryVerifier, MicrobatchesHaveSlotsInTheMemoryOfTheHost) {
  VerifiedHostPlan plan;
  plan.axis("micro", 3, /*temporal=*/true);
  plan.waitForAll();
  plan.moveToHost(plan.hostG, 256); // behind the others
  plan.program().mutable_buffers(static_cast<int>(plan.hostG))->set_slots(3);
  plan.program().set_host_arena_bytes(448);
  EXPECT_EQ(plan.error(), "");
  plan.program().set_host_arena_bytes(447);
  EXPECT_TRUE(contains(plan.error(), "3 slots of 64 bytes at offset 256 reach beyond the arena in "
                                     "the memory of the host of 447 bytes"))
      << plan.error();
}

TEST(HostMemoryVerifier, AMicrobatchFindsItsOwnValueOnTheHost) {
  // Both microbatches leave before the first comes back.
  for (uint32_t slots : {1, 2}) {
    PlanBuilder builder;
    builder.axis("micro", 2, /*temporal=*/true);
    uint32_t made = builder.buffer(DType::F32, {16});
    uint32_t fetched = builder.buffer(DType::F32, {16});
    uint32_t parked = builder.slotted(DType::F32, {16}, slots);
    plan::Buffer &buffer = *builder.program().mutable_buffers(static_cast<int>(parked));
    buffer.set_memory(plan::Buffer::HOST);
    buffer.set_offset(0);
    builder.program().set_host_arena_bytes(128);
    builder.task("forward");
    builder.kernel("fill", {}, {made});
    builder.kernel("copy", {made}, {parked});
    builder.task("backward");
    builder.kernel("copy", {parked}, {fetched});
    for (uint32_t task : {0, 1})
      for (uint32_t microbatch : {0, 1})
        builder.schedule(task, microbatch);
    std::string error = messageOf(findPlanError(*builder.build()));
    EXPECT_EQ(slots == 1, contains(error, "should hold the value of microbatch 0")) << error;
    EXPECT_EQ(slots == 2, error.empty()) << error;
  }
}

TEST(HostMemoryVerifier, CollectivesInputsAndOutputsAreOfTheDevice) {
  VerifiedHostPlan collective;
  collective.waitForAll();
  collective.collective(plan::Collective::ALL_REDUCE, {"a"}, collective.hostG, collective.hostG);
  EXPECT_TRUE(contains(collective.error(), "expected the tensors of a collective in that of the "
                                           "device"));
  VerifiedHostPlan output;
  output.waitForAll();
  output.output("y", DType::F32, {16}, {{}}, output.hostG);
  EXPECT_TRUE(contains(output.error(), "expected an output in that of the device"));
  VerifiedHostPlan input;
  input.waitForAll();
  uint32_t buffer = input.input("x", DType::F32, {16}, {{}}).buffer();
  input.moveToHost(buffer, 256);
  input.program().set_host_arena_bytes(320);
  EXPECT_TRUE(contains(input.error(), "expected an input in that of the device"));
}

} // namespace hostMemoryVerifierTest
