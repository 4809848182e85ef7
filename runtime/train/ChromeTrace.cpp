//===- ChromeTrace.cpp - Chrome traces of a run ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The format: Google's "Trace Event Format". An event "X" is a span with a begin and a duration in
// microseconds; spans of one thread enclose each other or lie apart. "M" names processes and
// threads. "s" and "f" with one id are the ends of an arrow, each bound to the span around it.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ChromeTrace.h"

#include "plan/PlanTypes.h"
#include "support/AtomicFile.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

namespace dtc::runtime {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kComputeThread = 0, kCollectivesThread = 1, kTransfersThread = 2; // and those after

/// The rows of the host's lanes, with their names. Their threads come after those of transfers.
constexpr std::array<std::pair<TraceRow, const char *>, 3> kHostRows = {
    {{TraceRow::ToHost, "copies to the host"},
     {TraceRow::Host, "the host"},
     {TraceRow::ToDevice, "copies to the device"}}};
constexpr int threadOf(TraceRow row) { return 1000 + static_cast<int>(row); }

class TraceWriter {
public:
  TraceWriter(const Session &session, AtomicFile &file)
      : session(session), plan(session.plan()), file(file) {}

  MaybeError run() {
    for (const std::unique_ptr<DeviceExecutor> &device : session.heldDevices())
      if (const DeviceTrace *trace = device->getTrace())
        for (const DeviceTrace::Step *step : trace->steps())
          for (const std::vector<TraceEvent> &row : *step)
            for (const TraceEvent &event : row)
              origin = origin ? std::min(*origin, event.begin) : event.begin;
    buffer = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
    for (const std::unique_ptr<DeviceExecutor> &device : session.heldDevices())
      if (MaybeError error = writeDevice(*device))
        return error;
    buffer += "\n]}\n";
    return file.write(buffer);
  }

private:
  /// Bytes that are collected for one call of the file.
  static constexpr size_t bufferBytes = size_t{1} << 16;

  MaybeError writeDevice(const DeviceExecutor &device) {
    std::vector<std::string> place;
    const Mesh &mesh = session.getPrepared().mesh;
    std::vector<int64_t> coordinates = mesh.coordinates(device.index());
    for (size_t i = 0; i < coordinates.size(); ++i)
      if (!mesh.axes()[i].temporal)
        place.push_back(fmt::format("{}={}", mesh.axes()[i].name, coordinates[i]));
    name(device, "process_name", 0,
         fmt::format("device {}{}", device.index(),
                     place.empty() ? "" : fmt::format(" ({})", fmt::join(place, ", "))));
    add({{"name", "process_sort_index"},
         {"ph", "M"},
         {"pid", device.index()},
         {"args", {{"sort_index", device.index()}}}});
    name(device, "thread_name", kComputeThread, "compute");
    name(device, "thread_name", kCollectivesThread, "collectives");
    name(device, "thread_name", kTransfersThread, "transfers");
    if (device.getProgram().usesHost)
      for (auto [row, text] : kHostRows)
        name(device, "thread_name", threadOf(row), text);
    if (!device.getTrace())
      return std::nullopt;
    tracks.clear();
    int64_t number = 0;
    for (const DeviceTrace::Step *step : device.getTrace()->steps()) {
      for (const TraceEvent &event : (*step)[static_cast<size_t>(TraceRow::Compute)])
        addSpan(device, event, kComputeThread);
      for (const TraceEvent &event : (*step)[static_cast<size_t>(TraceRow::Collectives)])
        addSpan(device, event, kCollectivesThread);
      for (auto [row, text] : kHostRows)
        for (const TraceEvent &event : (*step)[static_cast<size_t>(row)])
          addSpan(device, event, threadOf(row));
      std::vector<TraceEvent> transfers = (*step)[static_cast<size_t>(TraceRow::Transfers)];
      std::stable_sort(transfers.begin(), transfers.end(),
                       [](const TraceEvent &a, const TraceEvent &b) { return a.begin < b.begin; });
      for (const TraceEvent &event : transfers)
        addTransfer(device, event, number);
      ++number;
      if (buffer.size() >= bufferBytes)
        if (MaybeError error = flush())
          return error;
    }
    return std::nullopt;
  }

