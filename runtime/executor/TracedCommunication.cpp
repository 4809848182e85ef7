//===- TracedCommunication.cpp - Hidden communication of a trace ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/TracedCommunication.h"

#include "plan/PlanTypes.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace dtc::runtime {

using TimePoint = CommunicationSpans::TimePoint;

/// Zero where the end comes before the begin.
static double secondsBetween(TimePoint begin, TimePoint end) {
  return std::max(std::chrono::duration<double>(end - begin).count(), 0.0);
}

/// The seconds of the waits that lie between two moments.
static double waitedBetween(const std::vector<CommunicationSpans::Wait> &waits, TimePoint begin,
                            TimePoint end) {
  double seconds = 0;
  auto wait =
      std::partition_point(waits.begin(), waits.end(),
                           [&](const CommunicationSpans::Wait &each) { return each.end <= begin; });
  for (; wait != waits.end() && wait->begin < end; ++wait)
    seconds += secondsBetween(std::max(begin, wait->begin), std::min(end, wait->end));
  return seconds;
}

std::vector<CommunicationTime> sumCommunication(std::span<const CommunicationSpans> devices) {
  std::map<std::string, TimePoint> lastBegins;
  for (const CommunicationSpans &device : devices)
    for (const CommunicationSpans::Call &call : device.calls)
      if (!call.match.empty()) {
        TimePoint &last = lastBegins.try_emplace(call.match, call.begin).first->second;
        last = std::max(last, call.begin);
      }
  std::map<std::string, CommunicationTime> byName;
  for (const CommunicationSpans &device : devices)
    for (const CommunicationSpans::Call &call : device.calls) {
      TimePoint moves = call.match.empty() ? call.begin : lastBegins.at(call.match);
      CommunicationTime &time = byName[call.name];
      time.name = call.name;
      ++time.calls;
      time.seconds += secondsBetween(call.begin, call.end);
      time.movingSeconds += secondsBetween(moves, call.end);
      time.exposedSeconds += waitedBetween(device.waits, moves, call.end);
    }
  std::vector<CommunicationTime> times;
  for (auto &[name, time] : byName)
    times.push_back(std::move(time));
  std::stable_sort(
      times.begin(), times.end(),
      [](const CommunicationTime &a, const CommunicationTime &b) { return a.seconds > b.seconds; });
  return times;
}

static CommunicationSpans spansOf(const DeviceExecutor &device, const PreparedPlan &prepared) {
  CommunicationSpans spans;
  size_t step = 0;
  const PreparedProgram &program = device.getProgram();
  for (const DeviceTrace::Step *rows : device.getTrace()->steps()) {
    std::map<size_t, size_t> numbers; // of the collectives of a group that were seen in the step
    for (const TraceEvent &event : (*rows)[static_cast<size_t>(TraceRow::Collectives)]) {
      size_t group = std::get<PreparedCollective>(program.instructions[event.instruction]).group;
      int64_t first = prepared.mesh.group(device.index(), prepared.groups[group]).front();
      const plan::Instruction &instruction = program.instruction(event.instruction);
      spans.calls.push_back({dtc::name(kindOf(instruction.collective())),
                             fmt::format("{} {} {} {}", step, group, first, numbers[group]++),
                             event.begin, event.end});
    }
    for (const TraceEvent &event : (*rows)[static_cast<size_t>(TraceRow::Transfers)]) {
      size_t transfer =
          std::get<PreparedFinishTransfer>(program.instructions[event.instruction]).transfer;
      spans.calls.push_back(
          {program.transfers[transfer].sends ? "send" : "receive", "", event.begin, event.end});
    }
    for (const TraceEvent &event : (*rows)[static_cast<size_t>(TraceRow::Compute)])
      if (event.kind == TraceEvent::Waiting)
        spans.waits.push_back({event.begin, event.end});
    ++step;
  }
  return spans;
}

std::vector<CommunicationTime> tracedCommunication(const Session &session) {
  std::vector<CommunicationSpans> devices;
  for (const std::unique_ptr<DeviceExecutor> &device : session.heldDevices())
    if (device->getTrace())
      devices.push_back(spansOf(*device, session.getPrepared()));
  return sumCommunication(devices);
}

} // namespace dtc::runtime
