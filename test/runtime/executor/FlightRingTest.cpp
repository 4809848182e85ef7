//===- FlightRingTest.cpp - Tests of recorded communications --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/FlightRing.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>

namespace flightRingTest {

using namespace dtc;
using namespace dtc::runtime;

TEST(FlightRing, KeepsTheLast) {
  FlightRing ring;
  EXPECT_TRUE(ring.last().empty());
  for (size_t i = 1; i <= 100; ++i) {
    ring.begin(/*step=*/i, /*entry=*/2 * i, /*instruction=*/3 * i);
    if (i < 100)
      ring.end();
  }
  std::vector<FlightRing::Record> records = ring.last();
  ASSERT_EQ(records.size(), FlightRing::kRecords);
  for (size_t i = 0; i < records.size(); ++i) {
    size_t number = 100 - FlightRing::kRecords + 1 + i;
    EXPECT_EQ(records[i].step, number);
    EXPECT_EQ(records[i].entry, 2 * number);
    EXPECT_EQ(records[i].instruction, 3 * number);
    EXPECT_EQ(records[i].end.has_value(), number < 100);
    if (records[i].end) {
      EXPECT_GE(*records[i].end, records[i].begin);
    }
  }
}

TEST(FlightRing, IsReadWhileItIsWritten) {
  FlightRing ring;
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (size_t i = 1; !stop; ++i) {
      ring.begin(i, i % 1000, i % 1000);
      ring.end();
    }
  });
  uint64_t newest = 0;
  for (int looks = 0; looks < 2000 || newest == 0; ++looks) {
    uint64_t before = 0;
    for (const FlightRing::Record &record : ring.last()) {
      ASSERT_EQ(record.entry, record.step % 1000);
      ASSERT_EQ(record.instruction, record.entry);
      ASSERT_GT(record.step, before);
      before = record.step;
    }
    newest = std::max(newest, before);
  }
  stop = true;
  writer.join();
}

} // namespace flightRingTest
