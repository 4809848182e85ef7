//===- StepFigure.cpp - Figures of a step --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/html/StepFigure.h"

#include "plan/PlanTypes.h"
#include "support/Format.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc {

// Sizes in pixels.
static constexpr double kLeft = 92, kRight = 12, kTop = 8;
static constexpr double kShown = kPictureWidth - kLeft - kRight;
static constexpr double kDigitWidth = 7;

StepFigure::StepFigure(const PageInput &input)
    : input(input), timeline(input.simulation.step.timeline) {
  chooseWindows();
  if (!knowsCollectives())
    return;
  size_t bars = 0;
  for (const StepWindow &window : parts)
    for (size_t p = 0; p < timeline.programs.size(); ++p)
      bars += barsOf(window, p).size();
  hasCollectives = bars > 0 && bars <= mostCollectives;
}

bool StepFigure::knowsCollectives() const {
  const auto &programs = input.simulation.step.collectives;
  return std::any_of(programs.begin(), programs.end(),
                     [](const auto &collectives) { return !collectives.empty(); });
}

void StepFigure::chooseWindows() {
  double step = input.simulation.stepSeconds;
  std::vector<double> starts;
  for (const std::vector<TaskInterval> &program : timeline.programs)
    for (const TaskInterval &interval : program)
      if (interval.seconds() > 0) // others are not drawn
        starts.push_back(interval.start);
  for (const TransferInterval &transfer : timeline.transfers)
    if (transfer.end > transfer.start)
      starts.push_back(transfer.start);
  if (starts.size() <= mostShapes) {
    parts = {{"", 0, step}};
    return;
  }
  std::sort(starts.begin(), starts.end());
  size_t each = mostShapes / 3, middle = starts.size() / 2 - each / 2;
  parts = {{"The begin", 0, starts[each]},
           {"A part of the middle", starts[middle], starts[middle + each]},
           {"The end", starts[starts.size() - each], step}};
}

bool StepFigure::isSmall() const { return timeline.programs.size() > 12; }
double StepFigure::pixelSeconds(const StepWindow &window) const {
  return window.seconds() / kShown;
}
double StepFigure::xOf(const StepWindow &window, double time) const {
  return kLeft + std::clamp((time - window.start) / window.seconds(), 0.0, 1.0) * kShown;
}
double StepFigure::yOf(size_t program) const {
  return kTop + static_cast<double>(program) * rowHeight();
}

std::vector<StepFigure::Bar> StepFigure::barsOf(const StepWindow &window, size_t program) const {
  std::vector<Bar> bars;
  for (const CollectiveInterval &interval : input.simulation.step.collectives[program]) {
    if (!window.shows(interval.start, interval.end))
      continue;
    if (!bars.empty() && bars.back().axes == interval.axes &&
        interval.start - bars.back().end < 0.5 * pixelSeconds(window)) {
      bars.back().end = std::max(bars.back().end, interval.end);
      ++bars.back().count;
      continue;
    }
    bars.push_back(
        {interval.start, interval.end, interval.axes, 1, interval.execution, interval.instruction});
  }
  return bars;
}

void StepFigure::write(HtmlWriter &page, const StepWindow &window) const {
  page.openPicture(kPictureWidth, bottom() + 26, describeTimeline(timeline),
                   fmt::format("Who works when from {} to {}: a row for each coordinate on the "
                               "pipeline axis, a box for each task",
                               formatDuration(window.start), formatDuration(window.end)),
                   "step");
  for (size_t p = 0; p < timeline.programs.size(); ++p) {
    page.element("text", stageName(input.simulation, p),
                 {{"class", isSmall() ? "e s" : "e"},
                  {"x", kLeft - 10},
                  {"y", yOf(p) + taskHeight() / 2 + 4}});
    page.empty("rect", {{"class", "idle"},
                        {"x", kLeft},
                        {"y", yOf(p)},
                        {"width", kShown},
                        {"height", taskHeight()}});
    std::vector<uint32_t> stages = timeline.stagesOf(p);
    for (const TaskInterval &interval : timeline.programs[p])
      if (window.shows(interval.start, interval.end))
        writeTask(page, window, p, interval, stages);
    if (hasCollectives)
      for (const Bar &bar : barsOf(window, p))
        writeBar(page, window, p, bar);
  }
  writeTransfers(page, window);
  addTimeAxis(page, window.start, window.end, kLeft, kShown, bottom() + 4);
  page.close();
}

