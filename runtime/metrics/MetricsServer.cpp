//===- MetricsServer.cpp - Metrics for Prometheus --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metrics/MetricsServer.h"

#include <charconv>
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>
#include <utility>
#include <vector>

namespace dtc::runtime {

Expected<std::string> parseMetricsAddress(std::string_view where) {
  size_t colon = where.rfind(':');
  bool isPortAlone = colon == std::string_view::npos;
  std::string_view address = isPortAlone ? "127.0.0.1" : where.substr(0, colon);
  std::string_view digits = isPortAlone ? where : where.substr(colon + 1);
  uint16_t port = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  bool isNumeric = address.find_first_not_of("0123456789abcdefABCDEF.:[]") == address.npos;
  if (error != std::errc() || end != digits.data() + digits.size() || address.empty() || !isNumeric)
    return Error{fmt::format("found \"{}\", expected a port from 0 to 65535, or an address in "
                             "numbers and a port, such as 9400, 0.0.0.0:9400 or [::]:9400",
                             where)};
  return fmt::format("{}:{}", address, port);
}

namespace {

/// The last step as Prometheus has it, all of one step together.
class LastStep final : public prometheus::Collectable {
public:
  explicit LastStep(std::string model) : model(std::move(model)) {}

  void set(const StepMetrics &metrics) {
    std::lock_guard lock(mutex);
    set("step", "The last step", static_cast<double>(metrics.step));
    for (const Metric &metric : allMetrics())
      if (std::optional<double> value = metric.of(metrics))
        set(metric.name, metric.help, *value);
    if (!metrics.waitSeconds.empty())
      setOfEachProcess(kWaitSeconds, metrics.waitSeconds);
    setOfModel(metrics.ofModel);
    set("step_timestamp_seconds", "When the last step ended, in seconds since 1970",
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  }

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::lock_guard lock(mutex);
    std::vector<prometheus::MetricFamily> all;
    for (const auto &[name, family] : families)
      all.push_back(family);
    return all;
  }

private:
  void set(const std::string &name, const char *help, double value) {
    prometheus::ClientMetric metric;
    metric.label = {{"model", model}};
    metric.gauge.value = value;
    families[name] = {"dtc_" + name, help, prometheus::MetricType::Gauge, {metric}};
  }

  void setOfEachProcess(const Metric &which, const std::vector<double> &values) {
    std::string name = which.name;
    prometheus::MetricFamily family = {
        "dtc_" + name, which.help, prometheus::MetricType::Gauge, {}};
    for (size_t process = 0; process < values.size(); ++process) {
      prometheus::ClientMetric &metric = family.metric.emplace_back();
      metric.label = {{"model", model}, {"process", fmt::to_string(process)}};
      metric.gauge.value = values[process];
    }
    families[name] = std::move(family);
  }

  void setOfModel(const std::vector<ModelMetric> &all) {
    std::map<std::string, prometheus::MetricFamily> byName;
    for (const ModelMetric &metric : all) {
      auto [found, isNew] = byName.try_emplace("model_" + metric.name);
      if (isNew)
        found->second = {
            "dtc_" + found->first,
            fmt::format("The metric \"{}\" that the model returned in the last step", metric.name),
            prometheus::MetricType::Gauge,
            {}};
      for (size_t element = 0; element < metric.elements.size(); ++element) {
        prometheus::ClientMetric &value = found->second.metric.emplace_back();
        value.label = {{"model", model}};
        if (!metric.of.empty())
          value.label.push_back({"of", metric.of});
        if (!metric.isScalar)
          value.label.push_back({"element", fmt::to_string(element)});
        value.gauge.value = metric.elements[element];
      }
    }
    for (auto &[name, family] : byName)
      families[name] = std::move(family);
  }

  const std::string model;
  mutable std::mutex mutex;
  std::map<std::string, prometheus::MetricFamily> families;
};

/// A connection has a thread while it is served, and one that sends no request has it until the
/// timeout: 16 connections are served at once, and many idle ones hold up others for seconds only.
/// A scraper sends its request at once.
std::vector<std::string> serverOptions(const std::string &address) {
  return {"listening_ports", address, "num_threads", "16", "request_timeout_ms", "500"};
}

class PrometheusServer final : public MetricsServer {
public:
  /// Throws where nothing can listen there.
  PrometheusServer(const std::string &address, const std::string &model)
      : lastStep(std::make_shared<LastStep>(model)), exposer(serverOptions(address)),
        host(address.substr(0, address.rfind(':'))) {
    exposer.RegisterCollectable(lastStep);
  }

  MaybeError begin(int64_t) override { return std::nullopt; }

  MaybeError write(const StepMetrics &metrics) override {
    lastStep->set(metrics);
    return std::nullopt;
  }

  std::string address() const override {
    return fmt::format("{}:{}", host, exposer.GetListeningPorts().front());
  }

private:
  std::shared_ptr<LastStep> lastStep;
  prometheus::Exposer exposer;
  std::string host;
};

} // namespace

Expected<std::unique_ptr<MetricsServer>> MetricsServer::open(std::string_view where,
                                                             const std::string &model) {
  Expected<std::string> address = parseMetricsAddress(where);
  if (!address)
    return address.error();
  try {
    return std::unique_ptr<MetricsServer>(std::make_unique<PrometheusServer>(*address, model));
  } catch (const std::exception &) { // which only says that something is null
    return Error{fmt::format("cannot listen on {}: the port is in use, or may not be used, or the "
                             "address is none of this machine's",
                             *address)};
  }
}

} // namespace dtc::runtime
