//===- SimulationTrace.cpp - Simulated steps as traces --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/SimulationTrace.h"

#include "plan/PlanTypes.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dtc {

using Json = nlohmann::ordered_json;

namespace {

constexpr int kComputeThread = 0, kCollectivesThread = 1, kTransfersThread = 2; // and those after

class Writer {
public:
  Writer(const plan::Plan &plan, const Simulation &simulation)
      : plan(plan), simulation(simulation) {}

  std::string run() {
    text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
    const Timeline &timeline = simulation.step.timeline;
    tracks.resize(timeline.programs.size());
    for (size_t p = 0; p < timeline.programs.size(); ++p)
      addDevice(p);
    std::vector<TransferInterval> transfers = timeline.transfers;
    std::stable_sort(transfers.begin(), transfers.end(),
                     [](const auto &a, const auto &b) { return a.start < b.start; });
    for (size_t i = 0; i < transfers.size(); ++i) {
      addTransfer(transfers[i], transfers[i].from, "send", i);
      addTransfer(transfers[i], transfers[i].to, "receive", i);
    }
    text += "\n]}\n";
    return std::move(text);
  }

private:
  void addDevice(size_t p) {
    const Timeline &timeline = simulation.step.timeline;
    addName(p, "process_name", 0,
            timeline.axis.empty() ? "every device" : fmt::format("{}={}", timeline.axis, p));
    add({{"name", "process_sort_index"}, {"ph", "M"}, {"pid", p}, {"args", {{"sort_index", p}}}});
    addName(p, "thread_name", kComputeThread, "compute");
    addName(p, "thread_name", kCollectivesThread, "collectives");
    addName(p, "thread_name", kTransfersThread, "transfers");
    for (const TaskInterval &interval : timeline.programs[p])
      addSpan(timeline.taskName(p, interval), "task", p, kComputeThread, interval.start,
              interval.end, {{"microbatch", interval.microbatch}});
    const plan::Program &program = plan.programs(static_cast<int>(p));
    for (const CollectiveInterval &interval : simulation.step.collectives[p]) {
      const plan::ScheduleEntry &entry = program.schedule(static_cast<int>(interval.execution));
      const plan::Task &task = program.tasks(static_cast<int>(entry.task()));
      const plan::Instruction &instruction =
          task.instructions(static_cast<int>(interval.instruction));
      Json args = {{"microbatch", entry.microbatch()},
                   {"task", task.name()},
                   {"axes", simulation.axes[interval.axes]}};
      if (auto location = static_cast<int>(instruction.location());
          location > 0 && location < plan.locations_size())
        args["location"] = plan.locations(location);
      addSpan(name(kindOf(instruction.collective())), "work", p, kCollectivesThread, interval.start,
              interval.end, args);
    }
  }

  void addTransfer(const TransferInterval &transfer, size_t p, const char *what, size_t id) {
    // The first track in which the transfer overlaps no other.
    size_t track = 0;
    while (track < tracks[p].size() && tracks[p][track] > transfer.start)
      ++track;
    int thread = kTransfersThread + static_cast<int>(track);
    if (track == tracks[p].size()) {
      tracks[p].push_back(transfer.end);
      if (track > 0)
        addName(p, "thread_name", thread, "transfers");
    }
    tracks[p][track] = transfer.end;
    bool sends = p == transfer.from;
    addSpan(what, "work", p, thread, transfer.start, transfer.end,
            {{"microbatch", transfer.microbatch},
             {"channel", transfer.channel},
             {"peer", sends ? transfer.to : transfer.from},
             {"bytes", transfer.bytes}});
    Json arrow = {
        {"name", "transfer"}, {"cat", "transfer"}, {"ph", sends ? "s" : "f"},   {"id", id},
        {"pid", p},           {"tid", thread},     {"ts", transfer.start * 1e6}};
    if (!sends)
      arrow["bp"] = "e";
    add(arrow);
  }

  void addSpan(const std::string &name, const char *category, size_t p, int thread, double start,
               double end, const Json &args) {
    add({{"name", name},
         {"cat", category},
         {"ph", "X"},
         {"pid", p},
         {"tid", thread},
         {"ts", start * 1e6},
         {"dur", (end - start) * 1e6},
         {"args", args}});
  }
  void addName(size_t p, const char *what, int thread, const std::string &name) {
    add({{"name", what}, {"ph", "M"}, {"pid", p}, {"tid", thread}, {"args", {{"name", name}}}});
  }
  void add(const Json &event) {
    text += isFirst ? "\n" : ",\n";
    isFirst = false;
    // Names come from users' files and may be no valid UTF-8.
    text += event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  const plan::Plan &plan;
  const Simulation &simulation;
  std::string text;
  bool isFirst = true;
  std::vector<std::vector<double>> tracks; // by coordinate: the end of the last transfer
};

} // namespace

std::string simulationToTrace(const plan::Plan &plan, const Simulation &simulation) {
  return Writer(plan, simulation).run();
}

} // namespace dtc
