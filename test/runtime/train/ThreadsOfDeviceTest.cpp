//===- ThreadsOfDeviceTest.cpp - Threads for the devices of a process -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/OpenSession.h"
#include "test/lib/plans/Expect.h"

#include <gtest/gtest.h>

namespace threadsOfDeviceTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

TEST(ThreadsOfDevice, OneNumberIsForAllProcesses) {
  for (int64_t process : {0, 1, 2})
    EXPECT_EQ(*threadsOfDevice({3}, {.process = process, .processes = 3, .cores = 8}, 6), 3);
}

TEST(ThreadsOfDevice, EachProcessHasItsOwn) {
  ProcessPlace place{.process = 0, .processes = 2, .onHost = 2, .cores = 8};
  EXPECT_EQ(*threadsOfDevice({2, 1}, place, 4), 2);
  place.process = 1;
  EXPECT_EQ(*threadsOfDevice({2, 1}, place, 4), 1);
}

TEST(ThreadsOfDevice, NumbersAreAsManyAsProcesses) {
  EXPECT_EQ(messageOf(threadsOfDevice({2, 1}, {}, 2)),
            "--threads has 2 numbers, but there is 1 process; give one number for all, or one for "
            "each process");
  EXPECT_EQ(messageOf(threadsOfDevice({2, 1}, {.process = 2, .processes = 3}, 3)),
            "--threads has 2 numbers, but there are 3 processes; give one number for all, or one "
            "for each process");
}

TEST(ThreadsOfDevice, WithoutNumbersDevicesShareTheCoresOfTheirHost) {
  EXPECT_EQ(*threadsOfDevice({}, {.cores = 8}, 2), 4);
  EXPECT_EQ(*threadsOfDevice({}, {.processes = 4, .onHost = 2, .cores = 8}, 8), 2);
  EXPECT_EQ(*threadsOfDevice({}, {.cores = 2}, 4), 1);
}

} // namespace threadsOfDeviceTest
