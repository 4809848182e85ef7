//===- StepMetrics.h - Metrics of a step ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_METRICS_STEPMETRICS_H
#define DTC_RUNTIME_METRICS_STEPMETRICS_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dtc::runtime {

/// A metric that a model returns, over all samples of a step.
struct ModelMetric {
  std::string name;             ///< "expert_tokens"
  std::string of;               ///< a layer ("model.layers.3.mlp"), or empty: the model
  std::vector<double> elements; ///< of a tensor, in row-major order
  bool isScalar = false;
};

/// A client of federated learning in a round that ends.
struct ClientMetric {
  std::string name;
  std::optional<double> loss = {}; ///< the mean over the steps of the round that the process saw
  double weight = 0;               ///< in the mean of the round; 0: it was left out
};

/// One step's numbers; a value is absent if the plan does not compute it.
struct StepMetrics {
  int64_t step = 0; // 1 is the first
  std::optional<double> loss = {};
  std::optional<double> gradNorm = {};
  std::optional<double> learningRate = {};
  double seconds = 0;
  double tokensPerSecond = 0;
  uint64_t peakBytes = 0;
  int64_t skippedSteps = 0;             // up to this one, this one included
  std::optional<double> evalLoss = {};  // on held-out data, if it was computed after the step
  std::optional<double> lossScale = {}; // of the step, if the plan scales its loss
  /// If a checkpoint was begun after the step: how long training waited for the one before to be
  /// written, and for the copy of the states.
  std::optional<double> checkpointWaitSeconds = {}, checkpointCopySeconds = {};
  /// Where there are several processes: the two whose devices waited longest and shortest for
  /// others, and how long they waited. The others wait for the one that waits least.
  std::optional<double> mostWaitSeconds = {}, leastWaitSeconds = {};
  std::optional<int64_t> mostWaitProcess = {}, leastWaitProcess = {};
  std::vector<double> waitSeconds = {}; // of each
  std::vector<ModelMetric> ofModel = {};
  std::optional<int64_t> round = {}; // of clients: the one that ends with this step, 1 is the first
  std::vector<ClientMetric> clients = {}; // of that round
  /// The tokens of the expert that most of a layer choose, divided by those of an even spread; of
  /// the layer where that is largest. And the tokens that experts dropped, of all layers.
  std::optional<double> expertImbalance = {}, droppedTokens = {};
};

/// The names of a metric in each output of metrics, and its meaning.
struct Metric {
  const char *name = ""; ///< a key of the JSON lines; Prometheus has dtc_ before it
  const char *tag = "";  ///< TensorBoard's
  const char *help = ""; ///< with its unit
  bool isCount = false;  ///< a whole number
  bool isOfAll = false;  ///< whether the JSON line of a step that lacks it says null
  std::optional<double> (*of)(const StepMetrics &) = nullptr;
};

/// The one of each process. Its `of` is null, and it is none of allMetrics().
extern const Metric kWaitSeconds;

/// All others of a step but its number, in the order of the JSON lines.
std::span<const Metric> allMetrics();

/// The metrics as one line of JSON without its end: "step", allMetrics(), where there are several
/// processes kWaitSeconds, a list, "clients" of the round that ends, and "model", an object of the
/// model's metrics: a number or a list by its name, or an object of these by the tensors or layers
/// that they belong to. Non-finite numbers are null.
std::string toJson(const StepMetrics &metrics);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_METRICS_STEPMETRICS_H
