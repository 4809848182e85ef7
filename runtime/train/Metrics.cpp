//===- Metrics.cpp - What is known after a step ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Metrics.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

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
  return line.dump();
}

Expected<MetricsWriter> MetricsWriter::open(const std::string &path) {
  std::FILE *file = std::fopen(path.c_str(), "we");
  if (!file)
    return Error{fmt::format("{}: cannot write: {}", path, std::strerror(errno))};
  return MetricsWriter(path, file);
}

MaybeError MetricsWriter::write(const StepMetrics &metrics) {
  std::string line = toJson(metrics) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file.get()) != line.size() ||
      std::fflush(file.get()) != 0)
    return Error{fmt::format("{}: cannot write: {}", path, std::strerror(errno))};
  return std::nullopt;
}

} // namespace dtc::runtime
