//===- PeakValues.cpp - What lives at the peak of a device's memory -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/PeakValues.h"

#include "plan/PlanTypes.h"
#include "report/ValueLives.h"

#include <algorithm>
#include <map>
#include <utility>

namespace dtc {

namespace {

class PeakFinder {
public:
  PeakFinder(const plan::Plan &plan, const plan::Program &program)
      : plan(plan), program(program), lives(findValueLives(program)) {}

  PlanPeak run(size_t most) {
    int64_t point = findPoint();
    describeMoment(point);
    nameStates();
    std::map<uint32_t, size_t> rows; // by buffer
    for (const ValueLife &life : lives) {
      if (life.begin > point || point > life.last)
        continue;
      auto [row, isNew] = rows.try_emplace(life.buffer, peak.values.size());
      if (isNew)
        peak.values.push_back(describe(life));
      else
        ++peak.values[row->second].copies;
      peak.values[row->second].bytes += static_cast<uint64_t>(life.bytes);
    }
    std::stable_sort(peak.values.begin(), peak.values.end(),
                     [](const PeakValue &a, const PeakValue &b) { return a.bytes > b.bytes; });
    if (peak.values.size() > most)
      peak.values.erase(peak.values.begin() + static_cast<std::ptrdiff_t>(most), peak.values.end());
    return std::move(peak);
  }

private:
  /// The first program point where most bytes are in use.
  int64_t findPoint() {
    std::vector<std::pair<int64_t, int64_t>> changes; // of the bytes in use, by program point
    for (const ValueLife &life : lives) {
      changes.emplace_back(life.begin, life.bytes);
      changes.emplace_back(life.last + 1, -life.bytes);
    }
    std::sort(changes.begin(), changes.end());
    int64_t found = 0, bytes = 0;
    for (size_t i = 0; i < changes.size(); ++i) {
      bytes += changes[i].second;
      bool isWhole = i + 1 == changes.size() || changes[i + 1].first != changes[i].first;
      if (!isWhole || bytes <= static_cast<int64_t>(peak.bytes))
        continue;
      peak.bytes = static_cast<uint64_t>(bytes);
      found = changes[i].first;
    }
    return found;
  }

  void describeMoment(int64_t point) {
    for (const plan::ScheduleEntry &entry : program.schedule()) {
      const plan::Task &task = program.tasks(static_cast<int>(entry.task()));
      if (point < task.instructions_size()) {
        peak.task = task.name();
        peak.location = locationOf(task.instructions(static_cast<int>(point)));
        return;
      }
      point -= task.instructions_size();
    }
  }

  void nameStates() {
    for (const plan::Input &input : program.inputs())
      names[input.buffer()] = input.name();
    for (const plan::State &state : program.states())
      names[state.buffer()] = state.name();
  }

  std::string locationOf(const plan::Instruction &instruction) const {
    auto location = static_cast<int>(instruction.location());
    return location > 0 && location < plan.locations_size() ? plan.locations(location) : "";
  }

  PeakValue describe(const ValueLife &life) const {
    const plan::Buffer &buffer = program.buffers(static_cast<int>(life.buffer));
    PeakValue value;
    value.kind = kindOf(program.buffers(static_cast<int>(life.storage)));
    value.type = typeOf(buffer);
    if (auto known = names.find(life.storage); known != names.end()) {
      value.name = known->second;
    } else if (life.maker) {
      value.name = life.maker->has_kernel()       ? life.maker->kernel().kernel()
                   : life.maker->has_collective() ? name(kindOf(life.maker->collective()))
                                                  : "receive";
      value.location = locationOf(*life.maker);
    }
    return value;
  }

  const plan::Plan &plan;
  const plan::Program &program;
  std::vector<ValueLife> lives;
  std::map<uint32_t, std::string> names; // of states and inputs, by buffer
  PlanPeak peak;
};

} // namespace

PlanPeak findPlanPeak(const plan::Plan &plan, const plan::Program &program, size_t most) {
  return PeakFinder(plan, program).run(most);
}

} // namespace dtc
