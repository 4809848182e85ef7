//===- SlotMapTest.cpp - Buffers that share slots --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "plan/PlanVerifier.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"

#include <functional>
#include <gtest/gtest.h>

namespace slotMapTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

/// The error of the pipeline plan with shared slots after a change of its first program. Buffers 6
/// and 7 share four slots by the maps 0, [0, 2, 1], and 1, [1, 3, 0].
static std::string errorAfter(const std::function<void(plan::Program &)> &change) {
  auto plan = pipelinePlan();
  plan::Program &program = *plan->mutable_programs(0);
  shareSlots(program);
  change(program);
  return messageOf(findPlanError(*plan));
}

#define EXPECT_ERROR_AFTER(part, ...)                                                              \
  EXPECT_TRUE(contains(errorAfter([](plan::Program &program) { __VA_ARGS__; }), part))             \
      << errorAfter([](plan::Program &program) { __VA_ARGS__; })

static void setMap(plan::Program &program, int map, const std::vector<uint32_t> &slots) {
  program.mutable_slot_maps(map)->mutable_slots()->Assign(slots.begin(), slots.end());
}

TEST(SlotMap, SharedSlotsAreAcceptedAndCounted) {
  EXPECT_EQ(errorAfter([](plan::Program &) {}), "");
  // Three is the most that are there at once. Two maps may also say the same as slots in turn.
  EXPECT_EQ(errorAfter([](plan::Program &program) {
              setMap(program, 0, {0, 2, 0});
              setMap(program, 1, {1, 1, 1});
              program.mutable_buffers(6)->set_slots(3);
              program.mutable_buffers(7)->set_slots(3);
            }),
            "");
  auto plan = pipelinePlan();
  plan::Program &program = *plan->mutable_programs(0);
  shareSlots(program);
  Expected<VerifierResult> facts = verifyPlan(*plan);
  ASSERT_OK(facts);
  ASSERT_TRUE(facts->programs[0].slots);
  EXPECT_EQ(facts->programs[0].slots->buffer, 6u);
  EXPECT_EQ(facts->programs[0].slots->buffers, 2u);
  EXPECT_EQ(facts->programs[0].slots->alive, 3u);
  EXPECT_EQ(facts->programs[0].slots->reserved, 4u);
  std::string bytes = serializePlan(*plan);
  EXPECT_OK(parsePlan(bytes.data(), bytes.size()));
}

TEST(SlotMap, MapsSayASlotOfEachMicrobatch) {
  EXPECT_ERROR_AFTER("program 0: slot map 1 has 2 slots; expected 3, one for each microbatch",
                     setMap(program, 1, {1, 3}));
  EXPECT_ERROR_AFTER("slot map 2 has 0 slots; expected 3", program.add_slot_maps());
  EXPECT_ERROR_AFTER("slot map 0 has 4 slots; expected 3", setMap(program, 0, {0, 2, 1, 3}));
  EXPECT_ERROR_AFTER(
      "buffer 7: has 4 slots, but its slot map 1 gives slot 4 to a microbatch; slots "
      "count from 0",
      setMap(program, 1, {1, 4, 0}));
  EXPECT_ERROR_AFTER("gives slot 4294967295 to a microbatch", setMap(program, 1, {1, ~0u, 0}));
  EXPECT_ERROR_AFTER("buffer 6: has 0 slots, but its slot map 0 gives slot 2",
                     program.mutable_buffers(6)->set_slots(0));
  EXPECT_ERROR_AFTER("buffer 6: names slot map 2, but the program has 2 slot maps",
                     program.mutable_buffers(6)->set_slot_map(2));
}

TEST(SlotMap, SlotsStayInTheArena) {
  EXPECT_ERROR_AFTER("buffer 7: 5 slots of 64 bytes at offset",
                     program.mutable_buffers(7)->set_slots(5));
  // No more than the maps could use, also of what takes no bytes.
  EXPECT_ERROR_AFTER("has 7 slots, but there are 3 microbatches and 2 slot maps",
                     program.mutable_buffers(6)->set_slots(7));
  // A buffer that outlives a microbatch has no slots.
  EXPECT_ERROR_AFTER(
      "buffer 2 has 3 slots; what outlives a microbatch has none",
      for (uint32_t at
           : {program.states(1).buffer(), program.states(1).update()}) {
        plan::Buffer &momentum = *program.mutable_buffers(static_cast<int>(at));
        momentum.set_slots(3);
        momentum.set_slot_map(0);
        momentum.set_offset(program.arena_bytes());
      } program.set_arena_bytes(program.arena_bytes() + 4 * 64));
}

TEST(SlotMap, NoTwoValuesAreInASlotAtOnce) {
  // Two values of one buffer.
  EXPECT_ERROR_AFTER("program 0: task \"forward.0\", instruction 1 (kernel mul), microbatch 1: "
                     "writes buffer 6, f32[1,4], copy 0 of 4 for microbatch 1, which shares bytes "
                     "of the arena with buffer 6, f32[1,4], copy 0 of 4 for microbatch 0",
                     setMap(program, 0, {0, 0, 1}));
  // Values of two buffers.
  EXPECT_ERROR_AFTER("program 0: task \"receive.1\", instruction 0 (start_transfer 1), microbatch "
                     "0: writes buffer 7, f32[1,4], copy 0 of 4 for microbatch 0, which shares "
                     "bytes of the arena with buffer 6, f32[1,4], copy 0 of 4 for microbatch 0",
                     setMap(program, 1, {0, 3, 0}));
  // Values that are kept from one task to another.
  EXPECT_ERROR_AFTER(
      "input 1 (buffer 5, f32[1,4], copy 1 of 2 for microbatch 0) should hold the value of "
      "microbatch 0, but holds that of microbatch 1, written by task \"forward.0\", instruction 0 "
      "(kernel shard_slice), microbatch 1; its slot map gives slot 1 to both, which need it at "
      "once in this schedule",
      program.mutable_buffers(5)->set_slot_map(2);
      program.add_slot_maps(); setMap(program, 2, {1, 1, 0}));
}

TEST(SlotMap, TasksMeetOneBufferOfAGroup) {
  // For the microbatches of this plan these would be apart; copies that do not advance together are
  // not told apart.
  EXPECT_ERROR_AFTER("program 0: task \"forward.0\", instruction 1 (kernel mul)",
                     plan::Buffer &rows = *program.mutable_buffers(5);
                     rows.set_offset(program.buffers(6).offset()); rows.set_slots(4);
                     rows.set_slot_map(2); program.add_slot_maps(); setMap(program, 2, {3, 1, 2}));
}

TEST(SlotMap, ViewsHaveTheSame) {
  auto addView = [](plan::Program &program) -> plan::Buffer & {
    plan::Buffer view = program.buffers(6);
    view.set_view_of(6);
    return *program.add_buffers() = view;
  };
  EXPECT_EQ(errorAfter([&](plan::Program &program) { addView(program); }), "");
  EXPECT_ERROR_AFTER(
      "has no slot map and is a view of buffer 5, which has slot map 2; expected the "
      "same",
      plan::Buffer view = program.buffers(5);
      view.set_view_of(5); *program.add_buffers() = view; program.add_slot_maps();
      setMap(program, 2, {0, 1, 0}); program.mutable_buffers(5)->set_slot_map(2));
  EXPECT_TRUE(contains(
      errorAfter([&](plan::Program &program) { addView(program).set_slot_map(1); }),
      "has slot map 1 and is a view of buffer 6, which has slot map 0; expected the same"));
}

#undef EXPECT_ERROR_AFTER

} // namespace slotMapTest
