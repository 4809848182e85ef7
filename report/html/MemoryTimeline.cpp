//===- MemoryTimeline.cpp - Memory of a device over a step ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/html/MemoryTimeline.h"

#include "plan/PlanTypes.h"
#include "report/ValueLives.h"

#include <algorithm>

namespace dtc {

size_t memoryBandOf(BufferKind kind) {
  auto found = std::find(kMemoryBands.begin(), kMemoryBands.end(), kind);
  return static_cast<size_t>(found - kMemoryBands.begin());
}

const char *memoryBandName(size_t band) {
  static constexpr std::array<const char *, kNumMemoryBands> names = {
      "parameters", "master weights", "optimizer state", "gradients", "activations", "other"};
  return names[band];
}

namespace {

/// The bytes that begin (or, negative, cease) to be in use at a program point.
struct Change {
  int64_t point = 0;
  size_t band = 0;
  int64_t bytes = 0;
};

std::vector<Change> changesOf(const plan::Program &program) {
  std::vector<Change> changes;
  for (const ValueLife &life : findValueLives(program)) {
    size_t band = memoryBandOf(kindOf(program.buffers(static_cast<int>(life.storage))));
    changes.push_back({life.begin, band, life.bytes});
    changes.push_back({life.last + 1, band, -life.bytes});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change &a, const Change &b) { return a.point < b.point; });
  return changes;
}

/// Puts the changes into the parts of the step.
class CurvePoints {
public:
  CurvePoints(double stepSeconds, size_t parts, MemoryTimeline &result)
      : perSecond(stepSeconds > 0 ? static_cast<double>(parts) / stepSeconds : 0), result(result) {
    result.parts.resize(parts);
  }

  void add(const Change &change) { use[change.band] += static_cast<uint64_t>(change.bytes); }
  /// The bytes in use from one time to another. Returns whether it is more than ever before.
  bool hold(double from, double to) {
    uint64_t total = use.total();
    double last = static_cast<double>(result.parts.size() - 1);
    auto first = static_cast<size_t>(std::clamp(from * perSecond, 0.0, last));
    auto end = static_cast<size_t>(std::clamp(to * perSecond, 0.0, last));
    for (size_t part = first; part <= end; ++part)
      if (total > result.parts[part].total())
        result.parts[part] = use;
    if (total <= result.peak.total())
      return false;
    result.peak = use;
    result.peakSeconds = from;
    return true;
  }

private:
  double perSecond;
  MemoryUse use{};
  MemoryTimeline &result;
};

} // namespace

MemoryTimeline followMemory(const plan::Plan &plan, size_t index, const Timeline &timeline,
                            double stepSeconds, size_t parts) {
  const plan::Program &program = plan.programs(static_cast<int>(index));
  std::vector<TimeSpan> spans(static_cast<size_t>(program.schedule_size()), {-1, -1});
  for (const TaskInterval &interval : timeline.programs[index]) {
    TimeSpan &span = spans[interval.execution];
    span = {span.start < 0 ? interval.start : span.start, interval.end};
  }
  MemoryTimeline result;
  CurvePoints points(stepSeconds, parts, result);
  std::vector<Change> changes = changesOf(program);
  auto change = changes.begin();
  int64_t point = 0;
  double time = 0;
  for (int e = 0; e < program.schedule_size(); ++e) {
    const plan::ScheduleEntry &entry = program.schedule(e);
    const plan::Task &task = program.tasks(static_cast<int>(entry.task()));
    TimeSpan span = spans[static_cast<size_t>(e)];
    if (span.start < 0)
      span = {time, time};
    points.hold(time, span.start);
    double each = span.seconds() / std::max(task.instructions_size(), 1);
    for (int i = 0; i < task.instructions_size(); ++i, ++point) {
      bool changed = false;
      for (; change != changes.end() && change->point <= point; ++change, changed = true)
        points.add(*change);
      time = span.start + each * i;
      if (!points.hold(time, time + each) || !changed)
        continue;
      result.peakTask = task.name();
      result.peakMicrobatch = entry.microbatch();
      auto location = static_cast<int>(task.instructions(i).location());
      result.peakLocation =
          location > 0 && location < plan.locations_size() ? plan.locations(location) : "";
    }
    time = span.end;
  }
  points.hold(time, stepSeconds);
  return result;
}

} // namespace dtc
