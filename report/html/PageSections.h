//===- PageSections.h - Sections of the HTML report --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_HTML_PAGESECTIONS_H
#define DTC_REPORT_HTML_PAGESECTIONS_H

#include "report/html/HtmlWriter.h"
#include "report/html/SimulationPage.h"
#include "simulator/cluster/Topology.h"

#include <string>
#include <vector>

namespace dtc {

/// The input of sections.
struct PageInput {
  const plan::Plan &plan;
  const Topology &topology;
  const Simulation &simulation;
  const SimulationPageOptions &options;
};

/// The width of figures in pixels.
inline constexpr double kPictureWidth = 1120;

// Each adds a section. A section without content is left out.

void addHeadline(HtmlWriter &page, const PageInput &input);
void addStrategy(HtmlWriter &page, const PageInput &input);
void addTopology(HtmlWriter &page, const PageInput &input);
void addStep(HtmlWriter &page, const PageInput &input);
void addTimes(HtmlWriter &page, const PageInput &input);
void addMemory(HtmlWriter &page, const PageInput &input);
void addCommunication(HtmlWriter &page, const PageInput &input);
void addAlternatives(HtmlWriter &page, const PageInput &input);
void addCosts(HtmlWriter &page, const PageInput &input);

/// Whether the step has a length that can be drawn; no plan's estimates guarantee that.
bool isDrawable(const Simulation &simulation);

/// Begins a section with its heading; to be closed.
void openSection(HtmlWriter &page, const char *id, const char *heading);

/// Folds the following table, with a row for each stage, under a line that opens it where there are
/// many; closeStageTable() ends both.
void openStageTable(HtmlWriter &page, const Simulation &simulation, const char *caption,
                    const std::vector<std::string> &columns);
void closeStageTable(HtmlWriter &page, const Simulation &simulation);

/// One entry of the legend under a figure: a box of a class of the style, and its meaning.
struct LegendEntry {
  std::string style;
  std::string meaning;
};
void addLegend(HtmlWriter &page, const std::vector<LegendEntry> &entries);

/// Round times under a figure whose part from `left` on is a part of the step, from `start` to
/// `end` in seconds.
void addTimeAxis(HtmlWriter &page, double start, double end, double left, double width, double y);

/// "pp=1": a coordinate on the pipeline axis; "all devices" without one.
std::string stageName(const Simulation &simulation, size_t program);
/// Round numbers from `lowest` to `highest`, which is more, at most `about` + 1: multiples of 1, 2
/// or 5 times a power of ten of `unit`.
std::vector<double> roundTicks(double lowest, double highest, double unit, int about);
/// "12,345".
std::string withCommas(double value);
/// "300 billion", "1.5 million", "12,345".
std::string largeNumber(double value);
/// "27.4 %".
std::string percent(double share);
/// The class of the style for the colour of a task, as in TimelineSvg's figures; the rules of all
/// of these classes.
std::string taskStyle(std::optional<StagePass> pass, size_t chunk);
std::string taskStyleRules();
/// The class of the style for the colour of a pipeline coordinate, and of a set of axes.
std::string coordinateStyle(int64_t program);
std::string axesStyle(size_t axes);
/// The axes that a collective is over, as the user knows them: "dp+tp".
std::string axesName(const PageInput &input, size_t axes);

} // namespace dtc

#endif // DTC_REPORT_HTML_PAGESECTIONS_H
