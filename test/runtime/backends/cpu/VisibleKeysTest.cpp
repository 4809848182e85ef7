//===- VisibleKeysTest.cpp - Visible keys of a query ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/VisibleKeys.h"

#include <gtest/gtest.h>

namespace dtc::runtime::cpu::visibleKeysTest {
namespace {

/// Counts, one query and one key at a time.
int64_t countSeen(const VisibleKeys &keys, int64_t begin, int64_t rows, KeyRange block) {
  int64_t seen = 0;
  for (int64_t i = begin; i < begin + rows; ++i) {
    KeyRange range = keys.of(i);
    for (int64_t j = block.begin; j < block.end; ++j)
      seen += j >= range.begin && j < range.end;
  }
  return seen;
}

TEST(VisibleKeys, Ranges) {
  AttentionShape shape;
  shape.queries = 7;
  shape.keys = 9;
  EXPECT_EQ(VisibleKeys(shape).of(0).count(), 9);
  shape.causal = true;
  shape.earlier = 2;
  EXPECT_EQ(VisibleKeys(shape).of(0).end, 3);
  shape.window = 2;
  EXPECT_EQ(VisibleKeys(shape).of(3).begin, 4);
  EXPECT_EQ(VisibleKeys(shape).of(3).end, 6);
  EXPECT_EQ(VisibleKeys(shape).ofRows(1, 3).begin, 2);
  EXPECT_EQ(VisibleKeys(shape).ofRows(1, 3).end, 6);
  shape.earlier = -3;
  EXPECT_EQ(VisibleKeys(shape).of(0).count(), 0);
  EXPECT_EQ(VisibleKeys(shape).of(3).count(), 1);
}

TEST(VisibleKeys, Segments) {
  const int32_t numbers[] = {4, 4, 1, 4, 4, 4, 0, 0};
  SegmentRange segments[8];
  findSegments(numbers, 8, segments);
  AttentionShape shape;
  shape.queries = 6;
  shape.keys = 8;
  shape.earlier = 2;
  shape.segments = segments;
  auto expect = [&](int64_t query, int64_t begin, int64_t end) {
    EXPECT_EQ(VisibleKeys(shape).of(query).begin, begin) << query;
    EXPECT_EQ(VisibleKeys(shape).of(query).end, end) << query;
  };
  expect(0, 2, 3);
  expect(2, 3, 6);
  expect(5, 6, 8);
  shape.causal = true;
  expect(2, 3, 5);
  expect(4, 6, 7);
  shape.window = 2;
  expect(3, 4, 6);
  expect(4, 6, 7);
}

TEST(VisibleKeys, BlocksAgreeWithRows) {
  const int32_t numbers[] = {0, 0, 1, 1, 1, 2, 3, 3};
  SegmentRange segments[8];
  findSegments(numbers, 8, segments);
  for (int64_t queries : {1, 6, 9})
    for (int64_t earlier : {-4, 0, 3})
      for (int64_t window : {0, 1, 4})
        for (bool causal : {false, true}) {
          AttentionShape shape;
          if (queries == 6 && earlier == 0)
            shape.segments = segments;
          shape.queries = queries;
          shape.keys = 8;
          shape.causal = causal;
          shape.earlier = earlier;
          shape.window = causal ? window : 0;
          VisibleKeys keys(shape);
          for (int64_t begin = 0; begin < queries; ++begin)
            for (int64_t rows = 1; begin + rows <= queries; ++rows) {
              KeyRange all = keys.ofRows(begin, rows);
              EXPECT_EQ(countSeen(keys, begin, rows, all),
                        countSeen(keys, begin, rows, {0, shape.keys}));
              for (int64_t first = 0; first < shape.keys; ++first)
                for (int64_t end = first + 1; end <= shape.keys; ++end) {
                  int64_t seen = countSeen(keys, begin, rows, {first, end});
                  // A block between two windows may count as seen in part.
                  switch (keys.ofBlock(begin, rows, {first, end})) {
                  case Visibility::None:
                    EXPECT_EQ(seen, 0);
                    break;
                  case Visibility::Full:
                    EXPECT_EQ(seen, rows * (end - first));
                    break;
                  case Visibility::Part:
                    EXPECT_LT(seen, rows * (end - first));
                  }
                }
            }
        }
}

} // namespace
} // namespace dtc::runtime::cpu::visibleKeysTest
