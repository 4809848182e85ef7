//===- GpuMemoryTest.cpp - Tests of what NCCL takes of a GPU --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/GpuMemory.h"

#include <gtest/gtest.h>

namespace gpuMemoryTest {

using namespace dtc;

static constexpr uint64_t kMiB = uint64_t{1} << 20;

// Of two members, ring and tree have the same peer: 10 MiB where it receives, 2 where it sends.
TEST(GpuMemory, APairHasOneConnectionOfEachChannel) {
  CommunicatorNeeds needs{{{.members = 2, .reducesAll = true, .hasRings = true}}};
  NcclMemory memory = estimateNcclMemory(needs, {});
  EXPECT_EQ(memory.communicators, 1);
  EXPECT_EQ(memory.structures, 4 * kMiB);
  EXPECT_EQ(memory.collectives, 24 * 12 * kMiB);
  EXPECT_EQ(memory.multicasts, 0u);
  EXPECT_EQ(memory.messages, 0u);
  EXPECT_EQ(memory.total(), 292 * kMiB);
}

TEST(GpuMemory, LargerGroupsHaveTreesAndSumsInTheSwitch) {
  CommunicatorNeeds needs{{{.members = 8, .reducesAll = true}}};
  NcclMemory memory = estimateNcclMemory(needs, {});
  EXPECT_EQ(memory.collectives, 2 * 24 * 12 * kMiB);
  EXPECT_EQ(memory.multicasts, 8 * 2 * 16 * kMiB);
  EXPECT_EQ(estimateNcclMemory(needs, {.multicasts = false}).multicasts, 0u);
  // Gathers alone.
  needs.groups[0] = {.members = 8, .hasRings = true};
  EXPECT_EQ(estimateNcclMemory(needs, {}).total(), (4 + 24 * 12) * kMiB);
}

TEST(GpuMemory, MessagesTakeMostWhereTheyAreReceived) {
  EXPECT_EQ(estimateNcclMemory({{}, /*sends=*/1, /*receives=*/0}, {}).total(), (4 + 32 * 2) * kMiB);
  EXPECT_EQ(estimateNcclMemory({{}, /*sends=*/0, /*receives=*/1}, {}).total(),
            (4 + 32 * 10) * kMiB);
  // All-to-all has a connection with each of the others.
  EXPECT_EQ(estimateNcclMemory({{{.members = 4, .peers = 3}}}, {}).messages, 3 * 32 * 12 * kMiB);
}

TEST(GpuMemory, FewerChannelsTakeLess) {
  CommunicatorNeeds needs{{{.members = 4, .reducesAll = true}}, 1, 1};
  NcclChannels three{.most = 3};
  EXPECT_EQ(three.collectives(), 3);
  EXPECT_EQ(three.messages(), 4); // a power of two
  NcclMemory memory = estimateNcclMemory(needs, three);
  EXPECT_EQ(memory.collectives, 2 * 3 * 12 * kMiB);
  EXPECT_EQ(memory.multicasts, 4 * 2 * 3 * kMiB);
  EXPECT_EQ(memory.messages, 4 * (10 + 2) * kMiB);
  EXPECT_EQ(memory.describe(three),
            "3 communicators of NCCL with up to 3 channels take about 156.0 MiB (structures 12.0 "
            "MiB, collectives 72.0 MiB, sums in the switch 24.0 MiB, messages 48.0 MiB)");
}

TEST(GpuMemory, ADeviceAloneTakesNothing) {
  EXPECT_EQ(estimateNcclMemory({}, {}).total(), 0u);
  EXPECT_EQ(estimateNcclMemory({}, {}).communicators, 0);
}

} // namespace gpuMemoryTest
