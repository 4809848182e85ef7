//===- TimesSection.cpp - Section on the time of a step -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/SimulationReport.h"
#include "report/html/PageSections.h"
#include "support/Format.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace dtc {

namespace {

/// A part of a stage's step.
struct TimeShare {
  std::string style, what;
  std::vector<double> seconds; // by stage

  double most() const {
    return seconds.empty() ? 0 : *std::max_element(seconds.begin(), seconds.end());
  }
};

} // namespace

/// The parts that add up to the step, without those that no stage has.
static std::vector<TimeShare> partsOf(const PageInput &input) {
  const Simulation &simulation = input.simulation;
  std::vector<TimeShare> parts;
  for (size_t c = 0; c < kNumKernelClasses; ++c)
    parts.push_back({fmt::format("k{}", c),
                     c == static_cast<size_t>(KernelClass::Other)
                         ? "other kernels"
                         : name(static_cast<KernelClass>(c)),
                     {}});
  parts.push_back({"k5", "slowed by communication", {}});
  size_t firstExposed = parts.size();
  std::map<std::string, size_t> byAxes; // axes that the compiler took apart count as one
  for (size_t a = 0; a < simulation.axes.size(); ++a)
    if (byAxes.try_emplace(axesName(input, a), firstExposed + byAxes.size()).second)
      parts.push_back({axesStyle(a), "waits for " + axesName(input, a), {}});
  size_t transfers = parts.size();
  parts.push_back({"tr", "waits for transfers", {}});
  parts.push_back({"ho", "waits for the host", {}});
  parts.push_back({"idle", "idle", {}});
  for (TimeShare &part : parts)
    part.seconds.resize(simulation.stages.size());
  for (size_t p = 0; p < simulation.stages.size(); ++p) {
    const StageSimulation &stage = simulation.stages[p];
    double kernels = 0;
    for (size_t c = 0; c < kNumKernelClasses; ++c)
      kernels += parts[c].seconds[p] = stage.kernels[c];
    double slowed = stage.times.computing - kernels;
    // Sums of many summands differ in their last digits.
    parts[kNumKernelClasses].seconds[p] = slowed > 1e-9 * stage.times.computing ? slowed : 0;
    for (size_t a = 0; a < stage.times.exposed.size(); ++a)
      parts[byAxes.at(axesName(input, a))].seconds[p] += stage.times.exposed[a];
    parts[transfers].seconds[p] = stage.times.exposedTransfers;
    parts[transfers + 1].seconds[p] = stage.times.exposedHost;
    parts[transfers + 2].seconds[p] = stage.times.idle;
  }
  std::erase_if(parts, [](const TimeShare &part) { return part.most() <= 0; });
  return parts;
}

static void drawBars(HtmlWriter &page, const PageInput &input,
                     const std::vector<TimeShare> &parts) {
  const Simulation &simulation = input.simulation;
  constexpr double left = 92, width = kPictureWidth - left - 12;
  size_t rows = simulation.stages.size();
  bool isSmall = rows > 16;
  double bar = isSmall ? 10 : 24, row = bar + (isSmall ? 3 : 8);
  page.openPicture(kPictureWidth, static_cast<double>(rows) * row + 24,
                   "Where the time of a step goes, by stage",
                   "A bar for each coordinate on the pipeline axis, as long as the step, in parts",
                   "times");
  for (size_t p = 0; p < rows; ++p) {
    double y = static_cast<double>(p) * row, x = left;
    page.element("text", stageName(simulation, p),
                 {{"class", isSmall ? "e s" : "e"}, {"x", left - 10}, {"y", y + bar / 2 + 4}});
    for (const TimeShare &part : parts) {
      double share = part.seconds[p] / simulation.stepSeconds, length = share * width;
      if (length <= 0.02)
        continue;
      page.open(
          "rect",
          {{"class", part.style + " g"}, {"x", x}, {"y", y}, {"width", length}, {"height", bar}});
      page.element("title", fmt::format("{}, {}: {} ({})", stageName(simulation, p), part.what,
                                        formatDuration(part.seconds[p]), percent(share)));
      page.close();
      if (!isSmall && length > 48)
        page.element("text", percent(share),
                     {{"class", part.style == "idle" ? "f s m" : "w ws"},
                      {"x", x + length / 2},
                      {"y", y + bar / 2 + 4}});
      x += length;
    }
  }
  double y = static_cast<double>(rows) * row + 12;
  for (int i = 0; i <= 4; ++i)
    page.element("text", fmt::format("{} %", 25 * i),
                 {{"class", i == 4   ? "f s e"
                            : i == 0 ? "f s"
                                     : "f s m"},
                  {"x", left + width * i / 4},
                  {"y", y}});
  page.close();
}

void addTimes(HtmlWriter &page, const PageInput &input) {
  const Simulation &simulation = input.simulation;
  if (!isDrawable(simulation))
    return;
  openSection(page, "times", "Where the time goes");
  page.element("p",
               "A device computes, or waits: for a collective that no work hides, for a message "
               "that is on its way, or, idle, for others and for the end of the step.");
  std::vector<TimeShare> parts = partsOf(input);
  drawBars(page, input, parts);
  std::vector<LegendEntry> entries;
  std::vector<std::string> columns = {"stage"};
  for (const TimeShare &part : parts) {
    entries.push_back({part.style, part.what});
    columns.push_back("#" + part.what);
  }
  addLegend(page, entries);
  openStageTable(page, simulation, "A step, by stage", columns);
  for (size_t p = 0; p < simulation.stages.size(); ++p) {
    page.open("tr").element("th", stageName(simulation, p), {{"scope", "row"}});
    for (const TimeShare &part : parts)
      page.number(part.seconds[p] > 0 ? formatDuration(part.seconds[p]) : "-");
    page.close();
  }
  if (simulation.stages.size() > 1) {
    page.open("tr").element("th", "mean", {{"scope", "row"}});
    for (const TimeShare &part : parts) {
      double sum = 0;
      for (double seconds : part.seconds)
        sum += seconds;
      page.number(percent(sum / static_cast<double>(part.seconds.size()) / simulation.stepSeconds));
    }
    page.close();
  }
  closeStageTable(page, simulation);
  page.close();
}

} // namespace dtc
