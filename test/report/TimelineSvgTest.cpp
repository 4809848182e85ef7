//===- TimelineSvgTest.cpp - Timelines as figures -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/TimelineSvg.h"

#include "simulator/PlanSimulation.h"
#include "test/lib/plans/Expect.h"
#include "test/report/SchedulePlans.h"

#include <gtest/gtest.h>
#include <regex>

namespace timelineSvgTest {

using namespace dtc;
using namespace dtc::runtime::testing;

static Timeline timelineOf(const std::shared_ptr<plan::Plan> &plan) {
  Expected<Timeline> timeline = simulatePlan(*plan);
  EXPECT_TRUE(timeline) << timeline.error().message;
  return timeline ? *timeline : Timeline();
}

static size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

/// The error of a document as XML, as far as figures use it; empty if there is none.
static std::string xmlProblem(const std::string &text) {
  std::vector<std::string> open;
  static const std::regex tag(R"re(^(/?)([A-Za-z]+)((?: [A-Za-z0-9:-]+="[^"<]*")*)(/?)$)re");
  static const std::regex reference("&(?!(amp|lt|gt|quot);)");
  if (!text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
    return "no declaration";
  if (std::regex_search(text, reference))
    return "a bare &";
  for (size_t at = text.find('<', 2); at != std::string::npos; at = text.find('<', at + 1)) {
    size_t end = text.find('>', at);
    std::string inside = text.substr(at + 1, end - at - 1);
    std::smatch match;
    if (end == std::string::npos || !std::regex_match(inside, match, tag))
      return "no tag: " + inside;
    if (match[1].length() > 0) {
      if (open.empty() || open.back() != match[2])
        return "closes " + match[2].str();
      open.pop_back();
    } else if (match[4].length() == 0) {
      open.push_back(match[2]);
    }
  }
  return open.empty() ? "" : "leaves open " + open.back();
}

TEST(TimelineSvg, BoxesTransfersAndFigures) {
  SchedulePlanShape shape{.devices = 4, .microbatches = 8, .backward = 2};
  std::string svg = timelineToSvg(timelineOf(oneForwardOneBackwardPlan(shape)));
  EXPECT_EQ(xmlProblem(svg), "");
  EXPECT_EQ(count(svg, "<g class=\"forward\">"), 32u);
  EXPECT_EQ(count(svg, "<g class=\"backward\">"), 32u);
  EXPECT_EQ(count(svg, "<g class=\"transfer\">"), 2u * 3 * 8);
  EXPECT_EQ(count(svg, "<rect class=\"waits\""), 4u);
  EXPECT_EQ(count(svg, "fill=\"#ffffff\">7</text>"), 8u); // the number of the last microbatch
  for (const char *part :
       {"a chain, 1f1b: 4 stages on 4 devices (pp), 8 microbatches", "bubble 27.3% of 33.0 s",
        ">in flight: 4<", ">in flight: 1<", ">pp=3<", ">forward</text>", ">backward</text>",
        "<title>forward.0, microbatch 2, forward of stage 0: 2.0 s to 3.0 s (1.0 s)</title>",
        "<title>microbatch 0 from pp=0 to 1, 32 B: 1.0 s to 1.0 s (channel 1)</title>"})
    EXPECT_TRUE(contains(svg, part));
  EXPECT_FALSE(contains(svg, ">weight<"));
  EXPECT_EQ(svg, timelineToSvg(timelineOf(oneForwardOneBackwardPlan(shape))));
}

TEST(TimelineSvg, ChunksHaveShades) {
  std::string svg =
      timelineToSvg(timelineOf(gpipePlan({.devices = 2, .chunks = 2, .microbatches = 2})));
  EXPECT_EQ(xmlProblem(svg), "");
  EXPECT_TRUE(contains(svg, ">forward, chunk 1</text>"));
  EXPECT_TRUE(contains(svg, ">in flight: 2, 2<"));
}

TEST(TimelineSvg, NamesFromFiles) {
  auto plan = gpipePlan({.devices = 2});
  plan->set_model("<a & b> \"\xff\x01\"");
  plan->mutable_pipeline()->set_schedule("</svg>");
  plan->mutable_axes(0)->set_name("p&p");
  std::string svg = timelineToSvg(timelineOf(plan));
  EXPECT_EQ(xmlProblem(svg), "");
  EXPECT_TRUE(contains(svg, "&lt;a &amp; b&gt; &quot;\\xFF\\x01&quot;, &lt;/svg&gt;"));
  EXPECT_TRUE(contains(svg, ">p&amp;p=1<"));
}

TEST(TimelineSvg, NothingToDraw) {
  std::string svg = timelineToSvg(timelineOf(gpipePlan({.forward = 0, .backward = 0})));
  EXPECT_EQ(xmlProblem(svg), "");
  EXPECT_FALSE(contains(svg, "nan") || contains(svg, "inf\""));
}

} // namespace timelineSvgTest
