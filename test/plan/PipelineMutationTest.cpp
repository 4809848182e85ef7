//===- PipelineMutationTest.cpp - Random changes of a pipeline ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanVerifier.h"

#include "test/lib/RandomCases.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TestPlans.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iostream>
#include <random>

namespace pipelineMutationTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

/// One change of the schedule, the buffers, the transfers or an operand.
static void mutate(plan::Program &program, std::mt19937_64 &random) {
  auto below = [&](int size) {
    return static_cast<int>(random() % static_cast<uint64_t>(std::max(size, 1)));
  };
  int entry = below(program.schedule_size()), other = below(program.schedule_size());
  plan::Buffer &buffer = *program.mutable_buffers(below(program.buffers_size()));
  plan::Transfer &transfer = *program.mutable_transfers(below(program.transfers_size()));
  plan::Task &task = *program.mutable_tasks(below(program.tasks_size()));
  int instruction = below(task.instructions_size()), next = below(task.instructions_size());
  switch (random() % 11) {
  case 0:
    if (program.schedule_size() > 0)
      program.mutable_schedule()->DeleteSubrange(entry, 1);
    return;
  case 1:
    if (program.schedule_size() > 0)
      program.mutable_schedule()->SwapElements(entry, other);
    return;
  case 2:
    if (program.schedule_size() > 0)
      *program.add_schedule() = plan::ScheduleEntry(program.schedule(entry));
    return;
  case 3:
    if (program.schedule_size() > 0)
      program.mutable_schedule(entry)->set_microbatch(static_cast<uint32_t>(below(4)));
    return;
  case 4:
    return buffer.set_slots(static_cast<uint32_t>(below(5)));
  case 5:
    return buffer.set_offset(program.buffers(below(program.buffers_size())).offset());
  case 6:
    return transfer.set_channel(static_cast<uint32_t>(below(4)));
  case 7:
    return transfer.set_buffers(0, static_cast<uint32_t>(below(program.buffers_size() + 1)));
  case 8:
    return buffer.set_slot_map(static_cast<uint32_t>(below(program.slot_maps_size() + 1)));
  case 9:
    if (program.slot_maps_size() > 0)
      program.mutable_slot_maps(below(program.slot_maps_size()))
          ->set_slots(below(3), static_cast<uint32_t>(below(5)));
    return;
  default:
    task.mutable_instructions()->SwapElements(instruction, next);
  }
}

TEST(PipelineMutation, ChangedPlansAreAcceptedOrRefused) {
  std::mt19937_64 random(dtc::test::randomSeed());
  const uint64_t count = dtc::test::randomCases(5000);
  uint64_t accepted = 0;
  for (uint64_t i = 0; i < count; ++i) {
    auto plan = pipelinePlan(1 + static_cast<int64_t>(random() % 2));
    if (random() % 2 == 0)
      shareSlots(*plan->mutable_programs(0));
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes)
      mutate(*plan->mutable_programs(static_cast<int>(random() % 2)), random);
    Expected<VerifierResult> facts = verifyPlan(*plan);
    if (!facts) {
      EXPECT_FALSE(facts.error().message.empty());
      continue;
    }
    ++accepted;
    // An accepted plan is consistent.
    int64_t sends = 0, receives = 0;
    for (const ProgramVerifierResult &program : facts->programs) {
      sends += program.sends;
      receives += program.receives;
      if (program.slots) {
        EXPECT_LE(program.slots->alive, program.slots->reserved) << "plan " << i;
      }
    }
    EXPECT_EQ(sends, facts->messages) << "plan " << i;
    EXPECT_EQ(receives, facts->messages) << "plan " << i;
  }
  std::cout << accepted << " of " << count << " were accepted\n";
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, count);
}

} // namespace pipelineMutationTest
