//===- MetricsSinks.cpp - The places to which the metrics of a run go -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/MetricsSinks.h"

#include "runtime/metrics/MetricsFile.h"
#include "runtime/metrics/MetricsServer.h"
#include "runtime/metrics/TensorBoardFile.h"

#include <fmt/format.h>
#include <utility>

namespace dtc::runtime {

Expected<MetricsSinks> openMetricsSinks(const TrainOptions &options, const std::string &model,
                                        const std::function<void(const std::string &)> &note) {
  MetricsSinks sinks;
  if (!options.processes.isFirst())
    return sinks;
  auto add = [&](auto opened) -> MaybeError {
    if (!opened)
      return opened.error();
    sinks.push_back(std::move(*opened));
    return std::nullopt;
  };
  if (!options.metricsPath.empty())
    if (MaybeError error = add(MetricsFile::open(options.metricsPath)))
      return *error;
  if (!options.tensorBoardPath.empty())
    if (MaybeError error = add(TensorBoardFile::open(options.tensorBoardPath)))
      return error->inContext("--tensorboard");
  if (options.metricsAddress.empty())
    return sinks;
  auto server = MetricsServer::open(options.metricsAddress, model);
  if (!server)
    return server.error().inContext("--metrics-port");
  note(fmt::format("metrics for Prometheus at http://{}/metrics", (*server)->address()));
  sinks.push_back(std::move(*server));
  return sinks;
}

} // namespace dtc::runtime
