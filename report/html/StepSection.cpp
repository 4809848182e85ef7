//===- StepSection.cpp - Section on the schedule of a step ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/html/StepFigure.h"

#include "support/Format.h"

#include <fmt/format.h>
#include <set>

namespace dtc {

static void addStepLegend(HtmlWriter &page, const PageInput &input, bool hasCollectives) {
  const Timeline &timeline = input.simulation.step.timeline;
  std::set<std::optional<StagePass>> passes;
  for (const std::vector<TaskInterval> &program : timeline.programs)
    for (const TaskInterval &interval : program)
      passes.insert(interval.pass);
  std::vector<LegendEntry> entries;
  size_t chunks = std::clamp<size_t>(timeline.chunks(), 1, 4);
  for (std::optional<StagePass> pass : kTaskPasses)
    for (size_t c = 0; passes.contains(pass) && c < (pass ? chunks : 1); ++c)
      entries.push_back({taskStyle(pass, c), chunks > 1 && pass
                                                 ? fmt::format("{}, chunk {}", name(pass), c)
                                                 : name(pass)});
  if (hasCollectives)
    for (size_t a = 0; a < input.simulation.axes.size(); ++a)
      entries.push_back({axesStyle(a), "collectives over " + axesName(input, a)});
  if (!timeline.transfers.empty())
    entries.push_back({"tm", "transfer between stages"});
  entries.push_back({"idle", "waits"});
  addLegend(page, entries);
}

void addStep(HtmlWriter &page, const PageInput &input) {
  const Simulation &simulation = input.simulation;
  const Timeline &timeline = simulation.step.timeline;
  openSection(page, "step", "The step");
  page.element(
      "p", fmt::format("{}. A row is one device of those with its coordinate; numbers in boxes are "
                       "microbatches. Point at a box for its times.",
                       describeTimeline(timeline)));
  if (!isDrawable(simulation)) {
    page.element("p", "The step takes no time, or an absurd one, and cannot be drawn.",
                 {{"class", "note"}});
    page.close();
    return;
  }
  StepFigure picture(input);
  page.open("p", {{"class", "zoom"}, {"data-of", "steps"}, {"hidden", "hidden"}});
  page.text("Width").close();
  page.open("div", {{"id", "steps"}});
  for (const StepWindow &window : picture.windows()) {
    if (!window.what.empty())
      page.element("h3", fmt::format("{}: {} to {}", window.what, formatDuration(window.start),
                                     formatDuration(window.end)));
    page.open("div", {{"class", "scroll"}});
    picture.write(page, window);
    page.close();
  }
  page.close();
  addStepLegend(page, input, picture.drawsCollectives());
  if (picture.windows().size() > 1)
    page.element("p",
                 "The step has more tasks than a page can show: its begin, a part of its middle "
                 "and its end are drawn. dtc-plan simulate --trace writes all of it.",
                 {{"class", "note"}});
  if (!picture.drawsCollectives() && !simulation.axes.empty())
    page.element("p",
                 !picture.knowsCollectives()
                     ? "Collectives are not drawn: the simulation did not keep their times."
                     : "Collectives are not drawn: there are too many.",
                 {{"class", "note"}});
  page.close();
}

} // namespace dtc
