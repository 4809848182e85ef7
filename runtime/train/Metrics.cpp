//===- Metrics.cpp - What is known after a step ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Metrics.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace dtc::runtime {

std::string toJson(const StepMetrics &metrics) {
  auto number = [](const std::optional<double> &value) -> nlohmann::ordered_json {
    if (!value || !std::isfinite(*value))
      return nullptr;
    return *value;
  };
  nlohmann::ordered_json line;
  line["step"] = metrics.step;
  line["loss"] = number(metrics.loss);
  line["grad_norm"] = number(metrics.gradNorm);
  line["lr"] = number(metrics.learningRate);
  line["step_seconds"] = number(metrics.seconds);
  line["tokens_per_second"] = number(metrics.tokensPerSecond);
  line["peak_bytes"] = metrics.peakBytes;
  line["skipped_steps"] = metrics.skippedSteps;
  if (metrics.evalLoss)
    line["eval_loss"] = number(metrics.evalLoss);
  if (metrics.lossScale)
    line["loss_scale"] = *metrics.lossScale;
  if (metrics.checkpointWaitSeconds)
    line["checkpoint_wait_seconds"] = number(metrics.checkpointWaitSeconds);
  if (metrics.checkpointCopySeconds)
    line["checkpoint_copy_seconds"] = number(metrics.checkpointCopySeconds);
  return line.dump();
}

Expected<MetricsWriter> MetricsWriter::open(const std::string &path) {
  Expected<LockedFile> file = LockedFile::open(path);
  if (!file)
    return file.error();
  return MetricsWriter(std::move(*file), path);
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

MaybeError MetricsWriter::begin(int64_t step) {
  if (std::exchange(hasBegun, true))
    return std::nullopt;
  // A pipe has no lines to keep, and reading it would take them from its reader.
  std::error_code code;
  bool hasLines = step > 0 && std::filesystem::is_regular_file(path, code);
  return file.truncate(hasLines ? bytesUpTo(path, step) : 0);
}

MaybeError MetricsWriter::write(const StepMetrics &metrics) {
  return file.write(toJson(metrics) + "\n");
}

} // namespace dtc::runtime
