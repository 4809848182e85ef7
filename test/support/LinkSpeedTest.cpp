//===- LinkSpeedTest.cpp - Tests of link speeds ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/LinkSpeed.h"

#include "test/lib/plans/Expect.h"

#include <gtest/gtest.h>

namespace linkSpeedTest {

using namespace dtc;
using namespace dtc::runtime::testing;

static LinkSpeed speedOf(const char *text) {
  Expected<LinkSpeed> speed = parseLinkSpeed(text);
  EXPECT_OK(speed);
  return speed ? *speed : LinkSpeed();
}

TEST(LinkSpeed, Parse) {
  EXPECT_EQ(speedOf("25GB/s,10us"), (LinkSpeed{25e9, 10 * 1e-6}));
  EXPECT_EQ(speedOf("10us,25GB/s"), (LinkSpeed{25e9, 10 * 1e-6}));
  EXPECT_EQ(speedOf(" 1.5 TB/s , 2 ms "), (LinkSpeed{1.5e12, 2e-3}));
  EXPECT_EQ(speedOf("25GB/s"), (LinkSpeed{25e9, 0}));
  EXPECT_EQ(speedOf("0.5s"), (LinkSpeed{0, 0.5}));
  EXPECT_EQ(speedOf("7B/s"), (LinkSpeed{7, 0}));
  EXPECT_EQ(speedOf("7kB/s"), (LinkSpeed{7e3, 0}));
  EXPECT_EQ(speedOf("7MB/s,3ns"), (LinkSpeed{7e6, 3 * 1e-9}));
}

TEST(LinkSpeed, WhatIsNoLinkSpeed) {
  for (const char *text : {"", "25", "25GB", "25GiB/s", "GB/s", "-1GB/s", "infGB/s", "10 minutes",
                           "25GB/s,", ",10us", "25GB/s;10us", "1e999GB/s"})
    EXPECT_ERROR(parseLinkSpeed(text), "is no bandwidth (in B/s") << text;
  EXPECT_ERROR(parseLinkSpeed("25GB/s,10"), "\"10\" is no bandwidth");
  EXPECT_ERROR(parseLinkSpeed("0GB/s"), "a bandwidth of 0; expected more than 0");
  EXPECT_ERROR(parseLinkSpeed("1GB/s,0us"), "a latency of 0; expected more than 0");
  EXPECT_ERROR(parseLinkSpeed("1GB/s,2GB/s"), "two of the kind bandwidth");
  EXPECT_ERROR(parseLinkSpeed("1us,2us"), "two of the kind latency");
}

TEST(LinkSpeed, ParseNamed) {
  Expected<NamedLink> link = parseNamedLink("dp=25GB/s,10us");
  ASSERT_OK(link);
  EXPECT_EQ(link->axis, "dp");
  EXPECT_EQ(link->speed.bandwidth, 25e9);
  ASSERT_OK(parseNamedLink("tp.0=1us"));
  for (const char *text : {"", "dp", "=1us", "25GB/s,10us"})
    EXPECT_ERROR(parseNamedLink(text), "is not of the form axis=bandwidth,latency") << text;
  EXPECT_ERROR(parseNamedLink("dp="), "dp: \"\" is no bandwidth");
  EXPECT_ERROR(parseNamedLink("dp=fast"), "dp: \"fast\" is no bandwidth");
}

TEST(LinkSpeed, Format) {
  EXPECT_EQ(formatLinkSpeed(kAssumedLink), "25 GB/s 10 us");
  EXPECT_EQ(formatLinkSpeed(speedOf("1us")), "1 us");
  EXPECT_EQ(formatLinkSpeed(speedOf("1500GB/s,0.5ns")), "1.5 TB/s 0.5 ns");
  EXPECT_EQ(formatLinkSpeed({}), "");
}

} // namespace linkSpeedTest
