//===- PrintableTest.cpp - Tests of escaped text --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Printable.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

namespace printableTest {

using namespace dtc;

TEST(Printable, OrdinaryTextStays) {
  for (const char *text : {"", "model.layers.0.self_attn.q_proj.weight", R"(C:\x "quoted")",
                           "größe 大きさ 🙂", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printableLines(text), text);
    EXPECT_EQ(printableMessage(text), text);
  }
}

TEST(Printable, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(printable("w\x1B]0;title\x07\x1B[31mred"), R"(w\x1B]0;title\x07\x1B[31mred)");
  EXPECT_EQ(printable("a\nb\tc\rd\x7F"), R"(a\nb\tc\rd\u007F)");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), R"(a\x00b)");
  EXPECT_EQ(printable("\xC2\x9B[31m"), R"(\u009B[31m)"); // a control sequence in one character
  EXPECT_EQ(printable("\uFFFD\xEF\xBF\xBE\xEF\xBF\xBF"), "\uFFFD"
                                                         R"(\uFFFE\uFFFF)");
  EXPECT_EQ(printable("\xE2\x80\xAE\xE2\x80\xA8\xE2\x81\xA6"), R"(\u202E\u2028\u2066)");
}

TEST(Printable, BytesThatAreNoUtf8AreWrittenOut) {
  EXPECT_EQ(printable("a\xFFz"), R"(a\xFFz)");
  EXPECT_EQ(printable("\x9B[31m"), R"(\x9B[31m)");
  EXPECT_EQ(printable("\xC0\x8A"), R"(\xC0\x8A)");                 // a line break in two bytes
  EXPECT_EQ(printable("\xE0\x82\x9B"), R"(\xE0\x82\x9B)");         // longer than it needs to be
  EXPECT_EQ(printable("\xED\xA0\x80"), R"(\xED\xA0\x80)");         // a surrogate
  EXPECT_EQ(printable("\xF4\x90\x80\x80"), R"(\xF4\x90\x80\x80)"); // beyond the last character
  EXPECT_EQ(printable("\xE2\x82"), R"(\xE2\x82)");                 // cut off
  EXPECT_EQ(printable("\xE2z\x1B"), R"(\xE2z\x1B)");
}

TEST(Printable, OfALongMessageTheMiddleIsLeftOut) {
  std::string line(4000, 'a');
  EXPECT_EQ(printableMessage(line), line);
  EXPECT_EQ(printableMessage(line + "\n  " + line), line + "\n  " + line);
  std::string name(20'000'000, 'n');
  EXPECT_EQ(printableMessage("x: tensor \"" + name + "\": unknown dtype"),
            "x: tensor \"" + std::string(2789, 'n') + " [... 19996227 bytes ...] " +
                std::string(984, 'n') + "\": unknown dtype");
  // Characters stay whole, wherever the cut is.
  for (size_t shift = 0; shift < 4; ++shift) {
    std::string letters(shift, 'a');
    for (int i = 0; i < 5000; ++i)
      letters += "🙂";
    EXPECT_EQ(printableMessage(letters).find("\\x"), std::string::npos) << shift;
  }
  std::string lines = "x";
  for (int i = 0; i < 2000; ++i)
    lines += "\n  y";
  std::string shown = printableMessage(lines);
  EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), 1000);
  EXPECT_TRUE(shown.ends_with("\n  y\n  [... 4004 bytes ...]")) << shown.substr(shown.size() - 40);
  // A value that a tool prints stays whole.
  EXPECT_EQ(printable(name).size(), name.size());
  EXPECT_EQ(printableLines(name).size(), name.size());
}

TEST(Printable, JsonStaysJson) {
  // Characters that writers leave as they are within strings have an escape that they know too.
  EXPECT_EQ(printableLines("{\n  \"name\": \"\\u001b\x7F\xC2\x9B\"\n}\n"),
            "{\n  \"name\": \"\\u001b\\u007F\\u009B\"\n}\n");
}

TEST(Printable, LinesStayWhereTheyAreTheTexts) {
  EXPECT_EQ(printableLines("a\tb\n\x1B[Kc\r\n"), "a\tb\n\\x1B[Kc\\r\n");
  EXPECT_EQ(printableMessage("no device moves:\n  device 0 waits\n  device 1 waits"),
            "no device moves:\n  device 0 waits\n  device 1 waits");
  EXPECT_EQ(printableMessage("no state \"w\nerror: fake\n\""), R"(no state "w\nerror: fake\n")");
}

} // namespace printableTest
