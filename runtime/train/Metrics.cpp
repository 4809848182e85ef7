//===- Metrics.cpp - What is known after a step ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Metrics.h"

#include <cmath>
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
  return line.dump();
}

Expected<MetricsWriter> MetricsWriter::open(const std::string &path) {
  Expected<LockedFile> file = LockedFile::open(path);
  if (!file)
    return file.error();
  return MetricsWriter(std::move(*file));
}

MaybeError MetricsWriter::begin() {
  return std::exchange(hasBegun, true) ? std::nullopt : file.clear();
}

MaybeError MetricsWriter::write(const StepMetrics &metrics) {
  return file.write(toJson(metrics) + "\n");
}

} // namespace dtc::runtime
