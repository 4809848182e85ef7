//===- PageSections.cpp - Common elements of HTML sections -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/html/PageSections.h"

#include "plan/ParentAxes.h"
#include "report/SvgStyle.h"
#include "support/Format.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace dtc {

bool isDrawable(const Simulation &simulation) {
  // From a picosecond to some ten million years, so that no scale leaves the range of numbers.
  return simulation.stepSeconds >= 1e-12 && simulation.stepSeconds <= 1e15;
}

void openSection(HtmlWriter &page, const char *id, const char *heading) {
  page.open("section", {{"id", id}}).element("h2", heading);
}

static bool hasManyStages(const Simulation &simulation) { return simulation.stages.size() > 16; }

void openStageTable(HtmlWriter &page, const Simulation &simulation, const char *caption,
                    const std::vector<std::string> &columns) {
  if (hasManyStages(simulation))
    page.open("details").element("summary",
                                 fmt::format("A table of all {} stages", simulation.stages.size()));
  page.openTable(caption, columns);
}

void closeStageTable(HtmlWriter &page, const Simulation &simulation) {
  page.closeTable();
  if (hasManyStages(simulation))
    page.close();
}

void addLegend(HtmlWriter &page, const std::vector<LegendEntry> &entries) {
  page.open("ul", {{"class", "legend"}});
  for (const LegendEntry &entry : entries) {
    page.open("li").open("svg", {{"viewBox", "0 0 13 13"}, {"aria-hidden", "true"}});
    page.empty("rect", {{"class", entry.style}, {"width", 13}, {"height", 13}, {"rx", 2}});
    page.close().text(entry.meaning).close();
  }
  page.close();
}

void addTimeAxis(HtmlWriter &page, double start, double end, double left, double width, double y) {
  for (double time : roundTicks(start, end, 1, 8)) {
    double x = left + width * (time - start) / (end - start);
    page.empty("line", {{"class", "l"}, {"x1", x}, {"x2", x}, {"y1", y - 6}, {"y2", y}});
    page.element("text", formatDuration(time),
                 {{"class", x + 30 > left + width ? "f s e" : "f s m"},
                  {"x", std::min(x, left + width)},
                  {"y", y + 14}});
  }
}

std::string stageName(const Simulation &simulation, size_t program) {
  const std::string &axis = simulation.step.timeline.axis;
  return axis.empty() ? "all devices" : fmt::format("{}={}", axis, program);
}

std::vector<double> roundTicks(double lowest, double highest, double unit, int about) {
  double least = (highest - lowest) / unit / about;
  double step = std::pow(10, std::floor(std::log10(least)));
  for (double factor : {2.0, 2.5, 2.0}) // 2, 5, 10
    if (step < least)
      step *= factor;
  std::vector<double> ticks;
  double first = std::ceil(lowest / unit / step - 1e-9);
  for (int i = 0; i <= about && (first + i) * step * unit <= highest * (1 + 1e-9); ++i)
    ticks.push_back((first + i) * step * unit);
  return ticks;
}

std::string largeNumber(double value) {
  if (value >= 1e15 || value < 1e6)
    return value < 1e6 ? withCommas(value) : fmt::format("{:.4g}", value);
  auto [unit, name] = value >= 1e12  ? std::pair(1e12, "trillion")
                      : value >= 1e9 ? std::pair(1e9, "billion")
                                     : std::pair(1e6, "million");
  return fmt::format("{:.4g} {}", value / unit, name);
}

std::string withCommas(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (auto i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<size_t>(i), ",");
  return digits;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string taskStyle(std::optional<StagePass> pass, size_t chunk) {
  return pass ? fmt::format("{}{}", "fbv"[indexOf(*pass)], chunk % kNumTaskShades) : "o";
}

std::string taskStyleRules() {
  std::string rules;
  for (std::optional<StagePass> pass : kTaskPasses)
    for (size_t chunk = 0; chunk < (pass ? kNumTaskShades : 1); ++chunk)
      rules += fmt::format(".{}{{fill:{}}}\n", taskStyle(pass, chunk), taskColour(pass, chunk));
  return rules;
}

std::string coordinateStyle(int64_t program) { return fmt::format("c{}", program % 8); }
std::string axesStyle(size_t axes) { return fmt::format("a{}", axes % 6); }

std::string axesName(const PageInput &input, size_t axes) {
  return fmt::format("{}", fmt::join(parentAxes(input.plan, input.simulation.axes[axes]), "+"));
}

} // namespace dtc
