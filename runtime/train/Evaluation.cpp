//===- Evaluation.cpp - The loss on held-out data -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Evaluation.h"

#include "plan/PlanTypes.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

Expected<std::unique_ptr<Evaluation>> Evaluation::open(const Session &session,
                                                       const TrainOptions &options) {
  for (auto [given, flag] : {std::pair(options.evalEvery.has_value(), "--eval-every"),
                             std::pair(options.evalBatches.has_value(), "--eval-batches")})
    if (given && options.evalDataPaths.empty())
      return Error{
          fmt::format("{}: there is no data to evaluate on; give a file with --eval-data", flag)};
  if (options.evalDataPaths.empty())
    return std::unique_ptr<Evaluation>();
  Session *entry = session.findEntry("evaluate");
  if (!entry)
    return Error{"--eval-data: the plan has no entry point \"evaluate\"; plans that dtc-compile "
                 "writes with --mode train have one"};
  const plan::Output *loss = entry->findOutput("loss");
  if (!loss || loss->shape_size() != 0 || !isFloat(toDType(loss->dtype())))
    return Error{"--eval-data: the entry point \"evaluate\" of the plan has no scalar output "
                 "\"loss\""};
  std::vector<DataInput> inputs = dataInputsOf(entry->plan());
  auto data = openDataSource(options.evalDataPaths, inputs, {options.seed});
  if (!data)
    return data.error().inContext("--eval-data");
  std::unique_ptr<Evaluation> evaluation(new Evaluation(*entry, std::move(*data)));
  int64_t all = evaluation->data->sequentialBatches();
  if (all == 0)
    return Error{fmt::format("--eval-data: {} has fewer samples than a batch of the plan",
                             evaluation->data->describe())};
  evaluation->batches = std::min(options.evalBatches.value_or(all), all);
  auto loader = BatchLoader::start(
      [&source = *evaluation->data](int64_t index) { return source.sequentialBatch(index); },
      batchesAhead(inputs, 1), evaluation->batches - 1);
  if (!loader)
    return loader.error();
  evaluation->loader = std::move(*loader);
  evaluation->every = options.evalEvery.value_or(
      std::max<int64_t>(options.steps.value_or(kDefaultTrainSteps) / 10, 1));
  return evaluation;
}

/// How many labels of the batch count, of which its loss is the mean; 1 where all batches have as
/// many.
static double countLabels(const plan::Plan &plan, const Batch &batch) {
  for (const plan::Input *input : distinctInputs(plan))
    if (input->has_ignored_index()) {
      const HostTensor &labels = batch.at(input->name());
      const auto *first = labels.as<int32_t>();
      int64_t all = labels.type.numElements();
      return static_cast<double>(
          all - std::count(first, first + all, static_cast<int32_t>(input->ignored_index())));
    }
  return 1;
}

Expected<std::optional<EvaluationResult>>
Evaluation::run(const std::function<Expected<bool>()> &stops) {
  double sum = 0, weights = 0;
  for (int64_t index = 0; index < batches; ++index) {
    Expected<bool> stopped = stops();
    if (!stopped)
      return stopped.error();
    if (*stopped)
      return std::optional<EvaluationResult>();
    Expected<Batch> batch = loader->take(index);
    if (!batch)
      return batch.error();
    double weight = countLabels(session.plan(), *batch);
    if (weight == 0)
      continue;
    for (auto &[name, tensor] : *batch)
      if (MaybeError error = session.setInput(name, std::move(tensor)))
        return *error;
    if (MaybeError error = session.step())
      return *error;
    Expected<HostTensor> loss = session.getOutput("loss");
    if (!loss)
      return loss.error();
    sum += weight * elementAt(*loss, 0);
    weights += weight;
  }
  return std::optional(weights > 0 ? EvaluationResult{sum / weights}
                                   : EvaluationResult{std::nullopt});
}

std::string Evaluation::describe() const {
  return fmt::format("{}, {} batch{} to evaluate on every {} step{}", data->describe(), batches,
                     batches == 1 ? "" : "es", every, every == 1 ? "" : "s");
}

} // namespace dtc::runtime
