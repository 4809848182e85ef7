//===- ModelMetrics.cpp - Metrics that a model returns --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ModelMetrics.h"

#include "plan/PlanTypes.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace dtc::runtime {

static Expected<ModelMetric> read(const Session &session, const plan::Output &output) {
  Expected<HostTensor> value = session.getOutput(output.name());
  if (!value)
    return value.error();
  ModelMetric metric;
  size_t colon = output.name().find(':');
  metric.name = output.name().substr(0, colon);
  if (colon != std::string::npos)
    metric.of = output.name().substr(colon + 1);
  metric.isScalar = output.shape_size() == 0;
  for (int64_t i = 0; i < value->type.numElements(); ++i)
    metric.elements.push_back(elementAt(*value, i));
  return metric;
}

static double sumOf(const ModelMetric &metric) {
  return std::accumulate(metric.elements.begin(), metric.elements.end(), 0.0);
}

MaybeError addModelMetrics(const Session &session, StepMetrics &metrics) {
  for (const plan::Output *output : distinctOutputs(session.plan())) {
    if (!output->metric())
      continue;
    Expected<ModelMetric> metric = read(session, *output);
    if (!metric)
      return metric.error();
    double sum = sumOf(*metric);
    if (metric->name == "dropped_tokens")
      metrics.droppedTokens = metrics.droppedTokens.value_or(0) + sum;
    if (metric->name == "expert_tokens" && sum > 0) {
      double most = *std::ranges::max_element(metric->elements);
      double imbalance = most * static_cast<double>(metric->elements.size()) / sum;
      metrics.expertImbalance = std::max(metrics.expertImbalance.value_or(1), imbalance);
    }
    metrics.ofModel.push_back(std::move(*metric));
  }
  return std::nullopt;
}

MaybeError checkZeroMetrics(const Session &session) {
  std::string found;
  double all = 0;
  for (const plan::Output *output : distinctOutputs(session.plan())) {
    if (!output->must_be_zero())
      continue;
    Expected<ModelMetric> metric = read(session, *output);
    if (!metric)
      return metric.error();
    double sum = 0;
    for (double element : metric->elements)
      sum += std::abs(element);
    if (sum == 0) // NaN is not
      continue;
    if (found.empty())
      found = fmt::format("metric \"{}\" is {}, expected 0", output->name(), sum);
    all += sum;
  }
  if (found.empty())
    return std::nullopt;
  return Error{fmt::format("{} ({} in all such metrics); if experts have too few rows, import the "
                           "model with a greater --expert-bound, and go on with --resume "
                           "--allow-change model",
                           found, all)};
}

} // namespace dtc::runtime
