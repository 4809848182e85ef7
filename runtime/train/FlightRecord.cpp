//===- FlightRecord.cpp - Flight record of a process ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/FlightRecord.h"

#include "support/AtomicFile.h"

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dtc::runtime {

using Json = nlohmann::ordered_json;

static Json toJson(const FlightOperation &operation, FlightOperation::TimePoint now) {
  auto ago = [&](FlightOperation::TimePoint point) {
    return std::chrono::duration<double>(now - point).count();
  };
  Json json = {{"operation", operation.operation},
               {"wait", operation.isWait},
               {"devices", operation.devices},
               {"bytes", operation.bytes},
               {"task", operation.task},
               {"microbatch", operation.microbatch},
               {"instruction", operation.instruction},
               {"location", operation.location}};
  if (operation.predictedSeconds)
    json["predicted_seconds"] = *operation.predictedSeconds;
  if (operation.begin) {
    json["step"] = operation.step;
    json["state"] = operation.end ? "done" : "begun";
    json["begun_seconds_ago"] = ago(*operation.begin);
  }
  if (operation.end)
    json["ended_seconds_ago"] = ago(*operation.end);
  return json;
}

static std::string timeText() {
  std::time_t time = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&time, &parts);
  char text[32] = {};
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

MaybeError writeFlightRecord(const std::string &folder, int64_t process, const std::string &host,
                             const std::string &reason, const std::vector<DeviceFlight> &devices) {
  FlightOperation::TimePoint now = std::chrono::steady_clock::now();
  Json json = {{"process", process}, {"host", host}, {"time", timeText()}, {"reason", reason}};
  json["devices"] = Json::array();
  for (const DeviceFlight &flight : devices) {
    Json device = {{"device", flight.device}, {"place", flight.place}};
    for (const auto &[name, operations] :
         {std::pair("last", &flight.last), std::pair("next", &flight.next)}) {
      device[name] = Json::array();
      for (const FlightOperation &operation : *operations)
        device[name].push_back(toJson(operation, now));
    }
    json["devices"].push_back(std::move(device));
  }
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code)
    return Error{fmt::format("--flight-record: {}: cannot be made: {}", folder, code.message())};
  std::string path = (std::filesystem::path(folder) / fmt::format("process-{}.json", process));
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (MaybeError error =
          file->write(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"))
    return error;
  return file->commit();
}

} // namespace dtc::runtime
