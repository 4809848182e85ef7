//===- Evaluation.cpp - The loss on held-out data -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Evaluation.h"

#include "plan/PlanTypes.h"
#include "runtime/train/ModelMetrics.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

static bool isLoss(const plan::Output &output) {
  return output.shape_size() == 0 && isFloat(toDType(output.dtype()));
}

/// The output of the program that is a loss; null if there is none.
static const plan::Output *findLoss(const Session &session) {
  if (const plan::Output *loss = session.findOutput("loss"))
    return isLoss(*loss) ? loss : nullptr;
  std::vector<const plan::Output *> outputs = distinctOutputs(session.plan());
  std::erase_if(outputs, [](const plan::Output *output) { return output->metric(); });
  return outputs.size() == 1 && isLoss(*outputs.front()) ? outputs.front() : nullptr;
}

/// Of a data set that has not a whole batch, or not a number of whole ones.
static constexpr const char *kIgnoreIndexRemedy =
    "import the model with --ignore-index, such as -100, by which the rest of a batch is filled "
    "with labels that do not count";

Expected<std::unique_ptr<Evaluation>> Evaluation::open(Session &session,
                                                       const TrainOptions &options, int64_t steps) {
  for (auto [given, flag] : {std::pair(options.evalEvery.has_value(), "--eval-every"),
                             std::pair(options.evalBatches.has_value(), "--eval-batches")})
    if (given && options.evalDataPaths.empty())
      return Error{
          fmt::format("{}: there is no data to evaluate on; give a file with --eval-data", flag)};
  if (options.evalDataPaths.empty())
    return std::unique_ptr<Evaluation>();
  Session *entry = trains(session.plan()) ? session.findEntry("evaluate") : &session;
  if (!entry)
    return Error{fmt::format("{}: the plan has no entry point \"evaluate\"; plans that dtc-compile "
                             "writes with --mode train have one",
                             options.evalDataFlag)};
  const plan::Output *loss = findLoss(*entry);
  if (!loss)
    return Error{
        fmt::format("{}: {} has no scalar output \"loss\"", options.evalDataFlag,
                    entry == &session ? "the plan" : "the entry point \"evaluate\" of the plan")};
  std::vector<DataInput> inputs = dataInputsOf(entry->plan());
  auto data = openDataSource(options.evalDataPaths, inputs, {options.seed});
  if (!data)
    return data.error().inContext(options.evalDataFlag);
  std::unique_ptr<Evaluation> evaluation(new Evaluation(*entry, loss->name(), std::move(*data)));
  int64_t all = evaluation->data->sequentialBatches();
  if (all == 0)
    return Error{fmt::format("{}: {} has fewer samples than a batch of the plan, {}; {}, "
                             "or with a smaller --batch",
                             options.evalDataFlag, evaluation->data->describe(),
                             evaluation->data->batchSize(), kIgnoreIndexRemedy)};
  evaluation->batches = std::min(options.evalBatches.value_or(all), all);
  auto loader = BatchLoader::start(
      [&source = *evaluation->data](int64_t index) { return source.sequentialBatch(index); },
      batchesAhead(inputs, 1), evaluation->batches - 1);
  if (!loader)
    return loader.error();
  evaluation->loader = std::move(*loader);
  evaluation->every = options.evalEvery.value_or(std::max<int64_t>(steps / 10, 1));
  return evaluation;
}

/// The number of labels that the loss of the batch is the mean of; 1 where all batches have as
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
    if (MaybeError error = checkZeroMetrics(session))
      return *error;
    Expected<HostTensor> mean = session.getOutput(loss);
    if (!mean)
      return mean.error();
    sum += weight * elementAt(*mean, 0);
    weights += weight;
  }
  return std::optional(weights > 0 ? EvaluationResult{sum / weights}
                                   : EvaluationResult{std::nullopt});
}

std::string Evaluation::describeLeftOut() const {
  uint64_t left = data->samplesLeftOut();
  if (left == 0 || batches < data->sequentialBatches())
    return "";
  return fmt::format(
      "{} of {} samples fill{} no batch of {} and {} left out; {}, or with a --batch "
      "that divides {}",
      left, data->samplesPerEpoch(), left == 1 ? "s" : "", data->batchSize(),
      left == 1 ? "is" : "are", kIgnoreIndexRemedy, data->samplesPerEpoch());
}

std::string Evaluation::describe(int64_t steps) const {
  std::string when =
      steps == 0 ? "" : fmt::format(" every {} step{}", every, every == 1 ? "" : "s");
  return fmt::format("{}, {} batch{} to evaluate on{}", data->describe(), batches,
                     batches == 1 ? "" : "es", when);
}

} // namespace dtc::runtime
