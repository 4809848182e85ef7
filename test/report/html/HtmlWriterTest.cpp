//===- HtmlWriterTest.cpp - Well-formed pages ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/html/HtmlWriter.h"
#include "report/SvgStyle.h"

#include <gtest/gtest.h>
#include <limits>

namespace htmlWriterTest {

using namespace dtc;

TEST(EscapeXml, LeavesNoMarkup) {
  EXPECT_EQ(escapeXml("</script><script>alert('&')"),
            "&lt;/script&gt;&lt;script&gt;alert('&amp;')");
  EXPECT_EQ(escapeXml("x\" onload=\"y"), "x&quot; onload=&quot;y");
  EXPECT_EQ(escapeXml("h.3.attn, 12 µs"), "h.3.attn, 12 µs");
}

TEST(EscapeXml, ShowsWhatATerminalWould) {
  EXPECT_EQ(escapeXml(std::string("a\0b\x01\x7f\tc\n", 8)), R"(a\x00b\x01\u007F\tc\n)");
  EXPECT_EQ(escapeXml("a\u202Ez\u2066"), R"(a\u202Ez\u2066)"); // directions of writing
  EXPECT_EQ(escapeXml("a\xC2\x85z"), R"(a\u0085z)");           // a control character of two bytes
  EXPECT_EQ(escapeXml("a\xEF\xBF\xBFz"), R"(a\uFFFFz)");
  EXPECT_EQ(escapeXml("a\xC2\xA0z"), "a\xC2\xA0z"); // a space that does not break is fine
  EXPECT_EQ(escapeXml("a\xFFz"), R"(a\xFFz)");      // no UTF-8
  EXPECT_EQ(escapeXml("a\xC2"), R"(a\xC2)");        // half of a character
}

TEST(SvgNumber, IsShortAndFinite) {
  EXPECT_EQ(svgNumber(3), "3");
  EXPECT_EQ(svgNumber(0.5), "0.5");
  EXPECT_EQ(svgNumber(1.0 / 3), "0.33");
  EXPECT_EQ(svgNumber(100), "100");
  EXPECT_EQ(svgNumber(-0.001), "0");
  EXPECT_EQ(svgNumber(std::numeric_limits<double>::infinity()), "0");
  EXPECT_EQ(svgNumber(std::numeric_limits<double>::quiet_NaN()), "0");
}

TEST(HtmlWriter, NestsAndEscapes) {
  HtmlWriter page;
  page.open("p", {{"class", "a\"b"}, {"data-n", 3}, {"data-x", 1.25}});
  page.text("1 < 2").empty("br").element("code", "&").close();
  EXPECT_EQ(page.take(), "<!DOCTYPE html>\n<p class=\"a&quot;b\" data-n=\"3\" data-x=\"1.25\">"
                         "1 &lt; 2<br/>\n<code>&amp;</code></p>\n");
}

TEST(HtmlWriter, NamesItsPictures) {
  HtmlWriter page;
  for (const char *title : {"one", "two"})
    page.openPicture(100, 50.5, title, "about it", "k").close();
  std::string text = page.take();
  EXPECT_NE(text.find("aria-labelledby=\"title1 about1\" viewBox=\"0 0 100 50.5\""),
            std::string::npos);
  EXPECT_NE(text.find("<title id=\"title2\">two</title>"), std::string::npos);
  EXPECT_NE(text.find("<desc id=\"about2\">about it</desc>"), std::string::npos);
}

TEST(HtmlWriter, MakesTablesWithHeads) {
  HtmlWriter page;
  page.openTable("all", {"name", "#bytes"}).open("tr").element("td", "a").number("3").close();
  page.closeTable();
  std::string text = page.take();
  EXPECT_NE(text.find("<caption>all</caption>"), std::string::npos);
  EXPECT_NE(text.find("<th scope=\"col\" class=\"t\">name</th>"), std::string::npos);
  EXPECT_NE(text.find("<th scope=\"col\" class=\"n\">bytes</th>"), std::string::npos);
  EXPECT_TRUE(text.ends_with("</tbody>\n</table>\n</div>\n"));
}

} // namespace htmlWriterTest
