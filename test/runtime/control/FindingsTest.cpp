//===- FindingsTest.cpp - Tests of the first cause of an end --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/control/Findings.h"

#include <gtest/gtest.h>

namespace findingsTest {

using namespace dtc;
using namespace dtc::runtime;

static const std::vector<std::string> kHosts = {"a", "b", "c"};

TEST(Findings, LossBeforeErrorsThatFollow) {
  Findings findings(kHosts);
  EXPECT_TRUE(findings.isEmpty());
  findings.fail(0, "the network says no");
  findings.lose(2, "it fell");
  findings.lose(2, "a second word");
  findings.setPlace(0, "waits for device 2", {});
  findings.setPlace(1, "", {});
  RunEnd end = findings.decide();
  EXPECT_TRUE(end.hasLostProcess);
  EXPECT_EQ(end.reason, "process 2 on c was lost: it fell\n  process 0 on a: waits for device 2\n"
                        "  process 1 on b: is in no step");
}

TEST(Findings, AllThatAreLost) {
  Findings findings(kHosts);
  findings.lose(1, "first");
  findings.lose(2, "second");
  EXPECT_EQ(findings.decide().reason,
            "process 1 on b was lost: first\n  process 2 on c was lost: second");
}

TEST(Findings, TheFirstError) {
  Findings findings(kHosts);
  findings.fail(2, "the disk is full");
  findings.fail(1, "another");
  findings.fail(2, "step 3: the disk is full");
  findings.fail(2, "what follows from it");
  findings.setPlace(0, "", {});
  RunEnd end = findings.decide();
  EXPECT_FALSE(end.hasLostProcess);
  EXPECT_EQ(end.reason, "process 2 on c: step 3: the disk is full");
}

TEST(Findings, AnErrorOfAllNamesNone) {
  Findings findings(kHosts);
  findings.fail(1, "no such file");
  findings.fail(0, "no such file");
  EXPECT_EQ(findings.decide().reason, "no such file");
}

/// The error that comes first in the work that all do in the same order counts, whichever is heard
/// of first.
TEST(Findings, TheEarlierPoint) {
  Findings findings(kHosts);
  findings.fail(1, "no such data", 7);
  EXPECT_EQ(findings.firstPoint(), 7);
  findings.fail(2, "no such plan", 3);
  EXPECT_EQ(findings.firstPoint(), 3);
  EXPECT_EQ(findings.decide().reason, "process 2 on c: no such plan");
  EXPECT_FALSE(findings.hasFailed(0));
  findings.fail(0, "no such plan", 3);
  EXPECT_TRUE(findings.hasFailed(0));
  EXPECT_EQ(findings.decide().reason, "no such plan");
}

TEST(Findings, ListsSomeOfManyPlaces) {
  std::vector<std::string> many(100, "host");
  Findings findings(many);
  for (int64_t process = 0; process < 100; ++process)
    findings.setPlace(process, "waits", {});
  findings.fail(0, "error");
  std::string reason = findings.decide().reason;
  EXPECT_EQ(std::count(reason.begin(), reason.end(), '\n'), 17);
  EXPECT_TRUE(reason.ends_with("\n  and others")) << reason;
}

} // namespace findingsTest
