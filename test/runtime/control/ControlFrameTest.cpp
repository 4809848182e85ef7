//===- ControlFrameTest.cpp - Tests of control messages -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/control/ControlFrame.h"

#include <gtest/gtest.h>

namespace controlFrameTest {

using namespace dtc;
using namespace dtc::runtime;

TEST(ControlFrame, ComesInPieces) {
  ControlFrame sent{ControlFrame::Report, true, 70000, std::string("line\n\0zero", 10), 80000};
  std::string bytes = encode(sent) + encode({ControlFrame::Goodbye, false, 3}), received;
  size_t whole = encode(sent).size();
  for (size_t i = 0; i < whole; ++i) {
    auto none = takeFrame(received, 1000);
    ASSERT_TRUE(none);
    EXPECT_FALSE(*none) << i;
    received.push_back(bytes[i]);
  }
  received += bytes.substr(whole);
  auto first = takeFrame(received, 1000);
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->kind, ControlFrame::Report);
  EXPECT_TRUE((*first)->flag);
  EXPECT_EQ((*first)->process, 70000);
  EXPECT_EQ((*first)->point, 80000);
  EXPECT_EQ((*first)->text, sent.text);
  auto second = takeFrame(received, 1000);
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->kind, ControlFrame::Goodbye);
  EXPECT_TRUE(received.empty());
}

TEST(ControlFrame, RefusesWhatIsNone) {
  std::string large = encode({ControlFrame::Report, false, 1, std::string(300, 'x')});
  auto tooLarge = takeFrame(large, kControlHelloBytes);
  ASSERT_FALSE(tooLarge);
  EXPECT_EQ(tooLarge.error().message, "a frame of 310 bytes, expected 10 to 256");
  std::string small("\5\0\0\0", 4);
  EXPECT_FALSE(takeFrame(small, 1000));
  for (auto [at, value] : {std::pair(4, 0), {4, 8}, {5, 2}}) {
    std::string other = encode({ControlFrame::Heartbeat, false, 1});
    other[static_cast<size_t>(at)] = static_cast<char>(value);
    EXPECT_FALSE(takeFrame(other, 1000)) << at << " " << value;
  }
}

TEST(ControlFrame, CutsLongTexts) {
  std::string bytes = encode({ControlFrame::Report, false, 1, std::string(1 << 20, 'x')});
  auto frame = takeFrame(bytes, kControlTextBytes + 64);
  ASSERT_TRUE(frame && *frame);
  EXPECT_EQ((*frame)->text.size(), kControlTextBytes);
}

TEST(ControlFrame, ComparesSecrets) {
  EXPECT_TRUE(equalSecrets("abc", "abc"));
  EXPECT_FALSE(equalSecrets("abc", "abd"));
  EXPECT_FALSE(equalSecrets("abc", "ab"));
  EXPECT_FALSE(equalSecrets("", "a"));
}

} // namespace controlFrameTest
