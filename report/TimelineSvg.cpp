//===- TimelineSvg.cpp - Timelines as figures -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/TimelineSvg.h"

#include "report/SvgStyle.h"
#include "support/Format.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>

namespace dtc {

namespace {

class SvgWriter {
public:
  explicit SvgWriter(const Timeline &timeline) : timeline(timeline), shown(timeline.shown()) {
    if (!timeline.isDrawable())
      return;
    width = std::clamp(shown.seconds() * pixelsForLabels(), fewestPixels, mostPixels);
    perSecond = width / shown.seconds();
  }

  std::string write() {
    size_t rows = timeline.programs.size();
    double below = top + static_cast<double>(rows) * (rowHeight + rowGap);
    double height = below + 78, whole = left + width + right;
    line(R"(<?xml version="1.0" encoding="UTF-8"?>)");
    line(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" )"
         R"(viewBox="0 0 {0:.0f} {1:.0f}" font-family="sans-serif" font-size="12" fill="#1b1f24">)",
         whole, height);
    line("<title>{}</title>", escapeXml(title()));
    writeDefinitions();
    // A ground of its own, for viewers that are dark.
    line(R"(<rect width="{:.0f}" height="{:.0f}" fill="#ffffff"/>)", whole, height);
    line(R"(<text x="{:.0f}" y="24" font-size="16" font-weight="bold">{}</text>)", margin,
         escapeXml(title()));
    line(R"(<text x="{:.0f}" y="44">{}</text>)", margin, escapeXml(subtitle()));
    inFlight.resize(rows);
    for (const StageInFlight &stage : timeline.inFlight())
      inFlight[stage.program].push_back(stage.microbatches);
    for (size_t p = 0; p < rows; ++p)
      writeRow(p);
    writeTransfers();
    writeTimes(below);
    writeLegend(below + 46);
    line("</svg>");
    return std::move(text);
  }

private:
  // Sizes in pixels.
  static constexpr double margin = 16, left = 90, right = 150, top = 64;
  static constexpr double rowHeight = 30, rowGap = 16;
  static constexpr double fewestPixels = 800, mostPixels = 4000;
  static constexpr double digitWidth = 7;

  template <typename... T> void line(fmt::format_string<T...> format, T &&...values) {
    fmt::format_to(std::back_inserter(text), format, std::forward<T>(values)...);
    text += '\n';
  }

  static double labelWidth(uint32_t microbatch) {
    return 6 + digitWidth * static_cast<double>(std::to_string(microbatch).size());
  }

  /// Pixels a second with which every microbatch's number fits its box.
  double pixelsForLabels() const {
    double most = 0;
    for (const std::vector<TaskInterval> &program : timeline.programs)
      for (const TaskInterval &interval : program)
        if (interval.isPipelined() && interval.seconds() > 0)
          most = std::max(most, labelWidth(interval.microbatch) / interval.seconds());
    // Work that takes next to no time would ask for more than a number holds.
    return std::min(most, mostPixels / shown.seconds());
  }

  double xOf(double time) const {
    return left + std::clamp(time - shown.start, 0.0, shown.seconds()) * perSecond;
  }
  static double yOf(size_t program) {
    return top + static_cast<double>(program) * (rowHeight + rowGap);
  }
  /// Whether a part of it is in the figure.
  bool isShown(double start, double end) const {
    return end > start && end > shown.start && start < shown.end;
  }

  std::string title() const {
    return (timeline.model.empty() ? "" : timeline.model + ", ") + describeTimeline(timeline);
  }

  std::string subtitle() const {
    TimeSpan step = timeline.step(), inner = timeline.pipelined();
    std::string result = fmt::format("bubble {:.1f}% of {}", 100 * timeline.bubbleShare(),
                                     formatDuration(inner.seconds()));
    if (shown.seconds() < step.seconds())
      return result + fmt::format("; a step of {} has work before and after it, which is not shown",
                                  formatDuration(step.seconds()));
    return result + fmt::format("; a step takes {}", formatDuration(step.seconds()));
  }

  void writeDefinitions() {
    line(
        R"(<defs><pattern id="waits" width="6" height="6" patternUnits="userSpaceOnUse" )"
        R"svg(patternTransform="rotate(45)"><rect width="6" height="6" fill="#f4f5f7"/>)svg"
        R"(<line x1="0" y1="0" x2="0" y2="6" stroke="#d5d8dd" stroke-width="2"/></pattern></defs>)");
  }

  void writeRow(size_t program) {
    double y = yOf(program), baseline = y + rowHeight / 2 + 4;
    std::vector<uint32_t> stages = timeline.stagesOf(program);
    line(R"(<text x="{:.0f}" y="{:.1f}">{}={}</text>)", margin, baseline,
         escapeXml(timeline.axis.empty() ? "device" : timeline.axis), program);
    line(R"svg(<rect class="waits" x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{:.0f}" )svg"
         R"svg(fill="url(#waits)"/>)svg",
         left, y, width, rowHeight);
    for (const TaskInterval &interval : timeline.programs[program])
      if (isShown(interval.start, interval.end))
        writeBox(program, interval, stages);
    std::vector<std::string> counts;
    for (size_t microbatches : inFlight[program])
      counts.push_back(std::to_string(microbatches));
    if (!counts.empty())
      line(R"(<text x="{:.2f}" y="{:.1f}">in flight: {}</text>)", left + width + 10, baseline,
           fmt::join(counts, ", "));
  }

  void writeBox(size_t program, const TaskInterval &interval, const std::vector<uint32_t> &stages) {
    // The stages rise.
    auto chunk = static_cast<size_t>(
        std::lower_bound(stages.begin(), stages.end(), interval.stage) - stages.begin());
    double x = xOf(interval.start), boxWidth = xOf(interval.end) - x, y = yOf(program);
    std::string about =
        fmt::format("{}, microbatch {}", timeline.taskName(program, interval), interval.microbatch);
    if (interval.isPipelined())
      about += fmt::format(", {} of stage {}", name(interval.pass), interval.stage);
    about += fmt::format(": {} to {} ({})", formatDuration(interval.start),
                         formatDuration(interval.end), formatDuration(interval.seconds()));
    line(R"(<g class="{}"><title>{}</title><rect x="{:.2f}" y="{:.1f}" width="{:.2f}" )"
         R"(height="{:.0f}" fill="{}" stroke="#ffffff" stroke-width="0.5"/>)",
         name(interval.pass), escapeXml(about), x, y, boxWidth, rowHeight,
         taskColour(interval.pass, chunk));
    if (interval.isPipelined() && boxWidth >= labelWidth(interval.microbatch) - 0.01)
      line(R"(<text x="{:.2f}" y="{:.1f}" text-anchor="middle" fill="#ffffff">{}</text>)",
           x + boxWidth / 2, y + rowHeight / 2 + 4, interval.microbatch);
    line("</g>");
  }

  /// Draws a line for each transfer, from the edge of one row to the edge of the other.
  void writeTransfers() {
    for (const TransferInterval &transfer : timeline.transfers) {
      if (transfer.end < shown.start || transfer.start > shown.end)
        continue;
      bool down = transfer.to > transfer.from;
      line(R"(<g class="transfer"><title>{}</title><line x1="{:.2f}" y1="{:.1f}" x2="{:.2f}" )"
           R"(y2="{:.1f}" stroke="#c2571a" stroke-width="1" stroke-opacity="0.8"/></g>)",
           escapeXml(fmt::format("microbatch {} from {}={} to {}, {}: {} to {} (channel {})",
                                 transfer.microbatch, timeline.axis, transfer.from, transfer.to,
                                 formatBytes(transfer.bytes), formatDuration(transfer.start),
                                 formatDuration(transfer.end), transfer.channel)),
           xOf(transfer.start), yOf(transfer.from) + (down ? rowHeight : 0), xOf(transfer.end),
           yOf(transfer.to) + (down ? 0 : rowHeight));
    }
  }

  void writeTimes(double y) {
    constexpr int parts = 5;
    for (int i = 0; i <= parts; ++i) {
      double time = shown.start + shown.seconds() * i / parts, x = left + width * i / parts;
      line(R"(<line x1="{0:.2f}" y1="{1:.1f}" x2="{0:.2f}" y2="{2:.1f}" stroke="#8a9099"/>)", x,
           y - 8, y - 2);
      line(R"(<text x="{:.2f}" y="{:.1f}" text-anchor="middle" font-size="11">{}</text>)", x,
           y + 11, formatDuration(time));
    }
  }

  /// A small box and its meaning.
  void legendEntry(double &x, double y, const char *fill, const std::string &what) {
    line(R"(<rect x="{:.1f}" y="{:.1f}" width="14" height="14" fill="{}" stroke="#8a9099" )"
         R"(stroke-width="0.5"/><text x="{:.1f}" y="{:.1f}">{}</text>)",
         x, y - 11, fill, x + 20, y, what);
    x += 40 + digitWidth * static_cast<double>(what.size());
  }

  void writeLegend(double y) {
    double x = margin;
    size_t chunks = timeline.chunks();
    line(R"(<g class="legend">)");
    for (std::optional<StagePass> pass : kTaskPasses)
      for (size_t chunk = 0; draws(pass) && chunk < (pass ? std::min(chunks, kNumTaskShades) : 1);
           ++chunk)
        legendEntry(x, y, taskColour(pass, chunk),
                    chunks > 1 && pass ? fmt::format("{}, chunk {}", name(pass), chunk)
                                       : name(pass));
    legendEntry(x, y, "url(#waits)", "waits");
    line(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#c2571a"/>)", x, y - 11,
         x + 14, y + 3);
    line(R"(<text x="{:.1f}" y="{:.1f}">transfer</text>)", x + 20, y);
    line("</g>");
  }

  bool draws(std::optional<StagePass> pass) const {
    for (const std::vector<TaskInterval> &program : timeline.programs)
      for (const TaskInterval &interval : program)
        if (interval.pass == pass && isShown(interval.start, interval.end))
          return true;
    return false;
  }

  const Timeline &timeline;
  TimeSpan shown;
  double width = fewestPixels; // of the part that has time
  double perSecond = 0;
  std::vector<std::vector<size_t>> inFlight; // by row and stage
  std::string text;
};

} // namespace

std::string timelineToSvg(const Timeline &timeline) { return SvgWriter(timeline).write(); }

} // namespace dtc
