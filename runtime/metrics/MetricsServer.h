//===- MetricsServer.h - Metrics for Prometheus ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_METRICS_METRICSSERVER_H
#define DTC_RUNTIME_METRICS_METRICSSERVER_H

#include "runtime/metrics/MetricsSink.h"

#include <memory>
#include <string>
#include <string_view>

namespace dtc::runtime {

/// The metrics of the last step at http://ADDRESS:PORT/metrics, in Prometheus' text format. A
/// metric that the last step lacks, such as the loss on held-out data, keeps its value.
class MetricsServer : public MetricsSink {
public:
  /// Listens on `where`, a port of the loopback address or ADDRESS:PORT; port 0 is any free one.
  /// The metrics have `model` as their label. The error says what was found and expected, or that
  /// the address cannot be listened on.
  static Expected<std::unique_ptr<MetricsServer>> open(std::string_view where,
                                                       const std::string &model);

  /// Such as 127.0.0.1:9400.
  virtual std::string address() const = 0;
};

/// The address with its port that `where` names; see MetricsServer::open().
Expected<std::string> parseMetricsAddress(std::string_view where);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_METRICS_METRICSSERVER_H
