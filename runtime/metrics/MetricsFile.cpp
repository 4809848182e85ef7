//===- MetricsFile.cpp - Metrics as lines of JSON --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metrics/MetricsFile.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace dtc::runtime {

Expected<std::unique_ptr<MetricsFile>> MetricsFile::open(const std::string &path) {
  Expected<LockedFile> file = LockedFile::open(path);
  if (!file)
    return file.error();
  return std::unique_ptr<MetricsFile>(new MetricsFile(std::move(*file), path));
}

/// The bytes of a file's first lines, complete ones of metrics of steps up to `step`.
static uint64_t bytesUpTo(const std::string &path, int64_t step) {
  std::ifstream file(path, std::ios::binary);
  uint64_t bytes = 0;
  for (std::string line; std::getline(file, line) && !file.eof(); bytes += line.size() + 1) {
    nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer() ||
        json["step"].get<int64_t>() > step)
      break;
  }
  return bytes;
}

MaybeError MetricsFile::begin(int64_t step) {
  if (std::exchange(hasBegun, true))
    return std::nullopt;
  // A pipe has no lines to keep, and reading it would take them from its reader.
  std::error_code code;
  bool hasLines = step > 0 && std::filesystem::is_regular_file(path, code);
  return file.truncate(hasLines ? bytesUpTo(path, step) : 0);
}

MaybeError MetricsFile::write(const StepMetrics &metrics) {
  return file.write(toJson(metrics) + "\n");
}

} // namespace dtc::runtime
