//===- MetricsFile.h - Metrics as lines of JSON ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_METRICS_METRICSFILE_H
#define DTC_RUNTIME_METRICS_METRICSFILE_H

#include "runtime/metrics/MetricsSink.h"
#include "support/LockedFile.h"

#include <memory>
#include <string>

namespace dtc::runtime {

/// Writes one JSON object a line. Every line reaches the file whole, when it is written.
class MetricsFile final : public MetricsSink {
public:
  /// Keeps other runs from writing to the file. The error begins with the path.
  static Expected<std::unique_ptr<MetricsFile>> open(const std::string &path);

  /// Removes from the file the lines of steps after `step`, and all that follows the first of them
  /// or a line that is none of metrics. 0 empties the file.
  MaybeError begin(int64_t step) override;
  MaybeError write(const StepMetrics &metrics) override;

private:
  MetricsFile(LockedFile file, std::string path) : file(std::move(file)), path(std::move(path)) {}

  LockedFile file;
  std::string path;
  bool hasBegun = false;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_METRICS_METRICSFILE_H
