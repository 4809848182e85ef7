//===- TimelineReport.cpp - Timelines as text and as JSON -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/TimelineReport.h"

#include "support/Format.h"
#include "support/Printable.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <string_view>

namespace dtc {

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {

class TimelineText {
public:
  TimelineText(const Timeline &timeline, size_t columns)
      : timeline(timeline), columns(std::max(columns, kFewestTimelineColumns)),
        shown(timeline.shown()) {}

  std::string write() {
    if (timeline.isDrawable())
      writePicture();
    else
      line("the plan does not say how long anything takes: there is nothing to draw");
    line("");
    writeFigures();
    return std::move(text);
  }

private:
  /// More bands than this are no figure any more; then labels are cut.
  static constexpr double mostBands = 8;

  /// Names are a plan's, so that a line may hold anything.
  template <typename... T> void line(fmt::format_string<T...> format, T &&...values) {
    text += printable(fmt::format(format, std::forward<T>(values)...)) + '\n';
  }

  std::string rowLabel(size_t program) const {
    return fmt::format("{}={}", timeline.axis.empty() ? "device" : timeline.axis, program);
  }

  void writePicture() {
    size_t margin = 0;
    for (size_t p = 0; p < timeline.programs.size(); ++p)
      margin = std::max(margin, rowLabel(p).size());
    // Names of axes are the user's; the figure matters more.
    margin = std::min(margin, columns / 3) + 2;
    size_t room = columns - margin;
    Scale scale = chooseScale(room);
    auto total = static_cast<size_t>(std::lround(shown.seconds() * scale.perSecond));
    // Bands of nearly the same length.
    size_t bands = (total + scale.band - 1) / scale.band, even = (total + bands - 1) / bands;
    scale.band = (even + scale.unit - 1) / scale.unit * scale.unit;
    std::vector<std::string> rows;
    for (size_t p = 0; p < timeline.programs.size(); ++p)
      rows.push_back(drawRow(p, scale.perSecond, total));
    for (size_t from = 0; from < total; from += scale.band) {
      auto timeOf = [&](size_t column) {
        return shown.start + static_cast<double>(column) / scale.perSecond;
      };
      if (from > 0)
        line("");
      line("{:{}}{} to {}", "", margin, formatDuration(timeOf(from)),
           formatDuration(std::min(shown.end, timeOf(from + scale.band))));
      for (size_t p = 0; p < rows.size(); ++p)
        line("{:<{}.{}}  {}", rowLabel(p), margin - 2, margin - 2,
             std::string_view(rows[p]).substr(from, scale.band));
    }
  }

  struct Scale {
    double perSecond = 0; // columns
    size_t unit = 1;      // columns of the shortest work, if they are whole
    size_t band = 0;      // columns that a band may have
  };

  /// As many columns as fill the width of the figure, or more if the labels need them. If there are
  /// enough, the shortest work takes whole columns, so that work of the same length looks the same.
  Scale chooseScale(size_t room) const {
    double shortest = shown.seconds(), longest = 0;
    for (const std::vector<TaskInterval> &program : timeline.programs)
      for (const TaskInterval &interval : program)
        if (interval.isPipelined() && interval.seconds() > 0) {
          shortest = std::min(shortest, interval.seconds());
          longest = std::max(longest, static_cast<double>(label(interval, {}).size()));
        }
    double fitting = static_cast<double>(room) / shown.seconds();
    double perSecond = std::clamp(longest / shortest, fitting, mostBands * fitting);
    // A thousandth is for the rounding errors of sums of seconds.
    double unit = std::floor(shortest * perSecond + 1e-3);
    if (unit < 2)
      return {perSecond, 1, room};
    size_t columnsOfUnit = std::min(static_cast<size_t>(unit), room);
    return {unit / shortest, columnsOfUnit, room - room % columnsOfUnit};
  }

  /// "F12"; "f12" for every second of the stages of its device. Other work is "=".
  static std::string label(const TaskInterval &interval, const std::vector<uint32_t> &stages) {
    if (!interval.isPipelined())
      return "=";
    char letter = "FBW"[indexOf(*interval.pass)];
    auto chunk =
        std::lower_bound(stages.begin(), stages.end(), interval.stage) - stages.begin(); // rising
    if (chunk % 2 == 1)
      letter = static_cast<char>(std::tolower(letter));
    return fmt::format("{}{}", letter, interval.microbatch);
  }

  std::string drawRow(size_t program, double perSecond, size_t total) const {
    std::string row(total, '.');
    std::vector<uint32_t> stages = timeline.stagesOf(program);
    auto column = [&](double time) {
      double at = std::clamp(time - shown.start, 0.0, shown.seconds()) * perSecond;
      return std::min(static_cast<size_t>(std::lround(at)), total);
    };
    for (const TaskInterval &interval : timeline.programs[program]) {
      size_t from = column(interval.start), to = column(interval.end);
      std::string box = label(interval, stages);
      if (box.size() > to - from)
        box.resize(1); // a part of a number would be another number
      box.resize(to - from, interval.isPipelined() ? '-' : '=');
      row.replace(from, to - from, box);
    }
    return row;
  }

  /// A label and a text after it, broken at spaces where it is too long for one line.
  void field(std::string_view name, std::string_view value) {
    constexpr size_t valueColumn = 12;
    std::string current = fmt::format("{:<{}}", name, valueColumn);
    while (!value.empty()) {
      size_t space = std::min(value.find(' '), value.size());
      if (current.size() > valueColumn && current.size() + 1 + space > columns) {
        line("{}", current);
        current.assign(valueColumn, ' ');
      }
      current += current.size() > valueColumn ? " " : "";
      current += value.substr(0, space);
      value.remove_prefix(std::min(space + 1, value.size()));
    }
    line("{}", current);
  }

  void writeFigures() {
    TimeSpan step = timeline.step(), inner = timeline.pipelined();
    field("schedule", describeTimeline(timeline));
    if (timeline.isDrawable())
      field("a step",
            formatDuration(step.seconds()) +
                (shown.seconds() < step.seconds() ? "; the figure shows its pipelined part" : ""));
    if (inner.seconds() > 0)
      field("bubble", fmt::format("{:.1f}% of the {} from the first forward to the last backward",
                                  100 * timeline.bubbleShare(), formatDuration(inner.seconds())));
    std::vector<std::string> stages;
    for (const StageInFlight &stage : timeline.inFlight())
      stages.push_back(fmt::format("stage {}: {}", stage.stage, stage.microbatches));
    if (!stages.empty())
      field("in flight", fmt::format("most microbatches at once: {}", fmt::join(stages, ", ")));
    writeLegend();
  }

  void writeLegend() {
    std::vector<std::string> parts;
    for (std::optional<StagePass> pass : kTaskPasses)
      if (draws(pass))
        parts.push_back(fmt::format("{} {}", pass ? "FBW"[indexOf(*pass)] : '=', name(pass)));
    if (parts.empty())
      return;
    parts.push_back(". waits");
    if (timeline.chunks() > 1)
      parts.push_back("small: every second stage of a device");
    field("letters", fmt::format("{}", fmt::join(parts, ", ")));
  }

  bool draws(std::optional<StagePass> pass) const {
    for (const std::vector<TaskInterval> &program : timeline.programs)
      for (const TaskInterval &interval : program)
        if (interval.pass == pass && std::min(interval.end, shown.end) > interval.start &&
            interval.end > shown.start)
          return true;
    return false;
  }

  const Timeline &timeline;
  size_t columns;
  TimeSpan shown;
  std::string text;
};

} // namespace

std::string formatTimeline(const Timeline &timeline, size_t columns) {
  return TimelineText(timeline, columns).write();
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

using Json = nlohmann::ordered_json;

static Json toJson(const TaskInterval &interval, const std::string &task) {
  Json json = {{"execution", interval.execution},
               {"task", task},
               {"microbatch", interval.microbatch},
               {"kind", name(interval.pass)},
               {"stage", interval.stage},
               {"start", interval.start},
               {"end", interval.end}};
  if (!interval.isPipelined())
    json.erase("stage");
  return json;
}

Json timelineToJson(const Timeline &timeline) {
  TimeSpan step = timeline.step(), inner = timeline.pipelined();
  Json devices = Json::array(), transfers = Json::array(), inFlight = Json::array();
  for (size_t p = 0; p < timeline.programs.size(); ++p) {
    Json intervals = Json::array();
    for (const TaskInterval &interval : timeline.programs[p])
      intervals.push_back(toJson(interval, timeline.taskName(p, interval)));
    devices.push_back({{"coordinate", p},
                       {"stages", timeline.stagesOf(p)},
                       {"busy_seconds", timeline.busySeconds(p, step)},
                       {"intervals", intervals}});
  }
  for (const TransferInterval &transfer : timeline.transfers)
    transfers.push_back({{"channel", transfer.channel},
                         {"microbatch", transfer.microbatch},
                         {"from", transfer.from},
                         {"to", transfer.to},
                         {"bytes", transfer.bytes},
                         {"start", transfer.start},
                         {"end", transfer.end}});
  for (const StageInFlight &stage : timeline.inFlight())
    inFlight.push_back({{"stage", stage.stage},
                        {"coordinate", stage.program},
                        {"microbatches", stage.microbatches}});
  return {{"schedule", timeline.schedule},
          {"axis", timeline.axis},
          {"stages", timeline.stages},
          {"microbatches", timeline.microbatches},
          {"seconds", step.seconds()},
          {"pipelined", {{"start", inner.start}, {"end", inner.end}}},
          {"bubble_share", timeline.bubbleShare()},
          {"in_flight", inFlight},
          {"devices", devices},
          {"transfers", transfers}};
}

} // namespace dtc
