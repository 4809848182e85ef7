//===- MetricsSinks.h - The places to which the metrics of a run go -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_METRICSSINKS_H
#define DTC_RUNTIME_TRAIN_METRICSSINKS_H

#include "runtime/metrics/MetricsSink.h"
#include "runtime/train/TrainOptions.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dtc::runtime {

using MetricsSinks = std::vector<std::unique_ptr<MetricsSink>>;

/// Opens the file, the folder and the address that the options name. There are none in any process
/// but the first, which speaks for all. `note` is told the address; the error names the flag.
Expected<MetricsSinks> openMetricsSinks(const TrainOptions &options, const std::string &model,
                                        const std::function<void(const std::string &)> &note);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_METRICSSINKS_H
