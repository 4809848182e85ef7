//===- Timeline.cpp - Timeline of a simulated step ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/Timeline.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

namespace dtc {

template <typename Filter> static TimeSpan spanOf(const Timeline &timeline, Filter counts) {
  TimeSpan span;
  bool empty = true;
  for (const std::vector<TaskInterval> &program : timeline.programs)
    for (const TaskInterval &interval : program) {
      if (!counts(interval))
        continue;
      span.start = empty ? interval.start : std::min(span.start, interval.start);
      span.end = std::max(span.end, interval.end);
      empty = false;
    }
  return span;
}

TimeSpan Timeline::step() const {
  return {0, spanOf(*this, [](const TaskInterval &) { return true; }).end};
}

TimeSpan Timeline::pipelined() const {
  return spanOf(*this, [](const TaskInterval &interval) { return interval.isPipelined(); });
}

double Timeline::busySeconds(size_t program, const TimeSpan &within) const {
  double seconds = 0;
  for (const TaskInterval &interval : programs[program])
    if (interval.isPipelined())
      seconds += std::max(0.0, std::min(interval.end, within.end) -
                                   std::max(interval.start, within.start));
  return seconds;
}

double Timeline::bubbleShare() const {
  TimeSpan span = pipelined();
  if (span.seconds() <= 0)
    return 0;
  double busy = 0;
  for (size_t p = 0; p < programs.size(); ++p)
    busy += busySeconds(p, span);
  return std::max(0.0, 1 - busy / (static_cast<double>(programs.size()) * span.seconds()));
}

std::vector<uint32_t> Timeline::stagesOf(size_t program) const {
  std::set<uint32_t> stages;
  for (const TaskInterval &interval : programs[program])
    if (interval.isPipelined())
      stages.insert(interval.stage);
  return {stages.begin(), stages.end()};
}

size_t Timeline::chunks() const {
  size_t most = 0;
  for (size_t p = 0; p < programs.size(); ++p)
    most = std::max(most, stagesOf(p).size());
  return most;
}

/// The most of the spans that have a moment in common. Spans that only touch have none.
static size_t mostAtOnce(const std::map<uint32_t, TimeSpan> &spans) {
  std::vector<std::pair<double, int>> events;
  for (const auto &[microbatch, span] : spans) {
    events.emplace_back(span.start, 1);
    events.emplace_back(span.end, -1);
  }
  std::sort(events.begin(), events.end()); // ends before starts
  int now = 0, most = 0;
  for (auto [time, change] : events)
    most = std::max(most, now += change);
  return static_cast<size_t>(most);
}

std::vector<StageInFlight> Timeline::inFlight() const {
  std::map<std::pair<uint32_t, size_t>, std::map<uint32_t, TimeSpan>> spans;
  for (size_t p = 0; p < programs.size(); ++p)
    for (const TaskInterval &interval : programs[p]) {
      if (!interval.isPipelined())
        continue;
      auto &stage = spans[{interval.stage, p}];
      // Intervals rise in time, so the first start and the last end stand.
      auto it = stage.find(interval.microbatch);
      if (it != stage.end())
        it->second.end = interval.end;
      else if (interval.pass == StagePass::Forward)
        stage[interval.microbatch] = {interval.start, interval.end};
    }
  std::vector<StageInFlight> result;
  for (const auto &[key, microbatches] : spans)
    result.push_back({key.first, key.second, mostAtOnce(microbatches)});
  return result;
}

TimeSpan Timeline::shown() const {
  TimeSpan all = step(), inner = pipelined();
  bool readable = inner.seconds() <= 0 || 2 * inner.seconds() >= all.seconds();
  return readable ? all : inner;
}

bool Timeline::isDrawable() const {
  // From a picosecond to some ten million years, so that no scale leaves the range of numbers.
  double seconds = shown().seconds();
  return seconds >= 1e-12 && seconds <= 1e15;
}

std::string describeTimeline(const Timeline &timeline) {
  auto count = [](size_t number, const char *one, const char *several) {
    return fmt::format("{} {}", number, number == 1 ? one : several);
  };
  std::string text = timeline.schedule.empty() ? "" : timeline.schedule + ": ";
  if (timeline.stages > 0)
    text += count(timeline.stages, "stage", "stages") + " on ";
  text += count(timeline.programs.size(), "device", "devices");
  if (!timeline.axis.empty())
    text += fmt::format(" ({})", timeline.axis);
  if (timeline.chunks() > 1)
    text += fmt::format(", up to {} stages each", timeline.chunks());
  return text + ", " +
         count(static_cast<size_t>(timeline.microbatches), "microbatch", "microbatches");
}

const char *name(std::optional<StagePass> pass) { return pass ? name(*pass) : "other"; }

} // namespace dtc
