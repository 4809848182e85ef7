//===- WindowsTest.cpp - Tests of windows of convolutions and poolings ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Windows.h"

#include <gtest/gtest.h>
#include <vector>

namespace windowsTest {
using namespace dtc;
namespace {

using Numbers = std::vector<int64_t>;

/// Tries each place at which a window may begin.
int64_t countByTrial(const Windows &windows, int64_t length) {
  int64_t count = 0;
  for (int64_t begin = -windows.padding; begin <= length + windows.padding; begin += windows.stride)
    count += begin + (windows.size - 1) * windows.dilation < length + windows.padding;
  return count;
}

TEST(Windows, CountsThoseThatFit) {
  for (int64_t size = 1; size < 5; ++size)
    for (int64_t stride = 1; stride < 4; ++stride)
      for (int64_t padding = 0; padding < 4; ++padding)
        for (int64_t dilation = 1; dilation < 4; ++dilation)
          for (int64_t length = 0; length < 12; ++length) {
            Windows windows{size, stride, padding, dilation};
            EXPECT_EQ(windows.countIn(length), countByTrial(windows, length))
                << size << " " << stride << " " << padding << " " << dilation << " " << length;
          }
}

TEST(Windows, OfTheLargestNumbersDoNotOverflow) {
  Windows windows{kMaxWindowNumber, kMaxWindowNumber, kMaxWindowNumber, kMaxWindowNumber};
  EXPECT_EQ(windows.countIn(0), 0);
  EXPECT_EQ(windows.countIn(windows.extent()), 3);
}

TEST(Windows, NamesWhatIsWrong) {
  EXPECT_EQ(findWindowProblem(Numbers{2}, Numbers{0}, Numbers{1}), std::nullopt);
  EXPECT_EQ(findWindowProblem(Numbers{1, 1}, Numbers{0, 3}, Numbers{1, 2}, Numbers{3, 3}),
            std::nullopt);
  EXPECT_EQ(findWindowProblem(Numbers{}, Numbers{}, Numbers{}),
            "strides has 0 entries, expected 1 to 3, one for each spatial dimension");
  EXPECT_EQ(findWindowProblem(Numbers{1, 1, 1, 1}, Numbers{}, Numbers{}),
            "strides has 4 entries, expected 1 to 3, one for each spatial dimension");
  EXPECT_EQ(findWindowProblem(Numbers{1, 1}, Numbers{0}, Numbers{1, 1}),
            "padding has 1 entries, expected 2 as strides has");
  EXPECT_EQ(findWindowProblem(Numbers{1}, Numbers{0}, Numbers{0}),
            "dilations is [0], expected numbers from 1 to 2147483647");
  EXPECT_EQ(findWindowProblem(Numbers{1}, Numbers{int64_t{1} << 31}, Numbers{1}),
            "padding is [2147483648], expected numbers from 0 to 2147483647");
  EXPECT_EQ(findWindowProblem(Numbers{1}, Numbers{0}, Numbers{1}, Numbers{1, 1}),
            "window has 2 entries, expected 1 as strides has");
}

} // namespace
} // namespace windowsTest