void StepFigure::writeTask(HtmlWriter &page, const StepWindow &window, size_t program,
                           const TaskInterval &interval,
                           const std::vector<uint32_t> &stages) const {
  // The stages rise.
  auto chunk = static_cast<size_t>(std::lower_bound(stages.begin(), stages.end(), interval.stage) -
                                   stages.begin());
  double x = xOf(window, interval.start), width = xOf(window, interval.end) - x;
  page.open("rect", {{"class", taskStyle(interval.pass, chunk) + " g"},
                     {"x", x},
                     {"y", yOf(program)},
                     {"width", std::max(width, 0.3)},
                     {"height", taskHeight()}});
  std::string about = timeline.taskName(program, interval);
  if (interval.isPipelined())
    about = fmt::format("{} of stage {}, microbatch {}", name(interval.pass), interval.stage,
                        interval.microbatch);
  page.element("title", fmt::format("{}: {} from {}", about, formatDuration(interval.seconds()),
                                    formatDuration(interval.start)));
  page.close();
  std::string number = std::to_string(interval.microbatch);
  if (interval.isPipelined() && !isSmall() &&
      width >= 6 + kDigitWidth * static_cast<double>(number.size()))
    page.element(
        "text", number,
        {{"class", "w"}, {"x", x + width / 2}, {"y", yOf(program) + taskHeight() / 2 + 4}});
}

void StepFigure::writeBar(HtmlWriter &page, const StepWindow &window, size_t program,
                          const Bar &bar) const {
  double x = xOf(window, bar.start);
  page.open("rect", {{"class", axesStyle(bar.axes)},
                     {"x", x},
                     {"y", yOf(program) + taskHeight() + 1},
                     {"width", std::max(xOf(window, bar.end) - x, 0.4)},
                     {"height", barHeight()}});
  std::string about = fmt::format("{} collectives", bar.count);
  if (bar.count == 1) {
    const plan::Program &plan = input.plan.programs(static_cast<int>(program));
    auto task = static_cast<int>(plan.schedule(static_cast<int>(bar.execution)).task());
    about =
        name(kindOf(plan.tasks(task).instructions(static_cast<int>(bar.instruction)).collective()));
  }
  page.element("title",
               fmt::format("{} over {}: {} from {}", about, axesName(input, bar.axes),
                           formatDuration(bar.end - bar.start), formatDuration(bar.start)));
  page.close();
}

/// Draws each transfer from the lower edge of one row to the upper edge of the other, or the other
/// way round.
void StepFigure::writeTransfers(HtmlWriter &page, const StepWindow &window) const {
  for (const TransferInterval &transfer : timeline.transfers) {
    if (!window.shows(transfer.start, transfer.end))
      continue;
    bool down = transfer.to > transfer.from;
    page.open("line", {{"class", "move"},
                       {"x1", xOf(window, transfer.start)},
                       {"y1", yOf(transfer.from) + (down ? taskHeight() : 0)},
                       {"x2", xOf(window, transfer.end)},
                       {"y2", yOf(transfer.to) + (down ? 0 : taskHeight())}});
    page.element("title",
                 fmt::format("microbatch {} to {}: {}, {} from {}", transfer.microbatch,
                             stageName(input.simulation, transfer.to), formatBytes(transfer.bytes),
                             formatDuration(transfer.end - transfer.start),
                             formatDuration(transfer.start)));
    page.close();
  }
}

} // namespace dtc
