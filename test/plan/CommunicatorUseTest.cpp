//===- CommunicatorUseTest.cpp - Whom devices exchange with ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/CommunicatorUse.h"
#include "test/lib/plans/PlanBuilder.h"

#include <gtest/gtest.h>

namespace communicatorUseTest {

using namespace dtc;
using namespace dtc::runtime::testing;

static plan::Plan planOf(const std::vector<std::pair<plan::Collective::Kind, std::string>> &uses) {
  PlanBuilder builder;
  builder.axis("dp", 4);
  builder.axis("tp", 2);
  builder.axis("one", 1);
  uint32_t in = builder.buffer(DType::F32, {8}), out = builder.buffer(DType::F32, {8});
  builder.task("step");
  for (const auto &[kind, axis] : uses)
    builder.collective(kind, {axis}, in, out);
  builder.schedule(0);
  return builder.plan;
}

TEST(CommunicatorUse, GroupsAreCountedOnce) {
  plan::Plan plan = planOf({{plan::Collective::ALL_REDUCE, "dp"},
                            {plan::Collective::ALL_GATHER, "dp"},
                            {plan::Collective::ALL_REDUCE, "dp"},
                            {plan::Collective::REDUCE_SCATTER, "tp"},
                            {plan::Collective::ALL_REDUCE, "one"}}); // of one device: no group
  CommunicatorNeeds needs = communicatorNeeds(plan, 0);
  ASSERT_EQ(needs.groups.size(), 2u);
  EXPECT_EQ(needs.groups[0].members, 4);
  EXPECT_TRUE(needs.groups[0].reducesAll);
  EXPECT_TRUE(needs.groups[0].hasRings);
  EXPECT_EQ(needs.groups[1].members, 2);
  EXPECT_FALSE(needs.groups[1].reducesAll);
  EXPECT_TRUE(needs.groups[1].hasRings);
  EXPECT_EQ(needs.sends + needs.receives, 0);
}

TEST(CommunicatorUse, AllToAllMeetsAllMembersAndAPermuteOne) {
  EXPECT_EQ(communicatorNeeds(planOf({{plan::Collective::ALL_TO_ALL, "dp"}}), 0).groups[0].peers,
            3);
  EXPECT_EQ(communicatorNeeds(planOf({{plan::Collective::PERMUTE, "dp"}}), 0).groups[0].peers, 1);
}

TEST(CommunicatorUse, EntryPointsShareCommunicators) {
  plan::Plan plan = planOf({{plan::Collective::ALL_GATHER, "dp"}});
  *plan.add_entry_points() =
      planOf({{plan::Collective::ALL_REDUCE, "dp"}, {plan::Collective::ALL_REDUCE, "tp"}});
  CommunicatorNeeds needs = communicatorNeeds(plan, 0);
  ASSERT_EQ(needs.groups.size(), 2u);
  EXPECT_TRUE(needs.groups[0].reducesAll && needs.groups[0].hasRings);
  // An entry point that runs beside the others has groups of its own.
  plan.mutable_entry_points(0)->set_entry("outer_send.0");
  needs = communicatorNeeds(plan, 0);
  ASSERT_EQ(needs.groups.size(), 3u);
  EXPECT_FALSE(needs.groups[0].reducesAll);
  EXPECT_TRUE(needs.groups[1].reducesAll);
}

TEST(CommunicatorUse, MessagesAreCountedByDevice) {
  plan::Plan plan = planOf({});
  auto add = [&](plan::Transfer::Kind kind, uint32_t peer) {
    plan::Transfer *transfer = plan.mutable_programs(0)->add_transfers();
    transfer->set_kind(kind);
    transfer->set_peer(peer);
  };
  for (int i = 0; i < 2; ++i) {
    add(plan::Transfer::SEND, 1);
    add(plan::Transfer::RECEIVE, 1);
    add(plan::Transfer::RECEIVE, 3);
  }
  CommunicatorNeeds needs = communicatorNeeds(plan, 0);
  EXPECT_EQ(needs.sends, 1);
  EXPECT_EQ(needs.receives, 2);
}

} // namespace communicatorUseTest