  void addTransfer(const DeviceExecutor &device, const TraceEvent &event, int64_t step) {
    // The first track in which the transfer overlaps no other.
    size_t track = 0;
    while (track < tracks.size() && tracks[track] > event.begin)
      ++track;
    int thread = kTransfersThread + static_cast<int>(track);
    if (track == tracks.size()) {
      tracks.push_back(event.end);
      if (track > 0)
        name(device, "thread_name", thread, "transfers");
    }
    tracks[track] = event.end;
    addSpan(device, event, thread);
    const PreparedTransfer &transfer = transferOf(device, event.instruction);
    int64_t peer = session.device(device.index()).transferPeer(indexOf(device, event.instruction));
    int64_t sender = transfer.sends ? device.index() : peer;
    int64_t receiver = transfer.sends ? peer : device.index();
    auto microbatch = device.getProgram().schedule[event.entry].microbatch;
    size_t id =
        arrows.try_emplace({step, sender, receiver, transfer.channel, microbatch}, arrows.size())
            .first->second;
    Json arrow = {{"name", "transfer"},
                  {"cat", "transfer"},
                  {"ph", transfer.sends ? "s" : "f"},
                  {"id", id},
                  {"pid", device.index()},
                  {"tid", thread},
                  {"ts", micros(event.begin - *origin)}};
    if (!transfer.sends)
      arrow["bp"] = "e";
    add(arrow);
  }

  void addSpan(const DeviceExecutor &device, const TraceEvent &event, int thread) {
    const PreparedProgram &program = device.getProgram();
    const PreparedProgram::ScheduleEntry &entry = program.schedule[event.entry];
    Json args = {{"microbatch", entry.microbatch}};
    const plan::Task &task = program.program->tasks(static_cast<int>(entry.task));
    std::string text = task.name();
    if (event.kind != TraceEvent::Task) {
      args["task"] = task.name();
      text = nameOf(device, event.instruction, args);
      if (event.kind == TraceEvent::Waiting)
        text = "wait for " + text;
      auto location = static_cast<int>(program.instruction(event.instruction).location());
      if (location > 0 && location < plan.locations_size())
        args["location"] = plan.locations(location);
    }
    static constexpr const char *categories[] = {"task", "work", "wait"};
    add({{"name", text},
         {"cat", categories[event.kind]},
         {"ph", "X"},
         {"pid", device.index()},
         {"tid", thread},
         {"ts", micros(event.begin - *origin)},
         {"dur", micros(event.end - event.begin)},
         {"args", args}});
  }

  static size_t indexOf(const DeviceExecutor &device, size_t instruction) {
    return std::get<PreparedFinishTransfer>(device.getProgram().instructions[instruction]).transfer;
  }
  static const PreparedTransfer &transferOf(const DeviceExecutor &device, size_t instruction) {
    return device.getProgram().transfers[indexOf(device, instruction)];
  }

  /// The kernel, the collective or "send"; adds further details to `args`.
  static std::string nameOf(const DeviceExecutor &device, size_t index, Json &args) {
    const plan::Instruction &instruction = device.getProgram().instruction(index);
    if (instruction.has_kernel())
      return instruction.kernel().kernel();
    if (instruction.has_collective())
      return dtc::name(kindOf(instruction.collective()));
    const PreparedTransfer &transfer = transferOf(device, index);
    uint64_t bytes = 0;
    for (const PreparedTransfer::Tensor &tensor : transfer.tensors)
      bytes += tensor.bytes;
    args["channel"] = transfer.channel;
    args["peer"] = device.transferPeer(indexOf(device, index));
    args["bytes"] = bytes;
    return transfer.sends ? "send" : "receive";
  }

  static double micros(std::chrono::steady_clock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
  }

  void name(const DeviceExecutor &device, const char *what, int thread, const std::string &text) {
    add({{"name", what},
         {"ph", "M"},
         {"pid", device.index()},
         {"tid", thread},
         {"args", {{"name", text}}}});
  }

  void add(const Json &event) {
    buffer += isFirst ? "\n" : ",\n";
    isFirst = false;
    // Names come from users' files and may be no valid UTF-8.
    buffer += event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  MaybeError flush() {
    MaybeError error = file.write(buffer);
    buffer.clear();
    return error;
  }

  using Arrow = std::tuple<int64_t, int64_t, int64_t, uint32_t, uint32_t>;

  const Session &session;
  const plan::Plan &plan;
  AtomicFile &file;
  std::string buffer;
  bool isFirst = true;
  std::optional<TraceEvent::TimePoint> origin; // the first event of all
  std::vector<TraceEvent::TimePoint> tracks;   // of transfers of a device: the end of the last one
  /// The id by step, sender, receiver, channel and microbatch.
  std::map<Arrow, size_t> arrows;
};

} // namespace

MaybeError writeChromeTrace(const Session &session, const std::string &path) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (MaybeError error = TraceWriter(session, *file).run())
    return error;
  return file->commit();
}

} // namespace dtc::runtime
