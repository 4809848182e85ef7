//===- StepMetrics.cpp - Metrics of a step --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metrics/StepMetrics.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace dtc::runtime {

using Value = std::optional<double>;

static Value numberOf(const std::optional<int64_t> &value) {
  return value ? Value(static_cast<double>(*value)) : std::nullopt;
}

static constexpr Metric kMetrics[] = {
    {.name = "loss",
     .tag = "train/loss",
     .help = "The loss of the last step",
     .isOfAll = true,
     .of = [](const StepMetrics &step) { return step.loss; }},
    {.name = "grad_norm",
     .tag = "train/grad_norm",
     .help = "The norm of all gradients of the last step, before they were clipped",
     .isOfAll = true,
     .of = [](const StepMetrics &step) { return step.gradNorm; }},
    {.name = "lr",
     .tag = "train/learning_rate",
     .help = "The learning rate of the last step",
     .isOfAll = true,
     .of = [](const StepMetrics &step) { return step.learningRate; }},
    {.name = "step_seconds",
     .tag = "speed/step_seconds",
     .help = "What the last step took, in seconds",
     .isOfAll = true,
     .of = [](const StepMetrics &step) { return Value(step.seconds); }},
    {.name = "tokens_per_second",
     .tag = "speed/tokens_per_second",
     .help = "Tokens, or samples where there are no tokens, of all devices in a second of the last "
             "step",
     .isOfAll = true,
     .of = [](const StepMetrics &step) { return Value(step.tokensPerSecond); }},
    {.name = "peak_bytes",
     .tag = "memory/peak_bytes",
     .help = "The memory that the plan takes on a device, in bytes",
     .isCount = true,
     .isOfAll = true,
     .of = [](const StepMetrics &step) { return Value(static_cast<double>(step.peakBytes)); }},
    {.name = "skipped_steps",
     .tag = "train/skipped_steps",
     .help = "Steps that were skipped since the start, since their gradients were not finite",
     .isCount = true,
     .isOfAll = true,
     .of = [](const StepMetrics &step) { return Value(static_cast<double>(step.skippedSteps)); }},
    {.name = "eval_loss",
     .tag = "eval/loss",
     .help = "The loss on held-out data when it was last computed",
     .of = [](const StepMetrics &step) { return step.evalLoss; }},
    {.name = "loss_scale",
     .tag = "train/loss_scale",
     .help = "What the loss of the last step was multiplied by before its gradients were computed",
     .of = [](const StepMetrics &step) { return step.lossScale; }},
    {.name = "checkpoint_wait_seconds",
     .tag = "checkpoint/wait_seconds",
     .help = "How long training waited, at the last checkpoint, for the one before to be written, "
             "in seconds",
     .of = [](const StepMetrics &step) { return step.checkpointWaitSeconds; }},
    {.name = "checkpoint_copy_seconds",
     .tag = "checkpoint/copy_seconds",
     .help = "How long training waited for the states to be copied for the last checkpoint, in "
             "seconds",
     .of = [](const StepMetrics &step) { return step.checkpointCopySeconds; }},
    {.name = "most_wait_seconds",
     .tag = "processes/most_wait_seconds",
     .help = "How long the devices of the process that waited most for others did so in the last "
             "step, in seconds, on average",
     .of = [](const StepMetrics &step) { return step.mostWaitSeconds; }},
    {.name = "most_wait_process",
     .tag = "processes/most_wait_process",
     .help = "The number of the process that waited most for others in the last step",
     .isCount = true,
     .of = [](const StepMetrics &step) { return numberOf(step.mostWaitProcess); }},
    {.name = "least_wait_seconds",
     .tag = "processes/least_wait_seconds",
     .help = "How long the devices of the process that waited least for others did so in the last "
             "step, in seconds, on average",
     .of = [](const StepMetrics &step) { return step.leastWaitSeconds; }},
    {.name = "least_wait_process",
     .tag = "processes/least_wait_process",
     .help = "The number of the process that waited least for others in the last step: if they "
             "wait much longer, they wait for this one",
     .isCount = true,
     .of = [](const StepMetrics &step) { return numberOf(step.leastWaitProcess); }},
    {.name = "expert_imbalance",
     .tag = "experts/imbalance",
     .help = "Tokens of the most chosen expert of a layer in the last step, divided by those of an "
             "even spread, of the layer where that is largest",
     .of = [](const StepMetrics &step) { return step.expertImbalance; }},
    {.name = "dropped_tokens",
     .tag = "experts/dropped_tokens",
     .help = "Tokens that experts dropped in the last step, since more chose them than they have "
             "rows for, summed over layers",
     .isCount = true,
     .of = [](const StepMetrics &step) { return step.droppedTokens; }},
};

const Metric kWaitSeconds = {
    .name = "wait_seconds",
    .tag = "processes/wait_seconds",
    .help = "How long the devices of the process waited for others in the last step, in seconds, "
            "on average"};

std::span<const Metric> allMetrics() { return kMetrics; }

static nlohmann::ordered_json jsonOf(const ModelMetric &metric) {
  auto list = nlohmann::ordered_json::array();
  for (double element : metric.elements)
    if (std::isfinite(element) && element == std::trunc(element) && std::abs(element) < 1e15)
      list.push_back(static_cast<int64_t>(element)); // a count
    else
      list.push_back(std::isfinite(element) ? nlohmann::ordered_json(element) : nullptr);
  return metric.isScalar ? list.front() : list;
}

std::string toJson(const StepMetrics &metrics) {
  nlohmann::ordered_json line;
  line["step"] = metrics.step;
  for (const Metric &metric : kMetrics) {
    Value value = metric.of(metrics);
    if (!value && !metric.isOfAll)
      continue;
    if (!value || !std::isfinite(*value))
      line[metric.name] = nullptr;
    else if (metric.isCount)
      line[metric.name] = static_cast<int64_t>(*value);
    else
      line[metric.name] = *value;
  }
  if (!metrics.waitSeconds.empty())
    line[kWaitSeconds.name] = metrics.waitSeconds;
  if (metrics.round)
    line["round"] = *metrics.round;
  for (const ClientMetric &client : metrics.clients) {
    nlohmann::ordered_json &entry = line["clients"][client.name];
    entry["loss"] =
        client.loss && std::isfinite(*client.loss) ? nlohmann::ordered_json(*client.loss) : nullptr;
    entry["weight"] = client.weight;
  }
  for (const ModelMetric &metric : metrics.ofModel) {
    nlohmann::ordered_json &entry = line["model"][metric.name];
    (metric.of.empty() ? entry : entry[metric.of]) = jsonOf(metric);
  }
  return line.dump();
}

} // namespace dtc::runtime
